"""Two workloads beside sums and products: nearest neighbours with a result after every object, and a score that no
corner of a box bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import skymesh as sm
from benchmarks.mouratidis_data import STREAM, Batch, Floats, Setting, cycles, fill
from benchmarks.numpy_nearest import NumpyNearest
from benchmarks.numpy_topk import Ints, NumpyTopK, Rankings
from benchmarks.sides import Skymesh

NEAREST = Setting(dimensions=2, window=40_000, arrivals=1_000, queries=400, k=9)
NONMONOTONE = Setting(dimensions=2, window=100_000, arrivals=1_000, queries=200, k=20)
EVERY_PAIR = "NumPy, every pair"
_STREAM = sm.Stream(id="id", attributes={"x0": {"domain": [0, 1]}, "x1": {"domain": [0, 1]}})


@dataclass(frozen=True, slots=True)
class Compared:
    """Sides with full windows, the rest of their stream, and which of them are NumPy."""

    title: str
    sides: dict[str, Any]
    stream: Iterator[Batch]
    rows_a_batch: int
    numpy: Sequence[str]


# -- nearest neighbours ----------------------------------------------------------------------------------------


def nearest_sides(algorithms: Sequence[str], setting: Setting = NEAREST) -> Compared:
    centers = np.random.default_rng([setting.seed, 3]).random((setting.queries, 2))
    sides: dict[str, Any] = {name: Skymesh(nearest_queries(name, centers, setting)) for name in algorithms}
    sides["NumPy"] = NumpyNearest(centers, k=setting.k, window=setting.window)
    title = f"nearest neighbours, a result after every object: {_sizes(setting)}"
    return _filled(Compared(title, sides, cycles(setting), setting.arrivals, ["NumPy"]), setting)


def nearest_queries(algorithm: str, centers: Floats, setting: Setting) -> sm.QuerySet:
    queries = [
        sm.TopK(
            name=f"q{number}",
            stream=STREAM,
            k=setting.k,
            score={"distance": {"x0": x, "x1": y}},
            order="smallest",
            window={"count": setting.window},
            algorithm=algorithm,
        )
        for number, (x, y) in enumerate(centers.tolist())
    ]
    return sm.QuerySet(streams={STREAM: _STREAM}, queries=queries)


# -- a score that is not monotone ------------------------------------------------------------------------------


class Dips:
    """sqrt(|x - c|) - w * (y * (1 - y)), negated: it rises and falls again in both attributes. Every pair is scored."""

    def __init__(self, centers: Floats, weights: Floats) -> None:
        self.queries = len(centers)
        self._centers, self._weights = centers, weights

    def features(self, values: Floats) -> NDArray[np.floating]:
        x, y = values
        return np.stack((x, y * (1 - y)), axis=1)

    def lowered(self, floor: Floats, chosen: Ints | slice) -> Floats:
        return floor

    def rough(self, features: NDArray[np.floating], chosen: Ints | slice) -> Floats:
        found: Floats = features[:, :1] - self._centers[chosen]
        np.sqrt(np.abs(found, out=found), out=found)
        return np.subtract(features[:, 1:] * self._weights[chosen], found, out=found)

    def exact(self, values: Floats, query: Ints | int) -> Floats:
        x, y = values
        found: Floats = self._weights[query] * (y * (1 - y)) - np.sqrt(np.abs(x - self._centers[query]))
        return found


class SmallestTopK(NumpyTopK):
    """Ranks by scores that were negated, and tells the scores."""

    def rankings(self) -> Rankings:
        seq, score = super().rankings()
        return seq, -score


def nonmonotone_sides(algorithms: Sequence[str], setting: Setting = NONMONOTONE) -> Compared:
    random = np.random.default_rng([setting.seed, 4])
    centers, weights = random.random(setting.queries), random.uniform(0.5, 2, setting.queries)
    sides: dict[str, Any] = {name: Skymesh(nonmonotone_queries(name, centers, weights, setting)) for name in algorithms}
    sides[EVERY_PAIR] = SmallestTopK(Dips(centers, weights), k=setting.k, window=setting.window, searches_together=True)
    title = f"smallest sqrt(abs(x - c)) - w * (y * (1 - y)): {_sizes(setting)}"
    return _filled(Compared(title, sides, cycles(setting), setting.arrivals, [EVERY_PAIR]), setting)


def nonmonotone_queries(algorithm: str, centers: Floats, weights: Floats, setting: Setting) -> sm.QuerySet:
    queries = [
        sm.TopK(
            name=f"q{number}",
            stream=STREAM,
            k=setting.k,
            score=f"sqrt(abs(x0 - {center!r})) - {weight!r} * (x1 * (1 - x1))",
            order="smallest",
            window={"count": setting.window, "slide": setting.arrivals},
            algorithm=algorithm,
        )
        for number, (center, weight) in enumerate(zip(centers.tolist(), weights.tolist(), strict=True))
    ]
    return sm.QuerySet(streams={STREAM: _STREAM}, queries=queries)


def _filled(compared: Compared, setting: Setting) -> Compared:
    window = fill(setting, compared.stream)
    for side in compared.sides.values():
        side.fill(window)
    return compared


def _sizes(setting: Setting) -> str:
    return (
        f"{setting.queries:,} queries, the last {setting.window:,} rows, k = {setting.k}, "
        f"batches of {setting.arrivals:,}"
    )
