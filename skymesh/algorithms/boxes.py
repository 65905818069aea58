"""The geometry of a grid: how many intervals along which axis, and the pyramid of boxes above the cells.

Built from domains, declared or learned; the arithmetic on it is in `box_kernels`. Of a stream's attributes those make
axes that queries score by, at most seven; of the others only the extremes are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..queries.streams import INTERVALS_MAX
from .box_kernels import AXES_MAX, Bounding, Boxes
from .columns import Floats, Ints

# A cell this full is searched in the time that finding the next one takes. Smaller ones turn more arrivals away, while
# there are so few that all stay in the cache (200 expressions over 100,000 rows: half the tests).
ROWS_PER_CELL = 48
ROWS_PER_SMALL_CELL = 12
SMALL_CELLS_MAX = 2**13
CELLS_MAX = 2**17
SECTORS_MAX = 256


class Axis(NamedTuple):
    """An attribute's domain, and how many intervals it has (None: chosen from the number of rows)."""

    low: float
    high: float
    intervals: int | None = None


def intervals_for(axes: Sequence[Axis], row_count: int) -> list[int]:
    """How many intervals each axis gets, so that a cell holds so many rows spread evenly."""
    free = [i for i, axis in enumerate(axes) if axis.intervals is None and axis.high > axis.low]
    counts = [min(axis.intervals or 1, INTERVALS_MAX) if axis.high > axis.low else 1 for axis in axes]
    small = min(row_count // ROWS_PER_SMALL_CELL, SMALL_CELLS_MAX)
    cells = min(max(row_count // ROWS_PER_CELL, small, 1), CELLS_MAX) / float(np.prod(counts, dtype=np.float64))
    if free and cells > 1.0:
        each = int(np.clip(round(cells ** (1.0 / len(free))), 1, INTERVALS_MAX))
        for i in free:
            counts[i] = each
    while np.prod(counts, dtype=np.float64) > CELLS_MAX:
        widest = int(np.argmax(counts))
        counts[widest] = max(1, counts[widest] // 2)
    return counts


def build(
    axes: Sequence[Axis], rows: Sequence[int], counts: Sequence[int], least: Floats, most: Floats
) -> tuple[Boxes, Bounding]:
    """Boxes over the axes of some number rows, with counts[i] intervals along axis i; and scratch for bounds.

    least, most f8[D] are the extremes of all attributes seen so far.
    """
    depth = _depths(counts)
    levels = len(depth)
    shift = np.array(depth, np.int64).reshape(levels, len(counts))
    count = -(-np.array(counts, np.int64).reshape(1, -1) // (1 << shift))
    sizes = count.prod(axis=1)
    stride = np.ones_like(count)
    if len(counts):
        stride[:, 1:] = np.cumprod(count[:, :-1], axis=1)
    split = np.array([-1] + [int(np.argmax(shift[s] > shift[s - 1])) for s in range(1, levels)], np.int64)
    axis_of = np.full(len(least), -1, np.int64)
    axis_of[list(rows)] = np.arange(len(rows))
    low, high = np.zeros((len(counts), INTERVALS_MAX)), np.zeros((len(counts), INTERVALS_MAX))
    widths = np.array([axis.high - axis.low for axis in axes], np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        scale = np.where(widths > 0.0, np.array(counts, np.float64) / widths, 0.0)
    scale[~np.isfinite(scale)] = 0.0
    shifts = int(shift.max(initial=0)) + 1
    table_base = np.concatenate(([0], np.cumsum([-(-INTERVALS_MAX >> s) for s in range(shifts - 1)]))).astype(np.int64)
    boxes = Boxes(
        row_of=np.array(rows, np.int64),
        axis_of=axis_of,
        origin=np.array([axis.low for axis in axes], np.float64),
        scale=scale,
        last=np.array(counts, np.float64) - 1.0,
        shift=shift,
        count=count,
        stride=stride,
        base=np.concatenate(([0], np.cumsum(sizes))),
        split=split,
        low=low,
        high=high,
        least=least,
        most=most,
        table_base=table_base,
        starts=np.arange(len(counts)) * (int(table_base[-1]) + INTERVALS_MAX) + table_base[shift],
        sector=int(np.argmax(sizes <= SECTORS_MAX)),
    )
    fill_edges(boxes)
    return boxes, _scratch_for(boxes)


def fill_edges(boxes: Boxes) -> None:
    """The range of each cell along each axis, the outermost reaching to the extremes.

    The edge of a cell is where rounding puts a value into the next one, which can be an ulp beside origin + i / scale.
    So each edge is taken some ulps out; a bound that is a little too wide does no harm.
    """
    for axis, row in enumerate(boxes.row_of):
        cells = int(boxes.count[0, axis])
        least, most = boxes.least[row], boxes.most[row]
        if boxes.scale[axis] == 0.0:
            boxes.low[axis, :cells], boxes.high[axis, :cells] = least, most
            continue
        edges = boxes.origin[axis] + np.arange(cells + 1) / boxes.scale[axis]
        slack = 8.0 * np.spacing(np.maximum(np.abs(edges), abs(boxes.origin[axis])))
        boxes.low[axis, :cells] = edges[:-1] - slack[:-1]
        boxes.high[axis, :cells] = edges[1:] + slack[1:]
        boxes.low[axis, 0] = min(least, boxes.low[axis, 0])
        boxes.high[axis, cells - 1] = max(most, boxes.high[axis, cells - 1])


def widen(boxes: Boxes, low: Floats, high: Floats) -> None:
    """Reach to rows that lie beyond the extremes, and as far again as they lie outside the domain: values that drift
    would otherwise move the edges with every batch."""
    for row in range(len(boxes.least)):
        axis = int(boxes.axis_of[row])
        inner_low, inner_high = boxes.least[row], boxes.most[row]
        if axis >= 0 and boxes.scale[axis] > 0.0:
            inner_low = boxes.origin[axis]
            inner_high = boxes.origin[axis] + boxes.count[0, axis] / boxes.scale[axis]
        with np.errstate(over="ignore", invalid="ignore"):
            if low[row] < boxes.least[row]:
                far = low[row] - (min(inner_low, inner_high) - low[row])
                boxes.least[row] = far if np.isfinite(far) else low[row]
            if high[row] > boxes.most[row]:
                far = high[row] + (high[row] - max(inner_low, inner_high))
                boxes.most[row] = far if np.isfinite(far) else high[row]
    fill_edges(boxes)


def _depths(counts: Sequence[int]) -> list[list[int]]:
    """The shifts of every level: each level joins two boxes along the axis that has most."""
    shift = [0] * len(counts)
    levels = [list(shift)]
    while True:
        left = [-(-n >> s) for n, s in zip(counts, shift, strict=True)]
        if not left or max(left) == 1:
            return levels
        shift[int(np.argmax(left))] += 1
        levels.append(list(shift))


def _scratch_for(boxes: Boxes) -> Bounding:
    places = int(boxes.table_base[-1]) + INTERVALS_MAX
    height = len(boxes.least)
    return Bounding(
        table=np.empty(max(1, len(boxes.row_of)) * places),
        box_low=np.empty(height),
        box_high=np.empty(height),
        low=np.empty(4),
        high=np.empty(4),
        nan=np.empty(4, np.bool_),
    )


def scratch_with(scratch: Bounding, depth: int) -> Bounding:
    """The same with room for programs that need a stack that deep."""
    if depth <= len(scratch.low):
        return scratch
    return scratch._replace(low=np.empty(depth), high=np.empty(depth), nan=np.empty(depth, np.bool_))


def axes_of(domains: Sequence[Axis | None], used: Ints) -> tuple[list[Axis], list[int]]:
    """The axes to build on: attributes with a known domain that scores use most, in the order of the stream."""
    ranked = sorted((row for row, axis in enumerate(domains) if axis is not None), key=lambda row: (-used[row], row))
    rows = sorted(row for row in ranked[:AXES_MAX] if used[row] > 0)
    return [axis for row in rows if (axis := domains[row]) is not None], rows
