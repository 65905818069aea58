"""Which algorithm serves a query, and why.

A query that names an algorithm gets it or a refusal with the reason. `auto` takes the first in order of preference that
serves what is asked and does not hold more rows than memory should be spent on.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from ..algorithms import ALGORITHMS, Algorithm
from ..algorithms.asked import Scoring
from ..algorithms.score_table import score_bounds
from ..errors import QueryError
from ..queries import AnyQuery, QuerySet, Stream, Threshold
from ..queries.programs import Places, compile_program
from ..queries.scores import score_node
from ..queries.shapes import Direction, Form, Shape, directions, recognize

# From the one that does least work to the one that serves everything. SMA holds less than TMA and asks as rarely, and
# counts dominance at every entry. TSL is there to be compared with.
PREFERENCE = ("tma", "sa", "scan")
# An algorithm that holds the rows of the window is passed over where they would take more than this.
HELD_BYTES_MAX = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm that serves a query, and why."""

    algorithm: type[Algorithm]
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A choice as `explain` shows it, with what the query looks like to algorithms."""

    query: str
    stream: str
    algorithm: str
    does: str
    reason: str
    window: str
    score: str
    directions: str


def choose(query: AnyQuery, stream: Stream, company: int) -> Choice:
    """The algorithm of a query, or QueryError with the reason why there is none. `company`: how many queries there are
    over the stream, with this one."""
    if query.algorithm == "auto":
        return _preferred(query, stream, company)
    return Choice(_named(query, stream), "asked for by name")


def choices(queries: QuerySet) -> list[Choice]:
    """The algorithm of each query of a set."""
    company = Counter(query.stream for query in queries.queries)
    return [choose(query, queries.streams[query.stream], company[query.stream]) for query in queries.queries]


def plan(query: AnyQuery, stream: Stream, choice: Choice) -> Plan:
    """What was chosen for a query, to be read."""
    node = score_node(query.score)
    domains = {name: attribute.domain for name, attribute in stream.attributes.items()}
    return Plan(
        query.name,
        query.stream,
        choice.algorithm.name,
        choice.algorithm.summary,
        choice.reason,
        str(query.window),
        recognize(node).shape.name.lower(),
        ", ".join(f"{name} {_arrow(direction)}" for name, direction in directions(node, domains).items()),
    )


def refusals(queries: QuerySet) -> list[tuple[int, str]]:
    """The queries that no algorithm, or not the one they name, serves: index and reason."""
    found = []
    for index, query in enumerate(queries.queries):
        try:
            choose(query, queries.streams[query.stream], len(queries.queries))
        except QueryError as error:
            found.append((index, str(error)))
    return found


def _named(query: AnyQuery, stream: Stream) -> type[Algorithm]:
    algorithm = ALGORITHMS.get(query.algorithm)
    if algorithm is None:
        close = get_close_matches(query.algorithm, ALGORITHMS, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        raise QueryError(
            f"query {query.name!r}: there is no algorithm {query.algorithm!r}; "
            f"{meant}there are auto, {', '.join(ALGORITHMS)}"
        )
    reason = algorithm.refusal(query, stream)
    if reason is not None:
        raise QueryError(
            f"query {query.name!r}: algorithm {query.algorithm} does not serve it: {reason}; use algorithm: auto"
        )
    return algorithm


def _preferred(query: AnyQuery, stream: Stream, company: int) -> Choice:
    passed: list[str] = []
    for name in PREFERENCE:
        algorithm = ALGORITHMS[name]
        refusal = algorithm.refusal(query, stream) or _burden(algorithm, query, stream, company)
        if refusal is None:
            return Choice(algorithm, "; ".join(passed) or "the best that serves it")
        passed.append(f"not {name}: {refusal}")
    raise QueryError(f"query {query.name!r}: no algorithm serves it: {'; '.join(passed)}")


def _burden(algorithm: type[Algorithm], query: AnyQuery, stream: Stream, company: int) -> str | None:
    """Why an algorithm that holds the rows of the window would do badly where another need not hold them."""
    if not algorithm.keeps_rows or ALGORITHMS["sa"].refusal(query, stream) is not None:
        return None
    # With a single linear query over four attributes a skyband takes 0.9 of the grid's time (10,000 rows a batch, a
    # million in the window) and holds no window; with two it takes 1.2 times as long, with eight 3 times.
    if company == 1:
        return "a grid pays from the second query over a stream on"
    held = (query.window.count or 0) * 8 * (len(stream.attributes) + 4)
    if held > HELD_BYTES_MAX:
        return f"it would hold {query.window.count:,} rows, some {held / 2**30:.0f} GiB"
    if _is_endless(query, stream):
        return "its score has no end over the domains, so every part of a grid could hold the best"
    return None


def _is_endless(query: AnyQuery, stream: Stream) -> bool:
    """Whether the best score over the declared domains is infinite, as for 1 / x beside zero. Not asked of known
    shapes, nor where a domain is not declared."""
    node = score_node(query.score)
    domains = [attribute.domain for attribute in stream.attributes.values()]
    known = [domain for domain in domains if domain is not None]
    if recognize(node).shape is not Shape.PROGRAM or len(known) < len(domains):
        return False
    places = Places({name: row for row, name in enumerate(stream.attributes)}, {}, lambda _: 0)
    scoring = Scoring(compile_program(node, places), Form(Shape.PROGRAM), None, places.numbers)
    low, high = score_bounds(scoring, *np.ascontiguousarray(np.array(known, np.float64).T))
    largest = query.above is not None if isinstance(query, Threshold) else query.order == "largest"
    return not math.isfinite(high if largest else low)


def _arrow(direction: Direction) -> str:
    return {1: "rises", -1: "falls", 0: "constant", None: "both ways"}[direction]
