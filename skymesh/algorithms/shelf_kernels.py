"""The shelf: rows of hot cells side by side, so that a search tests 64 of them in one go.

Walking back from row to row costs a cache miss each, and cells that were searched once are searched again. A cell that
is searched is therefore put on the shelf, and when it is searched again the rows that came since are added, so that an
arrival costs nothing here. Rows stand oldest first. Their features are kept in single precision for the probe, and
their numbers row by row, because few of them are scored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel
from .simd import LANES


@kernel
def shelve(ring: Any, cells: Any, shelf: Any, h: int, first: int, attributes: int) -> bool:
    """See that the rows of a hot cell from number `first` on are on the shelf. False if that is full."""
    record = cells.hot[h]
    newest = cells.home[record.cell].newest
    stop = first
    alive = 0
    if record.filled:
        drop_front(shelf, record, first)
        alive = record.count - record.front
        stop = max(first, record.newest + 1)
    more = 0
    number = newest
    while number >= stop:
        more += 1
        number -= np.int64(ring.back[number & ring.mask])
    if more == 0 and record.filled:
        return True
    if not record.filled or record.count + more > LANES * record.blocks:
        blocks = (alive + more + ((alive + more) >> 2) + LANES - 1) // LANES
        if record.filled and blocks <= record.blocks:
            move_rows(shelf, record, record.block, shelf)
        else:
            if shelf.fill[0] + blocks > shelf.lanes.shape[0]:
                shelf.fill[1] = blocks
                return False
            if record.filled:
                move_rows(shelf, record, shelf.fill[0], shelf)
            else:
                record.front = record.count = 0
            record.block = shelf.fill[0]
            record.blocks = blocks
            record.filled = 1
            shelf.fill[0] += blocks
    record.count += more
    place = LANES * record.block + record.count
    number = newest
    while number >= stop:
        place -= 1
        put_row(ring, shelf, place, number, attributes)
        number -= np.int64(ring.back[number & ring.mask])
    record.oldest = shelf.numbers[LANES * record.block + record.front]
    record.newest = newest
    return True


@kernel
def drop_front(shelf: Any, record: Any, first: int) -> None:
    """Leave out rows before number `first`."""
    begin = LANES * record.block
    while record.front < record.count and shelf.numbers[begin + record.front] < first:
        record.front += 1
    if record.front < record.count:
        record.oldest = shelf.numbers[begin + record.front]


@kernel
def put_row(ring: Any, shelf: Any, place: int, number: int, attributes: int) -> None:
    """Copy a row of the ring to a place of the shelf."""
    slot, block, lane = number & ring.mask, place // LANES, place % LANES
    shelf.numbers[place] = number
    for row in range(ring.numbers.shape[0]):
        shelf.values[place, row] = ring.numbers[row, slot]
    for row in range(attributes):
        shelf.lanes[block, row, lane] = np.float32(ring.numbers[row, slot])
    if shelf.lanes.shape[1] > attributes:
        for row in range(attributes):
            x = ring.numbers[row, slot]
            shelf.lanes[block, attributes + row, lane] = np.float32(x * x)


@kernel
def move_rows(shelf: Any, record: Any, block: int, target: Any) -> None:
    """Move the rows of a cell to the front of another block, or of its own."""
    source, place = LANES * record.block + record.front, LANES * block
    for _ in range(record.front, record.count):
        target.numbers[place] = shelf.numbers[source]
        for row in range(shelf.values.shape[1]):
            target.values[place, row] = shelf.values[source, row]
        for row in range(shelf.lanes.shape[1]):
            lane = shelf.lanes[source // LANES, row, source % LANES]
            target.lanes[place // LANES, row, place % LANES] = lane
        source += 1
        place += 1
    record.count -= record.front
    record.front = 0


@kernel
def tidy(cells: Any, shelf: Any, first: int, target: Any) -> None:
    """Move filled cells to a new shelf, end to end, without rows before number `first`, with room to grow."""
    used = 0
    for h in range(cells.fill[0]):
        record = cells.hot[h]
        if not record.filled:
            continue
        drop_front(shelf, record, first)
        alive = record.count - record.front
        if alive == 0:
            record.filled = 0
            continue
        move_rows(shelf, record, used, target)
        record.block = used
        record.blocks = (alive + (alive >> 2) + LANES - 1) // LANES
        used += record.blocks
    target.fill[0] = used
