"""Every algorithm against the oracle: whole in one process, with its sides apart, and restored from snapshots.

`SKYMESH_CASES` says how many cases are generated in all; `make check` runs 2,000 of them, `make test` 20,000.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skymesh as sm
from skymesh.actors.engine import Engine
from skymesh.algorithms import ALGORITHMS, Algorithm
from skymesh.algorithms.columns import Rows
from skymesh.algorithms.keeping import EXACTLY_K, EXACTLY_K_UNTRIMMED, Keeping
from tests.scenarios import Features, Scenario, run_against_oracle, scenarios

FEATURES = {
    "tma": Features(
        kinds=("topk", "topk", "threshold"), per_id=("all", "latest"), deletes=True, landmarks=False, groups=False
    ),
    "sma": Features(kinds=("topk", "topk", "threshold"), landmarks=False, groups=False),
    "sa": Features(kinds=("topk", "topk", "threshold")),
    "scan": Features(kinds=("topk", "topk", "threshold"), per_id=("all", "latest", "best"), deletes=True),
    "tsl": Features(kinds=("topk", "topk", "threshold"), landmarks=False, groups=False),
}
SPLIT = [name for name in FEATURES if ALGORITHMS[name].splits]
ASKING = [name for name in FEATURES if ALGORITHMS[name].keeping is not None]
KEEPINGS = (EXACTLY_K, EXACTLY_K_UNTRIMMED, Keeping(slack=0.5), Keeping(slack=0.0, growth=4))
TESTS = 2 * len(FEATURES) + len(SPLIT) + len(ASKING)
CASES = int(os.environ.get("SKYMESH_CASES", "600"))
SECONDS_MAX = 600 + CASES // 4  # thousands of cases on a busy machine take longer than any other test may
EACH = settings(max_examples=max(1, -(-CASES // TESTS)))


def engine_for(scenario: Scenario, kind: type[Engine] = Engine, **how: Any) -> Engine:
    return kind(sm.QuerySet(streams={"s": scenario.stream}, queries=scenario.queries), **how)


class SplitEngine(Engine):
    """An engine whose algorithms have several row sides, each with some of the rows."""

    def __init__(self, queries: sm.QuerySet, *, sides: int, seed: int, by_id: bool) -> None:
        self._sides, self._random, self._by_id = sides, np.random.default_rng(seed), by_id
        super().__init__(queries)

    def _make_algorithm(self, kind: type[Algorithm], **options: Any) -> Algorithm:
        return kind(sides=self._sides, split=self._split, **options)

    def _split(self, rows: Rows) -> np.ndarray:
        if self._by_id:
            return rows.id * 7 % self._sides
        return self._random.integers(0, self._sides, len(rows))


class FrugalEngine(Engine):
    """An engine whose rankings hold little, so that they ask often, and that takes batches in small parts."""

    def __init__(self, queries: sm.QuerySet, *, keeping: Keeping, rows_per_part: int) -> None:
        self._keeping, self._rows_per_part = keeping, rows_per_part
        super().__init__(queries)

    def _make_algorithm(self, kind: type[Algorithm], **options: Any) -> Algorithm:
        algorithm = kind(keeping=self._keeping, **options)
        algorithm._rows_per_part = lambda: self._rows_per_part
        return algorithm


class ForgetfulEngine(Engine):
    """An engine that is thrown away after every call and restored from snapshots."""

    def push(self, *args: Any, **kwargs: Any) -> Any:
        for lane in self._lanes.values():
            for team in lane._teams:
                twin = team.algorithm.twin()
                twin.restore(team.algorithm.snapshot())
                team.algorithm = twin
        return super().push(*args, **kwargs)


def test_every_algorithm_says_what_it_serves():
    assert set(FEATURES) == set(ALGORITHMS)
    assert len([name for name in globals() if name.startswith("test_rankings")]) == 4, "TESTS counts their cases"


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.timeout(SECONDS_MAX)
@EACH
@given(data=st.data())
def test_rankings_match_recomputation_at_every_point(name, data):
    scenario = data.draw(scenarios(name, FEATURES[name]))
    run_against_oracle(scenario, engine_for(scenario))


@pytest.mark.parametrize("name", SPLIT)
@pytest.mark.timeout(SECONDS_MAX)
@EACH
@given(data=st.data(), sides=st.integers(2, 4), seed=st.integers(0, 9))
def test_rankings_match_with_rows_on_several_sides(name, data, sides, seed):
    scenario = data.draw(scenarios(name, FEATURES[name]))
    asked = [*scenario.queries, *(action.query for action in scenario.actions if hasattr(action, "query"))]
    by_id = scenario.stream.deletes or any(query.per_id == "latest" for query in asked)
    run_against_oracle(scenario, engine_for(scenario, SplitEngine, sides=sides, seed=seed, by_id=by_id))


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.timeout(SECONDS_MAX)
@EACH
@given(data=st.data())
def test_rankings_match_after_restoring_snapshots(name, data):
    scenario = data.draw(scenarios(name, FEATURES[name]))
    run_against_oracle(scenario, engine_for(scenario, ForgetfulEngine))


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.timeout(SECONDS_MAX)
@EACH
@given(data=st.data(), keeping=st.sampled_from(KEEPINGS), rows_per_part=st.sampled_from([1, 3, 100, 100]))
def test_rankings_match_however_little_is_kept(name, data, keeping, rows_per_part):
    scenario = data.draw(scenarios(name, FEATURES[name]))
    run_against_oracle(scenario, engine_for(scenario, FrugalEngine, keeping=keeping, rows_per_part=rows_per_part))


REFUSED = [
    ({"per_id": "latest"}, {}, lambda served: "latest" in served.per_id),
    ({"per_id": "best"}, {}, lambda served: "best" in served.per_id),
    ({}, {"deletes": True}, lambda served: served.deletes),
]


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize(("asked", "declared", "serves"), REFUSED)
def test_what_is_not_served_is_refused_by_name_and_reason(name, asked, declared, serves):
    stream = sm.Stream(id="id", attributes=["x"], **declared)
    query = sm.TopK(name="q", stream="s", k=1, score="x", window={"count": 5}, algorithm=name, **asked)
    queries = sm.QuerySet(streams={"s": stream}, queries=[query])
    if serves(FEATURES[name]):
        assert Engine(queries).explain()[0].algorithm == name
    else:
        with pytest.raises(sm.QueryError, match=f"'q': algorithm {name} does not serve it: .+; use algorithm: auto"):
            Engine(queries)


def test_an_unknown_algorithm_is_refused_with_the_known_ones():
    stream = sm.Stream(id="id", attributes=["x"])
    query = sm.TopK(name="q", stream="s", k=1, score="x", window={"count": 5}, algorithm="scam")
    with pytest.raises(
        sm.QueryError, match=r"no algorithm 'scam'; did you mean scan\? there are auto, tma, sma, tsl, sa, scan"
    ):
        Engine(sm.QuerySet(streams={"s": stream}, queries=[query]))
