"""Score and filter expressions: text into a tree, checked against a stream.

The text is Python's expression grammar, read by Python's own parser and then admitted node by node from a short
list, so an expression can compute and nothing else.

Numbers are evaluated in the order as written, in float64. `e ** 2` is `e * e`. A comparison with a NaN or a null is
false, `!=` too, and `not` turns that around.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from functools import lru_cache
from typing import Literal

Type = Literal["number", "condition", "string", "int64", "bool", "float64"]

LENGTH_MAX = 10_000
DEPTH_MAX = 64
INT64 = range(-(2**63), 2**63)


class ExpressionError(ValueError):
    """An expression that cannot be: the message says where in it, why, and what would do."""


class Op(IntEnum):
    """The instructions of a program. Those up to NOT work on the stack, the rest read columns directly."""

    NUMBER = 0
    ATTRIBUTE = 1
    NEGATE = 2
    ADD = 3
    SUBTRACT = 4
    MULTIPLY = 5
    DIVIDE = 6
    POWER = 7
    SQUARE = 8
    ABS = 9
    MIN = 10
    MAX = 11
    SQRT = 12
    LOG = 13
    LOG1P = 14
    EXP = 15
    WHERE = 16
    CLIP = 17
    LESS = 18
    LESS_EQUAL = 19
    GREATER = 20
    GREATER_EQUAL = 21
    EQUAL = 22
    NOT_EQUAL = 23
    AND = 24
    OR = 25
    NOT = 26
    COLUMN = 27  # a: column; pushes its value as a number, NaN for null
    COLUMN_TEST = 28  # a: column, b: index of an integer, c: comparison; exact over all of int64
    COLUMNS_TEST = 29  # a, b: columns, c: comparison
    COLUMN_IN = 30  # a: column, b: first of the sorted integers, c: how many


_BINARY = {ast.Add: Op.ADD, ast.Sub: Op.SUBTRACT, ast.Mult: Op.MULTIPLY, ast.Div: Op.DIVIDE, ast.Pow: Op.POWER}
_COMPARISON: dict[type[ast.cmpop], Op] = {
    ast.Lt: Op.LESS,
    ast.LtE: Op.LESS_EQUAL,
    ast.Gt: Op.GREATER,
    ast.GtE: Op.GREATER_EQUAL,
    ast.Eq: Op.EQUAL,
    ast.NotEq: Op.NOT_EQUAL,
}
COMPARISONS = frozenset(_COMPARISON.values())
ARITHMETIC = frozenset({Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.MIN, Op.MAX})
LOGIC = frozenset({Op.AND, Op.OR})
# Name, fewest and most arguments. min and max fold from the left.
_FUNCTIONS: dict[str, tuple[Op, int, int]] = {
    "abs": (Op.ABS, 1, 1),
    "min": (Op.MIN, 2, 64),
    "max": (Op.MAX, 2, 64),
    "sqrt": (Op.SQRT, 1, 1),
    "log": (Op.LOG, 1, 1),
    "log1p": (Op.LOG1P, 1, 1),
    "exp": (Op.EXP, 1, 1),
    "where": (Op.WHERE, 3, 3),
    "clip": (Op.CLIP, 3, 3),
}
FUNCTION_NAMES = tuple(_FUNCTIONS)
_ALLOWED = "+ - * / **, comparisons, and, or, not, in, and the functions " + ", ".join(_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, an integer beyond float64's exact range, or a truth value: something only columns compare with."""

    value: str | int | bool


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Apply:
    op: Op
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """`item in [values]`."""

    item: Node
    values: tuple[Number | Constant, ...]


Node = Number | Constant | Name | Apply | Member


# -- text to tree ----------------------------------------------------------------------------------------------


@lru_cache(maxsize=65_536)
def parse(text: str) -> Node:
    """The tree of an expression, admitted node by node.

    >>> parse("x + 1")
    Apply(op=<Op.ADD: 3>, args=(Name(name='x'), Number(value=1.0)))
    """
    if len(text) > LENGTH_MAX:
        raise ExpressionError(f"the expression has {len(text):,} characters; at most {LENGTH_MAX:,} are read")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ExpressionError(f"{_shown(text)} cannot be read: {_told(error, text)}") from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError(
            f"{_shown(text)} cannot be read: it nests too deeply or holds a character that no expression has"
        ) from None
    return _admit(tree.body, text, DEPTH_MAX)


def _told(error: SyntaxError, text: str) -> str:
    where = f"at column {error.offset}" if error.offset else "at its end"
    compares = re.search(r"(?<![=<>!])=(?!=)", text)
    return f"{error.msg} {where}" + ("; to compare, write ==" if compares else "")


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _refuse(node: ast.expr, text: str, reason: str) -> ExpressionError:
    segment = ast.get_source_segment(text.strip(), node) or text
    return ExpressionError(f"{_shown(segment)} at column {node.col_offset + 1}: {reason}")


def _admit(node: ast.expr, text: str, depth: int) -> Node:
    if depth == 0:
        raise ExpressionError(f"{_shown(text)} nests deeper than {DEPTH_MAX} levels; split it up")
    admit = _ADMITTED.get(type(node))
    if admit is None:
        raise _refuse(node, text, f"not part of the language; use {_ALLOWED}")
    return admit(node, text, depth - 1)


def _admit_name(node: ast.Name, _text: str, _depth: int) -> Node:
    return Constant(node.id == "true") if node.id in ("true", "false") else Name(node.id)


def _admit_unary(node: ast.UnaryOp, text: str, depth: int) -> Node:
    inner = _admit(node.operand, text, depth)
    if isinstance(node.op, ast.USub):
        return _negated(inner)
    if isinstance(node.op, ast.Not):
        return Apply(Op.NOT, (inner,))
    if isinstance(node.op, ast.UAdd):
        return inner
    raise _refuse(node, text, f"not part of the language; use {_ALLOWED}")


def _admit_and_or(node: ast.BoolOp, text: str, depth: int) -> Node:
    parts = [_admit(value, text, depth) for value in node.values]
    return fold(Op.AND if isinstance(node.op, ast.And) else Op.OR, parts)


def _refuse_dot(node: ast.Attribute, text: str, _depth: int) -> Node:
    raise _refuse(node, text, "a dot has no meaning here; name an attribute of the stream")


def _negated(node: Node) -> Node:
    if isinstance(node, Number):
        return Number(-node.value)
    if isinstance(node, Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return Constant(-node.value)
    return Apply(Op.NEGATE, (node,))


def _admit_binary(node: ast.BinOp, text: str, depth: int) -> Node:
    # A sum of a thousand terms is a thousand levels deep to the left: walk that spine instead of nesting.
    spine: list[tuple[Op, ast.expr]] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):
        if type(left.op) not in _BINARY:
            raise _refuse(left, text, f"not part of the language; use {_ALLOWED}")
        spine.append((_BINARY[type(left.op)], left.right))
        left = left.left
    result = _admit(left, text, depth)
    for op, right in reversed(spine):
        argument = _admit(right, text, depth)
        if op is Op.POWER and argument == Number(2.0):
            result = Apply(Op.SQUARE, (result,))
        else:
            result = Apply(op, (result, argument))
    return result


def _admit_constant(node: ast.Constant, text: str, _depth: int) -> Number | Constant:
    value = node.value
    if isinstance(value, bool | str):
        return Constant(value)
    if isinstance(value, int):
        if abs(value) <= 2**53:
            return Number(float(value))
        if value in INT64:
            return Constant(value)
        raise _refuse(node, text, "too large; write it as a float, like 1e30")
    if isinstance(value, float):
        if math.isinf(value):
            raise _refuse(node, text, "beyond the range of float64")
        return Number(value)
    raise _refuse(node, text, "not a number, a text, true or false")


def _admit_comparison(node: ast.Compare, text: str, depth: int) -> Node:
    parts: list[Node] = []
    left_node = node.left
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        left = _admit(left_node, text, depth)
        if isinstance(op, ast.In | ast.NotIn):
            member = Member(left, _listed(right_node, text, depth))
            parts.append(member if isinstance(op, ast.In) else Apply(Op.NOT, (member,)))
        elif type(op) in _COMPARISON:
            parts.append(Apply(_COMPARISON[type(op)], (left, _admit(right_node, text, depth))))
        else:
            raise _refuse(node, text, "compare with <, <=, >, >=, ==, != or in")
        left_node = right_node
    return fold(Op.AND, parts)


def _listed(node: ast.expr, text: str, depth: int) -> tuple[Number | Constant, ...]:
    if not isinstance(node, ast.List | ast.Tuple | ast.Set):
        raise _refuse(node, text, "`in` needs a list of constants, like ['A', 'B']")
    values: list[Number | Constant] = []
    for element in node.elts:
        value = _admit(element, text, depth)
        if not isinstance(value, Number | Constant):
            raise _refuse(element, text, "a list holds constants only")
        values.append(value)
    return tuple(values)


def _admit_call(node: ast.Call, text: str, depth: int) -> Node:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name not in _FUNCTIONS:
        hint = get_close_matches(name or "", _FUNCTIONS, n=1)
        meant = f"did you mean {hint[0]}? " if hint else ""
        raise _refuse(node, text, f"no such function; {meant}there are {', '.join(_FUNCTIONS)}")
    if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
        raise _refuse(node, text, "arguments are given by position only")
    op, fewest, most = _FUNCTIONS[name]
    if not fewest <= len(node.args) <= most:
        wanted = str(fewest) if fewest == most else f"{fewest} or more"
        raise _refuse(node, text, f"{name} takes {wanted} argument{'s' * (wanted != '1')}, not {len(node.args)}")
    args = [_admit(argument, text, depth) for argument in node.args]
    return fold(op, args) if op in (Op.MIN, Op.MAX) else Apply(op, tuple(args))


def fold(op: Op, parts: list[Node]) -> Node:
    result = parts[0]
    for part in parts[1:]:
        result = Apply(op, (result, part))
    return result


_ADMITTED: dict[type[ast.expr], Callable[..., Node]] = {
    ast.Constant: _admit_constant,
    ast.Name: _admit_name,
    ast.BinOp: _admit_binary,
    ast.UnaryOp: _admit_unary,
    ast.Call: _admit_call,
    ast.Compare: _admit_comparison,
    ast.BoolOp: _admit_and_or,
    ast.Attribute: _refuse_dot,
}


# -- what a tree says ------------------------------------------------------------------------------------------


def left_spine(node: Node, ops: frozenset[Op]) -> tuple[Node, list[tuple[Op, Node]]]:
    """A chain such as a + b - c as its first operand and the (operator, operand) pairs that follow.

    Chains may be thousands of terms long, so whoever walks a tree walks them in a loop and recurses for operands only.
    """
    rest: list[tuple[Op, Node]] = []
    while isinstance(node, Apply) and node.op in ops and len(node.args) == 2:
        rest.append((node.op, node.args[1]))
        node = node.args[0]
    rest.reverse()
    return node, rest


def names_in(node: Node) -> set[str]:
    """Every attribute and column that the tree reads."""
    return {part.name for part in walk(node) if isinstance(part, Name)}


def walk(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        if isinstance(part, Apply):
            pending.extend(part.args)
        elif isinstance(part, Member):
            pending.append(part.item)


def check_score(node: Node, attributes: Mapping[str, object], columns: Mapping[str, str]) -> None:
    """Raise unless the tree is a number over the attributes."""
    for name in sorted(names_in(node)):
        if name not in attributes:
            if name in columns:
                raise ExpressionError(
                    f"{name} is a column, and scores take attributes only; declare it under attributes to rank by it"
                )
            raise _unknown(name, [*attributes], "attribute")
    if _type_of(node, dict.fromkeys(attributes, "number")) != "number":
        raise ExpressionError("a score is a number; turn a condition into one with where(condition, 1, 0)")


def check_filter(node: Node, attributes: Mapping[str, object], columns: Mapping[str, Type]) -> None:
    """Raise unless the tree is a condition over attributes and columns."""
    types: dict[str, Type] = {**columns, **dict.fromkeys(attributes, "number")}
    for name in sorted(names_in(node)):
        if name not in types:
            raise _unknown(name, [*types], "attribute or column")
    if _type_of(node, types) not in ("condition", "bool"):
        raise ExpressionError("a filter is a condition, like price > 10 and venue in ['A', 'B']")


def _unknown(name: str, known: list[str], what: str) -> ExpressionError:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return ExpressionError(f"{name} is no {what} of the stream; {hint}it has {', '.join(known) or 'none'}")


def _type_of(node: Node, types: Mapping[str, Type]) -> Type:
    match node:
        case Number():
            return "number"
        case Constant(value=value):
            return "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "int64"
        case Name(name=name):
            return types[name]
        case Member():
            return _type_of_member(node, types)
        case Apply(op=op, args=args) if op in COMPARISONS:
            return _type_of_comparison(op, args, types)
        case Apply(op=Op.AND | Op.OR | Op.NOT as op, args=args):
            first, rest = left_spine(node, LOGIC)
            operands = args if op is Op.NOT else (first, *(operand for _, operand in rest))
            for operand in operands:
                if _type_of(operand, types) not in ("condition", "bool"):
                    raise ExpressionError("and, or and not join conditions, like price > 10, not numbers or texts")
            return "condition"
        case Apply(op=Op.WHERE, args=(condition, then, other)):
            if _type_of(condition, types) not in ("condition", "bool"):
                raise ExpressionError("where(c, a, b) begins with a condition, like where(x > 0, x, 0)")
            _require_numbers((then, other), types)
            return "number"
        case Apply(args=args):
            first, rest = left_spine(node, ARITHMETIC)
            _require_numbers((first, *(operand for _, operand in rest)) if rest else args, types)
            return "number"


def _require_numbers(args: tuple[Node, ...], types: Mapping[str, Type]) -> None:
    for arg in args:
        found = _type_of(arg, types)
        if found == "condition":
            raise ExpressionError("a condition is not a number; use where(condition, 1, 0)")
        if found in ("string", "bool"):
            raise ExpressionError(f"arithmetic takes numbers, not {'text' if found == 'string' else 'true and false'}")


_NUMERIC = ("number", "int64", "float64")


def _type_of_comparison(op: Op, args: tuple[Node, ...], types: Mapping[str, Type]) -> Type:
    left, right = (_type_of(arg, types) for arg in args)
    if left in _NUMERIC and right in _NUMERIC:
        return "condition"
    if left == right and left in ("string", "bool"):
        if op not in (Op.EQUAL, Op.NOT_EQUAL):
            raise ExpressionError("texts and truth values are compared with ==, != or in only")
        if not any(isinstance(arg, Name) for arg in args):
            raise ExpressionError("a comparison of two constants filters nothing; name a column")
        return "condition"
    raise ExpressionError(f"cannot compare {_words(left)} with {_words(right)}")


def _type_of_member(node: Member, types: Mapping[str, Type]) -> Type:
    item = _type_of(node.item, types)
    for value in node.values:
        found = _type_of(value, types)
        if not (found == item or (found in _NUMERIC and item in _NUMERIC)):
            raise ExpressionError(f"the list after `in` holds {_words(found)}, but {_words(item)} is looked for")
    if item in ("string", "bool") and not isinstance(node.item, Name):
        raise ExpressionError("a membership of constants filters nothing; name a column")
    return "condition"


def _words(found: Type) -> str:
    return {"string": "a text", "bool": "true or false", "condition": "a condition"}.get(found, "a number")
