"""Floors and asks: when a ranking falls short of rows, what it asks for, and how far down it holds what there is."""

from __future__ import annotations

from typing import Any

import numpy as np

from .columns import NEVER
from .kernel import embedded, kernel
from .point_kernels import horizon_of, point_from
from .pool_kernels import drop_dead, gone, grow, lowest, move_entry, set_floor
from .simd import SPAN, ones
from .standing_arrays import AHEAD_MAX, open_standings


@embedded
def falls_short(frame: Any, ranking: Any, p: int) -> bool:
    """Whether rows below the floor, which are not here, may belong to the ranking at point p."""
    if ranking.floor_merit == -np.inf:
        return False
    if min(ranking.expiry_point, ranking.first_death) > p and ranking.shown_count >= ranking.k and not ranking.mixed:
        return False  # what was shown is all there
    alive = 0
    for j in range(0, ranking.count, SPAN):
        lanes = lowest(ranking.count - j)
        alive += ones(lanes & ~gone(frame, ranking, ranking.start + j, lanes, p))
        if alive >= ranking.k:
            return False
    return True


@kernel
def ask_more(frame: Any, ranking: Any, r: int, p: int, limit: int) -> None:
    """Ask for the window that ends at p and what comes after it."""
    windows = (p - ranking.asked_at) // ranking.size
    if windows < 2:
        ranking.keep = min(4 * ranking.keep, ranking.keep_max)
    elif windows > 8:
        ranking.keep = max(ranking.keep >> 1, ranking.keep_min)
    if ranking.most_min < NEVER:
        ranking.most = ranking.keep + (ranking.most_min - ranking.keep_min) * ranking.keep // ranking.keep_min
    ranking.asked_at = p
    ask(frame, ranking, r, p, p, limit)


@kernel
def ask_on(frame: Any, ranking: Any, r: int, limit: int) -> None:
    """Ask for what comes after the last position that an answer covered.

    Rows up to there go into the pool at once, as if they had been there: the next point has to look at them.
    """
    if ranking.slide > 0:
        over = max(ranking.complete, ranking.done)
        p = point_from(over + 1, ranking.slide, ranking.offset, ranking.first)
        ranking.pending_point = min(ranking.pending_point, p)
    ask(frame, ranking, r, ranking.complete + 1, ranking.complete, limit)


@kernel
def ask(frame: Any, ranking: Any, r: int, p: int, known: int, limit: int) -> None:
    """Ask for the windows from p on, of which the pool takes in rows up to `known` at once.

    An answer covers half a window, so that half of the rows before it are in all of its windows and bound it. Each ask
    in a row looks twice as far ahead: windows that are tiny beside a batch would otherwise need one for each of them.
    """
    upto = min(limit, p + ranking.ahead)
    if ranking.ahead >> 3 < ranking.size and ranking.ahead < AHEAD_MAX:
        ranking.ahead *= 2
    ranking.asks += 1
    asks, call = open_standings(frame).asks, open_standings(frame).call[0]
    found = asks[call.asked]
    call.asked += 1
    found.ranking = r
    found.want = ranking.keep_min
    found.guess = guess_floor(frame, ranking, p)
    found.after = horizon_of(p, ranking.size)
    found.upto = max(upto, p)
    found.shared_after = horizon_of(found.upto, ranking.size)
    found.shared_upto = known
    found.complete = upto
    if upto >= limit:
        found.complete = NEVER
        ranking.ahead = ahead_of(ranking.size, ranking.is_time)


@kernel
def guess_floor(frame: Any, ranking: Any, p: int) -> float:
    """The merit that about `keep` rows of the window that ends at p reach, NaN if nothing is known.

    The number of rows above a floor is taken to grow by the same factor with every step down: rows tell how far that
    is. It grows more slowly the farther down, if anything, which makes for a few rows more.
    """
    if not np.isfinite(ranking.floor_merit) or not ranking.spread > 0.0:
        return np.nan
    alive = 1
    for j in range(0, ranking.count, SPAN):
        lanes = lowest(ranking.count - j)
        alive += ones(lanes & ~gone(frame, ranking, ranking.start + j, lanes, p))
    return ranking.floor_merit - max(ranking.spread * np.log(ranking.keep / alive), 0.0)


@kernel
def ahead_of(size: int, is_time: bool) -> int:
    """How far the first ask of a batch looks ahead: half a window, in rows at least a thousand."""
    return size >> 1 if is_time else max(size >> 1, 1024)


@kernel
def raise_floor(frame: Any, ranking: Any, p: int) -> None:
    """Forget the lowest entries once there are many more than a search asks for."""
    if ranking.count > ranking.most:
        drop_dead(frame, ranking, p)
    if ranking.count > ranking.most:
        note_spread(frame, ranking)
        pool = open_standings(frame).pool
        ranking.count = ranking.keep
        set_floor(ranking, pool.entries[pool.slot[ranking.start + ranking.keep - 1]])
        if ranking.room > 4 * ranking.most:
            grow(frame, ranking, 2 * ranking.most)  # what the first rows took, before there was a floor


@kernel
def note_spread(frame: Any, ranking: Any) -> None:
    """Learn how far apart the entries lie that a higher floor cuts off. Of a skyband those k times as many have
    been dropped as e times as many rows would have brought."""
    merit, kept, count = open_standings(frame).pool.merit, ranking.keep, ranking.count
    fall = merit[ranking.start + kept - 1] - merit[ranking.start + count - 1]
    spread = fall / ((count - kept) / ranking.k if ranking.prunes else np.log(count / kept))
    ranking.spread = 0.5 * (ranking.spread + spread) if ranking.spread > 0.0 else spread


@embedded
def raise_floor_between(frame: Any, ranking: Any) -> None:
    """The same between two points, where a batch brings far more than a ranking holds. Rows that are shown stay, below
    the floor if need be: their leave is due at the next point."""
    if not ranking.searched or ranking.count >> 2 <= ranking.most:
        return
    pool = open_standings(frame).pool
    kept = ranking.start + ranking.keep
    set_floor(ranking, pool.entries[pool.slot[kept - 1]])
    for j in range(kept, ranking.start + ranking.count):
        if pool.shown[j] > 0:
            if kept != j:
                move_entry(pool, j, kept)
            kept += 1
    ranking.count = kept - ranking.start
    ranking.mixed = 1
    ranking.touched = 0


@kernel
def changed_floors(frame: Any, out_ranking: Any, out_floor: Any) -> int:
    """Rankings whose floor is not what row sides know: into out_ranking i8[n], out_floor f8[n]; returns how many.
    Touches no others: that saves 3 us for a thousand."""
    arrays = open_standings(frame)
    count = 0
    for r in range(arrays.rankings.shape[0]):
        if arrays.moved[r] == 0:
            continue
        arrays.moved[r] = 0
        ranking = arrays.rankings[r]
        if ranking.live and ranking.searched and ranking.floor_merit != ranking.told_floor:
            out_ranking[count] = r
            out_floor[count] = ranking.floor_merit
            ranking.told_floor = ranking.floor_merit
            count += 1
    return count
