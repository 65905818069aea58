"""What every ranking has to be, recomputed from all rows at every point. Slow, plain, and what the tests believe.

Nothing here is incremental, indexed or clever, and nothing is shared with the code it judges but the query models and
the scores themselves (`score_kernels` has its own tests). It remembers every row that ever came.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..queries import AnyQuery, Stream, Threshold

_US = timedelta(microseconds=1)


@dataclass
class Row:
    """One row with a position. `scores` and `passes` say, by query, what it scores and whether its filter lets it
    in."""

    seq: int
    id: object
    time: int
    groups: dict[str, object]  # by column
    scores: dict[str, float]
    passes: dict[str, bool]
    in_time: bool = True  # neither late nor from the future
    deleted: bool = False
    falls_due: bool = True  # not deleted while it still waited for the watermark


@dataclass(frozen=True)
class Told:
    """One row of the change log."""

    query: str
    group: object
    at: int | None
    op: str
    id: object = None
    score: float | None = None
    rank: int | None = None
    seq: int | None = None


class OracleStream:
    """All rows of a stream, and its clock."""

    def __init__(self, stream: Stream) -> None:
        self.rows: list[Row] = []
        self.greatest: int | None = None
        self._floor: int | None = None
        self._lateness = stream.lateness // _US
        self._max_ahead = stream.max_ahead // _US
        self.has_time = stream.time is not None

    @property
    def watermark(self) -> int | None:
        marks = [] if self.greatest is None else [self.greatest - self._lateness]
        marks += [] if self._floor is None else [self._floor]
        return max(marks, default=None)

    @property
    def closed(self) -> int | None:
        """Time windows that end here or before are closed."""
        return None if self.watermark is None else self.watermark - 1

    def arrive(self, rows: Iterable[Row], now: int) -> None:
        for row in rows:
            row.seq = len(self.rows)
            self.rows.append(row)
            if not self.has_time:
                continue
            future = row.time > now + self._max_ahead
            late = self.watermark is not None and row.time < self.watermark
            row.in_time = not future and not late
            if row.in_time:
                self.heartbeat(row.time)

    def heartbeat(self, time: int) -> None:
        self.greatest = time if self.greatest is None else max(self.greatest, time)

    def flush(self) -> None:
        if self.greatest is not None:
            self._floor = self.greatest + 1

    def delete(self, ids: Iterable[object]) -> None:
        gone = set(ids)
        for row in self.rows:
            if row.id in gone and not row.deleted:
                row.deleted = True
                row.falls_due = self.closed is not None and row.time <= self.closed


class OracleQuery:
    """One query over a stream: what it tells after each call."""

    def __init__(self, query: AnyQuery, stream: OracleStream, *, first: bool = True) -> None:
        self.query = query
        self.stream = stream
        window = query.window
        self.is_time = window.is_time
        self.size = None if window.size is None else _units(window.size)
        self.slide = None if window.slide is None else _units(window.slide)
        self.offset = _units(window.offset) if window.offset is not None else 0 if self.is_time else self.slide or 1
        self.recalls = query.start == "window" and not first and window.landmark is None
        self.since = 0 if self.recalls else len(stream.rows)
        self.start = self._over()
        self.past = self.start
        self.flushed: int | None = None
        self.is_over = False
        self.shown: dict[object, list[Row]] = {}
        self.seen: set[tuple[object, object]] = set()
        self.too_late: list[Row] = []  # for every point that is still to come
        if self.recalls:
            self._register(row for row in stream.rows if self._was_in_window(row))

    def _over(self) -> int | None:
        """All points up to here are over; None if none is."""
        return self.stream.closed if self.is_time else len(self.stream.rows)

    def _was_in_window(self, row: Row) -> bool:
        """Whether a row was there when the query was added: in the window, or waiting to fall due."""
        assert self.size is not None
        there = self.start is None or self._position(row) > self.start - self.size
        return there and self._counts(row) and not row.deleted

    # -- rows and points ---------------------------------------------------------------------------------------

    def _position(self, row: Row) -> int:
        return row.time if self.is_time else row.seq + 1

    def _counts(self, row: Row) -> bool:
        """Whether the query may count a row, before its filter."""
        if row.seq < self.since or (self.is_time and not row.in_time):
            return False
        return self._is_active(self._position(row))

    def _is_active(self, position: int) -> bool:
        active, landmark = self.query.active, self.query.window.landmark
        if isinstance(landmark, datetime) and position < _units(landmark):
            return False
        if isinstance(landmark, int) and position <= landmark:
            return False
        if active is not None and active.from_ is not None and position <= _units(active.from_):
            return False
        return active is None or active.until is None or position <= _units(active.until)

    def _in_window(self, row: Row, point: int) -> bool:
        position = self._position(row)
        inside = position <= point and (self.size is None or position > point - self.size)
        return inside and self._counts(row) and not row.deleted

    def _is_point(self, position: int) -> bool:
        if self.slide is None:
            return not self.is_time and position >= self.offset
        return (position - self.offset) % self.slide == 0 and (self.is_time or position >= self.offset)

    def _instants(self) -> set[int]:
        """Times of rows that fell due since the query started, and those times plus the window's length."""
        since = -math.inf if self.start is None or self.recalls else self.start
        times = {row.time for row in self.stream.rows if row.in_time and row.falls_due and row.time > since}
        return times | ({time + self.size for time in times} if self.size is not None else set())

    def _points(self, upto: int) -> list[int]:
        """Points after `past` up to a position. Before the first row there is nothing to look at."""
        if self.is_time and self.slide is None:
            return sorted(p for p in self._instants() if p <= upto and (self.past is None or p > self.past))
        first = min((self._position(row) for row in self.stream.rows), default=upto)
        start = first if self.past is None else self.past + 1
        return [p for p in range(start, upto + 1) if self._is_point(p)]

    @property
    def last_point(self) -> int | None:
        """The last point that is over since the query started."""
        if self.past is None:
            return None
        after = -math.inf if self.start is None else self.start
        if self.is_time and self.slide is None:
            passed = [p for p in self._instants() if after < p <= self.past and self._is_active(p)]
            return max(passed, default=None)
        return next(
            (
                p
                for p in range(self.past, self.past - 10**6, -1)
                if p > after and self._is_point(p) and self._is_active(p)
            ),
            None,
        )

    # -- rankings ----------------------------------------------------------------------------------------------

    def _ranking(self, point: int, group: object) -> list[Row]:
        query = self.query
        rows = [row for row in self.stream.rows if self._in_window(row, point)]
        if query.per_id == "latest":
            newest: dict[object, Row] = {}
            for row in sorted(rows, key=lambda row: (self._position(row), row.seq)):
                newest[row.id] = row
            rows = list(newest.values())
        rows = [row for row in rows if row.passes[query.name] and math.isfinite(row.scores[query.name])]
        if query.group_by is not None:
            rows = [row for row in rows if row.groups[query.group_by] == group]
        if isinstance(query, Threshold):
            if query.above is not None:
                rows = [row for row in rows if row.scores[query.name] > query.above]
            else:
                rows = [row for row in rows if query.below is not None and row.scores[query.name] < query.below]
        rows.sort(key=lambda row: (-self._merit(row), -self._position(row), -row.seq))
        if query.per_id == "best":
            best: dict[object, Row] = {}
            for row in rows:
                best.setdefault(row.id, row)
            rows = list(best.values())
        return rows if isinstance(query, Threshold) else rows[: query.k]

    def _merit(self, row: Row) -> float:
        query = self.query
        largest = query.above is not None if isinstance(query, Threshold) else query.order == "largest"
        return row.scores[query.name] if largest else -row.scores[query.name]

    def top(self) -> list[tuple[object, int, int]]:
        """Group, rank and seq of every row that is shown."""
        return [(group, i + 1, row.seq) for group, rows in self.shown.items() for i, row in enumerate(rows)]

    # -- what is told ------------------------------------------------------------------------------------------

    def arrived(self, rows: list[Row]) -> list[Told]:
        """After rows arrived."""
        self._register(row for row in rows if self._counts(row))
        if self.is_time and self.flushed is not None and self.size is not None and self.slide is not None:
            lost = min(self.flushed, self.flushed + self.slide - self.size)
            self.too_late += [row for row in rows if self._counts(row) and row.time <= lost]
        return self.moved_on()

    @property
    def missed(self) -> int:
        """Rows that are due and that came after a flush had given the last point that could have held them."""
        closed = self.stream.closed
        return sum(closed is not None and row.falls_due and row.time <= closed for row in self.too_late)

    def _register(self, rows: Iterable[Row]) -> None:
        if self.query.group_by is None:
            self.shown.setdefault(None, [])
            return
        for row in rows:
            group = row.groups[self.query.group_by]
            if group is not None and group not in self.shown and len(self.shown) < self.query.max_groups:
                self.shown[group] = []

    def moved_on(self, *, flush: bool = False) -> list[Told]:
        """Every point that is over now."""
        if self.is_over:
            return []
        self._register([])
        upto = self._over()
        if upto is None:
            return []
        limit = upto
        if flush and self.is_time and self.slide is not None and self.stream.greatest is not None:
            while not self._is_point(limit):
                limit += 1
            self.flushed = limit
        told = []
        for point in self._points(limit):
            if self._is_active(point):
                told += self._tell(point)
        self.past = limit if self.past is None else max(self.past, limit)
        active = self.query.active
        if active is not None and active.until is not None and upto >= _units(active.until):
            told.append(self.end())
        return told

    def deleted(self) -> list[Told]:
        """After a deletion: it shows at once where every row is a point."""
        now = len(self.stream.rows)
        at_once = not self.is_time and self.slide in (None, 1) and self.query.emit != "snapshot"
        if self.is_over or not at_once or self.last_point != now:
            return []
        return self._tell(now)

    def end(self) -> Told:
        self.is_over = True
        return Told(self.query.name, None, self.last_point, "end")

    def _tell(self, point: int) -> list[Told]:
        told = []
        for group, before in self.shown.items():
            now = self._ranking(point, group)
            told += self._difference(point, group, before, now)
            self.shown[group] = now
        return told

    def _object(self, row: Row) -> object:
        return row.seq if self.query.per_id == "all" else row.id

    def _difference(self, point: int, group: object, before: list[Row], now: list[Row]) -> list[Told]:
        was = {self._object(row): (i + 1, row) for i, row in enumerate(before)}
        is_ = {self._object(row): (i + 1, row) for i, row in enumerate(now)}

        def tell(op: str, rank: int, row: Row) -> Told:
            return Told(self.query.name, group, point, op, row.id, row.scores[self.query.name], rank, row.seq)

        if self.query.emit == "snapshot":
            if self.is_time and [row.seq for row in before] == [row.seq for row in now]:
                return []
            if before and not now:
                return [Told(self.query.name, group, point, "empty")]
            return [tell("row", rank, row) for rank, row in is_.values()]
        new = [what for what in is_ if what not in was]
        if self.query.emit == "entries":
            new = [what for what in new if (group, what) not in self.seen]
            self.seen |= {(group, what) for what in is_}
            return [tell("enter", *is_[what]) for what in new]
        gone = [what for what in was if what not in is_]
        moved = []
        if self.query.emit == "ranked":
            stay = [what for what in is_ if what in was]
            moved = [what for what in stay if (was[what][0], was[what][1].seq) != (is_[what][0], is_[what][1].seq)]
        return (
            [tell("leave", *was[what]) for what in gone]
            + [tell("move", *is_[what]) for what in moved]
            + [tell("enter", *is_[what]) for what in new]
        )


def _units(value: int | timedelta | datetime) -> int:
    """Rows, microseconds, or microseconds since 1970."""
    if isinstance(value, timedelta):
        return value // _US
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1, tzinfo=value.tzinfo)) // _US
    return value
