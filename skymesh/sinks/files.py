"""Results as files: JSON lines as they come, Parquet in row groups."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ..errors import QueryError


class Sink(ABC):
    """Takes tables of changes."""

    @abstractmethod
    def write(self, changes: pa.Table) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


def open_sink(path: Path, *, overwrite: bool) -> Sink:
    """A sink for a file, by its ending."""
    makers = {".jsonl": JsonLines, ".ndjson": JsonLines, ".parquet": ParquetFile}
    if path.suffix.lower() not in makers:
        raise QueryError(f"{path}: results are written as {', '.join(makers)}; give the file one of these endings")
    if path.exists() and not overwrite:
        raise QueryError(f"{path} is there already; remove it, choose another file, or add --overwrite")
    if not path.parent.is_dir():
        raise QueryError(f"{path}: there is no directory {path.parent}; create it first")
    return makers[path.suffix.lower()](path)


def json_row(row: dict[str, Any]) -> dict[str, Any]:
    """A change as JSON has it: times in ISO 8601, nulls left out."""
    return {
        name: value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
        for name, value in row.items()
        if value is not None
    }


class JsonLines(Sink):
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, changes: pa.Table) -> None:
        self._file.writelines(json.dumps(json_row(row)) + "\n" for row in changes.to_pylist())
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class ParquetFile(Sink):
    """Changes gather into row groups; the file is whole once it is closed."""

    _ROWS_PER_GROUP = 100_000

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pa.parquet.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0

    def write(self, changes: pa.Table) -> None:
        self._waiting.append(changes)
        self._waiting_rows += changes.num_rows
        if self._waiting_rows >= self._ROWS_PER_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        # Dictionaries differ from batch to batch; plain texts compress as well and read anywhere.
        group = pa.concat_tables([_plain(table) for table in self._waiting])
        if self._writer is None:
            self._writer = pa.parquet.ParquetWriter(self._path, group.schema)
        self._writer.write_table(group)
        self._waiting, self._waiting_rows = [], 0

    def close(self) -> None:
        if self._waiting:
            self._write_group()
        if self._writer is not None:
            self._writer.close()


def _plain(table: pa.Table) -> pa.Table:
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
