"""The embedded engine: a query set in this process, without Ray and without Spark.

Every call that can change a ranking returns the changes that it caused. After an error the engine is as it was before
the call. An engine belongs to one thread at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ..algorithms import Algorithm
from ..errors import InputError, QueryError
from ..queries import AnyQuery, QuerySet, Threshold, TopK
from ..queries.checks import faults_of_query, unknown_stream
from ..routing.planner import Plan, choices, choose, plan
from ..routing.reader import microseconds
from ..routing.rejects import Rejects
from .change_chunks import Piece
from .change_log import ChangeLog
from .lane import Lane, Running


class Engine:
    """Runs a query set over rows that are pushed.

    >>> import skymesh as sm
    >>> queries = sm.QuerySet(
    ...     streams={"s": sm.Stream(id="id", attributes=["x"])},
    ...     queries=[sm.TopK(name="q", stream="s", k=1, score="x", window={"count": 3})],
    ... )
    >>> with sm.Engine(queries) as engine:
    ...     engine.push("s", {"id": [7, 8], "x": [1.0, 2.0]}).select(["op", "id", "rank"]).to_pylist()
    [{'op': 'enter', 'id': 7, 'rank': 1}, {'op': 'leave', 'id': 7, 'rank': 1}, {'op': 'enter', 'id': 8, 'rank': 1}]
    """

    def __init__(self, queries: QuerySet) -> None:
        if not isinstance(queries, QuerySet):
            raise QueryError(
                f"an engine runs a QuerySet, not {type(queries).__name__}; load one with skymesh.load(FILE)"
            )
        texts = any(stream.id.type == "string" for stream in queries.streams.values())
        self._log = ChangeLog(ids_are_texts=texts)
        self._rejects = Rejects(ids_are_texts=texts)
        self._lanes = {
            name: Lane(name, stream, self._log, self._rejects, self._make_algorithm)
            for name, stream in queries.streams.items()
        }
        for query, choice in zip(queries.queries, choices(queries), strict=True):
            self._lanes[query.stream].add(query, choice, first=True)

    def _make_algorithm(self, kind: type[Algorithm], **options: Any) -> Algorithm:
        return kind(**options)

    # -- what changes a ranking --------------------------------------------------------------------------------

    def push(self, stream: str, data: Any, *, now: datetime | int | None = None) -> pa.Table:
        """Take a batch in and return the changes of the points that it completed.

        `data` is a RecordBatch, a Table, a dict of arrays or a pandas frame. `now` is the producer's clock, by which
        rows from the future are told; it defaults to this machine's.
        """
        clock = time.time_ns() // 1000 if now is None else microseconds(now, "now")
        return self._log.table(self._lane(stream).push(data, clock))

    def heartbeat(self, stream: str, time: datetime | int) -> pa.Table:
        """Move an idle stream on to an event time."""
        lane = self._timed_lane(stream)
        return self._log.table(lane.heartbeat(microseconds(time, "time")))

    def flush(self) -> pa.Table:
        """The end of the streams: give every point up to the greatest time, and the one that covers it."""
        pieces: list[Piece] = []
        for lane in self._lanes.values():
            pieces += lane.flush()
        return self._log.table(pieces)

    def delete(self, stream: str, ids: Iterable[Any]) -> pa.Table:
        """Withdraw all live rows of these ids, on a stream that declares `deletes: true`."""
        lane = self._lane(stream)
        if not lane.stream.deletes:
            raise QueryError(f"rows of stream {stream!r} cannot be deleted; declare `deletes: true` on it")
        return self._log.table(lane.delete(self._ids(lane, ids)))

    def add(self, query: AnyQuery) -> pa.Table:
        """Start a query while the streams run."""
        if not isinstance(query, TopK | Threshold):
            raise QueryError(f"add takes a query such as skymesh.TopK(...), not {type(query).__name__}")
        if self._find(query.name) is not None:
            raise QueryError(f"there is a query {query.name!r} already; remove it first, or choose another name")
        lane = self._lane(query.stream)
        faults = faults_of_query(query, lane.stream)
        if faults:
            told = "; ".join(f"{'.'.join(map(str, place))}: {message}" for place, message in faults)
            raise QueryError(f"query {query.name!r}: {told}")
        lane.add(query, choose(query, lane.stream, len(lane) + 1), first=False)
        return self._log.table([])

    def remove(self, name: str) -> pa.Table:
        """Stop a query; the one row that comes back has the op `end`."""
        lane, _ = self._running(name)
        return self._log.table([lane.remove(name)])

    # -- what looks at rankings --------------------------------------------------------------------------------

    def top(self, name: str, group: str | None = None) -> pa.Table:
        """The ranking of a query at its last evaluation point; of all its groups unless one is named."""
        lane, running = self._running(name)
        return self._log.table(lane.result(running, group)).drop_columns("op")

    def rejects(self) -> pa.Table:
        """The last 10,000 rows that did not rank, or not everywhere: stream, reason, seq, id, time, detail."""
        return self._rejects.table()

    def stats(self) -> dict[str, Any]:
        """Counts of streams and queries, as plain data."""
        queries = {
            running.query.name: {
                "algorithm": running.team.algorithm.name,
                **running.team.algorithm.stats(running.slot),
                "group_rejects": running.group_rejects,
            }
            for lane in self._lanes.values()
            for running in lane
        }
        return {"streams": {name: lane.stats() for name, lane in self._lanes.items()}, "queries": queries}

    def explain(self) -> list[Plan]:
        """What was picked for each query, and why."""
        return [plan(running.query, lane.stream, running.choice) for lane in self._lanes.values() for running in lane]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held that needs closing; leaving the block flushes nothing."""

    # -- finding things ----------------------------------------------------------------------------------------

    def _lane(self, stream: str) -> Lane:
        if stream not in self._lanes:
            raise QueryError(unknown_stream(stream, self._lanes))
        return self._lanes[stream]

    def _timed_lane(self, stream: str) -> Lane:
        lane = self._lane(stream)
        if lane.stream.time is None:
            raise QueryError(f"stream {stream!r} has no event time to move; declare `time: COLUMN` on it")
        return lane

    def _find(self, name: str) -> tuple[Lane, Running] | None:
        for lane in self._lanes.values():
            running = lane.find(name)
            if running is not None:
                return lane, running
        return None

    def _running(self, name: str) -> tuple[Lane, Running]:
        found = self._find(name)
        if found is None:
            names = [running.query.name for lane in self._lanes.values() for running in lane]
            raise QueryError(f"there is no query {name!r}; running: {', '.join(names[:20]) or 'none'}")
        return found

    def _ids(self, lane: Lane, ids: Iterable[Any]) -> np.ndarray:
        """Ids as rankings know them."""
        values = ids.to_pylist() if isinstance(ids, pa.Array | pa.ChunkedArray) else list(ids)
        if lane.stream.id.type == "int64":
            for value in values:
                if isinstance(value, bool) or not isinstance(value, int | np.integer) or not -(2**63) <= value < 2**63:
                    raise InputError(f"{value!r} is no id of stream {lane.name!r}, whose ids are int64")
            return np.array(values, np.int64)
        for value in values:
            if not isinstance(value, str):
                raise InputError(f"{value!r} is no id of stream {lane.name!r}, whose ids are texts")
        assert lane.splitter.id_texts is not None, "a stream with deletions tells ids apart"
        codes = lane.splitter.id_texts.encode(pa.array(values, pa.string()), adds=False)
        return codes[codes >= 0]
