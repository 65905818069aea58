"""Boxes of a grid: which cell a row lies in, and how good a score can get inside a box.

The grid is regular; its outermost cells reach to the extremes seen, so rows outside the domain lie in them. Above the
cells stands a pyramid that joins two boxes a level, along one axis after the other, up to a single box.

A bound is the score at the corner that is best for each term, computed in the written order. Every step of it rounds
monotonically, so the rounded bound is never below the rounded score of a row inside. Scores that are not sums,
products or maxima of terms over one attribute each are bounded by interval arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .frames import B1, F8, I8, F8x2, I8x2
from .kernel import kernel
from .score_kernels import EUCLIDEAN, LARGEST, LINEAR, PRODUCT, PROGRAM, QUADRATIC, bound_box

AXES_MAX = 7


class Boxes(NamedTuple):
    """The geometry. d axes over D number rows, levels 0 (cells) to S (one box).

    row_of i8[d], axis_of i8[D] (-1: no axis), origin, scale, last f8[d] (place of x: (x - origin) * scale, at most
    last), shift i8[S + 1, d] (a box at a level joins 2**shift cells of an axis), count i8[S + 1, d] (boxes along an
    axis), stride i8[S + 1, d], base i8[S + 2] (where a level's boxes begin), split i8[S + 1] (the axis along which a
    box is halved), low, high f8[d, INTERVALS_MAX] (edges of cells), least, most f8[D] (extremes of number rows),
    table_base i8[shifts] (where the boxes of a shift begin in an axis's part of a table), starts i8[S + 1, d] (where
    the boxes of a level begin in a table, for each axis), sector the level that stands for all below it.
    """

    row_of: I8
    axis_of: I8
    origin: F8
    scale: F8
    last: F8
    shift: I8x2
    count: I8x2
    stride: I8x2
    base: I8
    split: I8
    low: F8x2
    high: F8x2
    least: F8
    most: F8
    table_base: I8
    starts: I8x2
    sector: int


class Bounding(NamedTuple):
    """Scratch: table f8[t] for one query, box_low, box_high f8[D], low, high f8[depth], nan b1[depth]."""

    table: F8
    box_low: F8
    box_high: F8
    low: F8
    high: F8
    nan: B1


@kernel
def place_rows(numbers: Any, boxes: Any, start: int, cell: Any) -> int:
    """The cells of rows, into cell i4[n]; returns how many numbers lie beyond the extremes.

    numbers f8[D, m]; rows start.. are looked at.
    """
    cell[:] = 0
    beyond = 0
    for row in range(boxes.least.shape[0]):
        x = numbers[row, start : start + cell.shape[0]]
        beyond += place_column(boxes, row, x, x, cell)
    return beyond


@kernel
def place_column(boxes: Any, row: int, x: Any, copy: Any, cell: Any) -> int:
    """Copy the attribute x f8[n] of rows to where it is kept, and add to cell i4[n] how far along its axis they lie, if
    it has one; returns how many values lie beyond the extremes.

    Without an early exit, so that it is vectorized, and all in one loop: each value is read once (10,000 rows of four
    attributes: 36 us against 42 one loop after the other).
    """
    n = cell.shape[0]
    axis = boxes.axis_of[row]
    least, most = boxes.least[row], boxes.most[row]
    beyond = np.int32(0)
    if axis < 0:
        for i in range(n):
            copy[i] = x[i]
            beyond += np.int32((x[i] < least) | (x[i] > most))
        return np.int64(beyond)
    origin, scale, last = boxes.origin[axis], boxes.scale[axis], boxes.last[axis]
    stride = np.int32(boxes.stride[0, axis])
    for i in range(n):
        copy[i] = x[i]
        beyond += np.int32((x[i] < least) | (x[i] > most))
        place = (x[i] - origin) * scale
        place = 0.0 if place < 0.0 else place
        place = last if place > last else place
        cell[i] += np.int32(place) * stride
    return np.int64(beyond)


# -- boxes of the pyramid: level, and the place along each axis in eight bits ----------------------------------


@kernel
def key_of_cell(boxes: Any, cell: int) -> int:
    """The places of a cell along the axes, packed."""
    key = 0
    for axis in range(boxes.row_of.shape[0]):
        place = (cell // boxes.stride[0, axis]) % boxes.count[0, axis]
        key |= place << (8 * axis)
    return key


@kernel
def key_above(boxes: Any, key: int, level: int) -> int:
    """The box of a level that a cell lies in."""
    above = 0
    for axis in range(boxes.row_of.shape[0]):
        place = ((key >> (8 * axis)) & 255) >> boxes.shift[level, axis]
        above |= place << (8 * axis)
    return above


@kernel
def index_of(base: Any, stride: Any, level: int, key: int) -> int:
    """The number of a box among all boxes."""
    index = base[level]
    for axis in range(stride.shape[1]):
        index += ((key >> (8 * axis)) & 255) * stride[level, axis]
    return index


@kernel
def fill_box(boxes: Any, level: int, key: int, box_low: Any, box_high: Any) -> None:
    """The range of every number row inside a box."""
    for row in range(boxes.least.shape[0]):
        box_low[row] = boxes.least[row]
        box_high[row] = boxes.most[row]
    for axis in range(boxes.row_of.shape[0]):
        shift = boxes.shift[level, axis]
        first = ((key >> (8 * axis)) & 255) << shift
        last = min(first + (1 << shift), boxes.count[0, axis]) - 1
        box_low[boxes.row_of[axis]] = boxes.low[axis, first]
        box_high[boxes.row_of[axis]] = boxes.high[axis, last]


# -- bounds ----------------------------------------------------------------------------------------------------


@kernel
def best_term(shape: int, largest: bool, w: float, c: float, low: float, high: float) -> float:
    """The best value of a term over a range of its attribute: the largest, or the smallest."""
    if shape == PRODUCT:
        return c + high if largest else c + low
    if shape == LINEAR:
        a, b = w * low, w * high
    else:
        near, far = abs(low - c), abs(high - c)
        if near > far:
            near, far = far, near
        if low <= c <= high:
            near = 0.0
        if shape == QUADRATIC or shape == EUCLIDEAN:
            near, far = near * near, far * far
        a, b = w * near, w * far
    return max(a, b) if largest else min(a, b)


@kernel
def join_terms(shape: int, total: float, term: float) -> float:
    if shape == PRODUCT:
        return total * term
    if shape == LARGEST:
        return max(total, term)
    return total + term


@kernel
def merit_of_bound(shape: int, sign: float, total: float) -> float:
    if shape == EUCLIDEAN:
        total = np.sqrt(total) if total >= 0.0 else np.nan
    merit = sign * total
    return np.inf if merit != merit else merit  # infinities of both signs met: nothing is known


@kernel
def has_terms(programs: Any, p: int, least: Any) -> bool:
    """Whether best_term bounds a program. Factors below zero turn products around, and so do weights below zero under a
    square root or in a largest difference."""
    shape = programs.shape[p]
    if shape == PROGRAM:
        return False
    for t in range(programs.term_first[p], programs.term_last[p]):
        if shape == PRODUCT and not programs.term_constant[t] + least[programs.term_row[t]] >= 0.0:
            return False
        if shape == EUCLIDEAN and not programs.term_weight[t] >= 0.0:
            return False
    return True


@kernel
def bound_merit(programs: Any, p: int, sign: float, boxes: Any, scratch: Any) -> float:
    """The best merit inside the box that scratch.box_low and box_high hold; -inf if no row there has a score."""
    if not has_terms(programs, p, boxes.least):
        bound_box(programs, p, scratch.box_low, scratch.box_high, scratch.low, scratch.high, scratch.nan)
        if scratch.low[0] > scratch.high[0]:
            return -np.inf
        return scratch.high[0] if sign > 0.0 else -scratch.low[0]
    shape = programs.shape[p]
    total = 0.0
    first = programs.term_first[p]
    for t in range(first, programs.term_last[p]):
        row = programs.term_row[t]
        term = best_term(
            shape,
            sign > 0.0,
            programs.term_weight[t],
            programs.term_constant[t],
            scratch.box_low[row],
            scratch.box_high[row],
        )
        total = term if t == first else join_terms(shape, total, term)
    return merit_of_bound(shape, sign, total)


@kernel
def may_pass(programs: Any, f: int, scratch: Any) -> bool:
    """Whether some row of the box that scratch holds may pass filter f."""
    bound_box(programs, f, scratch.box_low, scratch.box_high, scratch.low, scratch.high, scratch.nan)
    return scratch.high[0] != 0.0


@kernel
def fill_table(programs: Any, p: int, sign: float, boxes: Any, table: Any) -> tuple[int, float, float]:
    """For each box along each axis the best that the terms on that axis can give, so that a bound is one step an axis.

    Returns the shape, what terms on other attributes add, and how far to widen bounds, because axes are joined in
    another order than terms are. Shape PROGRAM: there are no terms to tabulate, bounds need interval arithmetic.
    """
    shape, largest = programs.shape[p], sign > 0.0
    if not has_terms(programs, p, boxes.least):
        return PROGRAM, 0.0, 0.0
    nothing = nothing_of(shape)
    table[:] = nothing
    rest = nothing
    size = 0.0
    for t in range(programs.term_first[p], programs.term_last[p]):
        w, c, row = programs.term_weight[t], programs.term_constant[t], programs.term_row[t]
        axis = boxes.axis_of[row]
        if axis < 0:
            term = best_term(shape, largest, w, c, boxes.least[row], boxes.most[row])
            size += abs(term)
            rest = join_terms(shape, rest, term)
            continue
        cells = boxes.count[0, axis]
        most = 0.0
        for shift in range(boxes.shift[boxes.shift.shape[0] - 1, axis] + 1):
            begin = boxes.starts[0, axis] + boxes.table_base[shift]
            for place in range((cells + (1 << shift) - 1) >> shift):
                last = min((place + 1) << shift, cells) - 1
                term = best_term(shape, largest, w, c, boxes.low[axis, place << shift], boxes.high[axis, last])
                most = max(most, abs(term))
                table[begin + place] = join_terms(shape, table[begin + place], term)
        size += most
    return shape, rest, sign * 1e-13 * size


@kernel
def nothing_of(shape: int) -> float:
    """What joining begins with."""
    if shape == PRODUCT:
        return 1.0
    return -np.inf if shape == LARGEST else 0.0


@kernel
def bound_from_table(
    table: Any, starts: Any, level: int, key: int, shape: int, rest: float, wider: float, sign: float
) -> float:
    """The best merit inside a box, from the table of a program; takes what fill_table returned."""
    total = rest
    for axis in range(starts.shape[1]):
        term = table[starts[level, axis] + ((key >> (8 * axis)) & 255)]
        if shape == PRODUCT:
            total = total * term
        elif shape == LARGEST:
            total = max(total, term)
        else:
            total = total + term
    if shape == PRODUCT:
        total = total * (1.0 + sign * 1e-13)
    elif shape != LARGEST:
        total = total + wider
    if shape == EUCLIDEAN:
        total = np.sqrt(max(total, 0.0))
    merit = sign * total
    return np.inf if merit != merit else merit  # infinities of both signs met: nothing is known


@kernel
def bound_of_box(
    programs: Any, q: int, f: int, sign: float, boxes: Any, level: int, key: int, bound: float, scratch: Any
) -> float:
    """The best merit of query q inside a box, -inf if its filter f (-1: none) lets no row of it pass. `bound` is what
    the query's table says, NaN if it has none."""
    fill_box(boxes, level, key, scratch.box_low, scratch.box_high)
    if bound != bound:
        bound = bound_merit(programs, q, sign, boxes, scratch)
    if f >= 0 and not may_pass(programs, f, scratch):
        return -np.inf
    return bound
