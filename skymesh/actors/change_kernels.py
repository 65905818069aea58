"""What a row of the change log says beside what its ranking told."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.columns import Op
from ..algorithms.kernel import kernel

# A ranking of a team: query and group as numbers of the log (group -1: none), the group's place in the order in which
# the groups of its query were registered, and the sign that makes a score of a merit.
LABEL = np.dtype([("query", "i4"), ("group", "i4"), ("place", "i4"), ("sign", "f8")], align=True)

_EMPTY = int(Op.EMPTY)
_END = int(Op.END)


@kernel
def label_rows(labels: Any, ranking: Any, op: Any, merit: Any, query: Any, group: Any, place: Any, score: Any) -> Any:
    """Give each row what the label of its ranking says: query, group, place i4[n] and score f8[n] are written.

    Returns how many rows have a group, and how many tell of no object. One pass: 5 us for 740 rows, the calls of
    NumPy that it replaces take 23.
    """
    grouped, bare = 0, 0
    for i in range(ranking.shape[0]):
        label = labels[ranking[i]]
        query[i], group[i], place[i] = label.query, label.group, label.place
        score[i] = label.sign * merit[i]
        grouped += label.group >= 0
        bare += op[i] >= _EMPTY
    return grouped, bare


@kernel
def stands_in_order(query: Any, at: Any, place: Any, op: Any) -> bool:
    """Whether rows stand by query, then at, then place. One that tells of an end comes last, whatever its `at`."""
    for i in range(1, query.shape[0]):
        ends, ended = op[i] == _END, op[i - 1] == _END
        if query[i] != query[i - 1]:
            falls = query[i] < query[i - 1]
        elif ends != ended:
            falls = ended
        elif at[i] != at[i - 1]:
            falls = at[i] < at[i - 1]
        else:
            falls = place[i] < place[i - 1]
        if falls:
            return False
    return True
