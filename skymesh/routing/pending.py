"""Rows of a stream with event time, from when they arrive to when they are due.

Rows enter time windows in the order (time, seq), once the watermark has passed them. They wait in runs, each in that
order; beyond a few, runs are merged as they grow alike, so that a row is moved a logarithmic number of times however
small the batches are and however long it waits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from .raw_rows import Ints, RawRows, in_time_order

RUNS_MAX = 8


class Pending:
    def __init__(self) -> None:
        self._runs: list[RawRows] = []

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    def add(self, rows: RawRows) -> None:
        if not len(rows):
            return
        self._runs.append(in_time_order([rows]))
        if len(self._runs) <= RUNS_MAX:
            return
        while len(self._runs) > 1 and 2 * len(self._runs[-1]) > len(self._runs[-2]):
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(in_time_order([older, newer]))

    def due(self, upto: int) -> RawRows | None:
        """Take out the rows at or before a time, in order; None if there are none."""
        pieces, left = [], []
        for run in self._runs:
            cut = int(np.searchsorted(run.time, upto, side="right"))
            if cut:
                pieces.append(run.span(0, cut))
            if cut < len(run):
                left.append(run.span(cut, len(run)))
        self._runs = left
        return in_time_order(pieces) if pieces else None

    def delete(self, ids: Ints) -> None:
        self._runs = [run for run in (run.without(ids) for run in self._runs) if len(run)]

    def runs(self) -> list[RawRows]:
        """All rows that wait."""
        return list(self._runs)

    def recode(self, encode: Callable[[pa.Array], Ints]) -> None:
        """Give ids that are texts their codes."""
        self._runs = [run.recoded(encode) for run in self._runs]

    def ids_held(self) -> Ints:
        return np.concatenate([np.empty(0, np.int64), *[run.id for run in self._runs]])
