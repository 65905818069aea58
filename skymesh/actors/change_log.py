"""Changes as users see them: one Arrow table, queries in their order, carried columns beside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..algorithms.columns import Changes, Op
from ..queries import AnyQuery, Stream
from ..routing.raw_rows import ARROW_TYPES
from .change_kernels import stands_in_order

TIME_TYPE = pa.timestamp("us", "UTC")
_INT8, _INT32, _INT64, _FLOAT64 = pa.int8(), pa.int32(), pa.int64(), pa.float64()
_NAMES_TYPE = pa.dictionary(pa.int32(), pa.string())
OPS = pa.array([op.name.lower() for op in Op])


@dataclass(frozen=True, slots=True)
class Piece:
    """Changes of a team: query and group are numbers into the log's dictionaries, group -1 for none; place is the
    group's place in the order in which the groups of its query were registered. Bare rows tell of no object."""

    query: NDArray[np.int32]
    group: NDArray[np.int32]
    place: NDArray[np.int32]
    score: NDArray[np.float64]
    changes: Changes
    has_time: bool
    is_grouped: bool
    has_bare: bool
    at_is_null: bool = False


class ChangeLog:
    """The schema of an engine's results, and the dictionaries of query and group names."""

    def __init__(self, *, ids_are_texts: bool) -> None:
        self._ids_are_texts = ids_are_texts
        self._queries: list[str] = []
        self._groups: list[str] = []
        self._group_numbers: dict[str, int] = {}
        self._carried: dict[str, pa.DataType] = {}
        self._carries: list[frozenset[str]] = []
        self._dictionaries: tuple[pa.Array, pa.Array] | None = None
        self._empty: dict[bool, pa.Table] = {}  # most pushes change nothing: building an empty table takes 50 us

    def add_query(self, query: AnyQuery, stream: Stream) -> int:
        """The number of a new query: its place in the order of results."""
        self._queries.append(query.name)
        self._carries.append(frozenset(query.carry))
        for name in query.carry:
            self._carried[name] = ARROW_TYPES[stream.columns.get(name, "float64")]
        self._dictionaries = None
        self._empty.clear()
        return len(self._queries) - 1

    def group_number(self, text: str) -> int:
        if text not in self._group_numbers:
            self._group_numbers[text] = len(self._groups)
            self._groups.append(text)
            self._dictionaries = None
        return self._group_numbers[text]

    def empty(self, *, with_op: bool = True) -> pa.Table:
        if with_op not in self._empty:
            self._empty[with_op] = self._schema(with_op).empty_table()
        return self._empty[with_op]

    def _schema(self, with_op: bool) -> pa.Schema:
        fields = [
            ("query", _NAMES_TYPE),
            ("group", _NAMES_TYPE),
            ("at", pa.int64()),
            ("op", pa.dictionary(pa.int8(), pa.string())),
            ("id", pa.string() if self._ids_are_texts else pa.int64()),
            ("score", pa.float64()),
            ("rank", pa.int32()),
            ("seq", pa.int64()),
            ("time", TIME_TYPE),
            *self._carried.items(),
        ]
        return pa.schema([field for field in fields if with_op or field[0] != "op"])

    def table(self, pieces: list[Piece], *, with_op: bool = True) -> pa.Table:
        """One table of all pieces: by query, then at, then group; rows of a point in the order they were told."""
        pieces = [piece for piece in pieces if len(piece.changes)]
        if not pieces:
            return self.empty(with_op=with_op)
        if len(pieces) == 1:
            return self._table_of(pieces[0], self._order(pieces), with_op)
        return self._merged(pieces, with_op)

    def _merged(self, pieces: list[Piece], with_op: bool) -> pa.Table:
        table = pa.concat_tables(
            [self._table_of(piece, None, with_op) for piece in pieces], promote_options="default"
        ).unify_dictionaries()
        order = self._order(pieces)
        return table if order is None else table.take(pa.array(order))

    def _order(self, pieces: list[Piece]) -> np.ndarray | None:
        """How to sort the rows of all pieces, None if they stand right."""
        query = _joined([piece.query for piece in pieces])
        at = _joined([piece.changes.at for piece in pieces])
        place = _joined([piece.place for piece in pieces])
        op = _joined([piece.changes.op for piece in pieces])
        if stands_in_order(query, at, place, op):
            return None
        order: np.ndarray = np.lexsort((place, at, op == Op.END, query))
        return order

    def _table_of(self, piece: Piece, order: np.ndarray | None, with_op: bool) -> pa.Table:
        changes = piece.changes
        mask = changes.op >= Op.EMPTY if piece.has_bare else None
        queries, groups = self._names()
        count = len(changes)
        columns = [
            pa.DictionaryArray.from_arrays(_column(piece.query, _INT32), queries, safe=False),
            self._group_column(piece, groups),
            _column(changes.at, _INT64, mask if piece.at_is_null else None),
            pa.DictionaryArray.from_arrays(_column(changes.op, _INT8), OPS, safe=False),
            self._ids(changes, mask),
            _column(piece.score, _FLOAT64, mask),
            _column(changes.rank, _INT32, mask),
            _column(changes.seq, _INT64, mask),
            _column(changes.time, TIME_TYPE, mask) if piece.has_time else pa.nulls(count, TIME_TYPE),
            *[self._carried_column(piece, name, kind, count) for name, kind in self._carried.items()],
        ]
        if not with_op:
            del columns[3]
        table = pa.Table.from_arrays(columns, schema=self.empty(with_op=with_op).schema)
        return table if order is None else table.take(pa.array(order))

    def _group_column(self, piece: Piece, groups: pa.Array) -> pa.Array:
        if not piece.is_grouped:
            return pa.nulls(len(piece.group), _NAMES_TYPE)
        return pa.DictionaryArray.from_arrays(pa.array(piece.group, mask=piece.group < 0), groups, safe=False)

    def _names(self) -> tuple[pa.Array, pa.Array]:
        if self._dictionaries is None:
            self._dictionaries = pa.array(self._queries, pa.string()), pa.array(self._groups, pa.string())
        return self._dictionaries

    def _ids(self, changes: Changes, mask: np.ndarray | None) -> pa.Array:
        if changes.carried is not None and "id" in changes.carried.column_names:
            return _one_array(changes.carried.column("id"))
        ids = _column(changes.id, pa.int64(), mask)
        return ids.cast(pa.string()) if self._ids_are_texts else ids

    def _carried_column(self, piece: Piece, name: str, kind: pa.DataType, count: int) -> pa.Array:
        carried = piece.changes.carried
        if carried is None or name not in carried.column_names:
            return pa.nulls(count, kind)
        column = _one_array(carried.column(name))
        wanted = np.array([name in carries for carries in self._carries])[piece.query]
        return column if wanted.all() else pc.if_else(pa.array(wanted), column, pa.scalar(None, kind))


def _joined(columns: list[np.ndarray]) -> np.ndarray:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


def _column(values: np.ndarray, kind: pa.DataType, mask: np.ndarray | None = None) -> pa.Array:
    """A NumPy column as Arrow's, without a copy unless something is null: half the time of pa.array for few rows."""
    if mask is not None:
        return pa.array(values, mask=mask).view(kind)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
