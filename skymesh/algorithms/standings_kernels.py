"""Rankings kept up to date, for all queries in one call a batch.

Each ranking has a pool: entries in rank order (merit, at, seq, each descending) in a stretch of one shared array. Hits
come in by position, and a ranking is looked at only at points where it can differ: where a hit falls due, where an
entry that is shown leaves its window or dies. Work grows with what changes, not with rankings x points.

A pool holds every row of the window that ranks at or above its *floor* (merit, at, seq). Row sides that keep rows send
only what reaches it; a ranking with fewer than k such rows left halts, asks, and goes on when `refill` has the answer.
A floor of -inf means that everything is here: rankings whose row sides keep nothing never ask.

Pruning (the k-skyband of pripuzic-2015, by panes): an entry is beaten by every row that ranks above it and leaves no
earlier. Once k rows beat it, it can never show again and is dropped. Entries that are shown stay until the point that
says so, because their leave row is due there and not before.

State is in arrays of records, not in one array a field: a helper then gets a pointer where it would get forty arrays by
value, which made up half of the time a row takes to enter a band.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from .asked import Emit, PerId
from .columns import EVER, NEVER, Op
from .frames import I8, opener
from .hash_kernels import PAIR, home_of, put_pair
from .kernel import kernel
from .point_kernels import horizon_of, leaves_at, pane_of, point_from

LEAVE, MOVE, ENTER, ROW, EMPTY = int(Op.LEAVE), int(Op.MOVE), int(Op.ENTER), int(Op.ROW), int(Op.EMPTY)
RANKED, ENTRIES, SNAPSHOT = int(Emit.RANKED), int(Emit.ENTRIES), int(Emit.SNAPSHOT)
ALL, BEST = int(PerId.ALL), int(PerId.BEST)

UNTOUCHED = 2**31 - 1
ROOM_MIN = 8
AHEAD_MAX = 2**60  # twice that and a position still fit

# What a ranking asks, and where it stands.
RANKING = np.dtype(
    [
        # What says whether there is anything to do comes first: one line of memory for a ranking that stands still.
        ("live", "i8"),
        ("expiry_point", "i8"),  # next point at which an entry that is shown is gone
        ("pending_point", "i8"),  # next point that sees a hit that is in already
        ("complete", "i8"),  # the floor holds up to here; what came later was not all sent
        ("emit", "i8"),
        ("is_time", "i8"),
        ("done", "i8"),  # the last point that is over
        ("ends", "i8"),  # no point lies after it
        ("k", "i8"),
        ("size", "i8"),
        ("slide", "i8"),
        ("offset", "i8"),
        ("first", "i8"),  # no point lies before it
        ("per_id", "i8"),
        ("prunes", "i8"),
        ("base", "i8"),  # its stretch of the pool: where, room for how many entries; where they begin, how many
        ("room", "i8"),
        ("start", "i8"),
        ("count", "i8"),
        ("touched", "i8"),  # lowest index that changed since the last point
        ("mixed", "i8"),  # whether entries that are shown may lie below the floor
        ("soonest", "i8"),  # no entry that is shown, or came since, is older
        ("newest", "i8"),  # bounds of the entries' at and until
        ("first_death", "i8"),
        ("shown_count", "i8"),
        ("started", "i8"),  # the last point that was over when the ranking was added
        ("wake", "i8"),  # deletions show no earlier; see Standings.wait
        ("was_shown", "i8"),  # whether the last ranking had rows
        ("evaluations", "i8"),
        ("searched", "i8"),  # whether there are row sides to ask, and the fields below mean something
        ("dormant", "i8"),  # whether it has seen no row yet, and holds nothing
        ("floor_merit", "f8"),
        ("floor_at", "i8"),
        ("floor_seq", "i8"),
        ("told_floor", "f8"),  # the merit that row sides know
        ("keep", "i8"),  # how many rows an ask hopes for, at least (so many it wants) and at most
        ("keep_min", "i8"),
        ("keep_max", "i8"),
        ("most", "i8"),  # beyond how many rows the floor rises, and that for keep_min
        ("most_min", "i8"),
        ("ahead", "i8"),  # how far an ask looks ahead
        ("asked_at", "i8"),
        ("asks", "i8"),
        ("spread", "f8"),  # how far below the floor e times as many rows are thought to reach
    ]
)

# A row in a pool. shown is above 0 if it was shown at the last point (of objects it is the rank), -1 if it was shown
# before. beaten counts rows that will always rank above it; of objects it is scratch for the rank that is being made.
ENTRY = np.dtype(
    [
        ("merit", "f8"),
        ("at", "i8"),
        ("seq", "i8"),
        ("time", "i8"),
        ("id", "i8"),
        ("until", "i8"),
        ("beaten", "i4"),
        ("shown", "i4"),
    ]
)

# A row of the change log.
CHANGE = np.dtype(
    [
        ("merit", "f8"),
        ("at", "i8"),
        ("seq", "i8"),
        ("time", "i8"),
        ("id", "i8"),
        ("ranking", "i4"),
        ("rank", "i4"),
        ("op", "i8"),
    ]
)

# A slot of the table of ids of the ranking at hand: valid if its stamp is the clock's; entries before and now, or -1.
SLOT = np.dtype([("id", "i8"), ("stamp", "i8"), ("before", "i8"), ("now", "i8")])

# A ranking that fell short: see Spans.
ASK = np.dtype(
    [
        ("ranking", "i8"),
        ("want", "i8"),
        ("guess", "f8"),
        ("after", "i8"),
        ("upto", "i8"),
        ("shared_after", "i8"),
        ("shared_upto", "i8"),
        ("complete", "i8"),  # what the answer makes of the ranking's field
    ]
)

# The state of a call: the ranking at hand, how many changes there are, how many rows or ids need room, how many pairs
# were seen, the clock of the slots, how many rankings asked, which of them is being answered, and how much of the pool
# is used (what lies before may have holes).
CALL = np.dtype(
    [
        ("ranking", "i8"),
        ("filled", "i8"),
        ("needed", "i8"),
        ("seen", "i8"),
        ("clock", "i8"),
        ("asked", "i8"),
        ("answered", "i8"),
        ("used", "i8"),
    ]
)

# What advance came back for.
DONE, POOL_FULL, CHANGES_FULL, SLOTS_FULL, SEEN_FULL, HALTED = 0, 1, 2, 3, 4, 5


Rankings = Annotated[Any, RANKING, 1]
Entries = Annotated[Any, ENTRY, 1]
ChangeRecords = Annotated[Any, CHANGE, 1]
Slots = Annotated[Any, SLOT, 1]
Pairs = Annotated[Any, PAIR, 1]
Asks = Annotated[Any, ASK, 1]
Calls = Annotated[Any, CALL, 1]


class StandingArrays(NamedTuple):
    """All that the kernels work on, as a frame hands it over: first i8[rankings + 2] and taken i8[rankings] tell where
    the hits of a ranking are in the inbox and how many of them are in its pool, limits i8[rankings] up to where points
    are shown, asks those that fell short, which stand still until they are answered."""

    rankings: Rankings
    pool: Entries
    first: I8
    taken: I8
    inbox: Entries
    limits: I8
    changes: ChangeRecords
    slots: Slots
    seen: Pairs
    asks: Asks
    call: Calls


open_standings = opener(StandingArrays)


# -- hits into the inbox ---------------------------------------------------------------------------------------


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
        hit.beaten = 0
        hit.shown = 0


# -- pools -----------------------------------------------------------------------------------------------------


@kernel
def move_stretch(source: Any, begin: int, target: Any, place: int, count: int) -> None:
    """Copy entries to another place that does not overlap, or lies before."""
    for j in range(count):
        target[place + j] = source[begin + j]


@kernel
def repack(rankings: Any, pool: Any, target: Any) -> int:
    """Put the entries of all rankings end to end into another pool, each with its room; returns where they end."""
    place = 0
    for r in range(rankings.shape[0]):
        ranking = rankings[r]
        if ranking.live:
            move_stretch(pool, ranking.start, target, place, ranking.count)
            ranking.base = place
            ranking.start = place
            place += ranking.room
    return place


@kernel
def has_room(ranking: Any, pool: Any, past: int, call: Any) -> bool:
    """See that one more entry fits behind the others of a ranking. False if the pool is full."""
    if ranking.start + ranking.count < ranking.base + ranking.room:
        return True
    drop_dead(ranking, pool, max(ranking.done, past))
    if 4 * ranking.count >= 3 * ranking.room:
        return grow(ranking, pool, max(2 * ranking.room, ROOM_MIN), call)
    move_stretch(pool, ranking.start, pool, ranking.base, ranking.count)
    ranking.start = ranking.base
    return True


@kernel
def grow(ranking: Any, pool: Any, room: int, call: Any) -> bool:
    """Move the entries of a ranking to the end of the pool, with this much room. False if the pool is full."""
    if call.used + room > pool.shape[0]:
        call.needed = room
        return False
    move_stretch(pool, ranking.start, pool, call.used, ranking.count)
    ranking.base = call.used
    ranking.start = call.used
    ranking.room = room
    call.used += room
    return True


@kernel
def drop_dead(ranking: Any, pool: Any, over: int) -> None:
    """Drop entries that no point after `over` shows, but for those whose leave is due."""
    horizon = horizon_of(over, ranking.size)
    kept = ranking.start
    forget_range(ranking)
    for j in range(ranking.start, ranking.start + ranking.count):
        entry = pool[j]
        lives = entry.at > horizon and entry.until > over and not is_below_floor(ranking, entry)
        if lives or entry.shown > 0:
            if kept != j:
                pool[kept] = entry
            widen(ranking, pool[kept])
            kept += 1
    ranking.count = kept - ranking.start


@kernel
def ranks_below(entry: Any, other: Any) -> bool:
    if entry.merit != other.merit:
        return entry.merit < other.merit
    if entry.at != other.at:
        return entry.at < other.at
    return entry.seq < other.seq


@kernel
def first_below(pool: Any, start: int, count: int, hit: Any) -> int:
    """How many entries rank at or above a hit. Halves by merit alone, without a branch that could be guessed wrong."""
    low = 0
    left = count
    while left > 0:
        half = (left + 1) >> 1
        low += half if pool[start + low + half - 1].merit > hit.merit else 0
        left -= half
    while low < count and not ranks_below(pool[start + low], hit):
        low += 1
    return low


@kernel
def take_in(ranking: Any, pool: Any, hit: Any, past: int) -> None:
    """Put a hit into the pool, unless it is there, or can never show. The pool has room."""
    start, count = ranking.start, ranking.count
    place = first_below(pool, start, count, hit)
    if place > 0 and not ranks_below(hit, pool[start + place - 1]):
        end_entry(ranking, pool[start + place - 1], hit.until, past)
        return
    if is_below_floor(ranking, hit):
        return
    beaten = 0
    if ranking.prunes or ranking.per_id == BEST:
        after, upto = pane_of(hit.at, ranking.size, ranking.slide, ranking.offset, ranking.first)
        if ranking.per_id == BEST:
            if supersede(ranking, pool, place, hit, after, upto):
                return
        else:
            if ranking.newest > after:
                for j in range(start, start + place):
                    beaten += pool[j].at > after
            if beaten >= ranking.k:
                return
            hole, count = beat(pool, start, place, count, upto, ranking.k)
            if hole < start + ranking.count:
                insert_before(ranking, pool, hit, place, hole, count, beaten)
                return
    if ranking.start > ranking.base and 2 * place < count:
        # There is room in front, and fewer entries to move.
        ranking.start -= 1
        for j in range(start, start + place):
            pool[j - 1] = pool[j]
        insert_before(ranking, pool, hit, place, ranking.start + place, count, beaten)
    else:
        insert_before(ranking, pool, hit, place, start + count, count, beaten)


@kernel
def insert_before(ranking: Any, pool: Any, hit: Any, place: int, hole: int, count: int, beaten: int) -> None:
    """Put a hit among `count` entries at `place`; those from there on move up to a hole."""
    j = hole
    while j > ranking.start + place:
        pool[j] = pool[j - 1]
        j -= 1
    pool[j] = hit
    pool[j].beaten = beaten
    ranking.count = count + 1
    ranking.touched = min(ranking.touched, place)
    ranking.soonest = min(ranking.soonest, hit.at)
    widen(ranking, hit)


@kernel
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
def end_entry(ranking: Any, entry: Any, until: int, past: int) -> None:
    """An entry that is there already may have been superseded or deleted meanwhile; the earlier end counts."""
    if until < entry.until:
        entry.until = until
        ranking.first_death = min(ranking.first_death, until)
        if entry.shown > 0:
            ranking.expiry_point = min(ranking.expiry_point, point_of_death(ranking, until, past))


@kernel
def beat(pool: Any, start: int, place: int, count: int, upto: int, k: int) -> tuple[int, int]:
    """Count the new row against the entries below `place` that leave no later; drop those that k rows beat.

    Returns the first hole that this leaves, for others to move into, and how many entries are left. A row in random
    order drops one on average: entries behind that hole stay where they are.
    """
    end = start + count
    hole = end
    for j in range(start + place, end):
        pool[j].beaten += pool[j].at <= upto
        if hole == end and pool[j].beaten >= k and pool[j].shown <= 0:
            hole = j
    if hole == end:
        return end, count
    kept = hole + 1
    for j in range(hole + 1, end):
        if pool[j].beaten >= k and pool[j].shown <= 0:
            continue
        if kept != j:
            pool[kept] = pool[j]
        kept += 1
    return hole, kept - start - 1


@kernel
def supersede(ranking: Any, pool: Any, place: int, hit: Any, after: int, upto: int) -> bool:
    """Of rows with one id only a better or a longer lived one counts. True if the new row cannot; else what it
    outlives dies."""
    for j in range(ranking.start, ranking.start + ranking.count):
        if pool[j].id != hit.id or pool[j].until < NEVER:
            continue
        if j < ranking.start + place:
            if pool[j].at > after:
                return True
        elif pool[j].at <= upto:
            pool[j].until = hit.at
            ranking.first_death = min(ranking.first_death, hit.at)
    return False


# -- points ----------------------------------------------------------------------------------------------------


@kernel
def advance(frame: Any, past: int, arrived: Any) -> int:
    """Take hits in and show every point up to limits[r]. Comes back early for room; call again to go on.

    frame: StandingArrays; past: all points up to it are over; arrived i8[m]: positions of the rows that came,
    ascending.
    """
    rankings, pool, first, taken, inbox, limits, changes, slots, seen, asks, call = open_standings(frame)
    for r in range(call[0].ranking, rankings.shape[0]):
        ranking = rankings[r]
        if not ranking.live:
            continue
        if first[r] + taken[r] == first[r + 1] and next_point(ranking, past) > limits[r] <= ranking.complete:
            continue
        hits = inbox[first[r] : first[r + 1]]
        status = advance_ranking(
            ranking, r, pool, hits, taken, changes, slots, seen, limits[r], past, arrived, asks, call[0]
        )
        if status != DONE and status != HALTED:
            call[0].ranking = r
            return status
    call[0].ranking = 0
    return DONE


@kernel
def expect(rankings: Any, at: Any) -> bool:
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
        p = point_from(at[i], ranking.slide, ranking.offset, ranking.first)
        ranking.pending_point = min(ranking.pending_point, p)
    return waiting


@kernel
def next_point(ranking: Any, past: int) -> int:
    """The next point at which a ranking can differ, leaving hits aside that wait in the inbox."""
    p = min(ranking.expiry_point, ranking.pending_point)
    if ranking.emit == SNAPSHOT and not ranking.is_time:
        over = max(ranking.done, past)
        p = min(p, point_from(over + 1, ranking.slide, ranking.offset, ranking.first))
    return p


@kernel
def point_of_hit(ranking: Any, at: int, past: int) -> int:
    """The point that first sees a row, given what is over."""
    over = max(ranking.done, past)
    if at > over:
        return point_from(at, ranking.slide, ranking.offset, ranking.first)
    if ranking.slide == 0:
        return max(ranking.wake, over + 1)
    return point_from(over + 1, ranking.slide, ranking.offset, ranking.first)


@kernel
def point_of_death(ranking: Any, until: int, past: int) -> int:
    """The point that first misses a row that is superseded or deleted at `until`, given what is over."""
    x = max(until, ranking.done + 1, past + 1)
    if ranking.slide == 0:
        return max(x, ranking.wake)
    return point_from(x, ranking.slide, ranking.offset, ranking.first)


@kernel
def advance_ranking(
    ranking: Any,
    r: int,
    pool: Any,
    hits: Any,
    taken: Any,
    changes: Any,
    slots: Any,
    seen: Any,
    limit: int,
    past: int,
    arrived: Any,
    asks: Any,
    call: Any,
) -> int:
    limit = min(limit, ranking.ends)
    h = taken[r]
    while True:
        p = next_point(ranking, past)
        if h < hits.shape[0]:
            p = min(p, point_of_hit(ranking, hits[h].at, past))
        if min(p, limit) > ranking.complete:
            i = np.searchsorted(arrived, ranking.complete, side="right")
            ranking.complete = arrived[i] - 1 if i < arrived.shape[0] else NEVER  # there are no rows in between
        if min(p, limit) > ranking.complete:
            ask_on(ranking, r, pool, limit, asks, call)
            return HALTED
        if p > limit:
            break
        ranking.pending_point = p  # coming back for room must end at this point, whatever is in by then
        while h < hits.shape[0] and hits[h].at <= p:
            if not has_room(ranking, pool, past, call):
                return POOL_FULL
            take_in(ranking, pool, hits[h], past)
            h += 1
            taken[r] = h
            raise_floor_between(ranking, pool)
        if falls_short(ranking, pool, p):
            ask_more(ranking, r, pool, p, limit, asks, call)
            return HALTED
        status = room_to_show(ranking, changes, slots, seen, call)
        if status != DONE:
            return status
        show(ranking, r, pool, changes, slots, seen, call, p)
        ranking.pending_point = NEVER
        ranking.done = p
        raise_floor(ranking, pool, p)
    while h < hits.shape[0]:
        if not has_room(ranking, pool, past, call):
            return POOL_FULL
        ranking.pending_point = min(ranking.pending_point, point_of_hit(ranking, hits[h].at, past))
        take_in(ranking, pool, hits[h], past)
        h += 1
        taken[r] = h
        raise_floor_between(ranking, pool)
    return DONE


@kernel
def room_to_show(ranking: Any, changes: Any, slots: Any, seen: Any, call: Any) -> int:
    """Whether what one point may tell has room."""
    top = min(ranking.k, ranking.count)
    call.needed = ranking.shown_count + top + 1
    if call.filled + call.needed > changes.shape[0]:
        return CHANGES_FULL
    if ranking.per_id != ALL and 2 * call.needed > slots.shape[0]:
        return SLOTS_FULL
    remembers = ranking.per_id != ALL or ranking.searched
    if remembers and ranking.emit == ENTRIES and 2 * (call.seen + top) > seen.shape[0]:
        return SEEN_FULL
    return DONE


@kernel
def show(ranking: Any, r: int, pool: Any, changes: Any, slots: Any, seen: Any, call: Any, p: int) -> None:
    """The ranking at point p, told against the one before."""
    ranking.evaluations += 1
    horizon = horizon_of(p, ranking.size)
    gone = min(ranking.expiry_point, ranking.first_death) <= p or ranking.soonest <= horizon or ranking.mixed
    every_point = ranking.emit == SNAPSHOT and not ranking.is_time
    if gone or ranking.touched < ranking.k or ranking.per_id == BEST:
        filled = call.filled
        if ranking.per_id != ALL:
            changed = show_objects(ranking, r, pool, changes, slots, seen, call, p, horizon)
        elif gone:
            changed = show_anew(ranking, r, pool, changes, seen, call, p, horizon)
        else:
            changed = show_rows_that_came(ranking, r, pool, changes, seen, call, p)
        if ranking.emit == SNAPSHOT:
            call.filled = filled
            every_point = every_point or changed
    if every_point:
        show_snapshot(ranking, r, pool, changes, call, p)
    ranking.was_shown = ranking.shown_count > 0
    ranking.touched = UNTOUCHED


@kernel
def tell(changes: Any, call: Any, r: int, p: int, op: int, entry: Any, rank: int) -> None:
    """One row of the change log, about an entry."""
    change = changes[call.filled]
    call.filled += 1
    change.ranking = r
    change.at = p
    change.op = op
    change.rank = rank
    change.merit = entry.merit
    change.seq = entry.seq
    change.time = entry.time
    change.id = entry.id


@kernel
def forget_range(ranking: Any) -> None:
    ranking.newest = EVER
    ranking.first_death = NEVER


@kernel
def remembers(ranking: Any) -> bool:
    """Whether only `seen` knows what was told of: a row that falls below the floor is forgotten, and may come back."""
    return ranking.emit == ENTRIES and ranking.searched


@kernel
def show_rows_that_came(ranking: Any, r: int, pool: Any, changes: Any, seen: Any, call: Any, p: int) -> bool:
    """The ranking where each row is an object of its own and none is gone: from the first that came on, those among
    the first k that are new push out as many behind them. True if it changed."""
    start = ranking.start
    top = min(ranking.k, ranking.count)
    entering = 0
    for i in range(ranking.touched, top):
        entering += pool[start + i].shown <= 0
    if entering == 0:
        return False
    stayed = top - entering
    rank = stayed
    left = ranking.shown_count - stayed
    j = max(top, ranking.touched)
    while left > 0 and j < ranking.count:
        entry = pool[start + j]
        if entry.shown > 0:
            rank += 1
            left -= 1
            leave(ranking, r, changes, call, p, entry, rank)
            if ranking.prunes and entry.beaten >= ranking.k:
                drop_entry(ranking, pool, j)
                j -= 1
        j += 1
    if ranking.emit == RANKED:
        rank = ranking.touched
        for i in range(ranking.touched, top):
            if pool[start + i].shown > 0:
                rank += 1
                if rank != i + 1:
                    tell(changes, call, r, p, MOVE, pool[start + i], i + 1)
    soonest = NEVER
    death = NEVER
    for i in range(ranking.touched, top):
        entry = pool[start + i]
        if entry.shown <= 0:
            enter(ranking, r, changes, seen, call, p, entry, i + 1)
            death = min(death, entry.until)
            soonest = min(soonest, entry.at)
    ranking.shown_count = top
    move_expiry(ranking, soonest, death)
    return True


@kernel
def show_anew(ranking: Any, r: int, pool: Any, changes: Any, seen: Any, call: Any, p: int, horizon: int) -> bool:
    """The same where some of the rows may be gone. Looks no further than at the rows that are shown or were: what is
    dead below them is dropped when room is needed."""
    filled = call.filled
    top = leave_rows(ranking, r, pool, changes, call, p, horizon)
    changed = top != ranking.shown_count or call.filled > filled
    ranking.mixed = 0
    start = ranking.start
    if ranking.emit == RANKED:
        for i in range(top):
            entry = pool[start + i]
            if entry.shown > 0 and entry.shown != i + 1:
                tell(changes, call, r, p, MOVE, entry, i + 1)
    soonest = NEVER
    death = NEVER
    for i in range(top):
        entry = pool[start + i]
        soonest = min(soonest, entry.at)
        death = min(death, entry.until)
        if entry.shown <= 0:
            changed = True
            enter(ranking, r, changes, seen, call, p, entry, i + 1)
        entry.shown = 1
    ranking.shown_count = top
    set_expiry(ranking, soonest, death)
    return changed


@kernel
def leave(ranking: Any, r: int, changes: Any, call: Any, p: int, entry: Any, rank: int) -> None:
    """A row is not shown any more, which had this rank."""
    if ranking.emit == ENTRIES:
        entry.shown = 0 if remembers(ranking) else -1
    else:
        tell(changes, call, r, p, LEAVE, entry, rank)
        entry.shown = 0


@kernel
def enter(ranking: Any, r: int, changes: Any, seen: Any, call: Any, p: int, entry: Any, rank: int) -> None:
    """A row is shown now."""
    if remembers(ranking):
        if put_pair(seen, r, entry.seq, entry.at):
            call.seen += 1
            tell(changes, call, r, p, ENTER, entry, rank)
    elif entry.shown == 0 or ranking.emit != ENTRIES:
        tell(changes, call, r, p, ENTER, entry, rank)
    entry.shown = 1


@kernel
def drop_entry(ranking: Any, pool: Any, j: int) -> None:
    """Take one entry out; those behind it move up."""
    for i in range(ranking.start + j + 1, ranking.start + ranking.count):
        pool[i - 1] = pool[i]
    ranking.count -= 1


@kernel
def leave_rows(ranking: Any, r: int, pool: Any, changes: Any, call: Any, p: int, horizon: int) -> int:
    """Tell of rows that leave, and drop what is dead among the rows that are shown or were. Returns how many rows are
    to be shown: they stand at the front of the pool, those that stay with the rank they had."""
    start, end, k = ranking.start, ranking.start + ranking.count, ranking.k
    rank = 0
    alive = 0
    dead = 0
    j = start
    while j < end and (alive < k or rank < ranking.shown_count):
        entry = pool[j]
        lives = entry.at > horizon and entry.until > p
        if entry.shown > 0:
            rank += 1
            entry.shown = rank
            if alive >= k or not lives:
                leave(ranking, r, changes, call, p, entry, rank)
        if not lives or is_below_floor(ranking, entry) or (alive >= k and ranking.prunes and entry.beaten >= k):
            entry.until = EVER
            dead += 1
        else:
            alive += 1
        j += 1
    if dead > 0:
        # Those that live move up to the others.
        place = j
        while j > start:
            j -= 1
            if pool[j].until > EVER:
                place -= 1
                if place != j:
                    pool[place] = pool[j]
        ranking.start += dead
        ranking.count -= dead
    return min(alive, k)


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
def show_objects(
    ranking: Any, r: int, pool: Any, changes: Any, slots: Any, seen: Any, call: Any, p: int, horizon: int
) -> bool:
    """An object is an id: one that stays while its row is replaced neither leaves nor enters."""
    start, end, emit = ranking.start, ranking.start + ranking.count, ranking.emit
    call.clock += 1
    for j in range(start, end):
        if pool[j].shown > 0:
            slot_of(slots, call.clock, pool[j].id).before = j
    top = rank_objects(ranking, pool, slots, call.clock, p, horizon)
    changed = top != ranking.shown_count
    for j in range(start, end):
        if pool[j].shown > 0 and slot_of(slots, call.clock, pool[j].id).now < 0:
            changed = True
            if emit != ENTRIES:
                tell(changes, call, r, p, LEAVE, pool[j], pool[j].shown)
    for op in (MOVE, ENTER):
        for j in range(start, end):
            rank = pool[j].beaten
            if rank == 0:
                continue
            before = slot_of(slots, call.clock, pool[j].id).before
            if before < 0:
                changed = True
                if op == ENTER and emit == ENTRIES:
                    if put_pair(seen, r, pool[j].id, 0):
                        call.seen += 1
                        tell(changes, call, r, p, ENTER, pool[j], rank)
                elif op == ENTER:
                    tell(changes, call, r, p, ENTER, pool[j], rank)
            elif before != j or pool[before].shown != rank:
                changed = True
                if op == MOVE and emit == RANKED:
                    tell(changes, call, r, p, MOVE, pool[j], rank)
    ranking.shown_count = top
    pack_objects(ranking, pool, p, horizon)
    return changed


@kernel
def rank_objects(ranking: Any, pool: Any, slots: Any, clock: int, p: int, horizon: int) -> int:
    """Give the first k ids that are alive their rank, in `beaten`; returns how many there are."""
    top = 0
    for j in range(ranking.start, ranking.start + ranking.count):
        entry = pool[j]
        entry.beaten = 0
        if top < ranking.k and entry.at > horizon and entry.until > p:
            slot = slot_of(slots, clock, entry.id)
            if slot.now < 0:
                top += 1
                slot.now = j
                entry.beaten = top
    return top


@kernel
def pack_objects(ranking: Any, pool: Any, p: int, horizon: int) -> None:
    kept = ranking.start
    forget_range(ranking)
    ranking.mixed = 0
    soonest = NEVER
    death = NEVER
    for j in range(ranking.start, ranking.start + ranking.count):
        if pool[j].at > horizon and pool[j].until > p and not is_below_floor(ranking, pool[j]):
            pool[j].shown = pool[j].beaten
            if kept != j:
                pool[kept] = pool[j]
            widen(ranking, pool[kept])
            if pool[kept].shown > 0:
                soonest = min(soonest, pool[kept].at)
                death = min(death, pool[kept].until)
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


@kernel
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
def show_snapshot(ranking: Any, r: int, pool: Any, changes: Any, call: Any, p: int) -> None:
    """The whole ranking, or once that it is empty."""
    if ranking.shown_count == 0 and ranking.was_shown:
        change = changes[call.filled]
        call.filled += 1
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
        if pool[j].shown > 0:
            rank += 1
            tell(changes, call, r, p, ROW, pool[j], rank)
        j += 1


# -- floors ----------------------------------------------------------------------------------------------------


@kernel
def falls_short(ranking: Any, pool: Any, p: int) -> bool:
    """Whether rows below the floor, which are not here, may belong to the ranking at point p."""
    if ranking.floor_merit == -np.inf:
        return False
    if min(ranking.expiry_point, ranking.first_death) > p and ranking.shown_count >= ranking.k and not ranking.mixed:
        return False  # what was shown is all there
    horizon = horizon_of(p, ranking.size)
    alive = 0
    for j in range(ranking.start, ranking.start + ranking.count):
        alive += pool[j].at > horizon and pool[j].until > p and not is_below_floor(ranking, pool[j])
        if alive == ranking.k:
            return False
    return True


@kernel
def ask_more(ranking: Any, r: int, pool: Any, p: int, limit: int, asks: Any, call: Any) -> None:
    """Ask for the window that ends at p and what comes after it."""
    windows = (p - ranking.asked_at) // ranking.size
    if windows < 2:
        ranking.keep = min(4 * ranking.keep, ranking.keep_max)
    elif windows > 8:
        ranking.keep = max(ranking.keep >> 1, ranking.keep_min)
    if ranking.most_min < NEVER:
        ranking.most = ranking.keep + (ranking.most_min - ranking.keep_min) * ranking.keep // ranking.keep_min
    ranking.asked_at = p
    ask(ranking, r, pool, p, p, limit, asks, call)


@kernel
def ask_on(ranking: Any, r: int, pool: Any, limit: int, asks: Any, call: Any) -> None:
    """Ask for what comes after the last position that an answer covered.

    Rows up to there go into the pool at once, as if they had been there: the next point has to look at them.
    """
    if ranking.slide > 0:
        over = max(ranking.complete, ranking.done)
        p = point_from(over + 1, ranking.slide, ranking.offset, ranking.first)
        ranking.pending_point = min(ranking.pending_point, p)
    ask(ranking, r, pool, ranking.complete + 1, ranking.complete, limit, asks, call)


@kernel
def ask(ranking: Any, r: int, pool: Any, p: int, known: int, limit: int, asks: Any, call: Any) -> None:
    """Ask for the windows from p on, of which the pool takes in rows up to `known` at once.

    An answer covers half a window, so that half of the rows before it are in all of its windows and bound it. Each ask
    in a row looks twice as far ahead: windows that are tiny beside a batch would otherwise need one for each of them.
    """
    upto = min(limit, p + ranking.ahead)
    if ranking.ahead >> 3 < ranking.size and ranking.ahead < AHEAD_MAX:
        ranking.ahead *= 2
    ranking.asks += 1
    found = asks[call.asked]
    call.asked += 1
    found.ranking = r
    found.want = ranking.keep_min
    found.guess = guess_floor(ranking, pool, p)
    found.after = horizon_of(p, ranking.size)
    found.upto = max(upto, p)
    found.shared_after = horizon_of(found.upto, ranking.size)
    found.shared_upto = known
    found.complete = upto
    if upto >= limit:
        found.complete = NEVER
        ranking.ahead = ahead_of(ranking.size, ranking.is_time)


@kernel
def guess_floor(ranking: Any, pool: Any, p: int) -> float:
    """The merit that about `keep` rows of the window that ends at p reach, NaN if nothing is known.

    The number of rows above a floor is taken to grow by the same factor with every step down: rows tell how far that
    is. It grows more slowly the farther down, if anything, which makes for a few rows more.
    """
    if not np.isfinite(ranking.floor_merit) or not ranking.spread > 0.0:
        return np.nan
    horizon = horizon_of(p, ranking.size)
    alive = 1
    for j in range(ranking.start, ranking.start + ranking.count):
        alive += pool[j].at > horizon and pool[j].until > p and not is_below_floor(ranking, pool[j])
    return ranking.floor_merit - max(ranking.spread * np.log(ranking.keep / alive), 0.0)


@kernel
def ahead_of(size: int, is_time: bool) -> int:
    """How far the first ask of a batch looks ahead: half a window, in rows at least a thousand."""
    return size >> 1 if is_time else max(size >> 1, 1024)


@kernel
def raise_floor(ranking: Any, pool: Any, p: int) -> None:
    """Forget the lowest entries once there are many more than a search asks for."""
    if ranking.count > ranking.most:
        drop_dead(ranking, pool, p)
    if ranking.count > ranking.most:
        note_spread(ranking, pool)
        ranking.count = ranking.keep
        set_floor(ranking, pool[ranking.start + ranking.keep - 1])


@kernel
def note_spread(ranking: Any, pool: Any) -> None:
    """Learn how far apart the entries lie that a higher floor cuts off. Of a skyband those k times as many have
    been dropped as e times as many rows would have brought."""
    kept, count = ranking.keep, ranking.count
    fall = pool[ranking.start + kept - 1].merit - pool[ranking.start + count - 1].merit
    spread = fall / ((count - kept) / ranking.k if ranking.prunes else np.log(count / kept))
    ranking.spread = 0.5 * (ranking.spread + spread) if ranking.spread > 0.0 else spread


@kernel
def raise_floor_between(ranking: Any, pool: Any) -> None:
    """The same between two points, where a batch brings far more than a ranking holds. Rows that are shown stay, below
    the floor if need be: their leave is due at the next point."""
    if not ranking.searched or ranking.count >> 2 <= ranking.most:
        return
    kept = ranking.start + ranking.keep
    set_floor(ranking, pool[kept - 1])
    for j in range(kept, ranking.start + ranking.count):
        if pool[j].shown > 0:
            pool[kept] = pool[j]
            kept += 1
    ranking.count = kept - ranking.start
    ranking.mixed = 1
    ranking.touched = 0


@kernel
def changed_floors(rankings: Any, out_ranking: Any, out_floor: Any) -> int:
    """Rankings whose floor is not what row sides know: into out_ranking i8[n], out_floor f8[n]; returns how many."""
    count = 0
    for r in range(rankings.shape[0]):
        ranking = rankings[r]
        if ranking.live and ranking.searched and ranking.floor_merit != ranking.told_floor:
            out_ranking[count] = r
            out_floor[count] = ranking.floor_merit
            ranking.told_floor = ranking.floor_merit
            count += 1
    return count


@kernel
def refill(frame: Any, scratch: Any, order: Any, keys: Any, times: Any, is_alone: bool) -> bool:
    """Put answers into the pools of the rankings that asked. False if the pool lacks room: make it and call again.

    The inbox holds the answers by ranking, in any order. What lies beyond the positions that a pool takes in at once
    stays there, by position, and `taken` says where that begins. scratch ENTRY and times i8 have room for the
    largest answer and pool together, order i8 and keys f8 for twice as many; is_alone: all come from one row side;
    frame: StandingArrays.
    """
    rankings, pool, first, taken, inbox, _, _, _, _, asks, call = open_standings(frame)
    for a in range(call[0].answered, call[0].asked):
        r = asks[a].ranking
        ranking = rankings[r]
        call[0].answered = a
        call[0].ranking = r
        needed = ranking.count + first[r + 1] - first[r]
        if ranking.room < needed and not grow(ranking, pool, max(2 * ranking.room, needed), call[0]):
            return False
        hits = inbox[first[r] : first[r + 1]]
        found = hits.shape[0]
        sort_order(hits, order, keys, found, True)
        found = cut_at_floor(ranking, hits, order, asks[a], is_alone)
        later = set_later_aside(hits, order, found, asks[a].shared_upto, scratch)
        count = merge_pool(ranking, pool, hits, order, found - later, scratch)
        aside = scratch[scratch.shape[0] - later :]
        sort_order(aside, order, keys, later, False)
        taken[r] = hits.shape[0] - later
        for j in range(later):
            hits[taken[r] + j] = aside[order[j]]
        take_over(ranking, pool, scratch, count, times)
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
def merge_pool(ranking: Any, pool: Any, hits: Any, order: Any, found: int, scratch: Any) -> int:
    """Merge the pool's entries and an answer into scratch, in rank order; returns how many there are.

    The answer has all that counts. Of the pool it needs the marks of rows that are shown, and the rows that are shown
    and gone, since their leave is still due.
    """
    count = 0
    j, end = ranking.start, ranking.start + ranking.count
    for h in range(found):
        hit = hits[order[h]]
        while j < end and ranks_below(hit, pool[j]):
            if pool[j].shown > 0:
                scratch[count] = pool[j]
                count += 1
            j += 1
        scratch[count] = hit
        if j < end and not ranks_below(pool[j], hit):
            scratch[count] = pool[j]
            scratch[count].until = min(pool[j].until, hit.until)
            j += 1
        count += 1
    while j < end:
        if pool[j].shown > 0:
            scratch[count] = pool[j]
            count += 1
        j += 1
    return count


@kernel
def take_over(ranking: Any, pool: Any, entries: Any, count: int, times: Any) -> None:
    """Make entries the pool, with new counts of what beats them."""
    forget_range(ranking)
    ranking.start = ranking.base
    kept = 0
    for j in range(count):
        entry = entries[j]
        if ranking.prunes:
            times[j] = entry.at
            after, _ = pane_of(entry.at, ranking.size, ranking.slide, ranking.offset, ranking.first)
            beaten = 0
            for i in range(j):
                beaten += times[i] > after
            entry.beaten = beaten
            if beaten >= ranking.k and entry.shown <= 0:
                continue
        pool[ranking.start + kept] = entry
        widen(ranking, entry)
        ranking.soonest = min(ranking.soonest, entry.at)
        kept += 1
    ranking.count = kept
    ranking.touched = 0
