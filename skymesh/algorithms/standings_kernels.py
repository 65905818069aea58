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
from .frames import F8, I4, I8, opener
from .hash_kernels import PAIR, home_of, put_pair
from .kernel import embedded, inlined, kernel, trailing_zeros
from .point_kernels import horizon_of, leaves_at, pane_of, point_from
from .simd import SPAN, above, add_bits, at_most, fetch, least, ones, shift

LEAVE, MOVE, ENTER, ROW, EMPTY = int(Op.LEAVE), int(Op.MOVE), int(Op.ENTER), int(Op.ROW), int(Op.EMPTY)
RANKED, ENTRIES, SNAPSHOT = int(Emit.RANKED), int(Emit.ENTRIES), int(Emit.SNAPSHOT)
ALL, BEST = int(PerId.ALL), int(PerId.BEST)

UNTOUCHED = 2**31 - 1
ROOM_MIN = 8
ALL_LANES = (1 << SPAN) - 1
AHEAD_MAX = 2**60  # twice that and a position still fit

# What a ranking asks, and where it stands.
RANKING = np.dtype(
    [
        # What most batches look at comes first.
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
        ("was_shown", "i8"),  # whether the last ranking had rows
        ("evaluations", "i8"),
        ("searched", "i8"),  # whether there are row sides to ask, and what follows means something
        ("floor_merit", "f8"),
        ("keep", "i8"),  # how many rows an ask hopes for, at least (so many it wants) and at most
        ("most", "i8"),  # beyond how many rows the floor rises
        ("wake", "i8"),  # deletions show no earlier; see Standings.wait
        ("started", "i8"),  # the last point that was over when the ranking was added
        ("dormant", "i8"),  # whether it has seen no row yet, and holds nothing
        ("floor_at", "i8"),
        ("floor_seq", "i8"),
        ("told_floor", "f8"),  # the merit that row sides know
        ("keep_min", "i8"),
        ("keep_max", "i8"),
        ("most_min", "i8"),  # what `most` is for keep_min
        ("ahead", "i8"),  # how far an ask looks ahead
        ("asked_at", "i8"),
        ("asks", "i8"),
        ("spread", "f8"),  # how far below the floor e times as many rows are thought to reach
        ("unused", "i8", (4,)),  # six lines of memory
    ]
)

LINE = 64  # bytes that memory brings at a time
USED_BYTES = 4 * LINE  # of a ranking: what most batches look at

# How many rankings before its turn what one needs is brought near; three times that for its record.
AHEAD = 4

# A row in a pool.
ENTRY = np.dtype(
    [
        ("merit", "f8"),
        ("at", "i8"),
        ("seq", "i8"),
        ("time", "i8"),
        ("id", "i8"),
        ("until", "i8"),
        ("unused", "i8", (2,)),  # a line of memory
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


# What `shown` says beside ranks: it was shown before the last point; it is to be dropped.
NOT_ANY_MORE, DROPPED = -1, -2

Rankings = Annotated[Any, RANKING, 1]
Entries = Annotated[Any, ENTRY, 1]
ChangeRecords = Annotated[Any, CHANGE, 1]
Slots = Annotated[Any, SLOT, 1]
Pairs = Annotated[Any, PAIR, 1]
Asks = Annotated[Any, ASK, 1]
Calls = Annotated[Any, CALL, 1]


class Pool(NamedTuple):
    """Entries, and what scans of them look at: columns by rank. A ranking has a stretch of all; SPAN are to spare.

    beaten counts rows that will always rank above an entry; of objects it is scratch for the rank that is being made.
    shown is above 0 if it was shown at the last point (where ranks are told, or of objects, it is the rank), -1 if it
    was shown before. slot is where the entry itself is, which never moves: the slots of a stretch are a permutation of
    it, and those beyond the entries are free. Entries that moved with their ranks took half of the time of a batch.
    """

    merit: F8
    at: I8
    beaten: I4
    shown: I4
    slot: I4
    entries: Entries


class StandingArrays(NamedTuple):
    """All that the kernels work on, as a frame hands it over. By ranking, i8: first (and one more) and taken tell where
    its hits are in the inbox and how many of them are in its pool, limits up to where points are shown, quiet up to
    where it need not be looked at without hits, moved whether its floor may not be what row sides know. due i8 has room
    for all rankings; asks are those that fell short, which stand still until they are answered."""

    rankings: Rankings
    pool: Pool
    first: I8
    taken: I8
    quiet: I8
    moved: I8
    due: I8
    inbox: Entries
    limits: I8
    changes: ChangeRecords
    slots: Slots
    seen: Pairs
    asks: Asks
    call: Calls


open_pool = opener(Pool)
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


# -- pools -----------------------------------------------------------------------------------------------------


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


@embedded
def end_entry(ranking: Any, entry: Any, is_shown: bool, until: int, past: int) -> None:
    """An entry that is there already may have been superseded or deleted meanwhile; the earlier end counts."""
    if until < entry.until:
        entry.until = until
        ranking.first_death = min(ranking.first_death, until)
        if is_shown:
            ranking.expiry_point = min(ranking.expiry_point, point_of_death(ranking, until, past))


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


# -- points ----------------------------------------------------------------------------------------------------


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


@kernel
def point_of_death(ranking: Any, until: int, past: int) -> int:
    """The point that first misses a row that is superseded or deleted at `until`, given what is over."""
    x = max(until, ranking.done + 1, past + 1)
    if ranking.slide == 0:
        return max(x, ranking.wake)
    return point_from(x, ranking.slide, ranking.offset, ranking.first)


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


@kernel
def forget_range(ranking: Any) -> None:
    ranking.newest = EVER
    ranking.first_death = NEVER


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


@kernel
def note_ranks(frame: Any, place: int, shown: int, rank: int) -> None:
    """Number entries that are shown."""
    pool = open_standings(frame).pool
    while shown != 0:
        rank += 1
        pool.shown[place + trailing_zeros(shown)] = rank
        shown &= shown - 1


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
        soonest = least(pool.at, start + j, lanes, soonest)
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


# -- floors ----------------------------------------------------------------------------------------------------


@embedded
def falls_short(frame: Any, ranking: Any, p: int) -> bool:
    """Whether rows below the floor, which are not here, may belong to the ranking at point p."""
    if ranking.floor_merit == -np.inf:
        return False
    if min(ranking.expiry_point, ranking.first_death) > p and ranking.shown_count >= ranking.k and not ranking.mixed:
        return False  # what was shown is all there
    alive = 0
    for j in range(0, ranking.count, SPAN):
        lanes = lowest(ranking.count - j)
        alive += ones(lanes & ~gone(frame, ranking, ranking.start + j, lanes, p))
        if alive >= ranking.k:
            return False
    return True


@kernel
def ask_more(frame: Any, ranking: Any, r: int, p: int, limit: int) -> None:
    """Ask for the window that ends at p and what comes after it."""
    windows = (p - ranking.asked_at) // ranking.size
    if windows < 2:
        ranking.keep = min(4 * ranking.keep, ranking.keep_max)
    elif windows > 8:
        ranking.keep = max(ranking.keep >> 1, ranking.keep_min)
    if ranking.most_min < NEVER:
        ranking.most = ranking.keep + (ranking.most_min - ranking.keep_min) * ranking.keep // ranking.keep_min
    ranking.asked_at = p
    ask(frame, ranking, r, p, p, limit)


@kernel
def ask_on(frame: Any, ranking: Any, r: int, limit: int) -> None:
    """Ask for what comes after the last position that an answer covered.

    Rows up to there go into the pool at once, as if they had been there: the next point has to look at them.
    """
    if ranking.slide > 0:
        over = max(ranking.complete, ranking.done)
        p = point_from(over + 1, ranking.slide, ranking.offset, ranking.first)
        ranking.pending_point = min(ranking.pending_point, p)
    ask(frame, ranking, r, ranking.complete + 1, ranking.complete, limit)


@kernel
def ask(frame: Any, ranking: Any, r: int, p: int, known: int, limit: int) -> None:
    """Ask for the windows from p on, of which the pool takes in rows up to `known` at once.

    An answer covers half a window, so that half of the rows before it are in all of its windows and bound it. Each ask
    in a row looks twice as far ahead: windows that are tiny beside a batch would otherwise need one for each of them.
    """
    upto = min(limit, p + ranking.ahead)
    if ranking.ahead >> 3 < ranking.size and ranking.ahead < AHEAD_MAX:
        ranking.ahead *= 2
    ranking.asks += 1
    asks, call = open_standings(frame).asks, open_standings(frame).call[0]
    found = asks[call.asked]
    call.asked += 1
    found.ranking = r
    found.want = ranking.keep_min
    found.guess = guess_floor(frame, ranking, p)
    found.after = horizon_of(p, ranking.size)
    found.upto = max(upto, p)
    found.shared_after = horizon_of(found.upto, ranking.size)
    found.shared_upto = known
    found.complete = upto
    if upto >= limit:
        found.complete = NEVER
        ranking.ahead = ahead_of(ranking.size, ranking.is_time)


@kernel
def guess_floor(frame: Any, ranking: Any, p: int) -> float:
    """The merit that about `keep` rows of the window that ends at p reach, NaN if nothing is known.

    The number of rows above a floor is taken to grow by the same factor with every step down: rows tell how far that
    is. It grows more slowly the farther down, if anything, which makes for a few rows more.
    """
    if not np.isfinite(ranking.floor_merit) or not ranking.spread > 0.0:
        return np.nan
    alive = 1
    for j in range(0, ranking.count, SPAN):
        lanes = lowest(ranking.count - j)
        alive += ones(lanes & ~gone(frame, ranking, ranking.start + j, lanes, p))
    return ranking.floor_merit - max(ranking.spread * np.log(ranking.keep / alive), 0.0)


@kernel
def ahead_of(size: int, is_time: bool) -> int:
    """How far the first ask of a batch looks ahead: half a window, in rows at least a thousand."""
    return size >> 1 if is_time else max(size >> 1, 1024)


@kernel
def raise_floor(frame: Any, ranking: Any, p: int) -> None:
    """Forget the lowest entries once there are many more than a search asks for."""
    if ranking.count > ranking.most:
        drop_dead(frame, ranking, p)
    if ranking.count > ranking.most:
        note_spread(frame, ranking)
        pool = open_standings(frame).pool
        ranking.count = ranking.keep
        set_floor(ranking, pool.entries[pool.slot[ranking.start + ranking.keep - 1]])
        if ranking.room > 4 * ranking.most:
            grow(frame, ranking, 2 * ranking.most)  # what the first rows took, before there was a floor


@kernel
def note_spread(frame: Any, ranking: Any) -> None:
    """Learn how far apart the entries lie that a higher floor cuts off. Of a skyband those k times as many have
    been dropped as e times as many rows would have brought."""
    merit, kept, count = open_standings(frame).pool.merit, ranking.keep, ranking.count
    fall = merit[ranking.start + kept - 1] - merit[ranking.start + count - 1]
    spread = fall / ((count - kept) / ranking.k if ranking.prunes else np.log(count / kept))
    ranking.spread = 0.5 * (ranking.spread + spread) if ranking.spread > 0.0 else spread


@embedded
def raise_floor_between(frame: Any, ranking: Any) -> None:
    """The same between two points, where a batch brings far more than a ranking holds. Rows that are shown stay, below
    the floor if need be: their leave is due at the next point."""
    if not ranking.searched or ranking.count >> 2 <= ranking.most:
        return
    pool = open_standings(frame).pool
    kept = ranking.start + ranking.keep
    set_floor(ranking, pool.entries[pool.slot[kept - 1]])
    for j in range(kept, ranking.start + ranking.count):
        if pool.shown[j] > 0:
            if kept != j:
                move_entry(pool, j, kept)
            kept += 1
    ranking.count = kept - ranking.start
    ranking.mixed = 1
    ranking.touched = 0


@kernel
def changed_floors(frame: Any, out_ranking: Any, out_floor: Any) -> int:
    """Rankings whose floor is not what row sides know: into out_ranking i8[n], out_floor f8[n]; returns how many.
    Touches no others: that saves 3 us for a thousand."""
    arrays = open_standings(frame)
    count = 0
    for r in range(arrays.rankings.shape[0]):
        if arrays.moved[r] == 0:
            continue
        arrays.moved[r] = 0
        ranking = arrays.rankings[r]
        if ranking.live and ranking.searched and ranking.floor_merit != ranking.told_floor:
            out_ranking[count] = r
            out_floor[count] = ranking.floor_merit
            ranking.told_floor = ranking.floor_merit
            count += 1
    return count


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
