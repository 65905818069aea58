"""A growing table from pairs of integers to integers, for kernels to probe."""

from __future__ import annotations

import numpy as np

from .columns import Ints
from .hash_kernels import PAIR, copy_pairs, get_pairs, put_pairs, remove_first


class PairTable:
    """Owns the slots that kernels probe and keeps them at most half full."""

    def __init__(self) -> None:
        self.slots = np.zeros(16, PAIR)
        self.count = 0

    def reserve(self, more: int) -> None:
        """Make room, so that a kernel may put this many further pairs."""
        wanted = 2 * (self.count + more)
        if wanted > len(self.slots):
            grown = np.zeros(1 << int(wanted).bit_length(), PAIR)
            copy_pairs(self.slots, grown)
            self.slots = grown

    def put(self, a: Ints, b: Ints, values: Ints) -> None:
        self.reserve(len(a))
        self.count += put_pairs(self.slots, a, b, values)

    def get(self, a: Ints, b: Ints) -> Ints:
        """The values of the pairs, -1 where there is none."""
        out = np.empty(len(a), np.int64)
        get_pairs(self.slots, a, b, out)
        return out

    def remove_first(self, a: int) -> None:
        """Forget every pair that begins with a."""
        self.count -= remove_first(self.slots, a)

    def items(self) -> tuple[Ints, Ints, Ints]:
        used = self.slots[self.slots["used"] == 1]
        return used["a"].copy(), used["b"].copy(), used["value"].copy()
