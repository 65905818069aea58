"""The query side that every algorithm shares: pools of candidates, points, and what changed.

Row sides differ in how they find candidates; what happens then does not. `merge` takes hits, `advance` shows every
point up to a position, `changes` hands out the log. With `prunes`, rows that can never show again are dropped by
dominance, which makes this the k-skyband; without, everything that was sent stays until it leaves its window or dies.

Deletions and late starts in time windows without a slide have no point of their own: they show at the next instant of
the stream, which the row sides know. Such rankings wait in `wake` for it.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from .ask_kernels import ahead_of, changed_floors
from .asked import ALL_ROWS, Asked, Emit, PerId
from .carried_store import CarriedStore
from .columns import EVER, NEVER, NO_HITS, Changes, Floats, Hits, Ints, Objects, Spans, State
from .frames import pack
from .keeping import Keeping
from .pair_table import PairTable
from .point_kernels import pane_of, point_from
from .pool_kernels import repack
from .refill_kernels import refill
from .simd import LINE, SPAN, aligned
from .standing_arrays import (
    ASK,
    CALL,
    CHANGE,
    CHANGES_FULL,
    DONE,
    ENTRY,
    POOL_FULL,
    RANKING,
    SLOT,
    SLOTS_FULL,
    UNTOUCHED,
    Pool,
    StandingArrays,
)
from .standings_kernels import advance, expect, sort_hits

_NONE = np.empty(0, np.int64)
_RANKING, _FILLED, _NEEDED, _SEEN, _CLOCK, _ASKED, _ANSWERED, _USED = range(len(CALL.names or ()))
NOTHING_ASKED = Spans(np.empty(0, np.int32), _NONE, np.empty(0), _NONE, _NONE, _NONE, _NONE)


class Standings:
    """Rankings by number: pools, points and changes of each."""

    def __init__(self, *, prunes: bool, keeping: Keeping | None = None) -> None:
        self._packed: Ints | None = None  # all arrays for a kernel, until one of them is replaced
        self._packed_seen: np.ndarray = _NONE
        self._prunes = prunes
        self._keeping = keeping  # None: row sides send everything that may ever show, and cannot be asked
        self._have(np.zeros(0, RANKING))
        self._pool = _pool_of(0)
        self._changes = np.empty(64, CHANGE)
        self._slots = np.zeros(64, SLOT)
        self._seen = PairTable()  # (ranking, id): told of, where an object is told of once
        self._call = np.zeros(1, CALL)
        self._words = self._call.view(np.int64)  # the same, at a quarter of the price of a field
        self._inbox: list[Hits] = []
        self._past = EVER
        self._carried = CarriedStore()
        self._waiting: dict[int, int] = {}  # ranking: position of a change that has no point of its own
        self._arrived = _NONE  # positions of the rows that came since the last point
        self._dormant = False  # whether a ranking waits for its first row
        self._run_to = EVER, False  # upto, flush
        self._hits = np.empty(64, ENTRY)

    # -- rankings ----------------------------------------------------------------------------------------------

    def add(self, ranking: int, asked: Asked, *, upto: int) -> None:
        """A ranking whose points after `upto` are to be shown."""
        if ranking >= len(self._rankings):
            grown = aligned((max(ranking + 1, 2 * len(self._rankings), 8),), RANKING)
            grown[: len(self._rankings)] = self._rankings
            self._have(grown)
        span = asked.span
        over = max(upto, span.after)
        keeping = self._keeping if asked.k < ALL_ROWS else None
        keep = asked.k if keeping is None else keeping.wanted(asked.k)
        most = NEVER if keeping is None else keeping.most(asked.k)
        for name, value in {
            "live": 1,
            "k": asked.k,
            "size": span.size,
            "slide": span.slide,
            "offset": span.offset,
            "first": span.first,
            "ends": span.until,
            "emit": asked.emit,
            "per_id": asked.per_id,
            "is_time": span.is_time,
            "prunes": self._prunes and asked.per_id == PerId.ALL and asked.k < ALL_ROWS,
            "base": 0,
            "room": 0,
            "start": 0,
            "count": 0,
            "touched": UNTOUCHED,
            "mixed": 0,
            "soonest": NEVER,
            "newest": EVER,
            "first_death": NEVER,
            "shown_count": 0,
            "expiry_point": NEVER,
            "pending_point": NEVER,
            "started": over,
            "done": over,
            "wake": EVER,
            "was_shown": 0,
            "evaluations": 0,
            "searched": keeping is not None,
            "dormant": keeping is not None,
            "floor_merit": -np.inf if keeping is None else np.inf,
            "floor_at": EVER,
            "floor_seq": EVER,
            "told_floor": -np.inf if keeping is None else np.inf,
            "complete": NEVER,
            "keep": keep,
            "keep_min": keep,
            "keep_max": keep if keeping is None else keeping.growth * keep,
            "most": most,
            "most_min": most,
            "ahead": ahead_of(span.size, span.is_time),
            "asked_at": EVER,
            "asks": 0,
            "spread": 0.0,
        }.items():
            self._rankings[name][ranking] = value
        self._quiet[ranking] = EVER
        self._dormant |= keeping is not None

    def _have(self, rankings: np.ndarray) -> None:
        """Take over records of rankings, with room for what kernels note of each."""
        count = len(rankings)
        self._rankings = rankings
        self._first, self._taken = np.empty(count + 2, np.int64), np.empty(count, np.int64)
        self._limits, self._asks = np.empty(count, np.int64), np.empty(count, ASK)
        self._quiet, self._due = np.full(count, EVER), np.empty(count, np.int64)
        self._moved = np.ones(count, np.int64)
        self._packed = None

    def remove(self, ranking: int) -> None:
        record = self._rankings[ranking]
        record["live"] = record["count"] = record["room"] = 0
        self._seen.remove_first(ranking)
        self._waiting.pop(ranking, None)

    # -- hits and points ---------------------------------------------------------------------------------------

    def merge(self, hits: Hits) -> None:
        """Candidates for the points to come; sending one twice does no harm."""
        if len(hits):
            self._inbox.append(hits)

    def expect(self, at: Ints) -> None:
        """Rows at these positions came: said before `advance`. Rankings that hold nothing yet look at the first point
        that sees one.

        A new ranking starts with nothing and asks, instead of taking in all rows of its first window.
        """
        self._arrived = at
        if self._dormant and len(at):
            self._dormant = bool(expect(self._rankings, self._quiet, at))

    def wait(self, ranking: int, position: int) -> None:
        """A change at `position` that makes no instant: it shows at the next one of the stream."""
        if self._rankings["slide"][ranking] == 0:
            self._waiting.setdefault(ranking, position)
            self._rankings["wake"][ranking] = NEVER

    def waiting(self) -> dict[int, int]:
        """The rankings that wait for an instant: at or after which position."""
        return dict(self._waiting)

    def wake(self, ranking: int, instant: int) -> None:
        """The instant at which a waiting ranking shows what changed."""
        record = self._rankings[ranking]
        record["wake"] = instant
        record["pending_point"] = min(record["pending_point"], instant)
        self._quiet[ranking] = EVER

    @property
    def past(self) -> int:
        """All points up to it are over."""
        return self._past

    def advance(self, upto: int, *, flush: bool = False) -> Spans:
        """Show every point up to `upto`; with `flush` also the first one at or after it, where points have a slide.

        Rankings that fall short stand still and ask: `answer` until nobody asks any more.
        """
        self._limits[:] = self._flush_limits(upto) if flush else upto
        self._run_to = upto, flush
        self._sort_inbox()
        return self._go_on()

    def answer(self, hits: list[Hits]) -> Spans:
        """What row sides found for those that asked; their answers may repeat rows that are here."""
        self._inbox += [piece for piece in hits if len(piece)]
        self._sort_inbox()
        largest = int(self._rankings["count"].max() + np.diff(self._first[:-1]).max())
        scratch, marks, times = np.empty(largest, ENTRY), np.empty(largest, np.int32), np.empty(largest, np.int64)
        order, keys = np.empty(2 * largest, np.int64), np.empty(2 * largest)
        while not refill(self._arrays(), scratch, marks, order, keys, times, len(hits) == 1):
            self._repack(int(self._words[_NEEDED]))
        return self._go_on()

    def _go_on(self) -> Spans:
        upto, flush = self._run_to
        self._run()
        if self._words[_ASKED]:
            return self._spans()
        if flush:
            done = self._rankings["done"]
            np.maximum(done, np.where(self._limits > upto, self._limits, EVER), out=done)
        self._past = max(self._past, upto)
        self._arrived = _NONE
        if self._waiting:
            for ranking in [ranking for ranking in self._waiting if self._rankings["wake"][ranking] <= upto]:
                del self._waiting[ranking]
                self._rankings["wake"][ranking] = EVER
        return NOTHING_ASKED

    def _spans(self) -> Spans:
        asks = self._asks[: int(self._words[_ASKED])]
        return Spans(
            asks["ranking"].astype(np.int32),
            *[asks[name].copy() for name in ("want", "guess", "after", "upto", "shared_after", "shared_upto")],
        )

    def recall(self, ranking: int, upto: int) -> None:
        """Rows up to a position that row sides have belong to a ranking: it asks for them before its next point."""
        record = self._rankings[ranking]
        if record["slide"] > 0:
            points = [int(record[name]) for name in ("slide", "offset", "first")]
            record["pending_point"] = point_from(max(upto, int(record["done"])) + 1, *points)
            self._quiet[ranking] = EVER

    def floors(self) -> tuple[Ints, Floats]:
        """Rankings whose floor moved since the last call, and where it is."""
        count = len(self._rankings)
        ranking, floor = np.empty(count, np.int64), np.empty(count, np.float64)
        moved = changed_floors(self._arrays(), ranking, floor)
        return ranking[:moved], floor[:moved]

    def show_deletions(self, touched: Ints) -> Spans:
        """Take deletions in. Where every row is a point they show at once, at the point that is just over."""
        r, at = self._rankings, self._past
        shows = (r["is_time"] == 0) & (r["slide"] == 1) & (r["emit"] != Emit.SNAPSHOT)
        shows &= (r["first"] <= at) & (r["started"] < at) & (at <= r["ends"])
        shown = touched[shows[touched]]
        r["pending_point"][shown] = at
        self._quiet[shown] = EVER
        return self.advance(at)

    def _flush_limits(self, upto: int) -> Ints:
        offset, slide = self._rankings["offset"], np.maximum(self._rankings["slide"], 1)
        covers = (self._rankings["is_time"] == 1) & (self._rankings["slide"] > 0)
        return np.where(covers, offset - ((offset - upto) // slide) * slide, upto)

    def _run(self) -> None:
        words = self._words
        words[_RANKING], words[_SEEN], words[_ASKED] = 0, self._seen.count, 0
        while True:
            status = advance(self._arrays(), self._past, self._arrived)
            self._seen.count = int(words[_SEEN])
            if status == DONE:
                return
            needed = int(words[_NEEDED])
            if status == POOL_FULL:
                self._repack(needed)
            elif status == CHANGES_FULL:
                grown = np.empty(2 * (int(words[_FILLED]) + needed), CHANGE)
                grown[: len(self._changes)] = self._changes
                self._changes = grown
                self._packed = None
            elif status == SLOTS_FULL:
                self._slots = np.zeros(1 << (4 * needed).bit_length(), SLOT)
                self._packed = None
                words[_CLOCK] = 0
            else:
                self._forget_seen()
                self._seen.reserve(needed)

    def _forget_seen(self) -> None:
        """Drop rows that were told of and have left the window. Ids that were told of stay: they may come again."""
        ranking, what, at = self._seen.items()
        records = self._rankings[ranking]
        gone = (records["per_id"] == PerId.ALL) & (records["size"] < NEVER) & (at <= self._past - records["size"])
        if 2 * gone.sum() > len(gone):
            self._seen = PairTable()
            self._seen.put(ranking[~gone], what[~gone], at[~gone])
            self._words[_SEEN] = self._seen.count

    def _sort_inbox(self) -> None:
        """Put the hits that wait into the inbox, by ranking and position."""
        pieces, self._inbox = self._inbox, []
        for piece in pieces:
            if piece.objects.carried is not None:
                rows = np.unique(piece.row).astype(np.int64)
                self._carried.add(piece.objects.seq[rows], piece.objects.carried.take(rows))
        hits = pieces[0] if len(pieces) == 1 else _together(pieces) if pieces else NO_HITS
        if len(hits) > len(self._hits):
            self._hits = np.empty(2 * len(hits), ENTRY)
            self._packed = None
        o = hits.objects
        sort_hits(self._arrays(), hits.ranking, hits.row, hits.merit, hits.until, o.at, o.seq, o.time, o.id)

    def _arrays(self) -> Ints:
        """Everything for a kernel; packed anew only after an array was replaced."""
        if self._packed is None or self._packed_seen is not self._seen.slots:
            self._packed_seen = self._seen.slots
            self._packed = pack(
                StandingArrays(
                    self._rankings,
                    self._pool,
                    self._first,
                    self._taken,
                    self._quiet,
                    self._moved,
                    self._due,
                    self._hits,
                    self._limits,
                    self._changes,
                    self._slots,
                    self._seen.slots,
                    self._asks,
                    self._call,
                )
            )
        return self._packed

    def _repack(self, more: int) -> None:
        """All entries end to end in a new pool, each ranking with the room it has, and as much free behind them."""
        rooms = self._rankings["room"][self._rankings["live"] == 1]
        pool = _pool_of(2 * (int(rooms.sum()) + more))
        self._words[_USED] = repack(self._arrays(), pack(pool))
        self._pool, self._packed = pool, None

    # -- what comes out ----------------------------------------------------------------------------------------

    def changes(self) -> Changes:
        """What was told since the last call. The array itself is handed over: a copy of 720 records takes 10 us."""
        told = self._changes[: int(self._words[_FILLED])]
        self._words[_FILLED] = 0
        if not len(self._carried):
            return Changes.copied(told)
        changes = Changes.copied(told, self._carried.take(told["seq"]))
        if self._carried.wants_packing(int(self._rankings["count"].sum())):
            self._carried.pack(np.unique(self._held()["seq"]))
        return changes

    def result(self, ranking: int) -> Changes:
        """The ranking at its last point."""
        shown = self._entries(ranking)[self._column("shown", ranking) > 0]
        told = np.zeros(len(shown), CHANGE)
        for name in ("merit", "seq", "time", "id"):
            told[name] = shown[name]
        told["ranking"], told["rank"] = ranking, np.arange(1, len(shown) + 1)
        return Changes.copied(told, self._carried.take(shown["seq"]))

    def _entries(self, ranking: int) -> np.ndarray:
        return cast(np.ndarray, self._pool.entries[self._column("slot", ranking)])

    def _column(self, name: str, ranking: int) -> np.ndarray:
        """A column of the pool where the ranking's entries are."""
        start, count = int(self._rankings["start"][ranking]), int(self._rankings["count"][ranking])
        return cast(np.ndarray, getattr(self._pool, name)[start : start + count])

    def _held(self) -> np.ndarray:
        """The entries of all rankings."""
        pieces = [self._entries(int(ranking)) for ranking in np.flatnonzero(self._rankings["live"])]
        return np.concatenate([self._pool.entries[:0], *pieces])

    def ids_held(self) -> Ints:
        """Every id that a ranking holds or has told of and must not tell of again."""
        ranking, what, _ = self._seen.items()
        return np.union1d(self._held()["id"], what[self._rankings["per_id"][ranking] != PerId.ALL])

    def kept(self, ranking: int) -> int:
        """How many entries may show at a later point; dead ones go when their room is needed."""
        record, entries = self._rankings[ranking], self._entries(ranking)
        over = max(int(record["done"]), self._past)
        begins = EVER if record["size"] >= NEVER else over - int(record["size"])
        return int(((entries["at"] > begins) & (entries["until"] > over)).sum())

    def counts(self, ranking: int) -> dict[str, int]:
        """What a ranking did, for `stats`."""
        record = self._rankings[ranking]
        return {"evaluations": int(record["evaluations"]), "searches": int(record["asks"])}

    # -- state -------------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        return {
            "past": self._past,
            "used": int(self._words[_USED]),
            "rankings": self._rankings.copy(),
            "pool": tuple(column.copy() for column in self._pool),
            "seen": self._seen.items(),
            "waiting": dict(self._waiting),
            "carried": self._carried.snapshot(),
        }

    def restore(self, state: State) -> None:
        self._past, self._words[_USED] = state["past"], state["used"]
        self._have(state["rankings"].copy())
        self._pool = _pool_of(len(state["pool"][-1]) - SPAN)
        for column, held in zip(self._pool, state["pool"], strict=True):
            column[:] = held
        self._seen = PairTable()
        self._seen.put(*state["seen"])
        self._waiting = dict(state["waiting"])
        self._carried.restore(state["carried"])
        self._dormant = bool(self._rankings["dormant"].any())

    def check(self) -> None:
        for ranking in np.flatnonzero(self._rankings["live"]):
            record, entries = self._rankings[ranking], self._entries(int(ranking))
            order = np.lexsort((-entries["seq"], -entries["at"], -entries["merit"]))
            assert (order == np.arange(len(entries))).all(), "entries stand in rank order"
            merit, at, beaten, is_shown = (self._column(n, int(ranking)) for n in ("merit", "at", "beaten", "shown"))
            assert (merit == entries["merit"]).all(), "columns say what entries say"
            assert (at == entries["at"]).all(), "columns say what entries say"
            begin, end = int(record["base"]), int(record["base"] + record["room"])
            slots = np.sort(self._pool.slot[begin:end])
            assert (slots == np.arange(begin, end)).all(), "each entry has a slot of its own"
            assert begin <= record["start"], "a ranking begins inside its room"
            assert record["start"] + record["count"] <= end, "a ranking ends inside its room"
            if len(entries):
                assert record["newest"] >= entries["at"].max(), "no entry is newer than the newest"
                assert record["first_death"] <= entries["until"].min(), "no entry dies before the first death"
            floor = [float(record[name]) for name in ("floor_merit", "floor_at", "floor_seq")]
            below = entries[is_shown <= 0]
            assert all([e["merit"], e["at"], e["seq"]] >= floor for e in below), "entries rank at or above the floor"
            shown = entries[is_shown > 0]
            assert len(shown) == record["shown_count"], "as many entries are marked as are shown"
            assert len(shown) == 0 or record["soonest"] <= shown["at"].min(), "no entry that is shown is older"
            if record["prunes"]:
                assert (beaten[is_shown <= 0] < record["k"]).all(), "what k rows beat is dropped"
                window = [int(record[name]) for name in ("size", "slide", "offset", "first")]
                for j, entry in enumerate(entries):
                    after, _ = pane_of(int(entry["at"]), *window)
                    above = int((entries["at"][:j] > after).sum())
                    assert beaten[j] >= above, "a row counts those that rank above it and leave no earlier"


def _pool_of(room: int) -> Pool:
    """A pool with room for so many entries, in one stretch of memory: large ones get large pages, of which a ranking
    touches few."""
    kinds = [np.dtype(kind) for kind in ("f8", "i8", "i4", "i4", "i4", ENTRY)]
    sizes = [kind.itemsize * (room + SPAN) for kind in kinds]
    ends = np.cumsum([size + -size % LINE for size in sizes]).tolist()
    memory = aligned((ends[-1],), np.uint8)
    starts = [0, *ends[:-1]]
    return Pool(*(memory[a : a + n].view(kind) for a, n, kind in zip(starts, sizes, kinds, strict=True)))


def _together(pieces: list[Hits]) -> Hits:
    """Several row sides' hits as one, by position."""

    def joined(columns: list[Any], kind: Any) -> Any:
        return np.concatenate([np.empty(0, kind), *columns])

    objects = [piece.objects for piece in pieces]
    bases = np.cumsum([0] + [len(part) for part in objects])
    row = joined([piece.row + base for piece, base in zip(pieces, bases, strict=False)], np.int64)
    ranking = joined([piece.ranking for piece in pieces], np.int32)
    merit = joined([piece.merit for piece in pieces], np.float64)
    until = joined([piece.until for piece in pieces], np.int64)
    all_objects = Objects(
        at=joined([part.at for part in objects], np.int64),
        seq=joined([part.seq for part in objects], np.int64),
        time=joined([part.time for part in objects], np.int64),
        id=joined([part.id for part in objects], np.int64),
        carried=None,
    )
    order = np.lexsort((all_objects.seq[row], all_objects.at[row]))
    return Hits(ranking[order], row[order].astype(np.int32), merit[order], until[order], all_objects)
