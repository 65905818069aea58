"""Memory that results are cut from.

To make Arrow columns of a push's changes takes 17 us when it happens all the time and 30 as part of a push, however few
they are; a slice of columns that are there takes 2. Rows are therefore written into a *chunk*: columns with room for 64
pushes or so, known to Arrow from the start. A row that was handed out is not written again while anybody can see it.
The memory of a chunk comes back when the last result that was cut from it is gone, and serves the next one: pages that
are fresh cost 18 ns a row, more than all the rest.

A row takes 57 bytes, and results that are all kept fill their chunks. A single result that is kept keeps all of its
chunk: 64 to 80 times its size on average, at least 30 KB, and at most 3.7 MB unless the result itself is larger.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..algorithms.columns import Changes, Ints, Op
from ..algorithms.frames import pack
from .change_kernels import AT, GROUP, OBJECT, TIME, Columns, arrange, mark_known, write_rows

TIME_TYPE = pa.timestamp("us", "UTC")
_NAMES_TYPE = pa.dictionary(pa.int32(), pa.string())
_OPS = pa.array([op.name.lower() for op in Op])

# The columns of every result, and what their nulls go by.
_FIELDS: dict[str, tuple[pa.DataType, int]] = {
    "query": (_NAMES_TYPE, 0),
    "group": (_NAMES_TYPE, GROUP),
    "at": (pa.int64(), AT),
    "op": (pa.dictionary(pa.int8(), _OPS.type), 0),
    "id": (pa.int64(), OBJECT),
    "score": (pa.float64(), OBJECT),
    "rank": (pa.int32(), OBJECT),
    "seq": (pa.int64(), OBJECT),
    "time": (TIME_TYPE, TIME),
}
TYPES = {name: kind for name, (kind, _) in _FIELDS.items()}

_ROWS_MIN = 512
_ROWS_MAX = 65_536
_PUSHES = 64
_AS_TOLD = np.empty(0, np.int64)
_KINDS = ("i4", "i4", "i8", "i1", "i8", "f8", "i4", "i8", "i8", "i4")  # of Columns, up to the bitmaps
_BITMAPS = {GROUP: "known_group", AT: "known_at", OBJECT: "known_object", TIME: "known_time"}


class Piece(NamedTuple):
    """Changes of a team, and LABEL of its rankings."""

    changes: Changes
    labels: np.ndarray
    has_time: bool


class Names(NamedTuple):
    """What numbers of queries and groups stand for."""

    queries: pa.Array
    groups: pa.Array


class _Memory:
    """The columns of a chunk, as kernels take them."""

    def __init__(self, room: int) -> None:
        rows = room + 1
        self.room = room
        self.columns = Columns(*(np.empty(rows, kind) for kind in _KINDS), *np.empty((4, (rows + 7) // 8), np.uint8))
        self.frame = pack(self.columns)

    def clean(self) -> None:
        """Nothing is known but the last row, which is never handed out.

        Arrow counts the nulls of a column when it first sees it. One that was null throughout would stay so in all of
        its slices, whatever bits are set later.
        """
        for bits in self.columns[-4:]:
            bits[:] = 0
            bits[self.room >> 3] = 1 << (self.room & 7)


class _Loan:
    """What Arrow holds on to while anybody sees the memory; then that is spare."""

    def __init__(self, memory: _Memory, spare: deque[_Memory]) -> None:
        self.memory, self._spare = memory, spare

    def __del__(self) -> None:
        if self.memory.room <= _ROWS_MAX:
            self._spare.append(self.memory)


class Chunk:
    """Columns with room for some rows, and the tables over them."""

    def __init__(self, memory: _Memory, spare: deque[_Memory]) -> None:
        memory.clean()
        self._loan = _Loan(memory, spare)
        self._frame = memory.frame
        self._room = memory.room
        self._used = 0
        self._cuts = 0
        self._names: Names | None = None
        self._tables: dict[int, pa.Table] = {}  # by what may be null in them

    def has_room(self, count: int) -> bool:
        return count <= self._room - self._used

    def expected(self) -> int:
        """Room for as many pushes as a chunk should serve, if they are such as those that this one did."""
        return min(max(_PUSHES * self._used // max(self._cuts, 1), _ROWS_MIN), _ROWS_MAX)

    def add(self, pieces: list[Piece], count: int, names: Names) -> tuple[pa.Table, Ints | None]:
        """The `count` rows of these pieces in order, as a table; and where each row went, None if they stood right."""
        first = self._used
        nulls, known, stands = self._write(first, pieces, _AS_TOLD)
        rows = None
        if not stands:
            rows = self._arranged(first, count)
            self._write(first, pieces, rows)
        if nulls & known:
            mark_known(self._frame, first, first + count)
        table = self._table(nulls, names).slice(first, count)
        self._used += count
        self._cuts += 1
        return table, rows

    def _write(self, first: int, pieces: list[Piece], rows: Ints) -> tuple[int, int, bool]:
        nulls, known, stands, done = 0, 0, True, 0
        for changes, labels, has_time in pieces:
            told = changes.told
            found = write_rows(self._frame, first, first + done, rows[done:], labels, told, has_time)
            nulls, known, stands = nulls | found[0], known | found[1], stands and found[2]
            done += len(told)
        return nulls, known, stands

    def _arranged(self, first: int, count: int) -> Ints:
        order, merged, rows = np.empty((3, count), np.int64)
        arrange(self._frame, first, np.empty(count + 1, np.int64), order, merged, rows)
        return rows

    def _table(self, nulls: int, names: Names) -> pa.Table:
        if names is not self._names:
            self._names = names
            self._tables.clear()
        if nulls not in self._tables:
            columns = [self._column(name, kind, gap & nulls, names) for name, (kind, gap) in _FIELDS.items()]
            self._tables[nulls] = pa.Table.from_arrays(columns, names=list(_FIELDS))
        return self._tables[nulls]

    def _column(self, name: str, kind: pa.DataType, gap: int, names: Names) -> pa.Array:
        buffers = [self._buffer(_BITMAPS[gap]) if gap else None, self._buffer(name)]
        if not pa.types.is_dictionary(kind):
            return pa.Array.from_buffers(kind, self._room + 1, buffers)
        words = {"query": names.queries, "group": names.groups, "op": _OPS}[name]
        numbers = pa.Array.from_buffers(kind.index_type, self._room + 1, buffers)
        return pa.DictionaryArray.from_arrays(numbers, words, safe=False)

    def _buffer(self, name: str) -> pa.Buffer:
        column = getattr(self._loan.memory.columns, name)
        return pa.foreign_buffer(column.__array_interface__["data"][0], column.nbytes, self._loan)


class Chunks:
    """One chunk after the other."""

    def __init__(self) -> None:
        self._spare: deque[_Memory] = deque(maxlen=1)
        self._chunk: Chunk | None = None

    def add(self, pieces: list[Piece], count: int, names: Names) -> tuple[pa.Table, Ints | None]:
        """See Chunk.add."""
        chunk = self._chunk
        if chunk is None or not chunk.has_room(count):
            room = max(_ROWS_MIN if chunk is None else chunk.expected(), count)
            self._chunk = chunk = None  # its memory is spare unless somebody sees it
            self._chunk = chunk = Chunk(self._memory(room), self._spare)
        return chunk.add(pieces, count, names)

    def _memory(self, room: int) -> _Memory:
        if self._spare:
            memory = self._spare.pop()
            if room <= memory.room <= 2 * room:
                return memory
        return _Memory(max(min(room + room // 4, _ROWS_MAX), room))  # so that one a little larger finds it of use
