"""Columns that need no conversion, which is what nearly every push brings.

They are copied and checked in one pass, 12 us instead of 22 for 10,000 rows of four attributes, and without most of
the questions that the reader asks of every column. Whatever else comes is for the reader to judge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..queries import Stream
from .check_kernels import take_finite, take_within

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Times beyond it could not be added to a window's length in int64.
TIME_MAX = 2**60

_COLUMNS = (np.ndarray, pa.Array, pa.ChunkedArray)
_NUMBERS_OR_TIMES = (pa.FloatingPointArray, pa.IntegerArray, pa.TimestampArray)


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """The id, the time if the stream has one, and the attributes of a batch. Nothing is wrong with them, unless a
    number is not finite. The memory is our own, but for texts, which Arrow never changes."""

    id: Ints | pa.StringArray
    time: Ints | None
    numbers: Floats
    is_finite: bool


def plain_columns(stream: Stream, data: object) -> PlainColumns | None:
    """What a stream must have of a batch; None if a column is missing, has nulls or wants a conversion."""
    columns = _find(required_names(stream), data)
    if columns is None:
        return None
    ids = (_texts if stream.id.type == "string" else _ints)(columns.pop(0))
    time = None if stream.time is None else _times(columns.pop(0))
    if ids is None or (time is None and stream.time is not None):
        return None
    numbers = np.empty((len(columns), len(ids)), np.float64)
    is_finite = True
    for column, out in zip(columns, numbers, strict=True):
        array = _array(column, "iuf")
        if array is None:
            return None
        is_finite &= take_finite(_lined_up(array, np.float64), out)
    return PlainColumns(ids, time, numbers, is_finite)


def required_names(stream: Stream) -> list[str]:
    """Id, time and attributes, in the order in which a row's first fault is looked for."""
    return [stream.id.column, *([] if stream.time is None else [stream.time]), *stream.attributes]


def _find(names: list[str], data: Any) -> list[Any] | None:
    if isinstance(data, pa.RecordBatch | pa.Table):
        there = data.schema.names
        if any(there.count(name) != 1 for name in names):
            return None
        return [data.column(there.index(name)) for name in names]
    if type(data) is dict and all(isinstance(column, _COLUMNS) for column in data.values()):
        # Also columns that nobody reads have to be as long as the others.
        return [data.get(name) for name in names] if len(set(map(len, data.values()))) == 1 else None
    return None


def _array(column: Any, kinds: str) -> np.ndarray | None:
    """A column without nulls as NumPy's, where that costs nothing and its type is one of these kinds."""
    if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1:
        column = column.chunk(0)
    if isinstance(column, _NUMBERS_OR_TIMES) and not column.null_count:
        column = column.to_numpy()
    elif type(column) is not np.ndarray or column.ndim != 1:  # a masked array is another type
        return None
    return column if column.dtype.kind in kinds else None


def _lined_up(array: np.ndarray, kind: type[np.generic]) -> np.ndarray:
    """As kernels are compiled for it: of one type, cell next to cell."""
    flags = array.flags
    return array if array.dtype == kind and flags.c_contiguous and flags.aligned else np.array(array, kind, order="C")


def _texts(column: Any) -> pa.StringArray | None:
    return column if isinstance(column, pa.StringArray) and not column.null_count else None


def _ints(column: Any) -> Ints | None:
    array = _array(column, "iu")
    return None if array is None or array.dtype == np.uint64 else np.array(array, np.int64, order="C")


def _times(column: Any) -> Ints | None:
    array = _array(column, "iM")
    if array is None:
        return None
    if array.dtype.kind == "M":
        if array.dtype != "datetime64[us]":
            return None
        array = array.view(np.int64)
    out = np.empty(len(array), np.int64)
    return out if take_within(_lined_up(array, np.int64), TIME_MAX, out) else None
