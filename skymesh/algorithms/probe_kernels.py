"""A quick test of whether a row may reach the floors of queries: sums of products, for 64 queries in one go.

A probe is a column of weights over the *features* of a row (its attributes, and their squares where queries need those)
and a limit: a row whose sum stays below the limit is surely below the floor. Sums are taken in single precision and in
another order than the score, so the limit lies below the floor by more than rounding can differ. Linear, quadratic and
Euclidean scores have probes; the others pass all rows on. A test takes 0.05 ns where one query after the other took 6,
and the score itself 28 (four attributes, a thousand linear queries).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel
from .score_kernels import EUCLIDEAN, LINEAR, QUADRATIC
from .simd import LANES

# Rounding of sums of up to a hundred products in single precision, many times over.
SLACK = 2e-5
# Products between these bounds have no trouble with the range of single precision.
_LEAST, _MOST = 1e-30, 1e30


@kernel
def fill_features(numbers: Any, slot: int, height: int, x: Any) -> None:
    """The features of the row at a slot: numbers f8[D, c], of which the first `height` are attributes; x f4[height] or
    f4[2 * height]."""
    for row in range(height):
        x[row] = np.float32(numbers[row, slot])
    if x.shape[0] > height:
        for row in range(height):
            x[height + row] = np.float32(numbers[row, slot] * numbers[row, slot])


@kernel
def set_probe(reaching: Any, boxes: Any, q: int) -> None:
    """Make the probe of query q for its floor. Attributes lie between boxes.least and boxes.most."""
    probe = reaching.probe
    block, lane, width = q // LANES, q % LANES, probe.shape[1] - 1
    floor = reaching.floor[q]
    open_probe(probe, q)
    if not np.isfinite(floor):
        probe[block, width, lane] = floor if floor > 0.0 else -np.inf
        return
    programs, height = reaching.programs, boxes.least.shape[0]
    shape, sign = programs.shape[q], reaching.wanted[q].sign
    squares = shape == QUADRATIC or shape == EUCLIDEAN
    if shape != LINEAR and (not squares or width < 2 * height):
        return
    size = abs(floor)  # how large the numbers are that are added
    if shape == EUCLIDEAN:
        if sign * floor < 0.0 and sign > 0.0:
            return  # every distance reaches it
        floor = sign * floor * floor
        size = abs(floor)
    fits = True
    for t in range(programs.term_first[q], programs.term_last[q]):
        row, w, c = programs.term_row[t], programs.term_weight[t], programs.term_constant[t]
        most = max(abs(boxes.least[row]), abs(boxes.most[row]))
        fits = fits and fits_single(w, most)
        if shape == LINEAR:
            probe[block, row, lane] += np.float32(sign * w)
            size += abs(w) * most
            continue
        fits = fits and fits_single(w * most, most)
        probe[block, height + row, lane] += np.float32(sign * w)
        size += abs(w) * most * most
        if shape == EUCLIDEAN:
            fits = fits and w >= 0.0 and fits_single(2.0 * w * c, most)
            probe[block, row, lane] -= np.float32(sign * 2.0 * w * c)
            floor -= sign * w * c * c
            size += w * (2.0 * abs(c) * most + c * c)
    limit = floor - SLACK * size
    if fits and abs(limit) < _MOST:
        probe[block, width, lane] = np.float32(limit)
    else:
        open_probe(probe, q)


@kernel
def open_probe(probe: Any, q: int) -> None:
    """A probe that all rows pass."""
    width = probe.shape[1] - 1
    for feature in range(width):
        probe[q // LANES, feature, q % LANES] = 0.0
    probe[q // LANES, width, q % LANES] = -np.inf


@kernel
def fits_single(w: float, most: float) -> bool:
    """Whether the products of a weight with numbers up to `most` neither overflow in single precision nor vanish."""
    if w == 0.0 or most == 0.0:
        return abs(w) < _MOST and most < _MOST
    w = abs(w)
    return _LEAST < w < _MOST and _LEAST < most < _MOST and _LEAST < w * most < _MOST
