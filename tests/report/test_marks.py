"""Marks: the gold where it lies in a chunk."""

from __future__ import annotations

import pytest

from karat.report.marks import find, marked
from karat.run.stored_items import Range


def seen(chunk, quote):
    return [chunk[start:end] for start, end in find(chunk, quote)]


@pytest.mark.parametrize(
    ("chunk", "quote", "found"),
    [
        ("We open at nine. Closed on Mondays.", "Closed on Mondays.", ["Closed on Mondays."]),
        ("Closed  on\nMondays, as ever.", "Closed on Mondays", ["Closed  on\nMondays"]),
        ("closed on mondays", "Closed on  Mondays", ["closed on mondays"]),
        ("a+b (c) is [d]", "(c)  is [d]", ["(c) is [d]"]),
        ("The museum is  closed on", "The museum is closed on Mondays.", ["The museum is  closed on"]),
        ("Opening hours: the museum is closed", "the museum is closed on Mondays.", ["the museum is closed"]),
        ("closed on\nMondays. See also: tickets.", "The museum is closed on Mondays.", ["closed on\nMondays."]),
        ("nothing of it", "The museum is closed on Mondays.", []),
        ("An edited museum, closed on Monday.", "The old museum is closed on Mondays.", [" closed on Monday"]),
        ("is", "The museum is closed on Mondays.", []),
        ("anything", " \n", []),
        ("", "quote", []),
    ],
)
def test_quotes_are_found(chunk, quote, found):
    assert seen(chunk, quote) == found


def test_parts_may_lie_apart():
    quote = "first words of the quote, and last words of the quote"
    assert seen("and last words of the quote. Then: first words of the quote,", quote) == [
        "first words of the quote,",
        "and last words of the quote",
    ]


def test_overlapping_marks_are_one():
    assert marked("abcdefghi", [Range(5, 9), Range(0, 2), Range(1, 5)], 100) == [(True, "abcdefghi")]
    assert marked("abcde", [Range(4, 5), Range(0, 2)], 100) == [(True, "ab"), (False, "cd"), (True, "e")]


def test_marked_pieces_are_the_text():
    assert marked("abcdef", [Range(1, 3), Range(5, 6)], 100) == [
        (False, "a"), (True, "bc"), (False, "de"), (True, "f"),
    ]  # fmt: skip
    assert marked("abc", [], 100) == [(False, "abc")]


def test_of_a_long_text_the_part_around_the_mark_is_shown():
    text = "x" * 1000 + "GOLD" + "y" * 1000
    pieces = marked(text, [Range(1000, 1004)], 100)
    assert (True, "GOLD") in pieces
    assert pieces[0] == (False, "…")
    assert pieces[-1][1].endswith("…")
    assert len("".join(piece for _, piece in pieces)) == 102
    assert marked(text, [], 100) == [(False, "x" * 100 + "…")]
    assert marked(text, [Range(0, len(text))], 100) == [(True, "x" * 100), (False, "…")]
