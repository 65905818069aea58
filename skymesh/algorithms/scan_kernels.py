"""The best of a window by looking at all of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .asked import PerId
from .columns import NEVER
from .kernel import kernel
from .point_kernels import horizon_of, leaves_at, point_from
from .row_kernels import end_of_row
from .score_kernels import BLOCK
from .select_kernels import add_to_heap, merits_of_block, ranking_of_row, replace_least

LATEST = int(PerId.LATEST)


@kernel
def first_after(at: Any, x: int) -> int:
    """How many rows lie at or below a position."""
    low, high = 0, at.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if at[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def next_due(at: Any, query: Any, past: int, is_time: bool) -> int:
    """The next point after `past` at which a query can differ: every one in rows, where rows come or go in time."""
    slide, offset, first, size = query.slide, query.offset, query.first, query.size
    if not is_time:
        return point_from(past + 1, slide, offset, first)
    seen = past  # the last point up to `past`: what happened after it, no point has seen yet
    if slide > 0:
        seen = offset + ((past - offset) // slide) * slide
    due = NEVER
    i = first_after(at, seen)
    if i < at.shape[0]:
        due = point_from(max(at[i], past + 1), slide, offset, first)
    if size < NEVER:
        i = first_after(at, seen - size)
        if i < at.shape[0]:
            due = min(due, point_from(max(leaves_at(at[i], size), past + 1), slide, offset, first))
    return due


@kernel
def window_at(at: Any, query: Any, p: int) -> tuple[int, int]:
    """The rows low..high that are in a query's window that ends at p."""
    return first_after(at, max(horizon_of(p, query.size), query.after)), first_after(at, p)


@kernel
def choose_best(
    at: Any, query: Any, past: int, limit: int, is_time: bool, merits: Any, end: Any, heap: Any, chosen: Any
) -> None:
    """Mark the rows that are among the k best of a query without groups at some point in (past, limit].

    merits f8[n] and end i8[n] come from judge_rows, heap f8[n] is scratch, chosen b1[n] is written.
    """
    due = next_due(at, query, past, is_time)
    while due <= limit:
        low, high = window_at(at, query, due)
        choose_at(query.k, low, high, due, merits, end, heap, chosen)
        due = next_due(at, query, due, is_time)


@kernel
def choose_at(k: int, low: int, high: int, p: int, merits: Any, end: Any, heap: Any, chosen: Any) -> None:
    """Mark the k best rows among rows low..high at point p; of equal ones the newer."""
    floor = kth_best(k, low, high, p, merits, end, heap)
    above = 0
    for i in range(low, high):
        above += merits[i] > floor and end[i] > p
    ties = k - above
    for i in range(high - 1, low - 1, -1):
        if end[i] > p:
            if merits[i] > floor:
                chosen[i] = True
            elif merits[i] == floor and ties > 0:
                chosen[i] = True
                ties -= 1


@kernel
def judge_rows(
    programs: Any,
    filter_of: Any,
    stack: Any,
    query: Any,
    q: int,
    groups: Any,
    rows: Any,
    base: int,
    low: int,
    merits: Any,
    ranking: Any,
    end: Any,
) -> None:
    """Merit, ranking and end of all rows from `low` on; a merit of NaN where a row does not count."""
    numbers, columns, known, at, seq = rows.numbers, rows.columns, rows.known, rows.at, rows.seq
    n = at.shape[0]
    for start in range(low, n, BLOCK):
        count = min(BLOCK, n - start)
        out = merits[start : start + count]
        merits_of_block(programs, filter_of, stack, query, q, numbers, columns, known, at, seq, start, count, out)
    for i in range(low, n):
        ranking[i] = ranking_of_row(query, q, groups, columns, known, i)
        end[i] = end_of_row(rows, base, i, query.per_id == LATEST, query.since)
        if ranking[i] < 0:
            merits[i] = np.nan


@kernel
def kth_best(k: int, low: int, high: int, p: int, merits: Any, end: Any, heap: Any) -> float:
    """The k-th best merit, -inf if there are fewer. heap f8[high - low] at least is scratch."""
    if k > high - low:
        return -np.inf
    held = 0
    for i in range(low, high):
        if merits[i] != merits[i] or end[i] <= p:
            continue
        if held < k:
            add_to_heap(heap, held, merits[i])
            held += 1
        elif merits[i] > heap[0]:
            replace_least(heap, held, merits[i])
    return heap[0] if held == k else -np.inf
