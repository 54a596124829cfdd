"""Search in run files: the rows that a slow search in Python finds."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.run.lazy_run import LazyRun
from karat.run.search import fold
from support import example, hostile

SAMPLES = [
    {
        "id": "Q-1",
        "query": "How do I find the Straße?",
        "retrieved": [{"id": "doc-1", "text": "The STREET in İstanbul.", "doc": "atlas.pdf"}],
        "gold": [{"id": "doc-7", "text": "It is in (parentheses) [a.b]"}],
        "topic": "Maps",
        "year": 2026,
    },
    {
        "id": "Q-2",
        "query": "cafe\u0301 near me",
        "retrieved": [{"id": "doc-2", "text": "Ὀδυσσεύς of Homer", "doc": "odyssey.pdf"}],
        "gold": [{"id": "doc-2", "text": "plain words"}],
        "topic": "Food",
        "year": 1999,
    },
]


def texts_of(run, row):
    """All texts of a row that are searched."""
    items, own = run.items(run.ids[row]), [run.ids[row], None if run.query is None else run.query[row]]
    own += [item.gold for item in run.gold(run.ids[row])]
    for item in () if items is None else (*items.retrieved, *items.gold):
        own += [item.id, item.text, item.doc]
    own += [value for values in run.meta.values() if isinstance(value := values[row], str | int)]
    return [str(text) for text in own if text is not None]


def slow_search(run, text):
    texts = [[fold(own) for own in texts_of(run, row)] for row in range(len(run))]
    return [row for row, own in enumerate(texts) if all(any(fold(word) in one for one in own) for word in text.split())]


@pytest.fixture(scope="module")
def lazy(tmp_path_factory):
    path = tmp_path_factory.mktemp("search") / "run.parquet"
    karat.evaluate(SAMPLES, "rr", judge="ids").save(path)
    return LazyRun.open(path)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [0, 1]),
        ("q-1", [0]),
        ("doc", [0, 1]),
        ("DOC-7", [0]),
        ("atlas", [0]),
        ("maps", [0]),
        ("1999", [1]),
        ("street find", [0]),
        ("street homer", []),
        ("strasse", [0]),
        ("STRASSE", [0]),
        ("straße", [0]),
        ("STRAẞE", [0]),
        ("istanbul", [0]),
        ("İSTANBUL", [0]),
        ("café", [1]),
        ("CAFE\u0301", [1]),
        ("ΟΔΥΣΣΕΥΣ", []),
        ("ὈΔΥΣΣΕΎΣ", [1]),
        ("υσσευσ", []),
        ("(parentheses)", [0]),
        ("[a.b]", [0]),
        ("[ab]", []),
        ("a.*b", []),
        (".", [0, 1]),
        ("\\", []),
        ("%", []),
        ("\ud800", []),
        ("\x00", []),
        ("nothing", []),
    ],
)
def test_words(lazy, text, rows):
    assert lazy.search(text).tolist() == rows
    if "\ud800" not in text:
        assert slow_search(lazy.whole(), text) == rows


@pytest.mark.parametrize("text", hostile.PAYLOADS)
def test_hostile_texts_are_found_as_they_are(text, tmp_path):
    run = hostile.run()
    run.save(tmp_path / "run.parquet")
    if "\ud800" not in text:
        expected = slow_search(run, text)
        assert LazyRun.open(tmp_path / "run.parquet").search(text).tolist() == expected != []


@pytest.mark.parametrize("text", ["plan", "BILLING", "how password", "q01", "zzz"])
def test_batches(text, tmp_path, monkeypatch):
    run = example.run()
    run.save(tmp_path / "run.parquet")
    expected = slow_search(run, text)
    assert LazyRun.open(tmp_path / "run.parquet").search(text).tolist() == expected
    monkeypatch.setattr("karat.run.lazy_run._FEWEST", 1)
    monkeypatch.setattr("karat.run.lazy_run._MOST", 7)
    assert LazyRun.open(tmp_path / "run.parquet").search(text).tolist() == expected


LETTERS = "aAbBıIİßẞsSςσΣéÉe\u0301\u0307ﬁK.*[(\\-ＡÅ\u212b 日"


@settings(max_examples=60)
@given(texts=st.lists(st.text(LETTERS, max_size=8), min_size=1, max_size=6), wanted=st.text(LETTERS, max_size=4))
def test_any_text(tmp_path_factory, texts, wanted):
    path = tmp_path_factory.mktemp("any") / "run.parquet"
    rows = [{"id": str(i), "retrieved": [{"id": "x", "text": own}], "gold": ["y"]} for i, own in enumerate(texts)]
    run = karat.evaluate(rows, "rr", judge="ids")
    run.save(path)
    assert LazyRun.open(path).search(wanted).tolist() == slow_search(run, wanted)


def test_folding_is_the_same_for_all_ways_to_write_a_letter():
    for own in ("Straße", "İstanbul", "Ὀδυσσεύς", "café", "Å"):
        ways = {own, own.upper(), own.lower(), unicodedata.normalize("NFD", own), unicodedata.normalize("NFC", own)}
        assert len({fold(way) for way in ways}) == 1
