"""All scores and filters of a group of queries, end to end in flat arrays, as the kernels read them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from ..queries.expressions import Op
from ..queries.programs import Program
from ..queries.shapes import Form, Shape
from .asked import Scoring
from .columns import Floats, Ints
from .score_kernels import BLOCK, Programs, bound_box

_STACK_ROWS_MIN = 4


class ScoreTable:
    """Slots of queries. `programs` and `filter_of` are rebuilt when they are next asked for after a change."""

    def __init__(self) -> None:
        self._scorings: list[Scoring | None] = []
        self._arrays: tuple[Programs, Ints, np.ndarray] | None = None

    def put(self, slot: int, scoring: Scoring) -> None:
        self._arrays = None
        self._scorings += [None] * (slot + 1 - len(self._scorings))
        self._scorings[slot] = scoring

    def remove(self, slot: int) -> None:
        self._arrays = None
        self._scorings[slot] = None

    def arrays(self) -> tuple[Programs, Ints, np.ndarray]:
        """The programs (a query's score is program `slot`), filter_of i8[slots] (-1: none), and a stack."""
        if self._arrays is None:
            self._arrays = _flattened(self._scorings)
        return self._arrays


def score_bounds(scoring: Scoring, low: Floats, high: Floats) -> tuple[float, float]:
    """Between which values a score lies that is finite, for attributes between low and high, f8[d]."""
    table = ScoreTable()
    table.put(0, replace(scoring, form=Form(Shape.PROGRAM), filter=None))
    programs, _, stack = table.arrays()
    lows, highs, nans = np.empty(len(stack)), np.empty(len(stack)), np.empty(len(stack), np.bool_)
    bound_box(programs, 0, low, high, lows, highs, nans)
    return float(lows[0]), float(highs[0])


_NOTHING = Program((), (), (), 1)


def _flattened(scorings: list[Scoring | None]) -> tuple[Programs, Ints, np.ndarray]:
    programs = [scoring.program if scoring else _NOTHING for scoring in scorings]
    filter_of = np.full(len(scorings), -1, np.int64)
    for slot, scoring in enumerate(scorings):
        if scoring and scoring.filter:
            filter_of[slot] = len(programs)
            programs.append(scoring.filter)
    forms = [_form_of(scoring) for scoring in scorings] + [Form(Shape.PROGRAM)] * (len(programs) - len(scorings))
    rows = [scoring.rows if scoring else {} for scoring in scorings]
    terms = [
        (rows[slot][term.name], term.weight, term.constant) for slot, form in enumerate(forms) for term in form.terms
    ]
    code, numbers, integers = _linked(programs)
    firsts, ends = _stretches([len(program.instructions) for program in programs])
    term_firsts, term_ends = _stretches([len(form.terms) for form in forms])
    kind, leader = _kinds(scorings)
    depth = max((program.depth for program in programs), default=1)
    arrays = Programs(
        shape=np.array([form.shape for form in forms], np.int8),
        first=firsts,
        last=ends,
        code=np.array(code, np.int32).reshape(-1, 4),
        numbers=np.array(numbers, np.float64),
        integers=np.array(integers, np.int64),
        number_first=_stretches([len(program.numbers) for program in programs])[0],
        integer_first=_stretches([len(program.integers) for program in programs])[0],
        term_first=term_firsts,
        term_last=term_ends,
        term_row=np.array([term[0] for term in terms], np.int32),
        term_weight=np.array([term[1] for term in terms], np.float64),
        term_constant=np.array([term[2] for term in terms], np.float64),
        kind=kind,
        leader=leader,
    )
    return arrays, filter_of, np.empty((max(depth, _STACK_ROWS_MIN), BLOCK), np.float64)


def _stretches(lengths: list[int]) -> tuple[Ints, Ints]:
    """Where each begins and ends that stands end to end with the others."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return ends - np.array(lengths, np.int64), ends


def _kinds(scorings: list[Scoring | None]) -> tuple[Ints, Ints]:
    """Of each query a number, the same for those that differ in constants only; and a query for each such number."""
    number_of: dict[Hashable, int] = {}
    kind = np.array([number_of.setdefault(_kind_of(scoring), len(number_of)) for scoring in scorings], np.int64)
    return kind, np.unique(kind, return_index=True)[1].astype(np.int64)


def _kind_of(scoring: Scoring | None) -> Hashable:
    if scoring is None:
        return None
    shape, terms = scoring.form.shape, scoring.form.terms
    instructions = scoring.program.instructions if shape == Shape.PROGRAM else None
    rows = tuple(scoring.rows[term.name] for term in terms)
    return shape, rows, instructions, scoring.filter and scoring.filter.instructions


def _form_of(scoring: Scoring | None) -> Form:
    return scoring.form if scoring else Form(Shape.PROGRAM)


def _linked(programs: list[Program]) -> tuple[list[tuple[int, int, int, int]], list[float], list[int]]:
    """Instructions of all programs, their constants' places moved to where they lie end to end."""
    code: list[tuple[int, int, int, int]] = []
    numbers: list[float] = []
    integers: list[int] = []
    for program in programs:
        number_base, integer_base = len(numbers), len(integers)
        for op, a, b, c in program.instructions:
            if op == Op.NUMBER:
                code.append((op, a + number_base, b, c))
            elif op in (Op.COLUMN_TEST, Op.COLUMN_IN):
                code.append((op, a, b + integer_base, c))
            else:
                code.append((op, a, b, c))
        numbers.extend(program.numbers)
        integers.extend(program.integers)
    return code, numbers, integers
