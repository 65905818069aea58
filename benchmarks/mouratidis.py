"""The grid paper's experiments, and what others do with them: many rankings over one window of a million rows.

Parts, each with a table and JSON in out/ (`--part NAME`):

    default      cost of a cycle at the paper's default setting, for each kind of data and score
    falling      the same over a stream whose newest rows are the worst: buffers run dry
    growth       twice the queries, ten times the window, and a thousand cycles
    points       nearest neighbours with a result after every object
    nonmonotone  a score that no corner bounds, against scoring every pair
    table2       rows that a query holds when nothing is kept beyond the paper, beside the published figures
    searches     searches from scratch a cycle, as in the paper and as shipped

All sides run on one core and in turns, on the same batches; their answers are compared before and after they are timed.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.harness import report
from benchmarks.mouratidis_data import Batch, Data, Setting, cycles, fill
from benchmarks.other_scores import NONMONOTONE, nearest_sides, nonmonotone_sides
from benchmarks.sides import (
    NUMPY,
    NUMPY_GROUPED,
    NUMPY_PLAIN,
    NUMPY_TOGETHER,
    Side,
    run_checked,
    side,
    skymesh_side,
    timed_apart,
    timed_cycles,
)

Row = dict[str, Any]
Typical = Callable[[Sequence[float]], float]

DEFAULT = Setting()
CHECKED, TIMED = 3, 60
FALLING = 40
DUCK_QUERIES, DUCK_CYCLES = 25, 2
LONG_RUN = 1_000
PAPER_CYCLES = 100

# Average entries held a query: TSL and SMA, by data and k.
PUBLISHED: dict[Data, dict[int, tuple[float, float]]] = {
    "ind": {1: (3.3, 1.1), 5: (8.6, 5.9), 10: (17.1, 11.2), 20: (26.7, 21.6), 50: (63.0, 53.3), 100: (113.2, 104.6)},
    "ant": {1: (3.1, 1.1), 5: (8.4, 5.9), 10: (17.2, 11.5), 20: (26.9, 22.4), 50: (64.4, 54.4), 100: (113.6, 106.5)},
}


# -- cost at the default setting -------------------------------------------------------------------------------


def default(algorithms: Sequence[str]) -> None:
    settings = [DEFAULT, replace(DEFAULT, data="ant"), *(replace(DEFAULT, score=s) for s in ("product", "quadratic"))]
    for setting in settings:
        rows = _compared(setting, algorithms)
        if setting == DEFAULT:
            rows += _duckdb(setting)
        name = f"mouratidis-default-{setting.data}-{setting.score}"
        report(name, f"one cycle: {setting.described()}", rows, **setting.as_dict())


def falling(algorithms: Sequence[str]) -> None:
    """Searches come in bursts, so what counts is the whole run in one turn: the mean cycle, not the median one."""
    setting = replace(DEFAULT, falls_over=FALLING)
    stream, sides = _filled(setting, algorithms)
    seconds = timed_cycles(sides, stream, cycles=FALLING, turn=FALLING, warm_up=0)
    forms = NUMPY_PLAIN, NUMPY_GROUPED
    rows = _speeds(seconds, setting.arrivals, forms, NUMPY_TOGETHER, typical=statistics.fmean)
    report("mouratidis-falling", f"mean of all {FALLING} cycles: {setting.described()}", rows, **setting.as_dict())


def _compared(setting: Setting, algorithms: Sequence[str]) -> list[Row]:
    """All sides over the same stream."""
    stream, sides = _filled(setting, algorithms)
    run_checked(sides, stream, cycles=CHECKED)
    _progress(f"{TIMED} cycles")
    seconds = timed_cycles(sides, stream, cycles=TIMED)
    return _speeds(seconds, setting.arrivals, (NUMPY_PLAIN, NUMPY_GROUPED), NUMPY_TOGETHER)


def _filled(setting: Setting, algorithms: Sequence[str]) -> tuple[Iterator[Batch], dict[str, Side]]:
    """A stream whose window all sides have taken in."""
    stream = cycles(setting)
    window = fill(setting, stream)
    sides = {}
    for name in [*algorithms, *NUMPY]:
        _progress(f"{name}: filling the window")
        sides[name] = side(name, setting)
        sides[name].fill(window)
    return stream, sides


def _speeds(
    seconds: dict[str, list[float]],
    rows_a_cycle: int,
    forms: Sequence[str],
    beyond: str = "",
    *,
    typical: Typical = statistics.median,
) -> list[Row]:
    """A line for each side; `times NumPy` is against the better of its forms."""
    cost = {name: float(typical(found)) for name, found in seconds.items()}
    better = min(cost[form] for form in forms)
    lines = []
    for name, found in cost.items():
        line = {
            "who": name,
            "ms a cycle": found * 1e3,
            "p99, ms": float(np.quantile(seconds[name], 0.99)) * 1e3,
            "objects/s": rows_a_cycle / found,
            "times NumPy": better / found,
        }
        if beyond:
            line["times NumPy, searches together"] = cost[beyond] / found
        lines.append(line)
    return lines


def _duckdb(setting: Setting) -> list[Row]:
    try:
        from benchmarks.duckdb_topk import DuckRecompute

        duck = DuckRecompute(setting, sampled=DUCK_QUERIES)
    except ImportError:
        _progress("DuckDB is not installed; leaving it out (make bench installs it)")
        return []
    stream = cycles(setting)
    window = fill(setting, stream)
    duck.fill(window)
    batches = list(islice(stream, DUCK_CYCLES))
    seconds = duck.seconds_a_cycle(batches)
    _check_duckdb(setting, window + batches, duck.rankings())
    unknown = dict.fromkeys(("p99, ms", "times NumPy", "times NumPy, searches together"), "")
    who = f"DuckDB, from {DUCK_QUERIES} of the queries"
    return [{"who": who, "ms a cycle": seconds * 1e3, "objects/s": setting.arrivals / seconds, **unknown}]


def _check_duckdb(setting: Setting, batches: list[Any], found: tuple[Any, Any]) -> None:
    peer = side(NUMPY_GROUPED, setting)
    peer.fill(batches)
    for theirs, ours in zip(found, peer.rankings(), strict=True):
        assert np.array_equal(theirs, ours[: len(theirs)]), "DuckDB ranks otherwise"


def _warm(algorithms: Sequence[str]) -> None:
    """Load every kernel, those of searches too; nothing of that is timed."""
    setting = replace(DEFAULT, window=2_000, arrivals=200, queries=50, falls_over=20)
    stream = cycles(setting)
    sides = {name: side(name, setting) for name in algorithms}
    run_checked(sides, stream, cycles=setting.fill_cycles + setting.falls_over)


# -- growth ----------------------------------------------------------------------------------------------------


def growth(algorithms: Sequence[str]) -> None:
    variants = {
        "queries": (DEFAULT, replace(DEFAULT, queries=2 * DEFAULT.queries)),
        "window": (replace(DEFAULT, window=DEFAULT.window // 10), DEFAULT),
    }
    rows = []
    for what, (smaller, larger) in variants.items():
        for algorithm in algorithms:
            _progress(f"{algorithm}: growth with {what}")
            runs = {"smaller": _running(algorithm, smaller), "larger": _running(algorithm, larger)}
            timed_apart(runs, cycles=CHECKED)
            median = {name: statistics.median(found) * 1e3 for name, found in timed_apart(runs, cycles=TIMED).items()}
            sizes = {f"{name}, ms": found for name, found in median.items()}
            row = {"algorithm": algorithm, "grows": f"{what} {_size(what, smaller):,} to {_size(what, larger):,}"}
            rows.append({**row, **sizes, "times": median["larger"] / median["smaller"]})
    report("mouratidis-growth", f"growth of a cycle's cost from {DEFAULT.described()}", rows, **DEFAULT.as_dict())
    _long_run(algorithms)


def _size(what: str, setting: Setting) -> int:
    return int(setting.as_dict()[what])


def _long_run(algorithms: Sequence[str]) -> None:
    runs = {algorithm: _running(algorithm, DEFAULT) for algorithm in algorithms}
    timed_apart(runs, cycles=CHECKED)
    rows = []
    for algorithm, seconds in timed_apart(runs, cycles=LONG_RUN).items():
        median, p99 = np.quantile(seconds, (0.5, 0.99)) * 1e3
        worst = max(seconds) * 1e3
        row = {"algorithm": algorithm, "median, ms": median, "p99, ms": p99, "worst, ms": worst}
        rows.append({**row, "p99 / median": p99 / median})
    report("mouratidis-cycles", f"{LONG_RUN:,} cycles: {DEFAULT.described()}", rows, **DEFAULT.as_dict())


def _running(algorithm: str, setting: Setting) -> tuple[Any, Any]:
    """An engine whose window is full, and the rest of its stream."""
    stream = cycles(setting)
    engine = skymesh_side(algorithm, setting)
    engine.fill(fill(setting, stream))
    return engine, stream


# -- other scores ----------------------------------------------------------------------------------------------


def points(algorithms: Sequence[str]) -> None:
    """Without TSL, which no one would use for that: a search has no corner to start from."""
    nearest = nearest_sides([name for name in algorithms if name != "tsl"])
    run_checked(nearest.sides, nearest.stream, cycles=10)
    seconds = timed_cycles(nearest.sides, nearest.stream, cycles=200)
    report("mouratidis-points", nearest.title, _speeds(seconds, nearest.rows_a_batch, nearest.numpy))


def nonmonotone(algorithms: Sequence[str]) -> None:
    for arrivals in (1_000, 10_000):
        compared = nonmonotone_sides(
            [name for name in algorithms if name != "tsl"], replace(NONMONOTONE, arrivals=arrivals)
        )
        run_checked(compared.sides, compared.stream, cycles=CHECKED)
        seconds = timed_cycles(compared.sides, compared.stream, cycles=TIMED)
        rows = _speeds(seconds, compared.rows_a_batch, compared.numpy)
        report(f"mouratidis-nonmonotone-{arrivals}", compared.title, rows)


# -- what the paper counts -------------------------------------------------------------------------------------


def table2(algorithms: Sequence[str]) -> None:
    """Rows held are counted after every cycle."""
    rows = []
    for data, by_k in PUBLISHED.items():
        for k, (tsl, sma) in by_k.items():
            setting = replace(DEFAULT, data=data, k=k)
            for algorithm, published in (("tsl", tsl), ("sma", sma)):
                if algorithm not in algorithms:
                    continue
                _progress(f"{algorithm}: {setting.described()}")
                engine = skymesh_side(algorithm, setting, paper=True)
                stream = cycles(setting)
                engine.fill(fill(setting, stream))
                held = statistics.fmean(_kept_over(engine, stream, PAPER_CYCLES))
                row = {"data": data.upper(), "k": k, "algorithm": algorithm}
                rows.append({**row, "published": published, "held": held, "deviation, %": 100 * (held / published - 1)})
    title = f"rows held a query, nothing kept beyond the paper: {DEFAULT.described()}"
    report("mouratidis-table2", title, rows, **DEFAULT.as_dict())


def _kept_over(engine: Any, stream: Any, count: int) -> list[float]:
    kept = []
    for batch in islice(stream, count):
        engine.push(batch)
        kept.append(engine.kept())
    return kept


def searches(algorithms: Sequence[str]) -> None:
    modes = [("tma", True), ("sma", True), ("tma", False), ("sma", False)]
    rows = []
    for data in ("ind", "ant"):
        setting = replace(DEFAULT, data=data)
        for algorithm, paper in modes:
            if algorithm not in algorithms:
                continue
            engine = skymesh_side(algorithm, setting, paper=paper)
            stream = cycles(setting)
            engine.fill(fill(setting, stream))
            before = engine.searches()
            for batch in islice(stream, PAPER_CYCLES):
                engine.push(batch)
            found = (engine.searches() - before) / PAPER_CYCLES
            row = {"data": data.upper(), "algorithm": algorithm, "mode": "paper" if paper else "shipped"}
            rows.append({**row, "searches a cycle": found, "rows held a query": engine.kept()})
    report("mouratidis-searches", f"searches from scratch: {DEFAULT.described()}", rows, **DEFAULT.as_dict())


PARTS: dict[str, Callable[[Sequence[str]], None]] = {
    part.__name__: part for part in (default, falling, growth, points, nonmonotone, table2, searches)
}


def main(parts: Sequence[str] = tuple(PARTS), *, algorithms: Sequence[str] = ("tsl", "tma", "sma")) -> None:
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        sys.exit(f"mouratidis has no part {unknown[0]!r}; it has {', '.join(PARTS)}")
    _warm(algorithms)
    for part in parts:
        PARTS[part](algorithms)


def _progress(told: str) -> None:
    print(f"  {told}", file=sys.stderr)
