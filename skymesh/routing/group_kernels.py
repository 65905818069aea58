"""Group values of a batch: which are new, and which rows belong to none."""

from __future__ import annotations

from typing import Any

from ..algorithms.hash_kernels import find_pair, put_pair
from ..algorithms.kernel import kernel


@kernel
def register_groups(
    groups: Any, query: int, values: Any, known: Any, counts: Any, room: int, new_rows: Any, rejected: Any, tally: Any
) -> None:
    """Put values that are new into groups, up to `room` of them, by first appearance.

    groups maps (query, value) to 0 and has room for a batch; values i8[n], known b1[n], counts b1[n] (rows that the
    query may count). Rows with a new value go into new_rows i8[n], rows without a group into rejected i8[n]; tally
    i8[2] says how many of each.
    """
    tally[0] = tally[1] = 0
    for i in range(values.shape[0]):
        if not counts[i]:
            continue
        if known[i]:
            if find_pair(groups, query, values[i]) >= 0:
                continue
            if tally[0] < room:
                put_pair(groups, query, values[i], 0)
                new_rows[tally[0]] = i
                tally[0] += 1
                continue
        rejected[tally[1]] = i
        tally[1] += 1
