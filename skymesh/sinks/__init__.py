"""Where results go: JSON lines, Parquet, or a table on the terminal.

A sink takes tables of changes in order and is closed once. What was written before a failure stays readable, except in
Parquet, which is complete when it is closed.
"""

from .files import JsonLines, ParquetFile, Sink, open_sink
from .terminal import TerminalTable

__all__ = ["JsonLines", "ParquetFile", "Sink", "TerminalTable", "open_sink"]
