"""Where a query meets its stream: names, types and units that only the two together can show to be wrong.

Every fault is collected, so that a file's mistakes all come at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from .expressions import (
    Apply,
    Constant,
    ExpressionError,
    Member,
    Name,
    Node,
    Number,
    Op,
    check_filter,
    check_score,
    fold,
    parse,
)
from .fields import Fault
from .scores import score_node
from .streams import Stream

if TYPE_CHECKING:
    from .models import AnyQuery


def faults_of_set(streams: Mapping[str, Stream | None], queries: Sequence[AnyQuery | None]) -> list[Fault]:
    """What is wrong across a set. None stands for a part that is wrong by itself and was reported already."""
    faults = _clashing_columns(streams)
    names: set[str] = set()
    for index, query in enumerate(queries):
        if query is None:
            continue
        if query.name in names:
            faults.append(
                (
                    ("queries", index, "name"),
                    f"{query.name!r} names an earlier query too; each query needs a name of its own",
                )
            )
        names.add(query.name)
        if query.stream not in streams:
            faults.append((("queries", index, "stream"), unknown_stream(query.stream, streams)))
            continue
        stream = streams[query.stream]
        if stream is not None:
            faults += [(("queries", index, *place), message) for place, message in faults_of_query(query, stream)]
    return faults


def unknown_stream(name: str, streams: Mapping[str, object]) -> str:
    return f"there is no stream {name!r}; {_suggestion(name, streams)}"


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1)
    return (f"did you mean {close[0]}? " if close else "") + f"there are {', '.join(known) or 'none'}"


def _clashing_columns(streams: Mapping[str, Stream | None]) -> list[Fault]:
    # Results of all queries share one table, so a carried column has one type throughout a set.
    faults: list[Fault] = []
    seen: dict[str, tuple[str, str]] = {}
    for stream_name, stream in streams.items():
        if stream is None:
            continue
        types = {**dict.fromkeys(stream.attributes, "float64"), **stream.columns}
        for name, kind in types.items():
            first_stream, first_kind = seen.setdefault(name, (stream_name, kind))
            if first_kind != kind:
                part = "columns" if name in stream.columns else "attributes"
                faults.append(
                    (
                        ("streams", stream_name, part, name),
                        f"is {kind} here and {first_kind} in stream {first_stream}; results of both share a "
                        "table, so give one of them another name or type",
                    )
                )
    return faults


def faults_of_query(query: AnyQuery, stream: Stream) -> list[Fault]:
    """What is wrong with a query over this stream."""
    faults: list[Fault] = []
    try:
        check_score(score_node(query.score), stream.attributes, stream.columns)
    except ExpressionError as error:
        faults.append((("score",), str(error)))
    if query.where is not None:
        faults += _where_faults(query.where, stream)
    if query.window.is_time and stream.time is None:
        faults.append(
            (
                ("window",),
                f"is a time window, but stream {query.stream} has no event time; "
                "declare `time: COLUMN` there or use a count window",
            )
        )
    if query.window.landmark is not None and stream.deletes:
        faults.append(
            (
                ("window",),
                f"is a landmark, but rows of stream {query.stream} may be deleted; use a count or "
                "time window, since a landmark cannot fall back on rows it has forgotten",
            )
        )
    if query.group_by is not None:
        faults += _group_faults(query.group_by, stream)
    known = {**stream.attributes, **stream.columns}
    faults += [
        (("carry",), f"{name} is no attribute or column of stream {query.stream}; {_suggestion(name, known)}")
        for name in query.carry
        if name not in known
    ]
    return faults


def _group_faults(name: str, stream: Stream) -> list[Fault]:
    kind = stream.columns.get(name)
    if kind is None:
        hint = " (an attribute cannot group; declare it as an int64 column)" if name in stream.attributes else ""
        return [(("group_by",), f"{name} is no column of the stream{hint}; {_suggestion(name, stream.columns)}")]
    if kind == "float64":
        return [(("group_by",), f"{name} is float64; group by a string, int64 or bool column")]
    return []


def _where_faults(where: str | dict[str, list[Any]], stream: Stream) -> list[Fault]:
    if isinstance(where, str):
        try:
            check_filter(parse(where), stream.attributes, stream.columns)
        except ExpressionError as error:
            return [(("where",), str(error))]
        return []
    faults: list[Fault] = []
    for name, values in where.items():
        if name in stream.attributes:
            message = _range_fault(values)
        elif name in stream.columns:
            message = _set_fault(values, stream.columns[name])
        else:
            message = (
                f"is no attribute or column of the stream; {_suggestion(name, {**stream.attributes, **stream.columns})}"
            )
        if message:
            faults.append((("where", name), message))
    return faults


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _range_fault(values: list[Any]) -> str | None:
    if len(values) != 2 or not all(end is None or _is_number(end) for end in values):
        return f"{values!r} is not a range of an attribute; write [low, high], either of them null for no bound"
    low, high = values
    if low is not None and high is not None and low > high:
        return f"[{low}, {high}] holds nothing; write [{high}, {low}]"
    return None


_TYPES: dict[str, tuple[type, ...]] = {"string": (str,), "int64": (int,), "float64": (int, float), "bool": (bool,)}


def _set_fault(values: list[Any], kind: str) -> str | None:
    if not values:
        return "is an empty set, so no row would count; list the values that should"
    for value in values:
        if not isinstance(value, _TYPES[kind]) or (kind != "bool" and isinstance(value, bool)):
            return f"{value!r} is not of the column's type, {kind}"
    return None


def filter_node(where: str | dict[str, list[Any]], stream: Stream) -> Node:
    """The tree of a filter, whichever way it was written."""
    if isinstance(where, str):
        return parse(where)
    parts = [part for name, values in where.items() for part in _tests(name, values, name in stream.attributes)]
    return fold(Op.AND, parts) if parts else Apply(Op.EQUAL, (Number(0.0), Number(0.0)))


def _tests(name: str, values: list[Any], is_range: bool) -> list[Node]:
    if is_range:
        low, high = values
        return [
            *([Apply(Op.GREATER_EQUAL, (Name(name), Number(float(low))))] if low is not None else []),
            *([Apply(Op.LESS_EQUAL, (Name(name), Number(float(high))))] if high is not None else []),
        ]
    constants = tuple(Number(value) if isinstance(value, float) else Constant(value) for value in values)
    return [Member(Name(name), constants)]
