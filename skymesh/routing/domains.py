"""The domains of a stream's attributes: as declared, or learned once from its first rows.

A domain guides the index and nothing else, so what is learned never shows in a result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..algorithms.boxes import Axis
from ..queries import Stream

ROWS_LEARNED_FROM = 10_000


class Domains:
    """One axis an attribute, None as long as its domain is not known."""

    def __init__(self, stream: Stream) -> None:
        declared = list(stream.attributes.values())
        self._intervals = [attribute.intervals for attribute in declared]
        self.axes: list[Axis | None] = [
            Axis(*attribute.domain, attribute.intervals) if attribute.domain else None for attribute in declared
        ]
        self._rows_wanted = ROWS_LEARNED_FROM if None in self.axes else 0
        self._least = np.full(len(declared), np.inf)
        self._most = np.full(len(declared), -np.inf)

    def learn(self, numbers: NDArray[np.float64]) -> bool:
        """Look at rows with a position, f8[d, n]; true when what was missing is known from now on."""
        if not self._rows_wanted or not numbers.shape[1]:
            return False
        first = numbers[: len(self.axes), : self._rows_wanted]
        self._least = np.minimum(self._least, first.min(axis=1))
        self._most = np.maximum(self._most, first.max(axis=1))
        self._rows_wanted -= first.shape[1]
        if self._rows_wanted:
            return False
        self.axes = [
            Axis(float(low), float(high), intervals) if axis is None else axis
            for axis, low, high, intervals in zip(self.axes, self._least, self._most, self._intervals, strict=True)
        ]
        return True
