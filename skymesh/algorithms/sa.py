"""Exact top-k over a window without keeping the window: a k-skyband for each ranking.

A row can still reach a result only while fewer than k rows rank above it that leave the window no earlier, so it is
dropped when the k-th of them arrives. Equal scores rank the newer row first. A threshold query is the case without a k:
its band is every row beyond the threshold, and nothing else is kept.

Cost    a row that enters a band costs O(s) there, s rows held: about k(1 + ln(n/k)) when scores come in random order, n
        when they only fall. With a slide of more than a row, all but the k best rows of a pane (rows that leave
        together) cost one comparison a query.
Source  Pripuzic, Podnar Zarko, Aberer: Time- and Space-Efficient Sliding Window Top-k Query Processing, TODS 2015 (SA),
        after Boehm et al. 2007. There one object at a time and a point after each; here batches, any slide, and
        dominance by panes instead of by age, which is the same where every row is a point and keeps less everywhere
        else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..queries import AnyQuery, Stream
from .asked import Emit
from .base import Algorithm, RowSide
from .columns import Carried, Floats, Hits, Objects, Rows, State, never
from .score_kernels import BLOCK
from .select_kernels import select
from .standings import Standings

# How many hits a part of a batch should give at most; with what they become on the way, 64 bytes each.
HITS_MAX = 2**20


class StrictSkyband(Algorithm):
    name = "sa"
    summary = "a k-skyband for each ranking, fed with every row"
    prunes = True
    keeps_rows = False

    @classmethod
    def refusal(cls, query: AnyQuery, stream: Stream) -> str | None:
        if query.per_id != "all":
            return f"it drops rows that others outrank, and per_id: {query.per_id} may need them again"
        if stream.deletes:
            return "it drops rows that others outrank, and those others may be deleted"
        return None

    def make_row_side(self, *, alone: bool) -> RowSide:
        return Selection(reduces=not alone)


class _Found(NamedTuple):
    """Hits as the kernel writes them."""

    ranking: NDArray[np.int32]
    row: NDArray[np.int32]
    merit: Floats

    @classmethod
    def room_for(cls, count: int) -> _Found:
        return cls(np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.float64))

    def grown(self, filled: int, count: int) -> _Found:
        larger = _Found.room_for(count)
        larger.ranking[:filled] = self.ranking[:filled]
        larger.row[:filled] = self.row[:filled]
        larger.merit[:filled] = self.merit[:filled]
        return larger


class Selection(RowSide):
    """Scores rows and thins them by panes. With `reduces` it keeps bands of its own and sends only what enters its own
    rankings, for query sides that are elsewhere."""

    def __init__(self, *, reduces: bool) -> None:
        super().__init__()
        self._bands = Standings(prunes=True) if reduces else None
        self._merits = np.empty(BLOCK, np.float64)
        self._hits_per_row = 1.0  # lately

    def rows_per_part(self) -> int:
        return max(1, int(HITS_MAX / self._hits_per_row))

    def register(self, slot: int, value: int, ranking: int) -> None:
        super().register(slot, value, ranking)
        if self._bands is not None:
            asked = self.questions.asked[slot]
            self._bands.add(ranking, replace(asked, emit=Emit.ENTRIES), upto=self._bands.past)

    def remove(self, slot: int) -> None:
        if self._bands is not None:
            for ranking in self.questions.rankings_of(slot):
                self._bands.remove(ranking)
        super().remove(slot)

    def insert(self, rows: Rows, upto: int, *, flush: bool = False) -> Hits:
        hits = self._select(rows, -1)
        return hits if self._bands is None else self._reduced(hits, upto, flush)

    def recall(self, slot: int, rows: Rows) -> Hits:
        hits = self._select(rows, slot)
        if self._bands is not None:
            # Both keep them: here to thin what follows, there because they may show at the next point.
            self._bands.merge(hits)
        return hits

    def _reduced(self, hits: Hits, upto: int, flush: bool) -> Hits:
        assert self._bands is not None
        self._bands.merge(hits)
        self._bands.advance(upto, flush=flush)
        entered = self._bands.changes()
        seq, time, id_ = (entered.column(name) for name in ("seq", "time", "id"))
        carried = None if entered.carried is None else Carried(entered.carried)
        objects = Objects(time if self._is_time() else seq + 1, seq, time, id_, carried)
        count = len(entered)
        row = np.arange(count, dtype=np.int32)
        return Hits(entered.column("ranking"), row, entered.column("merit"), never(count), objects)

    def _is_time(self) -> bool:
        return any(asked.span.is_time for asked in self.questions.asked.values())

    def _select(self, rows: Rows, only: int) -> Hits:
        programs, filter_of, stack = self.questions.programs()
        heap, cursor = np.empty(len(rows), np.float64), np.zeros(2, np.int64)
        found = _Found.room_for(2 * len(rows))
        while not select(
            programs,
            filter_of,
            stack,
            self.questions.wanted,
            self.questions.groups.slots,
            rows.numbers,
            rows.columns,
            rows.known,
            rows.at,
            rows.seq,
            only,
            heap,
            self._merits,
            *found,
            cursor,
        ):
            filled = int(cursor[1])
            found = found.grown(filled, 2 * (filled + len(rows)))
        count = int(cursor[1])
        if only < 0 and len(rows):
            self._hits_per_row = max(1.0, count / len(rows))
        return Hits(found.ranking[:count], found.row[:count], found.merit[:count], never(count), rows)

    def snapshot(self) -> State:
        return {**super().snapshot(), "bands": self._bands.snapshot() if self._bands is not None else None}

    def restore(self, state: State) -> None:
        super().restore(state)
        if self._bands is not None:
            self._bands.restore(state["bands"])

    def check(self) -> None:
        if self._bands is not None:
            self._bands.check()
