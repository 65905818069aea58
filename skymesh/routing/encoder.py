"""Columns as kernels read them: which rows of the matrices they are, and texts as codes.

Only columns that some query filters on or groups by are encoded. A column gets its place when the first such query
comes and keeps it, so programs that were compiled before stay right.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..algorithms.columns import Carried, Rows
from ..queries import AnyQuery, Stream
from ..queries.checks import filter_node
from ..queries.expressions import names_in
from ..queries.programs import Places
from .raw_rows import Ints, RawRows
from .texts import Texts


class Encoder:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._numbers = {name: row for row, name in enumerate(stream.attributes)}
        self._columns: dict[str, int] = {}
        self._carries: set[str] = set()
        self._has_rows = False
        self._late: set[str] = set()  # columns that rows were encoded without
        self.texts = Texts()

    def admit(self, query: AnyQuery) -> bool:
        """Give the columns that a query reads their places. True if rows were encoded without one that it reads or
        carries."""
        used = names_in(filter_node(query.where, self._stream)) if query.where is not None else set()
        used |= {query.group_by} if query.group_by else set()
        new = used - self._numbers.keys() - self._columns.keys()
        if self._has_rows:
            self._late |= new | (set(query.carry) - self._carries)
        for name in sorted(new):
            if self._stream.columns[name] == "float64":
                self._numbers[name] = len(self._numbers)
            else:
                self._columns[name] = len(self._columns)
        self._carries |= set(query.carry)
        return not self._late.isdisjoint(used | set(query.carry))

    def places(self) -> Places:
        return Places(dict(self._numbers), dict(self._columns), self.texts.code)

    def rows(self, raw: RawRows, *, is_time: bool) -> Rows:
        """Raw rows in the order of a kind of window, encoded."""
        count = len(raw)
        self._has_rows |= count > 0
        columns = np.zeros((len(self._columns), count), np.int64)
        known = np.zeros(columns.shape, np.bool_)
        for name, row in self._columns.items():
            columns[row], known[row] = self._codes(_one(raw.columns, name))
        at = raw.time if is_time else raw.at
        return Rows(at, raw.seq, raw.time, raw.id, self._carried(raw), self._number_matrix(raw), columns, known)

    def _number_matrix(self, raw: RawRows) -> np.ndarray:
        if len(self._numbers) == len(raw.numbers):
            return np.ascontiguousarray(raw.numbers)
        numbers = np.empty((len(self._numbers), len(raw)), np.float64)
        numbers[: len(raw.numbers)] = raw.numbers
        for name, row in self._numbers.items():
            if row >= len(raw.numbers):
                numbers[row] = _one(raw.columns, name).to_numpy(zero_copy_only=False)
        return numbers

    def _codes(self, column: pa.Array) -> tuple[Ints, np.ndarray]:
        known = ~column.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
            return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), known
        return self.texts.encode(column), known

    def _carried(self, raw: RawRows) -> Carried | None:
        """What results may show of a row: the columns that some query carries, and ids that are texts."""
        if not self._carries and raw.id_text is None:
            return None
        shown: dict[str, object] = {}
        for name in sorted(self._carries):
            if name in self._stream.columns:
                shown[name] = raw.columns.column(name)  # type: ignore[union-attr]
            else:
                shown[name] = raw.numbers[self._numbers[name]]
        if raw.id_text is not None:
            shown["id"] = raw.id_text
        return Carried(pa.table(shown))


def _one(table: pa.Table | None, name: str) -> pa.Array:
    """A column of a table as one array."""
    assert table is not None, "columns are declared, or no query could name them"
    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    column = column.combine_chunks()
    return column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
