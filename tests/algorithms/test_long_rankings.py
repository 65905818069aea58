"""Rankings longer than what the generated cases make: kernels look at entries in spans, and work on the next one."""

from __future__ import annotations

import numpy as np
import pytest

import skymesh as sm
from skymesh.algorithms import ALGORITHMS

ROWS, WINDOW = 1_500, 400


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("k", [31, 32, 33, 64, 65, 100, 129])
@pytest.mark.parametrize("slide", [1, 50])
@pytest.mark.parametrize("kind", ["even", "falling", "rising", "ties"])
def test_long_rankings_are_what_sorting_the_window_gives(algorithm, k, slide, kind):
    random = np.random.default_rng([k, slide])
    value = random.random(ROWS)
    value += {"even": 0.0, "ties": 0.0, "falling": -1.0, "rising": 1.0}[kind] * np.arange(ROWS) / WINDOW
    value = np.round(value, 1 if kind == "ties" else 15)
    stream = sm.Stream(id="id", attributes={"x": {"domain": [-4, 5]}})
    window = {"count": WINDOW, "slide": slide}
    asked = sm.TopK(name="q", stream="s", k=k, score="x", window=window, emit="ranked", algorithm=algorithm)
    engine = sm.Engine(sm.QuerySet(streams={"s": stream}, queries=[asked]))
    team = engine._lanes["s"]._teams[0]
    told: dict[int, int] = {}  # ranks, as the changes say
    for first in range(0, ROWS, 50):
        seq = np.arange(first, first + 50)
        for change in engine.push("s", {"id": seq, "x": value[seq]}).select(["op", "id", "rank"]).to_pylist():
            if change["op"] == "leave":
                del told[change["id"]]
            else:
                told[change["id"]] = change["rank"]
        team.algorithm.check()
        held = np.arange(max(0, first + 50 - WINDOW), first + 50)
        best = held[np.lexsort((-held, -value[held]))[:k]]
        assert engine.top("q").column("seq").to_pylist() == best.tolist()
        assert told == {seq: place + 1 for place, seq in enumerate(best.tolist())}


@pytest.mark.parametrize("algorithm", ["tma", "scan"])
@pytest.mark.parametrize("k", [33, 64, 100])
@pytest.mark.parametrize("per_id", ["all", "latest"])
def test_deleted_and_superseded_rows_leave_long_rankings(algorithm, k, per_id):
    random = np.random.default_rng([k, len(per_id)])
    stream = sm.Stream(id="id", attributes={"x": {"domain": [0, 1]}}, deletes=True)
    asked = sm.TopK(
        name="q", stream="s", k=k, score="x", window={"count": WINDOW, "slide": 1}, per_id=per_id, algorithm=algorithm
    )
    engine = sm.Engine(sm.QuerySet(streams={"s": stream}, queries=[asked]))
    team = engine._lanes["s"]._teams[0]
    value, ids, alive = np.round(random.random(ROWS), 3), random.integers(0, 300, ROWS), np.ones(ROWS, np.bool_)
    for first in range(0, ROWS, 50):
        upto = first + 50
        engine.push("s", {"id": ids[first:upto], "x": value[first:upto]})
        gone = random.choice(ids[first:upto], 5)
        engine.delete("s", gone.tolist())
        alive[:upto] &= ~np.isin(ids[:upto], gone)
        held = np.arange(max(0, upto - WINDOW), upto)
        if per_id == "latest":
            held = np.sort(held[::-1][np.unique(ids[held][::-1], return_index=True)[1]])
        held = held[alive[held]]
        best = held[np.lexsort((-held, -value[held]))[:k]]
        team.algorithm.check()
        assert engine.top("q").column("seq").to_pylist() == best.tolist()
