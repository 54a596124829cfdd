"""Texts in texts: the kernel finds what folding white space and `in` find, in plain texts and in hostile ones."""

from __future__ import annotations

import string
import sys
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat._kernel import kernel
from karat.judges.contains import Contains
from karat.judges.spans import by_text
from karat.judges.spans.quotes import Quote
from support.kernels import NEEDS_KERNEL, same_outcome

pytestmark = NEEDS_KERNEL

IN_TEXT, IN_NEEDLE, BLANK = 1, 2, 4
EVERY_CHARACTER = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
SPACES = [char for char in EVERY_CHARACTER if char.isspace()]
NEARLY_SPACES = "".join(sorted({chr(ord(space) + step) for space in SPACES for step in (-1, 1)} - {*SPACES}))
"""The neighbours of white space."""
LETTERS = string.digits + string.ascii_letters + "!#$%&"
FOREIGN = "".join(map(chr, range(0xE0, 0x101)))
WORDS = [
    "a",
    "b",
    "ab",
    "aa",
    "aba",
    "ä",
    "é",
    "日本",
    "\U0001f600",
    "\0",
    LETTERS[:63],
    LETTERS[:64],
    LETTERS[:65],
    FOREIGN,
]
"""Long words repeat nothing: texts that do may be left to the twin."""
TEXTS = st.lists(st.sampled_from([*WORDS, *SPACES, " ", " ", "\n", "  ", *NEARLY_SPACES]), max_size=14).map("".join)


def found(needles, texts, ways=IN_TEXT | IN_NEEDLE | BLANK):
    """The kernel's own answer for each query: number of the needle, rank and way."""
    flat = [one for own in needles for one in own]
    rows = kernel().find_texts(flat, np.cumsum([0, *map(len, needles)]), texts, 0, len(texts), ways)
    return None if rows is None else np.frombuffer(rows, np.int64).reshape(-1, 4).tolist()


def defined(needles, texts, ways=IN_TEXT | IN_NEEDLE | BLANK):
    """The same, from the definition."""

    def way(needle, text):
        needle, text = " ".join(needle.split()), " ".join(text.split())
        if not needle or not text:
            return BLANK & ways if needle == text else 0
        if ways & IN_TEXT and needle in text:
            return IN_TEXT
        return IN_NEEDLE if ways & IN_NEEDLE and text in needle else 0

    rows, number = [], 0
    for query, (own, chunks) in enumerate(zip(needles, texts, strict=True)):
        for needle in own:
            rows += [[query, number, rank, w] for rank, text in enumerate(chunks, 1) if (w := way(needle, text))]
            number += 1
    return rows


@st.composite
def parts(draw):
    """A text, and a part of it with other white space."""
    text = draw(TEXTS)
    begin, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
    part = text[begin:end]
    for space in draw(st.lists(st.sampled_from(SPACES), max_size=3)):
        part = part.replace(" ", space + draw(st.sampled_from(SPACES)), 1)
    return text, part


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=4), parts()), min_size=1, max_size=3),
    st.integers(0, 7),
)
def test_texts_are_found_where_they_are(queries, ways):
    needles = [[*own, part] for own, _, (_, part) in queries]
    texts = [[*own, text] for _, own, (text, _) in queries]
    assert found(needles, texts, ways) == defined(needles, texts, ways)


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_parts_of_long_texts_are_found(seed):
    random = Random(seed)
    alphabet = random.choice(["ab ", "abcdefgh  \n", "aé日 ", "".join(SPACES) + "ab"])
    text = "".join(random.choices(alphabet, k=3000))
    needles = []
    for _ in range(20):
        begin = random.randrange(3000)
        part = list(text[begin : begin + random.choice([1, 15, 16, 17, 31, 32, 33, 64, 65, 200, 3000])])
        if random.random() < 0.4:
            part[random.randrange(len(part))] = random.choice(alphabet)
        needles.append("".join(part).replace(" ", random.choice([" ", "\n ", "\u3000"])))
    ends = [text[:40], text[-40:], text[-1], text[0], " " + text[-20:] + " "]
    assert found([[*needles, *ends]], [[text]]) == defined([[*needles, *ends]], [[text]])


def test_every_character_is_white_space_or_not_as_in_python():
    """At the ends of a text, and before and after its longest word, in the needle and in the text."""
    forms = [f"{char}x{char}longest{char}y{char}" for char in EVERY_CHARACTER]
    plain = "x longest y"
    spaces = [number for number, char in enumerate(EVERY_CHARACTER) if char.isspace()]
    query = np.arange(len(forms) + 1)
    for needles, texts in ((forms, [[plain]] * len(forms)), ([plain] * len(forms), [[form] for form in forms])):
        rows = kernel().find_texts(needles, query, texts, 0, len(texts), IN_TEXT | IN_NEEDLE)
        alike = np.frombuffer(rows, np.int64).reshape(-1, 4)[:, 0].tolist()
        assert alike == spaces
    blank = kernel().find_texts([""] * len(forms), query, [[char] for char in EVERY_CHARACTER], 0, len(forms), BLANK)
    assert np.frombuffer(blank, np.int64).reshape(-1, 4)[:, 0].tolist() == spaces


def test_only_the_queries_asked_for_are_searched():
    needles, texts = ["a", "b", "c", "d"], [["a"], ["b"], ["c"], ["d"]]
    rows = kernel().find_texts(needles, np.arange(5), texts, 1, 3, IN_TEXT)
    assert np.frombuffer(rows, np.int64).reshape(-1, 4).tolist() == [[1, 1, 1, 1], [2, 2, 1, 1]]


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("text", [Text("a"), np.str_("a"), "\ud800", "a\udfff b", 1, None, b"a"])
def test_what_is_not_a_plain_text_is_left_to_the_twin(text):
    assert found([["a"]], [["a", text]]) is None
    assert found([["a", text]], [["a"]]) is None


def test_what_is_not_a_plain_list_is_left_to_the_twin():
    assert found([["a"], ["a"]], [["a"], ("a",)]) is None
    assert found([["a"], ["a"]], [["a"], None]) is None


def test_very_many_pairs_are_left_to_the_twin():
    assert found([["a"] * 200], [["a"] * 100]) is not None
    assert found([["a"] * 201], [["a"] * 100]) is None


@pytest.mark.parametrize(
    ("needle", "text"),
    [
        ("a" + " " * 30_000 + "b", "a " * 30_000),
        ("a" + "x" * 50 + " b" * 15_000, ("a" + "x" * 50) * 2000 + " b" * 15_000),
        ("a b" * 10_000 + "c", "a b" * 100_000),
        ("x" * 64 + "y", "x" * 300_000),
        ("q" + " " * 60 + "a" * 300, (" " * 60 + "a" * 280) * 2000),
        ("a " * 15_000 + "b", "a " * 60_000),
        (" a" * 30 + " b", " " * 100_000 + "a " * 50_000),
    ],
    ids=[
        "space in the needle",
        "repeated begin",
        "repeated words",
        "one letter",
        "long tail",
        "long begin",
        "space before",
    ],
)
def test_texts_made_to_be_slow_end_soon(needle, text):
    """Each of them is compared in many places almost to its end: pairs of places would be billions."""
    rows = found([[needle]], [[text]])
    assert rows is None or rows == defined([[needle]], [[text]])
    same_outcome(lambda: {"retrieved": [[text, "a"]], "gold": [[needle]], "metrics": "recall", "judge": "contains"})


def test_plain_texts_are_searched_by_the_kernel_alone(monkeypatch):
    monkeypatch.setattr(Contains, "_find", None)
    monkeypatch.setattr(by_text, "sharing", None)
    monkeypatch.setattr(Quote, "candidates", None)
    data = {"retrieved": [["x  quote\n from a text.", "other"]], "gold": [["quote from a"]], "metrics": "recall@1"}
    assert karat.evaluate(**data, judge="contains").mean == {"recall@1": 1.0}
    assert karat.evaluate(**data, judge="spans").mean == {"recall@1": 1.0}


HOSTILE = st.sampled_from(
    ["\ud800", "a \udfff", Text("a b"), np.str_("ab"), 1, 1.0, True, None, 2.5, b"a", ["a"], {"text": "a"}]
)
JUDGES = ["contains", "contains(gold_in_chunk)", "contains(chunk_in_gold)", "spans", "spans(coverage=0.5)", "auto"]


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.lists(TEXTS | HOSTILE, max_size=4), st.lists(TEXTS | HOSTILE, max_size=3)), min_size=1, max_size=3
    ),
    st.sampled_from(JUDGES),
)
def test_evaluations_of_hostile_texts_are_equal(queries, judge):
    same_outcome(
        lambda: {
            "retrieved": [list(chunks) for chunks, _ in queries],
            "gold": [list(own) for _, own in queries],
            "metrics": "recall@3 rr precision@2",
            "judge": judge,
        }
    )


@settings(max_examples=150)
@given(
    st.lists(st.lists(parts(), min_size=1, max_size=4), min_size=1, max_size=3), st.sampled_from(JUDGES), st.booleans()
)
def test_evaluations_of_quotes_are_equal(queries, judge, swap):
    """Quotes from the chunks, with other white space; or chunks that are parts of the gold."""
    side, other = (0, 1) if swap else (1, 0)
    same_outcome(
        lambda: {
            "retrieved": [[{"text": pair[other]} for pair in own] for own in queries],
            "gold": [[{"text": pair[side]} for pair in own] for own in queries],
            "metrics": "recall@3 rr precision@2",
            "judge": judge,
        }
    )


@pytest.mark.parametrize("judge", JUDGES[:-1])
def test_evaluations_of_sentences_are_equal(judge):
    """Quotes that lie in chunks, are cut off by their ends, or contain them, in more queries than one block has."""
    random = Random(5)
    words = ["retrieval", "of", "the", "gold", "quote", "é", "in\na", "chunk ", "with", "3.7", "million"]
    rows = []
    for _ in range(600):
        text = " ".join(random.choices(words, k=120))
        chunks = [text[at : at + 180] for at in range(0, len(text), 150)]
        quotes = [text[at : at + random.choice([20, 60, 300])] for at in random.sample(range(400), 2)]
        rows.append((chunks, [" ".join(quote.split()) or "x" for quote in quotes]))
    got = same_outcome(
        lambda: {
            "retrieved": [c for c, _ in rows],
            "gold": [q for _, q in rows],
            "metrics": "recall@3 rr",
            "judge": judge,
        }
    )
    assert len(got["hits"]) > 300


def test_an_error_after_a_block_of_queries_is_the_same():
    rows = [["a b"]] * 300 + [["a", None]]
    data = {"retrieved": rows, "gold": [["a"]] * 301, "metrics": "recall", "judge": "contains"}
    error, sentence = same_outcome(lambda: data)
    assert error is karat.errors.InputError
    assert "null" in sentence
