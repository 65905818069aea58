"""A quick test of whether a row may reach the floors of queries: sums of products, for 64 queries in one go.

A probe is a column of weights over the *features* of a row (its attributes, and their squares where queries need those)
and a limit: a row whose sum stays below the limit is surely below the floor. Sums are taken in single precision and in
another order than the score, so the limit lies below the floor by more than rounding can differ, and not by much more:
a hundred times that let half as many rows again pass at 400 nearest-neighbour queries. Linear, quadratic and Euclidean
scores have probes; the others pass all rows on. A test takes 0.05 ns where one query after the other took 6,
and the score itself 28 (four attributes, a thousand linear queries).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel
from .score_kernels import EUCLIDEAN, LINEAR, PROGRAM, QUADRATIC
from .simd import LANES

# Twice what single precision rounds by.
ROUNDING = 2.0**-23
# Products between these bounds have no trouble with the range of single precision.
_LEAST, _MOST = 1e-30, 1e30


@kernel
def set_probe(reaching: Any, boxes: Any, q: int, x: Any) -> None:
    """Make the probe of query q for its floor; x f4[p] is scratch."""
    probe, sign = reaching.probe, reaching.wanted[q].sign
    block, lane, width = q // LANES, q % LANES, probe.shape[1] - 1
    shape, offset, slack = weigh(reaching.programs, q, sign, boxes, x)
    reaching.probed[block] |= shape != PROGRAM
    for feature in range(width):
        probe[block, feature, lane] = x[feature]
    probe[block, width, lane] = limit_of(reaching.floor[q], shape, sign, offset, slack)


@kernel
def weigh(programs: Any, q: int, sign: float, boxes: Any, x: Any) -> tuple[int, float, float]:
    """The weights of a query's features, into x f4[p]; returns what `limit_of` takes. Attributes lie between
    boxes.least and boxes.most."""
    height, width = boxes.least.shape[0], x.shape[0]
    shape = programs.shape[q]
    x[:] = 0.0
    squares = shape == QUADRATIC or shape == EUCLIDEAN
    if shape != LINEAR and (not squares or width < 2 * height):
        return PROGRAM, 0.0, 0.0
    offset = 0.0  # what the sum lacks to be the score
    size = 0.0  # how large the numbers are that are added
    fits = True
    for t in range(programs.term_first[q], programs.term_last[q]):
        row, w, c = programs.term_row[t], programs.term_weight[t], programs.term_constant[t]
        most = max(abs(boxes.least[row]), abs(boxes.most[row]))
        fits = fits and fits_single(w, most)
        if shape == LINEAR:
            x[row] += np.float32(sign * w)
            size += abs(w) * most
            continue
        fits = fits and fits_single(w * most, most)
        x[height + row] += np.float32(sign * w)
        size += abs(w) * most * most
        if shape == EUCLIDEAN:
            fits = fits and w >= 0.0 and fits_single(2.0 * w * c, most)
            x[row] -= np.float32(sign * 2.0 * w * c)
            offset += sign * w * c * c
            size += w * (2.0 * abs(c) * most + c * c)
    if not fits:
        x[:] = 0.0
        return PROGRAM, 0.0, 0.0
    # The weights are rounded as they are added, the features once, each sum and the limit again.
    roundings = programs.term_last[q] - programs.term_first[q] + width + 2
    return shape, offset, ROUNDING * roundings * size


@kernel
def limit_of(floor: float, shape: int, sign: float, offset: float, slack: float) -> Any:
    """What sums of rows reach whose merit is not below a floor; takes what `weigh` returned."""
    if not np.isfinite(floor):
        return np.float32(floor) if floor > 0.0 else np.float32(-np.inf)
    if shape == PROGRAM:
        return np.float32(-np.inf)
    if shape == EUCLIDEAN:
        if sign > 0.0 and floor < 0.0:
            return np.float32(-np.inf)  # every distance reaches it
        floor = sign * floor * floor
    limit = floor - offset - ROUNDING * abs(floor) - slack
    return np.float32(limit) if abs(limit) < _MOST else np.float32(-np.inf)


@kernel
def fits_single(w: float, most: float) -> bool:
    """Whether the products of a weight with numbers up to `most` neither overflow in single precision nor vanish."""
    if w == 0.0 or most == 0.0:
        return abs(w) < _MOST and most < _MOST
    w = abs(w)
    return _LEAST < w < _MOST and _LEAST < most < _MOST and _LEAST < w * most < _MOST
