"""Rows from files, in batches: Parquet, CSV, JSON lines, Arrow.

Parquet and Arrow bring types along. CSV and JSON lines are text: columns are read as the stream declares them, and a
cell that cannot be read so is passed on as it stands, for the splitter to reject that row and no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from ..errors import InputError
from ..queries import Stream

Columns = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of a file, and how far into the file they reach (0 to 1, None if that cannot be told)."""

    rows: pa.RecordBatch | Columns
    progress: float | None


def read_file(path: Path, stream: Stream, rows_per_batch: int) -> Iterator[Chunk]:
    """The rows of a file, in order."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(_READERS)
        raise InputError(f"{path}: cannot tell what kind of file this is; rename it to one of {known}")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; check --input")
    try:
        yield from reader(path, stream, rows_per_batch)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None


def _wanted(stream: Stream) -> list[str]:
    names = [stream.id.column, *([stream.time] if stream.time else []), *stream.attributes, *stream.columns]
    return list(dict.fromkeys(names))


# -- files with types ------------------------------------------------------------------------------------------


def _read_parquet(path: Path, stream: Stream, rows_per_batch: int) -> Iterator[Chunk]:
    with pa.parquet.ParquetFile(path) as file:
        _require(path, file.schema_arrow.names, stream)
        names = _wanted(stream)
        total, done = file.metadata.num_rows, 0
        for batch in file.iter_batches(batch_size=rows_per_batch, columns=names):
            done += batch.num_rows
            yield Chunk(batch, done / total)


def _read_arrow(path: Path, _stream: Stream, rows_per_batch: int) -> Iterator[Chunk]:
    with pa.memory_map(str(path)) as source:
        try:
            file = pa.ipc.open_file(source)
            batches: Iterator[pa.RecordBatch] = (file.get_batch(i) for i in range(file.num_record_batches))
            count = file.num_record_batches
        except pa.ArrowInvalid:
            source.seek(0)
            batches, count = iter(pa.ipc.open_stream(source)), 0
        for number, batch in enumerate(batches, start=1):
            batch.validate(full=True)  # an altered offset would otherwise end the process
            for start in range(0, batch.num_rows, rows_per_batch):
                yield Chunk(batch.slice(start, rows_per_batch), number / count if count else None)


def _require(path: Path, there: list[str], stream: Stream) -> None:
    """Name what a file lacks before anything of it is pushed: only the columns of the stream are read."""
    missing = [name for name in _wanted(stream) if name not in there]
    if missing:
        raise InputError(f"{path}: has no column {', '.join(missing)}; it has {', '.join(there)}")


# -- text ------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, stream: Stream, rows_per_batch: int) -> Iterator[Chunk]:
    names = _wanted(stream)
    size = path.stat().st_size
    with path.open("rb") as raw, pa.PythonFile(raw) as source:
        options = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
        )
        if size == 0:
            raise InputError(f"{path}: is empty; a CSV file begins with the names of its columns")
        with pa.csv.open_csv(source, convert_options=options) as reader:
            _require(path, reader.schema.names, stream)
            waiting = pa.Table.from_batches([], reader.schema)
            for batch in reader:
                waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
                while waiting.num_rows >= rows_per_batch:
                    yield Chunk(_typed(waiting.slice(0, rows_per_batch), stream), raw.tell() / size)
                    waiting = waiting.slice(rows_per_batch)
            if waiting.num_rows:
                yield Chunk(_typed(waiting, stream), 1.0)


def _typed(table: pa.Table, stream: Stream) -> Columns:
    """Columns of text as the stream declares them; those that are not there are left for the splitter to name."""
    kinds = {**stream.columns, **dict.fromkeys(stream.attributes, "float64"), stream.id.column: stream.id.type}
    columns: Columns = {}
    for name in _wanted(stream):
        if name in table.column_names:
            column = table.column(name).combine_chunks()
            columns[name] = _times(column) if name == stream.time else _READ_TEXT[kinds[name]](column)
    return columns


def _cast(column: pa.Array, kind: pa.DataType, parse: Callable[[str], Any]) -> Any:
    """The column with a type, or cell by cell if some cells do not fit: those stay texts."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return [_cell(cell, parse) for cell in column.to_pylist()]


def _cell(cell: str | None, parse: Callable[[str], Any]) -> Any:
    try:
        return None if cell is None else parse(cell)
    except ValueError:
        return cell


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


_READ_TEXT: dict[str, Callable[[pa.Array], Any]] = {
    "string": lambda column: column,
    "int64": lambda column: _cast(column, pa.int64(), int),
    "float64": lambda column: _cast(column, pa.float64(), float),
    "bool": lambda column: _cast(column, pa.bool_(), _truth),
}


def _times(column: pa.Array) -> Any:
    """Times as ISO 8601 or integer microseconds."""
    if not pa.types.is_string(column.type):
        return column
    for kind in (pa.int64(), pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return [_cell(cell, _time) for cell in column.to_pylist()]


def _time(text: str) -> int | datetime:
    return int(text) if text.lstrip("-").isdigit() else datetime.fromisoformat(text)


_JSON_BLOCK_BYTES = 8 * 2**20
_JSON_TYPES = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}


def _read_jsonl(path: Path, stream: Stream, rows_per_batch: int) -> Iterator[Chunk]:
    size = path.stat().st_size
    with path.open("rb") as source:
        while block := source.read(_JSON_BLOCK_BYTES):
            block += source.readline()
            columns = _json_columns(block, stream)
            count = max((len(column) for column in columns.values()), default=0)
            for start in range(0, count, rows_per_batch):
                stop = min(start + rows_per_batch, count)
                yield Chunk({name: column[start:stop] for name, column in columns.items()}, source.tell() / size)


def _json_columns(block: bytes, stream: Stream) -> Columns:
    """By Arrow's parser where all lines are well formed and typed, else line by line."""
    kinds = {**stream.columns, **dict.fromkeys(stream.attributes, "float64"), stream.id.column: stream.id.type}
    schema = pa.schema([(name, _JSON_TYPES[kind]) for name, kind in kinds.items() if name != stream.time])
    try:
        table = pa.json.read_json(pa.BufferReader(block), parse_options=pa.json.ParseOptions(explicit_schema=schema))
    except pa.ArrowInvalid:
        return _json_cells(block, stream)
    columns: Columns = {name: table.column(name).combine_chunks() for name in kinds if name in table.column_names}
    if stream.time is not None and stream.time in table.column_names:
        columns[stream.time] = _times(table.column(stream.time).combine_chunks())
    return columns


def _json_cells(block: bytes, stream: Stream) -> Columns:
    rows = [_json_row(line) for line in block.splitlines() if line.strip()]
    columns: Columns = {}
    for name in _wanted(stream):
        cells = [row.get(name) if isinstance(row, dict) else row for row in rows]
        if name == stream.time:
            cells = [_cell(cell, _time) if isinstance(cell, str) else cell for cell in cells]
        columns[name] = cells
    return columns


@dataclass(frozen=True, slots=True)
class NoObject:
    """A line that is no JSON object. No column takes it, so its row is rejected, with the line as the detail."""

    line: str

    def __repr__(self) -> str:
        return self.line


def _json_row(line: bytes) -> Any:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    return row if isinstance(row, dict) else NoObject(line.decode(errors="replace"))


_READERS: dict[str, Callable[[Path, Stream, int], Iterator[Chunk]]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}
