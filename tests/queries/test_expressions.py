"""What an expression may say, and what it is told if it says something else."""

from __future__ import annotations

import numpy as np
import pytest

from skymesh.algorithms.asked import Scoring
from skymesh.algorithms.score_kernels import score_all
from skymesh.algorithms.score_table import ScoreTable
from skymesh.queries.expressions import ExpressionError, check_filter, check_score, parse
from skymesh.queries.programs import Places, compile_program
from skymesh.queries.shapes import Form, Shape

ATTRIBUTES = {"price": None, "volume": None}
COLUMNS = {"venue": "string", "qty": "int64", "big": "bool", "fee": "float64"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cannot be read"),
        ("price +", "cannot be read"),
        ("__import__('os').system('true')", "no such function"),
        ("price.real", "a dot has no meaning"),
        ("(lambda: 1)()", "no such function"),
        ("[price]", "not part of the language"),
        ("price @ volume", "not part of the language"),
        ("price if volume else 1", "not part of the language"),
        ("squrt(price)", "did you mean sqrt"),
        ("sqrt(price, 2)", "takes 1 argument, not 2"),
        ("min(price)", "takes 2 or more arguments, not 1"),
        ("clip(x=price)", "by position only"),
        ("max(*price)", "by position only"),
        ("1e999 * price", "beyond the range"),
        ("10 ** 400 + " + "9" * 400, "too large"),
        ("'text'", "a score is a number"),
        ("price > 1", "a score is a number"),
        ("price + (volume > 1)", "a condition is not a number"),
        ("where(price, 1, 2)", "begins with a condition"),
        ("price and volume", "join conditions"),
        ("venue", "is a column, and scores take attributes only"),
        ("prise", "did you mean price"),
        ("f'{price}'", "not part of the language"),
        ("price := 3", "cannot be read"),
        ("price +", "cannot be read: invalid syntax at its end"),
        ("-" * 5000 + "price", "nests"),
        ("(" * 100 + "price" + ")" * 100 + "x" * 10_000, "at most 10,000 are read"),
        ("price in volume", "needs a list of constants"),
        ("b'x'", "not a number, a text"),
        ("1j * price", "not a number, a text"),
    ],
)
def test_what_is_no_score_is_refused_with_the_reason(text, reason):
    with pytest.raises(ExpressionError, match=reason.replace("(", r"\(")):
        check_score(parse(text), ATTRIBUTES, COLUMNS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("price", "a filter is a condition"),
        ("venue > 'A'", "compared with ==, != or in only"),
        ("venue == 3", "cannot compare a text with a number"),
        ("venue in [1]", "holds a number, but a text is looked for"),
        ("qty + venue > 2", "arithmetic takes numbers, not text"),
        ("'A' == 'A'", "two constants"),
        ("3 in [3] and 'a' in ['a']", "membership of constants"),
        ("venu == 'A'", "did you mean venue"),
        ("venue = 'A'", "invalid syntax at column 7; to compare, write =="),
        ("big > true", "compared with ==, != or in only"),
    ],
)
def test_what_is_no_filter_is_refused_with_the_reason(text, reason):
    with pytest.raises(ExpressionError, match=reason):
        check_filter(parse(text), ATTRIBUTES, COLUMNS)


def test_a_sum_of_a_thousand_terms_is_fine():
    text = " + ".join(["price"] * 1000)
    program = compile_program(parse(text), Places({"price": 0}, {}, lambda _: 0))
    assert program.depth == 2


# -- filters over columns --------------------------------------------------------------------------------------

CODES = {"A": 0, "B": 1, "C": 2}
PLACES = Places({"price": 0, "fee": 1}, {"venue": 0, "qty": 1, "big": 2, "other": 3}, CODES.__getitem__)
BIG = 2**53 + 1
ROWS = [  # price, fee, venue, qty, big, other; None is null
    (1.0, 0.5, "A", 1, True, "A"),
    (2.0, np.nan, "B", BIG, False, "A"),
    (3.0, 1.5, None, BIG - 1, None, None),
    (4.0, 2.5, "C", -(2**63), True, "C"),
]


def passing(text: str) -> list[int]:
    """Which of the rows pass."""
    check_filter(parse(text), {"price": None}, {**COLUMNS, "other": "string"})
    program = compile_program(parse(text), PLACES)
    table = ScoreTable()
    table.put(0, Scoring(program, Form(Shape.PROGRAM), None, PLACES.numbers))
    programs, _, stack = table.arrays()
    numbers = np.array([[row[0] for row in ROWS], [row[1] for row in ROWS]])
    raw = [[CODES.get(v, v) if isinstance(v, str) else v for v in (row[2], row[3], row[4], row[5])] for row in ROWS]
    columns = np.array([[0 if v is None else int(v) for v in row] for row in raw], np.int64).T.copy()
    known = np.array([[v is not None for v in row] for row in raw]).T.copy()
    out = np.empty(len(ROWS))
    score_all(programs, 0, numbers, columns, known, stack, out)
    assert set(out) <= {0.0, 1.0}
    return [row for row, value in enumerate(out) if value]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("venue == 'A'", [0]),
        ("venue != 'A'", [1, 3]),
        ("not venue == 'A'", [1, 2, 3]),
        ("venue in ['A', 'C']", [0, 3]),
        ("venue not in ['A', 'C']", [1, 2]),
        ("venue in []", []),
        ("venue == other", [0, 3]),
        (f"qty == {BIG}", [1]),
        (f"qty >= {BIG}", [1]),
        (f"{BIG} > qty", [0, 2, 3]),
        ("qty > 0.5", [0, 1, 2]),
        ("qty < 1.5", [0, 3]),
        ("qty == 1.5", []),
        ("qty != 1.5", [0, 1, 2, 3]),
        ("qty in [1, 2.5]", [0]),
        ("qty < 1e30", [0, 1, 2, 3]),
        ("qty > 1e30", []),
        ("qty >= -1e30", [0, 1, 2, 3]),
        ("qty > -9223372036854775807", [0, 1, 2]),
        ("big", [0, 3]),
        ("not big", [1, 2]),
        ("big == false", [1]),
        ("big or price > 2", [0, 2, 3]),
        ("fee > 1", [2, 3]),
        ("fee != 1.5", [0, 3]),
        ("not fee <= 1", [1, 2, 3]),
        ("1 < price < 4", [1, 2]),
        ("qty * price > 0 and price < 3", [0, 1]),
        ("where(big, price, -price) > 0", [0, 3]),
        ("price in [1, 4]", [0, 3]),
    ],
)
def test_filters_compare_exactly_and_nulls_pass_nothing(text, rows):
    assert passing(text) == rows
