"""Sixty-four comparisons at once.

The compiler turns loops into vector instructions, but not one that gathers comparisons into the bits of a word. This
says so in its own terms: vectors of 64 floats, which it cuts to whatever the processor has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LANES = 64
_FLOATS = ir.VectorType(ir.FloatType(), LANES)


@intrinsic
def reaches(typingctx: Any, table: Any, block: Any, x: Any) -> Any:  # noqa: ARG001 - intrinsics are given it
    """Which of 64 sums of products reach their limit, as the bits of a word: table f4[blocks, p + 1, 64] holds p rows
    of weights and then the limits, x f4[p] what they are multiplied with. A sum that is NaN reaches."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = make_array(signature.args[0])(context, builder, arguments[0])
        values = make_array(signature.args[2])(context, builder, arguments[2])
        count = builder.extract_value(values.shape, 0)
        height = builder.add(count, count.type(1))
        rows = builder.bitcast(table.data, _FLOATS.as_pointer())
        first = builder.mul(arguments[1], height)

        def row(number: Any) -> Any:
            return builder.load(builder.gep(rows, [builder.add(first, number)]), align=4)

        total = cgutils.alloca_once_value(builder, ir.Constant(_FLOATS, None))
        multiply_add = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_FLOATS, [_FLOATS] * 3), f"llvm.fmuladd.v{LANES}f32"
        )
        with cgutils.for_range(builder, count) as loop:
            value = builder.load(builder.gep(values.data, [loop.index]))
            single = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
            spread = builder.shuffle_vector(single, ir.Constant(_FLOATS, ir.Undefined), zeros)
            builder.store(builder.call(multiply_add, [row(loop.index), spread, builder.load(total)]), total)
        reached = builder.fcmp_unordered(">=", builder.load(total), row(count))
        return builder.bitcast(reached, ir.IntType(LANES))

    return types.uint64(table, types.int64, x), build
