"""What push takes: every shape of input, every type, and what is said of the rest."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skymesh as sm
from skymesh.routing.plain_columns import PlainReader
from skymesh.routing.reader import Fault, Reader

STREAM = sm.Stream(
    id="id",
    time="t",
    attributes=["x", "y"],
    columns={"venue": "string", "qty": "int64", "big": "bool", "fee": "float64"},
)
TEXT_IDS = STREAM.model_copy(update={"id": sm.Stream(id={"column": "id", "type": "string"}, attributes=["x"]).id})
T0 = datetime(2026, 1, 1, tzinfo=UTC)
GOOD = {
    "id": [1, 2],
    "t": [T0, datetime(2026, 1, 1)],
    "x": [1.0, 2.0],
    "y": [1, 2],
    "venue": ["A", None],
    "qty": [1, None],
    "big": [True, None],
    "fee": [0.5, None],
}
T0_US = 1_767_225_600_000_000


def read(name, stream, data):
    return Reader(name, stream).read(data)


def faults(data, stream=STREAM) -> list[tuple[str, str] | None]:
    """Reason and detail of each row."""
    batch = read("s", stream, data)
    if batch.faults is None:
        return [None] * len(batch.id)
    reasons = batch.faults.reason
    return [
        (Fault(reasons[row]).name.lower(), batch.faults.detail(row)) if reasons[row] else None
        for row in range(len(batch.id))
    ]


def shapes_of(data):
    table = pa.table(data)
    yield "dict of lists", data
    yield "table", table
    yield "record batch", table.combine_chunks().to_batches()[0]
    yield "chunked table", pa.concat_tables([table.slice(0, 1), table.slice(1)])
    yield "dict of arrow arrays", {name: table.column(name) for name in table.column_names}
    yield "pandas frame", table.to_pandas()
    yield "pandas frame with arrow types", table.to_pandas(types_mapper=pd.ArrowDtype)
    yield "dict of series", dict(table.to_pandas().items())


@pytest.mark.parametrize("number", range(8))
def test_every_shape_of_input_gives_the_same_columns(number):
    name, data = list(shapes_of({**GOOD, "id": [1, 2], "qty": [1, 2], "big": [True, False], "fee": [0.5, 1.5]}))[number]
    batch = read("s", STREAM, data)
    assert batch.faults is None, name
    assert batch.id.tolist() == [1, 2]
    assert batch.time.tolist() == [T0_US, T0_US]
    assert batch.numbers.tolist() == [[1.0, 2.0], [1.0, 2.0]]
    assert batch.columns.to_pydict() == {"venue": ["A", None], "qty": [1, 2], "big": [True, False], "fee": [0.5, 1.5]}


def test_nulls_in_columns_are_values_like_any_other():
    batch = read("s", STREAM, GOOD)
    assert batch.faults is None
    assert batch.columns.to_pydict() == {
        "venue": ["A", None],
        "qty": [1, None],
        "big": [True, None],
        "fee": [0.5, None],
    }


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 2], np.int8),
        np.array([1, 2], np.uint64),
        np.array([1, 2], np.float32),
        pa.array([1, 2], pa.int16()),
        pa.array([1, 2], pa.float16()) if False else pa.array([1, 2], pa.float32()),
        pa.array([Decimal("1"), Decimal("2")]),
        [Decimal("1"), Decimal("2")],
        [1, 2.0],
        (1, 2),
        pa.array([1, 2]).dictionary_encode(),
        pd.Series([1, 2], dtype="Int64"),
        np.ma.masked_array([1.0, 2.0], mask=[False, False]),
    ],
)
def test_numbers_of_any_type_become_float64(column):
    batch = read("s", STREAM, {**GOOD, "x": column})
    assert batch.faults is None
    assert batch.numbers[0].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "column",
    [
        np.array(["2026-01-01", "2026-01-01"], "datetime64[D]"),
        np.array(["2026-01-01", "2026-01-01"], "datetime64[ns]"),
        np.array([T0_US, T0_US]),
        pa.array([T0, T0], pa.timestamp("s")),
        pa.array([T0, T0], pa.timestamp("ns", "Europe/Paris")),
        pa.array([date(2026, 1, 1)] * 2),
        [T0, T0_US],
        pd.Series([T0, T0]),
        pd.Series([T0, T0]).dt.tz_localize(None),
    ],
)
def test_times_of_any_type_become_microseconds(column):
    batch = read("s", STREAM, {**GOOD, "t": column})
    assert batch.faults is None
    assert batch.time.tolist() == [T0_US, T0_US]


def test_nanoseconds_before_1970_are_rounded_down():
    batch = read("s", STREAM, {**GOOD, "t": np.array([-1, 1999], "datetime64[ns]")})
    assert batch.time.tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("name", "cells", "expected"),
    [
        ("id", [None, 1], ("null", "id is null")),
        ("id", ["seven", 1], ("type", "id is 'seven' (str)")),
        ("id", [True, 1], ("type", "id is True (bool)")),
        ("id", [2**63, 1], ("type", "id is 9223372036854775808 (int)")),
        ("id", [1.5, 1], None),
        ("t", [None, T0], ("null", "t is null")),
        ("t", ["now", T0], ("type", "t is 'now' (str)")),
        ("t", [2**61, T0_US], ("type", "t is out of range")),
        ("x", [None, 1.0], ("null", "x is null")),
        ("x", [float("nan"), 1.0], ("nan", "x is NaN")),
        ("x", [float("-inf"), 1.0], ("infinite", "x is infinite")),
        ("x", ["1.0", 1.0], ("type", "x is '1.0' (str)")),
        ("x", [True, 1.0], ("type", "x is True (bool)")),
        ("x", [10**400, 1.0], ("infinite", "x is infinite")),
        ("x", [[1], 1.0], ("type", "x is [1] (list)")),
        ("venue", [7, "A"], ("type", "venue is 7 (int)")),
        ("qty", ["7", 1], ("type", "qty is '7' (str)")),
        ("big", ["yes", True], ("type", "big is 'yes' (str)")),
        ("fee", ["free", 1.0], ("type", "fee is 'free' (str)")),
        ("fee", [float("inf"), 1.0], None),
    ],
)
def test_a_wrong_cell_makes_its_row_bad_and_no_other(name, cells, expected):
    if name == "id" and cells[0] == 1.5:
        with pytest.raises(sm.InputError, match="column 'id' is double, where integers are needed"):
            read("s", STREAM, {**GOOD, name: cells})
        return
    assert faults({**GOOD, name: cells}) == [expected, None]


def test_of_two_faults_the_first_counts():
    data = {**GOOD, "id": [None, 1], "t": [None, T0], "x": [float("nan"), float("inf")], "y": [None, None]}
    assert faults(data) == [("null", "id is null"), ("infinite", "x is infinite")]
    data = {**GOOD, "x": pa.array([float("nan"), None]), "y": pa.array([None, 1.0])}
    assert faults(data) == [("nan", "x is NaN"), ("null", "x is null")]


def test_a_column_of_nulls_has_any_type():
    assert faults({**GOOD, "x": [None, None]}) == [("null", "x is null")] * 2
    assert faults({**GOOD, "id": pa.nulls(2)}) == [("null", "id is null")] * 2
    assert faults({**GOOD, "t": pa.nulls(2)}) == [("null", "t is null")] * 2
    assert faults({**GOOD, "venue": [None, None], "big": pa.nulls(2), "qty": pa.nulls(2)}) == [None] * 2


def test_ids_beyond_int64_are_bad():
    assert faults({**GOOD, "id": np.array([2**63, 1], np.uint64)}) == [("type", "id is out of range"), None]


@pytest.mark.parametrize(
    "column",
    [
        ["a", "b"],
        pa.array(["a", "b"], pa.large_string()),
        np.array(["a", "b"]),
        pa.array(["a", "b"]).dictionary_encode(),
    ],
)
def test_ids_may_be_texts(column):
    batch = read("s", TEXT_IDS, {**GOOD, "id": column})
    assert batch.id.to_pylist() == ["a", "b"]
    assert faults({**GOOD, "id": ["a", None]}, TEXT_IDS) == [None, ("null", "id is null")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"x": None}, "column 'x' is missing; the batch has id, t, y"),
        ({"x": ["a", "b"]}, "column 'x' is string, where numbers are needed"),
        ({"x": [True, False]}, "column 'x' is bool, where numbers are needed"),
        ({"x": np.array([True, False])}, "column 'x' is bool, where numbers are needed"),
        ({"x": np.array(["a", "b"])}, "column 'x' is string, where numbers are needed"),
        ({"x": np.zeros((2, 2))}, "column 'x' has 2 dimensions"),
        ({"x": "ab"}, "column 'x' is str, where an array or list is needed"),
        ({"x": [1.0]}, "differ in length"),
        ({"id": np.array([1.0, 2.0])}, "column 'id' is float64, where integers are needed; cast it to int64"),
        ({"id": ["a", "b"]}, "column 'id' is string, where integers are needed"),
        ({"t": ["2026", "2027"]}, "column 't' is string, where times are needed"),
        ({"t": np.array([1.0, 2.0])}, "column 't' is float64, where times are needed"),
        ({"venue": [1, 2]}, "column 'venue' is int64, where texts are needed"),
        ({"venue": np.array([1, 2])}, "column 'venue' is int64, where texts are needed"),
        ({"big": [1, 2]}, "column 'big' is int64, where true and false are needed"),
        ({"qty": [0.5, 1.5]}, "column 'qty' is double, where integers are needed"),
    ],
)
def test_a_wrong_column_is_named_and_nothing_is_taken(change, expected):
    data = {name: column for name, column in {**GOOD, **change}.items() if column is not None}
    with pytest.raises(sm.InputError, match=expected.replace("(", r"\(")):
        read("s", STREAM, data)


def test_a_column_that_stands_twice_is_named():
    batch = pa.RecordBatch.from_arrays([pa.array([1.0])] * 2, names=["x", "x"])
    with pytest.raises(sm.InputError, match="column 'x' stands twice"):
        read("s", sm.Stream(id="x", attributes=["x"]), batch)


def test_other_input_is_refused():
    with pytest.raises(
        sm.InputError, match="takes a RecordBatch, a Table, a dict of arrays or a pandas frame, not list"
    ):
        read("s", STREAM, [1, 2])


def test_an_empty_batch_is_fine():
    assert read("s", STREAM, {name: [] for name in GOOD}).id.tolist() == []
    assert read("s", STREAM, pa.table(GOOD).slice(0, 0)).id.tolist() == []


PLAIN = sm.Stream(id="id", time="t", attributes=["x", "y"])
ROWS = 7
FLOATS = np.linspace(0, 1, ROWS)
INTS = np.arange(ROWS)
HOLES = np.where(INTS == 3, np.nan, FLOATS)


@pytest.mark.parametrize("shape", ["dict", "table", "record batch"])
@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("x", FLOATS),
        ("x", HOLES),
        ("x", FLOATS.astype(np.float32)),
        ("x", INTS.astype(np.uint64) + np.uint64(2**63)),
        ("x", np.stack((FLOATS, FLOATS), axis=1)[:, 0]),
        ("x", pa.array(np.concatenate((HOLES, FLOATS))).slice(ROWS)),
        ("x", pa.array(FLOATS, mask=INTS == 2)),
        ("x", np.ma.masked_array(FLOATS, mask=INTS == 2)),
        ("id", INTS.astype(np.int8)),
        ("id", pa.array(np.arange(2 * ROWS)).slice(ROWS)),
        ("id", INTS.astype(np.uint64) + np.uint64(2**63 - 4)),
        ("id", pa.array(INTS, mask=INTS == 2)),
        ("t", INTS.astype("datetime64[us]")),
        ("t", INTS.astype("datetime64[ms]")),
        ("t", np.where(INTS == 2, np.datetime64("NaT"), INTS.astype("datetime64[us]"))),
        ("t", np.where(INTS == 2, 2**61, INTS)),
        ("t", pa.array(INTS, pa.timestamp("us", "Europe/Paris"))),
    ],
)
def test_plain_columns_are_read_like_any_others(monkeypatch, shape, name, column):
    data = {"id": INTS, "t": INTS, "x": FLOATS, "y": FLOATS, name: column}
    if shape != "dict":
        column = pa.array(column.data, mask=column.mask) if isinstance(column, np.ma.MaskedArray) else pa.array(column)
        data = pa.table({**data, name: column})
        data = data.to_batches()[0] if shape == "record batch" else data
    found = read("s", PLAIN, data), faults(data, PLAIN)
    monkeypatch.setattr(PlainReader, "read", lambda *_: None)
    expected = read("s", PLAIN, data), faults(data, PLAIN)
    assert found[1] == expected[1]
    good = [row for row, fault in enumerate(expected[1]) if fault is None]
    for column_name in ("id", "time", "numbers"):
        mine, its = (getattr(batch, column_name)[..., good] for batch in (found[0], expected[0]))
        assert mine.dtype == its.dtype
        assert np.array_equal(mine, its)


@pytest.mark.parametrize("kind", ["f8", ">f8", "f4", ">f4", "f2", "longdouble", "i4", ">i8", "u8"])
@pytest.mark.parametrize("layout", ["contiguous", "reversed", "strided", "unaligned", "read-only"])
def test_arrays_of_any_layout_are_read_as_their_values(kind, layout):
    values = INTS.astype(kind)
    lying = {
        "contiguous": values,
        "reversed": values[::-1].copy()[::-1],
        "strided": np.stack((values, values), axis=1)[:, 0],
        "unaligned": np.frombuffer(b"." + values.tobytes(), np.uint8)[1:].view(values.dtype),
        "read-only": np.frombuffer(values.tobytes(), values.dtype),
    }[layout]
    assert read("s", PLAIN, {"id": INTS, "t": INTS, "x": FLOATS, "y": lying}).numbers[1].tolist() == INTS.tolist()
    if values.dtype.kind == "i":
        batch = read("s", PLAIN, {"id": lying, "t": lying, "x": FLOATS, "y": FLOATS})
        assert (batch.id.tolist(), batch.time.tolist()) == (INTS.tolist(), INTS.tolist())


def test_a_producer_may_write_over_its_arrays_once_push_is_back():
    data = {"id": INTS.copy(), "t": INTS.copy(), "x": FLOATS.copy(), "y": FLOATS.copy()}
    for shape in (data, pa.record_batch(data)):  # Arrow may lend memory that NumPy owns
        batch = read("s", PLAIN, shape)
        for kept in (batch.id, batch.time, batch.numbers):
            assert not any(np.shares_memory(kept, column) for column in data.values())
