"""Seeded streams that look like something: trades, vehicles on the move, auctions and their bids.

A generator gives the same rows for the same seed, whatever the batch size, so that what it feeds can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
BLOCK_ROWS = 4096  # rows are drawn in blocks of this size, so that batches may be cut anywhere
TIME_TYPE = pa.timestamp("us", "UTC")

SYMBOLS = np.array([f"{a}{b}{c}" for a in "ABC" for b in "KLMN" for c in "XYZ"])
VENUES = np.array(["XNYS", "XNAS", "XLON", "XTKS", "XPAR"])
STATES = np.array(["VT", "NH", "ME", "MA", "NY"])
CATEGORIES = np.array(["art", "books", "coins", "music", "tools"])

Block = dict[str, pa.Array]
Random = np.random.Generator


def _times(random: Random, first: int, count: int, rows_per_s: float, jitter_s: float) -> NDArray[np.int64]:
    """Steady arrivals, slightly out of order."""
    due = START_US + (first + np.arange(count)) * (1e6 / rows_per_s)
    late: NDArray[np.int64] = (due - random.random(count) * jitter_s * 1e6).astype(np.int64)
    return late


class Trades:
    """Prices walk, volumes have a long tail, few symbols make most of the trades."""

    def __init__(self, random: Random) -> None:
        self._price = 20 + 400 * random.random(len(SYMBOLS)) ** 2

    def block(self, random: Random, first: int, count: int) -> Block:
        symbol = (len(SYMBOLS) * random.random(count) ** 2.2).astype(int)
        step = np.exp(random.normal(0, 0.0006, count))
        price = np.empty(count)
        for s in range(len(SYMBOLS)):
            mine = np.flatnonzero(symbol == s)
            price[mine] = self._price[s] * np.cumprod(step[mine])
            self._price[s] = np.clip(price[mine[-1]] if len(mine) else self._price[s], 1, 999)
        volume = np.minimum(np.round(np.exp(random.normal(5, 1.6, count))), 1e6)
        return {
            "trade_id": pa.array(first + np.arange(count)),
            "at": pa.array(_times(random, first, count, 2_000, 1.0), TIME_TYPE),
            "price": pa.array(np.round(np.clip(price, 1, 999), 2)),
            "volume": pa.array(volume),
            "symbol": pa.array(SYMBOLS[symbol]),
            "venue": pa.array(VENUES[random.integers(0, len(VENUES), count)]),
        }


class Vehicles:
    """A thousand vehicles around a city report where they are, each now and then."""

    def __init__(self, random: Random) -> None:
        self._place = np.array([46.52, 6.63]) + random.normal(0, 0.03, (1000, 2))
        self._course = random.normal(0, 0.0004, (1000, 2))

    def block(self, random: Random, first: int, count: int) -> Block:
        vehicle = random.integers(0, 1000, count)
        place = np.empty((count, 2))
        turn = random.normal(0, 0.0001, (count, 2))
        for i in range(count):
            v = vehicle[i]
            self._course[v] = 0.98 * self._course[v] + turn[i] - 0.002 * (self._place[v] - (46.52, 6.63))
            self._place[v] += self._course[v]
            place[i] = self._place[v]
        return {
            "vehicle_id": pa.array(vehicle.astype(np.int64)),
            "at": pa.array(_times(random, first, count, 500, 2.0), TIME_TYPE),
            "lat": pa.array(np.round(place[:, 0], 6)),
            "lon": pa.array(np.round(place[:, 1], 6)),
            "speed": pa.array(np.round(np.abs(self._course[vehicle]).sum(axis=1) * 2e5, 1)),
            "free": pa.array(random.random(count) < 0.6),
        }


class Auctions:
    """Auctions open; their names are texts, some have no reserve."""

    def __init__(self, random: Random) -> None:
        pass

    def block(self, random: Random, first: int, count: int) -> Block:
        number = first + np.arange(count)
        reserve = np.round(np.exp(random.normal(3, 1, count)), 2)
        return {
            "auction": pa.array([f"a{n}" for n in number]),
            "at": pa.array(_times(random, first, count, 20, 1.0), TIME_TYPE),
            "start_price": pa.array(np.round(reserve * random.uniform(0.2, 1, count), 2)),
            "reserve": pa.array(reserve),
            "seller": pa.array(random.integers(0, 200, count)),
            "state": pa.array(STATES[random.integers(0, len(STATES), count)]),
            "category": pa.array(CATEGORIES[random.integers(0, len(CATEGORIES), count)]),
        }


class Bids:
    """Bids for recent auctions, more for the newer ones."""

    def __init__(self, random: Random) -> None:
        pass

    def block(self, random: Random, first: int, count: int) -> Block:
        number = first + np.arange(count)
        newest = number // 10
        auction = np.maximum(0, newest - random.geometric(0.02, count))
        return {
            "bid_id": pa.array(number),
            "at": pa.array(_times(random, first, count, 200, 0.5), TIME_TYPE),
            "auction": pa.array([f"a{n}" for n in auction]),
            "price": pa.array(np.round(np.exp(random.normal(3, 1, count)), 2)),
            "bidder": pa.array(random.integers(0, 5000, count)),
        }


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated stream: how to make it, and how many rows of it come in a second of its own time."""

    make: Callable[[Random], Trades | Vehicles | Auctions | Bids]
    rows_per_s: float


STREAMS: dict[str, Generated] = {
    "trades": Generated(Trades, 2_000),
    "vehicles": Generated(Vehicles, 500),
    "auctions": Generated(Auctions, 20),
    "bids": Generated(Bids, 200),
}


def generate(stream: str, *, rows_per_batch: int, seed: int = 7) -> Iterator[pa.RecordBatch]:
    """Batches of a generated stream, without end."""
    random = np.random.default_rng([seed, sorted(STREAMS).index(stream)])
    maker = STREAMS[stream].make(random)
    first = 0
    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    while True:
        while waiting_rows < rows_per_batch:
            waiting.append(pa.record_batch(maker.block(random, first, BLOCK_ROWS)))
            first += BLOCK_ROWS
            waiting_rows += BLOCK_ROWS
        table = pa.Table.from_batches(waiting).combine_chunks()
        yield table.slice(0, rows_per_batch).to_batches()[0]
        waiting = table.slice(rows_per_batch).to_batches()
        waiting_rows -= rows_per_batch


def generated_table(stream: str, rows: int, *, seed: int = 7) -> pa.Table:
    """The first rows of a generated stream."""
    return pa.Table.from_batches([next(generate(stream, rows_per_batch=rows, seed=seed))])
