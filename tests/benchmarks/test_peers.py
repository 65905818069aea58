"""The peers of the benchmarks are honest: they rank as skymesh does, ties and falling streams included."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from benchmarks import other_scores
from benchmarks.mouratidis_data import Setting, anticorrelated, cycles, fill
from benchmarks.sides import NUMPY, agree, run_checked, side

SMALL = {"dimensions": 3, "window": 1_000, "arrivals": 100, "queries": 12, "k": 5}


def coarse(stream, levels):
    """The same stream with few distinct values, so that ties are common."""
    for batch in stream:
        yield {name: column if name == "id" else np.round(column * levels) / levels for name, column in batch.items()}


@pytest.mark.parametrize("score", ["linear", "product", "quadratic"])
@pytest.mark.parametrize(("levels", "falls_over"), [(2, 0), (8, 0), (1_000, 20)])
def test_numpy_ranks_as_recomputation_does(score, levels, falls_over):
    setting = Setting(**SMALL, score=score, falls_over=falls_over)
    stream = coarse(cycles(setting), levels)
    window = list(islice(stream, setting.fill_cycles))
    sides = {name: side(name, setting) for name in ("scan", *NUMPY)}
    for one in sides.values():
        one.fill(window)
    agree(sides)
    run_checked(sides, stream, cycles=20)


def test_numpy_finds_the_nearest_after_every_object():
    setting = Setting(**{**SMALL, "dimensions": 2})
    compared = other_scores.nearest_sides(["scan"], setting)
    stream = coarse(compared.stream, 20)
    shown = {}
    for _ in range(5):
        batch = next(stream)
        changes = compared.sides["scan"].push(batch)
        points = compared.sides["NumPy"].push(batch)
        assert moved(changes) <= {(at, query) for at, query, _ in points}
        shown |= {query: ranking for _, query, ranking in points}
        agree(compared.sides)
    assert shown


def moved(changes):
    """The points and queries at which a row came in or went out."""
    names = changes.column("query").to_pylist()
    return {(at, int(name[1:])) for at, name in zip(changes.column("at").to_pylist(), names, strict=True)}


def test_numpy_scores_every_pair_of_a_score_that_is_not_monotone():
    compared = other_scores.nonmonotone_sides(["scan"], Setting(**{**SMALL, "dimensions": 2}))
    run_checked(compared.sides, coarse(compared.stream, 20), cycles=10)


def test_anticorrelated_points_lie_near_the_middle_plane():
    points = anticorrelated(np.random.default_rng(1), 4, 5_000)
    assert points.shape == (4, 5_000)
    assert points.min() >= 0
    assert points.max() <= 1
    assert np.abs(points.sum(axis=0) / 4 - 0.5).max() <= 0.25
    assert (np.corrcoef(points)[np.triu_indices(4, 1)] < 0.05).all()


def test_the_same_setting_gives_the_same_stream():
    setting = Setting(**SMALL, data="ant")
    first, second = (fill(setting, cycles(setting)) for _ in range(2))
    assert all((a["x1"] == b["x1"]).all() for a, b in zip(first, second, strict=True))
