"""Exact top-k over a grid, with rankings that hold the skyband of what lies above their floor.

A ranking takes in every row at or above a floor that stands still between searches, and drops those that can never show
because k newer ones rank above them. It searches the grid only when fewer than k rows are left: what it holds beyond
the k that show takes over as they expire. Equal scores rank the newer row first.

Cost    an arrival that reaches a floor: O(s) there, s rows held. Searches are rare; where scores keep falling each
        hopes for twice as many rows.
Source  Mouratidis, Bakiras, Papadias, SIGMOD 2006 (SMA). There a search asks for the k best and the floor is the k-th;
        here it asks for some square roots of k more, after which searches nearly end (see `keeping`); dominance is
        told by panes, so that with a slide of many rows less is kept. `keeping=EXACTLY_K_UNTRIMMED` gives the paper's.
"""

from __future__ import annotations

from ..queries import AnyQuery, Stream
from .grid import GridAlgorithm
from .keeping import Keeping


class SkybandMonitoring(GridAlgorithm):
    name = "sma"
    summary = "a grid over the attributes, and in each ranking the skyband above a floor"
    prunes = True
    keeping = Keeping()

    @classmethod
    def refusal(cls, query: AnyQuery, stream: Stream) -> str | None:
        if query.per_id == "latest":
            return "it drops rows that others outrank, and per_id: latest may need them again"
        if stream.deletes:
            return "it drops rows that others outrank, and those others may be deleted"
        return super().refusal(query, stream)
