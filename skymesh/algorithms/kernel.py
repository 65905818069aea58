"""The one way in which kernels are compiled.

`nogil` lets other threads of a process answer while a kernel runs. `cache` keeps the machine code on disk, filled by
`make setup`. Division follows IEEE 754 instead of raising. There is no `fastmath`: scores that rank must have the same
bits for every batch size. Never compile one function twice with other flags: the cache does not tell them apart.

`_nrt=False` leaves reference counting out: kernels get their arrays from outside and allocate none, and with counting
on every branch after reading an array from a tuple costs an atomic increment (40 ns against 0.4 for one conditional
add; 3.5 times on the whole of a skyband's advance).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.cpython.unsafe.numbers import trailing_zeros as _trailing_zeros

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile on first use, without the interpreter and without its lock."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", _nrt=False)(function))


def inlined(function: F) -> F:
    """A kernel that becomes part of its caller. Handing dozens of arrays down costs some 200 ns a call: nothing for a
    batch, as much as the work itself for a cell."""
    return cast(F, numba.njit(inline="always", nogil=True, error_model="numpy", _nrt=False)(function))


def embedded(function: F) -> F:
    """The same for one with a life of its own: the compiler keeps its types and puts its code into the caller's. What
    advances rankings takes a fifth less time than with calls, each of which hands down a frame and a record."""
    return cast(F, numba.njit(forceinline=True, nogil=True, error_model="numpy", _nrt=False)(function))


# The place of the lowest bit of a word that is not zero: one instruction.
trailing_zeros = _trailing_zeros
