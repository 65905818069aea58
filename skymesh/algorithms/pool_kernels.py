"""Pools: the entries of each ranking in rank order, in a stretch of one arena.

Pruning (the k-skyband of pripuzic-2015, by panes): an entry is beaten by every row that ranks above it and leaves no
earlier. Once k rows beat it, it can never show again and is dropped. Entries that are shown stay until the point that
says so, because their leave row is due there and not before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .columns import EVER, NEVER
from .kernel import embedded, inlined, kernel, trailing_zeros
from .point_kernels import horizon_of, pane_of, point_from
from .simd import SPAN, above, add_bits, at_most, ones, shift
from .standing_arrays import ALL_LANES, BEST, DROPPED, ROOM_MIN, open_pool, open_standings


@kernel
def copy_stretch(ranking: Any, source: Any, target: Any, place: int, room: int) -> None:
    """Put the entries of a ranking into a stretch of a pool that holds nothing else."""
    for j in range(place, place + room):
        target.slot[j] = j
    for j in range(ranking.count):
        i = ranking.start + j
        target.merit[place + j] = source.merit[i]
        target.at[place + j] = source.at[i]
        target.beaten[place + j] = source.beaten[i]
        target.shown[place + j] = source.shown[i]
        target.entries[place + j] = source.entries[source.slot[i]]
    ranking.base = place
    ranking.start = place
    ranking.room = room


@inlined
def lowest(count: int) -> int:
    """The bits of this many lanes, SPAN at most."""
    return (1 << max(0, min(count, SPAN))) - 1


@inlined
def move_entry(pool: Any, source: int, target: int) -> None:
    """Put an entry where another one stood, which is over: its slot is free where the entry came from."""
    pool.merit[target] = pool.merit[source]
    pool.at[target] = pool.at[source]
    pool.beaten[target] = pool.beaten[source]
    pool.shown[target] = pool.shown[source]
    free = pool.slot[target]
    pool.slot[target] = pool.slot[source]
    pool.slot[source] = free


@inlined
def put_entry(pool: Any, place: int, entry: Any, beaten: int, shown: int) -> None:
    """Write an entry to a place, into the slot there."""
    pool.merit[place] = entry.merit
    pool.at[place] = entry.at
    pool.beaten[place] = beaten
    pool.shown[place] = shown
    pool.entries[pool.slot[place]] = entry


@inlined
def move_up(frame: Any, ranking: Any, place: int, hole: int) -> None:
    """The entries from `place` on move up by one, up to a hole; its slot is free at `place` then."""
    pool = open_standings(frame).pool
    free = pool.slot[hole]
    slide_up(pool.slot, place, hole)
    slide_up(pool.merit, place, hole)
    slide_up(pool.at, place, hole)
    slide_up(pool.shown, place, hole)
    if ranking.prunes:
        slide_up(pool.beaten, place, hole)
    pool.slot[place] = free


@inlined
def slide_up(column: Any, place: int, hole: int) -> None:
    """Without a branch that depends on how many they are, up to SPAN."""
    j = hole - SPAN
    while j > place:
        shift(column, j, j + 1, ALL_LANES)
        j -= SPAN
    shift(column, place, place + 1, lowest(j + SPAN - place))


@inlined
def move_down(frame: Any, ranking: Any, hole: int, place: int) -> None:
    """The entries behind a hole move down by one, up to that at `place`; the slot of the hole is free there then."""
    pool = open_standings(frame).pool
    free = pool.slot[hole]
    slide_down(pool.slot, hole, place)
    slide_down(pool.merit, hole, place)
    slide_down(pool.at, hole, place)
    slide_down(pool.shown, hole, place)
    if ranking.prunes:
        slide_down(pool.beaten, hole, place)
    pool.slot[place] = free


@inlined
def slide_down(column: Any, hole: int, place: int) -> None:
    j = hole
    while place - j > SPAN:
        shift(column, j + 1, j, ALL_LANES)
        j += SPAN
    shift(column, j + 1, j, lowest(place - j))


@kernel
def repack(frame: Any, target: Any) -> int:
    """Put the entries of all rankings end to end into another pool, each with its room; returns where they end."""
    rankings, pool, new_pool = open_standings(frame).rankings, open_standings(frame).pool, open_pool(target)
    place = 0
    for r in range(rankings.shape[0]):
        if rankings[r].live:
            copy_stretch(rankings[r], pool, new_pool, place, rankings[r].room)
            place += rankings[r].room
    return place


@kernel
def has_room(frame: Any, ranking: Any, past: int) -> bool:
    """See that one more entry fits behind the others of a ranking. False if the pool is full."""
    if ranking.start + ranking.count < ranking.base + ranking.room:
        return True
    drop_dead(frame, ranking, max(ranking.done, past))
    if 4 * ranking.count >= 3 * ranking.room:
        return grow(frame, ranking, max(2 * ranking.room, ROOM_MIN))
    pool = open_standings(frame).pool
    if ranking.start > ranking.base:
        for j in range(ranking.count):
            move_entry(pool, ranking.start + j, ranking.base + j)
        ranking.start = ranking.base
    return True


@kernel
def grow(frame: Any, ranking: Any, room: int) -> bool:
    """Move the entries of a ranking to the end of the pool, with this much room. False if the pool is full."""
    pool, call = open_standings(frame).pool, open_standings(frame).call[0]
    room = room + 7 & ~7  # whole lines of memory
    if call.used + room > pool.entries.shape[0] - SPAN:
        call.needed = room
        return False
    copy_stretch(ranking, pool, pool, call.used, room)
    call.used += room
    return True


@kernel
def drop_dead(frame: Any, ranking: Any, over: int) -> None:
    """Drop entries that no point after `over` shows, but for those whose leave is due."""
    pool = open_standings(frame).pool
    horizon = horizon_of(over, ranking.size)
    kept = ranking.start
    ends = ranking.first_death < NEVER  # else nothing that is looked for is in the entries themselves
    forget_range(ranking)
    for j in range(ranking.start, ranking.start + ranking.count):
        lives = pool.at[j] > horizon
        if ends or pool.merit[j] <= ranking.floor_merit:
            entry = pool.entries[pool.slot[j]]
            lives = lives and entry.until > over and not is_below_floor(ranking, entry)
        if lives or pool.shown[j] > 0:
            ranking.newest = max(ranking.newest, pool.at[j])
            if ends:
                ranking.first_death = min(ranking.first_death, pool.entries[pool.slot[j]].until)
            if kept != j:
                move_entry(pool, j, kept)
            kept += 1
    ranking.count = kept - ranking.start


@embedded
def drop_entry(frame: Any, ranking: Any, j: int) -> None:
    """Take one entry out; the fewer of those before and behind it move."""
    start = ranking.start
    ranking.count -= 1
    if ranking.count > 2 * SPAN and 2 * j < ranking.count:
        move_up(frame, ranking, start, start + j)
        ranking.start += 1
    else:
        move_down(frame, ranking, start + j, start + ranking.count)


@kernel
def drop_marked(frame: Any, ranking: Any, end: int, dropped: int) -> None:
    """Drop entries that are marked for it, all of them before `end`: those that live move up to the others."""
    pool = open_standings(frame).pool
    place = ranking.start + end
    for j in range(ranking.start + end - 1, ranking.start - 1, -1):
        if pool.shown[j] != DROPPED:
            place -= 1
            if place != j:
                move_entry(pool, j, place)
    ranking.start += dropped
    ranking.count -= dropped


@embedded
def ranks_below(entry: Any, other: Any) -> bool:
    if entry.merit != other.merit:
        return entry.merit < other.merit
    if entry.at != other.at:
        return entry.at < other.at
    return entry.seq < other.seq


@embedded
def first_below(frame: Any, start: int, count: int, hit: Any) -> int:
    """How many entries rank at or above a hit. Halves by merit alone, without a branch that could be guessed wrong;
    what is left is compared at once."""
    pool = open_standings(frame).pool
    low = 0
    left = count
    while left > 2 * SPAN:
        half = (left + 1) >> 1
        low += half if pool.merit[start + low + half - 1] > hit.merit else 0
        left -= half
    higher = 0
    for j in range(low, low + left, SPAN):
        higher += ones(above(pool.merit, start + j, hit.merit) & lowest(low + left - j))
    low += higher
    while low < count and pool.merit[start + low] == hit.merit:
        if ranks_below(pool.entries[pool.slot[start + low]], hit):
            break
        low += 1
    return low


@embedded
def take_in(frame: Any, ranking: Any, hit: Any, past: int) -> None:
    """Put a hit into the pool, unless it is there, or can never show. The pool has room."""
    pool = open_standings(frame).pool
    start, count = ranking.start, ranking.count
    place = first_below(frame, start, count, hit)
    if place > 0 and pool.merit[start + place - 1] == hit.merit:
        entry = pool.entries[pool.slot[start + place - 1]]
        if not ranks_below(hit, entry):
            end_entry(ranking, entry, pool.shown[start + place - 1] > 0, hit.until, past)
            return
    if is_below_floor(ranking, hit):
        return
    beaten = 0
    hole = start + count
    if ranking.prunes or ranking.per_id == BEST:
        after, upto = pane_of(hit.at, ranking.size, ranking.slide, ranking.offset, ranking.first)
        if ranking.per_id == BEST:
            if supersede(frame, ranking, place, hit, after, upto):
                return
        else:
            if ranking.newest > after:
                beaten = count_later(frame, start, place, after)
            if beaten >= ranking.k:
                return
            hole = beat(frame, ranking, start + place, upto)
    if hole == start + count and start > ranking.base and count > 2 * SPAN and 2 * place < count:
        # There is room in front, and fewer entries to move.
        ranking.start -= 1
        move_down(frame, ranking, start - 1, start + place - 1)
    else:
        move_up(frame, ranking, start + place, hole)
    put_entry(pool, ranking.start + place, hit, beaten, 0)
    ranking.count += 1
    ranking.touched = min(ranking.touched, place)
    ranking.soonest = min(ranking.soonest, hit.at)
    widen(ranking, hit)


@embedded
def is_below_floor(ranking: Any, hit: Any) -> bool:
    if hit.merit != ranking.floor_merit:
        return hit.merit < ranking.floor_merit
    if hit.at != ranking.floor_at:
        return hit.at < ranking.floor_at
    return hit.seq < ranking.floor_seq


@kernel
def set_floor(ranking: Any, entry: Any) -> None:
    ranking.floor_merit = entry.merit
    ranking.floor_at = entry.at
    ranking.floor_seq = entry.seq


@kernel
def drop_floor(ranking: Any) -> None:
    """Everything is here."""
    ranking.floor_merit = -np.inf
    ranking.floor_at = EVER
    ranking.floor_seq = EVER


@kernel
def widen(ranking: Any, entry: Any) -> None:
    ranking.newest = max(ranking.newest, entry.at)
    ranking.first_death = min(ranking.first_death, entry.until)


@kernel
def forget_range(ranking: Any) -> None:
    ranking.newest = EVER
    ranking.first_death = NEVER


@embedded
def end_entry(ranking: Any, entry: Any, is_shown: bool, until: int, past: int) -> None:
    """An entry that is there already may have been superseded or deleted meanwhile; the earlier end counts."""
    if until < entry.until:
        entry.until = until
        ranking.first_death = min(ranking.first_death, until)
        if is_shown:
            ranking.expiry_point = min(ranking.expiry_point, point_of_death(ranking, until, past))


@kernel
def point_of_death(ranking: Any, until: int, past: int) -> int:
    """The point that first misses a row that is superseded or deleted at `until`, given what is over."""
    x = max(until, ranking.done + 1, past + 1)
    if ranking.slide == 0:
        return max(x, ranking.wake)
    return point_from(x, ranking.slide, ranking.offset, ranking.first)


@embedded
def count_later(frame: Any, start: int, count: int, after: int) -> int:
    """How many of the first entries leave the window no earlier than those just after this position."""
    pool = open_standings(frame).pool
    later = 0
    for j in range(0, count, SPAN):
        later += ones(lowest(count - j) & ~at_most(pool.at, start + j, after))
    return later


@embedded
def beat(frame: Any, ranking: Any, place: int, upto: int) -> int:
    """Count a new row against the entries from `place` on that leave no later; drop those that k rows beat.

    Returns the first hole that this leaves, for others to move into, or the end of the entries. A row in random order
    drops one on average: entries behind that hole stay where they are.
    """
    pool = open_standings(frame).pool
    end = ranking.start + ranking.count
    hole = end
    dropped = 0
    for j in range(place, end, SPAN):
        lanes = lowest(end - j)
        add_bits(pool.beaten, j, lanes & at_most(pool.at, j, upto))
        over = lanes & above(pool.beaten, j, ranking.k - 1) & ~above(pool.shown, j, 0)
        if over != 0:
            hole = min(hole, j + trailing_zeros(over))
            dropped += ones(over)
    if dropped > 1:
        kept = hole + 1
        for j in range(hole + 1, end):
            if pool.beaten[j] < ranking.k or pool.shown[j] > 0:
                if kept != j:
                    move_entry(pool, j, kept)
                kept += 1
    ranking.count -= dropped
    return hole


@kernel
def supersede(frame: Any, ranking: Any, place: int, hit: Any, after: int, upto: int) -> bool:
    """Of rows with one id only a better or a longer lived one counts. True if the new row cannot; else what it
    outlives dies."""
    pool = open_standings(frame).pool
    for j in range(ranking.start, ranking.start + ranking.count):
        entry = pool.entries[pool.slot[j]]
        if entry.id != hit.id or entry.until < NEVER:
            continue
        if j < ranking.start + place:
            if entry.at > after:
                return True
        elif entry.at <= upto:
            entry.until = hit.at
            ranking.first_death = min(ranking.first_death, hit.at)
    return False


@embedded
def gone(frame: Any, ranking: Any, place: int, lanes: int, p: int) -> int:
    """Which of the entries from a place on are not to be shown at point p, whatever their rank."""
    pool = open_standings(frame).pool
    found = lanes & at_most(pool.at, place, horizon_of(p, ranking.size))
    if ranking.first_death <= p or ranking.mixed:
        for i in range(ones(lanes)):
            entry = pool.entries[pool.slot[place + i]]
            if entry.until <= p or is_below_floor(ranking, entry):
                found |= 1 << i
    return found


@embedded
def lowest_bits(word: int, count: int) -> int:
    """So many of the bits that are set, or all of them."""
    lanes = count
    found = word & lowest(lanes)
    while ones(found) < count and found != word:
        lanes += count - ones(found)
        found = word & lowest(lanes)
    return found
