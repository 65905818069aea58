"""The grid on streams that are long enough for many cells: the same logs as the skyband, which has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import skymesh as sm

ROWS = 24_000
PER_BATCH = 1_500
US = 1_000

SCORES: tuple[Any, ...] = (
    "0.3 * x + 0.7 * y",
    "y - 2 * x",
    "(0.1 + x) * (0.5 + y)",
    "x * x + 3 * (y * y)",
    {"distance": {"x": 0.4, "y": 0.6}},
    {"distance": {"to": {"x": 0.2, "y": 0.9}, "metric": "largest"}},
    "sqrt(abs(x - 0.3)) - y * (1 - y)",
    "where(x > 0.5, y, -y) / (z - 3)",
    "exp(-x) * z",
    "x",
)
FILTERS: tuple[Any, ...] = (None, None, {"x": [0.2, 0.7]}, "y > 0.95 or x < 0.01", "venue == 'B' and z < 2")


def queries(algorithm: str, *, is_time: bool) -> list[sm.queries.AnyQuery]:
    made: list[sm.queries.AnyQuery] = []
    for number, score in enumerate(SCORES):
        for order in ("largest", "smallest"):
            rows = 2_000 + 700 * number
            slide = (1, 50, 333, 2_000)[number % 4]
            window = {"time": f"{rows}us", "slide": f"{slide}us"} if is_time else {"count": rows, "slide": slide}
            where = FILTERS[(number + len(made)) % len(FILTERS)]
            fields = {"stream": "s", "score": score, "window": window, "where": where, "algorithm": algorithm}
            made.append(sm.TopK(name=f"{number} {order}", k=1 + 3 * number, order=order, **fields))
    window = {"time": "4ms", "slide": "100us"} if is_time else {"count": 4_000, "slide": 100}
    fields = {"stream": "s", "window": window, "algorithm": algorithm}
    made.append(sm.Threshold(name="above", score="x + y", above=1.9, **fields))
    made.append(sm.Threshold(name="below", score="x * y", below=0.001, where="venue == 'A'", **fields))
    return made


def rows_of(kind: str, count: int = ROWS) -> dict[str, Any]:
    random = np.random.default_rng(5)
    x, y, z = random.random((3, count))
    if kind == "falling":
        x, y = x * np.linspace(1, 0.5, count), y * np.linspace(1, 0.5, count)
    if kind == "drifting":
        x, y = x + np.linspace(0, 40, count), y - np.linspace(0, 7, count)
    if kind == "ties":
        x, y, z = np.floor(4 * x) / 4, np.floor(4 * y) / 4, np.floor(3 * z)
    return {
        "id": random.integers(0, 300, count),
        "t": np.maximum(0, np.arange(count) - random.integers(0, 30, count)),
        "x": x,
        "y": y,
        "z": z,
        "venue": pa.array(["A", "B", None] * (count // 3)),
    }


def logs(algorithm: str, kind: str, *, is_time: bool, domains: dict[str, Any]) -> list[pa.Table]:
    stream = sm.Stream(
        id="id", time="t", lateness="20us", attributes=domains, columns=["venue"], keep={"count": 9_000, "time": "9ms"}
    )
    made = queries(algorithm, is_time=is_time)
    engine = sm.Engine(sm.QuerySet(streams={"s": stream}, queries=made[::2]))
    rows, tables = rows_of(kind), []
    for number, start in enumerate(range(0, ROWS, PER_BATCH)):
        cut = slice(start, start + PER_BATCH)
        tables.append(engine.push("s", {name: column[cut] for name, column in rows.items()}, now=10**12))
        if number == 7:
            for query in made[1::2]:
                tables.append(engine.add(query.model_copy(update={"start": "window"})))
        if number == 11:
            tables.append(engine.remove(made[0].name))
    tables.append(engine.flush())
    return tables


DECLARED = {"x": {"domain": [0, 1]}, "y": {"domain": [0, 1], "intervals": 9}, "z": {}}
LEARNED: dict[str, Any] = {"x": {}, "y": {}, "z": {}}


@pytest.mark.parametrize("algorithm", ["tma", "sma", "tsl"])
@pytest.mark.parametrize(
    ("kind", "is_time", "domains"),
    [
        ("even", False, DECLARED),
        ("even", True, LEARNED),
        ("falling", False, LEARNED),
        ("drifting", False, DECLARED),
        ("drifting", True, DECLARED),
        ("ties", True, DECLARED),
    ],
)
def test_long_streams_give_the_same_logs_as_the_skyband(algorithm, kind, is_time, domains):
    expected = logs("sa", kind, is_time=is_time, domains=domains)
    found = logs(algorithm, kind, is_time=is_time, domains=domains)
    for number, (told, wanted) in enumerate(zip(found, expected, strict=True)):
        assert told.equals(wanted), f"call {number} of a {kind} stream differs"
    assert sum(table.num_rows for table in expected) > 1_000


@pytest.mark.parametrize("per_id", ["all", "latest"])
def test_long_streams_with_deletions_give_the_same_logs_as_a_scan(per_id):
    def tables(algorithm: str) -> list[pa.Table]:
        stream = sm.Stream(id="id", time="t", lateness="20us", attributes=DECLARED, deletes=True, columns=["venue"])
        made = [
            sm.TopK(
                name=f"{number}",
                stream="s",
                score=score,
                k=5,
                window={"time": "900us", "slide": "45us"} if number % 2 else {"count": 800, "slide": 40},
                per_id=per_id,
                algorithm=algorithm,
            )
            for number, score in enumerate(SCORES)
        ]
        engine = sm.Engine(sm.QuerySet(streams={"s": stream}, queries=made))
        rows, told = rows_of("even", 6_000), []
        for start in range(0, 6_000, 500):
            told.append(engine.push("s", {n: c[start : start + 500] for n, c in rows.items()}, now=10**12))
            told.append(engine.delete("s", list(range(start // 100, 250, 9))))
        return [*told, engine.flush()]

    for number, (told, wanted) in enumerate(zip(tables("tma"), tables("scan"), strict=True)):
        assert told.equals(wanted), f"call {number} differs"


def test_a_skyband_is_refused_where_rows_may_be_withdrawn():
    stream = sm.Stream(id="id", attributes=["x"], deletes=True)
    query = sm.TopK(name="q", stream="s", k=1, score="x", window={"count": 5}, algorithm="sma")
    with pytest.raises(sm.QueryError, match=r"'q': algorithm sma does not serve it: .*may be deleted"):
        sm.Engine(sm.QuerySet(streams={"s": stream}, queries=[query]))


@pytest.mark.parametrize("first", [2**32 - 700, 2**33])
def test_rows_may_be_numbered_beyond_four_billion(first):
    stream = sm.Stream(id="id", attributes=DECLARED, columns=["venue"])
    query = sm.TopK(name="q", stream="s", k=5, score=SCORES[0], window={"count": 800, "slide": 40}, algorithm="tma")
    ordinary, long_lived = (sm.Engine(sm.QuerySet(streams={"s": stream}, queries=[query])) for _ in range(2))
    ring = long_lived._lanes["s"]._teams[0].algorithm._row_sides[0]._ring
    ring.first = ring.end = first
    rows = rows_of("falling", 6_000)
    for start in range(0, 6_000, 500):
        batch = {name: column[start : start + 500] for name, column in rows.items()}
        assert long_lived.push("s", batch).equals(ordinary.push("s", batch))
    assert ordinary.stats()["queries"]["q"]["searches"] > 1


def test_a_new_ranking_searches_instead_of_taking_everything_in():
    stream = sm.Stream(id="id", attributes={"x": {"domain": [0, 1]}})
    query = sm.TopK(name="q", stream="s", k=5, score="x", window={"count": 50_000, "slide": 1_000}, algorithm="tma")
    engine = sm.Engine(sm.QuerySet(streams={"s": stream}, queries=[query]))
    engine.push("s", {"id": np.arange(1_000), "x": np.random.default_rng(1).random(1_000)})
    stats = engine.stats()["queries"]["q"]
    assert stats["searches"] == 1
    assert stats["kept"] < 20


@pytest.mark.parametrize("algorithm", ["tma", "sma", "tsl"])
def test_a_late_starter_without_a_slide_knows_when_rows_from_before_fall_out(algorithm):
    """A team whose queries all have a slide notes no instants, so one without a slide cannot join it looking back."""

    def told(kind: str) -> list[dict[str, Any]]:
        stream = sm.Stream(id="id", time="t", attributes=["x"], keep="20us")
        asked = {"stream": "s", "k": 1, "score": "x", "algorithm": kind}
        first = sm.TopK(name="first", window={"time": "2us", "slide": "1us"}, **asked)
        engine = sm.Engine(sm.QuerySet(streams={"s": stream}, queries=[first]))
        engine.push("s", {"id": [0, 1], "x": [0.0, 0.0], "t": [5, 6]})
        engine.flush()
        engine.add(sm.TopK(name="late", window={"time": "2us"}, start="window", **asked))
        changes = engine.push("s", {"id": [2, 3], "x": [0.0, 0.0], "t": [8, 10]}).to_pylist()
        return [change for change in changes if change["query"] == "late"]

    assert told(algorithm) == told("sa")
    assert [change["at"] for change in told(algorithm)] == [7, 8, 8]
