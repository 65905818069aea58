"""Scores: an expression, or one of the structured forms that become the same trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from . import shapes
from .expressions import ExpressionError, Node, parse
from .fields import Fault, Model, NameText, Real, raise_faults
from .units import wrong

Weights = Annotated[dict[NameText, Real], Field(min_length=1)]


class Linear(Model):
    """The sum of weight * attribute."""

    linear: Weights

    def node(self) -> Node:
        return shapes.linear(self.linear)


class Product(Model):
    """The product of constant + attribute."""

    product: Weights

    def node(self) -> Node:
        return shapes.product(self.product)


class Quadratic(Model):
    """The sum of weight * attribute squared."""

    quadratic: Weights

    def node(self) -> Node:
        return shapes.quadratic(self.quadratic)


class DistanceTo(Model):
    """A point, what a difference in each attribute weighs, and how the differences add up."""

    to: Weights
    weights: dict[NameText, Real] = Field({}, description="a missing weight is 1")
    metric: Literal["euclidean", "manhattan", "largest"] = "euclidean"

    @model_validator(mode="after")
    def _check(self) -> Self:
        faults: list[Fault] = [
            (("weights", name), "weighs an attribute that `to` does not name; add it there or drop it")
            for name in self.weights
            if name not in self.to
        ]
        faults += [
            (("weights", name), f"is {weight:g}; a distance needs weights of 0 or more")
            for name, weight in self.weights.items()
            if weight < 0
        ]
        raise_faults("DistanceTo", faults, self)
        return self


def _distance(value: Any) -> Any:
    return {"to": value} if isinstance(value, Mapping) and "to" not in value else value


class Distance(Model):
    """The distance to a point. `order: smallest` ranks the nearest first."""

    distance: Annotated[DistanceTo, BeforeValidator(_distance)]

    def node(self) -> Node:
        return shapes.distance(self.distance.to, self.distance.weights, self.distance.metric)


def parse_expression(value: str) -> str:
    try:
        parse(value)
    except ExpressionError as error:
        raise wrong(str(error)) from None
    return value


_FORMS = ("linear", "product", "quadratic", "distance")


def _form_of_score(value: Any) -> str | None:
    if isinstance(value, str):
        return "expression"
    if isinstance(value, Mapping):
        return next((form for form in _FORMS if form in value), None)
    return next((form for form in _FORMS if hasattr(value, form)), None)


Score = Annotated[
    Annotated[str, AfterValidator(parse_expression), Tag("expression")]
    | Annotated[Linear, Tag("linear")]
    | Annotated[Product, Tag("product")]
    | Annotated[Quadratic, Tag("quadratic")]
    | Annotated[Distance, Tag("distance")],
    Discriminator(
        _form_of_score,
        custom_error_type="skymesh",
        custom_error_message=(
            f"is not a score; write an expression such as 0.3 * price + volume, or one of {', '.join(_FORMS)}"
        ),
    ),
]


def score_node(score: str | Linear | Product | Quadratic | Distance) -> Node:
    """The tree of a score, whichever way it was written."""
    return parse(score) if isinstance(score, str) else score.node()
