"""Every exception that skymesh raises on purpose.

    SkymeshError
    ├── QueryError        what was asked cannot be: unknown stream, name taken, refused by an algorithm
    │   └── QueryFileError    a query file with mistakes; carries all of them
    └── InputError        what was pushed cannot be taken: a column is missing or of the wrong type

After one of these the engine is as it was before the call. Models built in Python raise pydantic's
ValidationError instead, since that is what users of pydantic models expect.
"""

from __future__ import annotations

from dataclasses import dataclass


class SkymeshError(Exception):
    """The root: `except skymesh.SkymeshError` catches what skymesh raises on purpose."""


class QueryError(SkymeshError):
    """What was asked cannot be. The message says what, why, and what to do."""


class InputError(SkymeshError):
    """What was pushed cannot be taken; nothing of it was."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a query file: where it stands, what is wrong, what to do."""

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class QueryFileError(QueryError):
    """A query file with mistakes, all of them at once, in the order of their lines."""

    def __init__(self, problems: list[Problem]) -> None:
        # The problems are the arguments, so that the exception survives pickling between processes.
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)
