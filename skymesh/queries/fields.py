"""The base of all models, the field types they share, and how they report faults."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import InitErrorDetails

from .units import wrong

Location = tuple[str | int, ...]
Fault = tuple[Location, str]

NAME_LENGTH_MAX = 200


class Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def raise_faults(title: str, faults: list[Fault], source: object) -> None:
    """Raise pydantic's ValidationError with all of the faults, if there are any."""
    if faults:
        details = [InitErrorDetails(type=wrong(message), loc=location, input=source) for location, message in faults]
        raise ValidationError.from_exception_data(title, details)


def _parse_name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise wrong(f"{value!r} is not a name; write a text such as big-trades")
    if len(value) > NAME_LENGTH_MAX or not value.isprintable():
        raise wrong(
            f"{value[:40]!r} is too long for a name or holds a control character; "
            f"use at most {NAME_LENGTH_MAX} printable characters"
        )
    return value


def parse_real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise wrong(f"{value!r} is not a number; write one like 80, 0.5 or 1e6")
    return float(value)


def _parse_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong(f"{value!r} is not true or false")
    return value


NameText = Annotated[str, BeforeValidator(_parse_name)]
Real = Annotated[float, BeforeValidator(parse_real)]
Flag = Annotated[bool, BeforeValidator(_parse_flag)]
