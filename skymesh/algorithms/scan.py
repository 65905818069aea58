"""Exact rankings by looking at the whole window at every point due. Serves everything, and nothing fast.

The rows of the longest window are kept in order. At each point the rows in the window that are alive are scored and the
best taken; equal scores rank the newer row first. What comes out at some point is sent to the query side, and what was
sent and dies later is sent again with its end.

Cost    O(n) a query and point, O(n log n) with group_by, best or threshold; the rows of the window in memory.
        One kernel call a query and batch: this is the algorithm of last resort, and the plain one to compare with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..queries import AnyQuery, Stream
from .asked import Asked, PerId
from .base import Algorithm, RowSide
from .columns import EVER, NEVER, Flags, Floats, Hits, Ints, Rows, State
from .row_store import RowStore, Stored
from .scan_kernels import choose_at, choose_best, judge_rows, next_due, window_at
from .score_kernels import BLOCK
from .select_kernels import count_unscored


class Scan(Algorithm):
    name = "scan"
    summary = "looks at the whole window at every point"
    prunes = False
    keeps_rows = True

    @classmethod
    def refusal(cls, query: AnyQuery, stream: Stream) -> str | None:
        return None

    def make_row_side(self, *, alone: bool) -> RowSide:
        return WindowScan(is_time=self.is_time)


class WindowScan(RowSide):
    """The rows of the window, and which of them the query side knows."""

    def __init__(self, *, is_time: bool) -> None:
        super().__init__()
        self._is_time = is_time
        self._store = RowStore()
        self._sent: dict[int, Ints] = {}  # slot: numbers of rows that were sent and are alive, ascending
        self._past = EVER
        self._merits = np.empty(BLOCK, np.float64)

    def add(self, slot: int, asked: Asked) -> None:
        super().add(slot, asked)
        self._sent[slot] = np.empty(0, np.int64)

    def remove(self, slot: int) -> None:
        super().remove(slot)
        del self._sent[slot]

    def insert(self, rows: Rows, upto: int, *, flush: bool = False) -> Hits:
        self._store.append(rows)
        matrices = rows.numbers, rows.columns, rows.known
        count_unscored(*self.questions.programs(), self.questions.wanted, *matrices, rows.at, rows.seq, self._merits)
        found = _Found.empty(len(self._store))
        sendings = [
            self._look(slot, found, asked.span.flush_point(upto) if flush else upto)
            for slot, asked in self.questions.asked.items()
        ]
        self._past = upto
        return self._together(sendings)

    def recall(self, slot: int, rows: Rows) -> Hits:
        self._store.append(rows)
        upto = int(rows.at[-1]) if len(rows) else EVER
        return self._together([self._look(slot, _Found.empty(len(self._store)), upto, again=True)])

    def delete(self, ids: Ints, at: int, upto: int) -> Hits:
        self._store.kill(ids, at)
        found = _Found.empty(len(self._store))
        # Where points are further apart, the next one looks at everything anyway.
        slots = [slot for slot, asked in self.questions.asked.items() if asked.span.slide <= 1]
        return self._together([self._look(slot, found, upto, again=True) for slot in slots])

    def forget(self, upto: int) -> None:
        super().forget(upto)
        self._store.forget(self.questions.horizon(upto))

    def ids_held(self) -> Ints:
        ids: Ints = np.unique(self._store.rows().id)
        return ids

    def _look(self, slot: int, found: _Found, limit: int, *, again: bool = False) -> _Sending:
        """What the query side has to hear about a query: rows that come up by `limit`, and ends of rows it knows.

        With `again` only the window that ends at `limit` is looked at, whether that is a point or not.
        """
        rows, first, query = self._store.rows(), self._store.first, self.questions.wanted[slot]
        limit = limit if again else min(limit, int(query["until"]))
        due = limit if again else next_due(rows.at, query, self._past, self._is_time)
        if due > limit:
            return _Sending.nothing()
        low, _ = window_at(rows.at, query, due)
        groups, judged = self.questions.groups.slots, (found.merit, found.ranking, found.end)
        judge_rows(*self.questions.programs(), query, slot, groups, rows, first, low, *judged)
        found.chosen[:] = False
        asked = self.questions.asked[slot]
        past = limit - 1 if again else self._past
        marks = found.merit, found.end, found.heap, found.chosen
        if asked.is_grouped or asked.per_id == PerId.BEST:
            self._choose_in_groups(rows, slot, past, limit, found, again)
        elif again:
            choose_at(asked.k, *window_at(rows.at, query, limit), limit, *marks)
        else:
            choose_best(rows.at, query, past, limit, self._is_time, *marks)
        return self._news(slot, found, first, low)

    def _choose_in_groups(self, rows: Stored, slot: int, past: int, limit: int, found: _Found, again: bool) -> None:
        """The k best of each ranking, of distinct ids where only the best row of an id counts."""
        query, asked = self.questions.wanted[slot], self.questions.asked[slot]
        due = limit if again else next_due(rows.at, query, past, self._is_time)
        while due <= limit:
            low, high = window_at(rows.at, query, due)
            alive = low + np.flatnonzero((found.end[low:high] > due) & ~np.isnan(found.merit[low:high]))
            order = alive[np.lexsort((-alive, -found.merit[alive], found.ranking[alive]))]
            if asked.per_id == PerId.BEST:
                pairs = np.stack((found.ranking[order], rows.id[order]))
                _, firsts = np.unique(pairs, axis=1, return_index=True)
                order = order[np.sort(firsts)]
            ranking = found.ranking[order]
            place = np.arange(len(order)) - np.searchsorted(ranking, ranking)
            found.chosen[order[place < asked.k]] = True
            due = NEVER if again else next_due(rows.at, query, due, self._is_time)

    def _news(self, slot: int, found: _Found, first: int, low: int) -> _Sending:
        """Of the rows that were chosen those that the query side does not know, and ends of those it knows."""
        sent = self._sent[slot]
        sent = sent[sent >= first + low]  # the others have left the window
        new = np.setdiff1d(np.flatnonzero(found.chosen) + first, sent, assume_unique=True)
        known = np.union1d(sent, new)
        end = found.end[known - first]
        self._sent[slot] = known[end >= NEVER]
        tell = np.isin(known, new, assume_unique=True) | (end < NEVER)
        numbers = known[tell]
        return _Sending(numbers, found.ranking[numbers - first], found.merit[numbers - first], end[tell])

    def _together(self, pieces: list[_Sending]) -> Hits:
        numbers, ranking, merit, until = (
            np.concatenate([piece[i] for piece in [_Sending.nothing(), *pieces]]) for i in range(4)
        )
        unique, row = np.unique(numbers, return_inverse=True)
        return Hits(ranking.astype(np.int32), row.astype(np.int32), merit, until, self._store.objects(unique))

    def snapshot(self) -> State:
        return {
            **super().snapshot(),
            "past": self._past,
            "store": self._store.snapshot(),
            "sent": {slot: numbers.copy() for slot, numbers in self._sent.items()},
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self._past = state["past"]
        self._store.restore(state["store"])
        self._sent = {slot: numbers.copy() for slot, numbers in state["sent"].items()}

    def check(self) -> None:
        self._store.check()


class _Sending(NamedTuple):
    """Rows of one query for the query side: numbers i8, ranking i8, merit f8, until i8."""

    numbers: Ints
    ranking: Ints
    merit: Floats
    until: Ints

    @classmethod
    def nothing(cls) -> _Sending:
        none = np.empty(0, np.int64)
        return cls(none, none, np.empty(0, np.float64), none)


class _Found(NamedTuple):
    """What a look at the window writes for each row of the store."""

    merit: Floats
    ranking: Ints
    end: Ints
    chosen: Flags
    heap: Floats

    @classmethod
    def empty(cls, count: int) -> _Found:
        return cls(
            merit=np.empty(count, np.float64),
            ranking=np.empty(count, np.int64),
            end=np.empty(count, np.int64),
            chosen=np.empty(count, np.bool_),
            heap=np.empty(count, np.float64),
        )
