"""Plain records are read as columns; the result is the same as record by record, for plain and for odd records."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.errors import InputError
from karat.samples import items
from karat.samples.plain_records import plain_records

TEXTS = st.sampled_from(["a", "b", ""])
OFFSETS = st.integers(0, 5)
ODD = st.sampled_from([None, True, 7, -1, 2.0, float("nan"), float("inf"), "x", 2**53, 10**400, ["a"]])
VALUES = {
    "id": TEXTS, "text": TEXTS, "doc": TEXTS, "start": OFFSETS, "end": OFFSETS,
    "score": st.floats(-2, 2), "grade": st.integers(0, 2), "group": st.integers(0, 1), "page_content": TEXTS,
}  # fmt: skip
MOSTLY = ("id", "text", "doc", "start", "end")


@st.composite
def rows(draw):
    """Lists of records; most have the same fields, and a few have a value or a field that others lack."""
    names = draw(st.sets(st.sampled_from([*VALUES, *MOSTLY, *MOSTLY]), min_size=1, max_size=5))
    record = st.fixed_dictionaries({name: VALUES[name] for name in sorted(names)})
    made = draw(st.lists(st.lists(record, max_size=3), min_size=1, max_size=4))
    for one in [one for own in made for one in own][: draw(st.integers(0, 1))]:
        one[draw(st.sampled_from(sorted(VALUES)))] = draw(ODD)
        one.pop(draw(st.sampled_from([*sorted(names), "none"])), None)
    return made


def read(lists, side, number):
    try:
        found = items._records(lists, lambda row: f"row {row}", side, number)
    except InputError as error:
        return str(error)
    return repr(found._replace(complete=sorted(found.complete)))  # of NaN, too, and 1 is not 1.0


@pytest.mark.parametrize(("side", "number"), [("retrieved", "score"), ("gold", "grade")])
@settings(max_examples=400, deadline=None)
@given(lists=rows())
def test_columns_are_the_same_as_record_by_record(side, number, lists):
    fast = read(lists, side, number)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "plain_records", lambda *_: None)
        slow = read(lists, side, number)
    assert fast == slow


RANGE = {"doc": "a", "start": 0, "end": 1}


@pytest.mark.parametrize("records", [[RANGE], [{"id": "a", "score": 1}], [RANGE | {"text": "x", "score": 0.5}]])
def test_usual_records_are_plain(records):
    found = plain_records([records, [], records], "retrieved", "score")
    assert found is not None
    assert list(map(len, next(iter(found.columns.values())))) == [1, 0, 1]
    assert found.numbers == ([[records[0]["score"]], [], [records[0]["score"]]] if "score" in records[0] else None)


@pytest.mark.parametrize(
    "record",
    [
        {"start": 0, "end": 1},
        {"doc": "a", "start": 0},
        RANGE | {"start": 2},
        RANGE | {"end": 2**53},
        RANGE | {"start": -1},
        RANGE | {"doc": 1},
        RANGE | {"score": float("nan")},
        RANGE | {"page": 1},
        {"doc": "a", "start": 0, "text": "x"},
        "a",
    ],
)
def test_a_record_that_needs_a_look_is_not_plain(record):
    assert plain_records([[RANGE], [record]], "retrieved", "score") is None
    assert plain_records([[record]], "retrieved", "score") is None


def test_an_empty_range_is_plain_only_if_it_was_retrieved():
    empty = [[RANGE | {"end": 0}]]
    assert plain_records(empty, "retrieved", "score") is not None
    assert plain_records(empty, "gold", "grade") is None
