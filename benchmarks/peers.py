"""One sliding ranking, by skymesh and by what one might write instead: top 20 of the last 100,000 rows, every 1,000.

NumPy and DuckDB recompute the window at each point, as a job without state of its own would; NumPy incremental keeps
the window's scores in a ring and partitions them. All give the same ids, checked at every point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import skymesh as sm
from benchmarks.harness import interleaved_seconds, report

WINDOW, SLIDE, K = 100_000, 1_000, 20
POINTS = 60
ROUNDS = 5

Batch = dict[str, np.ndarray]
Runner = Callable[[list[Batch]], Iterator[np.ndarray]]


def by_skymesh(batches: list[Batch]) -> Iterator[np.ndarray]:
    query = sm.TopK(name="q", stream="s", k=K, score="0.3 * x + 0.7 * y", window={"count": WINDOW, "slide": SLIDE})
    engine = sm.Engine(sm.QuerySet(streams={"s": sm.Stream(id="id", attributes=["x", "y"])}, queries=[query]))
    for batch in batches:
        engine.push("s", batch)
        yield engine.top("q").column("id").to_numpy()


def by_numpy(batches: list[Batch]) -> Iterator[np.ndarray]:
    window: Batch = {name: np.empty(0, column.dtype) for name, column in batches[0].items()}
    for batch in batches:
        window = {name: np.concatenate((window[name], column))[-WINDOW:] for name, column in batch.items()}
        yield _best(0.3 * window["x"] + 0.7 * window["y"], window["id"])


def by_numpy_incremental(batches: list[Batch]) -> Iterator[np.ndarray]:
    scores, ids = np.full(WINDOW, -np.inf), np.full(WINDOW, -1)
    seen = 0
    for batch in batches:
        place = np.arange(seen, seen + len(batch["id"])) % WINDOW
        scores[place], ids[place] = 0.3 * batch["x"] + 0.7 * batch["y"], batch["id"]
        seen += len(place)
        yield _best(scores, ids)


def _best(scores: np.ndarray, ids: np.ndarray) -> np.ndarray:
    if len(scores) > K:
        best = np.argpartition(-scores, K)[:K]
        return ids[best[np.lexsort((-ids[best], -scores[best]))]]
    return ids[np.lexsort((-ids, -scores))]


def by_duckdb(batches: list[Batch]) -> Iterator[np.ndarray]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("create table s (id bigint, x double, y double)")
    for batch in batches:
        connection.register("batch", batch)
        connection.execute("insert into s select id, x, y from batch")
        connection.execute(f"delete from s where id < (select max(id) from s) - {WINDOW - 1}")
        query = f"select id from s order by 0.3 * x + 0.7 * y desc, id desc limit {K}"
        yield connection.execute(query).fetchnumpy()["id"]


def main() -> None:
    random = np.random.default_rng(4)
    batches = [
        {"id": np.arange(start, start + SLIDE), "x": random.random(SLIDE), "y": random.random(SLIDE)}
        for start in range(0, WINDOW + POINTS * SLIDE, SLIDE)
    ]
    runners: dict[str, Runner] = {"skymesh": by_skymesh, "NumPy incremental": by_numpy_incremental, "NumPy": by_numpy}
    try:
        import duckdb  # noqa: F401

        runners["DuckDB"] = by_duckdb
    except ImportError:
        print("DuckDB is not installed; leaving it out (pip install duckdb)")
    _check(runners, batches)
    seconds = interleaved_seconds(
        {name: lambda run=run: [None for _ in run(batches)] for name, run in runners.items()}, rounds=ROUNDS
    )
    rows = [
        {
            "who": name,
            "rows/s": sum(len(b["id"]) for b in batches) / took,
            "skymesh is faster by": took / seconds["skymesh"],
        }
        for name, took in seconds.items()
    ]
    report("peers", f"peers: top {K} of the last {WINDOW:,} rows, every {SLIDE:,} rows, one query", rows, seed=4)


def _check(runners: dict[str, Runner], batches: list[Batch]) -> None:
    for point, found in enumerate(zip(*[run(batches) for run in runners.values()], strict=True)):
        for name, ids in zip(runners, found, strict=True):
            assert ids.tolist() == found[0].tolist(), f"{name} differs at point {point}"


if __name__ == "__main__":
    main()
