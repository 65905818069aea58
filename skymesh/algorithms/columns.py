"""What passes between the parts of an algorithm: columns, never objects.

`at` is a row's position in the unit of its windows: the number of rows that have arrived with it (count windows), or
its event time in microseconds (time windows). A row is in the window that ends at p if p - size < at <= p. `merit` is
the score turned so that larger is better; the order of a ranking is merit, then at, then seq, each descending.

Nobody changes these objects, but they are not frozen: to make a frozen one of eight fields takes 2 us where this takes
0.5, and a push makes half a dozen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Beyond every position, with room to add one to the other.
NEVER = 2**62
EVER = -(2**62)


_nevers = np.full(1024, NEVER, np.int64)


def never(count: int) -> Ints:
    """`until` of rows that nothing ends. Shared memory: nobody writes to it."""
    global _nevers
    if count > len(_nevers):
        _nevers = np.full(2 * count, NEVER, np.int64)
    return _nevers[:count]


class Op(IntEnum):
    """What a row of the change log says, in the order in which rows of one point are applied."""

    LEAVE = 0
    MOVE = 1
    ENTER = 2
    ROW = 3
    EMPTY = 4
    END = 5


@dataclass(slots=True)
class Carried:
    """Columns that results may show, for some rows: a table, and which of its rows are meant."""

    table: pa.Table
    pick: Ints | None = None

    def __len__(self) -> int:
        return self.table.num_rows if self.pick is None else len(self.pick)

    def take(self, index: Ints) -> Carried:
        return Carried(self.table, index if self.pick is None else self.pick[index])

    def materialize(self) -> pa.Table:
        return self.table if self.pick is None else self.table.take(pa.array(self.pick))


@dataclass(slots=True)
class Objects:
    """Rows as results show them: at i8[n], seq i8[n], time i8[n], id i8[n], and carried columns."""

    at: Ints
    seq: Ints
    time: Ints
    id: Ints
    carried: Carried | None

    def __len__(self) -> int:
        return len(self.at)


@dataclass(slots=True)
class Rows(Objects):
    """Rows as algorithms take them, in the order of their windows: (at, seq) ascending.

    numbers f8[m, n]: attributes, then float columns that filters use. columns i8[c, n]: other columns that filters and
    groups use, texts as codes, with known b1[c, n] false for null.
    """

    numbers: Floats
    columns: Ints
    known: Flags

    def take(self, index: Ints) -> Self:
        return replace(
            self,
            at=self.at[index],
            seq=self.seq[index],
            time=self.time[index],
            id=self.id[index],
            carried=None if self.carried is None else self.carried.take(index),
            numbers=np.ascontiguousarray(self.numbers[:, index]),
            columns=np.ascontiguousarray(self.columns[:, index]),
            known=np.ascontiguousarray(self.known[:, index]),
        )

    def span(self, start: int, stop: int) -> Self:
        """Rows start..stop, as copies where kernels need contiguous memory."""
        if start == 0 and stop == len(self):
            return self
        cut = slice(start, stop)
        return replace(
            self,
            at=self.at[cut],
            seq=self.seq[cut],
            time=self.time[cut],
            id=self.id[cut],
            carried=None if self.carried is None else self.carried.take(np.arange(start, stop)),
            numbers=np.ascontiguousarray(self.numbers[:, cut]),
            columns=np.ascontiguousarray(self.columns[:, cut]),
            known=np.ascontiguousarray(self.known[:, cut]),
        )


@dataclass(slots=True)
class Hits:
    """Rows that may matter to rankings: ranking i4[h], row i4[h] into objects, merit f8[h], until i8[h].

    A row counts at points p < until; it was superseded or deleted there, or NEVER.
    """

    ranking: NDArray[np.int32]
    row: NDArray[np.int32]
    merit: Floats
    until: Ints
    objects: Objects

    def __len__(self) -> int:
        return len(self.ranking)


_NONE: Ints = np.empty(0, np.int64)
NO_HITS = Hits(
    np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), _NONE, Objects(_NONE, _NONE, _NONE, _NONE, None)
)


@dataclass(slots=True)
class Spans:
    """What rankings ask for that hold too little: ranking i4[s], the rest i8[s].

    Wanted are the rows in (after, upto] that rank at or above the `want`-th best of those in (shared_after,
    shared_upto], which are in every window from here on; all of them if there are fewer. Rows that are dead at
    shared_upto never count, those that are dead at `upto` are wanted but not among the best.
    """

    ranking: NDArray[np.int32]
    want: Ints
    after: Ints
    upto: Ints
    shared_after: Ints
    shared_upto: Ints

    def __len__(self) -> int:
        return len(self.ranking)


@dataclass(slots=True)
class Changes:
    """Rows of the change log: told, records with ranking i4, at i8, op i8, merit f8, rank i4, seq, time, id i8.

    Per ranking they stand in the order in which to apply them. They stay records because whoever takes them makes one
    pass over whole rows.
    """

    told: NDArray[np.void]
    carried: pa.Table | None = None

    def __len__(self) -> int:
        return len(self.told)

    def column(self, name: str) -> Any:
        return np.ascontiguousarray(self.told[name])

    @staticmethod
    def copied(told: NDArray[np.void], carried: pa.Table | None = None) -> Changes:
        """A copy of contiguous records, read-only. NumPy copies them field by field: 10 us for 720, this takes 0.7."""
        return Changes(np.frombuffer(told.tobytes(), told.dtype), carried)

    def at_point(self, at: int) -> Changes:
        told = self.told.copy()
        told["at"] = at
        return Changes.copied(told, self.carried)


State = dict[str, Any]
