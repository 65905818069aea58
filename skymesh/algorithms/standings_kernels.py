"""Rankings kept up to date, for all queries in one call a batch.

Each ranking has a pool: entries in rank order (merit, at, seq, each descending) in a stretch of one shared array. Hits
come in by position, and a ranking is looked at only at points where it can differ: where a hit falls due, where an
entry that is shown leaves its window or dies. Work grows with what changes, not with rankings x points.

A pool holds every row of the window that ranks at or above its *floor* (merit, at, seq). Row sides that keep rows send
only what reaches it; a ranking with fewer than k such rows left halts, asks, and goes on when `refill` has the answer.
A floor of -inf means that everything is here: rankings whose row sides keep nothing never ask.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .ask_kernels import ask_more, ask_on, falls_short, raise_floor, raise_floor_between
from .columns import EVER, NEVER
from .kernel import embedded, kernel, trailing_zeros
from .point_kernels import horizon_of, point_from
from .pool_kernels import has_room, lowest, take_in
from .show_kernels import room_to_show, show
from .simd import LINE, SPAN, at_most, fetch
from .standing_arrays import AHEAD, DONE, HALTED, POOL_FULL, SNAPSHOT, USED_BYTES, open_standings


@kernel
def sort_hits(
    frame: Any, ranking: Any, row: Any, merit: Any, until: Any, at: Any, seq: Any, time: Any, id_: Any
) -> None:
    """Put hits into the inbox, which has room: a counting sort by ranking, stable; the hits of a ranking have to come
    by at already. Afterwards the hits of ranking r are inbox[first[r]:first[r + 1]]; frame: StandingArrays."""
    arrays = open_standings(frame)
    first, inbox = arrays.first, arrays.inbox
    first[:] = 0
    arrays.taken[:] = 0
    for h in range(ranking.shape[0]):
        first[ranking[h] + 2] += 1
    for r in range(2, first.shape[0]):
        first[r] += first[r - 1]
    for h in range(ranking.shape[0]):
        place = first[ranking[h] + 1]
        first[ranking[h] + 1] = place + 1
        hit = inbox[place]
        i = row[h]
        hit.merit = merit[h]
        hit.at = at[i]
        hit.seq = seq[i]
        hit.time = time[i]
        hit.id = id_[i]
        hit.until = until[h]


@kernel
def advance(frame: Any, past: int, arrived: Any) -> int:
    """Take hits in and show every point up to limits[r]. Comes back early for room; call again to go on.

    frame: StandingArrays; past: all points up to it are over; arrived i8[m]: positions of the rows that came,
    ascending.
    """
    arrays = open_standings(frame)
    call = arrays.call[0]
    due = arrays.due[: find_due(frame, call.ranking)]
    for i in range(-3 * AHEAD, due.shape[0]):
        fetch_ahead(frame, due, i)
        if i < 0:
            continue
        r = due[i]
        ranking = arrays.rankings[r]
        arrays.quiet[r] = EVER
        if not ranking.live:
            continue
        status = advance_ranking(frame, ranking, r, past, arrived)
        if ranking.floor_merit != ranking.told_floor:
            arrays.moved[r] = 1
        if status == DONE:
            arrays.quiet[r] = min(next_point(ranking, past) - 1, ranking.complete)
        elif status != HALTED:
            call.ranking = r
            return status
    call.ranking = 0
    return DONE


@kernel
def find_due(frame: Any, begin: int) -> int:
    """The rankings that there is something to do for, from one on: into `due`; returns how many."""
    arrays = open_standings(frame)
    first, taken, quiet, limits, due = arrays.first, arrays.taken, arrays.quiet, arrays.limits, arrays.due
    count = 0
    for r in range(begin, arrays.rankings.shape[0]):
        due[count] = r
        count += (first[r] + taken[r] < first[r + 1]) | (quiet[r] < limits[r])
    return count


@embedded
def fetch_ahead(frame: Any, due: Any, i: int) -> None:
    """Bring near what rankings need whose turn comes soon: the record, then what is scanned, then what may be told.

    In the benchmark's default setting pools take as much memory as the second cache has, of which the row side leaves
    nothing: this saves a third of the time.
    """
    arrays = open_standings(frame)
    pool = arrays.pool
    if i + 3 * AHEAD < due.shape[0]:
        for offset in range(0, USED_BYTES, LINE):
            fetch(arrays.rankings, due[i + 3 * AHEAD], offset)
    if 0 <= i + 2 * AHEAD < due.shape[0]:
        ranking = arrays.rankings[due[i + 2 * AHEAD]]
        for offset in range(0, 12 * SPAN, LINE):
            fetch(pool.merit, ranking.start, offset)
            fetch(pool.at, ranking.start, offset)
        for offset in range(0, 4 * SPAN, LINE):
            fetch(pool.slot, ranking.start, offset)
            fetch(pool.shown, ranking.start, offset)
            if ranking.prunes:
                fetch(pool.beaten, ranking.start, offset)
    if 0 <= i + AHEAD < due.shape[0] and arrays.rankings[due[i + AHEAD]].shown_count > 0:
        fetch_told(frame, due[i + AHEAD])


@embedded
def fetch_told(frame: Any, r: int) -> None:
    """The row that a better one pushes out, the one that follows when it expires, the one that expires, and a slot."""
    arrays = open_standings(frame)
    pool, ranking = arrays.pool, arrays.rankings[r]
    start, shown = ranking.start, ranking.shown_count
    fetch(pool.entries, pool.slot[start + shown - 1], 0)
    fetch(pool.entries, pool.slot[start + min(shown, ranking.count - 1)], 0)
    fetch(pool.entries, pool.slot[min(start + ranking.count, ranking.base + ranking.room - 1)], 0)
    gone = at_most(pool.at, start, horizon_of(arrays.limits[r], ranking.size)) & lowest(shown)
    if gone != 0:
        fetch(pool.entries, pool.slot[start + trailing_zeros(gone)], 0)


@kernel
def expect(rankings: Any, quiet: Any, at: Any) -> bool:
    """Rankings that hold nothing look at the first point that sees a row, at i8[n]. True if some go on waiting."""
    waiting = False
    for r in range(rankings.shape[0]):
        ranking = rankings[r]
        if not ranking.live or not ranking.dormant:
            continue
        i = np.searchsorted(at, ranking.done, side="right")
        if i == at.shape[0]:
            waiting = True
            continue
        ranking.dormant = 0
        quiet[r] = EVER
        p = point_from(at[i], ranking.slide, ranking.offset, ranking.first)
        ranking.pending_point = min(ranking.pending_point, p)
    return waiting


@embedded
def next_point(ranking: Any, past: int) -> int:
    """The next point at which a ranking can differ, leaving hits aside that wait in the inbox."""
    p = min(ranking.expiry_point, ranking.pending_point)
    if ranking.emit == SNAPSHOT and not ranking.is_time:
        over = max(ranking.done, past)
        p = min(p, point_from(over + 1, ranking.slide, ranking.offset, ranking.first))
    return p


@embedded
def point_of_hit(ranking: Any, at: int, past: int) -> int:
    """The point that first sees a row, given what is over."""
    over = max(ranking.done, past)
    if at > over:
        return point_from(at, ranking.slide, ranking.offset, ranking.first)
    if ranking.slide == 0:
        return max(ranking.wake, over + 1)
    return point_from(over + 1, ranking.slide, ranking.offset, ranking.first)


@embedded
def advance_ranking(frame: Any, ranking: Any, r: int, past: int, arrived: Any) -> int:
    arrays = open_standings(frame)
    taken, inbox = arrays.taken, arrays.inbox
    limit = min(arrays.limits[r], ranking.ends)
    first, end = arrays.first[r], arrays.first[r + 1]
    while True:
        p = next_point(ranking, past)
        if first + taken[r] < end:
            p = min(p, point_of_hit(ranking, inbox[first + taken[r]].at, past))
        if min(p, limit) > ranking.complete:
            i = np.searchsorted(arrived, ranking.complete, side="right")
            ranking.complete = arrived[i] - 1 if i < arrived.shape[0] else NEVER  # there are no rows in between
        if min(p, limit) > ranking.complete:
            ask_on(frame, ranking, r, limit)
            return HALTED
        if p > limit:
            break
        ranking.pending_point = p  # coming back for room must end at this point, whatever is in by then
        while first + taken[r] < end and inbox[first + taken[r]].at <= p:
            if not take_next(frame, ranking, r, past):
                return POOL_FULL
        if falls_short(frame, ranking, p):
            ask_more(frame, ranking, r, p, limit)
            return HALTED
        status = room_to_show(frame, ranking)
        if status != DONE:
            return status
        show(frame, ranking, r, p)
        ranking.pending_point = NEVER
        ranking.done = p
        raise_floor(frame, ranking, p)
    while first + taken[r] < end:
        p = point_of_hit(ranking, inbox[first + taken[r]].at, past)
        if not take_next(frame, ranking, r, past):
            return POOL_FULL
        ranking.pending_point = min(ranking.pending_point, p)
    return DONE


@embedded
def take_next(frame: Any, ranking: Any, r: int, past: int) -> bool:
    """Take in the next hit of a ranking. False if the pool is full."""
    arrays = open_standings(frame)
    if not has_room(frame, ranking, past):
        return False
    take_in(frame, ranking, arrays.inbox[arrays.first[r] + arrays.taken[r]], past)
    arrays.taken[r] += 1
    raise_floor_between(frame, ranking)
    return True
