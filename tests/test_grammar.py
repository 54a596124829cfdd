"""Names with settings: parsing and writing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat._internal.grammar import Call, parse_call, write, write_call


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("ids", Call("ids", (), {})),
        (" fuzzy( 0.8 , ratio ) ", Call("fuzzy", (0.8, "ratio"), {})),
        ('contains(strip=("date", "json"))', Call("contains", (), {"strip": ("date", "json")})),
        ("contains(strip=(date, json), fold=())", Call("contains", (), {"strip": ("date", "json"), "fold": ()})),
        ("spans(corpus=my docs/a.jsonl)", Call("spans", (), {"corpus": "my docs/a.jsonl"})),
        ("spans(corpus='a,b)(c')", Call("spans", (), {"corpus": "a,b)(c"})),
        ("spans(corpus=C:/x=y)", Call("spans", (), {"corpus": "C:/x=y"})),
        ("fuzzy(strict=True)", Call("fuzzy", (), {"strict": True})),
        ("name(a==b)", Call("name", ("a==b",), {})),
    ],
)
def test_parsing(text, call):
    assert parse_call(text) == call


@pytest.mark.parametrize("text", ["", "5", "a(", "a)", "a(1))", "a((1)", "a('1)", "a b(1)", "a(1]", "a(1)b"])
def test_invalid_calls_are_refused(text):
    with pytest.raises(karat.BadArgument, match=r"expected name or name\(setting=value\)"):
        parse_call(text)


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words


@given(value=values | st.lists(words, max_size=3).map(tuple))
def test_written_values_parse_back(value):
    assert parse_call(write_call("name", setting=value)).named["setting"] == value


def test_numbers_are_written_in_short_form():
    assert [write(v) for v in (0.80, 2.0, "a b", ("a", "b"))] == ["0.8", "2", "'a b'", "(a, b)"]
