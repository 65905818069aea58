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
