"""A query as algorithms see it: numbers and programs, no models.

Rows and points are positions in the unit of the window (`columns.at`), so count and time windows share one arithmetic:
a row counts if after < at <= until and seq >= since, and points lie in after < p <= until.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum

from ..queries import AnyQuery, Stream, Threshold
from ..queries.checks import filter_node
from ..queries.programs import Places, Program, compile_program
from ..queries.scores import score_node
from ..queries.shapes import Direction, Form, directions, recognize
from ..queries.units import microseconds_of, microseconds_since_epoch
from .columns import EVER, NEVER

ALL_ROWS = 2**31 - 1


class Emit(IntEnum):
    CHANGES = 0
    RANKED = 1
    ENTRIES = 2
    SNAPSHOT = 3


class PerId(IntEnum):
    ALL = 0
    LATEST = 1
    BEST = 2


@dataclass(frozen=True, slots=True)
class Span:
    """A window as positions: size NEVER for a landmark, slide 0 where every instant of change is a point."""

    is_time: bool
    size: int
    slide: int
    offset: int
    first: int  # no point lies before it
    after: int
    until: int

    def flush_point(self, upto: int) -> int:
        """The last point that a flush gives: in time with a slide, the one that covers the greatest time."""
        if not self.is_time or self.slide == 0:
            return upto
        return self.offset - ((self.offset - upto) // self.slide) * self.slide

    def point_before(self, position: int) -> int:
        """The last point at or before a position, where points have a slide."""
        return self.offset + ((position - self.offset) // self.slide) * self.slide


@dataclass(frozen=True, slots=True)
class Scoring:
    """What a score and a filter compute. The form's terms refer to rows of the number matrix by name."""

    program: Program
    form: Form
    filter: Program | None
    rows: Mapping[str, int]
    directions: Mapping[str, Direction] = field(default_factory=dict)  # a guide: true for values inside the domains


@dataclass(frozen=True, slots=True)
class Asked:
    """One query, ready to run."""

    name: str
    k: int
    sign: float  # merit = sign * score
    bound: float  # rows count only if merit > bound
    span: Span
    scoring: Scoring
    since: int  # first seq that counts
    emit: Emit
    per_id: PerId
    group_column: int  # row of the column matrix, -1 without group_by

    @property
    def is_grouped(self) -> bool:
        return self.group_column >= 0


def ask(query: AnyQuery, stream: Stream, places: Places, since: int) -> Asked:
    """Turn a checked query into numbers. `since` is the seq of the first row that counts."""
    node = score_node(query.score)
    scoring = Scoring(
        compile_program(node, places),
        recognize(node),
        compile_program(filter_node(query.where, stream), places) if query.where is not None else None,
        places.numbers,
        directions(node, {name: attribute.domain for name, attribute in stream.attributes.items()}),
    )
    if isinstance(query, Threshold):
        k = ALL_ROWS
        sign = 1.0 if query.above is not None else -1.0
        bound = query.above if query.above is not None else -(query.below or 0.0)
    else:
        k, sign, bound = query.k, 1.0 if query.order == "largest" else -1.0, float("-inf")
    return Asked(
        name=query.name,
        k=k,
        sign=sign,
        bound=bound,
        span=span_of(query),
        scoring=scoring,
        since=since,
        emit=Emit[query.emit.upper()],
        per_id=PerId[query.per_id.upper()],
        group_column=places.columns[query.group_by] if query.group_by is not None else -1,
    )


def span_of(query: AnyQuery) -> Span:
    """The positions of a query's window and points."""
    window = query.window
    size = NEVER if window.size is None else _length(window.size)
    slide = _length(window.slide) if window.slide is not None else 0 if window.is_time else 1
    offset = 0 if window.offset is None else _position(window.offset)
    if not window.is_time and window.offset is None:
        offset = slide
    after = EVER
    if isinstance(window.landmark, datetime):
        after = _position(window.landmark) - 1  # a landmark in time is included
    elif isinstance(window.landmark, int):
        after = window.landmark
    until = NEVER
    if query.active is not None:
        after = max(after, EVER if query.active.from_ is None else _position(query.active.from_))
        until = NEVER if query.active.until is None else _position(query.active.until)
    return Span(window.is_time, size, slide, offset, EVER if window.is_time else offset, after, until)


def _length(extent: int | timedelta) -> int:
    return microseconds_of(extent) if isinstance(extent, timedelta) else extent


def _position(value: int | timedelta | datetime) -> int:
    return microseconds_since_epoch(value) if isinstance(value, datetime) else _length(value)
