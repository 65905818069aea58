"""An embedded run: files in, results out, with progress on the way and a summary at the end."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..actors import Engine
from ..errors import QueryError
from ..ingest.files import read_file
from ..queries import QuerySet
from ..sinks import Sink

_LINE_EVERY_S = 2.0


@dataclass(slots=True)
class Summary:
    """What a run did. The fields are those of `--json`."""

    rows: int = 0
    batches: int = 0
    changes: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    rejects: dict[str, dict[str, int]] = field(default_factory=dict)
    unscored: dict[str, int] = field(default_factory=dict)
    out: str | None = None

    def as_dict(self) -> dict[str, Any]:
        rate = self.rows / self.seconds if self.seconds else 0.0
        return {
            "rows": self.rows,
            "rows_per_s": round(rate),
            "batches": self.batches,
            "changes": self.changes,
            "seconds": round(self.seconds, 3),
            "interrupted": self.interrupted,
            "rejects": self.rejects,
            "unscored": self.unscored,
            "out": self.out,
        }

    def lines(self) -> list[str]:
        told = self.as_dict()
        lines = [
            f"{self.rows:,} rows in {self.seconds:.1f} s ({told['rows_per_s']:,} rows/s), {self.changes:,} changes"
            + (f" -> {self.out}" if self.out else "")
        ]
        for stream, reasons in self.rejects.items():
            lines.append(f"rejected from {stream}: " + ", ".join(f"{n:,} {reason}" for reason, n in reasons.items()))
        for query, count in self.unscored.items():
            lines.append(f"without a finite score in {query}: {count:,} rows")
        if self.interrupted:
            lines.append("interrupted: what is written is complete up to the last batch; windows were left open")
        return lines


def run_files(queries: QuerySet, inputs: dict[str, Path], sink: Sink, *, rows_per_batch: int, quiet: bool) -> Summary:
    """Push files through an engine, in turn where there are several, and flush at their end."""
    for stream in inputs:
        if stream not in queries.streams:
            raise QueryError(
                f"--input {stream}=...: there is no stream {stream!r}; there are {', '.join(queries.streams)}"
            )
    engine = Engine(queries)
    summary = Summary()
    began = time.perf_counter()
    with _stop_on_interrupt() as stopped, _progress(quiet) as report:
        for stream, rows, progress in _in_turn(queries, inputs, rows_per_batch):
            changes = engine.push(stream, rows)
            _tell(sink, changes, summary)
            summary.batches += 1
            summary.rows = sum(part["rows"] for part in engine.stats()["streams"].values())
            report(summary, progress)
            if stopped():
                summary.interrupted = True
                break
        else:
            _tell(sink, engine.flush(), summary)
    summary.seconds = time.perf_counter() - began
    _count_rejects(engine, summary)
    return summary


def _tell(sink: Sink, changes: pa.Table, summary: Summary) -> None:
    sink.write(changes)
    summary.changes += changes.num_rows


def _count_rejects(engine: Engine, summary: Summary) -> None:
    stats = engine.stats()
    for stream, part in stats["streams"].items():
        reasons = {reason: count for reason, count in part["rejects"].items() if count}
        if reasons:
            summary.rejects[stream] = reasons
    summary.unscored = {name: part["unscored"] for name, part in stats["queries"].items() if part["unscored"]}


def _in_turn(
    queries: QuerySet, inputs: dict[str, Path], rows_per_batch: int
) -> Iterator[tuple[str, Any, float | None]]:
    """Batches of all inputs, one of each in turn; progress is that of all of them together."""
    readers = {stream: read_file(path, queries.streams[stream], rows_per_batch) for stream, path in inputs.items()}
    progress: dict[str, float | None] = dict.fromkeys(readers, 0.0)
    while readers:
        for stream in list(readers):
            chunk = next(readers[stream], None)
            if chunk is None:
                del readers[stream]
                progress[stream] = 1.0
                continue
            progress[stream] = chunk.progress
            known = [part for part in progress.values() if part is not None]
            yield stream, chunk.rows, sum(known) / len(progress) if len(known) == len(progress) else None


@contextmanager
def _stop_on_interrupt() -> Iterator[Any]:
    """Ctrl-C ends the run after the batch at hand; a second one at once."""
    asked: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(number, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _progress(quiet: bool) -> Iterator[Any]:
    """A bar on a terminal, a line every two seconds elsewhere; always on stderr."""
    console = Console(stderr=True)
    if quiet:
        yield lambda summary, progress: None
    elif console.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("starting", total=1.0)
            yield lambda summary, progress: bar.update(
                task, completed=progress or 0.0, description=f"{summary.rows:,} rows, {summary.changes:,} changes"
            )
    else:
        said = [time.monotonic()]

        def line(summary: Summary, progress: float | None) -> None:
            if time.monotonic() - said[0] >= _LINE_EVERY_S:
                said[0] = time.monotonic()
                share = "" if progress is None else f" ({progress:.0%})"
                print(f"{summary.rows:,} rows, {summary.changes:,} changes{share}", file=sys.stderr, flush=True)

        yield line
