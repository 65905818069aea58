"""The rows of a window, in order, on flat arrays that grow at the end and are dropped from the front.

A row has a *number*, counted from the first row ever stored; numbers stay while rows move. With `links`, rows of one id
are linked, each to the next newer and the next older one, so that `latest` and deletions find them without a search.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .carried_store import CarriedStore
from .columns import NEVER, Carried, Ints, Objects, Rows, State
from .pair_table import PairTable
from .row_kernels import forget_rows, kill_rows, link_rows


class Stored(NamedTuple):
    """Rows as kernels read them: at, seq, time, id i8[n], numbers f8[m, n], columns i8[c, n], known b1[c, n],
    newer, older i8[n] (row numbers, -1: none), dead_from i8[n] (NEVER while alive); the last three are empty where rows
    are not linked."""

    at: Any
    seq: Any
    time: Any
    id: Any
    numbers: Any
    columns: Any
    known: Any
    newer: Any
    older: Any
    dead_from: Any


class RowStore:
    """Rows first..first + len(self)."""

    def __init__(self, *, links: bool = True) -> None:
        self._links = links
        self._arrays = _empty(0, 0, 0, links)
        self._count = 0
        self._carried = CarriedStore()
        self._newest = PairTable()  # (0, id): number of its newest row
        self.first = 0

    def __len__(self) -> int:
        return self._count

    def rows(self) -> Stored:
        """The rows; their numbers begin at `first`. The matrices come whole, so that kernels see contiguous memory."""
        return Stored(*[column[: self._count] if column.ndim == 1 else column for column in self._arrays])

    def append(self, rows: Rows) -> None:
        """Rows that come after those that are here."""
        count = len(rows)
        self._make_room(count, rows.numbers.shape[0], rows.columns.shape[0])
        cut = slice(self._count, self._count + count)
        arrays = self._arrays
        for name in ("at", "seq", "time", "id"):
            getattr(arrays, name)[cut] = getattr(rows, name)
        arrays.numbers[: rows.numbers.shape[0], cut] = rows.numbers
        arrays.columns[: rows.columns.shape[0], cut] = rows.columns
        arrays.known[: rows.known.shape[0], cut] = rows.known
        arrays.newer[cut] = arrays.older[cut] = -1
        arrays.dead_from[cut] = NEVER
        if rows.carried is not None and count:
            self._carried.add(rows.seq, rows.carried)
        self._count += count
        if not self._links:
            return
        self._newest.reserve(count)
        self._newest.count += link_rows(
            arrays.id, arrays.newer, arrays.older, self._newest.slots, self.first, cut.start, cut.stop
        )

    def kill(self, ids: Ints, at: int) -> None:
        """The rows of these ids that are alive die at a position."""
        assert self._links, "without links nobody finds the rows of an id"
        newest = self._newest.get(np.zeros(len(ids), np.int64), ids)
        kill_rows(self._arrays.older, self._arrays.dead_from, newest, self.first, at)

    def forget(self, horizon: int) -> None:
        """Drop rows at or below a position. Moves the rest only when half of the arrays is free."""
        arrays = self._arrays
        gone = int(np.searchsorted(arrays.at[: self._count], horizon, side="right"))
        if gone < max(64, self._count // 2) and gone < self._count:
            return
        if self._links:
            self._newest.count -= forget_rows(arrays.id, self._newest.slots, self.first, gone)
        kept = self._count - gone
        for column in arrays:
            column[..., :kept] = column[..., gone : self._count].copy()
        self._count = kept
        self.first += gone
        if self._carried.wants_packing(kept):
            self._carried.pack(np.sort(arrays.seq[:kept]))

    def objects(self, numbers: Ints) -> Objects:
        """Rows by number, as results show them."""
        place = numbers - self.first
        arrays = self._arrays
        seq = arrays.seq[place]
        carried = self._carried.take(seq)
        return Objects(
            arrays.at[place], seq, arrays.time[place], arrays.id[place], None if carried is None else Carried(carried)
        )

    def _make_room(self, more: int, number_count: int, column_count: int) -> None:
        arrays = self._arrays
        wanted = self._count + more
        enough = wanted <= len(arrays.at)
        if enough and number_count <= len(arrays.numbers) and column_count <= len(arrays.columns):
            return
        # A query that is added later may read columns that nobody did before: rows from before count as null there.
        grown = _empty(
            len(arrays.at) if enough else 2 * wanted,
            max(number_count, len(arrays.numbers)),
            max(column_count, len(arrays.columns)),
            self._links,
        )
        for new, old in zip(grown, arrays, strict=True):
            if old.ndim == 1:
                new[: self._count] = old[: self._count]
            else:
                new[: len(old), : self._count] = old[:, : self._count]
        self._arrays = grown

    def snapshot(self) -> State:
        return {
            "first": self.first,
            "rows": [column[..., : self._count].copy() for column in self._arrays],
            "newest": self._newest.items(),
            "carried": self._carried.snapshot(),
        }

    def restore(self, state: State) -> None:
        self.first = state["first"]
        self._arrays = Stored(*[column.copy() for column in state["rows"]])
        self._count = len(self._arrays.at)
        self._newest = PairTable()
        self._newest.put(*state["newest"])
        self._carried.restore(state["carried"])

    def check(self) -> None:
        rows = self.rows()
        order = np.lexsort((rows.seq, rows.at))
        assert (order == np.arange(self._count)).all(), "rows stand in the order of their windows"
        linked = np.flatnonzero(rows.newer >= 0)
        assert (rows.older[rows.newer[linked] - self.first] - self.first == linked).all(), "links agree"


def _empty(size: int, number_count: int, column_count: int, links: bool) -> Stored:
    def ints(count: int = size) -> Ints:
        return np.zeros(count, np.int64)

    linked = size if links else 0

    return Stored(
        at=ints(),
        seq=ints(),
        time=ints(),
        id=ints(),
        numbers=np.zeros((number_count, size), np.float64),
        columns=np.zeros((column_count, size), np.int64),
        known=np.zeros((column_count, size), np.bool_),
        newer=ints(linked),
        older=ints(linked),
        dead_from=ints(linked),
    )
