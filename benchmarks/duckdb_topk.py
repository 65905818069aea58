"""Recomputing every ranking each cycle in DuckDB: the window is a table, a query an ORDER BY with a LIMIT.

Queries cost alike, so a few of them are run, and the time of one is taken times their number.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.mouratidis_data import Batch, Setting, coefficients, joined
from benchmarks.numpy_topk import Rankings


class DuckRecompute:
    """The rankings of the first few queries, with the scores in the written order."""

    def __init__(self, setting: Setting, *, sampled: int) -> None:
        import duckdb

        self._setting = setting
        self._connection = duckdb.connect(config={"threads": 1})
        weights = coefficients(setting)[:sampled]
        self._queries = [
            f"select id, {_expression(setting, row)} as score from rows order by score desc, id desc limit {setting.k}"
            for row in weights.tolist()
        ]
        self._found: list[dict[str, np.ndarray]] = []

    def fill(self, batches: list[Batch]) -> None:
        self._connection.register("batch", joined(batches))
        self._connection.execute("create table rows as select * from batch")
        self._drop_expired()

    def seconds_a_cycle(self, batches: Iterator[Batch]) -> float:
        """The median time of a cycle, if all queries of the setting were run."""
        taken = []
        for batch in batches:
            began = time.perf_counter()
            self._connection.register("batch", batch)
            self._connection.execute("insert into rows select * from batch")
            self._drop_expired()
            stored = time.perf_counter()
            self._found = [self._connection.execute(query).fetchnumpy() for query in self._queries]
            asked = time.perf_counter() - stored
            taken.append(stored - began + asked * self._setting.queries / len(self._queries))
        return float(np.median(taken))

    def _drop_expired(self) -> None:
        self._connection.execute(f"delete from rows where id <= (select max(id) from rows) - {self._setting.window}")

    def rankings(self) -> Rankings:
        return np.stack([found["id"] for found in self._found]), np.stack([found["score"] for found in self._found])


def _expression(setting: Setting, weights: list[float]) -> str:
    """Constants are cast: DuckDB reads decimals, which round otherwise."""
    pairs = [(f"{weight!r}::double", name) for weight, name in zip(weights, setting.attributes, strict=True)]
    if setting.score == "product":
        return " * ".join(f"({weight} + {name})" for weight, name in pairs)
    return " + ".join(
        f"{weight} * {name if setting.score == 'linear' else f'({name} * {name})'}" for weight, name in pairs
    )
