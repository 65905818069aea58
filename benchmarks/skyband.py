"""The skyband's cost a row against the length of its window.

One query, a point after every row, scores in random order. The band holds k(1 + ln(n/k)) rows on average, and a row
that enters it passes about k of them whatever n is, so the cost a row has to stay within that logarithm.
"""

from __future__ import annotations

import math
import time

import numpy as np

import skymesh as sm
from benchmarks.harness import report

K = 10
LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
ROWS_PER_BATCH = 10_000
ROUNDS = 15


def main() -> None:
    random = np.random.default_rng(1)
    engines = {n: _full_engine(n, random) for n in LENGTHS}
    times: dict[int, list[float]] = {n: [] for n in LENGTHS}
    kept: dict[int, list[int]] = {n: [] for n in LENGTHS}
    for _ in range(ROUNDS):
        for n, engine in engines.items():
            batch = _batch(random)
            began = time.perf_counter()
            engine.push("s", batch)
            times[n].append(time.perf_counter() - began)
            kept[n].append(engine.stats()["queries"]["q"]["kept"])
    base = float(np.median(times[LENGTHS[0]]))
    rows = []
    for n in LENGTHS:
        seconds = float(np.median(times[n]))
        expected = K * (1 + math.log(n / K))
        rows.append(
            {
                "window": n,
                "ns a row": seconds / ROWS_PER_BATCH * 1e9,
                "against shortest": seconds / base,
                "rows kept": float(np.mean(kept[n])),
                "k(1 + ln(n/k))": expected,
                "ln(n/k) against shortest": math.log(n / K) / math.log(LENGTHS[0] / K),
            }
        )
    report(
        "skyband", f"skyband: cost a row against window length (k = {K}, a point after every row)", rows, k=K, seed=1
    )


def _full_engine(n: int, random: np.random.Generator) -> sm.Engine:
    """An engine whose window is full, checked against a plain sort."""
    query = sm.TopK(name="q", stream="s", k=K, score="x", window={"count": n}, algorithm="sa")
    engine = sm.Engine(sm.QuerySet(streams={"s": sm.Stream(id="id", attributes=["x"])}, queries=[query]))
    scores = random.random(n + 3 * ROWS_PER_BATCH)
    for start in range(0, len(scores), ROWS_PER_BATCH):
        part = scores[start : start + ROWS_PER_BATCH]
        engine.push("s", {"id": np.arange(len(part)), "x": part})
    assert engine.top("q").column("score").to_pylist() == sorted(scores[-n:], reverse=True)[:K]
    return engine


def _batch(random: np.random.Generator) -> dict[str, np.ndarray]:
    return {"id": np.arange(ROWS_PER_BATCH), "x": random.random(ROWS_PER_BATCH)}


if __name__ == "__main__":
    main()
