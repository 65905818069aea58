"""Codes for texts: equal texts have equal codes, so kernels compare and group texts as integers.

Codes are exact (bytes are compared, not hashes) and stay until they are dropped. Ids come and go with the window, so
their codes are dropped when nothing holds them; values of columns stay.
"""

from __future__ import annotations

import secrets

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .text_kernels import FREE, TextTable, encode_texts, rebuild

Ints = NDArray[np.int64]


def _empty(codes: int, byte_count: int, seed: int) -> TextTable:
    slots = 1 << max(4, (4 * codes - 1).bit_length())
    return TextTable(
        np.full(slots, FREE, np.int64),
        np.empty(codes, np.int64),
        np.empty(codes, np.int64),
        np.empty(codes, np.uint64),
        np.empty(byte_count, np.uint8),
        np.zeros(3, np.int64),
        np.empty(codes, np.int64),
        np.array([seed], np.uint64),
    )


class Texts:
    def __init__(self) -> None:
        self._table = _empty(16, 256, secrets.randbits(64))

    def __len__(self) -> int:
        return int(self._table.fill[0] - self._table.fill[2])

    def encode(self, texts: pa.Array, *, adds: bool = True) -> Ints:
        """The codes of an array of strings; -1 for null, and for unknown texts unless `adds`."""
        if pa.types.is_dictionary(texts.type):
            codes = self.encode(texts.dictionary, adds=adds)
            index = texts.indices.fill_null(0).to_numpy(zero_copy_only=False)
            out = codes[index] if len(codes) else np.full(len(texts), -1, np.int64)
            out[_nulls(texts)] = -1
            return out
        texts = texts.cast(pa.large_string())
        _, offsets, data = texts.buffers()
        known = ~_nulls(texts)
        ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1] if len(texts) else None
        out = np.empty(len(texts), np.int64)
        if ends is None:
            return out
        content = np.frombuffer(data if data is not None and data.size else b"\0", np.uint8)
        row = encode_texts(self._table, ends, content, known, adds, 0, out)
        while row < len(texts):
            self._grow(int(ends[row + 1] - ends[row]))
            row = encode_texts(self._table, ends, content, known, adds, row, out)
        return out

    def code(self, text: str) -> int:
        return int(self.encode(pa.array([text]))[0])

    def text(self, code: int) -> str:
        start, length = int(self._table.start[code]), int(self._table.length[code])
        return bytes(self._table.bytes[start : start + length]).decode()

    def keep_only(self, codes: Ints) -> None:
        """Drop every text but these; codes that stay mean what they meant."""
        live = np.zeros(int(self._table.fill[0]), np.bool_)
        live[codes[codes >= 0]] = True
        self._rebuild(live, 0)

    def _grow(self, more_bytes: int) -> None:
        table = self._table
        live = np.ones(int(table.fill[0]), np.bool_)
        live[table.free[: int(table.fill[2])]] = False
        self._rebuild(live, more_bytes)

    def _rebuild(self, live: NDArray[np.bool_], more_bytes: int) -> None:
        old = self._table
        used = int(old.length[: len(live)][live].sum()) + more_bytes
        grown = _empty(max(2 * len(live), 16), max(2 * used, 256), int(old.seed[0]))
        rebuild(old, live, grown)
        self._table = grown


def _nulls(texts: pa.Array) -> NDArray[np.bool_]:
    nulls: NDArray[np.bool_] = texts.is_null().to_numpy(zero_copy_only=False)
    return nulls
