"""Trees into programs: postfix instructions with their constants as data.

One precompiled interpreter runs every program, because compiling each expression would cost a quarter of a second a
query. Tests of columns against constants stay in int64, where they are exact; everything else is float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .expressions import (
    ARITHMETIC,
    COMPARISONS,
    DEPTH_MAX,
    INT64,
    LOGIC,
    Apply,
    Constant,
    ExpressionError,
    Member,
    Name,
    Node,
    Number,
    Op,
    fold,
    left_spine,
)

_MIRRORED = {
    Op.LESS: Op.GREATER,
    Op.LESS_EQUAL: Op.GREATER_EQUAL,
    Op.GREATER: Op.LESS,
    Op.GREATER_EQUAL: Op.LESS_EQUAL,
    Op.EQUAL: Op.EQUAL,
    Op.NOT_EQUAL: Op.NOT_EQUAL,
}


@dataclass(frozen=True, slots=True)
class Program:
    """Postfix instructions (op, a, b, c) with their constants as data. `depth` is the stack that it needs."""

    instructions: tuple[tuple[int, int, int, int], ...]
    numbers: tuple[float, ...]
    integers: tuple[int, ...]
    depth: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where a program finds its inputs: rows of the number matrix, rows of the column matrix, codes of texts."""

    numbers: Mapping[str, int]
    columns: Mapping[str, int]
    code_of_text: Callable[[str], int]


def compile_program(node: Node, places: Places) -> Program:
    """The program of a checked tree."""
    return _Compiler(places).compile(node)


class _Compiler:
    def __init__(self, places: Places) -> None:
        self._places = places
        self._instructions: list[tuple[int, int, int, int]] = []
        self._numbers: list[float] = []
        self._integers: list[int] = []
        self._height = 0
        self._depth = 0

    def compile(self, node: Node) -> Program:
        self._emit_condition(node) if self._column_of(node) is not None else self._emit(node)
        if self._depth > DEPTH_MAX:
            raise ExpressionError(f"the expression needs {self._depth} values at once; at most {DEPTH_MAX} are held")
        return Program(tuple(self._instructions), tuple(self._numbers), tuple(self._integers), self._depth)

    def _push(self, op: Op, a: int = 0, b: int = 0, c: int = 0, *, takes: int = 0) -> None:
        self._instructions.append((op, a, b, c))
        self._height += 1 - takes
        self._depth = max(self._depth, self._height)

    def _emit(self, node: Node) -> None:
        match node:
            case Number(value=value):
                self._numbers.append(value)
                self._push(Op.NUMBER, len(self._numbers) - 1)
            case Constant(value=value):
                self._emit(Number(float(value)))
            case Name(name=name):
                self._emit_name(name)
            case Member():
                self._emit_member(node)
            case Apply(op=op, args=(left, right)) if op in COMPARISONS and self._emit_exact(op, left, right):
                pass
            case Apply(op=Op.NOT, args=(inner,)):
                self._emit_condition(inner)
                self._push(Op.NOT, takes=1)
            case Apply(op=Op.AND | Op.OR):
                first, rest = left_spine(node, LOGIC)
                self._emit_condition(first)
                for op, operand in rest:
                    self._emit_condition(operand)
                    self._push(op, takes=2)
            case Apply(op=op) if op in ARITHMETIC:
                first, rest = left_spine(node, ARITHMETIC)
                self._emit(first)
                for op, operand in rest:
                    self._emit(operand)
                    self._push(op, takes=2)
            case Apply(op=Op.WHERE, args=(condition, then, other)):
                self._emit_condition(condition)
                self._emit(then)
                self._emit(other)
                self._push(Op.WHERE, takes=3)
            case Apply(op=op, args=args):
                for arg in args:
                    self._emit(arg)
                self._push(op, takes=len(args))

    def _emit_condition(self, node: Node) -> None:
        # A bare truth column is a test, so that its nulls are false instead of NaN.
        self._emit(Apply(Op.EQUAL, (node, Constant(True))) if isinstance(node, Name) else node)

    def _emit_name(self, name: str) -> None:
        if name in self._places.numbers:
            self._push(Op.ATTRIBUTE, self._places.numbers[name])
        else:
            self._push(Op.COLUMN, self._places.columns[name])

    def _column_of(self, node: Node) -> int | None:
        if isinstance(node, Name) and node.name not in self._places.numbers:
            return self._places.columns[node.name]
        return None

    def _emit_exact(self, op: Op, left: Node, right: Node) -> bool:
        """Column against constant or column: in int64, since float64 would merge integers beyond 2**53."""
        a, b = self._column_of(left), self._column_of(right)
        if a is not None and b is not None:
            self._push(Op.COLUMNS_TEST, a, b, op)
            return True
        if a is None and b is not None:
            op, a, right = _MIRRORED[op], b, left
        if a is None or not isinstance(right, Number | Constant):
            return False
        exact = _exact_test(op, right.value)
        if exact is None:
            self._emit(Number(0.0))
            return True
        self._integers.append(self._code(exact[1]))
        self._push(Op.COLUMN_TEST, a, len(self._integers) - 1, exact[0])
        return True

    def _emit_member(self, node: Member) -> None:
        column = self._column_of(node.item)
        if column is None:
            parts: list[Node] = [Apply(Op.EQUAL, (node.item, value)) for value in node.values]
            self._emit(fold(Op.OR, parts) if parts else Number(0.0))
            return
        exact = (_exact_test(Op.EQUAL, value.value) for value in node.values)
        codes = sorted({self._code(test[1]) for test in exact if test is not None})
        self._integers.extend(codes)
        self._push(Op.COLUMN_IN, column, len(self._integers) - len(codes), len(codes))

    def _code(self, value: str | int | bool) -> int:
        return self._places.code_of_text(value) if isinstance(value, str) else int(value)


def _exact_test(op: Op, value: float | str | int | bool) -> tuple[Op, str | int] | None:
    """The same test with an integer constant, or None where no integer passes it."""
    if isinstance(value, str):
        return op, value
    if isinstance(value, int):
        return op, int(value)
    floor = math.floor(value)
    if floor != value:
        if op is Op.EQUAL:
            return None
        if op is Op.NOT_EQUAL:
            return Op.GREATER_EQUAL, INT64[0]  # any value, but no null
        op = {Op.LESS: Op.LESS_EQUAL, Op.GREATER_EQUAL: Op.GREATER}.get(op, op)
    if floor in INT64:
        return op, floor
    always = {Op.NOT_EQUAL, *((Op.LESS, Op.LESS_EQUAL) if floor > 0 else (Op.GREATER, Op.GREATER_EQUAL))}
    return (Op.GREATER_EQUAL, INT64[0]) if op in always else None
