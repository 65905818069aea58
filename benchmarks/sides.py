"""Who takes part in a comparison: each side takes the same batches and tells its rankings, so that answers are checked.

skymesh takes columns in through `Engine.push` and gives its change log as an Arrow table; NumPy only keeps rankings.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import islice, tee
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

import skymesh as sm
from benchmarks.mouratidis_data import STREAM, Batch, Setting, coefficients, query_set
from benchmarks.numpy_topk import GroupedTopK, NumpyTopK, Polynomial, Rankings
from skymesh.algorithms import Algorithm
from skymesh.algorithms.keeping import EXACTLY_K, EXACTLY_K_UNTRIMMED

NUMPY_PLAIN, NUMPY_GROUPED, NUMPY_TOGETHER = "NumPy plain", "NumPy grouped", "NumPy grouped, searches together"
NUMPY = (NUMPY_PLAIN, NUMPY_GROUPED, NUMPY_TOGETHER)
# How many cycles of a side are timed before the next one has its turn, and how many it runs before them: the first ones
# find the caches full of another side's window and take up to four times as long.
TURN, WARM_UP = 20, 10

PAPER = {"tma": EXACTLY_K, "sma": EXACTLY_K_UNTRIMMED}


class Side(Protocol):
    def fill(self, batches: Sequence[Batch]) -> None:
        """Take in the rows that fill the window."""

    def push(self, batch: Batch) -> Any:
        """One cycle; this is what is timed."""

    def rankings(self) -> Rankings: ...

    def kept(self) -> float: ...


class PaperEngine(sm.Engine):
    """Nothing is kept beyond what the paper describes; TSL's views are the paper's anyway."""

    def _make_algorithm(self, kind: type[Algorithm], **options: Any) -> Algorithm:
        if kind.name in PAPER:
            options["keeping"] = PAPER[kind.name]
        return super()._make_algorithm(kind, **options)


class Skymesh:
    """An engine that serves one query set."""

    def __init__(self, queries: sm.QuerySet, *, engine: type[sm.Engine] = sm.Engine) -> None:
        self._engine = engine(queries)
        self._names = [query.name for query in queries.queries]
        self._k = max(query.k for query in queries.queries)

    def fill(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            self.push(batch)

    def push(self, batch: Batch) -> pa.Table:
        return self._engine.push(STREAM, batch)

    def rankings(self) -> Rankings:
        seq = np.full((len(self._names), self._k), -1, np.int64)
        score = np.full((len(self._names), self._k), -np.inf)
        for number, name in enumerate(self._names):
            top = self._engine.top(name)
            seq[number, : top.num_rows] = top.column("seq").to_numpy()
            score[number, : top.num_rows] = top.column("score").to_numpy()
        return seq, score

    def kept(self) -> float:
        """Rows that a query holds, on average."""
        return statistics.fmean(query["kept"] for query in self._engine.stats()["queries"].values())

    def searches(self) -> int:
        """Searches from scratch so far, of all queries."""
        return sum(query["searches"] for query in self._engine.stats()["queries"].values())


def skymesh_side(algorithm: str, setting: Setting, *, paper: bool = False) -> Skymesh:
    return Skymesh(query_set(setting, algorithm, when_full=paper), engine=PaperEngine if paper else sm.Engine)


def numpy_side(name: str, setting: Setting) -> NumpyTopK:
    scoring = Polynomial(setting.score, coefficients(setting))
    if name == NUMPY_PLAIN:
        return NumpyTopK(scoring, k=setting.k, window=setting.window)
    together = name == NUMPY_TOGETHER
    return GroupedTopK(scoring, k=setting.k, window=setting.window, searches_together=together)


def side(name: str, setting: Setting) -> Side:
    return numpy_side(name, setting) if name in NUMPY else skymesh_side(name, setting)


# -- running sides against each other --------------------------------------------------------------------------


def run_checked(sides: dict[str, Any], stream: Iterator[Batch], *, cycles: int) -> None:
    """Some cycles that are not timed: every side has to give the same rankings after each."""
    for _ in range(cycles):
        batch = next(stream)
        for one in sides.values():
            one.push(batch)
        agree(sides)


def agree(sides: dict[str, Any]) -> None:
    """Same rows in the same order with the same bits as the first side has."""
    (first, expected), *others = [(name, one.rankings()) for name, one in sides.items()]
    for name, found in others:
        assert np.array_equal(found[0], expected[0]), f"{name} ranks other rows than {first}"
        assert np.array_equal(found[1], expected[1]), f"{name} has other scores than {first}"


def timed_cycles(
    sides: dict[str, Any], stream: Iterator[Batch], *, cycles: int, turn: int = TURN, warm_up: int = WARM_UP
) -> dict[str, list[float]]:
    """The seconds of each cycle and side. All take the same batches, in turns, another one first each time."""
    copies = tee(stream, len(sides))
    runs = {name: (sides[name], copy) for name, copy in zip(sides, copies, strict=True)}
    seconds = timed_apart(runs, cycles=cycles, turn=turn, warm_up=warm_up)
    agree(sides)
    return seconds


def timed_apart(
    runs: dict[str, tuple[Any, Iterator[Batch]]], *, cycles: int, turn: int = TURN, warm_up: int = WARM_UP
) -> dict[str, list[float]]:
    """The same for sides that each have a stream of their own. A turn begins with some cycles that are not timed."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for number, start in enumerate(range(0, cycles, turn)):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            one, stream = runs[name]
            found = []
            for batch in list(islice(stream, warm_up + min(turn, cycles - start))):
                began = time.perf_counter()
                one.push(batch)
                found.append(time.perf_counter() - began)
            seconds[name] += found[warm_up:]
    return seconds
