"""Carried columns of rows that rankings hold, found by seq.

Rankings keep numbers only. What else a result shows is kept here once a row, in Arrow, and looked up for the few rows
that the change log tells of. Rows that no ranking holds any more are dropped now and then, all at once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .columns import Carried, Ints

_ROWS_MIN = 4096
_PIECES_MAX = 64


class CarriedStore:
    def __init__(self) -> None:
        self._seqs: list[Ints] = []
        self._tables: list[Carried] = []
        self._rows = 0
        self._pieces = 0  # since the last packing: looking up gets slower with each

    def add(self, seqs: Ints, carried: Carried) -> None:
        self._seqs.append(seqs)
        self._tables.append(carried)
        self._rows += len(seqs)
        self._pieces += 1

    def __len__(self) -> int:
        return self._rows

    def take(self, seqs: Ints) -> pa.Table | None:
        """The columns of these rows, None if nothing is carried. A row that was never added has nulls."""
        if not self._seqs:
            return None
        held, table = self._together()
        order = np.argsort(held, kind="stable")
        place = np.searchsorted(held, seqs, sorter=order)
        found = place < len(held)
        found[found] = held[order[place[found]]] == seqs[found]
        index = np.zeros(len(seqs), np.int64)
        index[found] = order[place[found]]
        return table.take(pa.array(index, mask=~found))

    def wants_packing(self, live_count: int) -> bool:
        return self._rows > 2 * live_count + _ROWS_MIN or self._pieces > _PIECES_MAX

    def pack(self, live: Ints) -> None:
        """Keep the rows with these seqs only."""
        held, table = self._together()
        held, first = np.unique(held, return_index=True)
        keep = np.isin(held, live, assume_unique=True)
        kept = table.take(pa.array(first[keep])).combine_chunks()
        self._seqs, self._tables, self._rows = [held[keep]], [Carried(kept)], int(keep.sum())
        self._pieces = 0

    def snapshot(self) -> tuple[Ints, pa.Table] | None:
        return self._together() if self._seqs else None

    def restore(self, state: tuple[Ints, pa.Table] | None) -> None:
        self.__init__()  # type: ignore[misc]
        if state is not None:
            self.add(state[0], Carried(state[1]))

    def _together(self) -> tuple[Ints, pa.Table]:
        table = pa.concat_tables([carried.materialize() for carried in self._tables], promote_options="default")
        seqs = np.concatenate(self._seqs)
        self._seqs, self._tables = [seqs], [Carried(table)]
        return seqs, table
