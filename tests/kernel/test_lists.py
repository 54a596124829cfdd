"""Gold keys in lists: the kernel finds what its twin finds, in plain data and in hostile data."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat._kernel import kernel
from karat.samples.rankings.lists import Lists
from support.kernels import NEEDS_KERNEL, same_outcome

pytestmark = NEEDS_KERNEL


class Text(str):
    __slots__ = ()


class Ids(list):
    pass


ALIKE = [f"same-beg{left}{'middle' * 4}{right}same-end" for left in "abc" for right in "abc"]
"""Ids of one length that agree in their first, middle and last eight bytes."""
ODD = ["", "\0", "a", "a\0", "a\0b", "ä", "日本", "日本\0", "x" * 61, "\U0001f600", "0", "-0", "1", "01"]
LONG = ["x" * 30 + "ä" + "x" * 30, "a" * 8, "a" * 9, "a" * 16, "a" * 17, "a" * 25]
IDS = st.sampled_from([*ALIKE, *ODD, *LONG, "doc-1", "doc-2", "doc-12"])
HOSTILE = st.sampled_from([
    1, 0, -1, 1.0, 2.5, 10**30, True, None, np.int64(1), np.float32(1), np.str_("a"), Text("a"), Text("ä"), b"a",
    "\ud800", "a\udfff", Decimal(1), ("a", 1.0), {"id": "a"}, [], float("nan"), 10**4200,
])  # fmt: skip
CONVENTIONS = ["standard", "trec_eval", "ragas", "sklearn"]


def found(rankings, keys):
    """The kernel's own answer, with the depth of each ranking."""
    depth = np.full(len(rankings), -1)
    start = np.cumsum([0, *map(len, keys)])
    rows = kernel().find_in_lists(rankings, [key for own in keys for key in own], start, depth)
    return None if rows is None else (np.frombuffer(rows, np.int64).reshape(-1, 3).tolist(), depth.tolist())


def defined(rankings, keys):
    """The same, from the definition."""
    rows, before = [], 0
    for query, (ranking, own) in enumerate(zip(rankings, keys, strict=True)):
        rows += [[query, rank, before + own.index(one)] for rank, one in enumerate(ranking, 1) if one in own]
        before += len(own)
    return rows, list(map(len, rankings))


def some_ids(random, size):
    shapes = [
        lambda: f"doc-{random.randrange(3 * size)}",
        lambda: random.choice(ALIKE),
        lambda: "x" * random.randrange(70),
        lambda: f"same-beg{random.randrange(size):040d}same-end",
        lambda: f"same-beg{random.randrange(size):09d}é{'x' * random.randrange(20)}",
    ]
    ascii_only = random.random() < 0.6
    return [random.choice(shapes[:4] if ascii_only else shapes)() for _ in range(size)]


@given(st.lists(st.tuples(st.lists(IDS, max_size=40), st.lists(IDS, max_size=12, unique=True)), max_size=5))
def test_strings_are_found_where_they_are(queries):
    rankings, keys = [ranking for ranking, _ in queries], [own for _, own in queries]
    assert found(rankings, keys) == defined(rankings, keys)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([1, 7, 8, 9, 63, 64, 65, 130, 700]))
def test_many_keys_are_found_where_they_are(seed, size):
    random = Random(seed)
    rankings = [some_ids(random, random.randrange(3 * size)) for _ in range(3)]
    keys = [list(dict.fromkeys([*some_ids(random, size), *random.sample(own, len(own) // 3)])) for own in rankings]
    assert found(rankings, keys) == defined(rankings, keys)


MASK = 2**64 - 1


def mixed(number):
    number = number * 0x9E3779B97F4A7C15 & MASK
    return number ^ (number >> 32)


def test_ids_with_the_same_code_differ():
    """Of 16 bytes, and of these and 8 more, so that the codes that the kernel computes from them are equal."""
    random = Random(3)
    for _ in range(100_000):
        first, last = (int.from_bytes(bytes(random.choices(range(48, 122), k=8)), "little") for _ in range(2))
        more = last ^ mixed(first + 16) ^ mixed((first ^ mixed(last)) + 24 & MASK)
        if more & 0x8080808080808080 == 0:
            break
    words = [word.to_bytes(8, "little").decode("ascii") for word in (first, last, more)]
    short, long = "".join(words[:2]), "".join(words)
    for keys in ([short], [long], [short, long], [long, short]):
        assert found([[long, short, long]], [keys]) == defined([[long, short, long]], [keys])


@pytest.mark.parametrize("place", [7, 8, 20, 28, 29, 36])
def test_ids_that_differ_in_one_byte_differ(place):
    one = "0123456789" * 4
    other = f"{one[:place]}x{one[place + 1 :]}"
    assert found([[other, one]], [[one]]) == ([[0, 2, 0]], [2])


def test_a_string_that_is_not_ascii_in_the_middle_of_a_ranking():
    for word in ("é", "x" * 40 + "é" + "x" * 40):
        rankings = [[f"d{i}" for i in range(50)], ["b", "a", word, "a", word, "c"], ["é", "d7", word]]
        keys = [["d30", "d49"], ["a", "c"], ["d7", word]]
        assert found(rankings, keys) == defined(rankings, keys)


UNUSUAL = [Text("a"), np.str_("a"), 1, None, b"a", ["a"]]


@pytest.mark.parametrize("item", [*UNUSUAL, "\ud800", "a\udfffb"])
def test_what_is_not_a_plain_string_is_left_to_the_twin(item):
    assert found([["a"], ["b", item]], [["a"], ["c"]]) is None
    assert found([["a"], ["b"]], [["a"], [item]]) is None


@pytest.mark.parametrize("item", UNUSUAL)
def test_that_holds_for_many_keys_and_for_none(item):
    assert found([["a"], ["b", item]], [["a"], []]) is None
    assert found([["a"], ["b", item]], [["a"], [str(i) for i in range(100)]]) is None


@pytest.mark.parametrize("ranking", [Ids(["a"]), "a", {"a": 1}, None, 1, iter("a"), np.array(["a"])])
def test_what_is_not_a_plain_list_is_left_to_the_twin(ranking):
    depth = np.empty(2, np.int64)
    assert kernel().find_in_lists([["a"], ("a",)], ["a", "a"], np.arange(3), depth) is not None
    assert kernel().find_in_lists([["a"], ranking], ["a", "a"], np.arange(3), depth) is None


@pytest.mark.parametrize("many", [0, 30, 62, 63, 64, 200])
@pytest.mark.parametrize("key", ["a", "é", "same-beg" * 5])
def test_a_key_that_occurs_twice_is_left_to_the_twin(many, key):
    others = [f"doc-{i}" for i in range(many)]
    assert found([["a"], ["b"]], [["a"], [key, *others, key]]) is None
    rows = same_outcome(
        lambda: {"retrieved": [["a"], ["b", key, key]], "gold": [["a"], [key, *others, key]], "metrics": "recall@3 rr"}
    )
    assert len(rows["hits"]) >= 2


def test_plain_lists_are_searched_by_the_kernel_alone(monkeypatch):
    monkeypatch.setattr(Lists, "_find", None)
    run = karat.evaluate(retrieved=[["b", "a"], ("c",)], gold=[["a"], ["c", "d"]], metrics="rr recall")
    assert run.mean == {"rr": 0.75, "recall": 0.75}


@given(
    st.lists(
        st.tuples(
            st.lists(IDS | HOSTILE, max_size=9),
            st.sampled_from([list, tuple, Ids]),
            st.lists(IDS | HOSTILE, max_size=9),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(CONVENTIONS),
    st.sampled_from(["ids", "exact", None]),
)
def test_evaluations_of_hostile_lists_are_equal(queries, convention, judge):
    same_outcome(
        lambda: {
            "retrieved": [kind(ranking) for ranking, kind, _ in queries],
            "gold": [list(own) for _, _, own in queries],
            "metrics": "recall@3 rr ndcg@5 precision@2",
            "convention": convention,
            "judge": judge,
        }
    )


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(IDS, st.sampled_from([0.5, 0.25, 1, 0.1, -0.0, 0.0])), max_size=9), st.lists(IDS)),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["standard", "standard(order=score)", "standard(order=score, ties=given)", "trec_eval", "beir"]),
)
def test_evaluations_of_records_with_scores_are_equal(queries, convention):
    same_outcome(
        lambda: {
            "retrieved": [[{"id": name, "score": score} for name, score in ranking] for ranking, _ in queries],
            "gold": [list(own) for _, own in queries],
            "metrics": "recall@3 rr ndcg@5",
            "convention": convention,
        }
    )


@pytest.mark.parametrize("begin", ["", "x" * 30])
def test_the_kernel_stores_the_encoded_form_of_at_most_one_string(begin):
    """Reading the bytes of a string that is not ASCII lets Python store them with the string, as long as it lives."""
    texts = [begin + chr(0x100 + i) + "x" * 1000 for i in range(1000)]
    gold = [begin + chr(0x500 + i) + "x" * 1000 for i in range(20)]
    before = [one.__sizeof__() for one in (*texts, *gold)]
    assert found([texts[:500], texts[500:]], [["a"], gold]) is not None
    after = [one.__sizeof__() for one in (*texts, *gold)]
    assert sum(own < now for own, now in zip(before, after, strict=True)) == 1
