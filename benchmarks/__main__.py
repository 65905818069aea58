"""The benchmarks by name, one after the other: `python -m benchmarks [NAME ...] [--part PART ...] [--json]`."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys

from benchmarks import harness

COMPARED = ("tsl", "tma", "sma")
BENCHMARKS = ("push", "skyband", "load", "peers", "mouratidis")


def main() -> None:
    asked = _arguments()
    modules = [importlib.import_module(f"benchmarks.{name}") for name in asked.names or BENCHMARKS]
    with contextlib.redirect_stdout(sys.stderr if asked.json else sys.stdout):
        for module in modules:
            if hasattr(module, "PARTS"):
                module.main(asked.part or list(module.PARTS), algorithms=asked.algorithms.split(","))
            else:
                module.main()
    if asked.json:
        print(json.dumps(harness.reported, indent=2))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Tables on stdout, JSON in out/.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all unless named: {', '.join(BENCHMARKS)}")
    parser.add_argument("--part", action="append", help="one part of a benchmark that has parts; may be repeated")
    parser.add_argument(
        "--algorithms", default=",".join(COMPARED), help="what mouratidis runs of skymesh, comma-separated"
    )
    parser.add_argument("--json", action="store_true", help="JSON on stdout, the tables on stderr")
    asked = parser.parse_args()
    for name in asked.names:
        if name not in BENCHMARKS:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    for name in asked.algorithms.split(","):
        if name not in COMPARED:
            parser.error(f"mouratidis does not compare {name!r}; it compares {', '.join(COMPARED)}")
    return asked


if __name__ == "__main__":
    main()
