"""Hash tables on flat arrays: from a pair of integers to an integer, open addressing, linear probing.

Removal moves later entries of the probe run back, so there are no tombstones and lookups stay short however long a
stream runs. The caller keeps the table at most half full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernel import kernel

PAIR = np.dtype([("a", "i8"), ("b", "i8"), ("value", "i8"), ("used", "i8")])


@kernel
def home_of(a: int, b: int, mask: int) -> int:
    """Where the probe for a pair begins: a multiply-xorshift mix, so that runs of ids spread."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64((x ^ (x >> np.uint64(32))) & np.uint64(mask))


@kernel
def find_pair(table: Any, a: int, b: int) -> int:
    """The slot of a pair, or -1. table PAIR[c], c a power of two."""
    mask = table.shape[0] - 1
    slot = home_of(a, b, mask)
    while table[slot].used:
        if table[slot].a == a and table[slot].b == b:
            return slot
        slot = (slot + 1) & mask
    return -1


@kernel
def put_pair(table: Any, a: int, b: int, value: int) -> bool:
    """Set the value of a pair; true if the pair is new."""
    mask = table.shape[0] - 1
    slot = home_of(a, b, mask)
    while table[slot].used:
        if table[slot].a == a and table[slot].b == b:
            table[slot].value = value
            return False
        slot = (slot + 1) & mask
    table[slot].a = a
    table[slot].b = b
    table[slot].value = value
    table[slot].used = 1
    return True


@kernel
def remove_pair(table: Any, a: int, b: int) -> bool:
    """Forget a pair; true if it was there."""
    hole = find_pair(table, a, b)
    if hole < 0:
        return False
    mask = table.shape[0] - 1
    slot = (hole + 1) & mask
    while table[slot].used:
        home = home_of(table[slot].a, table[slot].b, mask)
        # The entry may move into the hole if its home does not lie cyclically between the hole and itself.
        if ((slot - home) & mask) >= ((slot - hole) & mask):
            table[hole] = table[slot]
            hole = slot
        slot = (slot + 1) & mask
    table[hole].used = 0
    return True


@kernel
def copy_pairs(old: Any, new: Any) -> None:
    for slot in range(old.shape[0]):
        if old[slot].used:
            put_pair(new, old[slot].a, old[slot].b, old[slot].value)


@kernel
def put_pairs(table: Any, a: Any, b: Any, values: Any) -> int:
    """Set many; returns how many are new."""
    added = 0
    for i in range(a.shape[0]):
        added += put_pair(table, a[i], b[i], values[i])
    return added


@kernel
def get_pairs(table: Any, a: Any, b: Any, out: Any) -> None:
    """Look many up; -1 where there is none."""
    for i in range(a.shape[0]):
        slot = find_pair(table, a[i], b[i])
        out[i] = table[slot].value if slot >= 0 else -1


@kernel
def remove_first(table: Any, a: int) -> int:
    """Forget every pair that begins with a; returns how many. Scans the table: for rare removals."""
    removed = 0
    slot = 0
    while slot < table.shape[0]:
        if table[slot].used and table[slot].a == a:
            remove_pair(table, a, table[slot].b)
            removed += 1  # another entry may have moved here: look at the slot again
        else:
            slot += 1
    return removed
