"""Scores of rows and bounds over boxes, for all queries, from programs that are data.

Values run over blocks of rows: an instruction's dispatch is paid once a block, the loop inside it is vectorized by
the compiler. Known shapes have direct loops that keep the written order, so their bits equal the interpreter's.

Bounds run over one box. Sums, products, quotients and square roots round monotonically, so the rounded corner values
bound every rounded result without widening; `exp`, `log` and `**` of the C library may be off by an ulp or two and are
widened by four. An operand that may be NaN is marked, because comparisons turn a NaN into false.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..queries.expressions import Op
from ..queries.shapes import Shape
from .frames import F8, I1, I4, I8, I4x2
from .kernel import kernel

BLOCK = 512

# Numba reads module constants at compile time; enum members would be objects to it.
NUMBER, ATTRIBUTE, NEGATE = int(Op.NUMBER), int(Op.ATTRIBUTE), int(Op.NEGATE)
ADD, SUBTRACT, MULTIPLY, DIVIDE = int(Op.ADD), int(Op.SUBTRACT), int(Op.MULTIPLY), int(Op.DIVIDE)
POWER, SQUARE, ABS, MIN, MAX = int(Op.POWER), int(Op.SQUARE), int(Op.ABS), int(Op.MIN), int(Op.MAX)
SQRT, LOG, LOG1P, EXP = int(Op.SQRT), int(Op.LOG), int(Op.LOG1P), int(Op.EXP)
WHERE, CLIP = int(Op.WHERE), int(Op.CLIP)
LESS, LESS_EQUAL, GREATER = int(Op.LESS), int(Op.LESS_EQUAL), int(Op.GREATER)
GREATER_EQUAL, EQUAL, NOT_EQUAL = int(Op.GREATER_EQUAL), int(Op.EQUAL), int(Op.NOT_EQUAL)
AND, OR, NOT = int(Op.AND), int(Op.OR), int(Op.NOT)
COLUMN, COLUMN_TEST, COLUMNS_TEST, COLUMN_IN = (
    int(Op.COLUMN),
    int(Op.COLUMN_TEST),
    int(Op.COLUMNS_TEST),
    int(Op.COLUMN_IN),
)
PROGRAM, LINEAR, PRODUCT, QUADRATIC = int(Shape.PROGRAM), int(Shape.LINEAR), int(Shape.PRODUCT), int(Shape.QUADRATIC)
EUCLIDEAN, MANHATTAN, LARGEST = int(Shape.EUCLIDEAN), int(Shape.MANHATTAN), int(Shape.LARGEST)

HUGE = float(np.finfo(np.float64).max)
FOUR_ULPS = 8.9e-16


class Programs(NamedTuple):
    """All programs, end to end. A program's instructions are code[first:last], its terms term_*[term_first:term_last],
    its constants begin at number_first and integer_first.

    shape i1[p], first i8[p], last i8[p], code i4[m, 4], numbers f8[c], integers i8[c],
    number_first i8[p], integer_first i8[p],
    term_first i8[p], term_last i8[p], term_row i4[t], term_weight f8[t], term_constant f8[t];
    kind i8[q], of queries: those of one kind differ in constants only, filters included; leader i8[kinds], one of each
    """

    shape: I1
    first: I8
    last: I8
    code: I4x2
    numbers: F8
    integers: I8
    number_first: I8
    integer_first: I8
    term_first: I8
    term_last: I8
    term_row: I4
    term_weight: F8
    term_constant: F8
    kind: I8
    leader: I8


@kernel
def score_block(
    programs: Any, p: int, numbers: Any, columns: Any, known: Any, start: int, count: int, stack: Any
) -> None:
    """Evaluate program p on rows start..start+count into stack[0, :count]; count is at most the stack's width.

    numbers f8[d, n], columns i8[c, n], known b1[c, n] (false for null), stack f8[depth, BLOCK], overwritten.
    """
    if programs.shape[p] == PROGRAM:
        interpret(programs, p, numbers, columns, known, start, count, stack)
    else:
        first, last = programs.term_first[p], programs.term_last[p]
        rows, weights, constants = programs.term_row, programs.term_weight, programs.term_constant
        score_shape(programs.shape[p], rows, weights, constants, first, last, numbers, start, count, stack[0])


@kernel
def score_shape(
    shape: int,
    rows: Any,
    weights: Any,
    constants: Any,
    first: int,
    last: int,
    numbers: Any,
    start: int,
    count: int,
    out: Any,
) -> None:
    """The direct loop of a known shape: the written order, one of terms first..last after the other."""
    for t in range(first, last):
        w = weights[t]
        c = constants[t]
        x = numbers[rows[t], start : start + count]
        begins = t == first
        if shape == LINEAR:
            if begins:
                for i in range(count):
                    out[i] = w * x[i]
            else:
                for i in range(count):
                    out[i] = out[i] + w * x[i]
        elif shape == PRODUCT:
            if begins:
                for i in range(count):
                    out[i] = c + x[i]
            else:
                for i in range(count):
                    out[i] = out[i] * (c + x[i])
        elif shape == QUADRATIC:
            if begins:
                for i in range(count):
                    out[i] = w * (x[i] * x[i])
            else:
                for i in range(count):
                    out[i] = out[i] + w * (x[i] * x[i])
        elif shape == EUCLIDEAN:
            if begins:
                for i in range(count):
                    out[i] = w * ((x[i] - c) * (x[i] - c))
            else:
                for i in range(count):
                    out[i] = out[i] + w * ((x[i] - c) * (x[i] - c))
        elif shape == MANHATTAN:
            if begins:
                for i in range(count):
                    out[i] = w * abs(x[i] - c)
            else:
                for i in range(count):
                    out[i] = out[i] + w * abs(x[i] - c)
        elif begins:
            for i in range(count):
                out[i] = w * abs(x[i] - c)
        else:
            for i in range(count):
                out[i] = larger(out[i], w * abs(x[i] - c))
    if shape == EUCLIDEAN:
        for i in range(count):
            out[i] = np.sqrt(out[i])


@kernel
def larger(a: float, b: float) -> float:
    """The larger one, or NaN if either is."""
    if a != a or b != b:
        return np.nan
    return a if a >= b else b


@kernel
def smaller(a: float, b: float) -> float:
    """The smaller one, or NaN if either is."""
    if a != a or b != b:
        return np.nan
    return a if a <= b else b


@kernel
def compare(a: Any, b: Any, comparison: int) -> bool:
    """IEEE comparison, except that a NaN is not unequal either."""
    if comparison == LESS:
        return a < b
    if comparison == LESS_EQUAL:
        return a <= b
    if comparison == GREATER:
        return a > b
    if comparison == GREATER_EQUAL:
        return a >= b
    if comparison == EQUAL:
        return a == b
    return a < b or a > b


@kernel
def interpret(
    programs: Any, p: int, numbers: Any, columns: Any, known: Any, start: int, count: int, stack: Any
) -> None:
    """Run a program's instructions over a block of rows; the result is stack[0, :count]."""
    top = -1
    for pc in range(programs.first[p], programs.last[p]):
        op = programs.code[pc, 0]
        a = programs.code[pc, 1]
        b = programs.code[pc, 2]
        c = programs.code[pc, 3]
        if op == ATTRIBUTE:
            top += 1
            x = numbers[a, start : start + count]
            z = stack[top]
            for i in range(count):
                z[i] = x[i]
        elif op == NUMBER:
            top += 1
            z = stack[top]
            value = programs.numbers[a]
            for i in range(count):
                z[i] = value
        elif op >= COLUMN:
            top += 1
            z = stack[top]
            for i in range(count):
                z[i] = read_column(programs.integers, op, a, b, c, columns, known, start + i)
        else:
            top = operate(op, count, stack, top)


@kernel
def operate(op: int, count: int, stack: Any, top: int) -> int:
    """Run an instruction that reads nothing but the stack; returns where its top is then."""
    if op == WHERE or op == CLIP:
        top -= 2
        ternary_block(op, count, stack[top], stack[top + 1], stack[top + 2])
    elif is_unary(op):
        unary_block(op, count, stack[top])
    else:
        top -= 1
        binary_block(op, count, stack[top], stack[top + 1])
    return top


@kernel
def is_unary(op: int) -> bool:
    return op == NEGATE or op == SQUARE or op == ABS or op == NOT or (SQRT <= op <= EXP)


@kernel
def unary_block(op: int, count: int, z: Any) -> None:
    if op == NEGATE:
        for i in range(count):
            z[i] = -z[i]
    elif op == SQUARE:
        for i in range(count):
            z[i] = z[i] * z[i]
    elif op == ABS:
        for i in range(count):
            z[i] = abs(z[i])
    elif op == SQRT:
        for i in range(count):
            z[i] = np.sqrt(z[i])
    elif op == LOG:
        for i in range(count):
            z[i] = np.log(z[i])
    elif op == LOG1P:
        for i in range(count):
            z[i] = np.log1p(z[i])
    elif op == EXP:
        for i in range(count):
            z[i] = np.exp(z[i])
    else:  # NOT
        for i in range(count):
            z[i] = 1.0 - z[i]


@kernel
def binary_block(op: int, count: int, x: Any, y: Any) -> None:
    """x = x op y."""
    if op == ADD:
        for i in range(count):
            x[i] = x[i] + y[i]
    elif op == SUBTRACT:
        for i in range(count):
            x[i] = x[i] - y[i]
    elif op == MULTIPLY:
        for i in range(count):
            x[i] = x[i] * y[i]
    elif op == DIVIDE:
        for i in range(count):
            x[i] = x[i] / y[i]
    elif op == POWER:
        for i in range(count):
            x[i] = x[i] ** y[i]
    elif op == MIN:
        for i in range(count):
            x[i] = smaller(x[i], y[i])
    elif op == MAX:
        for i in range(count):
            x[i] = larger(x[i], y[i])
    elif op == AND:
        for i in range(count):
            x[i] = x[i] * y[i]
    elif op == OR:
        for i in range(count):
            x[i] = max(x[i], y[i])
    else:
        for i in range(count):
            x[i] = 1.0 if compare(x[i], y[i], op) else 0.0


@kernel
def ternary_block(op: int, count: int, x: Any, y: Any, z: Any) -> None:
    """x = where(x, y, z) or clip(x, y, z)."""
    if op == WHERE:
        for i in range(count):
            x[i] = y[i] if x[i] != 0.0 else z[i]
    else:
        for i in range(count):
            x[i] = smaller(larger(x[i], y[i]), z[i])


@kernel
def read_column(integers: Any, op: int, a: int, b: int, c: int, columns: Any, known: Any, row: int) -> float:
    """What an instruction that reads columns directly gives for a row; a null passes no test."""
    value = columns[a, row]
    if op == COLUMN:
        return float(value) if known[a, row] else np.nan
    if not known[a, row]:
        return 0.0
    if op == COLUMN_TEST:
        return 1.0 if compare(value, integers[b], c) else 0.0
    if op == COLUMNS_TEST:
        return 1.0 if known[b, row] and compare(value, columns[b, row], c) else 0.0
    at = b + np.searchsorted(integers[b : b + c], value)
    return 1.0 if at < b + c and integers[at] == value else 0.0


@kernel
def score_all(programs: Any, p: int, numbers: Any, columns: Any, known: Any, stack: Any, out: Any) -> None:
    """Program p over all rows, into out f8[n]."""
    n = out.shape[0]
    for start in range(0, n, BLOCK):
        count = min(BLOCK, n - start)
        score_block(programs, p, numbers, columns, known, start, count, stack)
        for i in range(count):
            out[start + i] = stack[0, i]


# -- bounds over a box -----------------------------------------------------------------------------------------


@kernel
def lowered(x: float) -> float:
    """A little below x: a sound lower bound for a value of the C library that came out as x."""
    if x == np.inf:
        return HUGE
    if x == -np.inf:
        return x
    return x - abs(x) * FOUR_ULPS - 2e-323


@kernel
def raised(x: float) -> float:
    return -lowered(-x)


@kernel
def bound_box(programs: Any, p: int, box_low: Any, box_high: Any, low: Any, high: Any, nan: Any) -> None:
    """Bounds of program p over a box, into low[0], high[0], nan[0].

    box_low, box_high f8[d]; low, high f8[depth], nan b1[depth] are overwritten. Every value that is not NaN lies in
    [low, high]; nan tells whether some may be NaN. low > high: every value is NaN. Rows of the number matrix beyond the
    box, and columns, may hold anything. Conditions are bounded as 0 and 1.
    """
    top = -1
    for pc in range(programs.first[p], programs.last[p]):
        op = programs.code[pc, 0]
        a = programs.code[pc, 1]
        if op == ATTRIBUTE:
            top += 1
            inside = a < box_low.shape[0]
            low[top] = box_low[a] if inside else -np.inf
            high[top] = box_high[a] if inside else np.inf
            nan[top] = not inside
        elif op == NUMBER:
            top += 1
            low[top] = programs.numbers[a]
            high[top] = programs.numbers[a]
            nan[top] = False
        elif op == COLUMN:
            top += 1
            low[top] = -np.inf
            high[top] = np.inf
            nan[top] = True
        elif op > COLUMN:
            top += 1
            low[top] = 0.0
            high[top] = 1.0
            nan[top] = False
        elif op == WHERE:
            top -= 2
            bound_where(top, low, high, nan)
        elif op == CLIP:
            top -= 2
            bound_min_max(MAX, top, low, high, nan)
            low[top + 1], high[top + 1], nan[top + 1] = low[top + 2], high[top + 2], nan[top + 2]
            bound_min_max(MIN, top, low, high, nan)
        elif is_unary(op):
            bound_unary(op, top, low, high, nan)
        else:
            top -= 1
            bound_binary(op, top, low, high, nan)


@kernel
def bound_where(i: int, low: Any, high: Any, nan: Any) -> None:
    if low[i] > 0.0:  # always true
        low[i], high[i], nan[i] = low[i + 1], high[i + 1], nan[i + 1]
    elif high[i] <= 0.0:  # always false
        low[i], high[i], nan[i] = low[i + 2], high[i + 2], nan[i + 2]
    else:
        low[i] = min(low[i + 1], low[i + 2])
        high[i] = max(high[i + 1], high[i + 2])
        nan[i] = nan[i + 1] or nan[i + 2]


@kernel
def make_empty(i: int, low: Any, high: Any, nan: Any) -> None:
    low[i] = np.inf
    high[i] = -np.inf
    nan[i] = True


@kernel
def bound_unary(op: int, i: int, low: Any, high: Any, nan: Any) -> None:
    a, b = low[i], high[i]
    if op == NOT:
        low[i], high[i] = 1.0 - b, 1.0 - a
    elif a > b:
        return  # nothing but NaN stays so
    elif op == NEGATE:
        low[i], high[i] = -b, -a
    elif op == SQUARE or op == ABS:
        small, large = min(abs(a), abs(b)), max(abs(a), abs(b))
        if a <= 0.0 <= b:
            small = 0.0
        low[i] = small * small if op == SQUARE else small
        high[i] = large * large if op == SQUARE else large
    elif op == EXP:
        low[i], high[i] = max(0.0, lowered(np.exp(a))), raised(np.exp(b))
    else:
        edge = -1.0 if op == LOG1P else 0.0
        nan[i] = nan[i] or a < edge
        if b < edge:
            make_empty(i, low, high, nan)
            return
        a = max(a, edge)
        if op == SQRT:
            low[i], high[i] = np.sqrt(a), np.sqrt(b)
        elif op == LOG:
            low[i], high[i] = lowered(np.log(a)), raised(np.log(b))
        else:
            low[i], high[i] = lowered(np.log1p(a)), raised(np.log1p(b))


@kernel
def bound_binary(op: int, i: int, low: Any, high: Any, nan: Any) -> None:
    if op == ADD:
        bound_add(i, low, high, nan)
    elif op == SUBTRACT:
        low[i + 1], high[i + 1] = -high[i + 1], -low[i + 1]
        bound_add(i, low, high, nan)
    elif op == MULTIPLY or op == DIVIDE:
        bound_multiply_divide(op, i, low, high, nan)
    elif op == POWER:
        bound_power(i, low, high, nan)
    elif op == MIN or op == MAX:
        bound_min_max(op, i, low, high, nan)
    elif op == AND:
        low[i], high[i] = low[i] * low[i + 1], high[i] * high[i + 1]
    elif op == OR:
        low[i], high[i] = max(low[i], low[i + 1]), max(high[i], high[i + 1])
    else:
        bound_comparison(op, i, low, high, nan)


@kernel
def is_empty_pair(i: int, low: Any, high: Any) -> bool:
    return low[i] > high[i] or low[i + 1] > high[i + 1]


@kernel
def bound_add(i: int, low: Any, high: Any, nan: Any) -> None:
    if is_empty_pair(i, low, high):
        make_empty(i, low, high, nan)
        return
    j = i + 1
    opposite = (high[i] == np.inf and low[j] == -np.inf) or (low[i] == -np.inf and high[j] == np.inf)
    nan[i] = nan[i] or nan[j] or opposite
    a, b = low[i] + low[j], high[i] + high[j]
    low[i] = -np.inf if a != a else a
    high[i] = np.inf if b != b else b


@kernel
def bound_min_max(op: int, i: int, low: Any, high: Any, nan: Any) -> None:
    if is_empty_pair(i, low, high):
        make_empty(i, low, high, nan)
        return
    nan[i] = nan[i] or nan[i + 1]
    if op == MIN:
        low[i], high[i] = min(low[i], low[i + 1]), min(high[i], high[i + 1])
    else:
        low[i], high[i] = max(low[i], low[i + 1]), max(high[i], high[i + 1])


@kernel
def bound_multiply_divide(op: int, i: int, low: Any, high: Any, nan: Any) -> None:
    """From the four corners. 0 * inf and inf / inf are NaN there; what lies beside them is 0 or bounded by the rest."""
    if is_empty_pair(i, low, high):
        make_empty(i, low, high, nan)
        return
    j = i + 1
    if op == DIVIDE and low[j] <= 0.0 <= high[j]:
        low[i], high[i], nan[i] = -np.inf, np.inf, True
        return
    smallest, largest = np.inf, -np.inf
    undefined = False
    for x in (low[i], high[i]):
        for y in (low[j], high[j]):
            z = x * y if op == MULTIPLY else x / y
            if z != z:
                undefined = True
                z = 0.0
            smallest = min(smallest, z)
            largest = max(largest, z)
    if op == MULTIPLY:
        # A zero strictly inside one range meets an infinity at the other's end.
        zero_inside = (low[i] <= 0.0 <= high[i]) or (low[j] <= 0.0 <= high[j])
        endless = max(abs(low[i]), abs(high[i]), abs(low[j]), abs(high[j])) == np.inf
        undefined = undefined or (zero_inside and endless)
    low[i], high[i] = smallest, largest
    nan[i] = nan[i] or nan[j] or undefined


@kernel
def bound_power(i: int, low: Any, high: Any, nan: Any) -> None:
    j = i + 1
    a, b, m, n = low[i], high[i], low[j], high[j]
    # NaN ** 0 and 1 ** NaN are 1 in the C library: a NaN does not always survive here.
    one_from_nan = (nan[i] and m <= 0.0 <= n) or (nan[j] and a <= 1.0 <= b)
    nan[i] = nan[i] or nan[j]
    if a > b or m > n:
        make_empty(i, low, high, nan)
    elif a <= 0.0 <= b and m < 0.0:
        low[i], high[i] = -np.inf, np.inf  # a zero to a negative power is infinite, of either sign
        nan[i] = nan[i] or a < 0.0
    elif a >= 0.0:
        # Monotone in each operand while the other is fixed, so the extremes are corners.
        w, x, y, z = a**m, a**n, b**m, b**n
        low[i] = max(0.0, lowered(min(min(w, x), min(y, z))))
        high[i] = raised(max(max(w, x), max(y, z)))
    elif m == n and m == np.floor(m) and abs(m) < 2.0**53:
        bound_integer_power(i, m, low, high)
    else:
        low[i], high[i], nan[i] = -np.inf, np.inf, True
    if one_from_nan:
        low[i], high[i] = min(low[i], 1.0), max(high[i], 1.0)


@kernel
def bound_integer_power(i: int, m: float, low: Any, high: Any) -> None:
    """A base that reaches below zero, and is free of zero if the power is negative."""
    a, b = low[i], high[i]
    if m % 2.0 == 0.0:
        small, large = min(abs(a), abs(b)), max(abs(a), abs(b))
        if a <= 0.0 <= b:
            small = 0.0
        x, y = small**m, large**m
    else:
        x, y = a**m, b**m
    low[i], high[i] = lowered(min(x, y)), raised(max(x, y))


@kernel
def bound_comparison(op: int, i: int, low: Any, high: Any, nan: Any) -> None:
    """1 where the comparison always holds, 0 where it never does, [0, 1] in between. A NaN never holds."""
    j = i + 1
    a, b, m, n = low[i], high[i], low[j], high[j]
    if op == GREATER or op == GREATER_EQUAL:
        a, b, m, n = m, n, a, b
        op = LESS if op == GREATER else LESS_EQUAL
    if op == LESS:
        always, never = b < m, a >= n
    elif op == LESS_EQUAL:
        always, never = b <= m, a > n
    else:
        equal, apart = a == b and m == n and a == m, b < m or n < a
        always, never = (equal, apart) if op == EQUAL else (apart, equal)
    empty = is_empty_pair(i, low, high)
    low[i] = 1.0 if always and not (nan[i] or nan[j] or empty) else 0.0
    high[i] = 0.0 if never or empty else 1.0
    nan[i] = False
