"""Tests of arriving rows against the queries that reach their cells.

In steps, each a loop over a few hundred rows that does one thing, so that none of them waits for a branch: which words
of queries a row meets, what the probe leaves of them, the pairs of row and query in these, their scores, and which of
them count (400 nearest-neighbour queries, 1,000 rows, of which 750 meet some: 28 us a batch, and 61 row by row).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .grid_kernels import DONE, OUT_FULL, is_in_span, open_grid
from .kernel import kernel, trailing_zeros
from .pair_kernels import score_pairs
from .score_kernels import BLOCK
from .simd import LANES, reaches


@kernel
def test_rows(frame: Any, cell: Any, touched: Any, count: int, first_number: int, cursor: Any) -> int:
    """Rows that reach a query's floor, into the answer; frame: GridArrays.

    touched i4: places of the rows to test in cell i4[n], `count` of them, in cells that were checked; row i has number
    first_number + i. cursor i8[2]: the row at hand and how many hits there are. Comes back for room; call again to go
    on.
    """
    ring, _, cells, _, reaching, _, pairs, _, out = open_grid(frame)
    room, words = pairs.slot.shape[0], cells.every.shape[0] - 1
    rows_at_once = min(pairs.features.shape[0], room // words)
    while cursor[0] < count:
        if cursor[1] + room > out.number.shape[0]:
            return OUT_FULL
        start = cursor[0]
        chosen = touched[start : min(start + rows_at_once, count)]
        fill_features(ring, chosen, first_number, pairs.attributes, pairs.features)
        met = find_words(cells, cell, chosen, pairs)
        met = probe_words(reaching, cells, pairs, met)
        rows, found = find_pairs(chosen, first_number, pairs, met)
        sort_pairs(reaching.programs, pairs, found)
        cursor[1] = judge_pairs(reaching, ring, pairs, out, cursor[1])
        cursor[0] = start + rows
    return DONE


@kernel
def find_words(cells: Any, cell: Any, chosen: Any, pairs: Any) -> int:
    """The words of queries that reach the cells of rows, into pairs.row, .word and .hot; returns how many."""
    every, bits, home, last = cells.every, cells.bits, cells.home, cells.every.shape[0] - 1
    hot, filled = pairs.hot, pairs.lanes
    for t in range(chosen.shape[0]):
        h = home[np.uint32(cell[chosen[t]])].state
        hot[t] = h
        filled[t] = every[last] | (bits[h, last] if h >= 0 else np.uint64(0))
    met = np.uint64(0)
    for t in range(chosen.shape[0]):
        left = filled[t]
        while left != np.uint64(0):
            for w in range(trailing_zeros(left), last, 64):
                pairs.row[met] = t
                pairs.word[met] = w
                met += np.uint64(1)
            left &= left - np.uint64(1)
    return np.int64(met)


@kernel
def probe_words(reaching: Any, cells: Any, pairs: Any, met: int) -> int:
    """The queries in words, less those whose floor a row stays below for sure, into pairs.lanes; words without are left
    out. Returns how many words there are."""
    probe, probed, features, every, bits = reaching.probe, reaching.probed, pairs.features, cells.every, cells.bits
    row, words, lanes, kept = pairs.row, pairs.word, pairs.lanes, np.uint64(0)
    for j in range(met):
        t, w = row[j], words[j]
        h = pairs.hot[t]
        word = every[w] | (bits[h, w] if h >= 0 else np.uint64(0))
        if probed[w]:
            word &= reaches(probe, w, features[t])
        row[kept], words[kept], lanes[kept] = t, w, word
        kept += np.uint64(word != np.uint64(0))
    return np.int64(kept)


@kernel
def fill_features(ring: Any, chosen: Any, first_number: int, attributes: int, features: Any) -> None:
    """What the probe reads of rows: the attributes, and their squares if features f4[n, p] has room for them."""
    squares = features.shape[1] > attributes
    for row in range(attributes):
        x = ring.numbers[row]
        for t in range(chosen.shape[0]):
            value = x[np.uint32((first_number + chosen[t]) & ring.mask)]
            features[t, row] = np.float32(value)
            if squares:
                features[t, attributes + row] = np.float32(value * value)


@kernel
def find_pairs(chosen: Any, first_number: int, pairs: Any, met: int) -> tuple[int, int]:
    """The pairs in words, into pairs.slot and pairs.number; returns of how many rows, for others there was no room, and
    how many pairs there are."""
    room, found = pairs.slot.shape[0], np.uint64(0)
    for j in range(met):
        number = first_number + chosen[pairs.row[j]]
        if found + np.uint64(LANES) > room:
            while pairs.number[found - np.uint64(1)] == number:
                found -= np.uint64(1)
            return np.int64(pairs.row[j]), np.int64(found)
        word = pairs.lanes[j]
        base = LANES * pairs.word[j]
        while word != np.uint64(0):
            pairs.slot[found] = base + trailing_zeros(word)
            pairs.number[found] = number
            found += np.uint64(1)
            word &= word - np.uint64(1)
    return chosen.shape[0], np.int64(found)


@kernel
def sort_pairs(programs: Any, pairs: Any, found: int) -> None:
    """The order of pairs by the kinds of their queries, those of a kind as they came: of kind i pairs.order holds those
    from pairs.begin[i] to pairs.begin[i + 1]."""
    begin, order, kinds = pairs.begin, pairs.order, programs.leader.shape[0]
    begin[: kinds + 2] = 0
    if kinds == 1:
        begin[1] = found
        for j in range(found):
            order[j] = j
        return
    for j in range(found):
        begin[programs.kind[pairs.slot[j]] + 2] += 1
    for i in range(2, kinds + 2):
        begin[i] += begin[i - 1]
    for j in range(found):
        i = programs.kind[pairs.slot[j]] + 1
        order[begin[i]] = j
        begin[i] += 1


@kernel
def judge_pairs(reaching: Any, ring: Any, pairs: Any, out: Any, fill: int) -> int:
    """Score sorted pairs, and put those that count into out; returns how many are there."""
    for i in range(reaching.programs.leader.shape[0]):
        first, end = pairs.begin[i], pairs.begin[i + 1]
        for start in range(first, end, BLOCK):
            fill = judge_block(reaching, ring, pairs, pairs.order[start : min(start + BLOCK, end)], out, fill)
    return fill


@kernel
def judge_block(reaching: Any, ring: Any, pairs: Any, order: Any, out: Any, fill: int) -> int:
    """The same for up to BLOCK pairs of one kind."""
    which, number, place, merits = pairs.which, pairs.chosen, pairs.place, pairs.scores
    for j in range(order.shape[0]):
        which[j] = pairs.slot[order[j]]
        place[j] = pairs.number[order[j]] & ring.mask
    count = keep_reaching(reaching, ring, pairs, order)
    if count > 0 and reaching.filter_of[which[0]] >= 0:
        count = keep_passing(reaching, ring, pairs, count)
    for j in range(count):
        query, slot, merit = reaching.wanted[which[j]], place[j], merits[j]
        if not is_in_span(query, ring.position[slot] + ring.shift, ring.seq[slot]):
            continue
        if not np.isfinite(merit):
            query.unscored += 1
        elif merit > query.bound:
            out.ranking[fill] = query.ranking
            out.number[fill] = number[j]
            out.merit[fill] = merit
            fill += 1
    return fill


@kernel
def keep_reaching(reaching: Any, ring: Any, pairs: Any, order: Any) -> int:
    """Keep of pairs those whose merit is not below the query's floor, with merits and numbers; returns how many."""
    which, place, merits, kept = pairs.which, pairs.place, pairs.scores, pairs.picked
    wanted, floor, scores, count = reaching.wanted, reaching.floor, reaching.stack[0], order.shape[0]
    score_pairs(reaching.programs, which[:count], place[:count], ring.numbers, ring.columns, ring.known, reaching.stack)
    found = np.uint64(0)
    for j in range(count):
        merit = wanted[which[j]].sign * scores[j]
        kept[found], merits[found] = j, merit
        found += np.uint64(not merit < floor[which[j]])
    for i in range(found):
        j = kept[i]
        which[i], place[i], pairs.chosen[i] = which[j], place[j], pairs.number[order[j]]
    return np.int64(found)


@kernel
def keep_passing(reaching: Any, ring: Any, pairs: Any, count: int) -> int:
    """Keep of pairs those whose row passes the query's filter; returns how many."""
    which, number, place, merits, scores = pairs.which, pairs.chosen, pairs.place, pairs.scores, reaching.stack[0]
    filters = pairs.picked[:count]
    for j in range(count):
        filters[j] = reaching.filter_of[which[j]]
    score_pairs(reaching.programs, filters, place[:count], ring.numbers, ring.columns, ring.known, reaching.stack)
    kept = np.uint64(0)
    for j in range(count):
        which[kept], number[kept], place[kept], merits[kept] = which[j], number[j], place[j], merits[j]
        kept += np.uint64(scores[j] != 0.0)
    return np.int64(kept)
