"""Answers to rankings that asked, sorted and merged into their pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel
from .point_kernels import pane_of
from .pool_kernels import (
    drop_floor,
    forget_range,
    grow,
    is_below_floor,
    put_entry,
    ranks_below,
    set_floor,
    widen,
)
from .standing_arrays import open_standings


@kernel
def refill(frame: Any, scratch: Any, marks: Any, order: Any, keys: Any, times: Any, is_alone: bool) -> bool:
    """Put answers into the pools of the rankings that asked. False if the pool lacks room: make it and call again.

    The inbox holds the answers by ranking, in any order. What lies beyond the positions that a pool takes in at once
    stays there, by position, and `taken` says where that begins. scratch ENTRY, marks i4 and times i8 have room for
    the largest answer and pool together, order i8 and keys f8 for twice as many; is_alone: all come from one row side;
    frame: StandingArrays.
    """
    arrays = open_standings(frame)
    rankings, first, taken, inbox, asks, call = (
        arrays.rankings,
        arrays.first,
        arrays.taken,
        arrays.inbox,
        arrays.asks,
        arrays.call,
    )
    for a in range(call[0].answered, call[0].asked):
        r = asks[a].ranking
        ranking = rankings[r]
        call[0].answered = a
        call[0].ranking = r
        needed = ranking.count + first[r + 1] - first[r]
        if ranking.room < needed and not grow(frame, ranking, max(2 * ranking.room, needed)):
            return False
        hits = inbox[first[r] : first[r + 1]]
        found = hits.shape[0]
        sort_order(hits, order, keys, found, True)
        found = cut_at_floor(ranking, hits, order, asks[a], is_alone)
        later = set_later_aside(hits, order, found, asks[a].shared_upto, scratch)
        count = merge_pool(frame, ranking, hits, order, found - later, scratch, marks)
        aside = scratch[scratch.shape[0] - later :]
        sort_order(aside, order, keys, later, False)
        taken[r] = hits.shape[0] - later
        for j in range(later):
            hits[taken[r] + j] = aside[order[j]]
        take_over(frame, ranking, scratch, marks, count, times)
        ranking.complete = asks[a].complete
    call[0].asked = 0
    call[0].answered = 0
    call[0].ranking = 0
    return True


@kernel
def comes_before(entry: Any, other: Any, by_rank: bool) -> bool:
    """By rank, or by position."""
    if by_rank:
        return ranks_below(other, entry)
    return entry.at < other.at or (entry.at == other.at and entry.seq < other.seq)


@kernel
def sort_order(entries: Any, order: Any, keys: Any, count: int, by_rank: bool) -> None:
    """Fill order[:count] with the places of entries, sorted. Runs are merged, by keys that lie side by side; order i8
    and keys f8 have twice the room. 600 entries take 15 us."""
    for j in range(count):
        order[j] = j
        keys[j] = -entries[j].merit if by_rank else np.float64(entries[j].at)
    source, target = 0, order.shape[0] >> 1
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            merge_runs(entries, order, keys, source, target, begin, width, count, by_rank)
        source, target = target, source
        width *= 2
    for j in range(count):
        order[j] = order[source + j]


@kernel
def merge_runs(
    entries: Any, order: Any, keys: Any, source: int, target: int, begin: int, width: int, count: int, by_rank: bool
) -> None:
    """Merge two sorted runs of this width, the first from `begin` on, from one half of order to the other."""
    i, i_end = begin, min(begin + width, count)
    j, j_end = i_end, min(begin + 2 * width, count)
    for place in range(begin, j_end):
        takes_first = j >= j_end
        if i < i_end and j < j_end:
            a, b = keys[source + i], keys[source + j]
            takes_first = a < b
            if a == b:
                takes_first = not comes_before(entries[order[source + j]], entries[order[source + i]], by_rank)
        chosen = i if takes_first else j
        order[target + place] = order[source + chosen]
        keys[target + place] = keys[source + chosen]
        i += takes_first
        j += not takes_first


@kernel
def cut_at_floor(ranking: Any, hits: Any, order: Any, ask: Any, is_alone: bool) -> int:
    """Set the floor to the last row that was asked for; returns how many rows rank there or above, each once.

    A row side that is alone has sent everything down to the lowest row. Of several each has down to its own, and they
    all have down to the last that was asked for.
    """
    drop_floor(ranking)
    kept = 0
    counted = 0
    for j in range(hits.shape[0]):
        hit = hits[order[j]]
        if kept > 0 and not ranks_below(hit, hits[order[kept - 1]]):
            hits[order[kept - 1]].until = min(hits[order[kept - 1]].until, hit.until)
            continue
        order[kept] = order[j]
        kept += 1
        counted += ask.shared_after < hit.at <= ask.shared_upto and hit.until > ask.upto
        if counted == ask.want and not is_alone:
            break
    if counted >= ask.want:
        lowest = hits[order[kept - 1]]
        set_floor(ranking, lowest)
        ranking.spread = (hits[order[kept >> 2]].merit - lowest.merit) / np.log(4.0)
    return kept


@kernel
def set_later_aside(hits: Any, order: Any, found: int, known: int, scratch: Any) -> int:
    """Take hits beyond `known` out of the order and put them at the end of scratch; returns how many."""
    later = 0
    kept = 0
    for j in range(found):
        if hits[order[j]].at > known:
            later += 1
            scratch[scratch.shape[0] - later] = hits[order[j]]
        else:
            order[kept] = order[j]
            kept += 1
    return later


@kernel
def merge_pool(frame: Any, ranking: Any, hits: Any, order: Any, found: int, scratch: Any, marks: Any) -> int:
    """Merge the pool's entries and an answer into scratch, in rank order, and whether they are shown into marks;
    returns how many there are.

    The answer has all that counts. Of the pool it needs the marks of rows that are shown, and the rows that are shown
    and gone, since their leave is still due.
    """
    pool = open_standings(frame).pool
    count = 0
    j, end = ranking.start, ranking.start + ranking.count
    for h in range(found):
        hit = hits[order[h]]
        while j < end and ranks_below(hit, pool.entries[pool.slot[j]]):
            if pool.shown[j] > 0:
                scratch[count] = pool.entries[pool.slot[j]]
                marks[count] = pool.shown[j]
                count += 1
            j += 1
        scratch[count] = hit
        marks[count] = 0
        if j < end and not ranks_below(pool.entries[pool.slot[j]], hit):
            scratch[count].until = min(pool.entries[pool.slot[j]].until, hit.until)
            marks[count] = pool.shown[j]
            j += 1
        count += 1
    while j < end:
        if pool.shown[j] > 0:
            scratch[count] = pool.entries[pool.slot[j]]
            marks[count] = pool.shown[j]
            count += 1
        j += 1
    return count


@kernel
def take_over(frame: Any, ranking: Any, entries: Any, marks: Any, count: int, times: Any) -> None:
    """Make entries the pool, with new counts of what beats them."""
    pool = open_standings(frame).pool
    forget_range(ranking)
    ranking.start = ranking.base
    kept = 0
    for j in range(count):
        entry = entries[j]
        beaten = 0
        if ranking.prunes:
            times[j] = entry.at
            after, _ = pane_of(entry.at, ranking.size, ranking.slide, ranking.offset, ranking.first)
            for i in range(j):
                beaten += times[i] > after
            if beaten >= ranking.k and marks[j] <= 0:
                continue
        put_entry(pool, ranking.start + kept, entry, beaten, marks[j])
        widen(ranking, entry)
        ranking.soonest = min(ranking.soonest, entry.at)
        if is_below_floor(ranking, entry):
            ranking.mixed = 1
        kept += 1
    ranking.count = kept
    ranking.touched = 0
