"""Generated streams: the same rows for the same seed, however they are cut."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa
import pytest

import skymesh as sm
from skymesh.ingest.generators import STREAMS, generate, generated_table


@pytest.mark.parametrize("stream", STREAMS)
def test_the_batch_size_changes_nothing(stream):
    whole = generated_table(stream, 9_000)
    cut = pa.Table.from_batches(list(islice(generate(stream, rows_per_batch=750), 12)))
    assert cut.equals(whole)
    assert not generated_table(stream, 100, seed=8).equals(whole.slice(0, 100))


def test_generated_streams_fit_the_demo_queries():
    queries = sm.load("configs/queries/demo.yaml")
    engine = sm.Engine(queries)
    for stream in queries.streams:
        engine.push(stream, generated_table(stream, 5_000))
    stats = engine.stats()["streams"]
    assert all(part["rows"] == 5_000 for part in stats.values())
    assert all(not any(part["rejects"].values()) for part in stats.values())
