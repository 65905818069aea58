"""Search a grid for the best rows, and keep for each cell the queries that reach it.

Best-first over the pyramid: a box is opened only while its bound is not below the `want`-th best row found, so what is
looked at are the cells that the answer lies in, and boxes without rows are never opened. Equal bounds are opened too,
because among equal scores the newer row ranks first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .asked import PerId
from .box_kernels import bound_from_table, bound_of_box, fill_table, index_of, key_of_cell
from .columns import NEVER
from .grid_kernels import (
    DONE,
    HEAP_FULL,
    HOT_FULL,
    OUT_FULL,
    SHELF_FULL,
    UNREACHED,
    can_heat,
    clear_bit,
    end_of,
    first_beyond,
    has_bit,
    heat,
    open_grid,
    passes,
    score_terms,
    set_bit,
    take_back,
)
from .kernel import inlined, kernel, trailing_zeros
from .probe_kernels import limit_of, set_probe, weigh
from .score_kernels import PROGRAM, score_block
from .shelf_kernels import shelve
from .simd import LANES, reaches_one

LATEST = int(PerId.LATEST)
_LEVEL_SHIFT = 56
_KEY_MASK = (1 << 56) - 1


class Asks(NamedTuple):
    """The columns of Spans, with slot i8[s], the query of each ranking."""

    slot: Any
    ranking: Any
    want: Any
    after: Any
    upto: Any
    shared_after: Any
    shared_upto: Any


# -- heaps -----------------------------------------------------------------------------------------------------


@kernel
def push_box(opened: Any, size: int, bound: float, box: int) -> None:
    """Add to the heap of boxes, which holds `size`; the best bound comes first."""
    i = size
    while i > 0 and opened.bound[(i - 1) >> 1] < bound:
        opened.bound[i] = opened.bound[(i - 1) >> 1]
        opened.box[i] = opened.box[(i - 1) >> 1]
        i = (i - 1) >> 1
    opened.bound[i] = bound
    opened.box[i] = box


@kernel
def drop_first_box(opened: Any, size: int) -> None:
    """Take the first out of the heap of boxes, which holds `size`."""
    last = size - 1
    bound, box = opened.bound[last], opened.box[last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            break
        if child + 1 < last and opened.bound[child + 1] > opened.bound[child]:
            child += 1
        if opened.bound[child] <= bound:
            break
        opened.bound[i] = opened.bound[child]
        opened.box[i] = opened.box[child]
        i = child
    opened.bound[i] = bound
    opened.box[i] = box


@kernel
def is_worse(merit: float, number: int, other_merit: float, other_number: int) -> bool:
    return merit < other_merit or (merit == other_merit and number < other_number)


@kernel
def add_best(opened: Any, held: int, merit: float, number: int) -> None:
    """Put a row into the heap of the best, which holds `held`; the worst comes first."""
    i = held
    while i > 0:
        above = (i - 1) >> 1
        if not is_worse(merit, number, opened.best_merit[above], opened.best_number[above]):
            break
        opened.best_merit[i] = opened.best_merit[above]
        opened.best_number[i] = opened.best_number[above]
        i = above
    opened.best_merit[i] = merit
    opened.best_number[i] = number


@kernel
def replace_worst(opened: Any, held: int, merit: float, number: int) -> None:
    """Put a row in place of the worst of the best."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= held:
            break
        if child + 1 < held and is_worse(
            opened.best_merit[child + 1],
            opened.best_number[child + 1],
            opened.best_merit[child],
            opened.best_number[child],
        ):
            child += 1
        if is_worse(merit, number, opened.best_merit[child], opened.best_number[child]):
            break
        opened.best_merit[i] = opened.best_merit[child]
        opened.best_number[i] = opened.best_number[child]
        i = child
    opened.best_merit[i] = merit
    opened.best_number[i] = number


# -- search ----------------------------------------------------------------------------------------------------


@kernel
def search(frame: Any, asks: Any, first: int, end: int, cursor: Any) -> int:
    """Answer asks from rows first..end; frame: GridArrays. cursor i8[3]: the ask at hand, how many rows were found, how
    many cells were looked at. Comes back for room; call again to go on."""
    ring, boxes, cells, shelf, reaching, scratch, pairs, opened, out = open_grid(frame)
    for a in range(cursor[0], asks.slot.shape[0]):
        cursor[0] = a
        fill = cursor[1]
        status, filled = search_one(
            reaching, boxes, cells, shelf, ring, scratch, pairs, asks, a, first, end, opened, out, fill, cursor
        )
        if status != DONE:
            return status
        cursor[1] = filled
    cursor[0] = asks.slot.shape[0]
    return DONE


@kernel
def search_one(
    reaching: Any,
    boxes: Any,
    cells: Any,
    shelf: Any,
    ring: Any,
    scratch: Any,
    pairs: Any,
    asks: Any,
    a: int,
    first: int,
    end: int,
    opened: Any,
    out: Any,
    fill: int,
    cursor: Any,
) -> tuple[int, int]:
    q, want = asks.slot[a], asks.want[a]
    query = reaching.wanted[q]
    low = first_beyond(ring, first, end, max(asks.after[a], query.after))
    high = first_beyond(ring, low, end, min(asks.upto[a], query.until))
    shared_low = first_beyond(ring, low, high, asks.shared_after[a])
    shared_high = first_beyond(ring, low, high, asks.shared_upto[a])
    if low == high:
        return DONE, fill
    f, sign = reaching.filter_of[q], query.sign
    shape, rest, wider = fill_table(reaching.programs, q, sign, boxes, scratch.table)
    table, starts, base, stride = scratch.table, boxes.starts, boxes.base, boxes.stride
    probed = weigh(reaching.programs, q, sign, boxes, pairs.x)
    level = boxes.base.shape[0] - 2
    key = 0
    bound = np.inf
    size = 0
    held = 0
    begin = fill
    while True:
        # Open boxes downwards, always on into the better half.
        while level > 0:
            if size + 2 > opened.bound.shape[0]:
                return HEAP_FULL, begin
            axis = boxes.split[level]
            place = ((key >> (8 * axis)) & 255) << 1
            bare = key & ~(255 << (8 * axis))
            level -= 1
            bound = -np.inf
            least = opened.best_merit[0] if held == want else -np.inf
            for half in range(2):
                if place + half >= boxes.count[level, axis]:
                    continue
                child = bare | ((place + half) << (8 * axis))
                if cells.active[index_of(base, stride, level, child)] == 0:
                    continue
                reached = np.nan
                if shape != PROGRAM:
                    reached = bound_from_table(table, starts, level, child, shape, rest, wider, sign)
                    if reached < least:
                        continue
                if f >= 0 or shape == PROGRAM:
                    reached = bound_of_box(reaching.programs, q, f, sign, boxes, level, child, reached, scratch)
                if reached == -np.inf or reached < least:
                    continue
                if bound == -np.inf:
                    bound, key = reached, child
                elif reached > bound:
                    push_box(opened, size, bound, (level << _LEVEL_SHIFT) | key)
                    size += 1
                    bound, key = reached, child
                else:
                    push_box(opened, size, reached, (level << _LEVEL_SHIFT) | child)
                    size += 1
            if bound == -np.inf:
                break
            if size > 0 and opened.bound[0] > bound:
                push_box(opened, size, bound, (level << _LEVEL_SHIFT) | key)
                size += 1
                bound, level, key = opened.bound[0], opened.box[0] >> _LEVEL_SHIFT, opened.box[0] & _KEY_MASK
                drop_first_box(opened, size)
                size -= 1
        if bound != -np.inf and not (held == want and bound < opened.best_merit[0]):
            cell = index_of(base, stride, 0, key)
            status = make_ready(ring, cells, shelf, cell, first, pairs.attributes)
            if status != DONE:
                return status, begin
            cursor[2] += 1
            h = cells.home[cell].state
            if h >= 0:
                if fill + cells.hot[h].count > out.number.shape[0]:
                    return OUT_FULL, begin
                fill, held = look_through(
                    reaching,
                    cells,
                    shelf,
                    ring,
                    pairs,
                    probed,
                    asks,
                    a,
                    h,
                    low,
                    high,
                    shared_low,
                    shared_high,
                    opened,
                    held,
                    out,
                    fill,
                )
        if size == 0:
            break
        bound, level, key = opened.bound[0], opened.box[0] >> _LEVEL_SHIFT, opened.box[0] & _KEY_MASK
        if held == want and bound < opened.best_merit[0]:
            break
        drop_first_box(opened, size)
        size -= 1
    if held == want:
        fill = keep_best(out, begin, fill, opened.best_merit[0], opened.best_number[0])
    return DONE, fill


@inlined
def make_ready(ring: Any, cells: Any, shelf: Any, cell: int, first: int, attributes: int) -> int:
    """See that the rows of a cell lie side by side, if it has any."""
    if cells.home[cell].newest < first:
        return DONE
    if cells.home[cell].state == UNREACHED:
        if not can_heat(cells):
            return HOT_FULL
        heat(cells, cell)
    h = cells.home[cell].state
    if h >= 0 and not shelve(ring, cells, shelf, h, first, attributes):
        return SHELF_FULL
    return DONE


@inlined
def look_through(
    reaching: Any,
    cells: Any,
    shelf: Any,
    ring: Any,
    pairs: Any,
    probed: Any,
    asks: Any,
    a: int,
    h: int,
    low: int,
    high: int,
    shared_low: int,
    shared_high: int,
    opened: Any,
    held: int,
    out: Any,
    fill: int,
) -> tuple[int, int]:
    """The rows of a hot cell that may be among the best: found ones into out, which has room, the shared ones into the
    heap as well. The probe's weights are in pairs.x; probed is what `weigh` returned. Returns how many are in out, and
    how many are in the heap."""
    q, want = asks.slot[a], asks.want[a]
    query = reaching.wanted[q]
    record = cells.hot[h]
    sign, bound = query.sign, query.bound
    judged = query.since > 0 or reaching.filter_of[q] >= 0
    linked = ring.newer.shape[0] > 0
    programs, scores, chosen = reaching.programs, pairs.scores, pairs.chosen
    shape, begins, ends = programs.shape[q], programs.term_first[q], programs.term_last[q]
    base = LANES * record.block
    for block in range(record.front // LANES, (record.count + LANES - 1) // LANES):
        least = opened.best_merit[0] if held == want else -np.inf
        limit = limit_of(least, probed[0], sign, probed[1], probed[2])
        word = reaches_one(shelf.lanes, record.block + block, pairs.x, limit)
        word &= lanes_between(record.front - LANES * block, record.count - LANES * block)
        count = 0
        while word != np.uint64(0):
            chosen[count] = base + LANES * block + trailing_zeros(word)
            count += low <= shelf.numbers[chosen[count]] < high
            word &= word - np.uint64(1)
        if shape == PROGRAM:
            for row in range(shelf.values.shape[1]):
                for j in range(count):
                    pairs.numbers[row, j] = shelf.values[chosen[j], row]
            score_block(programs, q, pairs.numbers, pairs.columns, pairs.known, 0, count, reaching.stack)
            for j in range(count):
                scores[j] = reaching.stack[0, j]
        else:
            rows, weights, constants = programs.term_row, programs.term_weight, programs.term_constant
            for j in range(count):
                scores[j] = score_terms(shape, rows, weights, constants, begins, ends, shelf.values.T, chosen[j])
        for j in range(count):
            merit = sign * scores[j]
            if not merit >= least or not merit > bound or not np.isfinite(merit):
                continue
            number = shelf.numbers[chosen[j]]
            if held == want and is_worse(merit, number, opened.best_merit[0], opened.best_number[0]):
                continue
            if judged:
                slot = number & ring.mask
                if ring.seq[slot] < query.since or (reaching.filter_of[q] >= 0 and not passes(reaching, q, ring, slot)):
                    continue
            until = end_of(ring, number, query.per_id == LATEST, query.since) if linked else NEVER
            if until <= asks.shared_upto[a]:
                continue
            out.ranking[fill] = asks.ranking[a]
            out.number[fill] = number
            out.merit[fill] = merit
            out.until[fill] = until
            fill += 1
            if shared_low <= number < shared_high and until > asks.upto[a]:
                if held < want:
                    add_best(opened, held, merit, number)
                    held += 1
                else:
                    replace_worst(opened, held, merit, number)
                if held == want:
                    least = opened.best_merit[0]
    return fill, held


@kernel
def lanes_between(begin: int, end: int) -> Any:
    """The bits of the lanes begin..end of 64."""
    word = ~np.uint64(0)
    if begin > 0:
        word &= ~np.uint64(0) << np.uint64(begin)
    if end < LANES:
        word &= (np.uint64(1) << np.uint64(end)) - np.uint64(1)
    return word


@kernel
def keep_best(out: Any, begin: int, fill: int, merit: float, number: int) -> int:
    """Of the rows found those that rank at or above a row."""
    kept = begin
    for i in range(begin, fill):
        if is_worse(out.merit[i], out.number[i], merit, number):
            continue
        out.ranking[kept] = out.ranking[i]
        out.number[kept] = out.number[i]
        out.merit[kept] = out.merit[i]
        out.until[kept] = out.until[i]
        kept += 1
    return kept


# -- which queries reach which cell ----------------------------------------------------------------------------


@kernel
def register(reaching: Any, boxes: Any, cells: Any, scratch: Any, q: int, opened: Any) -> int:
    """Give every checked cell that reaches the floor of query q, and every sector, its bit. Comes back for room with
    nothing lost: call again."""
    floor, f, sign = reaching.floor[q], reaching.filter_of[q], reaching.wanted[q].sign
    shape, rest, wider = fill_table(reaching.programs, q, sign, boxes, scratch.table)
    table, starts, base, stride = scratch.table, boxes.starts, boxes.base, boxes.stride
    size = 1
    opened.box[0] = (boxes.base.shape[0] - 2) << _LEVEL_SHIFT
    while size > 0:
        size -= 1
        level, key = opened.box[size] >> _LEVEL_SHIFT, opened.box[size] & _KEY_MASK
        index = index_of(base, stride, level, key)
        if level < boxes.sector and cells.active[index] == 0:
            continue
        reached = np.nan
        if shape != PROGRAM:
            reached = bound_from_table(table, starts, level, key, shape, rest, wider, sign)
            if reached < floor:
                continue
        if f >= 0 or shape == PROGRAM:
            reached = bound_of_box(reaching.programs, q, f, sign, boxes, level, key, reached, scratch)
        if reached == -np.inf or reached < floor:
            continue
        if level == boxes.sector:
            set_bit(cells.sectors[index - boxes.base[level]], q)
        if level == 0:
            if cells.home[index].state == UNREACHED:
                if not can_heat(cells):
                    return HOT_FULL
                heat(cells, index)
            if cells.home[index].state >= 0:
                set_bit(cells.bits[cells.home[index].state], q)
            continue
        if size + 2 > opened.box.shape[0]:
            return HEAP_FULL
        axis = boxes.split[level]
        place = ((key >> (8 * axis)) & 255) << 1
        bare = key & ~(255 << (8 * axis))
        for half in range(2):
            if place + half < boxes.count[level - 1, axis]:
                opened.box[size] = ((level - 1) << _LEVEL_SHIFT) | bare | ((place + half) << (8 * axis))
                size += 1
    reaching.registered[q] = floor
    return DONE


@kernel
def shrink(reaching: Any, boxes: Any, cells: Any, scratch: Any, q: int) -> None:
    """Take the bit of query q from the hot cells that do not reach its floor any more."""
    floor, sign = reaching.floor[q], reaching.wanted[q].sign
    table = scratch.table
    shape, rest, wider = fill_table(reaching.programs, q, sign, boxes, table)
    for h in range(cells.fill[0]):
        if has_bit(cells.bits[h], q):
            key = key_of_cell(boxes, cells.hot[h].cell)
            if shape != PROGRAM:
                reached = bound_from_table(table, boxes.starts, 0, key, shape, rest, wider, sign)
            else:
                reached = bound_of_box(reaching.programs, q, -1, sign, boxes, 0, key, np.nan, scratch)
            if reached < floor:
                take_back(cells, h, q)
    reaching.registered[q] = floor


@kernel
def withdraw(cells: Any, q: int) -> None:
    """Take the bit of query q from everything."""
    for h in range(cells.fill[0]):
        if has_bit(cells.bits[h], q):
            take_back(cells, h, q)
    for s in range(cells.sectors.shape[0]):
        clear_bit(cells.sectors[s], q)
    clear_bit(cells.every, q)


@kernel
def move_floors(frame: Any, slots: Any, floors: Any, cursor: Any) -> int:
    """Set the floors of queries: slots i8[n], floors f8[n]; frame: GridArrays. cursor i8[1]: the one at hand. Comes
    back for room.

    A floor that falls gives bits to more cells, one that rises takes them back. That costs what a few hundred tests do,
    and floors rise once in many cycles: leaving the bits made testing arrivals 13 times dearer.
    """
    _, boxes, cells, _, reaching, scratch, pairs, opened, _ = open_grid(frame)
    for i in range(cursor[0], slots.shape[0]):
        cursor[0] = i
        q = slots[i]
        floor = floors[i]
        reaching.floor[q] = floor
        set_probe(reaching, boxes, q, pairs.x)
        if floor == -np.inf and reaching.filter_of[q] < 0:
            set_bit(cells.every, q)
            reaching.registered[q] = floor
            continue
        if has_bit(cells.every, q):
            clear_bit(cells.every, q)
            reaching.registered[q] = np.inf
        if floor < reaching.registered[q] or floor == -np.inf:
            status = register(reaching, boxes, cells, scratch, q, opened)
            if status != DONE:
                return status
        elif floor > reaching.registered[q]:
            shrink(reaching, boxes, cells, scratch, q)
    cursor[0] = slots.shape[0]
    return DONE
