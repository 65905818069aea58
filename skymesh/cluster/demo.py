"""The demonstration: generated streams through an embedded engine, with a live board, for some seconds."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.live import Live

from ..actors import Engine
from ..errors import QueryError
from ..ingest.flights import flights_table
from ..ingest.generators import STREAMS, generate, generated_table
from ..queries import QuerySet
from ..sinks.files import json_row
from .board import Board

FRAMES_PER_S = 10
_PICTURE_WIDTH = 146
ROWS_OF_FILE = {"trades": 200_000, "vehicles": 50_000, "auctions": 5_000, "bids": 50_000}


def demo_file(file: Path) -> Path:
    """The query file that was named. The demo's own lies in the checkout, and is found from any directory."""
    beside = Path(__file__).parents[2] / file
    if file.exists() or not beside.exists():
        return file
    return beside


def run_demo(queries: QuerySet, *, seconds: float, seed: int, console: Console, svg: Path | None = None) -> Board:
    """Play generated streams at ten times their own speed, and show the rankings as they change."""
    missing = [name for name in queries.streams if name not in STREAMS]
    if missing:
        raise QueryError(f"stream {missing[0]!r} cannot be generated; there are {', '.join(STREAMS)}")
    shown = [query.name for query in queries.queries[:6]]
    board = Board(Engine(queries), queries, shown)
    frames = _frames(board, seconds, seed)
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
            for _ in frames:
                live.update(board.render(), refresh=True)
    else:
        for number, _ in enumerate(frames):
            if number % (2 * FRAMES_PER_S) == 0:
                console.print(board.pace.line())
        console.print(board.render())
    if svg is not None:
        _picture(board, svg)
    return board


def _frames(board: Board, seconds: float, seed: int) -> Iterator[None]:
    """Push what is due for each frame; ten times faster than the streams' own time."""
    sources = {
        name: generate(name, rows_per_batch=max(1, round(STREAMS[name].rows_per_s)), seed=seed)
        for name in board.queries.streams
    }
    began = time.monotonic()
    for number in range(1, round(seconds * FRAMES_PER_S) + 1):
        for name, source in sources.items():
            batch = next(source)
            board.take(board.engine.push(name, batch))
            board.pace.rows += batch.num_rows
        _note_time(board)
        board.pace.seconds = time.monotonic() - began
        yield
        ahead = number / FRAMES_PER_S - (time.monotonic() - began)
        if ahead > 0:
            time.sleep(ahead)  # the pace of the show, not a way to wait for anything


def _note_time(board: Board) -> None:
    marks = [part["watermark"] for part in board.engine.stats()["streams"].values() if part["watermark"] is not None]
    board.pace.stream_time_us = max(marks, default=None)


def _picture(board: Board, path: Path) -> None:
    console = Console(record=True, width=_PICTURE_WIDTH, file=io.StringIO())
    console.print(board.render())
    # Rich's frame loads a font from the web; a picture in the documentation loads nothing.
    frame = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    console.save_svg(str(path), title="skymesh demo", code_format=frame)


def write_files(directory: Path, *, seed: int, flights: bool) -> list[Path]:
    """Generated streams as files, each in another format, and the flights if asked for."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = {name: directory / f"{name}.{ending}" for name, ending in _ENDINGS.items()}
    tables = {name: generated_table(name, ROWS_OF_FILE[name], seed=seed) for name in paths}
    pa.parquet.write_table(tables["trades"], paths["trades"])
    pa.csv.write_csv(tables["vehicles"], paths["vehicles"])
    with paths["auctions"].open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(json_row(row)) + "\n" for row in tables["auctions"].to_pylist())
    with pa.OSFile(str(paths["bids"]), "wb") as sink, pa.ipc.new_file(sink, tables["bids"].schema) as writer:
        writer.write_table(tables["bids"], max_chunksize=10_000)
    written = list(paths.values())
    if flights:
        written.append(directory / "flights.parquet")
        pa.parquet.write_table(flights_table(), written[-1])
    return written


_ENDINGS = {"trades": "parquet", "vehicles": "csv", "auctions": "jsonl", "bids": "arrow"}
