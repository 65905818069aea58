"""What a point tells: who leaves, moves and enters, and whole rankings."""

from __future__ import annotations

from typing import Any

import numpy as np

from .columns import EVER, NEVER
from .hash_kernels import home_of, put_pair
from .kernel import embedded, kernel, trailing_zeros
from .point_kernels import horizon_of, leaves_at, point_from
from .pool_kernels import (
    drop_entry,
    drop_marked,
    forget_range,
    gone,
    is_below_floor,
    lowest,
    lowest_bits,
    move_entry,
    point_of_death,
    widen,
)
from .simd import SPAN, above, least, ones
from .standing_arrays import (
    ALL,
    BEST,
    CHANGES_FULL,
    DONE,
    DROPPED,
    EMPTY,
    ENTER,
    ENTRIES,
    LEAVE,
    MOVE,
    NOT_ANY_MORE,
    RANKED,
    ROW,
    SEEN_FULL,
    SLOTS_FULL,
    SNAPSHOT,
    UNTOUCHED,
    open_standings,
)


@embedded
def room_to_show(frame: Any, ranking: Any) -> int:
    """Whether what one point may tell has room."""
    arrays = open_standings(frame)
    call = arrays.call[0]
    top = min(ranking.k, ranking.count)
    call.needed = ranking.shown_count + top + 1
    if call.filled + call.needed > arrays.changes.shape[0]:
        return CHANGES_FULL
    if ranking.per_id != ALL and 2 * call.needed > arrays.slots.shape[0]:
        return SLOTS_FULL
    remembers = ranking.per_id != ALL or ranking.searched
    if remembers and ranking.emit == ENTRIES and 2 * (call.seen + top) > arrays.seen.shape[0]:
        return SEEN_FULL
    return DONE


@embedded
def show(frame: Any, ranking: Any, r: int, p: int) -> None:
    """The ranking at point p, told against the one before."""
    ranking.evaluations += 1
    horizon = horizon_of(p, ranking.size)
    may_miss = min(ranking.expiry_point, ranking.first_death) <= p or ranking.soonest <= horizon or ranking.mixed
    every_point = ranking.emit == SNAPSHOT and not ranking.is_time
    if may_miss or ranking.touched < ranking.k or ranking.per_id == BEST:
        call = open_standings(frame).call[0]
        filled = call.filled
        if ranking.per_id != ALL:
            changed = show_objects(frame, ranking, r, p, horizon)
        else:
            changed = show_rows(frame, ranking, r, p, 0 if may_miss else ranking.touched // SPAN * SPAN)
        if ranking.emit == SNAPSHOT:
            call.filled = filled
            every_point = every_point or changed
    if every_point:
        show_snapshot(frame, ranking, r, p)
    ranking.was_shown = ranking.shown_count > 0
    ranking.touched = UNTOUCHED


@embedded
def tell(frame: Any, r: int, p: int, op: int, entry: Any, rank: int) -> None:
    """One row of the change log, about an entry."""
    call = open_standings(frame).call[0]
    change = open_standings(frame).changes[call.filled]
    call.filled += 1
    change.ranking = r
    change.at = p
    change.op = op
    change.rank = rank
    change.merit = entry.merit
    change.seq = entry.seq
    change.time = entry.time
    change.id = entry.id


@embedded
def remembers(ranking: Any) -> bool:
    """Whether only `seen` knows what was told of: a row that falls below the floor is forgotten, and may come back."""
    return ranking.emit == ENTRIES and ranking.searched


@embedded
def show_rows(frame: Any, ranking: Any, r: int, p: int, begin: int) -> bool:
    """The ranking where each row is an object of its own; the entries before `begin` show as they did, and if there are
    any then none is gone. True if it changed.

    Looks no further than at the rows that are shown or were, SPAN of them at a time: which of them are shown, which
    are gone and which are to be shown are the bits of three words. What is gone below them is dropped when room is
    needed.
    """
    call = open_standings(frame).call[0]
    filled = call.filled
    top = leave_rows(frame, ranking, r, p, begin)
    changed = top != ranking.shown_count or call.filled > filled
    if ranking.emit == RANKED:
        move_rows(frame, ranking, r, p, begin, top)
    ranking.shown_count = top
    return enter_rows(frame, ranking, r, p, begin) or changed


@embedded
def leave_rows(frame: Any, ranking: Any, r: int, p: int, begin: int) -> int:
    """Tell of rows that leave, and drop what is dead among the rows that are shown or were. Returns how many rows are
    to be shown: they stand at the front of the pool."""
    pool = open_standings(frame).pool
    start, count, k = ranking.start, ranking.count, ranking.k
    rank, alive, dropped = begin, begin, 0
    dropped_at = 0
    j = begin
    while j < count and (alive < k or rank < ranking.shown_count):
        lanes = lowest(count - j)
        shown = lanes & above(pool.shown, start + j, 0)
        dead = gone(frame, ranking, start + j, lanes, p) if begin == 0 else 0
        to_show = lowest_bits(lanes & ~dead, k - alive)
        if ranking.emit == RANKED:
            note_ranks(frame, start + j, shown, rank)
        leaving = shown & ~to_show
        while leaving != 0:
            i = trailing_zeros(leaving)
            leaving &= leaving - 1
            leave(frame, ranking, r, p, start + j + i, rank + ones(shown & lowest(i)) + 1)
            if ranking.prunes and pool.beaten[start + j + i] >= k:
                dead |= 1 << i
        alive += ones(to_show)
        rank += ones(shown)
        while dead != 0:
            dropped_at = j + trailing_zeros(dead)
            dead &= dead - 1
            pool.shown[start + dropped_at] = DROPPED
            dropped += 1
        j += SPAN
    if dropped == 1:
        drop_entry(frame, ranking, dropped_at)
    elif dropped > 1:
        drop_marked(frame, ranking, min(j, count), dropped)
    if begin == 0:
        ranking.mixed = 0
    return alive


@kernel
def note_ranks(frame: Any, place: int, shown: int, rank: int) -> None:
    """Number entries that are shown."""
    pool = open_standings(frame).pool
    while shown != 0:
        rank += 1
        pool.shown[place + trailing_zeros(shown)] = rank
        shown &= shown - 1


@embedded
def leave(frame: Any, ranking: Any, r: int, p: int, place: int, rank: int) -> None:
    """A row is not shown any more, which had this rank."""
    pool = open_standings(frame).pool
    pool.shown[place] = 0
    if ranking.emit != ENTRIES:
        tell(frame, r, p, LEAVE, pool.entries[pool.slot[place]], rank)
    elif not remembers(ranking):
        pool.shown[place] = NOT_ANY_MORE


@kernel
def move_rows(frame: Any, ranking: Any, r: int, p: int, begin: int, top: int) -> None:
    """Tell of rows that stay with another rank."""
    pool = open_standings(frame).pool
    for i in range(begin, top):
        place = ranking.start + i
        if pool.shown[place] > 0 and pool.shown[place] != i + 1:
            tell(frame, r, p, MOVE, pool.entries[pool.slot[place]], i + 1)


@embedded
def enter_rows(frame: Any, ranking: Any, r: int, p: int, begin: int) -> bool:
    """Tell of the rows that are shown and were not, and find out when one of those that are shown will be gone. True
    if there are any."""
    pool = open_standings(frame).pool
    start, top = ranking.start, ranking.shown_count
    entered = False
    soonest = NEVER if begin == 0 else ranking.soonest
    death = NEVER
    for j in range(begin, top, SPAN):
        lanes = lowest(top - j)
        soonest = min(soonest, least(pool.at, start + j, lanes, NEVER))
        entering = lanes & ~above(pool.shown, start + j, 0)
        while entering != 0:
            i = trailing_zeros(entering)
            entering &= entering - 1
            entered = True
            enter(frame, ranking, r, p, start + j + i, j + i + 1)
        if ranking.first_death < NEVER:
            for i in range(j, min(j + SPAN, top)):
                death = min(death, pool.entries[pool.slot[start + i]].until)
    if begin == 0:
        ranking.expiry_point = NEVER
    ranking.soonest = soonest
    move_expiry(ranking, soonest, death)
    return entered


@embedded
def enter(frame: Any, ranking: Any, r: int, p: int, place: int, rank: int) -> None:
    """A row is shown now."""
    arrays = open_standings(frame)
    pool = arrays.pool
    entry = pool.entries[pool.slot[place]]
    if remembers(ranking):
        if put_pair(arrays.seen, r, entry.seq, entry.at):
            arrays.call[0].seen += 1
            tell(frame, r, p, ENTER, entry, rank)
    elif pool.shown[place] == 0 or ranking.emit != ENTRIES:
        tell(frame, r, p, ENTER, entry, rank)
    pool.shown[place] = 1


@kernel
def slot_of(slots: Any, clock: int, id_: int) -> Any:
    """The slot of an id, claimed if it is new there."""
    mask = slots.shape[0] - 1
    place = home_of(0, id_, mask)
    while slots[place].stamp == clock:
        if slots[place].id == id_:
            return slots[place]
        place = (place + 1) & mask
    slot = slots[place]
    slot.stamp = clock
    slot.id = id_
    slot.before = -1
    slot.now = -1
    return slot


@kernel
def show_objects(frame: Any, ranking: Any, r: int, p: int, horizon: int) -> bool:
    """An object is an id: one that stays while its row is replaced neither leaves nor enters."""
    arrays = open_standings(frame)
    pool, slots, call = arrays.pool, arrays.slots, arrays.call[0]
    start, end, emit = ranking.start, ranking.start + ranking.count, ranking.emit
    call.clock += 1
    for j in range(start, end):
        if pool.shown[j] > 0:
            slot_of(slots, call.clock, pool.entries[pool.slot[j]].id).before = j
    top = rank_objects(frame, ranking, p, horizon)
    changed = top != ranking.shown_count
    for j in range(start, end):
        if pool.shown[j] > 0:
            entry = pool.entries[pool.slot[j]]
            if slot_of(slots, call.clock, entry.id).now < 0:
                changed = True
                if emit != ENTRIES:
                    tell(frame, r, p, LEAVE, entry, pool.shown[j])
    for op in (MOVE, ENTER):
        for j in range(start, end):
            rank = pool.beaten[j]
            if rank == 0:
                continue
            entry = pool.entries[pool.slot[j]]
            before = slot_of(slots, call.clock, entry.id).before
            if before < 0:
                changed = True
                if op == ENTER and emit == ENTRIES:
                    if put_pair(arrays.seen, r, entry.id, 0):
                        call.seen += 1
                        tell(frame, r, p, ENTER, entry, rank)
                elif op == ENTER:
                    tell(frame, r, p, ENTER, entry, rank)
            elif before != j or pool.shown[before] != rank:
                changed = True
                if op == MOVE and emit == RANKED:
                    tell(frame, r, p, MOVE, entry, rank)
    ranking.shown_count = top
    pack_objects(frame, ranking, p, horizon)
    return changed


@kernel
def rank_objects(frame: Any, ranking: Any, p: int, horizon: int) -> int:
    """Give the first k ids that are alive their rank, in `beaten`; returns how many there are."""
    arrays = open_standings(frame)
    pool, clock = arrays.pool, arrays.call[0].clock
    top = 0
    for j in range(ranking.start, ranking.start + ranking.count):
        pool.beaten[j] = 0
        if top < ranking.k and pool.at[j] > horizon:
            entry = pool.entries[pool.slot[j]]
            if entry.until > p:
                slot = slot_of(arrays.slots, clock, entry.id)
                if slot.now < 0:
                    top += 1
                    slot.now = j
                    pool.beaten[j] = top
    return top


@kernel
def pack_objects(frame: Any, ranking: Any, p: int, horizon: int) -> None:
    pool = open_standings(frame).pool
    kept = ranking.start
    forget_range(ranking)
    ranking.mixed = 0
    soonest = NEVER
    death = NEVER
    for j in range(ranking.start, ranking.start + ranking.count):
        entry = pool.entries[pool.slot[j]]
        if entry.at > horizon and entry.until > p and not is_below_floor(ranking, entry):
            pool.shown[j] = pool.beaten[j]
            widen(ranking, entry)
            if pool.shown[j] > 0:
                soonest = min(soonest, entry.at)
                death = min(death, entry.until)
            if kept != j:
                move_entry(pool, j, kept)
            kept += 1
    ranking.count = kept - ranking.start
    set_expiry(ranking, soonest, death)


@kernel
def set_expiry(ranking: Any, soonest: int, death: int) -> None:
    """The next point at which an entry that is shown will be gone: of these the oldest is at `soonest`, and the first
    to die does so at `death`."""
    ranking.soonest = soonest
    ranking.expiry_point = NEVER
    move_expiry(ranking, soonest, death)


@embedded
def move_expiry(ranking: Any, soonest: int, death: int) -> None:
    """The same for entries that are shown from now on, beside others."""
    if soonest < NEVER:
        leaves = leaves_at(soonest, ranking.size)
        if leaves < ranking.expiry_point:
            p = point_from(leaves, ranking.slide, ranking.offset, ranking.first)
            ranking.expiry_point = min(ranking.expiry_point, p)
    if death < NEVER:
        ranking.expiry_point = min(ranking.expiry_point, point_of_death(ranking, death, EVER))


@kernel
def show_snapshot(frame: Any, ranking: Any, r: int, p: int) -> None:
    """The whole ranking, or once that it is empty."""
    arrays = open_standings(frame)
    pool = arrays.pool
    if ranking.shown_count == 0 and ranking.was_shown:
        change = arrays.changes[arrays.call[0].filled]
        arrays.call[0].filled += 1
        change.ranking = r
        change.at = p
        change.op = EMPTY
        change.rank = 0
        change.merit = np.nan
        change.seq = -1
        change.time = 0
        change.id = 0
    j = ranking.start
    rank = 0
    while rank < ranking.shown_count:
        if pool.shown[j] > 0:
            rank += 1
            tell(frame, r, p, ROW, pool.entries[pool.slot[j]], rank)
        j += 1
