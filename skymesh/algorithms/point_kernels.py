"""Evaluation points as arithmetic: which point first sees a position, and where a row's pane ends.

A pane is a stretch of positions whose rows leave the window at the same point. Of the rows of a pane only the k best
can ever show, because they come and go together: with a slide of 10,000 rows that is 20 rows of 10,000. With a slide of
one row a pane is one row, and a landmark window is a single pane.
"""

from __future__ import annotations

from .columns import EVER, NEVER
from .kernel import kernel


@kernel
def point_from(x: int, slide: int, offset: int, first: int) -> int:
    """The first point at or after position x."""
    if x >= NEVER:
        return NEVER
    if slide <= 1:
        return max(x, first)  # every position from the first on is one
    p = offset - ((offset - x) // slide) * slide  # floor division: rounds x up to a point
    return max(p, first)


@kernel
def leaves_at(at: int, size: int) -> int:
    """The first position at which a row is no longer in the window."""
    return NEVER if size >= NEVER else at + size


@kernel
def horizon_of(p: int, size: int) -> int:
    """Rows at or below it are not in the window that ends at p."""
    return EVER if size >= NEVER else p - size


@kernel
def pane_of(at: int, size: int, slide: int, offset: int, first: int) -> tuple[int, int]:
    """The pane (after, upto] of a row: the rows that leave the window at the same point."""
    if size >= NEVER:
        return EVER, NEVER
    if slide <= 1:
        # Every position is a point; before the first one of a delayed start they leave together, which costs
        # nothing to treat as if they did not.
        return at - 1, at
    p = point_from(at + size, slide, offset, first)
    return (EVER if p == first else p - slide - size), p - size
