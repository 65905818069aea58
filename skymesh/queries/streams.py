"""Streams: which columns there are, what they mean, and how late a row may come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from .fields import Fault, Flag, Model, NameText, parse_real, raise_faults
from .units import Count, Duration, wrong

INTERVALS_MAX = 128  # of the grid, along one axis
ColumnType = Literal["string", "int64", "float64", "bool"]


class IdColumn(Model):
    """Which column names the object, and its type."""

    column: NameText = Field(description="the column that names the object")
    type: Literal["int64", "string"] = Field("int64", description="type of the id")


def _parse_domain(value: Any) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise wrong(f"{value!r} is not a range; write [low, high]")
    low, high = (parse_real(end) for end in value)
    if low > high:
        raise wrong(f"[{low:g}, {high:g}] has its ends the wrong way round; write [{high:g}, {low:g}]")
    return low, high


def _parse_intervals(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= INTERVALS_MAX:
        raise wrong(f"{value!r} is not a number of intervals; write one from 1 to {INTERVALS_MAX}, or leave it out")
    return value


class Attribute(Model):
    """A number that scores may use. The domain guides the index; values outside it rank by their true score."""

    domain: Annotated[tuple[float, float], BeforeValidator(_parse_domain)] | None = Field(
        None, description="[low, high], the range most values lie in"
    )
    intervals: Annotated[int, BeforeValidator(_parse_intervals)] | None = Field(
        None, description="how many intervals the grid has along it; chosen from the number of rows if left out"
    )


class Keep(Model):
    """How much of the stream is held for queries that are added later with `start: window`."""

    time: Duration | None = Field(None, description="how long rows are held, for time windows")
    count: Count | None = Field(None, description="how many rows are held, for count windows")


def _attributes(value: Any) -> Any:
    if isinstance(value, list | tuple):
        _require_distinct(value)
        return {name: Attribute() for name in value}
    if isinstance(value, Mapping):
        return {name: {} if attribute is None else attribute for name, attribute in value.items()}
    raise wrong(
        f"{value!r} is not a set of attributes; write a mapping like {{price: {{domain: [0, 1000]}}}} or a list"
    )


def _columns(value: Any) -> Any:
    if isinstance(value, list | tuple):
        _require_distinct(value)
        return dict.fromkeys(value, "string")
    if isinstance(value, Mapping):
        return value
    raise wrong(f"{value!r} is not a set of columns; write a list of names (strings) or a mapping of names to types")


def _require_distinct(names: list[Any] | tuple[Any, ...]) -> None:
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise wrong(f"{name!r} is not a name; write a list of texts")
        if name in seen:
            raise wrong(f"{name!r} stands twice in the list; name it once")
        seen.add(name)


def _id_column(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


def _keep(value: Any) -> Any:
    if isinstance(value, timedelta | str):
        return {"time": value}
    return {"count": value} if isinstance(value, int | float) and not isinstance(value, bool) else value


class Stream(Model):
    """A stream of rows: which columns there are and what they mean."""

    id: Annotated[IdColumn, BeforeValidator(_id_column)] = Field(description="the column that names the object")
    time: NameText | None = Field(None, description="the column with the event time; without it, count windows only")
    lateness: Duration = Field(timedelta(0), description="how far behind the greatest time a row may still come")
    max_ahead: Duration = Field(
        timedelta(hours=1), description="how far ahead of the clock a row may be before it is rejected as future"
    )
    keep: Annotated[Keep, BeforeValidator(_keep)] | None = Field(
        None, description="rows (or a time) held for queries added later with `start: window`"
    )
    deletes: Flag = Field(False, description="whether rows may be withdrawn by id")
    attributes: Annotated[dict[NameText, Attribute], BeforeValidator(_attributes)] = Field(
        description="the numbers that scores are made of"
    )
    columns: Annotated[dict[NameText, ColumnType], BeforeValidator(_columns)] = Field(
        {}, description="what else queries may carry, group by or filter on"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults: list[Fault] = []
        if not self.attributes:
            faults.append((("attributes",), "a stream needs at least one attribute to rank by; name one"))
        for name in self.columns:
            if name in self.attributes:
                faults.append(
                    (
                        ("columns",),
                        f"{name} is an attribute already; filters may use attributes, "
                        "so name it once, under attributes",
                    )
                )
        if self.time is None:
            for field in ("lateness", "max_ahead"):
                if field in self.model_fields_set:
                    faults.append(((field,), "has no meaning without an event time; add `time: COLUMN` or drop it"))
            if self.keep and self.keep.time is not None:
                faults.append(
                    (
                        ("keep",),
                        "holds rows by time, but the stream has no event time; add `time: COLUMN` "
                        "or keep a number of rows",
                    )
                )
        raise_faults("Stream", faults, self)
        return self
