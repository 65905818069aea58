"""Links between rows of one id, for `latest` and deletions."""

from __future__ import annotations

from typing import Any

from .hash_kernels import find_pair, put_pair, remove_pair
from .kernel import kernel


@kernel
def link_rows(ids: Any, newer: Any, older: Any, newest: Any, base: int, start: int, stop: int) -> int:
    """Link rows start..stop to the rows of their ids before them; returns how many ids are new.

    ids, newer, older i8[n]; newest maps (0, id) to a row number and has room; a row's number is base + its index.
    """
    added = 0
    for i in range(start, stop):
        number = base + i
        slot = find_pair(newest, 0, ids[i])
        if slot >= 0:
            before = newest[slot].value
            if before >= base:
                newer[before - base] = number
                older[i] = before
            newest[slot].value = number
        else:
            put_pair(newest, 0, ids[i], number)
            added += 1
    return added


@kernel
def kill_rows(older: Any, dead_from: Any, newest: Any, base: int, at: int) -> None:
    """From each newest row back, the rows that are alive die at `at`. newest i8[m]: row numbers, -1: none."""
    for number in newest:
        while number >= base:
            dead_from[number - base] = min(dead_from[number - base], at)
            number = older[number - base]


@kernel
def forget_rows(ids: Any, newest: Any, base: int, gone: int) -> int:
    """Take the first `gone` rows out of the map of newest rows; returns how many ids are gone with them."""
    removed = 0
    for i in range(gone):
        slot = find_pair(newest, 0, ids[i])
        if slot >= 0 and newest[slot].value == base + i:
            remove_pair(newest, 0, ids[i])
            removed += 1
    return removed


@kernel
def end_of_row(rows: Any, base: int, i: int, latest: bool, since: int) -> int:
    """Where a row stops counting: at its deletion, or where `latest` only sees a newer row that arrived since."""
    end = rows.dead_from[i]
    if latest:
        number = rows.newer[i]
        while number >= 0:
            j = number - base
            if rows.seq[j] >= since:
                return min(end, rows.at[j])
            number = rows.newer[j]
    return end
