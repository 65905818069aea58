"""A live board: the rankings of some queries, what just changed in them, and how fast it goes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from rich import box
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..actors import Engine
from ..queries import AnyQuery, QuerySet, Threshold

_SHOWN_ROWS = 8
_NEWS = 6
_FRESH_S = 1.5  # of board time, how long an entry is marked as new


@dataclass(slots=True)
class Pace:
    """How far a run has come, as the board's first line says it."""

    rows: int = 0
    changes: int = 0
    seconds: float = 0.0
    stream_time_us: int | None = None

    def line(self) -> str:
        rate = self.rows / self.seconds if self.seconds else 0.0
        at = ""
        if self.stream_time_us is not None:
            at = f"   stream time {datetime.fromtimestamp(self.stream_time_us / 1e6, UTC):%Y-%m-%d %H:%M:%S}"
        return f"{self.rows:,} rows   {rate:,.0f} rows/s   {self.changes:,} changes{at}"


@dataclass
class Board:
    """Renders an engine. `shown` are the queries that get a panel."""

    engine: Engine
    queries: QuerySet
    shown: list[str]
    pace: Pace = field(default_factory=Pace)
    _news: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_NEWS))
    _entered: dict[tuple[str, int], float] = field(default_factory=dict)

    def take(self, changes: pa.Table) -> None:
        """Note what changed, for the marks and the last lines."""
        self.pace.changes += changes.num_rows
        for row in changes.slice(max(0, changes.num_rows - 200)).to_pylist():
            if row["query"] in self.shown and row["op"] in ("enter", "leave"):
                self._news.append(row)
                if row["op"] == "enter":
                    self._entered[row["query"], row["seq"]] = self.pace.seconds
        self._entered = {k: s for k, s in self._entered.items() if self.pace.seconds - s < _FRESH_S}

    def render(self) -> RenderableType:
        panels = [self._panel(query) for query in self.queries.queries if query.name in self.shown]
        head = Text.assemble(("skymesh ", "bold cyan"), self.pace.line())
        return Group(
            head, Columns(panels, equal=True, expand=False), Panel(self._last(), title="changes", box=box.ROUNDED)
        )

    def _panel(self, query: AnyQuery) -> RenderableType:
        rows = self.engine.top(query.name).to_pylist()
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        grouped = query.group_by is not None
        for name in ([str(query.group_by)] if grouped else []) + ["#", "id", "score", *query.carry]:
            table.add_column(name, justify="right" if name in ("#", "id", "score") else "left")
        best = [row for row in rows if not grouped or row["rank"] == 1][:_SHOWN_ROWS]
        for row in best:
            fresh = (query.name, row["seq"]) in self._entered
            cells = [str(row["group"])] if grouped else []
            cells += [str(row["rank"]), str(row["id"]), f"{row['score']:,.6g}", *[_cell(row[c]) for c in query.carry]]
            table.add_row(*cells, style="bold green" if fresh else "")
        what = f"score > {query.above}" if isinstance(query, Threshold) else f"top {query.k}"
        return Panel(table, title=f"[bold]{query.name}[/]", subtitle=f"{what}, {query.window}", box=box.ROUNDED)

    def _last(self) -> RenderableType:
        lines = []
        for row in self._news:
            mark, style = ("+", "green") if row["op"] == "enter" else ("-", "red")
            where = f"{row['query']}/{row['group']}" if row["group"] else row["query"]
            text = f"{mark} {where:<24} rank {row['rank']:<3} id {row['id']:<10} score {row['score']:.6g}"
            lines.append(Text(text, style=style))
        return Group(*lines) if lines else Text("none yet", style="dim")


def _cell(value: Any) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
