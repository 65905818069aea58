"""Sixty-four comparisons at once.

The compiler turns loops into vector instructions, but not one that gathers comparisons into the bits of a word. This
says so in its own terms: vectors of 64 floats, which it cuts to whatever the processor has.
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
_LINE = 64  # bytes that are read in one go
_FLOATS = ir.VectorType(ir.FloatType(), LANES)


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros that begin where a line of memory does. Sixteen floats that lie across two lines take twice the time (1,300
    words of queries: 22 us against 13)."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(count + _LINE, np.uint8)
    begin = -memory.__array_interface__["data"][0] % _LINE
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
        return _reached(builder, total, _spread(builder, arguments[3]))

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
        value = _spread(builder, builder.load(builder.gep(values.data, [loop.index])))
        builder.store(builder.call(multiply_add, [row(loop.index), value, builder.load(total)]), total)
    return count, row, builder.load(total)


def _spread(builder: Any, value: Any) -> Any:
    """A number in all lanes."""
    nothing = ir.Constant(_FLOATS, ir.Undefined)
    single = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(single, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), None))


def _reached(builder: Any, total: Any, limit: Any) -> Any:
    return builder.bitcast(builder.fcmp_unordered(">=", total, limit), ir.IntType(LANES))
