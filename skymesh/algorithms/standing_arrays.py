"""What rankings are kept in: records, and the tuples of arrays that kernels take.

Records where a kernel looks at one thing at a time: a helper then gets a pointer where it would get forty arrays by
value, which made up half of the time a row takes to enter a band. Columns where it scans: see Pool.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from .asked import Emit, PerId
from .columns import Op
from .frames import F8, I4, I8, opener
from .hash_kernels import PAIR
from .simd import LINE, SPAN

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
