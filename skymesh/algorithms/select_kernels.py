"""Rows of a batch that may matter to rankings: scored, filtered, and thinned by panes.

Rows of one pane leave the window together, so a row that k rows of its pane rank above can never show. For each query
that is one comparison a row with the k-th best of the pane so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .columns import NEVER
from .hash_kernels import find_pair
from .kernel import kernel
from .point_kernels import pane_of
from .score_kernels import BLOCK, score_block


@kernel
def merits_of_block(
    programs: Any,
    filter_of: Any,
    stack: Any,
    query: Any,
    q: int,
    numbers: Any,
    columns: Any,
    known: Any,
    at: Any,
    seq: Any,
    start: int,
    count: int,
    out: Any,
) -> int:
    """Merits of rows start..start+count for query q into out[:count]; NaN where a row does not count.

    Returns how many rows pass the filter and have no finite score.
    """
    # Without a filter or a bound nothing is judged row by row: two loops that the compiler vectorizes.
    since, after, until, bound = query.since, query.after, query.until, query.bound
    filtered = filter_of[q] >= 0
    judged = filtered or bound > -np.inf
    # Rows stand by at, so the first and the last tell for all. Without `or` in it the loop over seq is vectorized too:
    # with it, and with both comparisons of at, it took 5 ns a row and query, four times as much as the score.
    judged |= at[start] <= after or at[start + count - 1] > until
    if since > 0:
        early = 0
        for i in range(start, start + count):
            early += seq[i] < since
        judged |= early > 0
    if filtered:
        score_block(programs, filter_of[q], numbers, columns, known, start, count, stack)
        for i in range(count):
            out[i] = stack[0, i]
    elif judged:
        for i in range(count):
            out[i] = 1.0
    score_block(programs, q, numbers, columns, known, start, count, stack)
    if judged:
        return judge_block(stack[0], at, seq, start, count, query.sign, since, after, until, bound, out)
    return turn_block(stack[0], count, query.sign, out)


@kernel
def turn_block(scores: Any, count: int, sign: float, out: Any) -> int:
    """Scores into merits; NaN for those that are not finite, which are counted."""
    bad = 0
    for i in range(count):
        out[i] = sign * scores[i]
        bad += not np.isfinite(scores[i])
    if bad:
        for i in range(count):
            if not np.isfinite(out[i]):
                out[i] = np.nan
    return bad


@kernel
def judge_block(
    scores: Any,
    at: Any,
    seq: Any,
    start: int,
    count: int,
    sign: float,
    since: int,
    after: int,
    until: int,
    bound: float,
    out: Any,
) -> int:
    """Like turn_block, for rows that are inside the query's time and pass its filter: out[i] is not 0 before."""
    bad = 0
    for i in range(count):
        row = start + i
        passes = out[i] != 0.0 and seq[row] >= since and after < at[row] <= until
        out[i] = np.nan
        if not passes:
            continue
        if not np.isfinite(scores[i]):
            bad += 1
        elif sign * scores[i] > bound:
            out[i] = sign * scores[i]
    return bad


@kernel
def count_unscored(
    programs: Any,
    filter_of: Any,
    stack: Any,
    wanted: Any,
    numbers: Any,
    columns: Any,
    known: Any,
    at: Any,
    seq: Any,
    merits: Any,
) -> None:
    """Count new rows that pass a query's filter and have no finite score. merits f8[BLOCK] is scratch."""
    for q in range(wanted.shape[0]):
        if wanted[q].live:
            for start in range(0, at.shape[0], BLOCK):
                count = min(BLOCK, at.shape[0] - start)
                wanted[q].unscored += merits_of_block(
                    programs, filter_of, stack, wanted[q], q, numbers, columns, known, at, seq, start, count, merits
                )


@kernel
def ranking_of_row(query: Any, q: int, groups: Any, columns: Any, known: Any, row: int) -> int:
    """The ranking of query q that a row belongs to, or -1. groups PAIR: (query, value) to ranking."""
    if query.group_column < 0:
        return query.ranking
    if not known[query.group_column, row]:
        return -1
    slot = find_pair(groups, q, columns[query.group_column, row])
    return groups[slot].value if slot >= 0 else -1


@kernel
def select(
    programs: Any,
    filter_of: Any,
    stack: Any,
    wanted: Any,
    groups: Any,
    numbers: Any,
    columns: Any,
    known: Any,
    at: Any,
    seq: Any,
    only: int,
    heap: Any,
    merits: Any,
    out_ranking: Any,
    out_row: Any,
    out_merit: Any,
    cursor: Any,
) -> bool:
    """Hits of all rows for all queries, or for query `only` if that is not -1. False if a query found no room: grow the
    outputs and call again.

    heap f8[n], merits f8[BLOCK] are scratch. out_ranking i4, out_row i4, out_merit f8 are filled; cursor i8[2] has the
    query at hand and how many hits there are.
    """
    n = at.shape[0]
    for q in range(cursor[0], wanted.shape[0]):
        cursor[0] = q
        query = wanted[q]
        if not query.live or (only >= 0 and q != only):
            continue
        fill = cursor[1]
        if fill + n > out_ranking.shape[0]:
            return False
        k = query.k
        thins = (query.slide > 1 or query.size >= NEVER) and query.group_column < 0 and k <= heap.shape[0]
        held = 0
        least = -np.inf  # the k-th best of the pane so far
        pane_upto = -NEVER
        for start in range(0, n, BLOCK):
            count = min(BLOCK, n - start)
            query.unscored += merits_of_block(
                programs, filter_of, stack, query, q, numbers, columns, known, at, seq, start, count, merits
            )
            for i in range(count):
                merit = merits[i]
                row = start + i
                if thins and at[row] > pane_upto:
                    held = 0
                    least = -np.inf
                    _, pane_upto = pane_of(at[row], query.size, query.slide, query.offset, query.first)
                if not merit >= least:  # a NaN is not either
                    continue
                if thins:
                    if held < k:
                        add_to_heap(heap, held, merit)
                        held += 1
                    else:
                        replace_least(heap, held, merit)
                    if held == k:
                        least = heap[0]
                ranking = ranking_of_row(query, q, groups, columns, known, row)
                if ranking >= 0:
                    out_ranking[fill] = ranking
                    out_row[fill] = row
                    out_merit[fill] = merit
                    fill += 1
        cursor[1] = fill
    return True


@kernel
def add_to_heap(heap: Any, held: int, value: float) -> None:
    """Put a value into a heap of `held` values whose least comes first."""
    i = held
    while i > 0 and heap[(i - 1) >> 1] > value:
        heap[i] = heap[(i - 1) >> 1]
        i = (i - 1) >> 1
    heap[i] = value


@kernel
def replace_least(heap: Any, held: int, value: float) -> None:
    """Put a value in place of the least."""
    i = 0
    while True:
        child = 2 * i + 1
        if child >= held:
            break
        if child + 1 < held and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = value
