"""The instants of a stream: event times of rows that are due, and those times plus a window's length.

Time windows without a slide are looked at where their own rows come and go, so they rarely need this. They do for what
makes no instant by itself, a deletion or a late start, which shows at the next instant of the stream; and to say which
point was the last one passed.
"""

from __future__ import annotations

import numpy as np

from .columns import EVER, NEVER, Ints


class Instants:
    """Distinct times, ascending."""

    def __init__(self) -> None:
        self._times: Ints = np.empty(0, np.int64)

    def add(self, times: Ints) -> None:
        """Times of rows that fell due, ascending and not before those that are here."""
        if len(times):
            new = times[np.concatenate(([True], times[1:] != times[:-1]))]
            if len(self._times) and new[0] == self._times[-1]:
                new = new[1:]
            self._times = np.concatenate((self._times, new))

    def recall(self, times: Ints) -> None:
        """Times of rows that fell due before: from among those that are here, or earlier."""
        self._times = np.union1d(self._times, times)

    def first(self, position: int, size: int, since: int) -> int:
        """The first instant at or after a position, from rows later than `since`; NEVER if none is known."""
        found = NEVER
        for shift in (0,) if size >= NEVER else (0, size):
            i = int(np.searchsorted(self._times, max(position - shift, since + 1)))
            if i < len(self._times):
                found = min(found, int(self._times[i]) + shift)
        return found

    def last(self, position: int, size: int, since: int) -> int:
        """The last instant at or before a position, from rows later than `since`; EVER if there is none."""
        found = EVER
        for shift in (0,) if size >= NEVER else (0, size):
            i = int(np.searchsorted(self._times, position - shift, side="right")) - 1
            if i >= 0 and self._times[i] > since:
                found = max(found, int(self._times[i]) + shift)
        return found

    def forget(self, horizon: int) -> None:
        """Drop times at or below a position, but for the last of them, which `last` may still need."""
        cut = int(np.searchsorted(self._times, horizon, side="right")) - 1
        if cut > 0:
            self._times = self._times[cut:]

    def snapshot(self) -> Ints:
        return self._times.copy()

    def restore(self, times: Ints) -> None:
        self._times = times.copy()
