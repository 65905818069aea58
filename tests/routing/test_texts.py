"""Codes for texts: exact, stable, and gone when nothing holds them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skymesh.routing.texts import Texts

WORDS = st.lists(st.none() | st.text(max_size=20) | st.sampled_from(["a", "b", "ab"]), max_size=60)


@given(st.lists(WORDS, max_size=5))
def test_equal_texts_have_equal_codes_and_codes_read_back(batches):
    texts, known = Texts(), {}
    for batch in batches:
        codes = texts.encode(pa.array(batch, pa.string()))
        for text, code in zip(batch, codes.tolist(), strict=True):
            if text is None:
                assert code == -1
            else:
                assert known.setdefault(text, code) == code
                assert texts.text(code) == text
    assert len(set(known.values())) == len(known) == len(texts)


@given(WORDS, WORDS)
def test_unknown_texts_are_not_added_when_looked_up(known, asked):
    texts = Texts()
    codes = dict(zip(known, texts.encode(pa.array(known, pa.string())).tolist(), strict=True))
    found = texts.encode(pa.array(asked, pa.string()), adds=False).tolist()
    assert found == [codes.get(text, -1) if text is not None else -1 for text in asked]
    assert len(texts) == len({text for text in known if text is not None})


@given(st.lists(st.text(max_size=9), min_size=1, max_size=80, unique=True), st.data())
def test_dropped_codes_are_used_again_and_the_others_keep_their_meaning(words, data):
    texts = Texts()
    codes = texts.encode(pa.array(words))
    kept = data.draw(st.lists(st.sampled_from(range(len(words))), unique=True))
    texts.keep_only(codes[np.array(kept, np.int64)])
    assert len(texts) == len(kept)
    for i in kept:
        assert texts.text(int(codes[i])) == words[i]
        assert texts.code(words[i]) == codes[i]
    more = texts.encode(pa.array([f"new {i}" for i in range(len(words))]))
    assert len(np.unique(np.concatenate((more, codes[np.array(kept, np.int64)])))) == len(more) + len(kept)
    assert more.max() < 2 * len(words) + 16


def test_slices_and_dictionaries_are_read_where_they_begin():
    texts = Texts()
    array = pa.array(["x", None, "y", "z"]).slice(1)
    assert texts.encode(array).tolist() == [-1, 0, 1]
    assert texts.encode(array.dictionary_encode()).tolist() == [-1, 0, 1]
    assert texts.encode(pa.array(["z"], pa.large_string())).tolist() == [1]
    assert texts.encode(pa.array([], pa.string())).tolist() == []
