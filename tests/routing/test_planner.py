"""Which algorithm `auto` takes."""

from __future__ import annotations

from typing import Any

import pytest

import skymesh as sm
from skymesh.routing.planner import choose

UNIT = {"x": {"domain": [0, 1]}, "y": {"domain": [0.5, 1]}}
COUNT = {"count": 1_000, "slide": 10}


@pytest.mark.parametrize(
    ("asked", "declared", "name", "reason"),
    [
        ({}, {}, "tma", "the best that serves it"),
        ({"score": "x / y"}, {}, "tma", "the best"),
        ({"score": "x / y", "per_id": "latest"}, {"deletes": True}, "tma", "the best"),
        ({"score": "y / x"}, {}, "sa", "not tma: its score has no end"),
        ({"score": "log(x)"}, {}, "tma", "the best"),
        ({"score": "log(x)", "order": "smallest"}, {}, "sa", "not tma: its score has no end"),
        ({"score": "1 / x"}, {"attributes": ["x", "y"]}, "tma", "the best"),
        ({"window": {"count": 10**9, "slide": 10}}, {}, "sa", "it would hold 1,000,000,000 rows, some 45 GiB"),
        ({"window": "landmark"}, {}, "sa", "not tma: it keeps the rows of the window"),
        ({"group_by": "c"}, {}, "sa", "not tma: it keeps one ranking a query"),
        ({"per_id": "best"}, {}, "scan", "not sa: it drops rows"),
    ],
)
def test_auto_takes_the_first_that_serves_and_is_no_burden(asked: Any, declared: Any, name: str, reason: str):
    stream = sm.Stream(**{"id": "id", "attributes": UNIT, "columns": ["c"], **declared})
    query = sm.TopK(**{"name": "q", "stream": "s", "k": 3, "score": "x + y", "window": COUNT, **asked})
    choice = choose(query, stream, company=1_000)
    assert choice.algorithm.name == name
    assert reason in choice.reason


def test_a_single_query_does_without_a_grid():
    stream = sm.Stream(id="id", attributes=["x"])
    query = sm.TopK(name="q", stream="s", k=3, score="x", window=COUNT)
    choice = choose(query, stream, company=1)
    assert choice.algorithm.name == "sa"
    assert choice.reason == "not tma: a grid pays from the second query over a stream on"
