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


def plain_columns(stream: Stream, data: object) -> PlainColumns | None:
    """What a stream must have of a batch; None if a column is missing, has nulls or wants more than a copy."""
    columns = _find(required_names(stream), data)
    if columns is None:
        return None
    ids = (_texts if stream.id.type == "string" else _ints)(columns.pop(0))
    time = None if stream.time is None else _times(columns.pop(0))
    if ids is None or (time is None and stream.time is not None):
        return None
    arrays = []
    for column in columns:
        array = _array(column, "iuf")
        if array is None:
            return None
        arrays.append(array)
    numbers = np.empty((len(arrays), len(ids)), np.float64)
    np.concatenate(arrays, out=numbers.reshape(-1))
    return PlainColumns(ids, time, numbers, all_finite(numbers))


def required_names(stream: Stream) -> list[str]:
    """Id, time and attributes, in the order in which a row's first fault is looked for."""
    return [stream.id.column, *([] if stream.time is None else [stream.time]), *stream.attributes]


def _find(names: list[str], data: Any) -> list[Any] | None:
    if isinstance(data, pa.RecordBatch | pa.Table):
        schema = data.schema
        places = [schema.get_field_index(name) for name in names]  # -1: none or several of that name
        return None if min(places) < 0 else [data.column(place) for place in places]
    if type(data) is not dict:
        return None
    lengths = set()
    for column in data.values():  # also those that nobody reads have to be as long as the others
        if not isinstance(column, _COLUMNS):
            return None
        lengths.add(len(column))
    return [data.get(name) for name in names] if len(lengths) == 1 else None


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
