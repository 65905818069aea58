"""The queries of a row side as kernels read them: scores, filters, spans, and which ranking a row belongs to."""

from __future__ import annotations

import numpy as np

from .asked import Asked
from .columns import EVER, NEVER, Ints
from .pair_table import PairTable
from .score_kernels import Programs
from .score_table import ScoreTable

# What a query wants. group_column is -1 without groups, and then ranking is its only one.
WANTED = np.dtype(
    [
        ("live", "i8"),
        ("sign", "f8"),
        ("bound", "f8"),
        ("k", "i8"),
        ("size", "i8"),
        ("slide", "i8"),
        ("offset", "i8"),
        ("first", "i8"),
        ("after", "i8"),
        ("until", "i8"),
        ("since", "i8"),
        ("per_id", "i8"),
        ("group_column", "i8"),
        ("ranking", "i8"),
        ("unscored", "i8"),
    ]
)


class Questions:
    """Slots of queries. Slots are given by the caller, the same on every row side."""

    def __init__(self) -> None:
        self._scores = ScoreTable()
        self._asked: dict[int, Asked] = {}
        self.wanted = np.zeros(0, WANTED)
        self.groups = PairTable()  # (slot, group value): ranking
        self._longest: int | None = None  # window; None: to be looked up

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def asked(self) -> dict[int, Asked]:
        return self._asked

    def add(self, slot: int, asked: Asked) -> None:
        self._scores.put(slot, asked.scoring)
        self._longest = None
        self._asked[slot] = asked
        if slot >= len(self.wanted):
            grown = np.zeros(max(slot + 1, 2 * len(self.wanted), 8), WANTED)
            grown[: len(self.wanted)] = self.wanted
            self.wanted = grown
        span = asked.span
        for name, value in {
            "live": 1,
            "sign": asked.sign,
            "bound": asked.bound,
            "k": asked.k,
            "size": span.size,
            "slide": span.slide,
            "offset": span.offset,
            "first": span.first,
            "after": span.after,
            "until": span.until,
            "since": asked.since,
            "per_id": asked.per_id,
            "group_column": asked.group_column,
            "ranking": -1,
            "unscored": 0,
        }.items():
            self.wanted[name][slot] = value

    def register(self, slot: int, value: int, ranking: int) -> None:
        """The ranking of a group value, or of a query without groups."""
        if self._asked[slot].is_grouped:
            self.groups.put(np.array([slot]), np.array([value]), np.array([ranking]))
        else:
            self.wanted["ranking"][slot] = ranking

    def rankings_of(self, slot: int) -> list[int]:
        if self._asked[slot].is_grouped:
            slots, _, rankings = self.groups.items()
            return [int(ranking) for ranking in rankings[slots == slot]]
        return [int(self.wanted["ranking"][slot])]

    def remove(self, slot: int) -> None:
        self.wanted["live"][slot] = 0
        self._longest = None
        self._scores.remove(slot)
        if self._asked.pop(slot).is_grouped:
            self.groups.remove_first(slot)

    def programs(self) -> tuple[Programs, Ints, np.ndarray]:
        """Programs, filter_of i8[slots], and a stack for them."""
        return self._scores.arrays()

    def horizon(self, upto: int) -> int:
        """No query needs rows at or below it any more once all points up to `upto` are over."""
        if self._longest is None:
            self._longest = int(self.wanted["size"][self.wanted["live"] == 1].max(initial=0))
        return EVER if self._longest >= NEVER else upto - self._longest
