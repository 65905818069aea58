"""The groups of a query with `group_by`: values registered by their first row, in the order of arrival, never freed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..algorithms.columns import Rows
from ..algorithms.pair_table import PairTable
from .group_kernels import register_groups
from .raw_rows import Ints


@dataclass(frozen=True, slots=True)
class Registration:
    """Values that are new, in order, and rows that belong to no group."""

    values: Ints
    rejected: Ints


class Groups:
    """Which values are registered for which query, and how many."""

    def __init__(self) -> None:
        self._known = PairTable()
        self._counts: dict[int, int] = {}

    def register(self, query: int, rows: Rows, column: int, counts: np.ndarray, most: int) -> Registration:
        """Register the new values among the rows that count."""
        n = len(rows)
        self._known.reserve(n)
        new_rows, rejected, tally = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(2, np.int64)
        room = most - self._counts.get(query, 0)
        register_groups(
            self._known.slots, query, rows.columns[column], rows.known[column], counts, room, new_rows, rejected, tally
        )
        new, lost = int(tally[0]), int(tally[1])
        self._known.count += new
        self._counts[query] = self._counts.get(query, 0) + new
        return Registration(rows.columns[column, new_rows[:new]], rejected[:lost])

    def remove(self, query: int) -> None:
        self._known.remove_first(query)
        self._counts.pop(query, None)
