"""The index of grams finds the same places as a plain search."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat._internal import grams
from karat._internal.grams import Grams, find_all

LETTERS = st.sampled_from(["a", "b", "a", " ", "\n", "é", "\U0001f600", "\ud800"])
TEXTS = st.lists(st.text(LETTERS, max_size=60), min_size=1, max_size=8)


@pytest.fixture
def indexed(monkeypatch):
    """Every search uses the index, even if a gram is common."""
    for name, value in (("_PLAIN", -1), ("_FEW", -1), ("_COMMON", 1e-9)):
        monkeypatch.setattr(grams, name, value)


@pytest.mark.usefixtures("indexed")
def test_the_index_agrees_with_a_plain_search():
    @settings(max_examples=300, deadline=None)
    @given(texts=TEXTS, pieces=st.lists(st.text(LETTERS, max_size=30), max_size=5), data=st.data())
    def check(texts, pieces, data):
        searched = Grams(texts)
        one = Grams(texts[:1])
        text = data.draw(st.sampled_from(texts))
        begin = data.draw(st.integers(0, len(text)))
        for wanted in [*pieces, *texts, text[begin:], text[:begin]]:
            assert searched.holders(wanted) == [n for n, own in enumerate(texts) if wanted and wanted in own]
            assert list(one.places(wanted)) == list(find_all(texts[0], wanted))

    check()


@pytest.mark.parametrize("size", grams._SIZES)
def test_different_grams_are_in_different_buckets(size):
    text = "".join(f"{number:05d}" for number in range(20_000))
    different = len({text[i : i + size] for i in range(len(text) - size + 1)})
    table = grams._Table.of(text, size)
    used = int((table.first[1:] > table.first[:-1]).sum())
    assert used > 0.6 * different
