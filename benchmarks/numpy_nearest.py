"""What one would write with NumPy for nearest neighbours with a result after every object, exact.

The distances of a batch to all queries come in one go; only rows within the reach of a query, and held rows that
expire, are looked at one by one. Each query holds its nearest rows, some 3k of them, in order, and a *reach*: every row
of the window that is not held is at least that far away. When fewer than k are left the window is scanned for more.
Equal distances rank the newer row first.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.mouratidis_data import Batch, Floats
from benchmarks.numpy_topk import Ints, Rankings, values_of

Entry = tuple[float, int]  # distance and -seq: sorted, the nearest and newest comes first
Shown = tuple[int, int, list[Entry]]  # point, query, ranking from that point on
Waiting = defaultdict[int, dict[int, float]]  # by seq: the queries whose reach a row may be in, and how far it is

_ROUNDING = float(np.finfo(np.float32).eps)


class NumpyNearest:
    def __init__(self, centers: Floats, *, k: int, window: int) -> None:
        """centers f8[queries, d]"""
        self._centers = centers
        squares = (centers * centers).sum(axis=1)
        self._coefficients = np.stack([np.ones(len(centers)), *(-2 * centers.T), squares]).astype(np.float32)
        self._k, self._window = k, window
        self._wanted = 3 * k
        self._held: list[list[Entry]] = [[] for _ in centers]
        self._reach = np.full(len(centers), np.inf)
        self._holders: defaultdict[int, dict[int, float]] = defaultdict(
            dict
        )  # by seq: queries that may hold it, distance
        self._values = np.empty((centers.shape[1], 0))  # the window before the batch, and the batch
        self._first_seq = 0

    def fill(self, batches: Sequence[Batch]) -> None:
        """Take in rows without ranking them; then search for every query."""
        self._append(np.concatenate([values_of(batch) for batch in batches], axis=1))
        for query in range(len(self._centers)):
            self._search(query, self._next_seq)

    def push(self, batch: Batch) -> list[Shown]:
        """Take a batch in; each ranking that a row of it changed, after that row."""
        values = values_of(batch)
        start = self._next_seq
        self._append(values)
        waiting = self._passing(values, start)
        shown: list[Shown] = []
        for seq in range(start, self._next_seq):
            left = self._holders.pop(seq - self._window, None)
            if left is None and seq not in waiting:
                continue
            changed = {q for q, distance in (left or {}).items() if self._expire(q, distance, seq - self._window)}
            changed |= {q for q, distance in waiting.pop(seq, {}).items() if self._admit(q, distance, seq)}
            for query in changed:
                if len(self._held[query]) < self._k:
                    self._search_on(query, seq, waiting)
                shown.append((seq + 1, query, self._held[query][: self._k]))
        return shown

    def rankings(self) -> Rankings:
        """The distances as scores."""
        best = [held[: self._k] for held in self._held]
        return np.array([[-seq for _, seq in ranking] for ranking in best]), np.array([[d for d, _ in r] for r in best])

    # -- the window --------------------------------------------------------------------------------------------

    @property
    def _next_seq(self) -> int:
        return self._first_seq + self._values.shape[1]

    def _append(self, values: Floats) -> None:
        kept = self._values[:, -self._window :]
        self._first_seq = self._next_seq - kept.shape[1]
        self._values = np.concatenate((kept, values), axis=1)

    def _passing(self, values: Floats, start: int) -> Waiting:
        """A square of a distance is |x|^2 - 2 c x + |c|^2, a matrix product; what it lets pass is measured exactly."""
        features = np.stack([(values * values).sum(axis=0), *values, np.ones(values.shape[1])]).astype(np.float32)
        margin = 2 * (len(features) + 4) * _ROUNDING * (np.abs(features).max(axis=1) @ np.abs(self._coefficients))
        near = features.T @ self._coefficients <= (self._reach * self._reach + margin).astype(np.float32)
        row, query = np.divmod(np.flatnonzero(near), len(self._centers))
        distance = np.sqrt(_squares(values[:, row], self._centers[query].T))
        found: Waiting = defaultdict(dict)
        for seq, number, far in zip((row + start).tolist(), query.tolist(), distance.tolist(), strict=True):
            found[seq][number] = far
        return found

    # -- what is held ------------------------------------------------------------------------------------------

    def _expire(self, query: int, distance: float, seq: int) -> bool:
        """Drop a row if it is held still; whether it was shown."""
        held, entry = self._held[query], (distance, -seq)
        place = bisect_left(held, entry)
        if place == len(held) or held[place] != entry:
            return False
        del held[place]
        return place < self._k

    def _admit(self, query: int, distance: float, seq: int) -> bool:
        """Hold a row; whether it is shown."""
        if distance > self._reach[query]:
            return False  # the reach has shrunk since the batch was compared with it
        held, entry = self._held[query], (distance, -seq)
        insort(held, entry)
        self._holders[seq][query] = distance
        if len(held) > 2 * self._wanted:
            del held[self._wanted :]
            self._reach[query] = held[-1][0]
        return bisect_left(held, entry) < self._k

    # -- searches ----------------------------------------------------------------------------------------------

    def _search(self, query: int, upto: int) -> None:
        """Hold the nearest of the rows before upto that are in the window then."""
        first = max(self._first_seq, upto - self._window)
        part = self._values[:, first - self._first_seq : upto - self._first_seq]
        distances = np.sqrt(_squares(part, self._centers[query]))
        reach = np.inf
        if len(distances) > self._wanted:
            reach = np.partition(distances, self._wanted - 1)[self._wanted - 1]
        near: Ints = np.flatnonzero(distances <= reach)
        self._held[query] = sorted(zip(distances[near].tolist(), (-first - near).tolist(), strict=True))
        self._reach[query] = reach
        for distance, negative_seq in self._held[query]:
            self._holders[-negative_seq][query] = distance

    def _search_on(self, query: int, seq: int, waiting: Waiting) -> None:
        """Search as of the point after seq; what is left of the batch meets the wider reach."""
        self._search(query, seq + 1)
        distances = np.sqrt(_squares(self._values[:, seq + 1 - self._first_seq :], self._centers[query]))
        for later in np.flatnonzero(distances <= self._reach[query]).tolist():
            waiting[seq + 1 + later][query] = float(distances[later])


def _squares(values: Floats, center: Floats) -> Floats:
    """The square of the Euclidean distance, added up in the order of the attributes, as scores are."""
    total = (values[0] - center[0]) ** 2
    for value, middle in zip(values[1:], center[1:], strict=True):
        total += (value - middle) ** 2
    return total
