"""skymesh: continuous top-k queries over sliding windows, exact, as a change log.

    engine = skymesh.Engine(skymesh.load("queries.yaml"))
    changes = engine.push("trades", batch)
    engine.top("big-trades")

Loading this package loads neither Ray nor Spark, and the engine only when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import InputError, Problem, QueryError, QueryFileError, SkymeshError
from .queries import Active, Attribute, Keep, QuerySet, Stream, Threshold, TopK, Window, load, loads

if TYPE_CHECKING:
    from .actors import Engine

__version__ = "0.1.0"

__all__ = [
    "Active",
    "Attribute",
    "Engine",
    "InputError",
    "Keep",
    "Problem",
    "QueryError",
    "QueryFileError",
    "QuerySet",
    "SkymeshError",
    "Stream",
    "Threshold",
    "TopK",
    "Window",
    "load",
    "loads",
]


def __getattr__(name: str) -> Any:
    # The engine brings Numba and Arrow with it: half a second that checking a query file need not wait for.
    if name == "Engine":
        from .actors import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
