"""Rows that did not rank, or not everywhere: counted by reason, the latest kept.

Nothing disappears without a count and a reason. The last 10,000 are kept to be looked at.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

KEPT = 10_000
REASONS = ("null", "nan", "infinite", "type", "late", "future", "group")


@dataclass(frozen=True, slots=True)
class Reject:
    stream: str
    reason: str
    seq: int | None
    id: int | str | None
    time: int | None
    detail: str


class Rejects:
    """Of all streams of an engine, in the order in which they came."""

    def __init__(self, *, ids_are_texts: bool) -> None:
        self._latest: deque[Reject] = deque(maxlen=KEPT)
        self._counts: dict[str, Counter[str]] = {}
        self._ids_are_texts = ids_are_texts

    def count(self, stream: str, reason: str, more: int) -> None:
        self._counts.setdefault(stream, Counter())[reason] += more

    def add(self, rejects: list[Reject]) -> None:
        """Keep rejects that were counted; only the last of many are worth building."""
        self._latest.extend(rejects)

    def counts(self, stream: str) -> dict[str, int]:
        counts = self._counts.get(stream, Counter())
        return {reason: counts[reason] for reason in REASONS}

    def table(self) -> pa.Table:
        rows = list(self._latest)
        ids = [str(row.id) if self._ids_are_texts and row.id is not None else row.id for row in rows]
        return pa.table(
            {
                "stream": pa.array([row.stream for row in rows], pa.string()),
                "reason": pa.array([row.reason for row in rows], pa.string()),
                "seq": pa.array([row.seq for row in rows], pa.int64()),
                "id": pa.array(ids, pa.string() if self._ids_are_texts else pa.int64()),
                "time": pa.array([row.time for row in rows], pa.timestamp("us", "UTC")),
                "detail": pa.array([row.detail for row in rows], pa.string()),
            }
        )


def last_rows(rows: np.ndarray) -> np.ndarray:
    """Of rows to be rejected, those that will still be kept."""
    return rows[-KEPT:]
