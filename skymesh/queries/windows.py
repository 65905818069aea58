"""Windows: the rows that a ranking is over, and the points at which it is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from .fields import Fault, Model, raise_faults
from .units import Count, Duration, Extent, format_unit, parse_extent, parse_instant, parse_position, wrong


def _parse_landmark(value: Any) -> Any:
    return value if value == "start" else parse_position(value)


def _parse_offset(value: Any) -> Any:
    if isinstance(value, datetime) or (isinstance(value, str) and "-" in value):
        return parse_instant(value)
    return parse_extent(value)


def window_of(value: Any) -> Any:
    if value == "landmark":
        return {"landmark": "start"}
    if isinstance(value, Mapping) and "tumbling" in value:
        rest = {key: part for key, part in value.items() if key != "tumbling"}
        if rest.keys() & {"count", "time", "landmark", "slide"}:
            raise wrong("tumbling gives both size and slide; leave out count, time, landmark and slide")
        size = parse_extent(value["tumbling"])
        return {("time" if isinstance(size, timedelta) else "count"): size, "slide": size, **rest}
    if not isinstance(value, Mapping | Window):
        raise wrong(
            f"{value!r} is not a window; write {{count: 1000, slide: 10}}, {{time: 10m, slide: 1m}}, "
            "{tumbling: 1h} or landmark"
        )
    return value


class Window(Model):
    """The rows that a ranking is over, and the points at which it is looked at.

    `count: n` is the n latest rows, `time: T` is event time in (t - T, t], `landmark` is everything since. `slide` is
    the distance of the evaluation points; without it every row (count) or every instant of change (time) is one.
    """

    count: Count | None = Field(None, description="the n latest rows")
    time: Duration | None = Field(None, description="event time in (t - T, t]")
    landmark: Annotated[Literal["start"] | int | datetime, BeforeValidator(_parse_landmark)] | None = Field(
        None, description="everything since the query's start, a row number (from 0), or a time"
    )
    slide: Extent | None = Field(None, description="distance of the evaluation points, in rows or time")
    offset: Annotated[int | timedelta | datetime, BeforeValidator(_parse_offset)] | None = Field(
        None, description="the first point (count), or the shift of all points (time)"
    )

    @property
    def is_time(self) -> bool:
        """Whether positions are event times; otherwise they are row counts."""
        return self.time is not None or isinstance(self.slide, timedelta) or isinstance(self.landmark, datetime)

    @property
    def size(self) -> int | timedelta | None:
        """How much the window holds; None for a landmark, which forgets nothing."""
        return self.count if self.count is not None else self.time

    @property
    def points_are_rows(self) -> bool:
        """Whether every row is an evaluation point."""
        return not self.is_time and self.slide in (None, 1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        raise_faults("Window", [*_window_faults(self)], self)
        return self

    def __str__(self) -> str:
        parts = {name: getattr(self, name) for name in ("count", "time", "landmark", "slide", "offset")}
        return ", ".join(f"{name} {_spelled(part)}" for name, part in parts.items() if part)


def _spelled(part: int | timedelta | datetime | str) -> str:
    if isinstance(part, int):
        return f"{part:,}"
    return part if isinstance(part, str) else str(format_unit(part))


def _window_faults(window: Window) -> list[Fault]:
    given = [name for name in ("count", "time", "landmark") if getattr(window, name) is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "no size"
        return [((), f"has {found}; give exactly one of count, time, landmark or tumbling")]
    if window.size is not None and not window.size:
        return [((given[0],), f"is {format_unit(window.size)}; a window of nothing ranks nothing, so make it larger")]
    return _slide_faults(window) + _offset_faults(window)


def _slide_faults(window: Window) -> list[Fault]:
    slide, size = window.slide, window.size
    if slide is None:
        return []
    if not slide:
        return [(("slide",), "is 0; leave it out to look at every row, or make it larger")]
    landmark_unit = {int: int, datetime: timedelta}.get(type(window.landmark))
    unit = type(size) if size is not None else landmark_unit
    if unit is not None and not isinstance(slide, unit):
        words = "rows, so slide by rows" if unit is int else "time, so slide by a time such as 1m"
        return [(("slide",), f"is {format_unit(slide)}, but the window is counted in {words}")]
    if size is not None and slide > size:  # type: ignore[operator]  # the units agree, as just checked
        return [
            (
                ("slide",),
                f"({format_unit(slide)}) is longer than the window ({format_unit(size)}), so rows in "
                f"between would reach no window; set slide to {format_unit(size)} or less",
            )
        ]
    return []


def _offset_faults(window: Window) -> list[Fault]:
    offset = window.offset
    if offset is None:
        return []
    if not window.is_time:
        if not isinstance(offset, int):
            return [(("offset",), f"is {format_unit(offset)}, but the points are counted in rows; give a row count")]
        if offset < 1:
            return [(("offset",), "is 0; the first point comes after the first row at the earliest, so set 1 or more")]
        return []
    if window.slide is None:
        return [(("offset",), "shifts the points of a slide, and there is no slide; add one or leave offset out")]
    if isinstance(offset, int):
        return [(("offset",), f"is {offset}, but the points are times; give a time such as 15m")]
    return []
