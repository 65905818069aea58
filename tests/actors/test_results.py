"""Results share memory that is written further: what was handed out stays as it was, alone and in files."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import skymesh as sm
from skymesh.actors import change_chunks
from skymesh.sinks.files import JsonLines, ParquetFile

from .test_engine import NOW, engine_of, log, rows

MANY = {"name": "q", "k": 3, "window": {"count": 5}, "emit": "snapshot"}


def scores_of(seed: int, count: int) -> list[float]:
    return np.random.default_rng(seed).integers(0, 9, count).astype(float).tolist()


def in_pushes(engine: sm.Engine, count: int, size: int) -> list[pa.Table]:
    return [engine.push("s", rows(*scores_of(push, size), first=push * size)) for push in range(count)]


def plain(table: pa.Table) -> list[dict[str, Any]]:
    table.validate(full=True)
    return table.to_pylist()


# -- what was handed out stays ---------------------------------------------------------------------------------


def test_a_result_that_was_handed_out_does_not_change_when_more_is_pushed():
    engine = engine_of(MANY)
    kept = [(table, plain(table)) for table in in_pushes(engine, 200, 7)]
    in_pushes(engine, 200, 7)
    assert all(plain(table) == told for table, told in kept)
    assert sum(table.num_rows for table, _ in kept) > 3 * 512, "they fill several chunks"


def test_a_column_that_outlives_its_table_does_not_change_either():
    engine = engine_of(MANY)
    [first] = in_pushes(engine, 1, 7)
    values = first.column("score").chunk(0).to_numpy(zero_copy_only=True)
    told, shared = values.tolist(), np.array(values)
    del first
    in_pushes(engine, 400, 7)
    assert values.tolist() == told == shared.tolist()


def test_memory_that_nobody_sees_any_more_is_used_again():
    engine = engine_of(MANY)
    places = {
        engine.push("s", rows(*scores_of(push, 7))).column("at").chunk(0).buffers()[1].address for push in range(2000)
    }
    assert len(places) < 20, "40,000 rows in chunks of 512 to 1,700"


def test_results_do_not_depend_on_where_chunks_end():
    whole = engine_of(MANY).push("s", rows(*[x for push in range(300) for x in scores_of(push, 7)]))
    pushes = in_pushes(engine_of(MANY), 300, 7)
    assert plain(pa.concat_tables(pushes)) == plain(whole)
    sizes = [1, 400, 3, 2000, 1, 1, 700]
    scores = [x for push in range(600) for x in scores_of(push, 7)]
    engine, ends = engine_of(MANY), np.cumsum([0, *sizes])
    mixed = [engine.push("s", rows(*scores[start:stop], first=int(start))) for start, stop in itertools.pairwise(ends)]
    expected = engine_of(MANY).push("s", rows(*scores[: ends[-1]]))
    assert plain(pa.concat_tables(mixed)) == plain(expected)


def test_a_result_larger_than_any_chunk_is_one_table():
    table = engine_of(MANY).push("s", rows(*scores_of(0, 30_000)))
    assert table.num_rows == 3 * 30_000 - 3 > change_chunks._ROWS_MAX
    assert table.column("rank").num_chunks == 1
    assert plain(table)[-1]["at"] == 30_000


def test_queries_that_are_added_in_between_leave_results_and_their_names_alone():
    engine = engine_of(MANY)
    [before] = in_pushes(engine, 1, 4)
    told = plain(before)
    engine.add(sm.TopK(name="new", stream="s", k=1, score="y", window={"count": 5}))
    [after] = in_pushes(engine, 1, 4)
    assert plain(before) == told
    assert {row["query"] for row in plain(after)} == {"q", "new"}
    assert before.column("query").chunk(0).dictionary.to_pylist() == ["q"]
    both = pa.concat_tables([before, after]).unify_dictionaries().combine_chunks()
    assert plain(both) == told + plain(after)


def test_groups_that_appear_in_between_leave_results_alone():
    engine = engine_of({"name": "q", "k": 1, "window": {"count": 9}, "group_by": "venue"}, columns=["venue"])
    kept = []
    for push in range(50):
        table = engine.push("s", rows(1.0, 2.0, first=push, venue=[f"v{push}", "v0"]))
        kept.append((table, plain(table)))
    assert all(plain(table) == told for table, told in kept)
    assert kept[30][1][0]["group"] in ("v30", "v0")


# -- what is null ----------------------------------------------------------------------------------------------

OBJECT = ("id", "score", "rank", "seq", "time")


def nulls(table: pa.Table) -> list[tuple[str, ...]]:
    """The columns that are null, a row; as counts know them, too."""
    found = [tuple(name for name, value in row.items() if value is None) for row in plain(table)]
    for name in table.column_names:
        assert table.column(name).null_count == sum(name in row for row in found), name
    return found


def test_empty_rows_tell_of_no_object():
    engine = engine_of({**MANY, "k": 1, "where": "x > 5", "window": {"count": 1}}, time="t")
    engine.push("s", rows(1.0, times=[0]), now=NOW)
    table = engine.push("s", rows(9.0, 1.0, 9.0, times=[1, 2, 3]), now=NOW)
    assert log(table, "op", "rank") == [("row", 1), ("empty", None), ("row", 1)]
    assert nulls(table) == [("group",), ("group", *OBJECT), ("group",)]
    assert nulls(engine.push("s", rows(9.0, times=[4]), now=NOW)) == [("group",)]


def test_end_rows_tell_of_no_object_and_of_no_point_if_there_was_none():
    engine = engine_of(MANY, {**MANY, "name": "p"}, time="t")
    assert nulls(engine.remove("p")) == [("group", "at", *OBJECT)]
    engine.push("s", rows(1.0, times=[0]), now=NOW)
    table = engine.remove("q")
    assert nulls(table) == [("group", *OBJECT)]
    assert log(table) == [(1, "end", None, None)]


def test_end_rows_come_last_of_their_query_and_rows_around_them_are_whole():
    ending = {"k": 1, "window": {"count": 5}, "active": {"until": 3}}
    engine = engine_of({"name": "a", **ending}, {"name": "b", "k": 1, "window": {"count": 5}}, {"name": "c", **ending})
    table = engine.push("s", rows(1.0, 2.0, 3.0, 4.0))
    ops = [(name, op) for name, op in log(table, "query", "op") if op == "end" or name == "b"]
    assert ops == [("a", "end"), *[("b", op) for op in ("enter", *["leave", "enter"] * 3)], ("c", "end")]
    bare = ("group", *OBJECT)
    assert [row == bare for row in nulls(table)] == [op == "end" for (op,) in log(table, "op")]


def test_rows_without_group_or_time_are_null_beside_those_that_have_them():
    streams = {
        "s": sm.Stream(id="id", attributes=["x", "y"], columns=["venue"]),
        "timed": sm.Stream(id="id", attributes=["x"], time="t"),
    }
    asked = {"k": 1, "score": "x"}
    queries = [
        sm.TopK(name="grouped", stream="s", window={"count": 3}, group_by="venue", **asked),
        sm.TopK(name="plain", stream="s", window={"count": 3}, **asked),
        sm.TopK(name="timed", stream="timed", window={"time": "5us"}, **asked),
    ]
    engine = sm.Engine(sm.QuerySet(streams=streams, queries=queries))
    for push in range(40):  # over byte boundaries of the bitmaps
        table = engine.push("s", rows(1.0, 2.0, first=2 * push, venue=["A", "B"]))
        expected = [("time",) if name == "grouped" else ("group", "time") for (name,) in log(table, "query")]
        assert nulls(table) == expected
        assert set(log(table, "query", "group")) <= {("grouped", "A"), ("grouped", "B"), ("plain", None)}
        timed = engine.push("timed", {"id": [push], "x": [1.0], "t": [push]}, now=NOW)
        assert set(nulls(timed)) <= {("group",)}
    assert nulls(engine.flush()) == [("group",)] * 2


def test_scores_keep_their_bits():
    engine = engine_of({**MANY, "score": "x * y"}, {**MANY, "name": "p", "score": "x * y", "order": "smallest"})
    table = engine.push("s", {"id": [1, 2], "x": [-0.0, 0.0], "y": [1.0, 1.0]})
    for row in plain(table):
        assert np.signbit(row["score"]) == (row["id"] == 1), row


# -- slices, as whoever gets them uses them --------------------------------------------------------------------


@pytest.fixture
def middle() -> pa.Table:
    """A result in the midst of a chunk."""
    tables = in_pushes(engine_of(MANY), 9, 7)
    assert tables[4].column("at").chunk(0).offset > 0
    return tables[4]


def test_slices_written_to_ipc_hold_only_their_rows(middle):
    target = pa.BufferOutputStream()
    with pa.ipc.new_stream(target, middle.schema) as writer:
        writer.write_table(middle)
    written = target.getvalue()
    names = sum(len(name) for name in ("q", "leave", "move", "enter", "row", "empty", "end"))
    assert written.size < 4096 + names + 60 * middle.num_rows
    read = pa.ipc.open_stream(written).read_all()
    assert read.equals(middle)
    assert plain(read) == plain(middle)


def test_slices_written_to_parquet_hold_only_their_rows(middle, tmp_path):
    pa.parquet.write_table(middle, tmp_path / "plain.parquet")
    assert plain(pa.parquet.read_table(tmp_path / "plain.parquet")) == plain(middle)
    sink = ParquetFile(tmp_path / "sink.parquet")
    for table in (middle, middle.slice(2, 3)):
        sink.write(table)
    sink.close()
    assert plain(pa.parquet.read_table(tmp_path / "sink.parquet")) == plain(middle) + plain(middle)[2:5]


def test_slices_written_to_json_lines_hold_only_their_rows(middle, tmp_path):
    sink = JsonLines(tmp_path / "out.jsonl")
    sink.write(middle)
    sink.close()
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines == [{name: value for name, value in row.items() if value is not None} for row in plain(middle)]


def test_results_are_tables_like_any_other(middle):
    copied = middle.take(list(range(middle.num_rows)))
    assert middle.equals(copied)
    assert middle.combine_chunks().equals(copied)
    assert middle.slice(1, 2).to_pylist() == plain(middle)[1:3]
    assert middle.take([3, 0]).to_pylist() == [plain(middle)[3], plain(middle)[0]]
    assert middle.to_pandas()["rank"].tolist() == [row["rank"] for row in plain(middle)]
    assert middle.filter(pa.compute.equal(middle["rank"], 1)).num_rows == sum(r["rank"] == 1 for r in plain(middle))
    assert middle.nbytes < 80 * middle.num_rows
