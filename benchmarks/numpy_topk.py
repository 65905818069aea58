"""What one would write with NumPy alone: the rankings of many queries over one sliding window, exact.

Each query holds the best rows of the window, some 3k of them, and a *floor*: every row that is not held ranks below
it. A batch is scored against all queries at once by a matrix product in single precision; what comes near a floor is
scored again exactly and held. When fewer than k held rows are left in the window, the window is scanned for more, all
queries that are short in one product. Equal scores rank the newer row first.

`GroupedTopK` first asks groups of similar queries: a row whose product with the largest coefficients of a group stays
below the lowest floor in it concerns none of its queries, which is so for most rows and most groups.

Source  the candidate buffers are the materialized views of TSL's maintenance; the rest is what NumPy does well.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.mouratidis_data import Batch, Floats, Score

Ints = NDArray[np.int64]
Rankings = tuple[Ints, Floats]  # seq i8[queries, k] and score f8[queries, k], best first; -1 and -inf where none

PREFILTER = np.float32
_ROUNDING = float(np.finfo(PREFILTER).eps)
_PAIRS_AT_ONCE = (
    250_000  # scores of that many pairs stay in the second-level cache; 4 times as many took 1.3 times as long
)
_SAMPLED_EVERY = 32
_QUERIES_A_SCAN = 64


class Scoring(Protocol):
    """How rows are scored for all queries: roughly and fast, then exactly."""

    queries: int

    def features(self, values: Floats) -> NDArray[np.floating]:
        """[n, features] of values f8[d, n]."""

    def lowered(self, floor: Floats, chosen: Ints | slice) -> NDArray[np.floating]:
        """What a rough score must reach so that no exact score at or above its floor is missed."""

    def rough(self, features: NDArray[np.floating], chosen: Ints | slice) -> NDArray[np.floating]:
        """[n, chosen]"""

    def exact(self, values: Floats, query: Ints | int) -> Floats:
        """The score of each column of values f8[d, m] for the query beside it, with the bits of the written order."""


class Polynomial:
    """Linear, product and quadratic scores: a matrix product of what a row has with what a query weighs it by.

    A product of (a + x) is multiplied out: one term for each subset of the attributes. Queries are scaled to
    coefficients that sum to 1, which changes no ranking and makes groups of them tighter.
    """

    def __init__(self, score: Score, weights: Floats) -> None:
        self.queries, dimensions = weights.shape
        self.score = score
        self._weights = np.ascontiguousarray(weights.T)
        self._subsets = [s for size in range(dimensions + 1) for s in combinations(range(dimensions), size)]
        exact = self._multiplied_out() if score == "product" else self._weights
        self._scale = 1 / exact.sum(axis=0)
        self.coefficients = np.ascontiguousarray(exact * self._scale, PREFILTER)
        self._largest = np.zeros(len(exact))

    def _multiplied_out(self) -> Floats:
        dimensions = set(range(len(self._weights)))
        return np.stack([self._weights[list(dimensions - set(subset))].prod(axis=0) for subset in self._subsets])

    def features(self, values: Floats) -> NDArray[np.floating]:
        if self.score == "product":
            values = np.stack([values[list(subset)].prod(axis=0) for subset in self._subsets])
        elif self.score == "quadratic":
            values = values * values
        self._largest = np.maximum(self._largest, np.abs(values).max(axis=1, initial=0))
        return np.ascontiguousarray(values.T, PREFILTER)

    def lowered(self, floor: Floats, chosen: Ints | slice) -> NDArray[np.floating]:
        return (floor * self._scale[chosen] - self.margin(self.coefficients[:, chosen])).astype(PREFILTER)

    def margin(self, coefficients: NDArray[np.floating]) -> Floats:
        """How far a product in single precision may lie from the truth: rounded factors, rounded sums."""
        return (len(self._largest) + 4) * _ROUNDING * (self._largest @ np.abs(coefficients))

    def rough(self, features: NDArray[np.floating], chosen: Ints | slice) -> NDArray[np.floating]:
        return features @ self.coefficients[:, chosen]

    def exact(self, values: Floats, query: Ints | int) -> Floats:
        weights = self._weights[:, query]
        if self.score == "product":
            total = weights[0] + values[0]
            for weight, value in zip(weights[1:], values[1:], strict=True):
                total *= weight + value
            return total
        if self.score == "quadratic":
            values = values * values
        total = weights[0] * values[0]
        for weight, value in zip(weights[1:], values[1:], strict=True):
            total += weight * value
        return total


class NumpyTopK:
    """Each batch against every query."""

    def __init__(self, scoring: Scoring, *, k: int, window: int, searches_together: bool = False) -> None:
        self._scoring = scoring
        self._searches_together = searches_together
        self._k, self._window = k, window
        self._wanted = 3 * k + 1
        room = (scoring.queries, 2 * self._wanted)
        self._held_seq = np.full(room, -1, np.int64)
        self._held_score = np.full(room, -np.inf)
        self._held = np.zeros(scoring.queries, np.int64)
        self._floor = np.full(scoring.queries, -np.inf)
        self._shown_seq = np.full((scoring.queries, k), -1, np.int64)
        self._shown_score = np.full((scoring.queries, k), -np.inf)
        self._next_seq = 0
        self._values = np.empty((0, 0))
        self._features = np.empty((0, 0), PREFILTER)

    def rankings(self) -> Rankings:
        return self._shown_seq, self._shown_score

    def kept(self) -> float:
        """Rows that a query holds, on average."""
        return float(self._held.mean())

    def fill(self, batches: Sequence[Batch]) -> None:
        """Take in rows without ranking them one batch at a time; then search for every query."""
        for batch in batches:
            self._store(values_of(batch))
        everyone = np.arange(self._scoring.queries)
        self._search_together(everyone)
        self._rank(everyone)

    def push(self, batch: Batch) -> None:
        """One cycle: take a batch in and bring the rankings up to date."""
        values = values_of(batch)
        first_seq = self._next_seq
        features = self._store(values)
        row, query = self._passing(features)
        score = self._scoring.exact(values[:, row], query)
        admitted = score >= self._floor[query]
        query, score = query[admitted], score[admitted]
        self._hold(query, first_seq + row[admitted], score)
        changed = self._shown_seq.min(axis=1) < self._next_seq - self._window
        changed[query[score >= self._shown_score[query, -1]]] = True
        self._rank(np.flatnonzero(changed))

    # -- the window --------------------------------------------------------------------------------------------

    def _store(self, values: Floats) -> NDArray[np.floating]:
        """Write rows over the oldest ones; their features."""
        features = self._scoring.features(values)
        if not self._values.size:
            self._values = np.zeros((len(values), self._window))
            self._features = np.zeros((self._window, features.shape[1]), features.dtype)
        place = self._next_seq % self._window
        count = values.shape[1]
        before_wrap = min(count, self._window - place)
        for target, start, stop in ((place, 0, before_wrap), (0, before_wrap, count)):
            self._values[:, target : target + stop - start] = values[:, start:stop]
            self._features[target : target + stop - start] = features[start:stop]
        self._next_seq += count
        return features

    def _seq_at(self, place: Ints) -> Ints:
        newest = self._next_seq - 1
        return newest - (newest - place) % self._window

    # -- which rows concern which queries ----------------------------------------------------------------------

    def _passing(self, features: NDArray[np.floating]) -> tuple[Ints, Ints]:
        """Row and query of all pairs that may reach a floor, and few others."""
        return self._scan(features, slice(None), self._floor)

    def _scan(self, features: NDArray[np.floating], chosen: Ints | slice, floor: Floats) -> tuple[Ints, Ints]:
        """Row, and place in chosen, of the pairs that may reach their floor."""
        least = self._scoring.lowered(floor, chosen)
        height = max(1, _PAIRS_AT_ONCE // len(least))
        hits = []
        for start in range(0, len(features), height):
            reached = self._scoring.rough(features[start : start + height], chosen) >= least
            hits.append(np.flatnonzero(reached) + start * len(least))
        return np.divmod(np.concatenate(hits), len(least)) if hits else (np.zeros(0, np.int64),) * 2

    # -- what is held ------------------------------------------------------------------------------------------

    def _hold(self, query: Ints, seq: Ints, score: Floats) -> None:
        """Put rows behind those that are held; where the room ends, the best stay and the floor rises."""
        order = np.argsort(query, kind="stable")
        query, seq, score = query[order], seq[order], score[order]
        found, begins, counts = np.unique(query, return_index=True, return_counts=True)
        full = self._held[found] + counts > self._held_seq.shape[1]
        for number, begin, count in zip(found[full], begins[full], counts[full], strict=True):
            part, held = slice(begin, begin + count), self._held[number]
            self._keep_best(
                number,
                np.concatenate((self._held_seq[number, :held], seq[part])),
                np.concatenate((self._held_score[number, :held], score[part])),
            )
        fits = np.repeat(~full, counts)
        place = np.arange(len(query)) - np.repeat(begins, counts) + self._held[query]
        query, place = query[fits], place[fits]
        self._held_seq[query, place], self._held_score[query, place] = seq[fits], score[fits]
        self._held[found[~full]] += counts[~full]

    def _keep_best(self, query: int, seq: Ints, score: Floats) -> None:
        """Hold the best of these rows, which are all that rank above some floor."""
        alive = np.flatnonzero(seq >= self._next_seq - self._window)
        best = alive[np.lexsort((seq[alive], score[alive]))[::-1][: self._wanted]]
        if len(alive) > self._wanted:
            self._floor[query] = score[best[-1]]
        self._held[query] = len(best)
        self._held_seq[query, : len(best)], self._held_score[query, : len(best)] = seq[best], score[best]

    def _rank(self, queries: Ints) -> None:
        """Sort what these queries hold, drop what has expired, show the best k."""
        short = self._sort(queries)
        if len(short):
            self._search(short)
            self._sort(short)

    def _sort(self, queries: Ints) -> Ints:
        """The queries that hold fewer than k rows while there are more in the window."""
        if not len(queries):
            return queries
        width = max(int(self._held[queries].max()), self._k)
        seq, score = self._held_seq[queries, :width], self._held_score[queries, :width]
        alive = (seq >= self._next_seq - self._window) & (np.arange(width) < self._held[queries, None])
        score = np.where(alive, score, -np.inf)
        order = _best_first(score, seq)
        seq, score = np.take_along_axis(seq, order, axis=1), np.take_along_axis(score, order, axis=1)
        seq[np.isneginf(score)] = -1
        self._held_seq[queries, :width], self._held_score[queries, :width] = seq, score
        self._held[queries] = alive.sum(axis=1)
        self._shown_seq[queries], self._shown_score[queries] = seq[:, : self._k], score[:, : self._k]
        return queries[(self._held[queries] < self._k) & (self._floor[queries] > -np.inf)]

    # -- searches ----------------------------------------------------------------------------------------------

    def _search(self, queries: Ints) -> None:
        """Find the best rows of the window for queries that are short of them."""
        if self._searches_together:
            self._search_together(queries)
        else:
            for number in queries:
                self._search_one(number)

    def _search_one(self, query: int) -> None:
        """Score the whole window exactly and take the best."""
        size = min(self._window, self._next_seq)
        score = self._scoring.exact(self._values[:, :size], query)
        self._floor[query] = -np.inf
        best = np.arange(size)
        if size > self._wanted:
            self._floor[query] = np.partition(score, size - self._wanted)[size - self._wanted]
            best = np.flatnonzero(score >= self._floor[query])
        self._keep_best(query, self._seq_at(best), score[best])

    def _search_together(self, queries: Ints) -> None:
        """Many queries in one scan, each for the rows above a floor that a sample of the window suggests."""
        for start in range(0, len(queries), _QUERIES_A_SCAN):
            missing, rank = queries[start : start + _QUERIES_A_SCAN], 2 * self._wanted // _SAMPLED_EVERY + 2
            while len(missing):
                missing = missing[~self._found(missing, self._guessed_floor(missing, rank))]
                rank *= 4

    def _guessed_floor(self, queries: Ints, rank: int) -> Floats:
        """The score of the row at this rank of a sample; so many rows, times the sampling, rank above it."""
        size = min(self._window, self._next_seq)
        sample = self._scoring.rough(self._features[:size:_SAMPLED_EVERY], queries)
        if rank > len(sample):
            return np.full(len(queries), -np.inf)
        place = np.argpartition(sample, -rank, axis=0)[-rank] * _SAMPLED_EVERY
        return self._scoring.exact(self._values[:, place], queries)

    def _found(self, queries: Ints, floor: Floats) -> NDArray[np.bool_]:
        """Hold the best of the rows at or above these floors, where they are enough; for which queries they are."""
        place, number = self._scan(self._features[: min(self._window, self._next_seq)], queries, floor)
        score = self._scoring.exact(self._values[:, place], queries[number])
        above = score >= floor[number]
        place, number, score = place[above], number[above], score[above]
        order = np.argsort(number, kind="stable")
        ends = np.searchsorted(number[order], np.arange(len(queries) + 1))
        enough = (np.diff(ends) >= self._wanted) | np.isneginf(floor)
        for i in np.flatnonzero(enough):
            part = order[ends[i] : ends[i + 1]]
            self._floor[queries[i]] = floor[i]
            self._keep_best(queries[i], self._seq_at(place[part]), score[part])
        return enough


class GroupedTopK(NumpyTopK):
    """Each batch against groups of similar queries first, then what reaches a group against its queries."""

    def __init__(
        self, scoring: Polynomial, *, k: int, window: int, searches_together: bool = False, groups: int = 48
    ) -> None:
        super().__init__(scoring, k=k, window=window, searches_together=searches_together)
        self._polynomial = scoring
        label = alike(scoring.coefficients.T.astype(np.float64), groups)
        self._members = [found for g in range(groups) if len(found := np.flatnonzero(label == g))]
        self._own = [np.ascontiguousarray(scoring.coefficients[:, members]) for members in self._members]
        self._upper = np.stack([own.max(axis=1) for own in self._own])

    def _passing(self, features: NDArray[np.floating]) -> tuple[Ints, Ints]:
        if features.size and features.min() < 0:
            return super()._passing(features)  # the largest coefficients bound nothing where a value is negative
        least = self._polynomial.lowered(self._floor, slice(None))
        lowest = np.array([least[members].min() for members in self._members], PREFILTER)
        lowest -= self._polynomial.margin(self._upper.T).astype(PREFILTER)
        reached = self._upper @ features.T >= lowest[:, None]
        rows, queries = [], []
        for number, members in enumerate(self._members):
            row = np.flatnonzero(reached[number])
            reached_too = features[row] @ self._own[number] >= least[members]
            hit, member = np.divmod(np.flatnonzero(reached_too), len(members))  # np.nonzero takes three times as long
            rows.append(row[hit])
            queries.append(members[member])
        return np.concatenate(rows), np.concatenate(queries)


def alike(points: Floats, groups: int, *, rounds: int = 20, seed: int = 0) -> Ints:
    """Which group each point is in: k-means."""
    centers = np.random.default_rng(seed).permutation(points)[:groups]
    for _ in range(rounds):
        label = ((centers * centers).sum(axis=1) / 2 - points @ centers.T).argmin(axis=1)
        for number in np.unique(label):
            centers[number] = points[label == number].mean(axis=0)
    return label


def values_of(batch: Batch) -> Floats:
    """f8[d, n]: every column but the id."""
    return np.stack([column for name, column in batch.items() if name != "id"])


def _best_first(score: Floats, seq: Ints) -> Ints:
    """The order of each line: best first, equal scores newest first. Only lines with equal scores pay for them."""
    order = np.argsort(-score, axis=1)
    found = np.take_along_axis(score, order, axis=1)
    tied = ((found[:, 1:] == found[:, :-1]) & np.isfinite(found[:, 1:])).any(axis=1)
    if tied.any():
        order[tied] = np.lexsort((-seq[tied], -score[tied]), axis=-1)
    return order
