"""What a user may ask, as frozen models: the kinds of queries, and the set they stand in.

YAML and Python give the same models with the same field names. A model checks what it can see by itself; what needs
the stream as well (attributes, columns, event time) is checked by `checks.py` when a query meets its stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from .checks import faults_of_set
from .fields import Fault, Model, NameText, Real, raise_faults
from .scores import Score, parse_expression
from .streams import Stream
from .units import Count, Position, format_unit, wrong
from .windows import Window, window_of

KINDS = ("topk", "threshold")
RESULT_COLUMNS = ("query", "group", "at", "op", "id", "score", "rank", "seq", "time")
K_MAX = 2**31 - 1


class Active(Model):
    """When a query is active, in the unit of its window: rows from <= seq < until, or from < time <= until."""

    model_config = ConfigDict(populate_by_name=True)

    from_: Position | None = Field(None, alias="from", description="row number or time from which rows count")
    until: Position | None = Field(None, description="row number or time at which the query ends")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.from_ is not None and self.until is not None and type(self.from_) is not type(self.until):
            raise wrong("from and until are in different units; give two row numbers or two times")
        if self.from_ is not None and self.until is not None and self.from_ >= self.until:  # type: ignore[operator]
            raise wrong(f"ends ({format_unit(self.until)}) before it begins ({format_unit(self.from_)})")
        return self


Where = str | dict[NameText, list[Any]]


def _where(value: Any) -> Any:
    if isinstance(value, str):
        return parse_expression(value)
    if not isinstance(value, Mapping) or not value:
        raise wrong(f"{value!r} is not a filter; write a condition such as price > 10, or {{price: [10, 500]}}")
    for name, values in value.items():
        if not isinstance(values, list | tuple):
            raise wrong(
                f"{name}: {values!r} is not a list; write [low, high] for an attribute, [A, B, ...] for a column"
            )
    return {name: list(values) for name, values in value.items()}


def _largest_k(value: int) -> int:
    if value < 1:
        raise wrong(f"is {value}; a ranking shows at least one object, so set k to 1 or more")
    if value > K_MAX:
        raise wrong(f"is {value:,}; at most {K_MAX:,} can be shown, so use a threshold query to see everything")
    return value


def _max_groups(value: int) -> int:
    if value < 1:
        raise wrong("is 0; a query with group_by needs room for at least one group")
    return value


class Query(Model):
    """What all kinds of queries share."""

    name: NameText = Field(description="unique in the set")
    stream: NameText = Field(description="the stream that is ranked")
    score: Score = Field(description="what rows are ranked by: an expression, or linear, product, quadratic, distance")
    window: Annotated[Window, BeforeValidator(window_of)] = Field(description="the rows that are ranked, and how often")
    where: Annotated[Where, BeforeValidator(_where)] | None = Field(
        None, description="which rows count: a condition, or ranges of attributes and sets of column values"
    )
    group_by: NameText | None = Field(None, description="a column; one ranking for each of its values")
    max_groups: Annotated[Count, AfterValidator(_max_groups)] = Field(
        10_000, description="how many groups there may be; rows of further ones are rejected and counted"
    )
    per_id: Literal["all", "latest", "best"] = Field(
        "all", description="what counts of several rows with one id: all of them, the latest, or the best"
    )
    carry: list[NameText] = Field([], description="other columns that the result shows")
    emit: Literal["changes", "ranked", "entries", "snapshot"] = Field(
        "changes", description="what the result tells: membership, ranks too, first entries only, or whole rankings"
    )
    algorithm: NameText = Field("auto", description="how it is computed; `skymesh explain` tells what auto takes")
    start: Literal["now", "window"] = Field(
        "now", description="when added to a running engine: from new rows only, or over the rows that are there"
    )
    active: Active | None = Field(None, description="when the query is active")

    @model_validator(mode="after")
    def _check(self) -> Self:
        raise_faults(type(self).__name__, _query_faults(self), self)
        return self


def _query_faults(query: Query) -> list[Fault]:
    faults: list[Fault] = []
    window = query.window
    if query.emit == "snapshot" and window.is_time and window.slide is None:
        faults.append(
            (("emit",), "snapshot needs a slide in a time window; add one, such as slide: 1m, or emit changes")
        )
    if query.per_id == "latest" and window.landmark is not None:
        faults.append(
            (
                ("per_id",),
                "latest needs a window that forgets, and a landmark forgets nothing; "
                "use a count or time window, or per_id: best",
            )
        )
    if len(set(query.carry)) != len(query.carry):
        faults.append((("carry",), "names a column twice; name it once"))
    faults += [
        (("carry",), f"{name} is a column of every result; rename it in the stream to carry it")
        for name in query.carry
        if name in RESULT_COLUMNS
    ]
    if query.active is not None:
        unit, word = (datetime, "a time") if window.is_time else (int, "a row number")
        for field, bound in (("from", query.active.from_), ("until", query.active.until)):
            if bound is not None and not isinstance(bound, unit):
                faults.append((("active", field), f"is {format_unit(bound)}, but this window needs {word}"))
    return faults


class TopK(Query):
    """The k best objects of a window."""

    kind: Literal["topk"] = "topk"
    k: Annotated[Count, AfterValidator(_largest_k)] = Field(description="how many objects the ranking shows")
    order: Literal["largest", "smallest"] = Field("largest", description="which scores are better")


class Threshold(Query):
    """All objects of a window whose score lies above (or below) a value."""

    kind: Literal["threshold"] = "threshold"
    above: Real | None = Field(None, description="show scores greater than this, largest first")
    below: Real | None = Field(None, description="show scores less than this, smallest first")

    @model_validator(mode="after")
    def _check_bound(self) -> Self:
        if (self.above is None) == (self.below is None):
            raise wrong("give exactly one of above and below")
        return self


AnyQuery = TopK | Threshold
MODEL_OF_KIND: dict[str, type[TopK] | type[Threshold]] = {"topk": TopK, "threshold": Threshold}


def _kind_of(value: Any) -> str | None:
    kind = value.get("kind", "topk") if isinstance(value, Mapping) else getattr(value, "kind", None)
    return kind if isinstance(kind, str) and kind in KINDS else None


def unknown_kind(kind: object) -> str:
    return f"{kind!r} is no kind of query; there are {', '.join(KINDS)}"


class QuerySet(Model):
    """Streams and the queries over them: what a YAML file holds, and what an engine runs."""

    version: Literal[1] = Field(1, description="version of the query language")
    streams: dict[NameText, Stream] = Field(description="the streams, by name")
    queries: list[
        Annotated[
            Annotated[TopK, Tag("topk")] | Annotated[Threshold, Tag("threshold")],
            Discriminator(
                _kind_of,
                custom_error_type="skymesh",
                custom_error_message=f"is no query of a known kind; there are {', '.join(KINDS)}",
            ),
        ]
    ] = Field([], description="the standing queries")

    @model_validator(mode="after")
    def _check(self) -> Self:
        raise_faults("QuerySet", faults_of_set(self.streams, self.queries), self)
        return self
