"""What a user may ask: typed models, the YAML that becomes them, score expressions, validation.

Nothing here computes a ranking, and nothing here loads NumPy: a query set can be read, checked and explained to an
editor in a few milliseconds. `load` reads a file, `models` has what comes out, `expressions` and `shapes` turn a
score into data that kernels run.
"""

from .loader import load, loads
from .models import Active, AnyQuery, Query, QuerySet, Threshold, TopK
from .streams import Attribute, Keep, Stream
from .windows import Window

__all__ = [
    "Active",
    "AnyQuery",
    "Attribute",
    "Keep",
    "Query",
    "QuerySet",
    "Stream",
    "Threshold",
    "TopK",
    "Window",
    "load",
    "loads",
]
