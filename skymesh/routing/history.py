"""The latest rows of a stream, held for queries that are added later with `start: window`.

What a stream declares with `keep:` decides how long, in rows and in time; a query that needs more is refused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ..algorithms.asked import span_of
from ..errors import QueryError
from ..queries import AnyQuery, Stream
from ..queries.units import microseconds_of
from .raw_rows import Ints, RawRows, together


class _Kept:
    """Rows in the order of a kind of window: by seq, or by (time, seq)."""

    def __init__(self) -> None:
        self._pieces: deque[RawRows] = deque()

    def add(self, rows: RawRows) -> None:
        if len(rows):
            self._pieces.append(rows)

    def forget_seqs(self, before: int) -> None:
        """Drop rows with a seq below this one."""
        self._forget(lambda piece: int(np.searchsorted(piece.seq, before)))

    def forget_times(self, upto: int) -> None:
        """Drop rows at or before a time."""
        self._forget(lambda piece: int(np.searchsorted(piece.time, upto, side="right")))

    def _forget(self, gone: Callable[[RawRows], int]) -> None:
        while self._pieces:
            piece = self._pieces[0]
            cut = gone(piece)
            if cut < len(piece):
                # Keep whole pieces until half of one is gone: then its memory is worth freeing.
                if 2 * cut > len(piece):
                    self._pieces[0] = piece.take(np.arange(cut, len(piece)))
                return
            self._pieces.popleft()

    def delete(self, ids: Ints) -> None:
        self._pieces = deque(piece for piece in (piece.without(ids) for piece in self._pieces) if len(piece))

    def rows(self) -> RawRows | None:
        return together(list(self._pieces)) if self._pieces else None

    def recode(self, encode: Callable[[pa.Array], Ints]) -> None:
        """Give ids that are texts their codes."""
        self._pieces = deque(piece.recoded(encode) for piece in self._pieces)

    def ids_held(self) -> Ints:
        return np.concatenate([np.empty(0, np.int64), *[piece.id for piece in self._pieces]])


class History:
    """Both orders of a stream's latest rows."""

    def __init__(self, name: str, stream: Stream) -> None:
        self._name = name
        keep = stream.keep
        self._count = None if keep is None else keep.count
        self._time = None if keep is None or keep.time is None else microseconds_of(keep.time)
        self._by_row = _Kept()
        self._by_time = _Kept()

    def add_arrived(self, rows: RawRows, next_seq: int) -> None:
        if self._count is not None:
            self._by_row.add(rows)
            self._by_row.forget_seqs(next_seq - self._count)

    def add_due(self, rows: RawRows, upto: int) -> None:
        if self._time is not None:
            self._by_time.add(rows)
            self._by_time.forget_times(upto - self._time)

    def delete(self, ids: Ints) -> None:
        self._by_row.delete(ids)
        self._by_time.delete(ids)

    def recode(self, encode: Callable[[pa.Array], Ints]) -> None:
        self._by_row.recode(encode)
        self._by_time.recode(encode)

    def ids_held(self) -> Ints:
        return np.concatenate((self._by_row.ids_held(), self._by_time.ids_held()))

    def recall(self, query: AnyQuery, upto: int, reached: int) -> list[RawRows] | None:
        """The rows that a query starts with, or None if it starts with the next one.

        All points up to `upto` are over; `reached` is the last position that any row has. A landmark in the past and
        `start: window` look back; QueryError if the stream does not keep rows as long as that.
        """
        span, window = span_of(query), query.window
        kept = self._time if span.is_time else self._count
        if window.landmark is not None:
            if window.landmark == "start" or span.after >= reached:
                return None
            if kept is None or upto - kept > span.after:
                raise QueryError(
                    f"query {query.name!r}: its landmark lies in the past, and stream {self._name!r} does not keep "
                    "rows that long; declare a longer `keep:` on the stream, or choose a later landmark"
                )
            begins = span.after
        elif query.start == "now":
            return None
        else:
            if kept is None or kept < span.size:
                unit = "time" if span.is_time else "count"
                raise QueryError(
                    f"query {query.name!r}: start: window needs the rows of its window ({window}), and stream "
                    f"{self._name!r} does not keep them; declare keep: {{{unit}: ...}} there, or use start: now"
                )
            begins = max(upto - span.size, span.after)
        rows = (self._by_time if span.is_time else self._by_row).rows()
        if rows is None:
            return []
        at = rows.time if span.is_time else rows.at
        return [rows.take(np.flatnonzero(at > begins))]
