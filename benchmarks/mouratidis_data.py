"""The streams and queries of the grid paper's experiments: what is varied, the data, the standing queries.

Data is independent (each attribute uniform) or anti-correlated as the skyline literature has it: points lie near the
plane through the middle of the unit box that is perpendicular to its diagonal, so who is good in one attribute is bad
in another. A *falling* stream scales its values down from 1 to 0.8 over its length: the newest rows are the worst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import skymesh as sm

Floats = NDArray[np.float64]
Batch = dict[str, NDArray[Any]]
Data = Literal["ind", "ant"]
Score = Literal["linear", "product", "quadratic"]

STREAM = "s"
FALLEN = 0.8  # what values are scaled by at the end of a falling stream
_PLANE_REACH = 0.25  # how far the plane of an anti-correlated point may lie from the middle, as the literature has it


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of the experiments; the defaults are the paper's."""

    dimensions: int = 4
    window: int = 1_000_000
    arrivals: int = 10_000
    queries: int = 1_000
    k: int = 20
    data: Data = "ind"
    score: Score = "linear"
    intervals: int | None = None
    falls_over: int = 0  # cycles after the window is full at which a falling stream has fallen; 0 for a steady one
    seed: int = 2006

    @property
    def attributes(self) -> list[str]:
        return [f"x{i}" for i in range(self.dimensions)]

    @property
    def fill_cycles(self) -> int:
        """How many cycles fill the window."""
        return -(-self.window // self.arrivals)

    def described(self) -> str:
        parts = {"d": self.dimensions, "N": self.window, "r": self.arrivals, "Q": self.queries, "k": self.k}
        sizes = ", ".join(f"{name} = {value:,}" for name, value in parts.items())
        return f"{self.data.upper()}, {self.score}, {sizes}{', falling' if self.falls_over else ''}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


# -- data ------------------------------------------------------------------------------------------------------


def cycles(setting: Setting) -> Iterator[Batch]:
    """The stream, a batch a cycle, without end; ids are row numbers."""
    random = np.random.default_rng([setting.seed, 1])
    length = setting.window + setting.falls_over * setting.arrivals
    first = 0
    while True:
        ids = np.arange(first, first + setting.arrivals)
        points = _points(random, setting)
        if setting.falls_over:
            points *= 1 - (1 - FALLEN) * ids / length
        yield {"id": ids, **dict(zip(setting.attributes, points, strict=True))}
        first += setting.arrivals


def fill(setting: Setting, stream: Iterator[Batch]) -> list[Batch]:
    """The batches that fill the window."""
    return list(islice(stream, setting.fill_cycles))


def joined(batches: list[Batch]) -> Batch:
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def _points(random: np.random.Generator, setting: Setting) -> Floats:
    """f8[d, r]"""
    if setting.data == "ind":
        return random.random((setting.dimensions, setting.arrivals))
    return anticorrelated(random, setting.dimensions, setting.arrivals)


def anticorrelated(random: np.random.Generator, dimensions: int, count: int) -> Floats:
    """Points near the middle plane: what one attribute gains, its neighbour loses. All lie in the box."""
    found: list[Floats] = []
    missing = count
    while missing > 0:
        tries = 2 * missing + 64
        # Twelve uniform numbers make the usual bell over a bounded range.
        middle = 0.5 + _PLANE_REACH * (random.random((12, tries)).mean(axis=0) * 2 - 1)
        reach = np.minimum(middle, 1 - middle)
        moved = random.uniform(-1, 1, (dimensions, tries)) * reach
        points = middle + moved - np.roll(moved, 1, axis=0)
        inside = ((points >= 0) & (points <= 1)).all(axis=0)
        found.append(points[:, inside][:, :missing])
        missing -= found[-1].shape[1]
    return np.ascontiguousarray(np.concatenate(found, axis=1))


# -- queries ---------------------------------------------------------------------------------------------------


def coefficients(setting: Setting) -> Floats:
    """f8[queries, d], each between 0 and 1; the first queries of a larger set are those of a smaller one."""
    return np.random.default_rng([setting.seed, 2]).random((setting.queries, setting.dimensions))


def query_set(setting: Setting, algorithm: str, *, when_full: bool = False) -> sm.QuerySet:
    """`when_full`: the first ranking is that of the first full window, as in the paper."""
    window = {"count": setting.window, "slide": setting.arrivals}
    if when_full:
        window["offset"] = setting.window
    queries = [
        sm.TopK(
            name=f"q{number}",
            stream=STREAM,
            k=setting.k,
            score={setting.score: dict(zip(setting.attributes, map(float, row), strict=True))},
            window=window,
            algorithm=algorithm,
        )
        for number, row in enumerate(coefficients(setting))
    ]
    return sm.QuerySet(streams={STREAM: _stream(setting)}, queries=queries)


def _stream(setting: Setting) -> sm.Stream:
    attribute: dict[str, Any] = {"domain": [0, 1]}
    if setting.intervals is not None:
        attribute["intervals"] = setting.intervals
    return sm.Stream(id="id", attributes=dict.fromkeys(setting.attributes, attribute))
