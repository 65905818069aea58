"""Compile every kernel into Numba's cache, so that no command later waits for the compiler.

Run by `make setup` as `python -m skymesh.cluster.warm`. Numba notices when a kernel's own file changed, but not when a
kernel that it calls did, so a stamp over all kernel sources decides whether the cache is still good.
"""

from __future__ import annotations

import hashlib
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

import skymesh

PACKAGE = Path(skymesh.__file__).parent
_STAMP = PACKAGE / "__pycache__" / "kernels.stamp"
_MICROSECOND = timedelta(microseconds=1)


def kernel_files() -> list[Path]:
    names = ("*_kernels.py", "kernel.py", "frames.py", "simd.py", "standing_arrays.py")
    return sorted(path for name in names for path in PACKAGE.rglob(name))


def drop_stale_kernels() -> bool:
    """Empty the cache if a kernel source changed since it was filled; true if it was emptied."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in kernel_files())).hexdigest()
    if _STAMP.exists() and _STAMP.read_text() == digest:
        return False
    for path in PACKAGE.rglob("__pycache__/*.nb[ic]"):
        path.unlink()
    _STAMP.parent.mkdir(exist_ok=True)
    _STAMP.write_text(digest)
    return True


def warm() -> None:
    """Run a little of everything."""
    stream = {
        "time": "t",
        "attributes": ["x", "y"],
        "columns": {"venue": "string", "size": "int64", "big": "bool", "fee": "float64"},
        "keep": {"time": 9 * _MICROSECOND, "count": 9},
    }
    streams = {
        "plain": skymesh.Stream(id="id", **stream),
        "edited": skymesh.Stream(id={"column": "name", "type": "string"}, deletes=True, **stream),
    }
    queries = [
        skymesh.TopK(name=f"{name} {number}", stream=name, **asked)
        for name in streams
        for number, asked in enumerate(_QUERIES if name == "plain" else [{**a, "algorithm": "scan"} for a in _QUERIES])
        if not (name == "edited" and asked["window"] == "landmark")
    ]
    with skymesh.Engine(skymesh.QuerySet(streams=streams, queries=queries)) as engine:
        for name in streams:
            for first in (0, 20, 40):
                engine.push(name, _batch(first), now=10**15)
            engine.heartbeat(name, 70)
            engine.add(
                skymesh.TopK(name=f"late {name}", stream=name, k=2, score="x", window={"count": 9}, start="window")
            )
            engine.push(name, pa.record_batch(_batch(80)), now=10**15)  # Arrow lends memory that is read-only
        engine.delete("edited", ["n1", "n2"])
        engine.push("edited", _batch(100), now=10**15)
        engine.flush()
        engine.push("plain", {**_batch(120), "x": [None, "text", *range(18)]}, now=10**15)
        engine.remove("plain 0")
    _warm_long(*streams.values())
    _warm_bounds()


_QUERIES: list[dict[str, object]] = [
    {"k": 2, "score": "x + y", "window": {"count": 7}},
    {"k": 2, "score": "log(x) - y ** 3", "window": {"time": 9 * _MICROSECOND}, "emit": "ranked"},
    {"k": 2, "score": "x * y", "window": "landmark", "where": "venue in ['A'] and size > 2 and big and fee < 1"},
    {"k": 2, "score": "x", "window": {"tumbling": 5}, "group_by": "venue", "emit": "entries"},
    {
        "k": 2,
        "score": {"distance": {"x": 1}},
        "window": {"count": 9, "slide": 3},
        "per_id": "latest",
        "emit": "entries",
    },
    {"k": 2, "score": "x", "window": {"count": 9, "slide": 3}, "per_id": "best", "emit": "snapshot"},
]


def _batch(first: int, count: int = 20) -> dict[str, object]:
    n = np.arange(first, first + count)
    return {
        "id": n % 5,
        "name": pa.array([f"n{i % 5}" if count == 20 else f"n{i}" for i in n]),
        "t": n,
        "x": (n * 7 % 5).astype(float),
        "y": (n * 3 % 4).astype(float),
        "venue": pa.array([("A", "B", None)[i % 3] for i in n]),
        "size": n % 4,
        "big": n % 2 == 0,
        "fee": (n % 3).astype(float),
    }


def _warm_long(stream: skymesh.Stream, deletes: skymesh.Stream) -> None:
    """Enough rows for lists that are merged and for cells that are searched, fill up and run empty."""
    ranked = {"k": 2, "score": "x + y", "window": {"count": 30}}
    plain = [skymesh.TopK(name=name, stream="plain", algorithm=name, **ranked) for name in ("tsl", "tma", "sma")]
    edited = [skymesh.TopK(name=kind, stream="edited", per_id=kind, **ranked) for kind in ("all", "latest")]
    queries = skymesh.QuerySet(streams={"plain": stream, "edited": deletes}, queries=plain + edited)
    with skymesh.Engine(queries) as engine:
        for first in range(0, 400, 20):
            engine.push("plain", _batch(first), now=10**15)
            engine.push("edited", _batch(first), now=10**15)
        engine.delete("edited", ["n1"])
        engine.remove("tma")
        engine.push("edited", _batch(400, 10_000), now=10**15)  # ids to be forgotten, and rows to learn domains from
        engine.push("edited", _batch(10_400), now=10**15)


def _warm_bounds() -> None:
    from skymesh.algorithms.asked import ask
    from skymesh.algorithms.score_kernels import score_all
    from skymesh.algorithms.score_table import ScoreTable, score_bounds
    from skymesh.queries.programs import Places

    stream = skymesh.Stream(id="id", attributes=["x"])
    query = skymesh.TopK(name="q", stream="s", k=1, score="exp(x)", window={"count": 1})
    scoring = ask(query, stream, Places({"x": 0}, {}, lambda _: 0), 0).scoring
    score_bounds(scoring, np.zeros(1), np.ones(1))
    table = ScoreTable()
    table.put(0, scoring)
    programs, _, stack = table.arrays()
    nothing = np.empty((0, 1), np.int64), np.empty((0, 1), np.bool_)
    score_all(programs, 0, np.ones((1, 1)), *nothing, stack, np.empty(1))


def main() -> None:
    began = time.perf_counter()
    if drop_stale_kernels():
        print("compiling kernels (once, about two minutes) ...", file=sys.stderr, flush=True)
    warm()
    print(f"kernels ready after {time.perf_counter() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
