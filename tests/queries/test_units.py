"""Durations, counts and instants as users write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from skymesh.queries.units import (
    format_duration,
    parse_count,
    parse_duration,
    parse_extent,
    parse_instant,
    parse_position,
)


@pytest.mark.parametrize(
    ("text", "seconds"), [("10m", 600), ("1h30m", 5400), ("500ms", 0.5), ("2d", 172_800), ("1.5h", 5400), ("0s", 0)]
)
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["10", 10, "m", "10 m", "30m1h", "1h1h", "-5m", "1e3s", None, True, "200w" * 50, "9" * 30 + "w"]
)
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(PydanticCustomError):
        parse_duration(text)


@given(st.integers(0, 10**17).map(lambda us: timedelta(microseconds=us % (86_400_000_000 * 36_000))))
def test_a_duration_that_is_written_is_read_back(duration):
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(("value", "count"), [(7, 7), ("1_000_000", 10**6), ("1e6", 10**6), (1e6, 10**6), ("0", 0)])
def test_counts_are_read(value, count):
    assert parse_count(value) == count


@pytest.mark.parametrize("value", [1.5, "1.5", True, "-1", "ten", None, 2**62, "1e99"])
def test_what_is_no_count_is_refused(value):
    with pytest.raises(PydanticCustomError):
        parse_count(value)


def test_instants_without_a_zone_are_utc():
    assert parse_instant("2026-01-31T09:00:00") == datetime(2026, 1, 31, 9, tzinfo=UTC)
    assert parse_instant("2026-01-31T09:00:00+02:00") == datetime(2026, 1, 31, 7, tzinfo=UTC)
    with pytest.raises(PydanticCustomError):
        parse_instant("yesterday")


def test_rows_and_time_are_told_apart():
    assert parse_extent("1e6") == 10**6
    assert parse_extent("10m") == timedelta(minutes=10)
    assert parse_position(5000) == 5000
    assert parse_position("2026-01-01") == datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(PydanticCustomError, match="neither rows nor time"):
        parse_extent("soon")
