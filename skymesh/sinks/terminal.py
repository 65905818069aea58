"""Results as aligned rows on the terminal."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

import pyarrow as pa

from .files import Sink

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WIDTHS = {"query": 18, "group": 8, "at": 23, "op": 6, "id": 10, "score": 14, "rank": 5, "seq": 9, "time": 23}
_RIGHT = {"at", "id", "score", "rank", "seq"}


class TerminalTable(Sink):
    """One line a change, under a heading. Columns that no result of the query set fills may be left out.

    `in_time` are the queries with time windows: their `at` is shown as a time, in files it is microseconds.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        *,
        leave_out: frozenset[str] = frozenset(),
        in_time: frozenset[str] = frozenset(),
    ) -> None:
        self._stream = stream or sys.stdout
        self._leave_out = leave_out
        self._in_time = in_time
        self._columns: list[str] = []

    def write(self, changes: pa.Table) -> None:
        if not changes.num_rows:
            return
        if not self._columns:
            self._columns = [name for name in changes.column_names if name not in self._leave_out]
            self._line({name: name for name in self._columns})
        for row in changes.to_pylist():
            if row["query"] in self._in_time and row["at"] is not None:
                row["at"] = _EPOCH + timedelta(microseconds=row["at"])
            self._line(row)

    def _line(self, row: dict[str, Any]) -> None:
        cells = []
        for name in self._columns:
            text, width = _shown(row.get(name)), _WIDTHS.get(name, 12)
            cells.append(text.rjust(width) if name in _RIGHT else text.ljust(width))
        self._stream.write(" ".join(cells).rstrip() + "\n")

    def close(self) -> None:
        self._stream.flush()


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")[:23]
    return str(value)
