"""How long a large query set takes to load: nothing is compiled for an expression, so ten thousand are no burden."""

from __future__ import annotations

import sys

import numpy as np

import skymesh as sm
from benchmarks.harness import median_seconds, report

COUNT = 10_000
HEAD = "version: 1\nstreams: {s: {id: id, attributes: [x, y, z]}}\nqueries:\n"


def main() -> None:
    lines = [
        f"  - {{name: q{i}, stream: s, k: 3, window: {{count: 100, slide: 10}}, "
        f"score: '{i} * x + log(y + {i}) - z / {i + 1}'}}\n"
        for i in range(COUNT)
    ]
    text = HEAD + "".join(lines)
    queries = sm.loads(text)
    engine = sm.Engine(queries)
    batch = {"id": [1], "x": [1.0], "y": [2.0], "z": [3.0]}
    from skymesh.queries.expressions import parse

    def load() -> None:
        parse.cache_clear()
        sm.loads(text)

    def first_push() -> None:
        sm.Engine(queries).push("s", batch)

    engine.push("s", {name: np.repeat(column, 10) for name, column in batch.items()})
    assert engine.top("q7").column("score")[0].as_py() == 7 * 1.0 + np.log(2.0 + 7) - 3.0 / 8
    rows = [
        {"step": "YAML to models, checked", "seconds": median_seconds(load, rounds=5)},
        {"step": "engine, programs, first push", "seconds": median_seconds(first_push, rounds=3)},
    ]
    report("load", f"load: {COUNT:,} queries with an expression each", rows, bytes=sys.getsizeof(text))


if __name__ == "__main__":
    main()
