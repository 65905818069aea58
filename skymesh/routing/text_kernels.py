"""Texts into codes: a hash table over bytes, probed straight from Arrow's buffers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algorithms.kernel import kernel

FREE = -1


class TextTable(NamedTuple):
    """slots i8[c] (code or -1; c a power of two), start i8[m], length i8[m], hashes u8[m], bytes u1[b],
    fill i8[3]: codes ever used, bytes used, codes that are free again (listed in free i8[m]), seed u8[1]."""

    slots: Any
    start: Any
    length: Any
    hashes: Any
    bytes: Any
    fill: Any
    free: Any
    seed: Any


@kernel
def hash_bytes(data: Any, start: int, stop: int, seed: int) -> int:
    """Eight bytes at a time, multiplied and folded; the seed is random, so that nobody can aim at one slot."""
    h = np.uint64(seed) ^ (np.uint64(stop - start) * np.uint64(0x9E3779B97F4A7C15))
    i = start
    while i < stop:
        word = np.uint64(0)
        for j in range(min(8, stop - i)):
            word |= np.uint64(data[i + j]) << np.uint64(8 * j)
        h = (h ^ word) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
        i += 8
    return h * np.uint64(0xD6E8FEB86659FD93)


@kernel
def find_text(table: Any, data: Any, start: int, stop: int, h: int) -> int:
    """The slot of a text, or where it would go as -1 - slot."""
    mask = np.uint64(table.slots.shape[0] - 1)
    slot = (h ^ (h >> np.uint64(29))) & mask
    while table.slots[slot] != FREE:
        code = table.slots[slot]
        if table.hashes[code] == h and table.length[code] == stop - start:
            same = True
            for j in range(stop - start):
                if table.bytes[table.start[code] + j] != data[start + j]:
                    same = False
                    break
            if same:
                return np.int64(slot)
        slot = (slot + np.uint64(1)) & mask
    return -1 - np.int64(slot)


@kernel
def encode_texts(table: Any, offsets: Any, data: Any, known: Any, adds: bool, begin: int, out: Any) -> int:
    """Codes of texts begin.. into out i8[n], -1 for null, and for unknown ones unless `adds`.

    Returns n, or the row at which there was no room: grow and call again from there.
    """
    n = out.shape[0]
    for i in range(begin, n):
        out[i] = -1
        if not known[i]:
            continue
        start, stop = offsets[i], offsets[i + 1]
        h = hash_bytes(data, start, stop, table.seed[0])
        slot = find_text(table, data, start, stop, h)
        if slot >= 0:
            out[i] = table.slots[slot]
        elif adds:
            if not has_room(table, stop - start):
                return i
            out[i] = add_text(table, data, start, stop, h, -1 - slot)
    return n


@kernel
def has_room(table: Any, length: int) -> bool:
    live = table.fill[0] - table.fill[2]
    return (
        2 * (live + 1) <= table.slots.shape[0]
        and (table.fill[2] > 0 or table.fill[0] < table.start.shape[0])
        and table.fill[1] + length <= table.bytes.shape[0]
    )


@kernel
def add_text(table: Any, data: Any, start: int, stop: int, h: int, slot: int) -> int:
    if table.fill[2] > 0:
        table.fill[2] -= 1
        code = table.free[table.fill[2]]
    else:
        code = table.fill[0]
        table.fill[0] += 1
    place = table.fill[1]
    for j in range(stop - start):
        table.bytes[place + j] = data[start + j]
    table.fill[1] = place + stop - start
    table.start[code] = place
    table.length[code] = stop - start
    table.hashes[code] = h
    table.slots[slot] = code
    return code


@kernel
def rebuild(old: Any, live: Any, new: Any) -> None:
    """Copy the codes that are live, with their texts, into empty tables; the others become free."""
    mask = np.uint64(new.slots.shape[0] - 1)
    new.seed[0] = old.seed[0]
    new.fill[0] = old.fill[0]
    for code in range(old.fill[0]):
        if not live[code]:
            new.free[new.fill[2]] = code
            new.fill[2] += 1
            continue
        h = old.hashes[code]
        place = new.fill[1]
        for j in range(old.length[code]):
            new.bytes[place + j] = old.bytes[old.start[code] + j]
        new.start[code] = place
        new.length[code] = old.length[code]
        new.hashes[code] = h
        new.fill[1] = place + old.length[code]
        slot = (h ^ (h >> np.uint64(29))) & mask
        while new.slots[slot] != FREE:
            slot = (slot + np.uint64(1)) & mask
        new.slots[slot] = code
