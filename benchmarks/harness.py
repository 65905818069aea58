"""What all benchmarks share: timing, a table on stdout, JSON in out/.

Both sides of a comparison run in one process, one after the other in turns, after a warm-up. The figure is the median
of several rounds; machines differ and are noisy, so what is compared across machines is the ratio.
"""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUT = Path("out")
reported: list[dict[str, Any]] = []  # what this process has reported so far, for `--json`


def median_seconds(work: Callable[[], object], *, rounds: int) -> float:
    """The median time of a piece of work. The caller has warmed it up."""
    return statistics.median(_timed(work) for _ in range(rounds))


def interleaved_seconds(works: dict[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """The median times of several pieces of work, taken in turns, so that a noisy moment hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(_timed(work))
    return {name: statistics.median(found) for name, found in times.items()}


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def report(name: str, title: str, rows: list[dict[str, Any]], **settings: Any) -> None:
    """Print a table, write out/NAME.json, and remember it."""
    columns = list(rows[0])
    cells = [[_shown(row[column]) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    print(f"\n{title}")
    for line in [columns, *cells]:
        print(
            "  "
            + "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
        )
    OUT.mkdir(exist_ok=True)
    record = {"name": name, "title": title, "settings": settings, "rows": rows, "machine": machine()}
    (OUT / f"{name}.json").write_text(json.dumps(record, indent=2))
    reported.append(record)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def machine() -> dict[str, str]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processor": _processor(),
        "commit": commit.stdout.strip() or "none",
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor()
