"""Scores and bounds: interpreter against plain Python, direct kernels against it, boxes against points."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skymesh.algorithms.asked import Scoring
from skymesh.algorithms.pair_kernels import score_pairs
from skymesh.algorithms.score_kernels import bound_box, score_all
from skymesh.algorithms.score_table import ScoreTable
from skymesh.queries.expressions import Node, parse
from skymesh.queries.programs import Places, compile_program
from skymesh.queries.shapes import Form, Shape, directions, distance, linear, product, quadratic, recognize

NAMES = ("x", "y", "z")
PLACES = Places({name: row for row, name in enumerate(NAMES)}, {}, lambda text: 0)
NO_COLUMNS = (np.empty((0, 0), np.int64), np.empty((0, 0), np.bool_))


def scoring_of(node: Node, form: Form | None = None) -> Scoring:
    return Scoring(compile_program(node, PLACES), form or recognize(node), None, PLACES.numbers)


def values_of(node: Node, numbers: np.ndarray, form: Form | None = None) -> np.ndarray:
    table = ScoreTable()
    table.put(0, scoring_of(node, form))
    programs, _, stack = table.arrays()
    out = np.empty(numbers.shape[1])
    score_all(programs, 0, np.ascontiguousarray(numbers), *NO_COLUMNS, stack, out)
    return out


def bounds_of(node: Node, low: np.ndarray, high: np.ndarray) -> list[tuple[float, float, bool]]:
    table = ScoreTable()
    table.put(0, scoring_of(node))
    programs, _, stack = table.arrays()
    depth = len(stack)
    lows, highs, nans = np.empty(depth), np.empty(depth), np.empty(depth, np.bool_)
    found = []
    for box in range(low.shape[1]):
        bound_box(programs, 0, low[:, box].copy(), high[:, box].copy(), lows, highs, nans)
        found.append((float(lows[0]), float(highs[0]), bool(nans[0])))
    return found


# -- values ----------------------------------------------------------------------------------------------------


def divided(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
    return a / b


def power(a: float, b: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(a) ** np.float64(b))


def guarded(function, a: float) -> float:
    try:
        return function(a)
    except OverflowError:
        return math.inf
    except ValueError:
        return (
            -math.inf
            if function is math.log and a == 0
            else -math.inf
            if function is math.log1p and a == -1
            else math.nan
        )


def nan_or(function, *args: float) -> float:
    return math.nan if any(map(math.isnan, args)) else function(*args)


PLAIN = {
    "abs": abs,
    "sqrt": lambda a: guarded(math.sqrt, a),
    "log": lambda a: guarded(math.log, a),
    "log1p": lambda a: guarded(math.log1p, a),
    "exp": lambda a: guarded(math.exp, a),
    "min": lambda *args: nan_or(min, *args),
    "max": lambda *args: nan_or(max, *args),
    "clip": lambda a, low, high: nan_or(min, nan_or(max, a, low), high),
    "where": lambda c, a, b: a if c else b,
}
CASES = [
    ("x + y - z", lambda x, y, z: x + y - z),
    ("x - (y - z)", lambda x, y, z: x - (y - z)),
    ("-x ** 2", lambda x, y, z: -(x * x)),
    ("x ** 3 / y", lambda x, y, z: divided(power(x, 3), y)),
    ("x / y", lambda x, y, z: divided(x, y)),
    ("2 ** x ** y", lambda x, y, z: power(2, power(x, y))),
    ("sqrt(x) * log(y)", lambda x, y, z: PLAIN["sqrt"](x) * PLAIN["log"](y)),
    ("log1p(x) + exp(y)", lambda x, y, z: PLAIN["log1p"](x) + PLAIN["exp"](y)),
    ("min(x, y, z) - max(x, 1 / z)", lambda x, y, z: PLAIN["min"](x, y, z) - PLAIN["max"](x, divided(1, z))),
    ("clip(x, y, z)", lambda x, y, z: PLAIN["clip"](x, y, z)),
    ("where(x < y, z, -z)", lambda x, y, z: z if x < y else -z),
    ("where(0 < x <= y, 1, 0)", lambda x, y, z: 1.0 if 0 < x <= y else 0.0),
    ("where(x == y or not z > 0, x, y)", lambda x, y, z: x if x == y or not z > 0 else y),
    ("where(log(x) != 0, 1, 2)", lambda x, y, z: 1.0 if nan_or(lambda a: a != 0, PLAIN["log"](x)) is True else 2.0),
    ("where(not log(x) < 0, 1, 2)", lambda x, y, z: 2.0 if PLAIN["log"](x) < 0 else 1.0),
    ("where(x in [1, 2], y, z)", lambda x, y, z: y if x in (1, 2) else z),
    ("abs(x - 0.3) * (1 - y)", lambda x, y, z: abs(x - 0.3) * (1 - y)),
    ("1e300 * x * 1e300", lambda x, y, z: 1e300 * x * 1e300),
]


@pytest.mark.parametrize(("text", "plain"), CASES)
def test_values_are_those_of_plain_python_in_the_order_as_written(text, plain):
    points = [-2.5, -1.0, -0.0, 0.0, 0.3, 1.0, 2.0, 7.25, 1e10]
    numbers = np.array([(x, y, z) for x in points for y in points for z in points]).T
    with np.errstate(all="ignore"):
        expected = np.array([plain(*map(float, point)) for point in numbers.T])
    found = values_of(parse(text), numbers)
    # exp, log and pow of the C library and of NumPy may differ in the last bit.
    np.testing.assert_array_max_ulp(np.nan_to_num(found, nan=12345.0), np.nan_to_num(expected, nan=12345.0), maxulp=2)
    assert (np.isnan(found) == np.isnan(expected)).all()
    if not any(name in text for name in ("log", "exp", "**")):
        np.testing.assert_array_equal(found, expected)


# -- known shapes ----------------------------------------------------------------------------------------------

NUMBERS = st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda value: round(value, 3))
WEIGHTS = st.dictionaries(st.sampled_from(NAMES), NUMBERS, min_size=2, max_size=3)
SHAPED = [
    ("0.3 * x + 0.7 * y", Shape.LINEAR),
    ("x - y * 2 - -z", Shape.LINEAR),
    ("x * y", Shape.PRODUCT),
    ("(0.5 + x) * (y + 2) * z", Shape.PRODUCT),
    ("2 * x ** 2 - y ** 2 * 3", Shape.QUADRATIC),
    ("sqrt((x - 1) ** 2 + 0.5 * (2 - y) ** 2)", Shape.EUCLIDEAN),
    ("abs(x - 1) + 2 * abs(y + 3)", Shape.MANHATTAN),
    ("max(abs(x - 1), 3 * abs(2 - y), abs(z - 0))", Shape.LARGEST),
    ("x + (y + z)", Shape.PROGRAM),
    ("x + 1", Shape.PROGRAM),
    ("x * 2 * x", Shape.PROGRAM),
    ("log(x)", Shape.PROGRAM),
]


@pytest.mark.parametrize(("text", "shape"), SHAPED)
def test_shapes_are_recognized_where_the_bits_agree(text, shape):
    assert recognize(parse(text)).shape is shape


@given(text=st.sampled_from([text for text, shape in SHAPED if shape]), seed=st.integers(0, 10_000))
def test_direct_kernels_have_the_bits_of_the_interpreter(text, seed):
    check_bits(parse(text), seed)


@given(weights=WEIGHTS, make=st.sampled_from([linear, product, quadratic]), seed=st.integers(0, 10_000))
def test_structured_scores_have_direct_kernels_with_the_same_bits(weights, make, seed):
    assert recognize(make(weights)).shape is not Shape.PROGRAM
    check_bits(make(weights), seed)


@given(
    to=WEIGHTS,
    weights=st.dictionaries(st.sampled_from(NAMES), NUMBERS.map(abs), max_size=2),
    metric=st.sampled_from(["euclidean", "manhattan", "largest"]),
    seed=st.integers(0, 10_000),
)
def test_distances_have_direct_kernels_with_the_same_bits(to, weights, metric, seed):
    node = distance(to, weights, metric)
    assert recognize(node).shape.name.lower() == metric
    check_bits(node, seed)


def check_bits(node: Node, seed: int) -> None:
    generator = np.random.default_rng(seed)
    numbers = generator.normal(0, 10.0 ** generator.integers(-3, 200), (3, 700))
    numbers[:, :5] = [[0.0, -0.0, 1.0, -1.0, 1e308]] * 3
    direct = values_of(node, numbers)
    interpreted = values_of(node, numbers, Form(Shape.PROGRAM))
    np.testing.assert_array_equal(direct.view(np.int64), interpreted.view(np.int64))


# -- bounds ----------------------------------------------------------------------------------------------------


def random_expression(generator: random.Random, depth: int) -> str:
    if depth == 0 or generator.random() < 0.15:
        return generator.choice([*NAMES, *NAMES, "0", "1", "2", "0.5", "-3", "1e3", "1e-3"])
    a, b, c = (random_expression(generator, depth - 1) for _ in range(3))
    return generator.choice(
        [
            f"({a} + {b})",
            f"({a} - {b})",
            f"({a} * {b})",
            f"({a} / {b})",
            f"(-{a})",
            f"{a} ** 2" if a in NAMES else f"({a}) ** 2",
            f"({a}) ** {generator.choice(['3', '0.5', '-1', '-2', '(' + b + ')'])}",
            f"abs({a})",
            f"min({a}, {b})",
            f"max({a}, {b}, {c})",
            f"sqrt({a})",
            f"log({a})",
            f"log1p({a})",
            f"exp({a})",
            f"clip({a}, {b}, {c})",
            f"where({a} {generator.choice(['<', '<=', '>', '>=', '==', '!='])} {b}, {b}, {c})",
            f"where({a} > {b} and not {c} < 0 or {b} == 1, {a}, {c})",
        ]
    )


def random_boxes(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    scale = 10.0 ** generator.integers(-2, 5, count)
    center = generator.normal(0, 1, (3, count)) * scale
    width = generator.random((3, count)) * scale * generator.choice([0.0, 1e-9, 0.1, 1.0, 3.0], (3, count))
    low, high = center - width, center + width
    snapped = generator.random((3, count)) < 0.15  # boxes that begin or end at 0, where much changes its ways
    low = np.where(snapped & (low < 0), 0.0, low)
    high = np.maximum(high, low)
    return low, high


def test_no_point_of_a_box_scores_outside_its_bounds():
    """1,000 expressions x 100 boxes x 100 points, corners among them."""
    texts = random.Random(5)
    generator = np.random.default_rng(5)
    expressions, boxes, points = 1000, 100, 100
    informative = 0
    for _ in range(expressions):
        text = random_expression(texts, 4)
        low, high = random_boxes(generator, boxes)
        share = generator.random((3, boxes, points))
        share[:, :, :10] = np.round(share[:, :, :10])
        inside = np.clip(low[:, :, None] + share * (high - low)[:, :, None], low[:, :, None], high[:, :, None])
        values = values_of(parse(text), inside.reshape(3, -1)).reshape(boxes, points)
        for (least, most, may_be_nan), found in zip(bounds_of(parse(text), low, high), values, strict=True):
            numbers = found[~np.isnan(found)]
            assert may_be_nan or len(numbers) == points, f"{text} is NaN in a box that was said to have none"
            assert ((least <= numbers) & (numbers <= most)).all(), f"{text} leaves [{least}, {most}]"
            informative += math.isfinite(least) and math.isfinite(most)
    assert informative > expressions * boxes / 3, "most bounds say something"


def test_a_division_by_a_range_with_zero_is_unbounded_and_raises_nothing():
    [(low, high, nan)] = bounds_of(parse("1 / x"), np.array([[-1.0], [0], [0]]), np.array([[1.0], [0], [0]]))
    assert (low, high, nan) == (-math.inf, math.inf, True)


def test_bounds_of_monotone_scores_are_their_corners():
    low, high = np.array([[1.0], [2.0], [0.0]]), np.array([[3.0], [5.0], [0.0]])
    assert bounds_of(parse("2 * x - y"), low, high) == [(2 - 5, 6 - 2, False)]
    assert bounds_of(parse("x * y"), low, high) == [(2, 15, False)]


# -- directions ------------------------------------------------------------------------------------------------

UNIT = {"x": (0.0, 1.0), "y": (0.0, 1.0), "z": None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + 2 * y - z", {"x": 1, "y": 1, "z": -1}),
        ("x * y", {"x": 1, "y": 1}),
        ("x * z", {"x": None, "z": 1}),
        ("x ** 2 - sqrt(y)", {"x": 1, "y": -1}),
        ("z ** 2", {"z": None}),
        ("abs(x - 0.5)", {"x": None}),
        ("max(x, -y)", {"x": 1, "y": -1}),
        ("where(x > 0.5, y, -y)", {"x": None, "y": None}),
        ("exp(-x) / 2", {"x": -1}),
        ("1 / x", {"x": None}),
        ("x - x", {"x": None}),
        ("clip(x, 0, y)", {"x": 1, "y": 1}),
        ("x ** -1", {"x": -1}),
    ],
)
def test_directions_are_derived(text, expected):
    assert directions(parse(text), UNIT) == expected


@settings(max_examples=300)
@given(seed=st.integers(0, 100_000))
def test_a_direction_that_is_told_holds_between_any_two_points(seed):
    node = parse(random_expression(random.Random(seed), 3))
    told = directions(node, dict.fromkeys(NAMES, (0.0, 4.0)))
    generator = np.random.default_rng(seed)
    for name, direction in told.items():
        if direction is None:
            continue
        lower = generator.random((3, 200)) * 4
        upper = lower.copy()
        row = NAMES.index(name)
        upper[row] += generator.random(200) * (4 - upper[row])
        with np.errstate(invalid="ignore"):
            step = (values_of(node, upper) - values_of(node, lower)) * (direction or 1)
        step = step[np.isfinite(step)]
        slack = 1e-9 * np.abs(values_of(node, upper)).max(initial=1, where=np.isfinite(values_of(node, upper)))
        assert (step >= -slack).all() if direction else (np.abs(step) <= slack).all()


def test_ten_thousand_expressions_share_one_table():
    table = ScoreTable()
    for i in range(10_000):
        table.put(i, scoring_of(parse(f"{i} * x + log(y + {i}) - z / {i + 1}")))
    programs, _, stack = table.arrays()
    numbers, out = np.array([[1.0], [2.0], [3.0]]), np.empty(1)
    for i in (0, 17, 9_999):
        score_all(programs, i, numbers, *NO_COLUMNS, stack, out)
        assert out[0] == i * 1.0 + math.log(2.0 + i) - 3.0 / (i + 1)


def test_a_removed_program_leaves_the_others_where_they_are():
    table = ScoreTable()
    for slot, text in enumerate(["x", "y", "z"]):
        table.put(slot, replace(scoring_of(parse(text)), filter=compile_program(parse("x > 0"), PLACES)))
    table.remove(1)
    programs, filter_of, stack = table.arrays()
    out = np.empty(1)
    score_all(programs, 2, np.array([[1.0], [2.0], [3.0]]), *NO_COLUMNS, stack, out)
    assert out[0] == 3.0
    assert filter_of[1] == -1
    assert filter_of[2] >= 0


# -- queries that differ in constants only ---------------------------------------------------------------------


SAME_BUT_FOR_CONSTANTS = [
    ["x + 2.5 * y - z", "x + 0.1 * y - z"],  # the interpreter runs it: x has no factor
    ["0.3 * x + 2.5 * y", "7 * x + 0.1 * y", "1 * x + 3 * y"],
    ["(0.5 + x) * (2 + z)", "(1.5 + x) * (0.1 + z)"],
    ["0.3 * x ** 2 + 3 * y ** 2", "0.1 * x ** 2 + 4 * y ** 2"],
    ["sqrt(abs(x - 0.1)) - 3 * (y * (1 - y))", "sqrt(abs(x - 0.7)) - 0.3 * (y * (4 - y))"],
    ["where(x > 1, log(y), exp(z - 2))", "where(x > 2, log(y), exp(z - 1))"],
    ["clip(x, 0.5, 2) ** y", "clip(x, 0.1, 3) ** y"],
]


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "largest"])
def test_pairs_score_distances_like_blocks_of_rows(metric):
    centers = ((0.5, 2.0), (2.5, 0.3), (0.0, 7.0))
    pairs_score_like_blocks([scoring_of(distance({"x": x, "z": z}, {"x": z}, metric)) for x, z in centers])


@pytest.mark.parametrize("texts", SAME_BUT_FOR_CONSTANTS, ids=lambda texts: texts[0])
def test_pairs_of_rows_and_queries_score_like_blocks_of_rows(texts):
    pairs_score_like_blocks([scoring_of(parse(text)) for text in texts])


def pairs_score_like_blocks(scorings: list[Scoring]) -> None:
    table = ScoreTable()
    for slot, scoring in enumerate(scorings):
        table.put(slot, scoring)
    programs, _, stack = table.arrays()
    assert len(programs.leader) == 1
    generator = np.random.default_rng(7)
    numbers = generator.random((3, 50)) * 4
    numbers[0, :5] = np.nan, np.inf, -np.inf, 0.0, -0.0
    which = generator.integers(0, len(scorings), 300).astype(np.int32)
    place = generator.integers(0, 50, 300).astype(np.int32)
    score_pairs(programs, which, place, numbers, *NO_COLUMNS, stack)
    found, expected = stack[0, :300].copy(), np.empty((len(scorings), 50))
    for slot in range(len(scorings)):
        score_all(programs, slot, numbers, *NO_COLUMNS, stack, expected[slot])
    assert np.array_equal(found, expected[which, place], equal_nan=True)


def test_queries_with_other_instructions_terms_or_filters_are_of_other_kinds():
    texts = ["2 * x + 3 * y", "x + 3 * y * z", "log(x + 2)", "log(x + 2)", "log(x + 3)", "log(x - 3)", "3 * x + 1 * y"]
    table = ScoreTable()
    for slot, text in enumerate(texts):
        where = compile_program(parse("x > 1"), PLACES) if slot == 3 else None
        table.put(slot, replace(scoring_of(parse(text)), filter=where))
    programs, _, _ = table.arrays()
    assert programs.kind.tolist() == [0, 1, 2, 3, 2, 4, 0]
    assert programs.leader.tolist() == [0, 1, 2, 3, 5]
