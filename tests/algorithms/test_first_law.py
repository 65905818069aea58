"""The first law: a query's results are a function of the stream and the query, not of how the stream was cut."""

from __future__ import annotations

import random
from datetime import timedelta

import pyarrow as pa
import pytest

import skymesh as sm
from skymesh.ingest.generators import generated_table

US = timedelta(microseconds=1)
ROWS = 1_200
CUTS = range(50)
SHARES = 5
NOW = 2 * 10**15

QUERIES = [
    {"name": "rows", "k": 5, "score": "price * volume", "window": {"count": 700, "slide": 130}, "emit": "ranked"},
    {"name": "every row", "k": 3, "score": "price", "window": {"count": 500}},
    {"name": "tumbling", "k": 4, "score": "volume", "window": {"tumbling": "200ms"}, "emit": "snapshot"},
    {"name": "instants", "k": 3, "score": "0.3 * price + log(volume)", "window": {"time": "250ms"}},
    {
        "name": "sliding",
        "k": 5,
        "score": "sqrt(abs(price - 80)) - volume",
        "window": {"time": "400ms", "slide": "35ms"},
    },
    {"name": "groups", "k": 2, "score": "price", "window": {"time": "300ms", "slide": "50ms"}, "group_by": "venue"},
    {"name": "entries", "k": 6, "score": "volume / price", "window": {"count": 900, "slide": 7}, "emit": "entries"},
    {"name": "landmark", "k": 4, "score": "-price", "window": "landmark", "where": "venue in ['XLON', 'XPAR']"},
    {"name": "latest", "k": 3, "score": "price", "window": {"time": "300ms"}, "per_id": "latest", "emit": "ranked"},
    {"name": "best", "k": 3, "score": "volume", "window": {"count": 400, "slide": 9}, "per_id": "best"},
    {"name": "filtered", "k": 3, "score": "price", "window": {"count": 250}, "where": {"price": [50, 200]}},
]


@pytest.fixture(scope="module")
def stream_and_rows():
    stream = sm.Stream(
        id="id",
        time="at",
        lateness="120ms",  # of disorder of up to a second, so that many rows are late and many are not
        attributes=["price", "volume"],
        columns=["symbol", "venue"],
    )
    table = generated_table("trades", ROWS)
    ids = pa.array([hash_of(text) for text in table.column("symbol").to_pylist()])
    return stream, table.append_column("id", ids)


def hash_of(text: str) -> int:
    return sum(ord(letter) * 31**i for i, letter in enumerate(text)) % 97


def logs(stream: sm.Stream, table: pa.Table, sizes: list[int]) -> dict[str, list[dict]]:
    """Each query's change log, for one way to cut the stream."""
    carried = [sm.TopK(stream="s", carry=["symbol", "price"], **query) for query in QUERIES]
    engine = sm.Engine(sm.QuerySet(streams={"s": stream}, queries=carried))
    found: dict[str, list[dict]] = {query["name"]: [] for query in QUERIES}
    start, tables = 0, []
    for size in sizes:
        tables.append(engine.push("s", table.slice(start, size), now=NOW))
        start += size
    tables.append(engine.flush())
    for changes in tables:
        for row in changes.to_pylist():
            found[row["query"]].append(row)
    return found


@pytest.mark.parametrize("share", range(SHARES))
def test_fifty_ways_to_cut_a_stream_give_the_same_logs_bit_for_bit(stream_and_rows, share):
    stream, table = stream_and_rows
    whole = logs(stream, table, [ROWS])
    assert all(whole.values()), "every query has something to say"
    for seed in CUTS[share::SHARES]:
        random.seed(seed)
        longest = random.choice([1, 2, 5, 20, 100, 400, 1500])
        sizes = []
        while sum(sizes) < ROWS:
            sizes.append(min(random.randint(0 if longest > 2 else 1, longest), ROWS - sum(sizes)))
        cut = logs(stream, table, sizes)
        for name, log in whole.items():
            assert cut[name] == log, f"query {name!r} differs when cut with seed {seed} into parts of up to {longest}"
