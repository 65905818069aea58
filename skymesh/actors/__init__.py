"""What runs queries: the engine that drives algorithms in this process."""

from .engine import Engine

__all__ = ["Engine"]
