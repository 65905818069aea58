"""Sorted lists on windows of thousands of rows: long runs, rows that wait unsorted, every way of reading a list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import skymesh as sm
from skymesh.actors.engine import Engine
from skymesh.algorithms import Algorithm
from skymesh.algorithms.keeping import EXACTLY_K
from skymesh.algorithms.tsl import SortedLists, View

SCORES = {
    "linear": "x + 2 * y - 0.5 * z",
    "product": {"product": {"x": 0.1, "y": 0.2}},
    "product of any sign": {"product": {"x": -0.5, "y": -0.5, "z": 0.1}},
    "quadratic": {"quadratic": {"x": 1.0, "z": -2.0}},
    "euclidean": {"distance": {"x": 0.3, "y": 0.6}},
    "manhattan": {"distance": {"to": {"x": 0.9, "z": 0.1}, "weights": {"x": 3}, "metric": "manhattan"}},
    "largest": {"distance": {"to": {"x": 0.5, "y": 0.5, "z": 0.5}, "metric": "largest"}},
    "from outside": {"distance": {"x": 2.0, "y": -1.0}},
    "program": "sqrt(abs(x - 0.3)) - y * (1 - y)",
    "one attribute twice": "abs(x - 0.2) + abs(x - 0.8)",
    "partly without a value": "log(x - 0.5) + 1 / (y - 0.5)",
}
WINDOWS = ({"count": 3000, "slide": 37}, {"count": 900}, {"time": "2ms", "slide": "100us"}, {"count": 40, "slide": 5})


class TightEngine(Engine):
    """Views hold what is shown and nothing else, so that they are searched for at nearly every point."""

    def _make_algorithm(self, kind: type[Algorithm], **options: Any) -> Algorithm:
        return kind(**options, keeping=EXACTLY_K) if kind is SortedLists else kind(**options)


def rows(rng, start, count, values):
    drawn = rng.random((3, count)) if values is None else rng.integers(0, values, (3, count)) / values
    seq = np.arange(start, start + count)
    return {"id": seq, "t": seq + rng.integers(0, 50, count), **dict(zip("xyz", drawn, strict=True))}


@pytest.mark.parametrize("engine_kind", [Engine, TightEngine])
@pytest.mark.parametrize("values", [None, 4], ids=["apart", "ties"])
@pytest.mark.parametrize("score", SCORES)
def test_long_windows_rank_as_a_scan_ranks_them(score, values, engine_kind):
    queries = [
        sm.TopK(
            name=f"{algorithm} {number} {order}",
            stream="s",
            k=7,
            score=SCORES[score],
            window=window,
            order=order,
            where="z < 0.8" if number % 2 else None,
            emit="ranked",
            algorithm=algorithm,
        )
        for algorithm in ("tsl", "scan")
        for number, window in enumerate(WINDOWS)
        for order in ("largest", "smallest")
    ]
    stream = sm.Stream(id="id", time="t", lateness="40us", attributes=["x", "y", "z"])
    engine = engine_kind(sm.QuerySet(streams={"s": stream}, queries=queries))
    rng = np.random.default_rng(len(score))
    start = 0
    while start < 7_000:
        count = int(rng.choice([1, 3, 30, 400]))
        told = engine.push("s", rows(rng, start, count, values), now=10**15).to_pylist()
        start += count
        by_query: dict[str, list[dict]] = {query.name: [] for query in queries}
        for change in told:
            by_query[change.pop("query")].append(change)
        for query in queries[: len(queries) // 2]:
            assert by_query[query.name] == by_query[query.name.replace("tsl", "scan")], (query.name, start)
        engine._lanes["s"]._teams[0].algorithm.check()
    stats = engine.stats()["queries"]
    assert values or sum(stats[query.name]["searches"] for query in queries[: len(queries) // 2]) > 0


def test_lists_follow_queries_that_come_and_go():
    stream = sm.Stream(id="id", time="t", attributes=["x", "y", "z"], keep={"count": 500})
    engine = Engine(sm.QuerySet(streams={"s": stream}, queries=[]))
    rng = np.random.default_rng(0)
    running: list[str] = []
    for step, score in enumerate(["x", "y - z", "x * z", "abs(y - 0.5)", "z", "x - y"] * 3):
        window = {"count": 400, "slide": 25}
        for algorithm in ("tsl", "scan"):
            asked = {"k": 5, "score": score, "window": window, "start": ("now", "window")[step % 2]}
            engine.add(sm.TopK(name=f"{algorithm} {step}", stream="s", algorithm=algorithm, **asked))
        running.append(f"tsl {step}")
        if len(running) > 2:
            gone = running.pop(step % 3)
            engine.remove(gone)
            engine.remove(gone.replace("tsl", "scan"))
        for _ in range(4):
            engine.push("s", rows(rng, step, 90, None), now=10**15)
            for name in running:
                shown, expected = (engine.top(n).drop(["query"]) for n in (name, name.replace("tsl", "scan")))
                assert shown.equals(expected), name
        for team in engine._lanes["s"]._teams:
            team.algorithm.check()


@pytest.mark.parametrize("name", ["tma", "sma", "tsl"])
def test_late_starters_see_columns_that_rows_were_taken_in_without(name):
    stream = sm.Stream(id="id", attributes=["x"], columns=["venue"], keep={"count": 50})
    asked = {"stream": "s", "k": 4, "score": "x", "window": {"count": 20}}
    engine = Engine(sm.QuerySet(streams={"s": stream}, queries=[sm.TopK(name="first", algorithm=name, **asked)]))

    def push(start, count):
        seq = np.arange(start, start + count)
        engine.push("s", {"id": seq, "x": (seq * 7 % 23).astype(float), "venue": [str(s % 2) for s in seq]})

    push(0, 30)
    asked |= {"where": "venue == '1'", "carry": ["venue"]}
    engine.add(sm.TopK(name="reads it first", algorithm="sa", **asked))
    engine.add(sm.TopK(name="reads it then", algorithm=name, start="window", **asked))
    push(30, 1)
    best = sorted(range(11, 31, 2), key=lambda s: -(s * 7 % 23))[:4]
    assert engine.top("reads it then").column("seq").to_pylist() == best
    assert engine.top("reads it then").column("venue").to_pylist() == ["1"] * 4


def test_views_hold_what_the_source_found_best_and_something_between_elsewhere():
    assert [View().wanted(k) for k in (1, 5, 10, 20, 50, 100)] == [4, 10, 20, 30, 70, 120]
    most = [View().most(k) for k in range(1, 400)]
    assert most == sorted(most)
    assert all(held > k for k, held in enumerate(most, 1))


@pytest.mark.parametrize(
    ("asked", "reason"), [({"window": "landmark"}, "landmark window"), ({"group_by": "venue"}, "groups")]
)
def test_what_lists_do_not_serve_is_refused_with_the_reason(asked, reason):
    stream = sm.Stream(id="id", attributes=["x"], columns=["venue"])
    query = sm.TopK(**{"name": "q", "stream": "s", "k": 1, "score": "x", "window": {"count": 5}, **asked})
    with pytest.raises(sm.QueryError, match=f"algorithm tsl does not serve it: .*{reason}"):
        Engine(sm.QuerySet(streams={"s": stream}, queries=[query.model_copy(update={"algorithm": "tsl"})]))


def test_rows_cannot_be_split_over_several_sides():
    with pytest.raises(AssertionError, match="tsl works on all rows in one place"):
        SortedLists(is_time=False, sides=2)
