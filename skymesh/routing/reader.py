"""Whatever a user pushes into typed columns, cell by cell where it must be.

A whole column that is missing or of the wrong type is the producer's mistake: nothing of the batch is taken and the
column is named. A single cell that is wrong makes its row bad and nothing else. Columns that Arrow or NumPy already
type are taken as they are; lists and object columns are looked at cell by cell only if their cells do not agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import InputError
from ..queries import Stream
from ..queries.units import microseconds_since_epoch
from .check_kernels import all_finite, all_within
from .plain_columns import TIME_MAX, Floats, Ints, PlainReader, required_names

Flags = NDArray[np.bool_]


class Fault(IntEnum):
    """Why a row is bad."""

    NONE = 0
    NULL = 1
    NAN = 2
    INFINITE = 3
    TYPE = 4


@dataclass(slots=True)
class Faults:
    """The first fault of each row: reason u1[n], and the column it is in."""

    reason: NDArray[np.uint8]
    column: NDArray[np.int16]
    names: list[str]
    cells: dict[tuple[int, int], str]

    def detail(self, row: int) -> str:
        """What is wrong with a row, in words."""
        number = int(self.column[row])
        words = {Fault.NULL: "is null", Fault.NAN: "is NaN", Fault.INFINITE: "is infinite"}
        told = words.get(Fault(self.reason[row])) or self.cells.get((row, number), "is out of range")
        return f"{self.names[number]} {told}"


@dataclass(frozen=True, slots=True)
class Cells:
    """One column: its values, and which cells are null, beyond what the type holds, or no such value at all."""

    values: Any
    nulls: Flags | None = None
    beyond: Flags | None = None
    wrong: dict[int, str] | None = None

    @property
    def is_clean(self) -> bool:
        return self.nulls is None and self.beyond is None and not self.wrong


@dataclass(slots=True)
class Batch:
    """Typed columns of one push. Cells of bad rows hold anything."""

    id: Ints | pa.Array
    time: Ints | None
    numbers: Floats
    columns: pa.Table | None
    faults: Faults | None

    def good(self) -> Ints | None:
        """The rows without a fault; None: all."""
        return None if self.faults is None else np.flatnonzero(self.faults.reason == Fault.NONE)


class Reader:
    """Reads what is pushed to one stream."""

    def __init__(self, name: str, stream: Stream) -> None:
        self._name = name
        self._stream = stream
        self._plain = PlainReader(stream)

    def read(self, data: object) -> Batch:
        """The columns of a push, or InputError naming what is missing or wrong."""
        stream, plain = self._stream, self._plain.read(data)
        if plain is not None and plain.is_finite and not stream.columns:
            return Batch(plain.id, plain.time, plain.numbers, None, None)
        source = _Source(self._name, data)
        if plain is None:
            numbers = np.empty((len(stream.attributes), source.count), np.float64)
            cells = _read_required(source, stream, numbers)
        else:
            numbers = plain.numbers
            cells = [Cells(plain.id), *([] if plain.time is None else [Cells(plain.time)]), *map(Cells, numbers)]
        required = dict(zip(required_names(stream), cells, strict=True))
        columns = {name: _READ[kind](source, name) for name, kind in stream.columns.items()}
        clean = all(c.is_clean for c in required.values()) and not any(c.wrong for c in columns.values())
        is_finite = all_finite(numbers) if plain is None else plain.is_finite
        return Batch(
            cells[0].values,
            None if stream.time is None else cells[1].values,
            numbers,
            pa.table({name: _arrow(cells) for name, cells in columns.items()}) if columns else None,
            None if clean and is_finite else _faults(source.count, required, columns),
        )


def _read_required(source: _Source, stream: Stream, numbers: Floats) -> list[Cells]:
    """The columns that a stream must have, whatever their types; numbers f8[d, n] is written."""
    ids = (_read_ints if stream.id.type == "int64" else _read_texts)(source, stream.id.column)
    times = [] if stream.time is None else [_read_times(source, stream.time)]
    attributes = [_read_floats(source, name, out) for name, out in zip(stream.attributes, numbers, strict=True)]
    return [ids, *times, *attributes]


def _faults(count: int, required: Mapping[str, Cells], columns: Mapping[str, Cells]) -> Faults | None:
    """Of several faults of a row the first counts: id, time, attributes in order, then other columns."""
    faults = Faults(np.zeros(count, np.uint8), np.zeros(count, np.int16), [*required, *columns], {})

    def mark(number: int, rows: Flags | None, reason: Fault) -> None:
        if rows is not None:
            fresh = rows & (faults.reason == Fault.NONE)
            faults.reason[fresh], faults.column[fresh] = reason, number

    for number, cells in enumerate([*required.values(), *columns.values()]):
        if cells.wrong:
            rows = np.zeros(count, np.bool_)
            rows[list(cells.wrong)] = True
            faults.cells.update({(row, number): text for row, text in cells.wrong.items()})
            mark(number, rows, Fault.TYPE)
        mark(number, cells.beyond, Fault.TYPE)
        if number < len(required):
            mark(number, cells.nulls, Fault.NULL)
            if isinstance(cells.values, np.ndarray) and cells.values.dtype == np.float64:
                mark(number, np.isnan(cells.values), Fault.NAN)
                mark(number, np.isinf(cells.values), Fault.INFINITE)
    return faults if faults.reason.any() else None


def _arrow(cells: Cells) -> pa.Array:
    if isinstance(cells.values, np.ndarray):
        return pa.array(cells.values, mask=cells.nulls)
    return cells.values


class _Source:
    """Columns by name, from any of the shapes that push takes."""

    def __init__(self, stream: str, data: Any) -> None:
        self._stream = stream
        if isinstance(data, pa.RecordBatch | pa.Table):
            self._names = data.schema.names
            self._column = data.column
            self.count = data.num_rows
        elif isinstance(data, Mapping):
            self._names = list(data)
            self._column = data.__getitem__
            self.count = self._common_length(data)
        elif hasattr(data, "columns") and hasattr(data, "iloc"):  # a pandas frame, without importing pandas
            self._names = list(data.columns)
            self._column = data.__getitem__
            self.count = len(data)
        else:
            raise InputError(
                f"push to {stream!r} takes a RecordBatch, a Table, a dict of arrays or a pandas frame, "
                f"not {type(data).__name__}"
            )

    def _common_length(self, data: Mapping[Any, Any]) -> int:
        lengths: dict[int, str] = {}
        for name, column in data.items():
            if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
                raise self.wrong(name, f"is {type(column).__name__}, where an array or list is needed")
            lengths.setdefault(len(column), str(name))
        if len(lengths) > 1:
            told = ", ".join(f"{name} has {length}" for length, name in lengths.items())
            raise InputError(f"columns pushed to {self._stream!r} differ in length: {told} rows; make them equal")
        return next(iter(lengths), 0)

    def get(self, name: str) -> Any:
        """The column as a NumPy array, an Arrow array, or a list."""
        found = self._names.count(name)
        if not self._names:
            return pa.nulls(0)  # nothing at all was pushed, and that is fine
        if found != 1:
            if found:
                raise self.wrong(name, "stands twice in the batch; name each column once")
            there = ", ".join(map(str, self._names)) or "no columns"
            raise self.wrong(name, f"is missing; the batch has {there}")
        column = self._column(name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
            if isinstance(column, pa.ChunkedArray):  # some versions of Arrow keep empty ones chunked
                column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        if isinstance(column, np.ma.MaskedArray):
            column = pa.array(column.data, mask=np.ma.getmaskarray(column))
        elif not isinstance(column, np.ndarray | pa.Array | list):
            column = _plain(column)
        if isinstance(column, np.ndarray) and column.ndim != 1:
            raise self.wrong(name, f"has {column.ndim} dimensions, where one is needed")
        return column

    def wrong(self, name: object, reason: str) -> InputError:
        return InputError(f"stream {self._stream!r}: column {name!r} {reason}")


def _plain(column: Any) -> Any:
    """A series or a sequence as an array: Arrow keeps the nulls of pandas' extension types."""
    if hasattr(column, "__arrow_array__") or hasattr(column, "to_numpy"):
        values = column.to_numpy() if isinstance(getattr(column, "dtype", None), np.dtype) else pa.array(column)
        return values if isinstance(values, np.ndarray | pa.Array) else values.combine_chunks()
    return list(column) if isinstance(column, Sequence) else np.asarray(column)


def _typed(column: Any) -> pa.Array | np.ndarray | list[Any]:
    """The column with one type for all cells, or the list of its cells if they do not agree."""
    if isinstance(column, pa.Array):
        if pa.types.is_dictionary(column.type) and not pa.types.is_string(column.type.value_type):
            return column.dictionary_decode()
        return column
    if isinstance(column, np.ndarray) and column.dtype != object:
        return pa.array(column) if column.dtype.kind in "US" else column
    cells = column.tolist() if isinstance(column, np.ndarray) else list(column)
    if any(isinstance(cell, bool | np.bool_) for cell in cells) and not all(
        cell is None or isinstance(cell, bool | np.bool_) for cell in cells
    ):
        return cells  # Arrow would take true for 1
    try:
        array = pa.array(cells)
        return cells if pa.types.is_binary(array.type) else array  # texts among bytes would become bytes
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, ValueError, TypeError):
        return cells


# -- one reader a type -----------------------------------------------------------------------------------------


def _read_floats(source: _Source, name: str, out: Floats | None = None) -> Cells:
    out = np.empty(source.count, np.float64) if out is None else out
    column = _typed(source.get(name))
    if isinstance(column, np.ndarray):
        if column.dtype.kind not in "iuf":
            raise source.wrong(name, f"is {column.dtype}, where numbers are needed")
        out[:] = column
        return Cells(out)
    if isinstance(column, list):
        return _read_float_cells(column, out)
    kind = column.type
    if pa.types.is_null(kind):
        out[:] = np.nan
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise source.wrong(name, f"is {kind}, where numbers are needed")
    else:
        values = column if pa.types.is_float64(kind) else column.cast(pa.float64(), safe=False)
        out[:] = values.to_numpy(zero_copy_only=False)
    return Cells(out, _nulls(column))


def _read_float_cells(column: list[Any], out: Floats) -> Cells:
    nulls, wrong = np.zeros(len(column), np.bool_), {}
    for row, cell in enumerate(column):
        out[row] = np.nan
        if cell is None:
            nulls[row] = True
        elif isinstance(cell, bool | np.bool_) or not isinstance(cell, int | float | np.number | Decimal):
            wrong[row] = _shown(cell)
        else:
            out[row] = float(cell) if abs(cell) < 2**1023 or cell != cell else np.inf  # type: ignore[operator]
    return Cells(out, _some(nulls), None, wrong)


def _read_ints(source: _Source, name: str) -> Cells:
    column = _typed(source.get(name))
    if isinstance(column, list):
        return _read_int_cells(column)
    nulls = None
    if isinstance(column, np.ndarray):
        if column.dtype.kind not in "iu":
            raise source.wrong(name, f"is {column.dtype}, where integers are needed; cast it to int64")
        values = column
    else:
        if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
            raise source.wrong(name, f"is {column.type}, where integers are needed; cast it to int64")
        nulls = _nulls(column)
        if pa.types.is_null(column.type):
            return Cells(np.zeros(len(column), np.int64), nulls)
        values = (column if nulls is None else column.fill_null(0)).to_numpy(zero_copy_only=False)
    beyond = _some(values > np.uint64(2**63 - 1)) if values.dtype == np.uint64 else None
    return Cells(_own(values), nulls, beyond)


def _own(values: np.ndarray) -> Ints:
    """Integers in memory of our own: what Arrow lends is read-only, and kernels are compiled for one kind of array."""
    return np.array(values, np.int64)


def _read_int_cells(column: list[Any]) -> Cells:
    values, nulls, wrong = np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_), {}
    for row, cell in enumerate(column):
        if cell is None:
            nulls[row] = True
        elif (
            isinstance(cell, bool | np.bool_) or not isinstance(cell, int | np.integer) or not -(2**63) <= cell < 2**63
        ):
            wrong[row] = _shown(cell)
        else:
            values[row] = cell
    return Cells(values, _some(nulls), None, wrong)


def _read_texts(source: _Source, name: str) -> Cells:
    column = _typed(source.get(name))
    if isinstance(column, np.ndarray):
        raise source.wrong(name, f"is {column.dtype}, where texts are needed")
    if isinstance(column, list):
        return _only(column, str, pa.string())
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (_is_text(kind) or pa.types.is_null(kind)):
        raise source.wrong(name, f"is {column.type}, where texts are needed")
    column = column if column.type == pa.string() else column.cast(pa.string())
    return Cells(column, _nulls(column))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _read_truths(source: _Source, name: str) -> Cells:
    column = _typed(source.get(name))
    if isinstance(column, list):
        return _only(column, bool, pa.bool_())
    column = pa.array(column) if isinstance(column, np.ndarray) else column
    if pa.types.is_null(column.type):
        column = column.cast(pa.bool_())
    elif not pa.types.is_boolean(column.type):
        raise source.wrong(name, f"is {column.type}, where true and false are needed")
    return Cells(column, _nulls(column))


def _only(column: list[Any], wanted: type, kind: pa.DataType) -> Cells:
    """The cells of the type that is wanted; the others are wrong."""
    wrong = {row: _shown(cell) for row, cell in enumerate(column) if not (cell is None or isinstance(cell, wanted))}
    nulls = np.fromiter((cell is None for cell in column), np.bool_, len(column))
    return Cells(
        pa.array([cell if isinstance(cell, wanted) else None for cell in column], kind), _some(nulls), None, wrong
    )


_READ = {"string": _read_texts, "int64": _read_ints, "float64": _read_floats, "bool": _read_truths}


def _nulls(column: pa.Array) -> Flags | None:
    return column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None


def _some(rows: Flags) -> Flags | None:
    return rows if rows.any() else None


def _shown(cell: object) -> str:
    text = repr(cell)
    return f"is {text if len(text) <= 60 else text[:57] + '...'} ({type(cell).__name__})"


# Microseconds in a unit; nanoseconds are divided instead.
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0}


def _read_times(source: _Source, name: str) -> Cells:
    """Microseconds since 1970, UTC."""
    column = _typed(source.get(name))
    if isinstance(column, list):
        return _read_time_cells(column)
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        unit = np.datetime_data(column.dtype)[0]
        if unit not in _MICROSECONDS:
            column, unit = column.astype("datetime64[s]"), "s"
        return _scaled(_own(column.view(np.int64)), _some(np.isnat(column)), unit)
    kind: Any = column.dtype if isinstance(column, np.ndarray) else column.type
    if isinstance(column, pa.Array) and pa.types.is_date(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    if isinstance(column, pa.Array) and pa.types.is_timestamp(kind):
        nulls = _nulls(column)
        values = column.view(pa.int64())
        return _scaled(_own((values if nulls is None else values.fill_null(0)).to_numpy()), nulls, kind.unit)
    try:
        integers = _read_ints(source, name)
    except InputError:
        raise source.wrong(name, f"is {kind}, where times are needed (timestamps, or integer microseconds)") from None
    return _scaled(integers.values, integers.nulls, "us")


def _scaled(values: Ints, nulls: Flags | None, unit: str) -> Cells:
    scale = _MICROSECONDS[unit]
    limit = TIME_MAX // scale if scale else 2**63 - 1
    if nulls is None and all_within(values, limit):
        beyond = None
    else:
        beyond = (values > limit) | (values < -limit)
        beyond = _some(beyond if nulls is None else beyond & ~nulls)
    values = values // 1000 if scale == 0 else values * scale if scale > 1 else values
    return Cells(values, nulls, beyond)


def _read_time_cells(column: list[Any]) -> Cells:
    values, nulls, wrong = np.zeros(len(column), np.int64), np.zeros(len(column), np.bool_), {}
    for row, cell in enumerate(column):
        if cell is None or cell != cell:  # NaT differs from itself
            nulls[row] = True
        elif isinstance(cell, date):
            values[row] = microseconds_since_epoch(cell)  # type: ignore[arg-type]
        elif isinstance(cell, int | np.integer) and not isinstance(cell, bool) and abs(int(cell)) <= TIME_MAX:
            values[row] = cell
        else:
            wrong[row] = _shown(cell)
    return Cells(values, _some(nulls), None, wrong)


def microseconds(time: object, what: str) -> int:
    """A datetime, or microseconds UTC, as microseconds."""
    if isinstance(time, datetime):
        return microseconds_since_epoch(time)
    if isinstance(time, int | np.integer) and not isinstance(time, bool) and abs(int(time)) <= TIME_MAX:
        return int(time)
    raise InputError(f"{what} is {time!r}; give a datetime, or an integer of microseconds since 1970 (UTC)")
