"""Rows with a position, as they arrived: before they are put in a window's order and their columns are encoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .check_kernels import is_in_time_order

Ints = NDArray[np.int64]

ARROW_TYPES = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_()}


_zeros = np.zeros(1024, np.int64)


def no_times(count: int) -> Ints:
    """`time` of rows without event time. Shared memory: nobody writes to it."""
    global _zeros
    if count > len(_zeros):
        _zeros = np.zeros(2 * count, np.int64)
    return _zeros[:count]


@dataclass(slots=True)
class RawRows:
    """at (position in rows: seq + 1), seq, time, id i8[n] (ids that are texts as codes), id_text, attributes f8[d, n],
    all declared columns."""

    at: Ints
    seq: Ints
    time: Ints
    id: Ints
    id_text: pa.Array | None
    numbers: NDArray[np.float64]
    columns: pa.Table | None

    def __len__(self) -> int:
        return len(self.seq)

    def take(self, index: Ints) -> RawRows:
        at = pa.array(index)
        return RawRows(
            self.at[index],
            self.seq[index],
            self.time[index],
            self.id[index],
            None if self.id_text is None else self.id_text.take(at),
            np.ascontiguousarray(self.numbers[:, index]),
            None if self.columns is None else self.columns.take(at),
        )

    def span(self, start: int, stop: int) -> RawRows:
        """Rows start..stop, as views."""
        if start == 0 and stop == len(self):
            return self
        cut = slice(start, stop)
        return RawRows(
            self.at[cut],
            self.seq[cut],
            self.time[cut],
            self.id[cut],
            None if self.id_text is None else self.id_text[cut],
            self.numbers[:, cut],
            None if self.columns is None else self.columns[cut],
        )

    def recoded(self, encode: Callable[[pa.Array], Ints]) -> RawRows:
        """With ids from their texts."""
        return replace(self, id=encode(self.id_text))

    def without(self, ids: Ints) -> RawRows:
        """The rows whose id is none of these."""
        keep = ~np.isin(self.id, ids)
        return self if keep.all() else self.take(np.flatnonzero(keep))


def together(pieces: list[RawRows]) -> RawRows:
    """The rows of all pieces, in their order. There is at least one piece."""
    if len(pieces) == 1:
        return pieces[0]
    first = pieces[0]
    return RawRows(
        np.concatenate([piece.at for piece in pieces]),
        np.concatenate([piece.seq for piece in pieces]),
        np.concatenate([piece.time for piece in pieces]),
        np.concatenate([piece.id for piece in pieces]),
        None if first.id_text is None else pa.concat_arrays([piece.id_text for piece in pieces]),
        np.concatenate([piece.numbers for piece in pieces], axis=1),
        None if first.columns is None else pa.concat_tables([piece.columns for piece in pieces]),
    )


def in_time_order(pieces: list[RawRows]) -> RawRows:
    """The rows of all pieces by (time, seq)."""
    rows = together(pieces)
    # Most batches are in order, and looking is far cheaper than sorting and copying.
    return rows if is_in_time_order(rows.time, rows.seq) else rows.take(np.lexsort((rows.seq, rows.time)))
