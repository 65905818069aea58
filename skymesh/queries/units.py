"""Durations, counts and instants as users write them.

A duration is `10m` or `1h30m`, a count is `1_000_000` or `1e6`, an instant is ISO 8601. Everything past this
module sees `timedelta`, `int` and an aware `datetime`, so a number of rows and a stretch of time can never be
taken for each other.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

MICROSECONDS = {
    "w": 7 * 86_400_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_PART = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)(w|d|h|ms|us|m|s)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_COUNT = re.compile(r"\d{1,20}(?:_\d{1,9}){0,9}(?:[eE]\+?\d{1,2})?")

# Row counts and microseconds are summed in int64: a quarter of its range leaves room for position + size.
COUNT_MAX = 2**61
DURATION_MAX = timedelta(days=36_525)


def wrong(message: str) -> PydanticCustomError:
    """An error whose text is ours, word for word."""
    return PydanticCustomError("skymesh", "{message}", {"message": message})


def parse_duration(value: Any) -> timedelta:
    """`10m`, `1h30m`, `500ms`, or a timedelta.

    >>> parse_duration("1h30m")
    datetime.timedelta(seconds=5400)
    """
    if isinstance(value, timedelta):
        duration = value
    elif isinstance(value, str) and _DURATION.fullmatch(value):
        duration = timedelta(microseconds=_microseconds(value))
    else:
        raise wrong(f"{value!r} is not a duration; write it like 10m, 1h30m or 500ms (units: w d h m s ms us)")
    if duration < timedelta(0):
        raise wrong(f"{value!r} is negative; a duration is zero or more")
    if duration > DURATION_MAX:
        raise wrong(f"{value!r} is longer than a hundred years; use a landmark window to keep everything")
    return duration


def _microseconds(text: str) -> int:
    total = 0
    last_unit = MICROSECONDS["w"] + 1
    for number, unit in _PART.findall(text):
        size = MICROSECONDS[unit]
        if size >= last_unit:
            raise wrong(f"{text!r} has its units out of order; write the larger unit first, each once, like 1h30m")
        last_unit = size
        whole, _, fraction = number.partition(".")
        scaled = int(whole + fraction) * size
        share, rest = divmod(scaled, 10 ** len(fraction))
        if rest:
            raise wrong(f"{text!r} is finer than a microsecond; round it")
        total += share
        if total > COUNT_MAX:
            raise wrong(f"{text!r} is longer than a hundred years; use a landmark window to keep everything")
    return total


def format_duration(duration: timedelta) -> str:
    """The shortest spelling that `parse_duration` reads back.

    >>> format_duration(timedelta(minutes=90))
    '1h30m'
    """
    rest = microseconds_of(duration)
    if rest == 0:
        return "0s"
    parts = []
    for unit, size in MICROSECONDS.items():
        share, rest = divmod(rest, size)
        if share:
            parts.append(f"{share}{unit}")
    return "".join(parts)


def microseconds_of(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def parse_count(value: Any) -> int:
    """`1_000_000`, `1e6`, or an integer."""
    count: int | None = None
    if isinstance(value, bool):
        pass
    elif isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        count = int(value)
    elif isinstance(value, str) and _COUNT.fullmatch(value):
        digits, _, exponent = value.lower().replace("_", "").partition("e")
        count = int(digits) * 10 ** int(exponent or 0)
    if count is None:
        raise wrong(f"{value!r} is not a count; write a whole number like 1000, 1_000_000 or 1e6")
    if count > COUNT_MAX:
        raise wrong(f"{value!r} is too large; the largest count is 2**61")
    return count


def parse_instant(value: Any) -> datetime:
    """ISO 8601, or a datetime. A time without a zone is UTC."""
    instant: datetime | None = None
    if isinstance(value, datetime):
        instant = value
    elif isinstance(value, date):
        instant = datetime(value.year, value.month, value.day)
    elif isinstance(value, str):
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            instant = None
    if instant is None:
        raise wrong(f"{value!r} is not a time; write it in ISO 8601, like 2026-01-31T09:00:00Z")
    return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)


def format_instant(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds_since_epoch(instant: datetime) -> int:
    return (parse_instant(instant) - _EPOCH) // timedelta(microseconds=1)


def parse_extent(value: Any) -> int | timedelta:
    """A number of rows, or a stretch of time."""
    if isinstance(value, timedelta) or (isinstance(value, str) and _DURATION.fullmatch(value)):
        return parse_duration(value)
    if isinstance(value, str) and not _COUNT.fullmatch(value):
        raise wrong(f"{value!r} is neither rows nor time; write rows like 1000 or 1e6, time like 10m or 1h30m")
    return parse_count(value)


def parse_position(value: Any) -> int | datetime:
    """A row number, or an instant."""
    if isinstance(value, date) or (isinstance(value, str) and not _COUNT.fullmatch(value)):
        return parse_instant(value)
    return parse_count(value)


def format_unit(value: int | timedelta | datetime) -> str | int:
    """Rows, time and instants, spelled as the parsers above read them."""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, datetime):
        return format_instant(value)
    return value


_DURATION_SCHEMA = {"type": "string", "pattern": rf"^({_PART.pattern})+$", "examples": ["10m", "1h30m"]}
_COUNT_SCHEMA = {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": rf"^{_COUNT.pattern}$"}]}
_INSTANT_SCHEMA = {"type": "string", "examples": ["2026-01-31T09:00:00Z"]}

Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, when_used="json"),
    WithJsonSchema(_DURATION_SCHEMA),
]
Count = Annotated[int, BeforeValidator(parse_count), WithJsonSchema(_COUNT_SCHEMA)]
Instant = Annotated[
    datetime,
    BeforeValidator(parse_instant),
    PlainSerializer(format_instant, when_used="json"),
    WithJsonSchema(_INSTANT_SCHEMA),
]
Extent = Annotated[
    int | timedelta,
    BeforeValidator(parse_extent),
    PlainSerializer(format_unit, when_used="json"),
    WithJsonSchema({"anyOf": [_COUNT_SCHEMA, _DURATION_SCHEMA]}),
]
Position = Annotated[
    int | datetime,
    BeforeValidator(parse_position),
    PlainSerializer(format_unit, when_used="json"),
    WithJsonSchema({"anyOf": [_COUNT_SCHEMA, _INSTANT_SCHEMA]}),
]
