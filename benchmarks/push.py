"""What a push costs beside the algorithm: reading, checking, numbering, and the table of changes."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

import skymesh as sm
from benchmarks.harness import report
from skymesh.algorithms.base import Algorithm

ROWS = 10_000
BATCHES = 200
ATTRIBUTES = ("a", "b", "c", "d")


class _Clock:
    """Adds up the time inside algorithms."""

    def __init__(self) -> None:
        self.inside = 0.0
        self._advance = Algorithm.advance

    def __enter__(self) -> _Clock:
        def timed(algorithm, *args, **kwargs):  # type: ignore[no-untyped-def]
            began = time.perf_counter()
            try:
                return self._advance(algorithm, *args, **kwargs)
            finally:
                self.inside += time.perf_counter() - began

        Algorithm.advance = timed  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        Algorithm.advance = self._advance  # type: ignore[method-assign]


def main() -> None:
    random = np.random.default_rng(2)
    columns = [{"id": np.arange(ROWS), **{name: random.random(ROWS) for name in ATTRIBUTES}} for _ in range(BATCHES)]
    times = [pa.array(np.arange(ROWS) + i * ROWS, pa.timestamp("us", "UTC")) for i in range(BATCHES)]
    inputs = {
        "record batch": [pa.record_batch(batch) for batch in columns],
        "dict of arrays": columns,
        "record batch, event time": [
            pa.record_batch({**batch, "t": time}) for batch, time in zip(columns, times, strict=True)
        ],
    }
    for batches in inputs.values():
        _measured(batches)  # warm-up
    rows = [{"input": name, **_measured(batches)} for name, batches in inputs.items()]
    report("push", f"push: time outside the algorithm for {ROWS:,} rows, {len(ATTRIBUTES)} attributes, 1 query", rows)


def _measured(batches: list[pa.RecordBatch] | list[dict[str, np.ndarray]]) -> dict[str, float]:
    has_time = isinstance(batches[0], pa.RecordBatch) and "t" in batches[0].schema.names
    window = {"time": "10ms", "slide": "5ms"} if has_time else {"count": 1_000_000, "slide": ROWS}
    stream = sm.Stream(id="id", time="t" if has_time else None, attributes=list(ATTRIBUTES))
    query = sm.TopK(name="q", stream="s", k=20, score="a + b + c + d", window=window)
    engine = sm.Engine(sm.QuerySet(streams={"s": stream}, queries=[query]))
    outside, inside, changes = [], [], []
    with _Clock() as clock:
        for batch in batches:
            clock.inside = 0.0
            began = time.perf_counter()
            changes.append(engine.push("s", batch).num_rows)
            outside.append(time.perf_counter() - began - clock.inside)
            inside.append(clock.inside)
    warm = slice(BATCHES // 10, None)
    return {
        "changes a push": float(np.mean(changes[warm])),
        "outside, ms": float(np.median(outside[warm])) * 1e3,
        "p99 outside, ms": float(np.quantile(outside[warm], 0.99)) * 1e3,
        "inside, ms": float(np.median(inside[warm])) * 1e3,
    }


if __name__ == "__main__":
    main()
