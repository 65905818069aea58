"""Checks that every row passes: are its numbers finite, is it late, is it from the future."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.kernel import kernel

GOOD, LATE, FUTURE = 0, 1, 2


@kernel
def all_finite(numbers: Any) -> bool:
    """Whether no number is NaN or infinite. Counts without leaving early, so that the loop is vectorized."""
    bad = 0
    for row in range(numbers.shape[0]):
        for i in range(numbers.shape[1]):
            bad += not np.isfinite(numbers[row, i])
    return bad == 0


@kernel
def all_within(values: Any, limit: int) -> bool:
    """Whether no integer is further from zero than the limit."""
    bad = 0
    for i in range(values.shape[0]):
        bad += values[i] > limit or values[i] < -limit
    return bad == 0


@kernel
def judge_times(time: Any, greatest: int, lateness: int, floor: int, latest_ahead: int, verdict: Any) -> int:
    """Row by row: late if below the watermark that earlier rows (or a flush: `floor`) left, future if beyond
    latest_ahead.

    verdict u1[n] is written; returns the greatest time after the last row. Future rows move nothing.
    """
    for i in range(time.shape[0]):
        if time[i] > latest_ahead:
            verdict[i] = FUTURE
        elif time[i] < max(greatest - lateness, floor):
            verdict[i] = LATE
        else:
            verdict[i] = GOOD
            greatest = max(greatest, time[i])
    return greatest


@kernel
def count_up(first: int, out: Any) -> None:
    """first, first + 1, ..."""
    for i in range(out.shape[0]):
        out[i] = first + i


@kernel
def is_in_time_order(time: Any, seq: Any) -> bool:
    """Whether rows stand by (time, seq)."""
    for i in range(1, time.shape[0]):
        if time[i] < time[i - 1] or (time[i] == time[i - 1] and seq[i] < seq[i - 1]):
            return False
    return True
