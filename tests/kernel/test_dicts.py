"""Gold keys in dicts of scores: the kernel ranks as its twin does, in plain data and in hostile data."""

from __future__ import annotations

from collections import Counter, OrderedDict, UserDict, defaultdict
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat._kernel import kernel
from karat.conventions import STANDARD
from karat.samples.rankings.dicts import Dicts
from support.kernels import NEEDS_KERNEL, same_outcome

pytestmark = NEEDS_KERNEL


class Score(float):
    def __float__(self):
        return 99.0


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Scored(dict):
    def values(self):
        return [7.0] * len(self)


NEAR = 0.1
"""In single precision equal to the next numbers in double precision."""
SCORES = st.sampled_from([
    0.5, 0.25, 0.25, NEAR, np.nextafter(NEAR, 1).item(), -0.0, 0.0, 1, 2, -3, 16777216, 16777217, 2**60, 1e-46,
    1e300, float("inf"), -float("inf"), np.float64(0.25), Score(0.25), 10**40, 2**53 + 1,
])  # fmt: skip
BAD_SCORES = st.sampled_from([
    np.float32(0.25), np.float16(1), Decimal("0.25"), Fraction(1, 4), True, False, np.True_, None, "1",
    float("nan"), 10**400, -(10**309), Number(2), np.int64(2), np.int32(-1), 1j, [], np.nan, b"1",
    np.float64("nan"), Score("nan"),
])  # fmt: skip
KEYS = ["", "a", "b", "ä", "a\0", "0", "1", "2", "-1", "-0", "01", "1.0", "1" * 30, "-7", "٣", "1é2", "same-beg" * 6]
IDS = st.sampled_from(KEYS)
NUMBERS = st.sampled_from([0, 1, 2, -1, -7, int("1" * 30), 3])
BAD_KEYS = st.sampled_from([
    1.0, 2.5, True, False, None, np.int64(1), np.str_("a"), Text("b"), Text("1"), b"a", ("a",), float("nan"),
    Number(2), "\ud800", "1\udc00", 10**4200,
])  # fmt: skip
KINDS = st.sampled_from([dict, dict, dict, OrderedDict, Counter, Scored, UserDict, lambda own: defaultdict(float, own)])
TIES = [
    replace(STANDARD, name=f"{ties}-{scores}", ties=ties, scores=scores)
    for ties in ("id_descending", "id_ascending", "given", "averaged")
    for scores in ("single", "double")
]


def found(dicts, keys, *, single=False, numbers=False, check=False):
    """The kernel's own answer: for each key its score, the number of greater scores, and True for a tie."""
    flat = [key for own in keys for key in own]
    own, above, tied = np.empty(len(flat)), np.empty(len(flat), np.int64), np.empty(len(flat), bool)
    finite = kernel().find_in_dicts(
        dicts, flat, np.cumsum([0, *map(len, keys)]), single, numbers, check, own, above, tied
    )
    if finite is None:
        return None
    there = own == own
    rows = zip(own.tolist(), above.tolist(), tied.tolist(), there.tolist(), strict=True)
    return [row[:3] if row[3] else None for row in rows], finite


def defined(dicts, keys, *, single=False, numbers=False):
    """The same, from the definition."""
    kind = np.float32 if single else np.float64
    rows, finite = [], True
    for scored, own in zip(dicts, keys, strict=True):
        with np.errstate(over="ignore"):
            every = np.array(
                [float.__float__(float(v)) if type(v) is int else v for v in scored.values()], float
            ).astype(kind)
        finite &= bool(np.isfinite(every).all())
        place = {name: i for i, name in enumerate(scored)}
        for key in own:
            other = int(key) if numbers and key.lstrip("-").isdecimal() and str(int(key)) == key else None
            at = place.get(key, place.get(other))
            greater = None if at is None else int((every > every[at]).sum())
            rows.append(None if at is None else (float(every[at]), greater, bool((every == every[at]).sum() > 1)))
    return rows, finite


PLAIN_SCORES = SCORES.filter(lambda score: not isinstance(score, Score))


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.dictionaries(IDS, PLAIN_SCORES, max_size=14), st.lists(IDS, max_size=6)), max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_keys_have_their_scores_and_ranks(queries, single, numbers):
    dicts, keys = [scored for scored, _ in queries], [own for _, own in queries]
    assert found(dicts, keys, single=single, numbers=numbers) == defined(dicts, keys, single=single, numbers=numbers)


@pytest.mark.parametrize("key", [None, True, False, 1, 0, 1.0])
def test_keys_that_are_no_ids_are_left_to_the_twin(key):
    scored = {"a": 2.0, "b": 1.0}
    for wrong in (scored | {key: 0.5}, {key: 0.5}, {2: 1.0}, {b"a": 1.0}, {Text("a"): 1.0}):
        assert found([{}, scored, wrong], [[], ["a"], []], check=True) is None
        assert found([{}, scored, wrong], [[], ["a"], []]) == ([(2.0, 0, False)], True)
    assert found([{}, scored, {"c": 0.5}], [[], ["a"], []], check=True) == ([(2.0, 0, False)], True)


@given(
    st.lists(
        st.dictionaries(IDS.filter(lambda key: not key.lstrip("-").isdecimal()) | NUMBERS, PLAIN_SCORES), max_size=3
    )
)
def test_integers_are_found_by_their_text(dicts):
    keys = [KEYS] * len(dicts)
    assert found(dicts, keys, numbers=True) == defined(dicts, keys, numbers=True)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32), st.sampled_from([1, 127, 128, 129, 400]), st.sampled_from(["best first", "any", "last up"])
)
def test_many_keys_have_their_ranks(seed, size, order):
    random = Random(seed)
    dicts, keys = [], []
    for _ in range(3):
        scores = [random.choice([random.random(), random.randrange(9) / 8]) for _ in range(random.randrange(3 * size))]
        if order != "any":
            scores.sort(reverse=True)
        if order == "last up" and scores:
            scores[-1] = 2.0
        dicts.append({f"d{i}": score for i, score in enumerate(scores)})
        keys.append([f"d{random.randrange(4 * size)}" for _ in range(size)])
    assert found(dicts, keys) == defined(dicts, keys)
    assert found(dicts, keys, single=True) == defined(dicts, keys, single=True)


def test_ties_in_a_dict_that_lists_the_best_first():
    scored = {"a": 3.0, "b": 2.0, "c": 2.0, "d": 2.0, "e": 1.0}
    rows, finite = found([scored], [list(scored)])
    assert rows == [(3.0, 0, False), (2.0, 1, True), (2.0, 1, True), (2.0, 1, True), (1.0, 4, False)]
    assert finite is True


@pytest.mark.parametrize("score", [np.float32(1), Decimal(1), True, np.True_, None, "1", float("nan"), 10**400, 1j])
def test_what_is_not_a_plain_number_is_left_to_the_twin(score):
    assert found([{"a": 1.0}, {"a": 1.0, "b": score}], [["a"], ["a"]]) is None
    assert found([{"a": score}], [[]]) is None


@pytest.mark.parametrize("kind", [OrderedDict, Counter, Scored, UserDict, list, lambda own: None])
def test_what_is_not_a_plain_dict_is_left_to_the_twin(kind):
    assert found([{"a": 1.0}, kind({"a": 1.0})], [["a"], ["a"]]) is None


@pytest.mark.parametrize("key", [Text("a"), np.str_("a"), 1, None])
def test_a_key_that_is_not_a_plain_string_is_left_to_the_twin(key):
    assert found([{"a": 1.0}], [[key]]) is None


def test_an_item_given_as_text_and_as_an_integer_is_left_to_the_twin():
    assert found([{"1": 0.5, 1: 0.25}], [["1"]], numbers=True) is None
    assert found([{"1": 0.5, 1: 0.25}], [["1"]]) == ([(0.5, 0, False)], True)
    error, sentence = same_outcome(
        lambda: {"retrieved": {"q": {"1": 0.5, 1: 0.25}}, "gold": {"q": ["1"]}, "metrics": "rr"}
    )
    assert error is karat.errors.InputError
    assert "are the same id, retrieved twice" in sentence


def test_only_finite_scores_are_reported_as_such():
    assert found([{"a": 1e300}], [["a"]])[1] is True
    assert found([{"a": 1e300}], [["a"]], single=True)[1] is False
    assert found([{"a": 1.0}, {"b": float("-inf")}], [[], []])[1] is False


def test_plain_dicts_are_ranked_by_the_kernel_alone(monkeypatch):
    monkeypatch.setattr(Dicts, "_find", None)
    run = karat.evaluate(
        retrieved={"q": {"a": 0.5, "b": 1, 3: 0.75}}, gold={"q": {"a": 1, "3": 1}}, metrics="rr recall@2"
    )
    assert run.mean == {"rr": 0.5, "recall@2": 0.5}


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(IDS | NUMBERS | BAD_KEYS, SCORES | BAD_SCORES, max_size=5)
            | st.dictionaries(IDS | NUMBERS, SCORES, max_size=9),
            KINDS,
            st.lists(IDS | NUMBERS | BAD_KEYS, max_size=6)
            | st.dictionaries(IDS, st.sampled_from([0, 1, 2]), max_size=5),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([*TIES, "trec_eval", "beir", "ranx", STANDARD]),
)
def test_evaluations_of_hostile_dicts_are_equal(queries, convention):
    lists = [type(own)(own) for *_, own in queries]
    if len(set(map(type, lists))) > 1:
        lists = [list(own) for own in lists]
    same_outcome(
        lambda: {
            "retrieved": {f"q{i}": kind(scored) for i, (scored, kind, _) in enumerate(queries)},
            "gold": {f"q{i}": own for i, own in enumerate(lists)},
            "metrics": "recall@3 rr ndcg@5",
            "convention": convention,
            "judge": "ids",
        }
    )
