"""The engine as users meet it: what comes out of each call, in which shape, and what is said of mistakes."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skymesh as sm

US = timedelta(microseconds=1)
NOW = 10**15


def engine_of(*queries: dict[str, Any], **stream: Any) -> sm.Engine:
    declared = {"id": "id", "attributes": ["x", "y"], **stream}
    asked = [
        (sm.Threshold if "above" in query or "below" in query else sm.TopK)(**{"stream": "s", "score": "x", **query})
        for query in queries
    ]
    return sm.Engine(sm.QuerySet(streams={"s": sm.Stream(**declared)}, queries=asked))


def rows(
    *xs: float, first: int = 0, ids: list | None = None, times: list | None = None, **more: list
) -> dict[str, Any]:
    data: dict[str, Any] = {"id": ids or list(range(first, first + len(xs))), "x": list(xs), "y": [0.0] * len(xs)}
    return {**data, **({"t": times} if times is not None else {}), **more}


def log(changes: pa.Table, *names: str) -> list[tuple]:
    return [tuple(row[name] for name in names or ("at", "op", "id", "rank")) for row in changes.to_pylist()]


# -- the shape of results --------------------------------------------------------------------------------------


def test_the_example_of_the_documentation():
    queries = sm.QuerySet(
        streams={"s": sm.Stream(id="id", attributes={"x": {"domain": [0, 1]}, "y": {"domain": [0, 1]}})},
        queries=[
            sm.TopK(name="q", stream="s", k=3, score="x + 2 * y", window={"count": 100, "slide": 10}, emit="snapshot")
        ],
    )
    engine = sm.Engine(queries)
    x, y = np.random.default_rng(0).random((2, 25))
    changes = engine.push("s", {"id": np.arange(25), "x": x, "y": y})
    assert changes.column("at").to_pylist() == [10] * 3 + [20] * 3
    best = np.argsort(-(x + 2 * y)[:20])[:3]
    assert engine.top("q").column("id").to_pylist() == best.tolist()
    assert engine.top("q").column("at").to_pylist() == [20] * 3


def test_the_demo_file_runs_as_the_documentation_says():
    engine = sm.Engine(sm.load("configs/queries/demo.yaml"))
    batch = pa.record_batch(
        {
            "trade_id": np.arange(10_000),
            "at": pa.array(np.arange(10_000) * 1000, pa.timestamp("us", "UTC")),
            "price": np.linspace(20, 400, 10_000),
            "volume": np.ones(10_000),
            "symbol": ["ABC"] * 10_000,
            "venue": ["XLON"] * 10_000,
        }
    )
    changes = engine.push("trades", batch)
    assert isinstance(changes, pa.Table)
    assert engine.top("big-trades").num_rows == 20
    query = sm.TopK(name="new", stream="trades", k=1, score="price", window={"count": 5})
    assert engine.add(query).num_rows == 0
    assert log(engine.remove("new"), "query", "op") == [("new", "end")]
    assert engine.stats()["streams"]["trades"]["rows"] == 10_000
    assert {plan.query for plan in engine.explain()} >= {"big-trades"}
    assert engine.rejects().num_rows == 0
    engine.heartbeat("trades", datetime(2026, 1, 1, tzinfo=UTC))
    engine.flush()


def test_results_have_their_columns_and_types():
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 3}}, time="t")
    table = engine.push("s", rows(1.0, times=[5]), now=NOW)
    names = pa.dictionary(pa.int32(), pa.string())
    assert table.schema == pa.schema(
        [
            ("query", names),
            ("group", names),
            ("at", pa.int64()),
            ("op", pa.dictionary(pa.int8(), pa.string())),
            ("id", pa.int64()),
            ("score", pa.float64()),
            ("rank", pa.int32()),
            ("seq", pa.int64()),
            ("time", pa.timestamp("us", "UTC")),
        ]
    )
    assert engine.push("s", rows(times=[]), now=NOW).schema == table.schema
    assert engine.push("s", {}, now=NOW).schema == table.schema
    assert engine.top("q").schema.names == [name for name in table.schema.names if name != "op"]
    [row] = table.to_pylist()
    assert row["time"] == datetime(1970, 1, 1, microsecond=5, tzinfo=UTC)
    assert row["group"] is None


def test_time_is_null_without_event_time():
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 3}})
    assert engine.push("s", rows(1.0)).column("time").to_pylist() == [None]


@pytest.mark.parametrize(
    ("emit", "expected"),
    [
        ("changes", [(1, "enter", 0, 1), (2, "enter", 1, 1), (3, "leave", 0, 2), (3, "enter", 2, 2)]),
        ("ranked", [(1, "enter", 0, 1), (2, "move", 0, 2), (2, "enter", 1, 1), (3, "leave", 0, 2), (3, "enter", 2, 2)]),
        ("entries", [(1, "enter", 0, 1), (2, "enter", 1, 1), (3, "enter", 2, 2)]),
        ("snapshot", [(1, "row", 0, 1), (2, "row", 1, 1), (2, "row", 0, 2), (3, "row", 1, 1), (3, "row", 2, 2)]),
    ],
)
def test_the_four_ways_to_emit(emit, expected):
    engine = engine_of({"name": "q", "k": 2, "window": {"count": 5}, "emit": emit})
    assert log(engine.push("s", rows(1.0, 5.0, 3.0))) == expected


def test_queries_come_in_file_order_and_points_in_time():
    engine = engine_of(
        {"name": "b", "k": 1, "window": {"count": 5}, "algorithm": "scan"},
        {"name": "a", "k": 1, "window": {"count": 5}, "algorithm": "sa"},
        {"name": "c", "k": 1, "window": {"count": 5}, "algorithm": "scan"},
    )
    found = log(engine.push("s", rows(1.0, 2.0)), "query", "at", "op")
    each = [(1, "enter"), (2, "leave"), (2, "enter")]
    assert found == [(name, *row) for name in ("b", "a", "c") for row in each]


def test_equal_scores_rank_the_newer_row_first():
    engine = engine_of({"name": "q", "k": 2, "window": {"count": 5}})
    engine.push("s", rows(1.0, 1.0, 1.0))
    assert engine.top("q").column("id").to_pylist() == [2, 1]


def test_scores_come_as_they_were_computed_in_both_orders():
    engine = engine_of({"name": "q", "k": 2, "score": "x - 5", "order": "smallest", "window": {"count": 5}})
    engine.push("s", rows(1.0, 5.0, 3.0))
    assert engine.top("q").column("score").to_pylist() == [-4.0, -2.0]


# -- carried columns and ids -----------------------------------------------------------------------------------


def test_carried_columns_stand_on_leave_rows_too_and_are_null_for_other_queries():
    engine = engine_of(
        {"name": "q", "k": 1, "window": {"count": 5}, "carry": ["venue", "y"]},
        {"name": "p", "k": 1, "window": {"count": 5}, "carry": ["size"]},
        columns={"venue": "string", "size": "int64"},
    )
    table = engine.push("s", rows(1.0, 2.0, venue=["A", None], size=[7, 8]))
    assert log(table, "query", "op", "venue", "y", "size") == [
        ("q", "enter", "A", 0.0, None),
        ("q", "leave", "A", 0.0, None),
        ("q", "enter", None, 0.0, None),
        ("p", "enter", None, None, 7),
        ("p", "leave", None, None, 7),
        ("p", "enter", None, None, 8),
    ]
    assert log(engine.top("p"), "id", "size", "venue") == [(1, 8, None)]


def test_carried_columns_survive_as_long_as_their_rows_do():
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 3000}, "carry": ["venue"]}, columns=["venue"])
    engine.push("s", rows(9.0, venue=["old"]))
    for batch in range(200):
        engine.push("s", rows(*[1.0] * 20, first=20 * batch, venue=[f"v{batch}"] * 20))
    leave = [row for row in engine.push("s", rows(0.5, venue=["z"])).to_pylist() if row["op"] == "leave"]
    assert engine.top("q").column("venue").to_pylist() == ["v199"]
    assert leave == []


def test_ids_may_be_texts_in_every_mode():
    for per_id in ("all", "latest", "best"):
        engine = engine_of(
            {"name": "q", "k": 2, "window": {"count": 3}, "per_id": per_id, "emit": "ranked"},
            id={"column": "id", "type": "string"},
        )
        engine.push("s", rows(3.0, 1.0, 2.0, ids=["a", "b", "a"]))
        expected = {"all": ["a", "a"], "latest": ["a", "b"], "best": ["a", "b"]}[per_id]
        assert engine.top("q").column("id").to_pylist() == expected, per_id
    assert engine.top("q").schema.field("id").type == pa.string()


def test_ids_are_texts_for_all_streams_if_they_are_for_one():
    streams = {
        "numbers": sm.Stream(id="id", attributes=["x"]),
        "texts": sm.Stream(id={"column": "id", "type": "string"}, attributes=["x"]),
    }
    queries = [sm.TopK(name=name, stream=name, k=1, score="x", window={"count": 2}) for name in streams]
    engine = sm.Engine(sm.QuerySet(streams=streams, queries=queries))
    assert log(engine.push("numbers", {"id": [7], "x": [1.0]}), "id") == [("7",)]
    assert log(engine.push("texts", {"id": ["seven"], "x": [1.0]}), "id") == [("seven",)]


def test_text_ids_that_left_every_window_are_forgotten():
    engine = engine_of(
        {"name": "q", "k": 1, "window": {"count": 50}, "per_id": "latest"}, id={"column": "id", "type": "string"}
    )
    for batch in range(40):
        engine.push("s", rows(*[1.0] * 500, ids=[f"{batch}-{i}" for i in range(500)]))
    assert len(engine._lanes["s"].splitter.id_texts) < 6000
    assert engine.top("q").column("id").to_pylist() == ["39-499"]


def test_a_query_that_needs_ids_told_apart_may_come_later():
    engine = engine_of(
        {"name": "q", "k": 5, "window": {"time": "10us"}},
        id={"column": "id", "type": "string"},
        time="t",
        lateness="5us",
        keep="10us",
    )
    engine.push("s", rows(1.0, 2.0, ids=["a", "b"], times=[1, 7]), now=NOW)
    engine.add(
        sm.TopK(name="late", stream="s", k=5, score="x", window={"time": "10us"}, per_id="latest", start="window")
    )
    engine.push("s", rows(3.0, 4.0, ids=["a", "c"], times=[8, 9]), now=NOW)
    engine.flush()
    assert engine.top("late").column("id").to_pylist() == ["c", "a", "b"]
    assert engine.top("q").column("id").to_pylist() == ["c", "a", "b", "a"]


# -- groups ----------------------------------------------------------------------------------------------------


def test_groups_appear_with_their_values_and_some_rows_have_none():
    engine = engine_of(
        {"name": "q", "k": 1, "window": {"count": 9}, "group_by": "venue", "max_groups": 2}, columns=["venue"]
    )
    table = engine.push("s", rows(1.0, 2.0, 3.0, 4.0, 5.0, venue=["B", "A", None, "C", "B"]))
    assert log(table, "group", "at", "op", "id") == [
        ("B", 1, "enter", 0),
        ("A", 2, "enter", 1),
        ("B", 5, "leave", 0),
        ("B", 5, "enter", 4),
    ]
    assert log(engine.top("q"), "group", "id") == [("B", 4), ("A", 1)]
    assert log(engine.top("q", group="A"), "group", "id") == [("A", 1)]
    assert engine.top("q", group="none").num_rows == 0
    assert log(engine.rejects(), "reason", "seq", "id", "detail") == [
        ("group", 2, 2, "query q: venue is null"),
        ("group", 3, 3, "query q: there are 2 groups already (max_groups)"),
    ]
    assert engine.stats()["streams"]["s"]["rejects"]["group"] == 2
    assert engine.stats()["queries"]["q"]["group_rejects"] == 2


@pytest.mark.parametrize(
    ("kind", "values", "texts"), [("int64", [7, -1], ["7", "-1"]), ("bool", [True, False], ["true", "false"])]
)
def test_groups_of_integers_and_truth_values_are_texts(kind, values, texts):
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 9}, "group_by": "g"}, columns={"g": kind})
    assert log(engine.push("s", rows(1.0, 2.0, g=values)), "group") == [(text,) for text in texts]


# -- time ------------------------------------------------------------------------------------------------------


def timed(*queries: dict[str, Any], **stream: Any) -> sm.Engine:
    return engine_of(*queries, time="t", **stream)


def test_one_row_far_in_the_future_cannot_expire_the_window():
    engine = timed(
        {"name": "q", "k": 3, "window": {"time": "10s", "slide": "1s"}}, {"name": "n", "k": 3, "window": {"count": 9}}
    )
    second = 1_000_000
    engine.push("s", rows(1.0, 2.0, times=[second, 2 * second]), now=3 * second)
    year = 365 * 24 * 3600 * second
    engine.push("s", rows(99.0, first=2, times=[year]), now=3 * second)
    engine.push("s", rows(3.0, first=3, times=[3 * second]), now=4 * second)
    engine.push("s", rows(4.0, first=4, times=[5 * second]), now=5 * second)
    assert engine.top("q").column("id").to_pylist() == [3, 1, 0]
    assert engine.top("n").column("id").to_pylist() == [2, 4, 3], "it ranks in count windows"
    assert log(engine.rejects(), "reason", "id") == [("future", 2)]
    assert engine.stats()["streams"]["s"]["watermark"] == 5 * second


def test_late_rows_rank_in_count_windows_only_and_are_counted():
    engine = timed(
        {"name": "t", "k": 3, "window": {"time": "9us"}}, {"name": "n", "k": 3, "window": {"count": 9}}, lateness="2us"
    )
    engine.push("s", rows(1.0, 2.0, 3.0, 4.0, times=[10, 8, 7, 11]), now=NOW)
    engine.flush()
    assert engine.top("t").column("id").to_pylist() == [3, 1, 0]
    assert engine.top("n").column("id").to_pylist() == [3, 2, 1]
    assert log(engine.rejects(), "reason", "seq", "id") == [("late", 2, 2)]


def test_a_row_at_exactly_the_watermark_is_not_late():
    engine = timed({"name": "t", "k": 3, "window": {"time": "9us"}}, lateness="2us")
    engine.push("s", rows(1.0, 2.0, times=[10, 8]), now=NOW)
    assert engine.rejects().num_rows == 0


def test_a_gap_of_a_year_costs_nothing():
    engine = timed({"name": "q", "k": 1, "window": {"time": "3us", "slide": "1us"}})
    year = 365 * 24 * 3600 * 10**6
    engine.push("s", rows(1.0, times=[0]), now=NOW)
    changes = engine.push("s", rows(2.0, 3.0, first=1, times=[year, year + 5]), now=NOW)
    assert log(changes, "at", "op", "id") == [
        (0, "enter", 0),
        (3, "leave", 0),
        (year, "enter", 1),
        (year + 3, "leave", 1),
    ]
    assert engine.stats()["queries"]["q"]["evaluations"] < 10


def test_a_heartbeat_moves_an_idle_stream_on():
    engine = timed({"name": "q", "k": 1, "window": {"time": "5us", "slide": "1us"}})
    assert engine.push("s", rows(1.0, times=[3]), now=NOW).num_rows == 0
    assert log(engine.heartbeat("s", 4)) == [(3, "enter", 0, 1)]
    assert log(engine.heartbeat("s", datetime(1970, 1, 1, microsecond=20, tzinfo=UTC))) == [(8, "leave", 0, 1)]


def test_flush_gives_the_point_that_covers_the_last_row_once():
    engine = timed({"name": "q", "k": 1, "window": {"tumbling": "10us"}})
    engine.push("s", rows(1.0, times=[13]), now=NOW)
    assert log(engine.flush()) == [(20, "enter", 0, 1)]
    assert engine.flush().num_rows == 0
    engine.push("s", rows(5.0, first=1, times=[15]), now=NOW)
    assert log(engine.push("s", rows(2.0, 3.0, first=2, times=[25, 31]), now=NOW)) == [
        (30, "leave", 0, 1),
        (30, "enter", 2, 1),
    ]
    assert engine.stats()["queries"]["q"]["missed"] == 1
    engine.push("s", rows(5.0, first=4, times=[12]), now=NOW)
    assert log(engine.rejects(), "reason") == [("late",)]


def test_flush_of_a_stream_without_rows_or_time_gives_nothing():
    assert timed({"name": "q", "k": 1, "window": {"tumbling": "10us"}}).flush().num_rows == 0
    assert engine_of({"name": "q", "k": 1, "window": {"count": 10, "slide": 10}}).flush().num_rows == 0


# -- queries that come and go ----------------------------------------------------------------------------------


def test_an_added_query_counts_rows_from_then_on():
    engine = engine_of(keep=10)
    engine.push("s", rows(9.0, 8.0))
    engine.add(sm.TopK(name="now", stream="s", k=2, score="x", window={"count": 10}))
    engine.add(sm.TopK(name="window", stream="s", k=2, score="x", window={"count": 10}, start="window"))
    assert engine.top("window").num_rows == 0, "the first result comes at the next point"
    assert log(engine.push("s", rows(1.0, first=2)), "query", "at", "op", "id") == [
        ("now", 3, "enter", 2),
        ("window", 3, "enter", 0),
        ("window", 3, "enter", 1),
    ]


def test_start_window_needs_rows_that_are_kept():
    query = sm.TopK(name="q", stream="s", k=2, score="x", window={"count": 10}, start="window")
    with pytest.raises(
        sm.QueryError, match=r"does not keep them; declare keep: \{count: ...\} there, or use start: now"
    ):
        engine_of(keep=9).add(query)
    assert engine_of(keep=10).add(query).num_rows == 0


def test_a_landmark_in_the_past_needs_rows_that_are_kept():
    query = sm.TopK(name="q", stream="s", k=1, score="x", window={"landmark": 1})
    engine = engine_of(keep=2)
    engine.push("s", rows(9.0, 5.0, 7.0))
    engine.add(query)
    assert log(engine.push("s", rows(1.0, first=3))) == [(4, "enter", 2, 1)]
    short = engine_of(keep=1)
    short.push("s", rows(9.0, 5.0, 7.0))
    with pytest.raises(sm.QueryError, match="its landmark lies in the past"):
        short.add(query)


def test_active_begins_and_ends_a_query():
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 9}, "active": {"from": 1, "until": 3}})
    assert log(engine.push("s", rows(9.0, 1.0, 2.0, 5.0))) == [
        (2, "enter", 1, 1),
        (3, "leave", 1, 1),
        (3, "enter", 2, 1),
        (3, "end", None, None),
    ]
    with pytest.raises(sm.QueryError, match="no query 'q'"):
        engine.top("q")
    late = sm.TopK(name="r", stream="s", k=1, score="x", window={"count": 9}, active={"until": 4})
    with pytest.raises(sm.QueryError, match="its `until` has passed already"):
        engine.add(late)


def test_a_removed_query_says_the_last_point_it_passed():
    engine = engine_of(
        {"name": "q", "k": 1, "window": {"count": 9, "slide": 2}},
        {"name": "p", "k": 1, "window": {"count": 9, "slide": 5}},
    )
    engine.push("s", rows(9.0, 1.0, 2.0))
    assert log(engine.remove("q"), "at", "op") == [(2, "end")]
    assert log(engine.remove("p"), "at", "op") == [(None, "end")]
    with pytest.raises(sm.QueryError, match="there is no query 'q'; running: none"):
        engine.remove("q")


def test_a_name_may_be_used_again_after_removal():
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 9}})
    engine.push("s", rows(9.0))
    engine.remove("q")
    engine.add(sm.TopK(name="q", stream="s", k=1, score="-x", window={"count": 9}))
    assert log(engine.push("s", rows(1.0, first=1)), "query", "id") == [("q", 1)]


# -- deletions -------------------------------------------------------------------------------------------------


def test_deletions_show_at_once_where_every_row_is_a_point_and_else_at_the_next():
    engine = engine_of(
        {"name": "each", "k": 1, "window": {"count": 9}},
        {"name": "some", "k": 1, "window": {"count": 9, "slide": 2}},
        {"name": "snap", "k": 1, "window": {"count": 9}, "emit": "snapshot"},
        deletes=True,
    )
    engine.push("s", rows(9.0, 5.0))
    assert log(engine.delete("s", [0]), "query", "at", "op", "id") == [("each", 2, "leave", 0), ("each", 2, "enter", 1)]
    assert engine.top("some").column("id").to_pylist() == [0]
    assert log(engine.push("s", rows(1.0, 1.0, first=2)), "query", "at", "op", "id") == [
        ("some", 4, "leave", 0),
        ("some", 4, "enter", 1),
        ("snap", 3, "row", 1),
        ("snap", 4, "row", 1),
    ]


def test_deleted_rows_still_count_in_the_window():
    engine = engine_of({"name": "q", "k": 2, "window": {"count": 2}}, deletes=True)
    engine.push("s", rows(9.0, 5.0))
    engine.delete("s", [1])
    engine.push("s", rows(1.0, first=2))
    assert engine.top("q").column("id").to_pylist() == [2]


def test_deletions_need_to_be_declared_and_ids_to_fit():
    with pytest.raises(sm.QueryError, match="declare `deletes: true`"):
        engine_of({"name": "q", "k": 1, "window": {"count": 9}}).delete("s", [1])
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 9}}, deletes=True)
    with pytest.raises(sm.InputError, match="'a' is no id of stream 's', whose ids are int64"):
        engine.delete("s", ["a"])
    assert engine.delete("s", [12345]).num_rows == 0
    assert engine.delete("s", pa.array([12345])).num_rows == 0
    texts = engine_of(
        {"name": "q", "k": 1, "window": {"count": 9}}, id={"column": "id", "type": "string"}, deletes=True
    )
    texts.push("s", rows(2.0, 1.0, ids=["a", "b"]))
    assert log(texts.delete("s", ["a", "never"]), "op", "id") == [("leave", "a"), ("enter", "b")]
    with pytest.raises(sm.InputError, match="whose ids are texts"):
        texts.delete("s", [1])


# -- what is wrong ---------------------------------------------------------------------------------------------


def test_bad_rows_get_no_position_and_are_told_by_reason():
    engine = engine_of({"name": "q", "k": 9, "window": {"count": 9}})
    engine.push("s", {"id": [0, 1, None, 3, 4], "x": [1.0, float("nan"), 2.0, float("inf"), None], "y": [0.0] * 5})
    assert engine.top("q").column("id").to_pylist() == [0]
    assert log(engine.rejects(), "stream", "reason", "seq", "id", "detail") == [
        ("s", "nan", None, 1, "x is NaN"),
        ("s", "null", None, None, "id is null"),
        ("s", "infinite", None, 3, "x is infinite"),
        ("s", "null", None, 4, "x is null"),
    ]
    stats = engine.stats()["streams"]["s"]
    assert stats["rows"] == 1
    assert stats["rejects"] == {"null": 2, "nan": 1, "infinite": 1, "type": 0, "late": 0, "future": 0, "group": 0}


def test_only_the_last_ten_thousand_rejects_are_kept_but_all_are_counted():
    engine = engine_of({"name": "q", "k": 9, "window": {"count": 9}})
    for batch in range(3):
        engine.push("s", {"id": np.arange(6000) + 6000 * batch, "x": np.full(6000, np.nan), "y": np.zeros(6000)})
    assert engine.rejects().num_rows == 10_000
    assert engine.rejects().column("id")[-1].as_py() == 17_999
    assert engine.stats()["streams"]["s"]["rejects"]["nan"] == 18_000


def test_rows_without_a_finite_score_do_not_rank_and_are_counted():
    for algorithm in ("sa", "scan"):
        engine = engine_of(
            {"name": "q", "k": 9, "score": "log(x)", "where": "y < 1", "window": {"count": 9}, "algorithm": algorithm}
        )
        engine.push("s", {"id": [0, 1, 2, 3], "x": [1.0, -1.0, 0.0, -1.0], "y": [0.0, 0.0, 0.0, 5.0]})
        assert engine.top("q").column("id").to_pylist() == [0]
        assert engine.stats()["queries"]["q"]["unscored"] == 2, algorithm


def test_after_an_error_the_engine_is_as_before():
    engine = timed({"name": "q", "k": 2, "window": {"count": 9}}, columns=["venue"])
    good = rows(1.0, times=[5], venue=["A"])
    engine.push("s", good, now=NOW)
    before = engine.stats(), engine.top("q")
    for wrong in (
        {**good, "x": ["a"]},
        {"id": [1]},
        {**good, "t": ["b"]},
        {**good, "venue": [7]},
        [1],
        {**good, "y": [1, 2]},
    ):
        with pytest.raises(sm.InputError):
            engine.push("s", wrong, now=NOW)
    for wrong in (
        lambda: engine.push("nowhere", good),
        lambda: engine.heartbeat("nowhere", 5),
        lambda: engine.top("z"),
    ):
        with pytest.raises(sm.QueryError):
            wrong()
    with pytest.raises(sm.InputError, match="time is 'soon'; give a datetime"):
        engine.heartbeat("s", "soon")
    with pytest.raises(sm.InputError, match="now is"):
        engine.push("s", good, now="now")
    with pytest.raises(sm.QueryError, match="there is a query 'q' already"):
        engine.add(sm.TopK(name="q", stream="s", k=1, score="x", window={"count": 9}))
    with pytest.raises(sm.QueryError, match="score: z is no attribute"):
        engine.add(sm.TopK(name="r", stream="s", k=1, score="z", window={"count": 9}))
    with pytest.raises(sm.QueryError, match="no algorithm"):
        engine.add(sm.TopK(name="r", stream="s", k=1, score="x", window={"count": 9}, algorithm="best"))
    with pytest.raises(sm.QueryError, match="add takes a query"):
        engine.add("q")
    assert (engine.stats(), engine.top("q")) == before


@pytest.mark.parametrize("algorithm", ["tma", "sma", "sa", "scan", "tsl"])
@pytest.mark.parametrize("declared", [{}, {"id": {"column": "id", "type": "string"}}, {"keep": {"count": 50}}])
@pytest.mark.parametrize("as_batch", [False, True])
def test_a_producer_may_use_its_arrays_again_once_push_is_back(algorithm, declared, as_batch):
    asked = {"k": 3, "score": "x - y", "carry": ["y"], "algorithm": algorithm}
    queries = [{"name": "a", "window": {"count": 50}, **asked}, {"name": "b", "window": {"tumbling": 7}, **asked}]
    reusing, fresh = engine_of(*queries, **declared), engine_of(*queries, **declared)
    random = np.random.default_rng(3)
    arrays = {"x": np.empty(10), "y": np.empty(10), "n": np.empty(10, np.int64)}

    def batch() -> dict[str, Any]:
        ids = pa.array(map(str, arrays["n"].tolist())) if "id" in declared else arrays["n"]
        return {"id": ids, "x": arrays["x"], "y": arrays["y"]}

    for number in range(40):
        for array in arrays.values():
            array[:] = random.integers(0, 9, 10) - number  # scores fall, so rankings look for older rows
        expected = fresh.push("s", {name: column.tolist() for name, column in batch().items()})
        lent = pa.record_batch(batch()) if as_batch else batch()  # a batch shows the memory that NumPy owns
        assert reusing.push("s", lent).equals(expected)
        for array in arrays.values():
            array[:] = -1
        assert reusing.top("a").equals(fresh.top("a"))


def test_an_engine_without_event_time_has_no_heartbeat():
    with pytest.raises(sm.QueryError, match="has no event time to move"):
        engine_of({"name": "q", "k": 1, "window": {"count": 9}}).heartbeat("s", 5)


def test_an_engine_runs_query_sets_only():
    with pytest.raises(sm.QueryError, match="an engine runs a QuerySet, not str"):
        sm.Engine("configs/queries/demo.yaml")


def test_pandas_frames_go_in_and_come_out():
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 9}})
    changes = engine.push("s", pd.DataFrame(rows(1.0, 2.0))).to_pandas()
    assert changes["id"].tolist() == [0, 0, 1]


def test_values_outside_the_domain_rank_by_their_true_score():
    engine = engine_of({"name": "q", "k": 2, "window": {"count": 9}}, attributes={"x": {"domain": [0, 1]}, "y": {}})
    engine.push("s", rows(0.5, 1e9, -1e9))
    assert engine.top("q").column("id").to_pylist() == [1, 0]


def test_loading_the_package_loads_neither_ray_nor_spark_nor_the_engine():
    code = "import sys, skymesh; print(sorted({'ray', 'pyspark', 'numba', 'pyarrow', 'numpy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
