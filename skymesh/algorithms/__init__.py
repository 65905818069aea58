"""One file an algorithm, the kernels beside the policy that uses them, and the oracle.

`base` has the contract and composes an algorithm from a row side and a query side; `standings` is the query side that
all share; `tma`, `sma`, `tsl`, `sa` and `scan` are algorithms; `oracle` recomputes everything from all rows,
for the tests.
"""

from .base import Algorithm, RowSide
from .sa import StrictSkyband
from .scan import Scan
from .sma import SkybandMonitoring
from .tma import TopMonitoring
from .tsl import SortedLists

ALGORITHMS: dict[str, type[Algorithm]] = {
    algorithm.name: algorithm for algorithm in (TopMonitoring, SkybandMonitoring, SortedLists, StrictSkyband, Scan)
}

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "RowSide",
    "Scan",
    "SkybandMonitoring",
    "SortedLists",
    "StrictSkyband",
    "TopMonitoring",
]
