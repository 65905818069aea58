"""Scores of pairs, each of a row and a query, for queries of one kind: those that differ in constants only.

Of a thousand arrivals a query often has one that may matter to it, and then a block of its rows is a block of one. So
here an instruction runs once for 512 pairs, and what it reads is gathered: from each pair's row, and from the constants
of each pair's query. The steps are those of the block kernels, so the bits are the same (200 expressions that meet
1,900 of 200,000 pairs: arrivals are tested in 32 us, and in 69 query by query).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel
from .score_kernels import (
    ATTRIBUTE,
    COLUMN,
    COLUMN_IN,
    COLUMN_TEST,
    EUCLIDEAN,
    LARGEST,
    LINEAR,
    NUMBER,
    PRODUCT,
    PROGRAM,
    QUADRATIC,
    larger,
    operate,
    read_column,
)


@kernel
def score_pairs(programs: Any, which: Any, place: Any, numbers: Any, columns: Any, known: Any, stack: Any) -> None:
    """The values of programs, into stack[0, :n]; which i4[n] (programs of one kind), place i4[n] (the row of each).

    numbers f8[d, m], columns i8[c, m], known b1[c, m] (false for null), stack f8[depth, >= n], overwritten.
    """
    if programs.shape[which[0]] == PROGRAM:
        interpret_pairs(programs, which, place, numbers, columns, known, stack)
    else:
        score_terms_of_pairs(programs, which, place, numbers, stack[0], stack[1])


@kernel
def interpret_pairs(programs: Any, which: Any, place: Any, numbers: Any, columns: Any, known: Any, stack: Any) -> None:
    """Run the instructions that the programs share."""
    count = which.shape[0]
    leader = which[0]
    number_first, integer_first = programs.number_first, programs.integer_first
    top = -1
    for pc in range(programs.first[leader], programs.last[leader]):
        op, a, b, c = programs.code[pc, 0], programs.code[pc, 1], programs.code[pc, 2], programs.code[pc, 3]
        if op == ATTRIBUTE:
            top += 1
            x, z = numbers[a], stack[top]
            for i in range(count):
                z[i] = x[np.uint32(place[i])]
        elif op == NUMBER:
            top += 1
            z = stack[top]
            constant = a - number_first[leader]
            for i in range(count):
                z[i] = programs.numbers[number_first[which[i]] + constant]
        elif op >= COLUMN:
            top += 1
            z = stack[top]
            has_constants = op == COLUMN_TEST or op == COLUMN_IN
            for i in range(count):
                at = b + integer_first[which[i]] - integer_first[leader] if has_constants else b
                z[i] = read_column(programs.integers, op, a, at, c, columns, known, place[i])
        else:
            top = operate(op, count, stack, top)


@kernel
def score_terms_of_pairs(programs: Any, which: Any, place: Any, numbers: Any, out: Any, term: Any) -> None:
    """The direct loop of a known shape, one term after the other; out, term f8[>= n]."""
    count = which.shape[0]
    leader = which[0]
    shape, first = programs.shape[leader], programs.term_first
    for t in range(programs.term_last[leader] - first[leader]):
        x = numbers[programs.term_row[first[leader] + t]]
        z = out if t == 0 else term
        fill_terms(shape, x, place, programs.term_weight[t:], programs.term_constant[t:], first, which, z)
        if t > 0:
            join_blocks(shape, count, out, term)
    if shape == EUCLIDEAN:
        for i in range(count):
            out[i] = np.sqrt(out[i])


@kernel
def fill_terms(shape: int, x: Any, place: Any, weights: Any, constants: Any, first: Any, which: Any, z: Any) -> None:
    """One term of each pair into z f8[>= n]: weights and constants at first[which], x at its place."""
    for i in range(which.shape[0]):
        value, w, c = x[np.uint32(place[i])], weights[first[which[i]]], constants[first[which[i]]]
        if shape == LINEAR:
            z[i] = w * value
        elif shape == PRODUCT:
            z[i] = c + value
        elif shape == QUADRATIC:
            z[i] = w * (value * value)
        elif shape == EUCLIDEAN:
            z[i] = w * ((value - c) * (value - c))
        else:
            z[i] = w * abs(value - c)


@kernel
def join_blocks(shape: int, count: int, total: Any, term: Any) -> None:
    for i in range(count):
        if shape == PRODUCT:
            total[i] = total[i] * term[i]
        elif shape == LARGEST:
            total[i] = larger(total[i], term[i])
        else:
            total[i] = total[i] + term[i]
