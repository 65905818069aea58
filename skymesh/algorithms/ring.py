"""The rows of a window in a ring, by number, with what results show of them.

A row is written once and never moved: 8 bytes an attribute, 8 each for id, seq and event time, 4 for the way back to
the row before it in its cell; filter columns and the links between rows of one id only where queries need them. The
ring has room for a power of two of rows. Carried columns stay in the Arrow batches they came in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from .columns import NEVER, Carried, Ints, Objects, Rows, State
from .frames import pack
from .grid_kernels import Ring, first_after, forget_ids, kill_ids, link_ids
from .pair_table import PairTable

ROOM_MIN = 1024
_PIECE_ROWS = 2**16
# The ring's columns that grow together; position is one of them under another name.
_PLAIN = {"seq": np.int64, "time": np.int64, "id": np.int64, "back": np.uint32}
_LINKS = {"newer": np.int64, "older": np.int64, "dead": np.int64}


class RowRing:
    """Rows first..end. With `has_links` rows of one id know each other, for `latest` and deletions."""

    def __init__(self, *, is_time: bool, has_time: bool, has_links: bool) -> None:
        self.first = 0
        self.end = 0
        self.has_links = has_links
        self._is_time = is_time
        self._has_time = has_time or is_time
        self._carried: deque[tuple[int, Carried]] = deque()  # number of its first row, and the batch
        self._newest = PairTable()  # (0, id): number of its newest row
        self._have(self._made(ROOM_MIN, 0, 0))

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def room(self) -> int:
        return int(self.arrays.mask) + 1

    # -- rows in -----------------------------------------------------------------------------------------------

    def make_room(self, rows: Rows) -> bool:
        """Room for rows that come after those that are here; true if they have columns that none had before."""
        before = self.arrays
        self._make_room(len(rows), len(rows.numbers), len(rows.columns))
        after = self.arrays
        if after is before:
            return False
        return len(after.numbers) > len(before.numbers) or len(after.columns) > len(before.columns)

    def append(self, rows: Rows) -> None:
        """Rows that come after those that are here. Their numbers, ids and positions were written by `take_rows`."""
        count, ring = len(rows), self.arrays
        if len(ring.columns):
            for target, source in self.stretches(self.end, count):
                ring.columns[: len(rows.columns), target] = rows.columns[:, source]
                ring.known[: len(rows.columns), target] = rows.known[:, source]
                ring.known[len(rows.columns) :, target] = False
        if rows.carried is not None and count:
            self._carry(rows.carried)
        self.end += count
        if self.has_links:
            self._newest.reserve(count)
            self._newest.count += link_ids(ring, self._newest.slots, self.end - count, self.end)

    def stretches(self, number: int, count: int) -> Iterator[tuple[slice, slice]]:
        """Where rows number..number + count lie in the ring: one stretch, or two around its end."""
        start = number & int(self.arrays.mask)
        head = min(count, self.room - start)
        yield slice(start, start + head), slice(0, head)
        if head < count:
            yield slice(0, count - head), slice(head, count)

    def _carry(self, carried: Carried) -> None:
        """Keep a batch's columns; small batches are joined as they grow alike, so that there are never many."""
        first = self.end
        while self._carried and first - self._carried[-1][0] < min(2 * len(carried), _PIECE_ROWS):
            first, before = self._carried.pop()
            tables = [before.materialize(), carried.materialize()]
            carried = Carried(pa.concat_tables(tables, promote_options="default").combine_chunks())
        self._carried.append((first, carried))

    def _make_room(self, more: int, height: int, width: int) -> None:
        ring = self.arrays
        if len(self) + more <= self.room and height <= len(ring.numbers) and width <= len(ring.columns):
            return
        room = self.room
        while room < len(self) + more:
            room *= 2
        # A query that is added later may read columns that nobody did before: rows from before count as null there.
        grown = self._made(room, max(height, len(ring.numbers)), max(width, len(ring.columns)))
        numbers = np.arange(self.first, self.end)
        for new, old in zip(grown, ring, strict=True):
            if not _has_rows(old):
                continue
            if old.ndim == 1:
                new[numbers & grown.mask] = old[numbers & ring.mask]
            else:
                new[: len(old), numbers & grown.mask] = old[:, numbers & ring.mask]
        self._have(grown)

    def _have(self, arrays: Ring) -> None:
        self.arrays = arrays
        self._frame = pack(arrays)

    def _made(self, room: int, height: int, width: int) -> Ring:
        plain = {name: np.zeros(room, kind) for name, kind in _PLAIN.items()}
        if not self._has_time:
            plain["time"] = np.zeros(0, np.int64)
        return Ring(
            position=plain["time"] if self._is_time else plain["seq"],
            **plain,
            **{name: np.zeros(room if self.has_links else 0, kind) for name, kind in _LINKS.items()},
            numbers=np.zeros((height, room), np.float64),
            columns=np.zeros((width, room), np.int64),
            known=np.zeros((width, room), np.bool_),
            shift=0 if self._is_time else 1,
            mask=room - 1,
        )

    # -- rows out ----------------------------------------------------------------------------------------------

    def forget(self, horizon: int) -> int:
        """Drop rows at or below a position; returns how many."""
        first = int(first_after(self._frame, self.first, self.end, horizon))
        gone = first - self.first
        if gone and self.has_links:
            self._newest.count -= forget_ids(self.arrays, self._newest.slots, self.first, first)
        self.first = first
        while len(self._carried) > 1 and self._carried[1][0] <= first:
            self._carried.popleft()
        return gone

    def kill(self, ids: Ints, at: int) -> Ints:
        """The live rows of these ids die at a position; returns their numbers, ascending."""
        newest = self._newest.get(np.zeros(len(ids), np.int64), ids)
        killed = np.empty(len(self), np.int64)
        count = kill_ids(self.arrays, np.unique(newest), self.first, at, killed)
        return np.sort(killed[:count])

    def objects(self, numbers: Ints) -> Objects:
        """Rows by number, as results show them."""
        ring, place = self.arrays, numbers & self.arrays.mask
        time = ring.time[place] if self._has_time else np.zeros(len(place), np.int64)
        return Objects(
            ring.position[place] + ring.shift, ring.seq[place], time, ring.id[place], self._carried_of(numbers)
        )

    def _carried_of(self, numbers: Ints) -> Carried | None:
        if not self._carried:
            return None
        firsts = [first for first, _ in self._carried]
        unique, back = np.unique(numbers, return_inverse=True)
        tables, start = [], 0
        while start < len(unique):
            piece = max(0, bisect_right(firsts, int(unique[start])) - 1)
            upto = firsts[piece + 1] if piece + 1 < len(firsts) else NEVER
            stop = int(np.searchsorted(unique, upto))
            tables.append(self._carried[piece][1].take(unique[start:stop] - firsts[piece]).materialize())
            start = stop
        if not tables:
            return None
        return Carried(pa.concat_tables(tables, promote_options="default"), back.reshape(-1))

    def numbers_held(self) -> Ints:
        return np.arange(self.first, self.end)

    def ids_held(self) -> Ints:
        ids: Ints = np.unique(self.arrays.id[self.numbers_held() & self.arrays.mask])
        return ids

    # -- state -------------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        ring, place = self.arrays, self.numbers_held() & self.arrays.mask
        columns = {name: column[..., place] for name, column in ring._asdict().items() if _has_rows(column)}
        return {
            "first": self.first,
            "end": self.end,
            "columns": columns,
            "height": (len(ring.numbers), len(ring.columns)),
            "newest": self._newest.items(),
            "carried": [(first, carried.materialize()) for first, carried in self._carried],
        }

    def restore(self, state: State) -> None:
        self.first = self.end = state["first"]
        self._have(self._made(ROOM_MIN, *state["height"]))
        self._make_room(state["end"] - state["first"], *state["height"])
        self.end = state["end"]
        place = self.numbers_held() & self.arrays.mask
        for name, column in state["columns"].items():
            getattr(self.arrays, name)[..., place] = column
        self._newest = PairTable()
        self._newest.put(*state["newest"])
        self._carried = deque((first, Carried(table)) for first, table in state["carried"])

    def check(self) -> None:
        assert len(self) <= self.room, "the ring holds its rows"
        ring, place = self.arrays, self.numbers_held() & self.arrays.mask
        order = np.lexsort((ring.seq[place], ring.position[place]))
        assert (order == np.arange(len(self))).all(), "rows stand in the order of their windows"


def _has_rows(column: object) -> bool:
    return isinstance(column, np.ndarray) and column.shape[-1] > 0
