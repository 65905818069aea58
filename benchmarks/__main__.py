"""All benchmarks, one after the other: `python -m benchmarks`, or some of them by name."""

from __future__ import annotations

import importlib
import sys

BENCHMARKS = ("push", "skyband", "load", "peers")


def main() -> None:
    wanted = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    for name in wanted:
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
