"""Many comparisons at once.

The compiler turns loops into vector instructions, but not one that gathers comparisons into the bits of a word. This
says so in its own terms: vectors of 64 or 32 numbers, which it cuts to whatever the processor has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LANES = 64
LINE = 64  # bytes that memory brings at a time
_FLOATS = ir.VectorType(ir.FloatType(), LANES)


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros that begin where a line of memory does. Sixteen floats that lie across two lines take twice the time (1,300
    words of queries: 22 us against 13)."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(count + LINE, np.uint8)
    begin = -memory.__array_interface__["data"][0] % LINE
    lines: np.ndarray = memory[begin : begin + count].view(dtype).reshape(shape)
    return lines


@intrinsic  # type: ignore[untyped-decorator]
def reaches(typingctx: Any, table: Any, block: Any, x: Any) -> Any:  # noqa: ARG001 - intrinsics are given it
    """Which of 64 sums of products reach their limit, as the bits of a word: table f4[blocks, p + 1, 64] holds p rows
    of factors and then the limits, x f4[p] what they are multiplied with. A sum that is NaN reaches."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        count, row, total = _sums(context, builder, signature.args, arguments, more=1)
        return _reached(builder, total, row(count))

    return types.uint64(table, types.int64, x), build


@intrinsic  # type: ignore[untyped-decorator]
def reaches_one(typingctx: Any, table: Any, block: Any, x: Any, limit: Any) -> Any:  # noqa: ARG001 - as above
    """The same with one limit f4 for all: table f4[blocks, p, 64]."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, total = _sums(context, builder, signature.args, arguments, more=0)
        return _reached(builder, total, _spread(builder, arguments[3], LANES))

    return types.uint64(table, types.int64, x, types.float32), build


def _sums(context: Any, builder: Any, kinds: Any, arguments: Any, *, more: int) -> Any:
    """How many factors there are, a way to load a row of the block, and the sums. Blocks have `more` other rows."""
    table = make_array(kinds[0])(context, builder, arguments[0])
    values = make_array(kinds[2])(context, builder, arguments[2])
    count = builder.extract_value(values.shape, 0)
    rows = builder.bitcast(table.data, _FLOATS.as_pointer())
    first = builder.mul(arguments[1], builder.add(count, count.type(more)))

    def row(number: Any) -> Any:
        return builder.load(builder.gep(rows, [builder.add(first, number)]), align=4)

    total = cgutils.alloca_once_value(builder, ir.Constant(_FLOATS, None))
    kind = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
    multiply_add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32")
    with cgutils.for_range(builder, count) as loop:
        value = _spread(builder, builder.load(builder.gep(values.data, [loop.index])), LANES)
        builder.store(builder.call(multiply_add, [row(loop.index), value, builder.load(total)]), total)
    return count, row, builder.load(total)


def _reached(builder: Any, total: Any, limit: Any) -> Any:
    return builder.bitcast(builder.fcmp_unordered(">=", total, limit), ir.IntType(LANES))


# -- stretches of a column -------------------------------------------------------------------------------------

# How many numbers of a column are looked at together, from any place on. Columns have as many to spare at their end:
# what lies beyond those that are meant is looked at too, and masked by the caller.
SPAN = 32


def _comparison(sign: str) -> Any:
    """What compares SPAN numbers with one: the bits of an i8, lowest first. A NaN is neither above nor below."""

    def compare(typingctx: Any, column: Any, start: Any, x: Any) -> Any:  # noqa: ARG001 - as above
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            values = builder.load(_span(context, builder, signature.args[0], arguments), align=_bytes(column))
            limit = _spread(builder, arguments[2], SPAN)
            is_float = isinstance(column.dtype, types.Float)
            test = builder.fcmp_ordered if is_float else builder.icmp_signed
            return _bits(builder, test(sign, values, limit))

        return types.int64(column, types.int64, column.dtype), build

    return intrinsic(compare)


above = _comparison(">")
at_most = _comparison("<=")


@intrinsic  # type: ignore[untyped-decorator]
def least(typingctx: Any, column: Any, start: Any, mask: Any, none: Any) -> Any:  # noqa: ARG001 - as above
    """The smallest of the numbers i8 that a mask names, or `none`."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = builder.load(_span(context, builder, signature.args[0], arguments), align=_bytes(column))
        named = _lanes(builder, arguments[2])
        chosen = builder.select(named, values, _spread(builder, arguments[3], SPAN))
        kind = ir.FunctionType(ir.IntType(64), [chosen.type])
        smallest = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.smin.v{SPAN}i64")
        return builder.call(smallest, [chosen])

    return types.int64(column, types.int64, types.int64, types.int64), build


@intrinsic  # type: ignore[untyped-decorator]
def add_bits(typingctx: Any, column: Any, start: Any, bits: Any) -> Any:  # noqa: ARG001 - as above
    """Add 1 to each of SPAN numbers i4 whose bit is set."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _span(context, builder, signature.args[0], arguments)
        values = builder.load(place, align=_bytes(column))
        named = _lanes(builder, arguments[2])
        builder.store(builder.add(values, builder.zext(named, values.type)), place, align=_bytes(column))
        return context.get_dummy_value()

    return types.none(column, types.int64, types.int64), build


@intrinsic  # type: ignore[untyped-decorator]
def shift(typingctx: Any, column: Any, source: Any, target: Any, mask: Any) -> Any:  # noqa: ARG001 - as above
    """Copy those of SPAN numbers that a mask names to another place, which may overlap."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, source, target, mask = arguments
        values = builder.load(_span(context, builder, signature.args[0], (array, source)), align=_bytes(column))
        place = _span(context, builder, signature.args[0], (array, target))
        named = _lanes(builder, mask)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [values.type, place.type, word, named.type])
        item = ("f" if isinstance(column.dtype, types.Float) else "i") + str(column.dtype.bitwidth)
        name = f"llvm.masked.store.v{SPAN}{item}.p0v{SPAN}{item}"
        store = cgutils.get_or_insert_function(builder.module, kind, name)
        builder.call(store, [values, place, word(_bytes(column)), named])
        return context.get_dummy_value()

    return types.none(column, types.int64, types.int64, types.int64), build


@intrinsic  # type: ignore[untyped-decorator]
def ones(typingctx: Any, word: Any) -> Any:  # noqa: ARG001 - as above
    """How many bits of an i8 are set."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001 - as above
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), build


def _span(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    """Where a vector of SPAN numbers of a column begins."""
    data = make_array(kind)(context, builder, arguments[0]).data
    vector = ir.VectorType(context.get_data_type(kind.dtype), SPAN)
    return builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())


def _bytes(column: Any) -> int:
    return int(column.dtype.bitwidth) // 8


def _lanes(builder: Any, mask: Any) -> Any:
    return builder.bitcast(builder.trunc(mask, ir.IntType(SPAN)), ir.VectorType(ir.IntType(1), SPAN))


def _bits(builder: Any, mask: Any) -> Any:
    return builder.zext(builder.bitcast(mask, ir.IntType(SPAN)), ir.IntType(64))


def _spread(builder: Any, number: Any, lanes: int) -> Any:
    """A number in so many lanes."""
    nothing = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
    single = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(single, nothing, ir.Constant(ir.VectorType(ir.IntType(32), lanes), None))


@intrinsic  # type: ignore[untyped-decorator]
def fetch(typingctx: Any, array: Any, place: Any, offset: Any) -> Any:  # noqa: ARG001 - as above
    """Have the line of memory brought near that is so many bytes behind the begin of an item: it will be needed soon.
    Nothing happens if there is no such memory."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, place, offset = arguments
        data = make_array(signature.args[0])(context, builder, array).data
        pointer = ir.IntType(8).as_pointer()
        line = builder.gep(builder.bitcast(builder.gep(data, [place]), pointer), [offset])
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(prefetch, [line, word(1), word(3), word(1)])  # to write to, for long, data
        return context.get_dummy_value()

    return types.none(array, types.int64, types.int64), build
