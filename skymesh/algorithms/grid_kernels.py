"""Rows of a window in the cells of a grid, and which queries reach which cell.

Rows stand in a ring, by *number*: 0, 1, 2 ... in the order of their window. A cell knows the number of its newest row
and each row how far back the one before it in its cell lies. So an insert writes two words, expiry writes nothing, and
a walk through a cell ends at the first row that is no longer held.

A cell that holds rows has been *checked*: either no query reaches it, or it is *hot* and has a bit for each query that
does. An arrival is tested against the queries of its cell only, and most cells have none (98 of 100 with a thousand
linear queries over a million rows).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from .box_kernels import (
    Bounding,
    Boxes,
    bound_merit,
    fill_box,
    index_of,
    key_above,
    key_of_cell,
    may_pass,
    place_column,
)
from .columns import NEVER
from .frames import B1, F4, F8, I4, I8, U4, U8, B1x2, F4x2, F4x3, F8x2, I8x2, U8x2, opener
from .hash_kernels import find_pair, put_pair, remove_pair
from .kernel import inlined, kernel, trailing_zeros
from .questions import WANTED
from .score_kernels import EUCLIDEAN, LARGEST, LINEAR, PRODUCT, PROGRAM, QUADRATIC, Programs, larger, score_block

UNCHECKED, UNREACHED, NO_STATE = -1, -2, -3
BACK_MAX = 2**32 - 1

# A cell: the number of its newest row, and UNCHECKED, UNREACHED, or its hot cell. Side by side, so that an insert
# touches one line of memory.
HOME = np.dtype([("newest", "i8"), ("state", "i8")])

# A hot cell, and its rows on the shelf if `filled`: its first block there, how many blocks it has, between which places
# of them its rows stand, and
# whether they were looked at since cells cooled down last.
HOT = np.dtype(
    [
        ("cell", "i8"),
        ("block", "i8"),
        ("blocks", "i8"),
        ("front", "i8"),
        ("count", "i8"),
        ("filled", "i8"),
        ("used", "i8"),
    ]
)

Homes = Annotated[Any, HOME, 1]
HotCells = Annotated[Any, HOT, 1]
Wanted = Annotated[Any, WANTED, 1]

# What kernels come back for.
DONE, HOT_FULL, SHELF_FULL, OUT_FULL, HEAP_FULL = 0, 1, 2, 3, 4


class Ring(NamedTuple):
    """Rows by number; row n is at n & mask. position i8[c] is seq in rows, time in time; at = position + shift.

    seq, time, id i8[c] (time is empty without event time), back u4[c] (how far back the row before it in its cell lies;
    without one it leads to what is not held), numbers f8[D, c], columns i8[C, c], known b1[C, c]; newer, older, dead
    i8[c] where rows of one id are linked (else empty): the numbers of the rows of its id after and before it (-1:
    none), and the position at which it was deleted, or NEVER.
    """

    position: I8
    seq: I8
    time: I8
    id: I8
    back: U4
    numbers: F8x2
    columns: I8x2
    known: B1x2
    newer: I8
    older: I8
    dead: I8
    shift: int
    mask: int


open_ring = opener(Ring)


class Cells(NamedTuple):
    """home HOME[cells], active i4[boxes] (how many checked cells a box has), hot HOT[h], fill i8[1]: how many cells are
    hot; and sets of queries: bits u8[h, w + 1] (those that reach a hot cell), sectors u8[s, w + 1] (those that reach a
    box of the sector level), every u8[w + 1] (those that reach everywhere)."""

    home: Homes
    active: I4
    hot: HotCells
    bits: U8x2
    sectors: U8x2
    every: U8
    fill: I8


class Shelf(NamedTuple):
    """Rows of hot cells side by side, in blocks of 64: lanes f4[blocks, p, 64] has their features, values
    f8[blocks * 64, D] their numbers, numbers i8[blocks * 64] which rows they are; fill i8[2]: how many blocks are used,
    how many a cell lacked."""

    lanes: F4x3
    values: F8x2
    numbers: I8
    fill: I8


class Pairs(NamedTuple):
    """Scratch for tests of rows. The hot cells of rows hot i4[n], and the words of queries that they meet: row i4[m],
    word i4[m], which of its lanes u8[m]. Features of rows f4[n, p], of one x f4[p], and how many of them are
    attributes. Pairs of row and query: slot i4[m], number i8[m], in the order of the queries' kinds order i4[m] and
    begin i8[queries + 2]. A block of them: which i4[BLOCK], chosen i8[BLOCK], place i4[BLOCK], scores f8[BLOCK],
    picked i4[BLOCK]. Rows side by side: numbers f8[D, BLOCK], columns i8[C, BLOCK], known b1[C, BLOCK]."""

    hot: I4
    row: I4
    word: I4
    lanes: U8
    features: F4x2
    x: F4
    attributes: int
    slot: I4
    number: I8
    order: I4
    begin: I8
    which: I4
    chosen: I8
    place: I4
    scores: F8
    picked: I4
    numbers: F8x2
    columns: I8x2
    known: B1x2


class Reaching(NamedTuple):
    """Queries as a grid knows them: programs, filter_of i8[q], stack, wanted WANTED[q], floor f8[q] (rows below it are
    not sent), registered f8[q] (checked cells whose bound is not below it have the query's bit), probe
    f4[q / 64, p + 1, 64] (see probe_kernels)."""

    programs: Programs
    filter_of: I8
    stack: F8x2
    wanted: Wanted
    floor: F8
    registered: F8
    probe: F4x3
    probed: B1


class Opened(NamedTuple):
    """Boxes that wait to be opened, a heap with the best bound first: bound f8[h], box i8[h] (level << 56 | key).
    best_merit f8[w], best_number i8[w]: the best rows so far, a heap with the worst first."""

    bound: F8
    box: I8
    best_merit: F8
    best_number: I8


class Answer(NamedTuple):
    """Rows that were found: ranking i4[n], number i8[n], merit f8[n], until i8[n]."""

    ranking: I4
    number: I8
    merit: F8
    until: I8


class GridArrays(NamedTuple):
    """All that kernels of a grid work on, as a frame hands it over."""

    ring: Ring
    boxes: Boxes
    cells: Cells
    shelf: Shelf
    reaching: Reaching
    scratch: Bounding
    pairs: Pairs
    opened: Opened
    out: Answer


open_grid = opener(GridArrays)


# -- rows ------------------------------------------------------------------------------------------------------


@kernel
def copy_part(target: Any, place: int, source: Any, start: int, count: int) -> None:
    # By slices: an index that is a sum might be negative to the compiler, which then copies one by one
    # (10,000 rows of six columns: 190 us against 68).
    to, of = target[place : place + count], source[start : start + count]
    for i in range(count):
        to[i] = of[i]


@kernel
def take_rows(
    frame: Any, numbers: Any, seq: Any, time: Any, id_: Any, first_number: int, cell: Any, touched: Any
) -> tuple[int, int, int]:
    """Put rows first_number.. into the ring and into their cells, cell i4[n]; frame: GridArrays.

    Returns how many have to be tested, with their places in touched i4[n + 1], how many of those lie in cells that have
    to be checked first, and how many numbers lie beyond the extremes.
    """
    ring, boxes, cells, _, _, _, _, _, _ = open_grid(frame)
    n = seq.shape[0]
    cell[:] = 0
    beyond = 0
    start = 0
    while start < n:
        slot = (first_number + start) & ring.mask
        count = min(n - start, ring.mask + 1 - slot)
        copy_part(ring.seq, slot, seq, start, count)
        copy_part(ring.id, slot, id_, start, count)
        if ring.time.shape[0] > 0:
            copy_part(ring.time, slot, time, start, count)
        part = cell[start : start + count]
        for row in range(numbers.shape[0]):
            x, copy = numbers[row, start : start + count], ring.numbers[row, slot : slot + count]
            if row < boxes.least.shape[0]:
                beyond += place_column(boxes, row, x, copy, part)
            else:
                copy_part(copy, 0, x, 0, count)
        start += count
    tested = link_rows(ring, cells, cell, first_number, not is_clear(cells.every), touched)
    unchecked = 0
    for t in range(tested):
        unchecked += cells.home[cell[touched[t]]].state == UNCHECKED
    return tested, unchecked, beyond


@kernel
def link_rows(ring: Any, cells: Any, cell: Any, first_number: int, tests_all: bool, touched: Any) -> int:
    """Put rows into their cells, cell i4[n]; row i has number first_number + i. Rows in cells that no query reaches are
    done with here, the others go into touched i4[n + 1], all of them with tests_all; returns how many.

    Half of it is what the loop does not do: no index that may be negative to the compiler, nothing that is masked or
    counted row by row (by itself, 10,000 rows in 20,736 cells: 12 us against 24).
    """
    tested = 0
    start = 0
    no_test = NO_STATE if tests_all else UNREACHED
    homes = cells.home
    while start < cell.shape[0]:
        slot = (first_number + start) & ring.mask
        count = min(cell.shape[0] - start, ring.mask + 1 - slot)
        back, cell_of_row = ring.back[slot : slot + count], cell[start : start + count]
        for i in range(count):
            number = first_number + start + i
            home = homes[np.uint32(cell_of_row[i])]
            back[i] = min(number - home.newest, BACK_MAX)
            home.newest = number
            touched[tested] = start + i
            tested += home.state != no_test
        start += count
    return tested


@kernel
def first_beyond(ring: Any, first: int, end: int, at: int) -> int:
    """The first of rows first..end whose position lies beyond `at`, or end."""
    if first >= end:
        return end
    # Where positions have no gaps this is a subtraction.
    newest = ring.position[(end - 1) & ring.mask] + ring.shift
    guess = end - 1 - (newest - at) + 1
    if first < guess < end:
        before = ring.position[(guess - 1) & ring.mask] + ring.shift
        if before <= at < ring.position[guess & ring.mask] + ring.shift:
            return guess
    low, high = first, end
    while low < high:
        middle = (low + high) >> 1
        if ring.position[middle & ring.mask] + ring.shift <= at:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def first_after(frame: Any, first: int, end: int, at: int) -> int:
    """The same for a frame of a Ring."""
    return first_beyond(open_ring(frame), first, end, at)


# -- rows of one id --------------------------------------------------------------------------------------------


@kernel
def link_ids(ring: Any, newest: Any, first_number: int, end: int) -> int:
    """Link rows first_number..end to the rows of their ids before them; returns how many ids are new.

    newest maps (0, id) to a row number and has room.
    """
    added = 0
    for number in range(first_number, end):
        slot = number & ring.mask
        ring.newer[slot] = -1
        ring.older[slot] = -1
        ring.dead[slot] = NEVER
        pair = find_pair(newest, 0, ring.id[slot])
        if pair >= 0:
            ring.older[slot] = newest[pair].value
            ring.newer[newest[pair].value & ring.mask] = number
            newest[pair].value = number
        else:
            put_pair(newest, 0, ring.id[slot], number)
            added += 1
    return added


@kernel
def forget_ids(ring: Any, newest: Any, first: int, upto: int) -> int:
    """Take rows first..upto out of the map of newest rows; returns how many ids are gone with them."""
    removed = 0
    for number in range(first, upto):
        slot = number & ring.mask
        pair = find_pair(newest, 0, ring.id[slot])
        if pair >= 0 and newest[pair].value == number:
            remove_pair(newest, 0, ring.id[slot])
            removed += 1
        elif ring.newer[slot] >= 0:
            ring.older[ring.newer[slot] & ring.mask] = -1
    return removed


@kernel
def kill_ids(ring: Any, newest: Any, first: int, at: int, killed: Any) -> int:
    """From each newest row back, the rows that are alive die at `at`; their numbers into killed i8[n].

    newest i8[m]: row numbers, -1: none. Returns how many died.
    """
    count = 0
    for number in newest:
        while number >= first:
            slot = number & ring.mask
            if ring.dead[slot] >= NEVER:
                ring.dead[slot] = at
                killed[count] = number
                count += 1
            number = ring.older[slot]
    return count


@kernel
def end_of(ring: Any, number: int, latest: bool, since: int) -> int:
    """Where a row stops counting: at its deletion, or where `latest` only sees a newer row that arrived since."""
    if ring.newer.shape[0] == 0:
        return NEVER
    slot = number & ring.mask
    end = ring.dead[slot]
    if latest:
        newer = ring.newer[slot]
        while newer >= 0:
            if ring.seq[newer & ring.mask] >= since:
                return min(end, ring.position[newer & ring.mask] + ring.shift)
            newer = ring.newer[newer & ring.mask]
    return end


@kernel
def superseded(ring: Any, first: int, first_number: int, end: int, since_most: int, out: Any) -> int:
    """Rows that rows first_number..end may have put an end to, into out i8[n]; returns how many, n if it is full.

    That is the row of its id before it; and those further back where a query started so late that it does not count
    that one. A row may stand there twice.
    """
    count = 0
    for number in range(first_number, end):
        older = ring.older[number & ring.mask]
        while older >= first and count < out.shape[0]:
            out[count] = older
            count += 1
            if ring.seq[older & ring.mask] >= since_most:
                break
            older = ring.older[older & ring.mask]
    return count


# -- hot cells -------------------------------------------------------------------------------------------------


# A set of queries is a line of words with a bit for each query. One more word tells which of the others are not empty:
# bit w % 64 for word w. Of a thousand queries a hot cell has 30, in 5 of 16 words.


@kernel
def set_bit(words: Any, q: int) -> None:
    w = q >> 6
    words[w] |= np.uint64(1) << np.uint64(q & 63)
    words[words.shape[0] - 1] |= np.uint64(1) << np.uint64(w & 63)


@kernel
def clear_bit(words: Any, q: int) -> None:
    w, last = q >> 6, words.shape[0] - 1
    words[w] &= ~(np.uint64(1) << np.uint64(q & 63))
    for other in range(w & 63, last, 64):
        if words[other] != np.uint64(0):
            return
    words[last] &= ~(np.uint64(1) << np.uint64(w & 63))


@kernel
def has_bit(words: Any, q: int) -> bool:
    return (words[q >> 6] >> np.uint64(q & 63)) & np.uint64(1) != np.uint64(0)


@kernel
def is_clear(words: Any) -> bool:
    return words[words.shape[0] - 1] == np.uint64(0)


@kernel
def take_back(cells: Any, h: int, q: int) -> None:
    """Take the bit of query q from a hot cell. The last one makes it an ordinary cell, whose record waits to be
    dropped: rows that come are not looked at."""
    clear_bit(cells.bits[h], q)
    if is_clear(cells.bits[h]):
        cells.home[cells.hot[h].cell].state = UNREACHED
        cells.hot[h].cell = -1
        cells.hot[h].filled = 0


@kernel
def can_heat(cells: Any) -> bool:
    return cells.fill[0] < cells.hot.shape[0]


@kernel
def heat(cells: Any, cell: int) -> int:
    """Make a cell hot, with no bits. There is room: see can_heat."""
    h = cells.fill[0]
    cells.fill[0] += 1
    record = cells.hot[h]
    record.cell = cell
    record.block = record.blocks = record.front = record.count = record.filled = record.used = 0
    for w in range(cells.bits.shape[1]):
        cells.bits[h, w] = np.uint64(0)
    cells.home[cell].state = h
    return h


@kernel
def check_cell(reaching: Any, boxes: Any, cells: Any, scratch: Any, cell: int) -> bool:
    """Find out which queries reach a cell that was empty until now. False if there is no room for a hot cell."""
    if not can_heat(cells):
        return False
    key = key_of_cell(boxes, cell)
    sector = cells.sectors[
        index_of(boxes.base, boxes.stride, boxes.sector, key_above(boxes, key, boxes.sector)) - boxes.base[boxes.sector]
    ]
    fill_box(boxes, 0, key, scratch.box_low, scratch.box_high)
    h = -1
    for w in range(sector.shape[0] - 1):
        word = sector[w]
        while word != np.uint64(0):
            q = 64 * w + trailing_zeros(word)
            word &= word - np.uint64(1)
            bound = bound_merit(reaching.programs, q, reaching.wanted[q].sign, boxes, scratch)
            if bound < reaching.registered[q]:
                continue
            f = reaching.filter_of[q]
            if f >= 0 and not may_pass(reaching.programs, f, scratch):
                continue
            if h < 0:
                h = heat(cells, cell)
            set_bit(cells.bits[h], q)
    if h < 0:
        cells.home[cell].state = UNREACHED
    count_active(boxes, cells, key, 1)
    return True


@kernel
def settle(boxes: Any, cells: Any, first: int) -> None:
    """Note the cells that hold rows, from number `first` on, in the boxes above them. No query reaches them yet."""
    for cell in range(cells.home.shape[0]):
        if cells.home[cell].newest >= first and cells.home[cell].state == UNCHECKED:
            cells.home[cell].state = UNREACHED
            count_active(boxes, cells, key_of_cell(boxes, cell), 1)


@kernel
def count_active(boxes: Any, cells: Any, key: int, by: int) -> None:
    """Note in all boxes above a cell that it was checked (1), or is not any more (-1)."""
    for level in range(boxes.base.shape[0] - 1):
        cells.active[index_of(boxes.base, boxes.stride, level, key_above(boxes, key, level))] += by


@kernel
def cool_down(boxes: Any, cells: Any, first: int) -> None:
    """Forget hot cells that hold no row from number `first` on, so that nobody searches them, and those that no query
    reaches. Rows side by side that nobody looked at meanwhile are left: every arrival would have to be added to them.

    Other cells stay what they are while they are empty: to check one again costs a bound for each query. Where cells
    held two rows on average that took three quarters of a cycle (1,000 arrivals, 1,000 queries).
    """
    kept = 0
    for h in range(cells.fill[0]):
        record = cells.hot[h]
        if record.cell < 0:
            continue
        record.filled = record.filled and record.used
        record.used = 0
        home = cells.home[record.cell]
        if home.newest < first:
            home.state = UNCHECKED
            count_active(boxes, cells, key_of_cell(boxes, record.cell), -1)
            continue
        if is_clear(cells.bits[h]):
            home.state = UNREACHED
            continue
        if kept != h:
            cells.hot[kept] = cells.hot[h]
            copy_part(cells.bits[kept], 0, cells.bits[h], 0, cells.bits.shape[1])
            home.state = kept
        kept += 1
    cells.fill[0] = kept


# -- tests -----------------------------------------------------------------------------------------------------


@kernel
def score_terms(
    shape: int, rows: Any, weights: Any, constants: Any, first: int, last: int, numbers: Any, i: int
) -> Any:
    """The score of row i of numbers f8[D, n], for known shapes: the same steps as the block kernel. Terms first..last.

    Takes the arrays of Programs one by one: handing the whole tuple down costs more than the score does.
    """
    total = 0.0
    if shape == LINEAR:
        total = weights[first] * numbers[rows[first], i]
        for t in range(first + 1, last):
            total = total + weights[t] * numbers[rows[t], i]
        return total
    for t in range(first, last):
        w, c, value = weights[t], constants[t], numbers[rows[t], i]
        if shape == PRODUCT:
            term = c + value
        elif shape == QUADRATIC:
            term = w * (value * value)
        elif shape == EUCLIDEAN:
            term = w * ((value - c) * (value - c))
        else:
            term = w * abs(value - c)
        if t == first:
            total = term
        elif shape == PRODUCT:
            total = total * term
        elif shape == LARGEST:
            total = larger(total, term)
        else:
            total = total + term
    return np.sqrt(total) if shape == EUCLIDEAN else total


@kernel
def is_in_span(query: Any, at: int, seq: int) -> bool:
    """Whether a query counts a row, by its time."""
    return seq >= query.since and query.after < at <= query.until


@kernel
def passes(reaching: Any, q: int, ring: Any, slot: int) -> bool:
    """Whether a row passes the filter of a query that has one."""
    score_block(
        reaching.programs, reaching.filter_of[q], ring.numbers, ring.columns, ring.known, slot, 1, reaching.stack
    )
    return reaching.stack[0, 0] != 0.0


@kernel
def score_program(reaching: Any, q: int, ring: Any, slot: int) -> float:
    """The score of one row by the interpreter."""
    score_block(reaching.programs, q, ring.numbers, ring.columns, ring.known, slot, 1, reaching.stack)
    return reaching.stack[0, 0]


@inlined
def merit_of(reaching: Any, q: int, ring: Any, slot: int) -> float:
    """The merit of the row at a slot for query q."""
    programs = reaching.programs
    shape = programs.shape[q]
    if shape == PROGRAM:
        score = score_program(reaching, q, ring, slot)
    else:
        rows, weights, constants = programs.term_row, programs.term_weight, programs.term_constant
        first, last = programs.term_first[q], programs.term_last[q]
        score = score_terms(shape, rows, weights, constants, first, last, ring.numbers, slot)
    return reaching.wanted[q].sign * score


@kernel
def check_cells(frame: Any, cell: Any, touched: Any, count: int) -> int:
    """Check the cells of touched rows that were empty until now; frame: GridArrays. Comes back for room; call again to
    go on."""
    _, boxes, cells, _, reaching, scratch, _, _, _ = open_grid(frame)
    for t in range(count):
        c = cell[touched[t]]
        if cells.home[c].state == UNCHECKED and not check_cell(reaching, boxes, cells, scratch, c):
            return HOT_FULL
    return DONE


@kernel
def cell_of(boxes: Any, numbers: Any, slot: int) -> int:
    """The cell of one row of the ring."""
    cell = 0
    for axis in range(boxes.row_of.shape[0]):
        place = (numbers[boxes.row_of[axis], slot] - boxes.origin[axis]) * boxes.scale[axis]
        place = min(max(place, 0.0), boxes.last[axis])
        cell += np.int64(place) * boxes.stride[0, axis]
    return cell


@kernel
def tell_ends(frame: Any, numbers: Any, latest: int, cursor: Any) -> int:
    """Rows that have an end for queries whose floor they reach, into the answer; numbers i8[m], frame: GridArrays.
    Comes back for room.

    cursor i8[2]: which of the numbers is at hand, and how many are in out.
    """
    ring, boxes, cells, _, reaching, _, _, _, out = open_grid(frame)
    words = cells.every.shape[0] - 1
    filter_of = reaching.filter_of
    for j in range(cursor[0], numbers.shape[0]):
        cursor[0] = j
        if cursor[1] + 64 * words > out.number.shape[0]:
            return OUT_FULL
        number = numbers[j]
        slot = number & ring.mask
        h = cells.home[cell_of(boxes, ring.numbers, slot)].state
        at, seq = ring.position[slot] + ring.shift, ring.seq[slot]
        for w in range(words):
            word = cells.every[w]
            if h >= 0:
                word |= cells.bits[h, w]
            while word != np.uint64(0):
                q = 64 * w + trailing_zeros(word)
                word &= word - np.uint64(1)
                query = reaching.wanted[q]
                until = end_of(ring, number, query.per_id == latest, query.since)
                if until >= NEVER:
                    continue
                merit = merit_of(reaching, q, ring, slot)
                if not merit >= reaching.floor[q] or not merit > query.bound or not np.isfinite(merit):
                    continue
                if not is_in_span(query, at, seq) or (filter_of[q] >= 0 and not passes(reaching, q, ring, slot)):
                    continue
                out.ranking[cursor[1]] = query.ranking
                out.number[cursor[1]] = number
                out.merit[cursor[1]] = merit
                out.until[cursor[1]] = until
                cursor[1] += 1
    cursor[0] = numbers.shape[0]
    return DONE


@kernel
def ends_of(ring: Any, wanted: Any, slot_of: Any, ranking: Any, number: Any, latest: int, until: Any) -> None:
    """Where rows stop counting for the queries of rankings, into until i8[n]. slot_of i8: the query of each ranking."""
    for i in range(ranking.shape[0]):
        query = wanted[slot_of[ranking[i]]]
        until[i] = end_of(ring, number[i], query.per_id == latest, query.since)
