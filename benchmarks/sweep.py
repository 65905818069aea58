"""Cost and space over the grid paper's ranges, one axis varied at a time: `python -m benchmarks.sweep`.

The whole sweep takes the better part of an hour; with `--tenth`, a tenth of the paper's windows and arrivals, ten
minutes. Each side runs in a process of its own, forked when all kernels are loaded, so that its memory is its own; the
rankings that the processes end with are compared. What `python -m benchmarks.plots` draws is written to
out/mouratidis-sweep.json.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import hashlib
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.harness import OUT, machine
from benchmarks.mouratidis_data import Data, Setting, cycles, fill
from benchmarks.sides import NUMPY_GROUPED, NUMPY_PLAIN, Side, side

FILE = OUT / "mouratidis-sweep.json"
BASE = Setting()
GRID_SIDES = ("tma", "sma")  # the others have no grid: of these one measurement stands for all grids
CYCLES = 15
WARM_CYCLES = 3


@dataclass(frozen=True, slots=True)
class Axis:
    name: str
    field: str
    values: tuple[int, ...]
    data: tuple[Data, ...] = ("ind",)

    def settings(self, base: Setting, data: Data) -> Iterator[tuple[int, Setting]]:
        scale = BASE.window // base.window if self.field in ("window", "arrivals") else 1
        for value in (value // scale for value in self.values):
            setting = replace(base, data=data, **{self.field: value})
            # As in the paper, a hundredth of the window arrives at a time when its length varies.
            yield value, replace(setting, arrivals=value // 100) if self.field == "window" else setting


AXES = (
    Axis("d", "dimensions", (2, 3, 4, 5, 6), ("ind", "ant")),
    Axis("N", "window", (1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000)),
    Axis("r", "arrivals", (1_000, 5_000, 10_000, 50_000, 100_000)),
    Axis("Q", "queries", (100, 500, 1_000, 2_000, 5_000)),
    Axis("k", "k", (1, 5, 10, 20, 50, 100), ("ind", "ant")),
    Axis("intervals", "intervals", (5, 7, 9, 11, 12, 13, 15)),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=f"Writes {FILE}.")
    parser.add_argument("--algorithms", default="tsl,tma,sma", help="comma-separated")
    parser.add_argument("--axes", default=",".join(axis.name for axis in AXES), help="comma-separated")
    parser.add_argument("--tenth", action="store_true", help="windows and arrivals a tenth of the paper's")
    asked = parser.parse_args()
    base = replace(BASE, window=BASE.window // 10, arrivals=BASE.arrivals // 10) if asked.tenth else BASE
    names = [*asked.algorithms.split(","), NUMPY_PLAIN, NUMPY_GROUPED]
    for name in names:
        _measure(name, replace(BASE, window=2_000, arrivals=200, queries=20))  # loads the kernels that are forked
    rows = []
    for axis in AXES:
        if axis.name in asked.axes.split(","):
            rows += _swept(axis, base, names)
    OUT.mkdir(exist_ok=True)
    FILE.write_text(
        json.dumps({"base": base.as_dict(), "cycles": CYCLES, "rows": rows, "machine": machine()}, indent=2)
    )
    print(FILE)


def _swept(axis: Axis, base: Setting, names: list[str]) -> list[dict[str, Any]]:
    rows = []
    for data in axis.data:
        for value, setting in axis.settings(base, data):
            answers = {}
            for name in names:
                began = time.perf_counter()
                if axis.field == "intervals" and name not in GRID_SIDES:
                    found = dict(_apart_cached(name, replace(setting, intervals=None)))
                else:
                    found = _apart(name, setting)
                answers[name] = found.pop("answer")
                rows.append({"axis": axis.name, "value": value, "data": data, "who": name, **found})
                took = time.perf_counter() - began
                told = f"{found['ms']:8.3g} ms a cycle, {found['megabytes']:6.1f} MB, took {took:.1f} s"
                print(f"{axis.name} = {value:<7,} {data} {name:<14} {told}", file=sys.stderr)
            assert len(set(answers.values())) <= 1, f"{axis.name} = {value}: {answers} are not all alike"
    return rows


def _apart(name: str, setting: Setting) -> dict[str, Any]:
    """Measure a side in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send_measured, args=(theirs, name, setting))
    process.start()
    theirs.close()
    try:
        found: dict[str, Any] = ours.recv()
    except EOFError:
        raise RuntimeError(f"{name} failed at {setting.described()}") from None
    finally:
        process.join()
    return found


_apart_cached = functools.cache(_apart)


def _send_measured(connection: Connection, name: str, setting: Setting) -> None:
    connection.send(_measure(name, setting))


def _measure(name: str, setting: Setting) -> dict[str, Any]:
    """Cost of a cycle and space; a query's space is what the side takes beyond the same side with one query."""
    lone_bytes = _grown(functools.partial(_ran, name, replace(setting, queries=1), cycle_count=WARM_CYCLES))[1]
    (one, seconds), all_bytes = _grown(functools.partial(_ran, name, setting, cycle_count=CYCLES))
    seq, score = one.rankings()
    return {
        "ms": statistics.median(seconds) * 1e3,
        "objects_per_s": setting.arrivals / statistics.median(seconds),
        "megabytes": all_bytes / 1e6,
        "bytes_per_query": max(0, all_bytes - lone_bytes) / max(1, setting.queries - 1),
        "kept": one.kept(),
        "answer": hashlib.sha256(seq.tobytes() + score.tobytes()).hexdigest(),
    }


def _ran(name: str, setting: Setting, *, cycle_count: int) -> tuple[Side, list[float]]:
    """A side with a full window after some cycles, and the seconds of each after the first few."""
    stream = cycles(setting)
    one = side(name, setting)
    one.fill(fill(setting, stream))
    seconds = []
    for batch in islice(stream, cycle_count + WARM_CYCLES):
        began = time.perf_counter()
        one.push(batch)
        seconds.append(time.perf_counter() - began)
    return one, seconds[WARM_CYCLES:]


def _grown(work: Any) -> tuple[Any, int]:
    """What work gives, and how many bytes of this process's own memory it holds."""
    before = _own_bytes()
    result = work()
    return result, _own_bytes() - before


def _own_bytes() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


if __name__ == "__main__":
    main()
