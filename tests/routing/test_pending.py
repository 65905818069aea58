"""Rows fall due in the order of time, then of arrival, however they came."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skymesh.routing.pending import RUNS_MAX, Pending
from skymesh.routing.raw_rows import RawRows

BATCHES = st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=30)


def rows(first: int, times: list[int]) -> RawRows:
    seq = np.arange(first, first + len(times))
    return RawRows(seq + 1, seq, np.array(times, np.int64), seq % 4, None, np.empty((1, len(times))), None)


@given(BATCHES, st.data())
def test_what_is_due_comes_by_time_and_then_by_arrival(batches, data):
    pending, waiting, seq = Pending(), [], 0
    for times in batches:
        pending.add(rows(seq, times))
        waiting += [(time, seq + i) for i, time in enumerate(times)]
        seq += len(times)
        if data.draw(st.booleans()):
            ids = np.array(data.draw(st.lists(st.integers(0, 3), max_size=2)), np.int64)
            pending.delete(ids)
            waiting = [(time, row) for time, row in waiting if row % 4 not in ids]
        upto = data.draw(st.integers(-1, 31))
        due = pending.due(upto)
        found = [] if due is None else list(zip(due.time.tolist(), due.seq.tolist(), strict=True))
        assert found == sorted(row for row in waiting if row[0] <= upto)
        waiting = [row for row in waiting if row[0] > upto]
        assert len(pending) == len(waiting)


def test_many_small_batches_wait_in_few_runs():
    pending = Pending()
    for i in range(1000):
        pending.add(rows(i, [i % 17]))
    assert len(pending.runs()) <= RUNS_MAX + 10
