"""The contract of an algorithm, and the composition that makes one out of its two sides.

An algorithm serves a *group* of queries over one stream, in one kind of order (rows or time), and has two sides that
meet only in columns. The **row side** takes rows and finds candidates (`Hits`); the **query side** keeps what each
ranking holds and tells what changes at every point due (`Standings`; all algorithms here share it). `advance` drives
both in this process; a mesh puts row sides and query sides into different ones.

    RowSide   add(slot, asked)  register(slot, value, ranking)  remove(slot)
              insert(rows, upto, flush) -> Hits    rows that may be in a ranking at some point up to `upto`
              delete(ids, at, upto) -> Hits        rows that die at `at`, with until, and what takes their place
              recall(slot, rows) -> Hits           rows from before a query's start
              forget(upto)                         all points up to `upto` are over
              first_instant, last_instant          see instants.py
              snapshot  restore  check
              those that keep rows and send only what reaches a floor:
              reach(rankings, floors)              from now on send rows with merit >= floor, -inf: everything
              search(spans) -> Hits                what rankings ask for that fall short

    QuerySide add(ranking, asked, upto)  remove(ranking)  recall(ranking, upto)  merge(hits)
              advance(upto, flush) -> Spans        those that fall short stand still and ask, the others finish
              answer(hits) -> Spans                go on with what was found
              floors()  changes()  result(ranking)  snapshot  restore  check

Several row sides may hold a random split of the rows, by id where `latest` or deletions need it: each sends what is
among its own best, and the union of local bests holds the best of all. An ask takes one round however many sides there
are: each returns its rows that rank at or above its own `want`-th best of the shared span, the `want`-th best of all
ranks no lower, so the union has every row down to there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..queries import AnyQuery, Stream
from .asked import ALL_ROWS, Asked
from .boxes import Axis
from .columns import EVER, NEVER, Changes, Floats, Hits, Ints, Rows, Spans, State
from .instants import Instants
from .keeping import Keeping
from .questions import Questions
from .standings import Standings

Split = Callable[[Rows], Ints]


class RowSide(ABC):
    """Rows in, candidates out."""

    def __init__(self) -> None:
        self.questions = Questions()
        self._instants = Instants()
        self._without_slide = 0  # how many queries need instants
        self._complete_after = EVER  # of the rows beyond it that arrived a side that keeps rows has all

    def add(self, slot: int, asked: Asked) -> None:
        self.questions.add(slot, asked)
        self._without_slide += asked.span.slide == 0

    def register(self, slot: int, value: int, ranking: int) -> None:
        self.questions.register(slot, value, ranking)

    def remove(self, slot: int) -> None:
        self._without_slide -= self.questions.asked[slot].span.slide == 0
        self.questions.remove(slot)

    @abstractmethod
    def insert(self, rows: Rows, upto: int, *, flush: bool = False) -> Hits:
        """Rows that may be in a ranking at some point up to `upto` (with flush: and the first one after it)."""

    @abstractmethod
    def recall(self, slot: int, rows: Rows) -> Hits:
        """Rows from before the query was added, for that query alone."""

    def delete(self, ids: Ints, at: int, upto: int) -> Hits:
        """Rows of these ids die at `at`; `upto` is the last position that is over."""
        raise NotImplementedError(f"{type(self).__name__} serves no deletions, and its algorithm says so")

    def reach(self, rankings: Ints, floors: Floats) -> None:
        """From now on send rows to these rankings only if their merit is at least the floor."""
        raise NotImplementedError(f"{type(self).__name__} sends everything, and its rankings have no floor")

    def search(self, spans: Spans) -> Hits:
        """The rows that rankings ask for which fall short; see Spans."""
        raise NotImplementedError(f"{type(self).__name__} sends everything, so nobody asks")

    def begin(self, upto: int) -> None:
        """Rows up to a position have passed before this side was there."""
        self._complete_after = upto

    def learn(self, domains: Sequence[Axis | None]) -> None:  # noqa: B027 - most sides have no use for it
        """Domains of attributes that were not declared are known from now on."""

    def covers(self, asked: Asked, upto: int) -> bool:
        """Whether the rows that a new query looks back on are all here: then it asks for them."""
        if asked.k >= ALL_ROWS or asked.span.slide == 0:
            return False  # it takes in rows as they come and never asks, or needs instants that were not noted
        begins = EVER if asked.span.size >= NEVER else upto - asked.span.size
        return max(begins, asked.span.after) >= self._complete_after

    def rows_per_part(self) -> int:
        """How many rows to give at a time, where the memory for a batch grows with rows x queries."""
        return 2**31

    def forget(self, upto: int) -> None:
        """All points up to `upto` are over: drop what no later point can need."""
        self._complete_after = max(self._complete_after, self.questions.horizon(upto))
        if self._without_slide:
            self._instants.forget(self._instant_horizon(upto))

    def ids_held(self) -> Ints:
        """The ids of rows that are held here."""
        return np.empty(0, np.int64)

    def note_instants(self, rows: Rows) -> None:
        if self._without_slide:
            self._instants.add(rows.at)

    def recall_instants(self, rows: Rows) -> None:
        if self._without_slide:
            self._instants.recall(rows.at)

    def first_instant(self, position: int, size: int, since: int) -> int:
        return self._instants.first(position, size, since)

    def last_instant(self, position: int, size: int, since: int) -> int:
        return self._instants.last(position, size, since)

    def _instant_horizon(self, upto: int) -> int:
        """A query that ends below `upto` still has to say which of its points was the last."""
        wanted = self.questions.wanted
        wanted = wanted[(wanted["live"] == 1) & (wanted["slide"] == 0)]
        sizes = np.where(wanted["size"] < NEVER, wanted["size"], 0)
        return int((np.minimum(wanted["until"], upto) - sizes).min())

    def snapshot(self) -> State:
        return {
            "instants": self._instants.snapshot(),
            "unscored": self.questions.wanted["unscored"].copy(),
            "complete_after": self._complete_after,
        }

    def restore(self, state: State) -> None:
        self._instants.restore(state["instants"])
        self.questions.wanted["unscored"][:] = state["unscored"]
        self._complete_after = state["complete_after"]

    @abstractmethod
    def check(self) -> None:
        """Raise AssertionError where an invariant does not hold."""


@dataclass
class _Standing:
    """A query as the composition keeps it."""

    asked: Asked
    rankings: dict[int, int]  # group value (0 without groups): ranking
    started: int  # all points up to it were over when it was added
    instants_since: int  # rows up to it make no instants for the query
    flushed: int = EVER  # a point beyond `upto` that a flush gave already
    missed: int = 0


class Algorithm(ABC):
    """A group of queries over one stream, in one order."""

    name: ClassVar[str]
    summary: ClassVar[str]
    prunes: ClassVar[bool]  # whether its rankings drop what dominance rules out
    keeps_rows: ClassVar[bool]  # whether it holds the rows of the window, so that late starters need their own
    splits: ClassVar[bool] = True  # whether it may have several row sides
    links: ClassVar[bool] = False  # whether `latest` and deletions make it link rows of one id, at a cost
    keeping: ClassVar[Keeping | None] = None  # how much its rankings hold, where row sides can be asked for more

    def __init__(self, *, is_time: bool, sides: int = 1, split: Split | None = None, **options: Any) -> None:
        assert sides == 1 or self.splits, f"{self.name} works on all rows in one place"
        self.is_time = is_time
        self.is_late = False  # made for one query that started with rows from before
        self._options = options
        self._row_sides = [self.make_row_side(alone=sides == 1) for _ in range(sides)]
        self._query_side = Standings(prunes=self.prunes, keeping=options.get("keeping", self.keeping))
        self._split = split
        self._queries: dict[int, _Standing] = {}
        self._free_slots: list[int] = []
        self._free_rankings: list[int] = []
        self._slot_of_ranking: dict[int, int] = {}
        self._slot_count = 0
        self._ranking_count = 0
        self._upto = EVER
        self._flushed = EVER  # the last point that a flush gave to any of the queries

    # -- what an algorithm defines -----------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def refusal(cls, query: AnyQuery, stream: Stream) -> str | None:
        """Why this algorithm does not serve the query, or None."""

    @abstractmethod
    def make_row_side(self, *, alone: bool) -> RowSide:
        """A row side. `alone`: it sees all rows and its query side is in the same process."""

    # -- queries -----------------------------------------------------------------------------------------------

    def add(self, asked: Asked, upto: int, *, register: bool = True) -> int:
        """A query from now on; all points up to `upto` are over. Returns its slot."""
        if self._slot_count == 0:
            for side in self._row_sides:
                side.begin(upto if upto > 0 or self.is_time else EVER)
        self._upto = max(self._upto, upto)
        slot = self._free_slots.pop() if self._free_slots else self._slot_count
        self._slot_count = max(self._slot_count, slot + 1)
        self._queries[slot] = _Standing(asked, {}, upto, upto)
        for side in self._row_sides:
            side.add(slot, asked)
        if register and not asked.is_grouped:
            self.register(slot, 0)
        return slot

    def covers(self, asked: Asked, upto: int) -> bool:
        """Whether the rows that a new query looks back on are all here."""
        return all(side.covers(asked, upto) for side in self._row_sides)

    def learn(self, domains: Sequence[Axis | None]) -> None:
        """Domains of attributes that were not declared are known from now on."""
        for side in self._row_sides:
            side.learn(domains)

    def recall(self, slot: int, history: Rows | None) -> None:
        """Rows from before the query was added; they show at the next point. None: they are all here."""
        if history is not None:
            for side, part in zip(self._row_sides, self._parts(history), strict=True):
                side.recall_instants(part)
                self._query_side.merge(side.recall(slot, part))
        standing = self._queries[slot]
        standing.instants_since = EVER
        for ranking in standing.rankings.values():
            self._query_side.wait(ranking, self._upto + 1)
            if self.keeping is not None and self._upto > EVER:
                self._query_side.recall(ranking, self._upto)
        self._query_side.advance(self._upto)  # takes in what was recalled; no point is due

    def register(self, slot: int, value: int) -> int:
        """A new ranking of a query: for a group value, or its only one."""
        ranking = self._free_rankings.pop() if self._free_rankings else self._ranking_count
        self._ranking_count = max(self._ranking_count, ranking + 1)
        standing = self._queries[slot]
        standing.rankings[value] = ranking
        self._slot_of_ranking[ranking] = slot
        self._query_side.add(ranking, standing.asked, upto=max(self._upto, standing.flushed))
        for side in self._row_sides:
            side.register(slot, value, ranking)
        return ranking

    def rankings(self, slot: int) -> list[int]:
        return list(self._queries[slot].rankings.values())

    def remove(self, slot: int) -> None:
        for side in self._row_sides:
            side.remove(slot)
        for ranking in self._queries.pop(slot).rankings.values():
            self._query_side.remove(ranking)
            self._free_rankings.append(ranking)
        self._free_slots.append(slot)

    # -- rows and points ---------------------------------------------------------------------------------------

    def advance(self, rows: Rows, upto: int, *, flush: bool = False) -> Changes:
        """Take rows in and give the changes at every point up to `upto`, with flush also the point that covers it."""
        count = len(rows)
        start = 0
        while True:
            stop = min(start + self._rows_per_part(), count)
            if 0 < stop < count:
                # Rows with one position stay together: what a ranking asks for ends at a position, and a row beyond it
                # that came already would be neither in the answer nor sent again.
                stop = int(np.searchsorted(rows.at, rows.at[stop - 1], side="right"))
            # Until the last part, points are complete only before the first row that is still to come.
            reached = upto if stop == count else int(rows.at[stop]) - 1
            self._advance(rows.span(start, stop), reached, flush=flush and stop == count)
            if stop == count:
                return self._query_side.changes()
            start = stop

    def _rows_per_part(self) -> int:
        return min(side.rows_per_part() for side in self._row_sides)

    def _advance(self, rows: Rows, upto: int, *, flush: bool) -> None:
        self._count_missed(rows)
        for side, part in zip(self._row_sides, self._parts(rows), strict=True):
            side.note_instants(part)
            self._query_side.merge(side.insert(part, upto, flush=flush))
        self._query_side.expect(rows.at)
        self._wake(upto)
        self._answer(self._query_side.advance(upto, flush=flush))
        self._upto = max(self._upto, upto)
        if flush:
            self._note_flush(upto)
        for side in self._row_sides:
            side.forget(upto)

    def _answer(self, spans: Spans) -> None:
        """Answer rankings that fall short until none does, then tell row sides where the floors are."""
        while len(spans):
            spans = self._query_side.answer([side.search(spans) for side in self._row_sides])
        if self.keeping is not None:
            moved = self._query_side.floors()
            if len(moved[0]):
                for side in self._row_sides:
                    side.reach(*moved)

    def delete(self, ids: Ints, at: int) -> Changes:
        """Rows of these ids die at position `at`: it shows at the next point, or at once where every row is one."""
        rankings: list[Ints] = []
        for side in self._row_sides:
            hits = side.delete(ids, at, self._upto)
            self._query_side.merge(hits)
            rankings.append(np.unique(hits.ranking))
        touched = np.unique(np.concatenate(rankings)).astype(np.int64)
        if self.is_time:
            for ranking in touched:
                self._query_side.wait(int(ranking), at)
        self._answer(self._query_side.show_deletions(touched))
        return self._query_side.changes()

    def _parts(self, rows: Rows) -> list[Rows]:
        """The rows of each row side."""
        if len(self._row_sides) == 1:
            return [rows]
        assert self._split is not None, "several row sides need a way to split rows"
        side_of_row = self._split(rows)
        return [rows.take(np.flatnonzero(side_of_row == side)) for side in range(len(self._row_sides))]

    def _wake(self, upto: int) -> None:
        """Rankings that wait for the next instant of the stream learn it once it is over."""
        for ranking, position in self._query_side.waiting().items():
            standing = self._queries[self._slot_of_ranking[ranking]]
            size, since = standing.asked.span.size, standing.instants_since
            instant = min(side.first_instant(position, size, since) for side in self._row_sides)
            if instant <= upto:
                self._query_side.wake(ranking, instant)

    def _count_missed(self, rows: Rows) -> None:
        """Rows that came for a point that a flush gave already, and that no later window holds."""
        if not len(rows) or self._flushed < rows.at[0]:
            return
        for standing in self._queries.values():
            if standing.flushed >= rows.at[0]:
                span = standing.asked.span
                upto = min(standing.flushed, standing.flushed + span.slide - span.size, span.until)
                first, last = np.searchsorted(rows.at, (span.after, upto), side="right")
                standing.missed += max(0, int(last - first))

    def _note_flush(self, upto: int) -> None:
        for standing in self._queries.values():
            span = standing.asked.span
            if span.is_time and span.slide > 0:
                standing.flushed = span.flush_point(upto)
                self._flushed = max(self._flushed, standing.flushed)

    # -- what a query stands at --------------------------------------------------------------------------------

    def result(self, slot: int) -> dict[int, Changes]:
        """The rankings of a query at its last point, by group value."""
        return {value: self._query_side.result(ranking) for value, ranking in self._queries[slot].rankings.items()}

    def last_point(self, slot: int) -> int | None:
        """The last point that is over since the query was added."""
        standing = self._queries[slot]
        span = standing.asked.span
        reached = min(max(self._upto, standing.flushed), span.until)
        if span.slide:
            point = span.point_before(reached)
        else:
            since = standing.instants_since
            point = max(side.last_instant(reached, span.size, since) for side in self._row_sides)
        return point if point > max(standing.started, span.after) and point >= span.first else None

    def stats(self, slot: int) -> dict[str, int]:
        rankings = self._queries[slot].rankings.values()
        counts = [self._query_side.counts(ranking) for ranking in rankings]
        return {
            "evaluations": sum(count["evaluations"] for count in counts),
            "searches": sum(count["searches"] for count in counts),
            "kept": sum(self._query_side.kept(ranking) for ranking in rankings),
            "unscored": sum(int(side.questions.wanted["unscored"][slot]) for side in self._row_sides),
            "missed": self._queries[slot].missed,
            "rankings": len(rankings),
        }

    def ids_held(self) -> Ints:
        held = [side.ids_held() for side in self._row_sides]
        return np.unique(np.concatenate([self._query_side.ids_held(), *held]))

    def twin(self) -> Algorithm:
        """An instance with the same queries under the same numbers, and no state: what `restore` works on."""
        twin = type(self)(is_time=self.is_time, sides=len(self._row_sides), split=self._split, **self._options)
        twin.is_late = self.is_late
        twin._slot_count, twin._ranking_count = self._slot_count, self._ranking_count
        for slot, standing in self._queries.items():
            twin._free_slots.append(slot)
            twin.add(standing.asked, standing.started, register=False)
            for value, ranking in standing.rankings.items():
                twin._free_rankings.append(ranking)
                twin.register(slot, value)
        twin._free_slots, twin._free_rankings = list(self._free_slots), list(self._free_rankings)
        return twin

    def snapshot(self) -> State:
        """What `restore` needs on a twin."""
        return {
            "upto": self._upto,
            "rows": [side.snapshot() for side in self._row_sides],
            "queries": self._query_side.snapshot(),
            "flushed": {slot: standing.flushed for slot, standing in self._queries.items()},
            "missed": {slot: standing.missed for slot, standing in self._queries.items()},
            "instants_since": {slot: standing.instants_since for slot, standing in self._queries.items()},
        }

    def restore(self, state: State) -> None:
        self._upto = state["upto"]
        for side, part in zip(self._row_sides, state["rows"], strict=True):
            side.restore(part)
        self._query_side.restore(state["queries"])
        for slot, standing in self._queries.items():
            standing.flushed, standing.missed = state["flushed"][slot], state["missed"][slot]
            standing.instants_since = state["instants_since"][slot]
            self._flushed = max(self._flushed, standing.flushed)

    def check(self) -> None:
        for side in self._row_sides:
            side.check()
        self._query_side.check()
