"""How many rows a ranking holds beyond the k that it shows.

An algorithm that keeps the rows of the window need not hold in a ranking everything that may ever show: it holds the
rows that rank at or above a *floor*, and looks for more when fewer than k of them are left. Holding exactly k means a
search whenever a row that is shown expires. In random order the number of rows above a fixed floor comes and goes by
its square root, so a few square roots more and searches nearly end: 2 searches in 100 cycles of a thousand queries at
k = 20 with 37 rows wanted. Where scores keep falling a ranking hopes for twice as much when it has to search again
soon. With sixteen times as much there were half as many searches, but each found so many rows that a cycle of `tma`
took twice the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .columns import NEVER


@dataclass(frozen=True, slots=True)
class Keeping:
    """`slack` is in square roots of the rows; `growth` bounds how often that may double where searches come fast."""

    slack: float = 3.0
    growth: int = 2
    trims: bool = True  # whether the floor rises once there are far more rows than a search asks for

    def wanted(self, k: int) -> int:
        """How many rows a search asks for at least."""
        return k + math.ceil(self.slack * (math.sqrt(k) + 1))

    def most(self, k: int) -> int:
        """Beyond how many rows the floor rises."""
        return self.wanted(self.wanted(k)) if self.trims else NEVER


# What the papers describe: a search asks for the k that are shown and nothing else.
EXACTLY_K = Keeping(slack=0.0, growth=1)
EXACTLY_K_UNTRIMMED = Keeping(slack=0.0, growth=1, trims=False)
