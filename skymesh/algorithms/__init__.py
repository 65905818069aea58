"""One file an algorithm, the kernels beside the policy that uses them, and the oracle.

`base` has the contract and composes an algorithm from a row side and a query side; `standings` is the query side that
all share; `sa` and `scan` are algorithms; `oracle` recomputes everything from all rows and is what the tests believe.
"""

from .base import Algorithm, RowSide
from .sa import StrictSkyband
from .scan import Scan
from .sma import SkybandMonitoring
from .tma import TopMonitoring

ALGORITHMS: dict[str, type[Algorithm]] = {
    algorithm.name: algorithm for algorithm in (TopMonitoring, SkybandMonitoring, StrictSkyband, Scan)
}

__all__ = ["ALGORITHMS", "Algorithm", "RowSide", "Scan", "SkybandMonitoring", "StrictSkyband", "TopMonitoring"]
