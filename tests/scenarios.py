"""Generated scenarios: a stream, queries over it, and what happens to them; run on an engine and on the oracle.

Values come from tiny domains, so ties, repeated ids, empty windows and k > n are the rule. Times are a few dozen
microseconds apart from 0, so every window comes and goes many times within fifty rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import strategies as st

import skymesh as sm
from skymesh.actors.engine import Engine
from skymesh.algorithms.asked import ask
from skymesh.algorithms.columns import Rows
from skymesh.algorithms.oracle import OracleQuery, OracleStream, Row, Told
from skymesh.algorithms.score_kernels import score_all
from skymesh.algorithms.score_table import ScoreTable
from skymesh.routing.encoder import Encoder
from skymesh.routing.splitter import Splitter

NOW = 10**15
GROUPS = ("A", "B", "C", None)
US = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Push:
    rows: list[tuple[int, float, float, str | None, int]]  # id, x, y, venue, time


@dataclass(frozen=True)
class Add:
    query: sm.queries.AnyQuery


@dataclass(frozen=True)
class Remove:
    name: str


@dataclass(frozen=True)
class Delete:
    ids: list[int]


@dataclass(frozen=True)
class Heartbeat:
    time: int


@dataclass(frozen=True)
class Flush:
    pass


Action = Push | Add | Remove | Delete | Heartbeat | Flush


@dataclass(frozen=True)
class Scenario:
    stream: sm.Stream
    queries: list[sm.queries.AnyQuery]
    actions: list[Action] = field(default_factory=list)


# -- strategies -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """What an algorithm serves, as far as scenarios vary it."""

    kinds: tuple[str, ...] = ("topk",)
    per_id: tuple[str, ...] = ("all",)
    deletes: bool = False
    landmarks: bool = True
    groups: bool = True


SCORES = (
    "x",
    "x + 2 * y",
    "x * y",
    "-x",
    "x - y",
    "abs(x - 2)",
    "where(x > 1, y, -x)",
    "log(x)",
    "sqrt(x - 1)",
    "1 / y",
    "sqrt(abs(x - 0.3)) - y * (1 - y)",
    "(1 + x) * (2 + y)",
    "x * x - 2 * (y * y)",
    "sqrt((x - 1) ** 2 + 2 * (y - 2) ** 2)",
    "max(abs(x - 2), 3 * abs(y - 1))",
)
# Unknown, wide, narrower than the values, and beside them: what lies outside is ranked all the same.
DOMAINS: tuple[dict[str, Any], ...] = (
    {"x": {}, "y": {}},
    {"x": {"domain": [0, 4], "intervals": 4}, "y": {"domain": [0, 3], "intervals": 3}},
    {"x": {"domain": [1, 2.5], "intervals": 3}, "y": {}},
    {"x": {"domain": [-9, -8], "intervals": 2}, "y": {"domain": [2, 2]}},
)
FILTERS = (
    None,
    None,
    None,
    "x > 1",
    "y <= 2 and not x == 0",
    {"x": [1, 3]},
    {"venue": ["A", "C"]},
    "venue != 'A'",
    "venue in ['B']",
)


@st.composite
def windows(draw: st.DrawFn, *, is_time: bool, landmarks: bool) -> dict[str, Any] | str:
    unit: Callable[[int], Any] = (lambda n: n * US) if is_time else (lambda n: n)
    kind = draw(
        st.sampled_from(
            ["sliding", "sliding", "sliding", "tumbling", "landmark"] if landmarks else ["sliding", "tumbling"]
        )
    )
    size = draw(st.integers(1, 12))
    if kind == "tumbling":
        window: dict[str, Any] = {"tumbling": unit(size)}
    elif kind == "landmark":
        window = {"landmark": "start"} if draw(st.booleans()) else {"landmark": EPOCH + 5 * US if is_time else 5}
        slide = draw(st.none() | st.integers(1, 6))
        if slide is not None or (is_time and window["landmark"] == "start"):
            window["slide"] = unit(slide or 3)
    else:
        window = {"time" if is_time else "count": unit(size)}
        slide = draw(st.none() | st.integers(1, size))
        if slide is not None:
            window["slide"] = unit(slide)
    if draw(st.integers(0, 3)) == 0 and ("slide" in window or "tumbling" in window or not is_time):
        window["offset"] = unit(draw(st.integers(1, 15)))
    return window


@st.composite
def query_specs(
    draw: st.DrawFn, name: str, algorithm: str, features: Features, *, starts: bool = False
) -> sm.queries.AnyQuery:
    is_time = draw(st.booleans())
    per_id = draw(st.sampled_from(features.per_id))
    landmarks = features.landmarks and per_id != "latest" and not features.deletes and not starts
    window = draw(windows(is_time=is_time, landmarks=landmarks))
    emit = draw(st.sampled_from(["changes", "changes", "ranked", "entries", "snapshot"]))
    if emit == "snapshot" and is_time and "slide" not in window and "tumbling" not in window:
        emit = "ranked"
    fields: dict[str, Any] = {
        "name": name,
        "stream": "s",
        "score": draw(st.sampled_from(SCORES)),
        "window": window,
        "where": draw(st.sampled_from(FILTERS)),
        "per_id": per_id,
        "emit": emit,
        "algorithm": algorithm,
        "start": "window" if starts and draw(st.booleans()) else "now",
    }
    if features.groups and draw(st.integers(0, 3)) == 0:
        fields["group_by"] = "venue"
        fields["max_groups"] = draw(st.integers(1, 3))
    if draw(st.integers(0, 4)) == 0:
        begin = draw(st.none() | st.integers(0, 20))
        end = draw(st.none() | st.integers(21, 45))
        position = (lambda n: EPOCH + n * US) if is_time else (lambda n: n)
        fields["active"] = {
            "from": None if begin is None else position(begin),
            "until": None if end is None else position(end),
        }
    if draw(st.sampled_from(features.kinds)) == "threshold":
        side = draw(st.sampled_from(["above", "below"]))
        return sm.Threshold(**fields, **{side: draw(st.integers(-1, 4))})
    return sm.TopK(**fields, k=draw(st.integers(1, 5)), order=draw(st.sampled_from(["largest", "smallest"])))


@st.composite
def row_lists(draw: st.DrawFn, size: int) -> list[tuple[int, float, float, str | None, int]]:
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 5),
                st.integers(0, 4).map(float),
                st.integers(0, 3).map(float),
                st.sampled_from(GROUPS),
                st.integers(-4, 4),
            ),
            min_size=size,
            max_size=size,
        )
    )
    pace = draw(st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    return [(i, x, y, v, int(pace * n) + jitter + 5) for n, (i, x, y, v, jitter) in enumerate(rows)]


@st.composite
def scenarios(draw: st.DrawFn, algorithm: str, features: Features) -> Scenario:
    deletes = features.deletes and draw(st.booleans())
    served = replace(features, deletes=deletes)
    stream = sm.Stream(
        id="id",
        time="t",
        lateness=draw(st.sampled_from([0, 0, 2, 6])) * US,
        keep={"time": 20 * US, "count": 20},
        deletes=deletes,
        attributes=draw(st.sampled_from(DOMAINS)),
        columns=["venue"],
    )
    queries = [draw(query_specs(f"q{i}", algorithm, served)) for i in range(draw(st.integers(1, 3)))]
    rows = draw(row_lists(draw(st.integers(0, 48))))
    actions: list[Action] = []
    running, added = [query.name for query in queries], 0
    while rows:
        cut = draw(st.sampled_from([0, 1, 1, 2, 3, 7, 20, 48]))
        actions.append(Push(rows[:cut]))
        rows = rows[cut:]
        event = draw(st.sampled_from(["none"] * 5 + ["add", "remove", "delete", "delete", "heartbeat", "flush"]))
        if event == "add" and added < 3:
            added += 1
            query = draw(query_specs(f"a{added}", algorithm, served, starts=True))
            actions.append(Add(query))
            running.append(query.name)
        elif event == "remove" and running:
            actions.append(Remove(running.pop(draw(st.integers(0, len(running) - 1)))))
        elif event == "delete" and deletes:
            actions.append(Delete(draw(st.lists(st.integers(0, 5), max_size=3))))
        elif event == "heartbeat":
            actions.append(Heartbeat(draw(st.integers(0, 60))))
        elif event == "flush":
            actions.append(Flush())
    if draw(st.booleans()):
        actions.append(Flush())
    return Scenario(stream, queries, actions)


# -- running them ---------------------------------------------------------------------------------------------


def batch_of(rows: list[tuple[int, float, float, str | None, int]]) -> dict[str, Any]:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) if rows else [()] * 5
    return {
        "id": np.array(columns[0], np.int64),
        "x": np.array(columns[1], np.float64),
        "y": np.array(columns[2], np.float64),
        "venue": pa.array(columns[3], pa.string()),
        "t": np.array(columns[4], np.int64),
    }


class Judge:
    """The oracle's side of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.stream = OracleStream(scenario.stream)
        self._declared = scenario.stream
        self.queries: dict[str, OracleQuery] = {}
        self._scored: dict[str, sm.queries.AnyQuery] = {q.name: q for q in scenario.queries}
        for action in scenario.actions:
            if isinstance(action, Add):
                self._scored[action.query.name] = action.query
        for query in scenario.queries:
            self.queries[query.name] = OracleQuery(query, self.stream)

    def apply(self, action: Action) -> list[Told]:
        told: list[Told] = []
        if isinstance(action, Push):
            rows = self._rows(action.rows)
            self.stream.arrive(rows, NOW)
            for query in self._running():
                told += query.arrived(rows)
        elif isinstance(action, Add):
            self.queries[action.query.name] = OracleQuery(action.query, self.stream, first=False)
        elif isinstance(action, Remove):
            told.append(self.queries[action.name].end())
        elif isinstance(action, Delete):
            self.stream.delete(action.ids)
            for query in self._running():
                told += query.deleted()
        elif isinstance(action, Heartbeat):
            self.stream.heartbeat(action.time)
            for query in self._running():
                told += query.moved_on() if query.is_time else []
        else:
            self.stream.flush()
            for query in self._running():
                told += query.moved_on(flush=True) if query.is_time else []
        return told

    def is_running(self, name: str) -> bool:
        return name in self.queries and not self.queries[name].is_over

    def _running(self) -> list[OracleQuery]:
        return [query for query in self.queries.values() if not query.is_over]

    def _rows(self, rows: list[tuple[int, float, float, str | None, int]]) -> list[Row]:
        made = [Row(-1, id_, time, {"venue": venue}, {}, {}) for id_, _, _, venue, time in rows]
        if rows:
            encoded = encode(self._declared, list(self._scored.values()), rows)
            for name, (scores, passes) in encoded.items():
                for row, score, passing in zip(made, scores, passes, strict=True):
                    row.scores[name], row.passes[name] = float(score), bool(passing)
        return made


def encode(stream: sm.Stream, queries: list[Any], rows: list[Any]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Scores and filters of rows, by query, from the kernel that has tests of its own."""
    encoder = Encoder(stream)
    for query in queries:
        encoder.admit(query)
    raw = Splitter("s", stream).split(batch_of(rows), NOW).rows
    encoded: Rows = encoder.rows(raw, is_time=False)
    result = {}
    for query in queries:
        table = ScoreTable()
        table.put(0, ask(query, stream, encoder.places(), 0).scoring)
        programs, filter_of, stack = table.arrays()
        out = np.empty((2, len(rows)))
        out[1] = 1.0
        score_all(programs, 0, encoded.numbers, encoded.columns, encoded.known, stack, out[0])
        if filter_of[0] >= 0:
            score_all(programs, filter_of[0], encoded.numbers, encoded.columns, encoded.known, stack, out[1])
        result[query.name] = (out[0], out[1] != 0.0)
    return result


def apply_to_engine(engine: Engine, action: Action) -> Any:
    if isinstance(action, Push):
        return engine.push("s", batch_of(action.rows), now=NOW)
    if isinstance(action, Add):
        return engine.add(action.query)
    if isinstance(action, Remove):
        return engine.remove(action.name)
    if isinstance(action, Delete):
        return engine.delete("s", action.ids)
    if isinstance(action, Heartbeat):
        return engine.heartbeat("s", action.time)
    return engine.flush()


def told_of(table: Any) -> list[Told]:
    """A table of changes as the oracle tells them."""
    return [
        Told(r["query"], r["group"], r["at"], r["op"], r["id"], r["score"], r["rank"], r["seq"])
        for r in table.to_pylist()
    ]


def run_against_oracle(scenario: Scenario, engine: Engine) -> None:
    """Apply a scenario action by action; after each, what the engine told and shows is what the oracle does."""
    judge = Judge(scenario)
    for number, action in enumerate(scenario.actions):
        if isinstance(action, Remove) and not judge.is_running(action.name):
            continue
        if isinstance(action, Add) and has_passed(action.query, judge.stream):
            continue
        told = told_of(apply_to_engine(engine, action))
        expected = judge.apply(action)
        assert told == expected, f"after action {number}: {difference(told, expected)}"
        for query in judge.queries.values():
            if not query.is_over:
                check_top(engine, query)
        for lane in engine._lanes.values():
            for team in lane._teams:
                team.algorithm.check()


def difference(told: list[Told], expected: list[Told]) -> str:
    """Where two logs part."""
    first = next(
        (i for i, (a, b) in enumerate(zip(told, expected, strict=False)) if a != b), min(len(told), len(expected))
    )
    return f"from row {first} on the engine told {told[first : first + 3]}, the oracle {expected[first : first + 3]}"


def has_passed(query: Any, stream: OracleStream) -> bool:
    if query.active is None or query.active.until is None:
        return False
    until = query.active.until
    if isinstance(until, datetime):
        return stream.closed is not None and (until - EPOCH) // US <= stream.closed
    return until <= len(stream.rows)


def check_top(engine: Engine, query: OracleQuery) -> None:
    name = query.query.name
    rows = engine.top(name).to_pylist()
    assert [(row["group"], row["rank"], row["seq"]) for row in rows] == query.top(), name
    assert all(row["at"] == query.last_point for row in rows), (name, query.last_point, rows)
    stats = engine.stats()["queries"][name]
    assert stats["missed"] == query.missed, (name, stats, query.missed)
