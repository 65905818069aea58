"""Sorted lists over the rows of a window, and the threshold algorithm on them.

Rows stand by index, in the order of their window. A *run* is a stretch of them, and has one list an attribute: the
places of its rows, by value. Runs follow each other without a gap, so the lists of all of them lie in one matrix beside
the rows, in two bytes an entry. Each run is searched by itself with the bound that those before it left: that reads as
many entries as one long list would, and all that it touches stays in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .box_kernels import best_term, has_terms, join_terms, merit_of_bound
from .kernel import kernel
from .score_kernels import BLOCK, bound_box, score_block
from .select_kernels import merits_of_block

# How many rows a run has at most: four attributes of so many rows and their marks fit into half a megabyte.
RUN_MAX = 2**14

# From which end a list is read, which is where an attribute makes a score best.
FROM_TOP, FROM_BOTTOM, INWARD, OUTWARD = 0, 1, 2, 3

# A search reads one entry of each list, then twice as many, up to so many between two looks at the bound.
STRIDE_MAX = 16

# Where a span holds less than this share of a run, its rows are scored one after the other.
SPARSE = 8

RUN = np.dtype([("first", "i8"), ("count", "i8")])  # the number of its first row, how many rows

# How a query reads an attribute: its row of the number matrix, its list, the mode, and where OUTWARD begins.
AXIS = np.dtype([("row", "i8"), ("list", "i8"), ("mode", "i8"), ("centre", "f8")])

# A search: what is wanted, the rows that count (low <= index < high) and those among which the best are counted, how
# many of them the heap has, the last of them once it is full, how many rows were found, and the clock of the marks.
LOOK = np.dtype(
    [
        ("want", "i8"),
        ("low", "i8"),
        ("high", "i8"),
        ("shared_low", "i8"),
        ("shared_high", "i8"),
        ("held", "i8"),
        ("least_merit", "f8"),
        ("least_index", "i8"),
        ("found", "i8"),
        ("clock", "i8"),
    ]
)


class Window(NamedTuple):
    """Rows and lists: at, seq i8[n], numbers f8[D, n], columns i8[C, n], known b1[C, n], order u2[lists, n] (places
    inside a run, by value), runs RUN[r] (oldest first), first: the number of the row with index 0."""

    at: Any
    seq: Any
    numbers: Any
    columns: Any
    known: Any
    order: Any
    runs: Any
    first: int


class Asking(NamedTuple):
    """Queries: programs, filter_of i8[q], stack, wanted WANTED[q], axes AXIS[a] with axis_first i8[q + 1]."""

    programs: Any
    filter_of: Any
    stack: Any
    wanted: Any
    axes: Any
    axis_first: Any


class Unseen(NamedTuple):
    """Where the rows lie that were not read: low, high f8[D], without what is strictly inside hole_low, hole_high f8[D]
    (low > high: no hole); stack_low, stack_high f8[depth], stack_nan b1[depth] for bounds of programs."""

    low: Any
    high: Any
    hole_low: Any
    hole_high: Any
    stack_low: Any
    stack_high: Any
    stack_nan: Any


class Scratch(NamedTuple):
    """look LOOK[1], low, high i8[axes] (the places of a list where reading goes on), mark i4[RUN_MAX] (the clock at
    which a row was read), block f8[D, BLOCK] and picked i8[BLOCK] (rows to be scored), merits f8[BLOCK], heap_merit f8,
    heap_index i8 (the best so far, the last of them first), found_merit f8[n], found_index i8[n], unseen."""

    look: Any
    low: Any
    high: Any
    mark: Any
    block: Any
    picked: Any
    merits: Any
    heap_merit: Any
    heap_index: Any
    found_merit: Any
    found_index: Any
    unseen: Any


# -- runs ------------------------------------------------------------------------------------------------------


@kernel
def merge_runs(numbers: Any, row_of: Any, order: Any, begin: int, left: int, right: int, scratch: Any) -> None:
    """Make one run of two: `left` rows from index `begin` on and `right` rows after them. scratch u2[RUN_MAX]."""
    for a in range(order.shape[0]):
        x = numbers[row_of[a], begin : begin + left + right]
        entries = order[a, begin : begin + left + right]
        for j in range(left):
            scratch[j] = entries[j]
        i, j = 0, 0
        # What is written lies at i + j, and what is read next at left + j: never before it.
        while i < left and j < right:
            above = np.int64(scratch[i])
            below = np.int64(entries[left + j]) + left
            if x[above] <= x[below]:
                entries[i + j] = above
                i += 1
            else:
                entries[i + j] = below
                j += 1
        while i < left:
            entries[i + j] = scratch[i]
            i += 1
        while j < right:
            entries[i + j] = np.int64(entries[left + j]) + left
            j += 1


@kernel
def trim_run(order: Any, begin: int, count: int, gone: int) -> None:
    """Take the oldest `gone` rows out of the run whose rows begin at index `begin`; what is left begins after them."""
    for a in range(order.shape[0]):
        entries = order[a, begin : begin + count]
        place = count
        for j in range(count - 1, -1, -1):
            if entries[j] >= gone:
                place -= 1
                entries[place] = entries[j] - gone


# -- arrivals --------------------------------------------------------------------------------------------------


@kernel
def rows_that_reach(
    asking: Any, window: Any, floors: Any, start: int, merits: Any, ranking: Any, row: Any, merit: Any, cursor: Any
) -> bool:
    """Rows from index `start` on whose merit is at least the floor of a query's ranking. False if a query has no room:
    grow the outputs and call again.

    floors f8[rankings], merits f8[BLOCK] is scratch. ranking i4, row i4 (from `start`), merit f8 are filled; cursor
    i8[2] has the query at hand and how many hits there are.
    """
    n = window.at.shape[0] - start
    for q in range(cursor[0], asking.wanted.shape[0]):
        cursor[0] = q
        query = asking.wanted[q]
        if not query.live:
            continue
        fill = cursor[1]
        if fill + n > ranking.shape[0]:
            return False
        floor = floors[query.ranking]
        for begin in range(start, start + n, BLOCK):
            count = min(BLOCK, start + n - begin)
            query.unscored += merits_of_rows(asking, window, q, begin, count, merits)
            for i in range(count):
                if merits[i] >= floor:  # a NaN is not
                    ranking[fill] = query.ranking
                    row[fill] = begin - start + i
                    merit[fill] = merits[i]
                    fill += 1
        cursor[1] = fill
    return True


@kernel
def merits_of_rows(asking: Any, window: Any, q: int, begin: int, count: int, merits: Any) -> int:
    return merits_of_block(
        asking.programs,
        asking.filter_of,
        asking.stack,
        asking.wanted[q],
        q,
        window.numbers,
        window.columns,
        window.known,
        window.at,
        window.seq,
        begin,
        count,
        merits,
    )


# -- searches --------------------------------------------------------------------------------------------------


@kernel
def search(
    asking: Any,
    window: Any,
    scratch: Any,
    slots: Any,
    want: Any,
    after: Any,
    upto: Any,
    shared_after: Any,
    shared_upto: Any,
    out_ask: Any,
    out_index: Any,
    out_merit: Any,
    cursor: Any,
) -> bool:
    """What spans ask for (see Spans), of the queries `slots` i8[s]. False if there is no room: grow and call again.

    out_ask i4 (which span), out_index i8, out_merit f8 are filled. cursor i8[3]: the span at hand, how many hits there
    are, and how many were found for it already, or -1.
    """
    for s in range(cursor[0], slots.shape[0]):
        cursor[0] = s
        if cursor[2] < 0:
            query = asking.wanted[slots[s]]
            look = scratch.look[0]
            look.want = want[s]
            look.low = first_beyond(window.at, max(after[s], query.after))
            look.high = first_beyond(window.at, min(upto[s], query.until))
            look.shared_low = max(look.low, first_beyond(window.at, shared_after[s]))
            look.shared_high = min(look.high, first_beyond(window.at, shared_upto[s]))
            find(asking, window, scratch, slots[s])
            cursor[2] = look.found
        count = cursor[2]
        fill = cursor[1]
        if fill + count > out_index.shape[0]:
            return False
        for j in range(count):
            out_ask[fill + j] = s
            out_index[fill + j] = scratch.found_index[j]
            out_merit[fill + j] = scratch.found_merit[j]
        cursor[1] = fill + count
        cursor[2] = -1
    return True


@kernel
def first_beyond(at: Any, position: int) -> int:
    """The index of the first row beyond a position."""
    low, high = 0, at.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if at[middle] <= position:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def find(asking: Any, window: Any, scratch: Any, q: int) -> None:
    """The rows that the look at hand asks for, into scratch.found_index and found_merit."""
    look = scratch.look[0]
    look.held = look.found = 0
    look.least_merit = -np.inf
    look.least_index = -1
    if look.want > look.shared_high - look.shared_low:
        look.shared_high = look.shared_low  # all of them are wanted, and none needs counting
        score_rows(asking, window, scratch, q, look.low, look.high)
        return
    # The newest first: among rows that tie they rank first, and older runs need not be read at all.
    listed = 0
    if window.runs.shape[0]:
        last = window.runs[window.runs.shape[0] - 1]
        listed = last.first + last.count - window.first
    score_rows(asking, window, scratch, q, max(look.low, listed), look.high)
    for r in range(window.runs.shape[0] - 1, -1, -1):
        search_run(asking, window, scratch, q, window.runs[r])
    keep_best(scratch)


@kernel
def score_rows(asking: Any, window: Any, scratch: Any, q: int, low: int, high: int) -> None:
    """Look at every row from index low to high."""
    for begin in range(low, high, BLOCK):
        count = min(BLOCK, high - begin)
        merits_of_rows(asking, window, q, begin, count, scratch.merits)
        for j in range(count):
            offer(scratch, scratch.merits[j], begin + j)


@kernel
def offer(scratch: Any, merit: float, index: int) -> None:
    """Take a row in if it ranks at or above the last that is wanted, as far as is known."""
    look = scratch.look[0]
    if not merit >= look.least_merit or (merit == look.least_merit and index < look.least_index):
        return
    scratch.found_merit[look.found] = merit
    scratch.found_index[look.found] = index
    look.found += 1
    if look.shared_low <= index < look.shared_high:
        if look.held < look.want:
            rise(scratch.heap_merit, scratch.heap_index, look.held, merit, index)
            look.held += 1
        else:
            sink(scratch.heap_merit, scratch.heap_index, look.held, merit, index)
        if look.held == look.want:
            look.least_merit = scratch.heap_merit[0]
            look.least_index = scratch.heap_index[0]


@kernel
def keep_best(scratch: Any) -> None:
    """Drop what was found before the last that is wanted was known."""
    look = scratch.look[0]
    kept = 0
    for j in range(look.found):
        merit, index = scratch.found_merit[j], scratch.found_index[j]
        if merit > look.least_merit or (merit == look.least_merit and index >= look.least_index):
            scratch.found_merit[kept] = merit
            scratch.found_index[kept] = index
            kept += 1
    look.found = kept


@kernel
def ranks_below(merit: float, index: int, other_merit: float, other_index: int) -> bool:
    return merit < other_merit or (merit == other_merit and index < other_index)


@kernel
def rise(merits: Any, indices: Any, held: int, merit: float, index: int) -> None:
    """Put a row into a heap of `held` rows whose last in rank comes first."""
    i = held
    while i > 0:
        above = (i - 1) >> 1
        if not ranks_below(merit, index, merits[above], indices[above]):
            break
        merits[i], indices[i] = merits[above], indices[above]
        i = above
    merits[i], indices[i] = merit, index


@kernel
def sink(merits: Any, indices: Any, held: int, merit: float, index: int) -> None:
    """Put a row in place of the last in rank."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= held:
            break
        if child + 1 < held and ranks_below(merits[child + 1], indices[child + 1], merits[child], indices[child]):
            child += 1
        if not ranks_below(merits[child], indices[child], merit, index):
            break
        merits[i], indices[i] = merits[child], indices[child]
        i = child
    merits[i], indices[i] = merit, index


@kernel
def search_run(asking: Any, window: Any, scratch: Any, q: int, run: Any) -> None:
    """The threshold algorithm: read the lists from where they are best, score what is new, until nothing that was not
    read can rank among the best."""
    look = scratch.look[0]
    begin = run.first - window.first
    low, high = max(look.low - begin, 0), min(look.high - begin, run.count)
    if low >= high:
        return
    axes = asking.axes[asking.axis_first[q] : asking.axis_first[q + 1]]
    if SPARSE * (high - low) < run.count or axes.shape[0] == 0:
        score_rows(asking, window, scratch, q, begin + low, begin + high)
        return
    look.clock += 1
    for a in range(axes.shape[0]):
        start_reading(window, scratch, axes[a], a, begin, run.count)
    stride = 1
    sign = asking.wanted[q].sign
    while True:
        for a in range(axes.shape[0]):
            if not note_unseen(window, scratch, axes[a], a, begin, run.count, low, high):
                return
        bound = bound_unseen(asking.programs, q, sign, scratch.unseen)
        if bound < look.least_merit or (bound == look.least_merit and begin + high <= look.least_index):
            return
        count = 0
        for a in range(axes.shape[0]):
            if count + 2 * stride > BLOCK:
                score_picked(asking, window, scratch, q, axes, count)
                count = 0
            count = read(window, scratch, axes[a], a, begin, run.count, low, high, stride, count)
        score_picked(asking, window, scratch, q, axes, count)
        stride = min(2 * stride, STRIDE_MAX)


@kernel
def start_reading(window: Any, scratch: Any, axis: Any, a: int, begin: int, count: int) -> None:
    """Inward, what was not read lies from scratch.low[a] to high[a]; outward, up to low[a] and from high[a] on."""
    scratch.low[a] = 0
    scratch.high[a] = count - 1
    if axis.mode != OUTWARD:
        return
    x = window.numbers[axis.row, begin : begin + count]
    entries = window.order[axis.list, begin : begin + count]
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if x[entries[middle]] < axis.centre:
            low = middle + 1
        else:
            high = middle
    scratch.low[a] = low - 1
    scratch.high[a] = low


@kernel
def is_done(mark: Any, clock: int, place: int, low: int, high: int) -> bool:
    """Whether a row of the run was read, or does not count."""
    return place < low or place >= high or mark[place] == clock


@kernel
def note_unseen(window: Any, scratch: Any, axis: Any, a: int, begin: int, count: int, low: int, high: int) -> bool:
    """Where the rows lie that were not read, along one axis. False if there are none."""
    entries = window.order[axis.list, begin : begin + count]
    x = window.numbers[axis.row, begin : begin + count]
    unseen, row = scratch.unseen, axis.row
    unseen.hole_low[row] = np.inf
    unseen.hole_high[row] = -np.inf
    mark, clock = scratch.mark, scratch.look[0].clock
    i, j = scratch.low[a], scratch.high[a]
    if axis.mode != OUTWARD:
        while i <= j and is_done(mark, clock, entries[i], low, high):
            i += 1
        while j >= i and is_done(mark, clock, entries[j], low, high):
            j -= 1
        if i > j:
            return False
        unseen.low[row] = x[entries[i]]
        unseen.high[row] = x[entries[j]]
    else:
        while i >= 0 and is_done(mark, clock, entries[i], low, high):
            i -= 1
        while j < count and is_done(mark, clock, entries[j], low, high):
            j += 1
        if i < 0 and j >= count:
            return False
        unseen.low[row] = x[entries[0]] if i >= 0 else x[entries[j]]
        unseen.high[row] = x[entries[count - 1]] if j < count else x[entries[i]]
        if i >= 0 and j < count:
            unseen.hole_low[row] = x[entries[i]]
            unseen.hole_high[row] = x[entries[j]]
    scratch.low[a] = i
    scratch.high[a] = j
    return True


@kernel
def bound_unseen(programs: Any, p: int, sign: float, unseen: Any) -> float:
    """The best merit that a row may have which was not read; -inf if none there has a score."""
    if not has_terms(programs, p, unseen.low):
        bound_box(programs, p, unseen.low, unseen.high, unseen.stack_low, unseen.stack_high, unseen.stack_nan)
        if unseen.stack_low[0] > unseen.stack_high[0]:
            return -np.inf
        return unseen.stack_high[0] if sign > 0.0 else -unseen.stack_low[0]
    shape, largest = programs.shape[p], sign > 0.0
    total = 0.0
    first = programs.term_first[p]
    for t in range(first, programs.term_last[p]):
        w, c, row = programs.term_weight[t], programs.term_constant[t], programs.term_row[t]
        if unseen.hole_low[row] <= unseen.hole_high[row]:
            below = best_term(shape, largest, w, c, unseen.low[row], unseen.hole_low[row])
            above = best_term(shape, largest, w, c, unseen.hole_high[row], unseen.high[row])
            term = max(below, above) if largest else min(below, above)
        else:
            term = best_term(shape, largest, w, c, unseen.low[row], unseen.high[row])
        total = term if t == first else join_terms(shape, total, term)
    return merit_of_bound(shape, sign, total)


@kernel
def read(
    window: Any, scratch: Any, axis: Any, a: int, begin: int, count: int, low: int, high: int, stride: int, picked: int
) -> int:
    """Pick up to `stride` rows that are new from each end at which a list is read; returns how many are picked now."""
    entries = window.order[axis.list, begin : begin + count]
    mark, clock, rows = scratch.mark, scratch.look[0].clock, scratch.picked
    i, j = scratch.low[a], scratch.high[a]
    goal = picked + stride
    if axis.mode == OUTWARD:
        # The nearer side alone, so that both sides are read up to about the same distance.
        x = window.numbers[axis.row, begin : begin + count]
        below = i >= 0 and (j >= count or axis.centre - x[entries[i]] <= x[entries[j]] - axis.centre)
        while below and picked < goal and i >= 0:
            picked += pick(mark, clock, rows, picked, entries[i], begin, low, high)
            i -= 1
        while not below and picked < goal and j < count:
            picked += pick(mark, clock, rows, picked, entries[j], begin, low, high)
            j += 1
    else:
        while axis.mode != FROM_BOTTOM and picked < goal and i <= j:
            picked += pick(mark, clock, rows, picked, entries[j], begin, low, high)
            j -= 1
        goal = picked + stride
        while axis.mode != FROM_TOP and picked < goal and i <= j:
            picked += pick(mark, clock, rows, picked, entries[i], begin, low, high)
            i += 1
    scratch.low[a] = i
    scratch.high[a] = j
    return picked


@kernel
def pick(mark: Any, clock: int, rows: Any, picked: int, place: int, begin: int, low: int, high: int) -> int:
    """Put a row among those to be scored, unless it is done; returns how many that makes."""
    if is_done(mark, clock, place, low, high):
        return 0
    mark[place] = clock
    rows[picked] = begin + place
    return 1


@kernel
def score_picked(asking: Any, window: Any, scratch: Any, q: int, axes: Any, count: int) -> None:
    """Score the rows that were picked, a block at a time like all others, and offer those that count."""
    for a in range(axes.shape[0]):
        source, target = window.numbers[axes[a].row], scratch.block[axes[a].row]
        for j in range(count):
            target[j] = source[scratch.picked[j]]
    query, f = asking.wanted[q], asking.filter_of[q]
    score_block(asking.programs, q, scratch.block, window.columns, window.known, 0, count, asking.stack)
    for j in range(count):
        scratch.merits[j] = query.sign * asking.stack[0, j]
    for j in range(count):
        merit, index = scratch.merits[j], scratch.picked[j]
        # What counts is looked at last: few rows get this far.
        if not merit >= scratch.look[0].least_merit or not merit > query.bound or merit == np.inf:
            continue
        if window.seq[index] < query.since:
            continue
        if f >= 0:
            score_block(asking.programs, f, window.numbers, window.columns, window.known, index, 1, asking.stack)
            if asking.stack[0, 0] == 0.0:
                continue
        offer(scratch, merit, index)
