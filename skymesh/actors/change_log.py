"""Changes as users see them: one Arrow table, queries in their order, carried columns beside."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..algorithms.columns import Op
from ..queries import AnyQuery, Stream
from ..routing.raw_rows import ARROW_TYPES
from .change_chunks import TYPES, Chunks, Names, Piece


class ChangeLog:
    """The schema of an engine's results, and the dictionaries of query and group names."""

    def __init__(self, *, ids_are_texts: bool) -> None:
        self._ids_are_texts = ids_are_texts
        self._queries: list[str] = []
        self._groups: list[str] = []
        self._group_numbers: dict[str, int] = {}
        self._carried: dict[str, pa.DataType] = {}
        self._carries: list[frozenset[str]] = []
        self._names: Names | None = None
        self._empty: pa.Table | None = None  # most pushes change nothing: building an empty table takes 50 us
        self._chunks = Chunks()

    def add_query(self, query: AnyQuery, stream: Stream) -> int:
        """The number of a new query: its place in the order of results."""
        self._queries.append(query.name)
        self._carries.append(frozenset(query.carry))
        for name in query.carry:
            self._carried[name] = ARROW_TYPES[stream.columns.get(name, "float64")]
        self._names = self._empty = None
        return len(self._queries) - 1

    def group_number(self, text: str) -> int:
        if text not in self._group_numbers:
            self._group_numbers[text] = len(self._groups)
            self._groups.append(text)
            self._names = None
        return self._group_numbers[text]

    def table(self, pieces: list[Piece]) -> pa.Table:
        """One table of all pieces: by query, then at, then group; rows of a point in the order they were told."""
        count = 0
        for piece in pieces:
            count += len(piece.changes.told)
        if not count:
            return self._nothing()
        if self._names is None:
            self._names = Names(pa.array(self._queries, pa.string()), pa.array(self._groups, pa.string()))
        table, rows = self._chunks.add(pieces, count, self._names)
        if not self._carried and not self._ids_are_texts:
            return table
        return self._widened(table, pieces, None if rows is None else pa.array(np.argsort(rows)))

    def _nothing(self) -> pa.Table:
        if self._empty is None:
            ids = {"id": pa.string()} if self._ids_are_texts else {}
            self._empty = pa.schema({**TYPES, **ids, **self._carried}).empty_table()
        return self._empty

    def _widened(self, table: pa.Table, pieces: list[Piece], order: pa.Array | None) -> pa.Table:
        """With what no chunk holds: texts for ids, and carried columns."""
        columns = dict(zip(TYPES, table.columns, strict=True))
        if self._ids_are_texts:
            columns["id"] = _joined([_ids(piece) for piece in pieces], order)
        for name, kind in self._carried.items():
            columns[name] = _joined([self._carried_column(piece, name, kind) for piece in pieces], order)
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))

    def _carried_column(self, piece: Piece, name: str, kind: pa.DataType) -> pa.Array:
        carried = piece.changes.carried
        if carried is None or name not in carried.column_names:
            return pa.nulls(len(piece.changes), kind)
        column = _one_array(carried.column(name))
        query = piece.labels["query"][piece.changes.told["ranking"]]
        wanted = np.array([name in carries for carries in self._carries])[query]
        return column if wanted.all() else pc.if_else(pa.array(wanted), column, pa.scalar(None, kind))


def _ids(piece: Piece) -> pa.Array:
    """Ids as texts: those of streams whose ids are texts are carried."""
    changes = piece.changes
    if changes.carried is not None and "id" in changes.carried.column_names:
        return _one_array(changes.carried.column("id"))
    return pa.array(changes.told["id"], mask=changes.told["op"] >= Op.EMPTY).cast(pa.string())


def _joined(columns: list[pa.Array], order: pa.Array | None) -> pa.Array:
    column = columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
    return column if order is None else column.take(order)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
