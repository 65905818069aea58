"""A grid over the attributes: the row side that TMA and SMA share.

The rows of the window stand in a ring, each linked to the one before it in its cell. A query *reaches* a cell if the
best score possible in it is not below the query's floor; an arrival is tested against the queries that reach its cell,
and against nobody in all the other cells. A query whose ranking runs short searches best-first through a pyramid of
boxes over the cells. Bounds of boxes are all that this needs, so any expression is indexed, monotone or not, and a
filter as well: where no row of a box can pass, the query does not reach.

Values outside the domain lie in the outermost cells, whose boxes reach to the extremes seen. As long as a domain is not
known there is one cell, and everything is tested.

Cost    an arrival: its cell, and a test for each query that reaches it. A search: the cells that the answer lies in.
Memory  a row: 8 bytes an attribute, 8 each for id, seq and event time, 4 for the link; 9 a filter column and 24 for
        links of ids where asked for. A query: a bit in each cell that some query reaches, and its record.
Source  Mouratidis, Bakiras, Papadias: Continuous Monitoring of Top-k Queries over Sliding Windows, SIGMOD 2006. There
        cells keep lists of rows and of queries, scores are monotone, and the search walks from the best corner.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_not

import numpy as np

from ..queries import AnyQuery, Stream
from ..queries.expressions import Op
from ..queries.shapes import Shape
from .arrival_kernels import test_rows
from .asked import ALL_ROWS, Asked, PerId
from .base import Algorithm, RowSide
from .box_kernels import Bounding, Boxes, place_rows
from .boxes import Axis, axes_of, build, intervals_for, scratch_with, widen
from .columns import EVER, NO_HITS, Floats, Hits, Ints, Rows, Spans, State, never
from .frames import pack
from .grid_kernels import (
    DONE,
    HEAP_FULL,
    HOME,
    HOT,
    HOT_FULL,
    OUT_FULL,
    SHELF_FULL,
    UNCHECKED,
    Answer,
    Cells,
    GridArrays,
    Opened,
    Pairs,
    Reaching,
    Shelf,
    check_cells,
    cool_down,
    ends_of,
    link_rows,
    settle,
    superseded,
    take_rows,
    tell_ends,
)
from .ring import RowRing
from .score_kernels import BLOCK
from .search_kernels import Asks, move_floors, search, withdraw
from .shelf_kernels import tidy
from .simd import LANES, aligned

_LATEST = int(PerId.LATEST)
_SQUARES = (int(Shape.QUADRATIC), int(Shape.EUCLIDEAN))
# While the number of rows is not known it may grow this far before the grid is made anew.
_OUTGROWN = 4
_HITS_MAX = 2**20
_HOT_MIN = 64
_SHELF_MIN = 64  # blocks
_HEAP_MIN = 1024
_PAIRS_MIN = 4096
_ROWS_AT_ONCE = 512  # whose features lie side by side


class GridAlgorithm(Algorithm):
    """What TMA and SMA have in common."""

    keeps_rows = True
    links = True

    @classmethod
    def refusal(cls, query: AnyQuery, stream: Stream) -> str | None:
        if query.group_by is not None:
            return "it keeps one ranking a query, and group_by makes one for each value"
        if query.window.landmark is not None:
            return "it keeps the rows of the window, and a landmark window never lets go of any"
        if query.per_id == "best":
            return "it ranks rows, and per_id: best ranks each id once"
        return None

    def make_row_side(self, *, alone: bool) -> RowSide:
        return Grid(
            is_time=self.is_time,
            has_time=self._options.get("has_time", True),
            has_links=self._options.get("by_id", True),
            domains=self._options.get("domains"),
        )


class Grid(RowSide):
    """The rows of a window in cells, and which queries reach which cell."""

    def __init__(
        self, *, is_time: bool, has_time: bool, has_links: bool, domains: Sequence[Axis | None] | None
    ) -> None:
        super().__init__()
        self._is_time = is_time
        self._domains = list(domains or [])
        self._ring = RowRing(is_time=is_time, has_time=has_time, has_links=has_links)
        self._floor = np.full(64, np.inf)
        self._registered = np.full(64, np.inf)
        self._slot_of = np.zeros(64, np.int64)  # ranking: slot
        self._used = np.zeros(len(self._domains), np.int64)  # how many queries score by an attribute
        self._built_for = 0  # rows
        self._cooled_at = 0  # row number
        self._opened = _opened(_HEAP_MIN, 64)
        self._answer = _answer(1024)
        self._pairs = _pairs(64, 0, 0, 0, 0)
        self._probe = np.empty((0, 1, LANES), np.float32)
        self._probed = np.empty(0, np.bool_)
        self._boxes: Boxes
        self._scratch: Bounding
        self._cells: Cells
        self._shelf: Shelf
        self._stale = True  # the grid has to be made anew before it is used
        self._parts: tuple[object, ...] = (None,) * 16  # what is packed, kept alive here
        self._packed = np.empty(0, np.int64)
        self._rows_per_part: int | None = None  # None: floors moved since it was looked up
        self.cells_searched = 0

    # -- queries -----------------------------------------------------------------------------------------------

    def add(self, slot: int, asked: Asked) -> None:
        super().add(slot, asked)
        if slot >= len(self._floor):
            self._floor = _grown(self._floor, slot + 1, np.inf)
            self._registered = _grown(self._registered, slot + 1, np.inf)
            self._stale = True
        used = _attributes_used(asked, len(self._used))
        unknown = [row for row in used if self._used[row] == 0 and self._domains[row] is not None]
        self._used[used] += 1
        squares = asked.scoring.form.shape in _SQUARES and len(self._pairs.x) < 2 * len(self._domains)
        self._stale |= bool(unknown) or squares or self._wanted_rows() > self._built_for
        self._registered[slot] = np.inf
        # A threshold query takes all rows beyond its bound from the start; rankings ask, and then tell their floor.
        self._set_floors(np.array([slot]), np.array([asked.bound if asked.k >= ALL_ROWS else np.inf]))

    def register(self, slot: int, value: int, ranking: int) -> None:
        super().register(slot, value, ranking)
        if ranking >= len(self._slot_of):
            self._slot_of = _grown(self._slot_of, ranking + 1, 0)
        self._slot_of[ranking] = slot

    def remove(self, slot: int) -> None:
        self._used[_attributes_used(self.questions.asked[slot], len(self._used))] -= 1
        super().remove(slot)
        self._floor[slot] = self._registered[slot] = np.inf
        self._rows_per_part = None
        if not self._stale:
            withdraw(self._cells, slot)

    def reach(self, rankings: Ints, floors: Floats) -> None:
        self._set_floors(self._slot_of[rankings], floors)

    def learn(self, domains: Sequence[Axis | None]) -> None:
        """Domains that were not declared are known from now on."""
        self._domains = list(domains)
        self._stale = True

    # -- rows --------------------------------------------------------------------------------------------------

    def rows_per_part(self) -> int:
        if self._rows_per_part is None:
            # Queries that take in everything, with as many hits as rows.
            count = int((self._floor == -np.inf).sum())
            self._rows_per_part = max(256, _HITS_MAX // count) if count else 2**31
        return self._rows_per_part

    def insert(self, rows: Rows, upto: int, *, flush: bool = False) -> Hits:
        count, ring = len(rows), self._ring
        if not count:
            return NO_HITS
        first_number = ring.end
        self._stale |= ring.make_room(rows)
        self._refresh()
        cell, touched = np.empty(count, np.int32), np.empty(count + 1, np.int32)
        frame = self._arrays()
        tested, unchecked, beyond = take_rows(
            frame, rows.numbers, rows.seq, rows.time, rows.id, first_number, cell, touched
        )
        ring.append(rows)
        if beyond:
            # Boxes widen, and cells that nobody reached may be reached now: look at every row.
            self._widen(rows.numbers)
            touched[:count], tested = np.arange(count), count
        cursor = np.zeros(2, np.int64)
        if unchecked:
            self._check(cell, touched, tested)
        if unchecked or beyond:
            frame = self._arrays()
        while tested:
            status = test_rows(frame, cell, touched, tested, first_number, cursor)
            if status == DONE:
                break
            self._make_room(status, int(cursor[1]))
            frame = self._arrays()
        found = int(cursor[1])
        if ring.has_links:
            return self._with_ends(found, first_number)
        if not found:
            return NO_HITS
        ranking, number, merit, _ = self._answer
        row = (number[:found] - first_number).astype(np.int32)
        return Hits(ranking[:found].copy(), row, merit[:found].copy(), never(found), rows)

    def _check(self, cell: np.ndarray, touched: np.ndarray, count: int) -> None:
        """Find out which queries reach the cells that were empty."""
        while True:
            status = check_cells(self._arrays(), cell, touched, count)
            if status == DONE:
                return
            self._make_room(status, 0)

    def _with_ends(self, found: int, first_number: int) -> Hits:
        """The rows that were found, and rows from before that the new ones put an end to."""
        ring, wanted = self._ring, self.questions.wanted
        answer = self._answer
        ends_of(
            ring.arrays,
            wanted,
            self._slot_of,
            answer.ranking[:found],
            answer.number[:found],
            _LATEST,
            answer.until[:found],
        )
        new = [column[:found].copy() for column in answer]
        live = wanted[(wanted["live"] == 1) & (wanted["per_id"] == _LATEST)]
        if not len(live):
            return self._hits_of(*new)
        room = 4 * (ring.end - first_number)
        while True:
            out = np.empty(room, np.int64)
            since_most = int(live["since"].max())
            count = superseded(ring.arrays, ring.first, first_number, ring.end, since_most, out)
            if count < room:
                break
            room *= 2
        before = np.unique(out[:count])
        old = self._ends_told(before[before < first_number])
        return self._hits_of(*[np.concatenate(pair) for pair in zip(old, new, strict=True)])

    def _ends_told(self, numbers: Ints) -> list[np.ndarray]:
        """The columns of hits that tell of the ends of rows."""
        cursor = np.zeros(2, np.int64)
        while True:
            status = tell_ends(self._arrays(), numbers, _LATEST, cursor)
            if status == DONE:
                return [column[: int(cursor[1])].copy() for column in self._answer]
            self._make_room(status, int(cursor[1]))

    def recall(self, slot: int, rows: Rows) -> Hits:
        assert not len(self._ring), "rows from before come first"
        return self.insert(rows, EVER)

    def delete(self, ids: Ints, at: int, upto: int) -> Hits:
        numbers = self._ring.kill(ids, at)
        self._refresh()
        return self._hits_of(*self._ends_told(numbers))

    def search(self, spans: Spans) -> Hits:
        self._refresh()
        asks = Asks(
            self._slot_of[spans.ranking],
            spans.ranking,
            spans.want,
            spans.guess,
            spans.after,
            spans.upto,
            spans.shared_after,
            spans.shared_upto,
        )
        largest = int(spans.want.max(initial=1))
        if largest > len(self._opened.best_merit):
            self._opened = _opened(len(self._opened.bound), 2 * largest)
        cursor = np.zeros(3, np.int64)
        while True:
            status = search(self._arrays(), asks, self._ring.first, self._ring.end, cursor)
            if status == DONE:
                break
            self._make_room(status, int(cursor[1]))
        self.cells_searched += int(cursor[2])
        return self._hits_of(*[column[: int(cursor[1])].copy() for column in self._answer])

    def forget(self, upto: int) -> None:
        super().forget(upto)
        horizon = self.questions.horizon(upto)
        ring = self._ring
        ring.forget(horizon)
        if self._stale:
            return
        if ring.first - self._cooled_at > max(64, len(ring) // 8):
            self._cooled_at = ring.first
            cool_down(self._boxes, self._cells, ring.first)
        if len(ring) > _OUTGROWN * max(self._built_for, 64) and self._axes_are_free():
            self._stale = True

    def ids_held(self) -> Ints:
        return self._ring.ids_held()

    # -- the grid ----------------------------------------------------------------------------------------------

    def _wanted_rows(self) -> int:
        """How many rows the grid should be made for."""
        if self._is_time:
            return len(self._ring)
        wanted = self.questions.wanted
        return max(len(self._ring), int(wanted["size"][wanted["live"] == 1].max(initial=0)))

    def _axes_are_free(self) -> bool:
        return any(axis is not None and axis.intervals is None for axis in self._domains)

    def _refresh(self) -> None:
        """Make the grid if it has to be made."""
        if not self._stale:
            return
        ring = self._ring
        axes, rows = axes_of(self._domains, self._used)
        least = np.array([np.inf if axis is None else axis.low for axis in self._domains])
        most = np.array([-np.inf if axis is None else axis.high for axis in self._domains])
        self._built_for = self._wanted_rows()
        self._boxes, scratch = build(axes, rows, intervals_for(axes, self._built_for), least, most)
        programs, _, stack = self.questions.programs()
        self._scratch = scratch_with(scratch, len(stack))
        attributes = len(self._domains)
        features = attributes * (2 if np.isin(programs.shape, _SQUARES).any() else 1)
        shapes = len(ring.arrays.numbers), len(ring.arrays.columns), attributes, features
        self._pairs = _pairs(len(self._floor), *shapes)
        self._probe = aligned((-(-len(self._floor) // LANES), features + 1, LANES), np.float32)
        self._probe[:] = np.inf
        self._probed = np.zeros(len(self._probe), np.bool_)
        self._cells = _cells(self._boxes, len(self._floor))
        self._shelf = _shelf(0, features, len(ring.arrays.numbers))
        self._stale = False
        for target, source in ring.stretches(ring.first, len(ring)) if len(ring) else ():
            cell = np.empty(target.stop - target.start, np.int32)
            if place_rows(ring.arrays.numbers, self._boxes, target.start, cell):
                self._widen_boxes(ring.arrays.numbers[:, target])
            first_number, touched = ring.first + source.start, np.empty(len(cell) + 1, np.int32)
            link_rows(ring.arrays, self._cells, cell, first_number, False, touched)
        settle(self._boxes, self._cells, ring.first)
        self._reach_again()

    def _widen_boxes(self, numbers: Floats) -> None:
        part = numbers[: len(self._boxes.least)]
        widen(self._boxes, part.min(axis=1), part.max(axis=1))

    def _widen(self, numbers: Floats) -> None:
        """Reach to rows beyond the extremes with the outermost boxes, and with the queries that these reach now."""
        self._widen_boxes(numbers)
        self._reach_again()

    def _reach_again(self) -> None:
        """Give all queries the cells they reach, after boxes changed."""
        slots = np.array(sorted(self.questions.asked), np.int64)
        self._registered[slots] = np.inf
        self._set_floors(slots, self._floor[slots])

    def _set_floors(self, slots: Ints, floors: Floats) -> None:
        self._rows_per_part = None
        if self._stale:
            self._floor[slots] = floors
            return
        self._scratch = scratch_with(self._scratch, len(self.questions.programs()[2]))
        cursor = np.zeros(1, np.int64)
        while True:
            status = move_floors(self._arrays(), slots, floors, cursor)
            if status == DONE:
                return
            self._make_room(status, 0)

    def _arrays(self) -> Ints:
        """Everything for a kernel; packed anew only after an array was replaced."""
        questions = self.questions
        scores = questions.programs()
        reaching = (*scores, questions.wanted, self._floor, self._registered, self._probe, self._probed)
        rest = self._scratch, self._pairs, self._opened, self._answer
        parts = (self._ring.arrays, self._boxes, self._cells, self._shelf, *reaching, *rest)
        if any(map(is_not, parts, self._parts)):
            self._packed = pack(GridArrays(*parts[:4], Reaching(*reaching), *rest))
            self._parts = parts
        return self._packed

    def _make_room(self, status: int, filled: int) -> None:
        """What a kernel came back for."""
        cells = self._cells
        if status == OUT_FULL:
            larger = _answer(2 * len(self._answer.number) + len(self._pairs.slot))
            for new, old in zip(larger, self._answer, strict=True):
                new[:filled] = old[:filled]
            self._answer = larger
        elif status == HEAP_FULL:
            self._opened = _opened(2 * len(self._opened.bound), len(self._opened.best_merit))
        elif status == HOT_FULL:
            room = 2 * len(cells.hot)
            self._cells = cells._replace(hot=_grown(cells.hot, room, 0), bits=_grown(cells.bits, room, 0))
        else:
            assert status == SHELF_FULL
            self._tidy_shelf()

    def _tidy_shelf(self) -> None:
        cells, old = self._cells, self._shelf
        filled = cells.hot[: int(cells.fill[0])]
        blocks = int(filled["blocks"][filled["filled"] == 1].sum())
        room = max(_SHELF_MIN, 2 * (blocks + int(old.fill[1])))
        self._shelf = _shelf(room, old.lanes.shape[1], old.values.shape[1])
        tidy(cells, old, self._ring.first, self._shelf)

    def _hits_of(self, ranking: np.ndarray, number: Ints, merit: Floats, until: Ints) -> Hits:
        """Rows of the ring as hits."""
        row = np.arange(len(number), dtype=np.int32)
        return Hits(ranking, row, merit, until, self._ring.objects(number))

    # -- state -------------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        return {
            **super().snapshot(),
            "ring": self._ring.snapshot(),
            "floor": self._floor.copy(),
            "domains": list(self._domains),
        }

    def restore(self, state: State) -> None:
        super().restore(state)
        self._ring.restore(state["ring"])
        self._floor = state["floor"].copy()
        self._rows_per_part = None
        self._registered = np.full(len(self._floor), np.inf)
        self._domains = list(state["domains"])
        self._stale = True

    def check(self) -> None:
        self._ring.check()


def _attributes_used(asked: Asked, height: int) -> Ints:
    """The attributes that a score or a filter reads."""
    programs = [asked.scoring.program, *([asked.scoring.filter] if asked.scoring.filter else [])]
    rows = {a for program in programs for op, a, _, _ in program.instructions if op == Op.ATTRIBUTE and a < height}
    return np.array(sorted(rows), np.int64)


def _grown(column: np.ndarray, wanted: int, fill: object) -> np.ndarray:
    larger = np.full((max(wanted, 2 * len(column)), *column.shape[1:]), fill, column.dtype)
    larger[: len(column)] = column
    return larger


def _opened(boxes: int, best: int) -> Opened:
    return Opened(np.empty(boxes), np.empty(boxes, np.int64), np.empty(best), np.empty(best, np.int64))


def _answer(room: int) -> Answer:
    return Answer(np.empty(room, np.int32), np.empty(room, np.int64), np.empty(room), np.empty(room, np.int64))


def _pairs(slots: int, height: int, width: int, attributes: int, features: int) -> Pairs:
    """Scratch for rows with `height` numbers and `width` columns."""
    room = max(_PAIRS_MIN, LANES * (-(-slots // LANES)))
    return Pairs(
        hot=np.empty(_ROWS_AT_ONCE, np.int32),
        row=np.empty(room, np.int32),
        word=np.empty(room, np.int32),
        lanes=np.empty(room, np.uint64),
        features=np.empty((_ROWS_AT_ONCE, features), np.float32),
        x=np.empty(features, np.float32),
        attributes=attributes,
        slot=np.empty(room, np.int32),
        number=np.empty(room, np.int64),
        order=np.empty(room, np.int32),
        begin=np.empty(slots + 2, np.int64),
        which=np.empty(BLOCK, np.int32),
        chosen=np.empty(BLOCK, np.int64),
        place=np.empty(BLOCK, np.int32),
        scores=np.empty(BLOCK),
        picked=np.empty(BLOCK, np.int32),
        numbers=np.empty((height, BLOCK)),
        columns=np.empty((width, BLOCK), np.int64),
        known=np.empty((width, BLOCK), np.bool_),
    )


def _shelf(blocks: int, features: int, height: int) -> Shelf:
    return Shelf(
        lanes=aligned((blocks, features, LANES), np.float32),
        values=np.empty((blocks * LANES, height)),
        numbers=np.empty(blocks * LANES, np.int64),
        fill=np.zeros(2, np.int64),
    )


def _cells(boxes: Boxes, slots: int) -> Cells:
    """Empty cells, for queries below slot `slots`."""
    words = (slots + 63) // 64 + 1
    cells, all_boxes = int(boxes.base[1]), int(boxes.base[-1])
    sectors = int(boxes.base[boxes.sector + 1] - boxes.base[boxes.sector])
    home = np.empty(cells, HOME)
    home["newest"], home["state"] = -1, UNCHECKED
    return Cells(
        home=home,
        active=np.zeros(all_boxes, np.int32),
        hot=np.zeros(_HOT_MIN, HOT),
        bits=np.zeros((_HOT_MIN, words), np.uint64),
        sectors=np.zeros((sectors, words), np.uint64),
        every=np.zeros(words, np.uint64),
        fill=np.zeros(1, np.int64),
    )
