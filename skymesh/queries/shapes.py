"""What kind of function a score is: a known shape with its parameters, and the directions in which it grows.

A shape is recognized only where its direct kernel gives the same bits as the expression in the order as written:
sums and products along their left spine, `w * (x - c) ** 2` but not `(x - c) * w * (x - c)`. Everything else runs
through the interpreter and is indexed by its bounds, so a score that is not recognized costs speed, never rightness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from .expressions import Apply, Constant, Member, Name, Node, Number, Op, fold, names_in


class Shape(IntEnum):
    PROGRAM = 0
    LINEAR = 1  # sum of w * x
    PRODUCT = 2  # product of c + x
    QUADRATIC = 3  # sum of w * (x * x)
    EUCLIDEAN = 4  # sqrt of the sum of w * ((x - c) * (x - c))
    MANHATTAN = 5  # sum of w * |x - c|
    LARGEST = 6  # largest w * |x - c|


@dataclass(frozen=True, slots=True)
class Term:
    """One attribute's share of a shape: its weight w and its constant c, as the shape's formula has them."""

    name: str
    weight: float = 1.0
    constant: float = 0.0


@dataclass(frozen=True, slots=True)
class Form:
    shape: Shape
    terms: tuple[Term, ...] = ()


def recognize(node: Node) -> Form:
    """The shape of a score, or PROGRAM.

    >>> from skymesh.queries.expressions import parse
    >>> recognize(parse("0.3 * price + volume")).shape.name
    'LINEAR'
    """
    if isinstance(node, Apply) and node.op is Op.SQRT:
        terms = _sum_of(node.args[0], _weighted_square_of_difference)
        return Form(Shape.EUCLIDEAN, terms) if terms else Form(Shape.PROGRAM)
    for shape, term_of in (
        (Shape.LINEAR, _weighted_name),
        (Shape.QUADRATIC, _weighted_square),
        (Shape.MANHATTAN, _weighted_difference),
    ):
        terms = _sum_of(node, term_of)
        if terms:
            return Form(shape, terms)
    factors = _along_left_spine(node, Op.MULTIPLY)
    shifted = [_shifted_name(factor) for factor in factors]
    if len(factors) > 1 and None not in shifted:
        return Form(Shape.PRODUCT, tuple(term for term in shifted if term))
    parts = _along_left_spine(node, Op.MAX)
    differences = [_weighted_difference(part) for part in parts]
    if len(parts) > 1 and None not in differences:
        return Form(Shape.LARGEST, tuple(term for term in differences if term))
    return Form(Shape.PROGRAM)


def _along_left_spine(node: Node, op: Op) -> list[Node]:
    parts: list[Node] = []
    while isinstance(node, Apply) and node.op is op:
        parts.append(node.args[1])
        node = node.args[0]
    return [node, *reversed(parts)]


def _sum_of(node: Node, term_of: Callable[[Node], Term | None]) -> tuple[Term, ...]:
    """The terms of a sum or difference, first to last, or none if one of them is something else."""
    terms: list[Term | None] = []
    while isinstance(node, Apply) and node.op in (Op.ADD, Op.SUBTRACT):
        term = term_of(node.args[1])
        # a - w * b and a + (-w) * b have the same bits.
        terms.append(replace(term, weight=-term.weight) if term and node.op is Op.SUBTRACT else term)
        node = node.args[0]
    terms.append(term_of(node))
    return () if None in terms else tuple(term for term in reversed(terms) if term)


def _weighted(node: Node) -> tuple[float, Node]:
    """w * e, e * w, -e, or e."""
    if isinstance(node, Apply) and node.op is Op.NEGATE:
        weight, inner = _weighted(node.args[0])
        return -weight, inner
    if isinstance(node, Apply) and node.op is Op.MULTIPLY:
        left, right = node.args
        if isinstance(left, Number):
            return left.value, right
        if isinstance(right, Number):
            return right.value, left
    return 1.0, node


def _weighted_name(node: Node) -> Term | None:
    weight, inner = _weighted(node)
    return Term(inner.name, weight) if isinstance(inner, Name) else None


def _weighted_square(node: Node) -> Term | None:
    weight, inner = _weighted(node)
    if isinstance(inner, Apply) and inner.op is Op.SQUARE and isinstance(inner.args[0], Name):
        return Term(inner.args[0].name, weight)
    return None


def _difference(node: Node) -> Term | None:
    """x - c or c - x: the callers square it or drop its sign."""
    if isinstance(node, Apply) and node.op is Op.SUBTRACT:
        match node.args:
            case (Name(name=name), Number(value=constant)) | (Number(value=constant), Name(name=name)):
                return Term(name, constant=constant)
    if isinstance(node, Apply) and node.op is Op.ADD:
        match node.args:
            case (Name(name=name), Number(value=constant)) | (Number(value=constant), Name(name=name)):
                return Term(name, constant=-constant)
    return None


def _weighted_square_of_difference(node: Node) -> Term | None:
    return _weighted_inner_difference(node, Op.SQUARE)


def _weighted_difference(node: Node) -> Term | None:
    return _weighted_inner_difference(node, Op.ABS)


def _weighted_inner_difference(node: Node, op: Op) -> Term | None:
    weight, inner = _weighted(node)
    if not (isinstance(inner, Apply) and inner.op is op):
        return None
    term = _difference(inner.args[0])
    return Term(term.name, weight, term.constant) if term else None


def _shifted_name(node: Node) -> Term | None:
    if isinstance(node, Name):
        return Term(node.name, constant=-0.0)  # -0.0 + x is x, bit for bit, zeros included
    if isinstance(node, Apply) and node.op is Op.ADD:
        match node.args:
            case (Name(name=name), Number(value=constant)) | (Number(value=constant), Name(name=name)):
                return Term(name, constant=constant)
    return None


# -- structured scores as trees --------------------------------------------------------------------------------


def linear(weights: Mapping[str, float]) -> Node:
    return fold(Op.ADD, [_times(weight, Name(name)) for name, weight in weights.items()])


def product(constants: Mapping[str, float]) -> Node:
    return fold(Op.MULTIPLY, [Apply(Op.ADD, (Number(constant), Name(name))) for name, constant in constants.items()])


def quadratic(weights: Mapping[str, float]) -> Node:
    return fold(Op.ADD, [_times(weight, Apply(Op.SQUARE, (Name(name),))) for name, weight in weights.items()])


def distance(to: Mapping[str, float], weights: Mapping[str, float], metric: str) -> Node:
    inner = Op.SQUARE if metric == "euclidean" else Op.ABS
    parts = [
        _times(weights.get(name, 1.0), Apply(inner, (Apply(Op.SUBTRACT, (Name(name), Number(center))),)))
        for name, center in to.items()
    ]
    total = fold(Op.MAX if metric == "largest" else Op.ADD, parts)
    return Apply(Op.SQRT, (total,)) if metric == "euclidean" else total


def _times(weight: float, node: Node) -> Node:
    return node if weight == 1.0 else Apply(Op.MULTIPLY, (Number(weight), node))


# -- directions ------------------------------------------------------------------------------------------------

# Signs: +1 never negative, -1 never positive, 0 unknown. Directions: +1 never falls, -1 never rises as the
# attribute grows, 0 does not depend on it, None neither.
Direction = int | None

# Of a taller tree nothing is said: it is walked recursively, and directions only guide.
HEIGHT_MAX = 200


def directions(node: Node, domains: Mapping[str, tuple[float, float] | None]) -> dict[str, Direction]:
    """How the score moves with each attribute, for values inside the domains (None: any value).

    >>> from skymesh.queries.expressions import parse
    >>> directions(parse("x * y - z"), {"x": (0, 1), "y": (0, 1), "z": None})
    {'x': 1, 'y': 1, 'z': -1}
    """
    signs = {name: _sign_of_range(domain) for name, domain in domains.items()}
    if _height(node) > HEIGHT_MAX:
        return dict.fromkeys(sorted(names_in(node)))
    return {name: _direction(node, name, signs) for name in sorted(names_in(node))}


def _height(node: Node) -> int:
    height, level = 0, [node]
    while level:
        height += 1
        level = [arg for part in level if isinstance(part, Apply) for arg in part.args]
    return height


def _sign_of_range(domain: tuple[float, float] | None) -> int:
    if domain is None:
        return 0
    return 1 if domain[0] >= 0 else -1 if domain[1] <= 0 else 0


def _sign(node: Node, signs: Mapping[str, int]) -> int:
    match node:
        case Number(value=value):
            return 1 if value >= 0 else -1
        case Name(name=name):
            return signs.get(name, 0)
        case Apply(op=Op.NEGATE, args=(inner,)):
            return -_sign(inner, signs)
        case Apply(op=Op.SQUARE | Op.ABS | Op.SQRT | Op.EXP):
            return 1
        case Apply(op=Op.LOG1P, args=(inner,)):
            return _sign(inner, signs)
        case Apply(op=Op.ADD, args=(left, right)):
            return _agreed(_sign(left, signs), _sign(right, signs))
        case Apply(op=Op.SUBTRACT, args=(left, right)):
            return _agreed(_sign(left, signs), -_sign(right, signs))
        case Apply(op=Op.MULTIPLY, args=(left, right)):
            return _sign(left, signs) * _sign(right, signs)
        case Apply(op=Op.DIVIDE, args=(left, Number(value=divisor))) if divisor != 0:
            return _sign(left, signs) * (1 if divisor > 0 else -1)
        case Apply(op=Op.POWER, args=(base, _)):
            return 1 if _sign(base, signs) == 1 else 0
        case Apply(op=Op.MAX, args=(left, right)):
            either = (_sign(left, signs), _sign(right, signs))
            return 1 if 1 in either else _agreed(*either)
        case Apply(op=Op.MIN, args=(left, right)):
            either = (_sign(left, signs), _sign(right, signs))
            return -1 if -1 in either else _agreed(*either)
        case Apply(op=Op.WHERE, args=(_, then, other)):
            return _agreed(_sign(then, signs), _sign(other, signs))
        case _:
            return 0


def _agreed(left: int, right: int) -> int:
    return left if left == right else 0


def _direction(node: Node, name: str, signs: Mapping[str, int]) -> Direction:
    def of(part: Node) -> Direction:
        return _direction(part, name, signs)

    match node:
        case Number() | Constant():
            return 0
        case Name(name=found):
            return int(found == name)
        case Apply(op=Op.NEGATE, args=(inner,)):
            return _turned(of(inner), -1)
        case Apply(op=Op.SQRT | Op.LOG | Op.LOG1P | Op.EXP, args=(inner,)):
            return of(inner)
        case Apply(op=Op.ADD | Op.MIN | Op.MAX, args=(left, right)):
            return _joined(of(left), of(right))
        case Apply(op=Op.SUBTRACT, args=(left, right)):
            return _joined(of(left), _turned(of(right), -1))
        case Apply(op=Op.MULTIPLY, args=(left, right)):
            return _joined(_turned(of(left), _sign(right, signs)), _turned(of(right), _sign(left, signs)))
        case Apply(op=Op.DIVIDE, args=(left, Number(value=divisor))) if divisor != 0:
            # Other divisors have no direction: 1 / y jumps from -inf to inf between the two zeros of float64.
            return _turned(of(left), 1 if divisor > 0 else -1)
        case Apply(op=Op.SQUARE | Op.ABS, args=(inner,)):
            return _turned(of(inner), _sign(inner, signs))
        case Apply(op=Op.POWER, args=(base, Number(value=exponent))):
            return _turned(of(base), (1 if exponent >= 0 else -1) * (_sign(base, signs) == 1))
        case Apply(op=Op.CLIP, args=(value, low, high)):
            return _joined(of(value), _joined(of(low), of(high)))
        case Apply(args=args):
            return 0 if all(of(arg) == 0 for arg in args) else None
        case Member(item=item):
            return 0 if of(item) == 0 else None


def _turned(direction: Direction, sign: int) -> Direction:
    if direction == 0:
        return 0
    return None if direction is None or sign == 0 else direction * sign


def _joined(left: Direction, right: Direction) -> Direction:
    if left == 0 or left == right:
        return right
    return left if right == 0 else None
