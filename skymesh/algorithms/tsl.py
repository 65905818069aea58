"""Threshold sorted lists: every row in one sorted list an attribute, and a view of k to k_max rows a query.

A view holds the best rows of the window down to its floor. Rows that reach the floor enter it, rows that leave the
window leave it, and beyond k_max rows the last ones are dropped. When fewer than k are left, the threshold algorithm
fills it again: it reads the lists of the score's attributes in turn, each from the end at which the score is best,
scores every row that it meets, and stops once no row that it did not meet can rank among the best k_max.

Ties    the newer row ranks first. A search reads on while what is left may tie with the last row that is wanted, unless
        all of it is older.
Cost    an arrival O(d log n) for the lists and one score a query; a search over d attributes that are independent and
        uniform meets about n * (d! * k_max / n) ** (1 / d) of n rows. Memory: 2 bytes a row and attribute beside the
        row itself, k_max entries a query.
Source  Mouratidis, Bakiras, Papadias: Continuous Monitoring of Top-k Queries over Sliding Windows, SIGMOD 2006 (the
        baseline TSL there), with the threshold algorithm of Fagin, Lotem, Naor 2001 and the views of Yi et al. 2003.
        There a balanced list an attribute, changed row by row; here sorted runs of at most 16,384 rows that are made a
        batch at a time, merged while they are small, and dropped when their rows are gone. Each run is searched by
        itself with the bound from those before it, the newest first. The newest rows of a long window wait unsorted
        until there are some hundreds. Beyond monotone scores: an attribute in which a score has no direction is read
        from both ends inward, a distance from its centre outward, and what was not met is bounded by intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..queries import AnyQuery, Stream
from ..queries.shapes import Shape
from .asked import ALL_ROWS, Asked
from .base import Algorithm, RowSide
from .columns import EVER, Floats, Hits, Ints, Rows, Spans, State, never
from .keeping import Keeping
from .row_store import RowStore
from .score_kernels import BLOCK
from .tsl_kernels import (
    AXIS,
    FROM_BOTTOM,
    FROM_TOP,
    INWARD,
    LOOK,
    OUTWARD,
    RUN,
    RUN_MAX,
    Asking,
    Scratch,
    Unseen,
    Window,
    merge_runs,
    rows_that_reach,
    search,
    trim_run,
)

# How many hits a part of a batch should give at most.
HITS_MAX = 2**20
# The newest rows wait unsorted while they are fewer than this, and than this share of the window: a search looks at all
# of them, which costs about as much as one look at the bounds of a run.
UNSORTED_MAX = 512
UNSORTED_SHARE = 64
# Marks are cleared before their clock runs over.
CLOCK_MAX = 2**30

# The best k_max by k that the source found.
_K = (1, 5, 10, 20, 50, 100)
_K_MAX = (4, 10, 20, 30, 70, 120)


@dataclass(frozen=True, slots=True)
class View(Keeping):
    """From k to k_max rows: a search asks for k_max, and beyond them the floor rises."""

    slack: float = 0.0
    growth: int = 1

    def wanted(self, k: int) -> int:
        if k > _K[-1]:
            return math.ceil(k * _K_MAX[-1] / _K[-1])
        return math.ceil(np.interp(k, _K, _K_MAX))

    def most(self, k: int) -> int:
        return self.wanted(k)


class SortedLists(Algorithm):
    name = "tsl"
    summary = "every row in a sorted list an attribute, and a view of the best few a query"
    prunes = False
    keeps_rows = True
    splits = False
    keeping = View()

    @classmethod
    def refusal(cls, query: AnyQuery, stream: Stream) -> str | None:
        if query.per_id != "all":
            return f"its views hold rows, and per_id: {query.per_id} counts an id once"
        if stream.deletes:
            return "its rows leave when their window does, and not when they are deleted"
        if query.window.size is None:
            return "its lists hold the rows of the window, and a landmark window never lets one go"
        if query.group_by is not None:
            return "its lists hold the rows of all groups, and each group would search through those of the others"
        return None

    def make_row_side(self, *, alone: bool) -> RowSide:
        return ListedRows()


class _Found(NamedTuple):
    """Hits as kernels write them: of which ranking, or which span, and which row."""

    owner: NDArray[np.int32]
    row: Any
    merit: Floats

    @classmethod
    def room_for(cls, count: int, kind: Any) -> _Found:
        return cls(np.empty(count, np.int32), np.empty(count, kind), np.empty(count, np.float64))

    def grown(self, count: int) -> _Found:
        larger = _Found.room_for(count, self.row.dtype)
        for new, old in zip(larger, self, strict=True):
            new[: len(old)] = old
        return larger


class ListedRows(RowSide):
    """The rows of the window, their lists, and the floors of the views."""

    def __init__(self) -> None:
        super().__init__()
        self._store = RowStore(links=False)
        self._order = np.empty((0, 0), np.uint16)  # a list a row, its entries beside the rows of the store
        self._row_of = np.empty(0, np.int64)  # the number row that a list is over
        self._runs = np.empty(0, RUN)
        self._floors = np.empty(0, np.float64)
        self._slot_of = np.empty(0, np.int64)  # ranking: its query
        self._axes: tuple[np.ndarray, Ints] | None = None  # made when they are needed after queries came or went
        self._merits = np.empty(BLOCK, np.float64)
        self._merge_room = np.empty(RUN_MAX, np.uint16)
        self._mark = np.zeros(RUN_MAX, np.int32)
        self._look = np.zeros(1, LOOK)
        self._hits_per_row = 1.0  # lately

    # -- queries -----------------------------------------------------------------------------------------------

    def add(self, slot: int, asked: Asked) -> None:
        super().add(slot, asked)
        self._axes = None

    def register(self, slot: int, value: int, ranking: int) -> None:
        super().register(slot, value, ranking)
        if ranking >= len(self._floors):
            more = max(8, 2 * (ranking + 1)) - len(self._floors)
            self._floors = np.concatenate((self._floors, np.full(more, np.inf)))
            self._slot_of = np.concatenate((self._slot_of, np.full(more, -1)))
        # A threshold query takes all rows beyond its bound from the start; rankings ask, and then tell their floor.
        self._floors[ranking] = -np.inf if self.questions.asked[slot].k >= ALL_ROWS else np.inf
        self._slot_of[ranking] = slot

    def remove(self, slot: int) -> None:
        super().remove(slot)
        self._axes = None

    def reach(self, rankings: Ints, floors: Floats) -> None:
        self._floors[rankings] = floors

    # -- rows --------------------------------------------------------------------------------------------------

    def rows_per_part(self) -> int:
        return max(1, int(HITS_MAX / self._hits_per_row))

    def insert(self, rows: Rows, upto: int, *, flush: bool = False) -> Hits:
        start = len(self._store)
        self._append(rows)
        found, cursor = _Found.room_for(2 * len(rows), np.int32), np.zeros(2, np.int64)
        asking, window = self._asking(), self._window()
        while not rows_that_reach(asking, window, self._floors, start, self._merits, *found, cursor):
            found = found.grown(2 * len(found.merit) + len(rows))
        count = int(cursor[1])
        if len(rows):
            self._hits_per_row = max(1.0, count / len(rows))
        return Hits(found.owner[:count], found.row[:count], found.merit[:count], never(count), rows)

    def recall(self, slot: int, rows: Rows) -> Hits:
        return self.insert(rows, EVER)

    def search(self, spans: Spans) -> Hits:
        if self._look["clock"][0] > CLOCK_MAX:
            self._mark[:] = self._look["clock"] = 0
        scratch = self._scratch(spans)
        found = _Found.room_for(2 * int(np.minimum(spans.want, len(self._store)).sum()), np.int64)
        asked = spans.want, spans.after, spans.upto, spans.shared_after, spans.shared_upto
        slots, cursor = self._slot_of[spans.ranking], np.array([0, 0, -1])
        asking, window = self._asking(), self._window()
        while not search(asking, window, scratch, slots, *asked, *found, cursor):
            found = found.grown(2 * (len(found.merit) + int(cursor[2])))
        count = int(cursor[1])
        unique, row = np.unique(found.row[:count], return_inverse=True)
        objects = self._store.objects(unique + self._store.first)
        ranking = spans.ranking[found.owner[:count]]
        return Hits(ranking, row.astype(np.int32), found.merit[:count], never(count), objects)

    def forget(self, upto: int) -> None:
        super().forget(upto)
        before, count = self._store.first, len(self._store)
        horizon = self.questions.horizon(upto)
        self._store.forget(horizon)
        gone = self._store.first - before
        if gone:
            self._drop_front(gone, before)
            self._order[:, : count - gone] = self._order[:, gone:count].copy()

    def ids_held(self) -> Ints:
        ids: Ints = np.unique(self._store.rows().id)
        return ids

    # -- lists -------------------------------------------------------------------------------------------------

    def _append(self, rows: Rows) -> None:
        self._asking()  # which lists there have to be
        self._store.append(rows)
        count = len(self._store)
        if count > self._order.shape[1]:
            self._order = _widened(self._order, 2 * count)
        start = self._listed() - self._store.first
        if count - start > min(UNSORTED_MAX, count // UNSORTED_SHARE):
            for begin in range(start, count, RUN_MAX):
                self._add_run(begin, min(RUN_MAX, count - begin))

    def _listed(self) -> int:
        """The number of the first row that is in no run yet."""
        return int(self._runs["first"][-1] + self._runs["count"][-1]) if len(self._runs) else self._store.first

    def _add_run(self, begin: int, count: int) -> None:
        """A run of the rows from index `begin` on, merged with those before it while they are not much larger."""
        numbers, first = self._store.rows().numbers, self._store.first
        for a, row in enumerate(self._row_of):
            self._order[a, begin : begin + count] = np.argsort(numbers[row, begin : begin + count])
        runs = [(int(run["first"]), int(run["count"])) for run in self._runs] + [(begin + first, count)]
        while len(runs) > 1 and runs[-2][1] <= 2 * runs[-1][1] and runs[-2][1] + runs[-1][1] <= RUN_MAX:
            (left, left_count), (_, right_count) = runs[-2:]
            merge_runs(numbers, self._row_of, self._order, left - first, left_count, right_count, self._merge_room)
            runs[-2:] = [(left, left_count + right_count)]
        self._runs = np.array(runs, RUN)

    def _drop_front(self, gone: int, first: int) -> None:
        """Take rows out of the runs whose numbers lie below first + gone. The lists did not move yet."""
        ends = self._runs["first"] + self._runs["count"]
        self._runs = self._runs[ends > first + gone].copy()
        if len(self._runs) and self._runs["first"][0] < first + gone:
            run = self._runs[0]
            cut = first + gone - int(run["first"])
            trim_run(self._order, int(run["first"]) - first, int(run["count"]), cut)
            run["first"] += cut
            run["count"] -= cut

    def _list_what_is_asked(self) -> None:
        """Have a list for every attribute that some score reads, and no other."""
        scorings = [asked.scoring for asked in self.questions.asked.values()]
        wanted = np.unique([scoring.rows[name] for scoring in scorings for name in scoring.directions]).astype(np.int64)
        if np.array_equal(wanted, self._row_of):
            return
        order = np.empty((len(wanted), self._order.shape[1]), np.uint16)
        listed = {int(row): a for a, row in enumerate(self._row_of)}
        numbers, first = self._store.rows().numbers, self._store.first
        for a, row in enumerate(wanted):
            if int(row) in listed:
                order[a] = self._order[listed[int(row)]]
                continue
            for run in self._runs:
                cut = slice(int(run["first"]) - first, int(run["first"] + run["count"]) - first)
                order[a, cut] = np.argsort(numbers[row, cut])
        self._order, self._row_of = order, wanted

    # -- what kernels read -------------------------------------------------------------------------------------

    def _window(self) -> Window:
        rows = self._store.rows()
        return Window(
            rows.at, rows.seq, rows.numbers, rows.columns, rows.known, self._order, self._runs, self._store.first
        )

    def _asking(self) -> Asking:
        if self._axes is None:
            self._list_what_is_asked()
            slots = range(len(self.questions.wanted))
            axes = [self._axes_of(self.questions.asked[slot]) if slot in self.questions.asked else [] for slot in slots]
            ends = np.cumsum([0, *map(len, axes)])
            self._axes = np.array([axis for part in axes for axis in part], AXIS), ends
        return Asking(*self.questions.programs(), self.questions.wanted, *self._axes)

    def _axes_of(self, asked: Asked) -> list[tuple[int, int, int, float]]:
        """How a query reads each of its lists."""
        scoring = asked.scoring
        axes = []
        for name in scoring.directions:
            row = scoring.rows[name]
            mode, centre = _reading(asked, name)
            axes.append((row, int(np.searchsorted(self._row_of, row)), mode, centre))
        return axes

    def _scratch(self, spans: Spans) -> Scratch:
        height, count = len(self._store.rows().numbers), len(self._store)
        axes, depth = self._asking().axis_first, len(self._asking().stack)
        heap = int(np.where(spans.want <= count, spans.want, 0).max())
        width = int(np.diff(axes).max())
        low, high, hole_low, hole_high = np.empty((4, height), np.float64)
        stack_low, stack_high = np.empty((2, depth), np.float64)
        return Scratch(
            look=self._look,
            low=np.empty(width, np.int64),
            high=np.empty(width, np.int64),
            mark=self._mark,
            block=np.empty((height, BLOCK), np.float64),
            picked=np.empty(BLOCK, np.int64),
            merits=self._merits,
            heap_merit=np.empty(heap, np.float64),
            heap_index=np.empty(heap, np.int64),
            found_merit=np.empty(count, np.float64),
            found_index=np.empty(count, np.int64),
            unseen=Unseen(low, high, hole_low, hole_high, stack_low, stack_high, np.empty(depth, np.bool_)),
        )

    # -- state -------------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        return {
            **super().snapshot(),
            "store": self._store.snapshot(),
            "order": self._order[:, : len(self._store)].copy(),
            "row_of": self._row_of.copy(),
            "runs": self._runs.copy(),
            "floors": self._floors.copy(),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self._store.restore(state["store"])
        self._order, self._row_of, self._runs = (state[name].copy() for name in ("order", "row_of", "runs"))
        self._floors, self._axes = state["floors"].copy(), None

    def check(self) -> None:
        self._store.check()
        numbers, first = self._store.rows().numbers, self._store.first
        for a, row in enumerate(self._row_of):
            for run in self._runs:
                begin, count = int(run["first"]) - first, int(run["count"])
                entries = self._order[a, begin : begin + count]
                assert (np.sort(entries) == np.arange(count)).all(), "every row of a run is in each list once"
                assert (np.diff(numbers[row, begin + entries.astype(np.int64)]) >= 0).all(), "lists are sorted"
        ends = self._runs["first"] + self._runs["count"]
        assert (self._runs["first"] == [first, *ends[:-1]][: len(ends)]).all(), "runs follow each other without a gap"
        assert 0 <= first + len(self._store) - self._listed() <= UNSORTED_MAX, "few rows are in no list"
        assert (self._runs["count"] <= RUN_MAX).all(), "places of rows fit into lists"


def _reading(asked: Asked, name: str) -> tuple[int, float]:
    """From which end a query reads the list of an attribute, and where it begins inside. A bound decides when to stop,
    so a guess that turns out wrong costs speed."""
    form, direction = asked.scoring.form, asked.scoring.directions[name]
    if direction is not None:
        return (FROM_TOP if direction * asked.sign >= 0 else FROM_BOTTOM), 0.0
    if form.shape == Shape.PRODUCT:  # of factors that are hardly below zero
        return (FROM_TOP if asked.sign > 0 else FROM_BOTTOM), 0.0
    for term in form.terms:
        if term.name == name and form.shape != Shape.LINEAR and term.weight * asked.sign < 0:
            return OUTWARD, 0.0 if form.shape == Shape.QUADRATIC else term.constant
    return INWARD, 0.0


def _widened(order: NDArray[np.uint16], count: int) -> NDArray[np.uint16]:
    wider = np.empty((len(order), count), np.uint16)
    wider[:, : order.shape[1]] = order
    return wider
