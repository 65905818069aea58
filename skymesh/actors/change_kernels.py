"""From what rankings told to the rows of the change log, in the memory of its columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algorithms.columns import EVER, Op
from ..algorithms.frames import F8, I1, I4, I8, U1, opener
from ..algorithms.kernel import kernel

# A ranking of a team: query and group as numbers of the log, the place of the group in the order in which the groups of
# its query were registered (from 1; 0: it has no group), and the sign that makes a score of a merit.
LABEL = np.dtype([("query", "i4"), ("group", "i4"), ("place", "i4"), ("sign", "f8")], align=True)

# What may be null: the group; `at`, if a query ends before its first point; what tells of an object; its time.
GROUP, AT, OBJECT, TIME = 1, 2, 4, 8

_EMPTY = int(Op.EMPTY)
_END = int(Op.END)


class Columns(NamedTuple):
    """The memory of a chunk: its columns, the place of each row's group, and Arrow's bitmaps of what is not null."""

    query: I4
    group: I4
    at: I8
    op: I1
    id: I8
    score: F8
    rank: I4
    seq: I8
    time: I8
    place: I4
    known_group: U1
    known_at: U1
    known_object: U1
    known_time: U1


_open = opener(Columns)


@kernel
def write_rows(frame: Any, first: int, start: int, rows: Any, labels: Any, told: Any, has_time: bool) -> Any:
    """Write what a team told (CHANGE): row i to start + i, or to first + rows[i], i8[n], unless `rows` is empty.

    Returns what is null in some row, what is not null in some row, and whether the rows from `first` on stand in order.
    """
    columns = _open(frame)
    count, moves = told.shape[0], rows.shape[0] > 0
    grouped, bare, pointless, stands = 0, 0, 0, True
    for i in range(count):
        change = told[i]
        label = labels[np.uint64(change.ranking)]
        # Unsigned: no index counts from the end, and nobody has to look. 2.8 us for 700 rows, with signed ones 4.5.
        row = np.uint64(first + rows[i] if moves else start + i)
        columns.query[row], columns.group[row], columns.place[row] = label.query, label.group, label.place
        columns.at[row], columns.op[row], columns.id[row] = change.at, change.op, change.id
        columns.score[row] = label.sign * change.merit
        columns.rank[row], columns.seq[row] = change.rank, change.seq
        columns.time[row] = change.time if has_time else EVER
        grouped += label.place > 0
        bare += change.op >= _EMPTY
        pointless += change.at == EVER
        if row > first and stands_before(columns, row, row - np.uint64(1)):
            stands = False
    timed = count - bare if has_time else 0
    nulls = GROUP * (grouped < count) + AT * (pointless > 0) + OBJECT * (bare > 0) + TIME * (timed < count)
    known = GROUP * (grouped > 0) + AT * (pointless < count) + OBJECT * (bare < count) + TIME * (timed > 0)
    return nulls, known, stands


@kernel
def stands_before(columns: Any, i: Any, j: Any) -> bool:
    """Whether row i belongs before row j: by query, then `at`, then place. One that tells of an end comes last,
    whatever its `at`."""
    if columns.query[i] != columns.query[j]:
        return columns.query[i] < columns.query[j]
    ends, other_ends = columns.op[i] == _END, columns.op[j] == _END
    if ends != other_ends:
        return other_ends
    if columns.at[i] != columns.at[j]:
        return columns.at[i] < columns.at[j]
    return columns.place[i] < columns.place[j]


@kernel
def arrange(frame: Any, first: int, runs: Any, order: Any, merged: Any, rows: Any) -> None:
    """Where each of the rows from `first` on belongs: rows i8[n]. Overwrites order and merged i8[n], runs i8[n + 1].

    Rows come in few runs that are in order, so runs are merged; what is equal stays as it stands.
    """
    columns = _open(frame)
    count, run_count = order.shape[0], 0
    for i in range(count):
        order[i] = i
        if i == 0 or stands_before(columns, first + i, first + i - 1):
            runs[run_count] = i
            run_count += 1
    runs[run_count] = count
    while run_count > 1:
        left_count = 0
        for run in range(0, run_count, 2):
            i, middle = runs[run], runs[run + 1]
            stop = runs[run + 2] if run + 1 < run_count else middle
            j = middle
            for place in range(i, stop):
                if j == stop or (i < middle and not stands_before(columns, first + order[j], first + order[i])):
                    merged[place] = order[i]
                    i += 1
                else:
                    merged[place] = order[j]
                    j += 1
            runs[left_count] = runs[run]
            left_count += 1
        runs[left_count] = count
        run_count = left_count
        order, merged = merged, order
    for i in range(count):
        rows[order[i]] = i


@kernel
def mark_known(frame: Any, first: int, stop: int) -> None:
    """Set the bits of what is not null; they are zero as long as nobody did."""
    columns = _open(frame)
    for row in range(first, stop):
        byte, bit = row >> 3, 1 << (row & 7)
        if columns.place[row] > 0:
            columns.known_group[byte] |= bit
        if columns.at[row] != EVER:
            columns.known_at[byte] |= bit
        if columns.op[row] < _EMPTY:
            columns.known_object[byte] |= bit
            if columns.time[row] != EVER:
                columns.known_time[byte] |= bit
