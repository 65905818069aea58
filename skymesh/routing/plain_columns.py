"""Columns that NumPy can copy as they are, which is what nearly every push brings.

They are copied in one go and checked in another, without most of the questions that the reader asks of every column.
Whatever else comes is for the reader to judge.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..queries import Stream
from .check_kernels import all_finite, all_within

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Times beyond it could not be added to a window's length in int64.
TIME_MAX = 2**60

_COLUMNS = (np.ndarray, pa.Array, pa.ChunkedArray)
_NUMBERS_OR_TIMES = (pa.FloatingPointArray, pa.IntegerArray, pa.TimestampArray)


class PlainColumns(NamedTuple):
    """The id, the time if the stream has one, and the attributes of a batch. Nothing is wrong with them, unless a
    number is not finite. The memory is our own, but for texts, which Arrow never changes."""

    id: Ints | pa.StringArray
    time: Ints | None
    numbers: Floats
    is_finite: bool


class PlainReader:
    """Reads the plain columns of a stream's batches."""

    def __init__(self, stream: Stream) -> None:
        self._names = required_names(stream)
        self._ids = _texts if stream.id.type == "string" else _ints
        self._has_time = stream.time is not None

    def read(self, data: object) -> PlainColumns | None:
        """What the stream must have of a batch; None if a column is missing, has nulls or wants more than a copy."""
        columns = self._find(data)
        if columns is None:
            return None
        ids, time, first = self._ids(columns[0]), None, 1
        if self._has_time:
            time, first = _times(columns[1]), 2
            if time is None:
                return None
        if ids is None:
            return None
        arrays = []
        for column in columns[first:]:
            array = _array(column, "iuf")
            if array is None:
                return None
            arrays.append(array)
        numbers = np.empty((len(arrays), len(ids)), np.float64)
        np.concatenate(arrays, out=numbers.reshape(-1))
        return PlainColumns(ids, time, numbers, all_finite(numbers))

    def _find(self, data: Any) -> list[Any] | None:
        """The columns in the order of their names."""
        if type(data) is not dict:
            if not isinstance(data, pa.RecordBatch | pa.Table):
                return None
            schema = data.schema
            places = [schema.get_field_index(name) for name in self._names]  # -1: none or several of that name
            return None if min(places) < 0 else [data.column(place) for place in places]
        length = -1
        for column in data.values():  # also those that nobody reads have to be as long as the others
            if not isinstance(column, _COLUMNS):
                return None
            if len(column) != length:
                if length >= 0:
                    return None
                length = len(column)
        return [data.get(name) for name in self._names] if length >= 0 else None


def required_names(stream: Stream) -> list[str]:
    """Id, time and attributes, in the order in which a row's first fault is looked for."""
    return [stream.id.column, *([] if stream.time is None else [stream.time]), *stream.attributes]


def _array(column: Any, kinds: str) -> np.ndarray | None:
    """A column without nulls as NumPy's, where that costs nothing and its type is one of these kinds."""
    if type(column) is not np.ndarray:  # a masked array is another type
        if isinstance(column, pa.ChunkedArray) and column.num_chunks == 1:
            column = column.chunk(0)
        if not isinstance(column, _NUMBERS_OR_TIMES) or column.null_count:
            return None
        column = column.to_numpy()
    return column if column.ndim == 1 and column.dtype.kind in kinds else None


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
    out = np.array(array, np.int64, order="C")
    return out if all_within(out, TIME_MAX) else None
