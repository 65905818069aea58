"""Exact top-k over a grid, with rankings that hold all rows at or above their floor.

Nothing is dropped because others outrank it, so rows may be deleted or superseded: when fewer than k rows at or above
the floor are left, the grid is searched. Equal scores rank the newer row first.

Cost    an arrival that reaches a floor: a binary search and a move in the ranking. Searches as `keeping` has it: in
        random order nearly none, where scores keep falling one for each few dozen rows that expire.
Source  Mouratidis, Bakiras, Papadias, SIGMOD 2006 (TMA). There a ranking holds exactly k rows and searches whenever one
        of them expires; `keeping=EXACTLY_K` gives that. Section 7 there has deletions.
"""

from __future__ import annotations

from .grid import GridAlgorithm
from .keeping import Keeping


class TopMonitoring(GridAlgorithm):
    name = "tma"
    summary = "a grid over the attributes, and in each ranking the rows above a floor"
    prunes = False
    keeping = Keeping()
