"""Gold keys in columns: the kernel finds and ranks what its twin does, whatever the columns are made of."""

from __future__ import annotations

from math import inf, isfinite, nan
from random import Random
from time import perf_counter

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
import karat.samples.long as long_tables
from karat._kernel import kernel
from karat.samples.long import first_rows
from karat.samples.rankings.table import Table
from support.kernels import NEEDS_KERNEL, same_outcome, without_kernel

pytestmark = NEEDS_KERNEL

ALIKE = [f"same-beg{left}{'middle' * 4}{right}same-end" for left in "abc" for right in "abc"]
"""Ids of one length that agree in their first, middle and last eight bytes."""
ODD = ["", "\0", "a", "a\0", "\0a", "ä", "日本", "\U0001f600", "1234", "12345", "x" * 12, "x" * 13, "x" * 12 + "y"]
IDS = st.sampled_from([*ALIKE, *ODD, "doc-1", "doc-2", "doc-12"])
SCORES = st.sampled_from([0.0, -0.0, 1.0, 1 + 2**-30, 1 - 2**-30, 2.0, -3.5, 1e300, -1e300, 5e-324, inf, -inf])


def in_chunks(values, sizes, dtype):
    """A column in chunks of some sizes, and the rest; each is a slice of a longer one."""
    parts, at = [], 0
    for size in (*sizes, len(values)):
        before, own = values[max(at - 2, 0) : at], values[at : at + size]
        parts.append(pl.Series([*before, *own, *own[:1]], dtype=dtype)[len(before) : len(before) + len(own)])
        at += size
    column = pl.Series([], dtype=dtype)
    for part in parts:
        column = column.append(part)
    return column


def offsets(queries):
    return np.cumsum([0, *map(len, queries)]).astype(np.int64)


def stream(column):
    return column.__arrow_c_stream__()


def found(rankings, golds, scores=None, *, single=False, sizes=(), key_sizes=()):
    """The kernel's own answer."""
    item = in_chunks([one for own in rankings for one in own], sizes, pl.String)
    key = in_chunks([one for own in golds for one in own], key_sizes, pl.String)
    number = None
    if scores is not None:
        number = stream(in_chunks([one for own in scores for one in own], sizes[::-1], pl.Float64))
    answer = kernel().find_in_column(stream(item), offsets(rankings), stream(key), offsets(golds), number, single)
    return None if answer is None else (np.frombuffer(answer[0], np.int64).reshape(-1, 4).tolist(), answer[1])


def defined(rankings, golds, scores=None, *, single=False):
    """The same, from the definition."""
    rows, at, before, finite = [], 0, 0, True
    for query, (ranking, own) in enumerate(zip(rankings, golds, strict=True)):
        numbers = [0.0] * len(ranking) if scores is None else scores[query]
        with np.errstate(over="ignore"):
            numbers = [float(np.float32(number)) if single else number for number in numbers]
        finite &= all(map(isfinite, numbers))
        for row, one in enumerate(ranking):
            if one in own:
                above = sum(number > numbers[row] for number in numbers)
                tied = numbers.count(numbers[row]) > 1
                rows.append([before + own.index(one), at + row, *((0, 0) if scores is None else (above, int(tied)))])
        at, before = at + len(ranking), before + len(own)
    return rows, finite


QUERIES = st.lists(
    st.tuples(st.lists(st.tuples(IDS, SCORES), max_size=25), st.lists(IDS, max_size=9, unique=True)), max_size=5
)
SIZES = st.lists(st.integers(0, 9), max_size=5)


@given(QUERIES, SIZES, SIZES, st.booleans())
def test_strings_are_found_where_they_are(queries, sizes, key_sizes, single):
    rankings, golds = [[one for one, _ in pairs] for pairs, _ in queries], [own for _, own in queries]
    scores = [[number for _, number in pairs] for pairs, _ in queries]
    chunks = {"sizes": sizes, "key_sizes": key_sizes}
    assert found(rankings, golds, **chunks) == defined(rankings, golds)
    assert found(rankings, golds, scores, single=single, **chunks) == defined(rankings, golds, scores, single=single)


def some_ids(random, size):
    """Different ids, short and long."""
    shapes = [
        lambda number: f"doc-{number}",
        lambda number: f"{number:013d}",
        lambda number: f"https://example.org/{number:024d}/page",
        lambda number: f"{number:08d}é",
    ]
    return [random.choice(shapes)(number) for number in random.sample(range(10 * size + 10), size)]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 5, 70, 600]), st.sampled_from(["falling", "random", "few", "rough"]))
def test_many_keys_are_ranked(seed, size, kind):
    """Few scores are compared with all, many are sorted; `few` has ties, `rough` ties in single precision only."""
    random = Random(seed)
    draws = {"random": random.random, "few": lambda: random.randrange(9), "rough": lambda: 1 + random.random() * 1e-9}
    golds = [some_ids(random, random.randrange(size + 1)) for _ in range(3)]
    rankings = [random.sample(own, len(own) * 2 // 3) + some_ids(random, random.randrange(9)) for own in golds]
    for ranking in rankings:
        random.shuffle(ranking)
    scores = [[float(draws.get(kind, random.random)()) for _ in ranking] for ranking in rankings]
    scores = [sorted(own, reverse=True) for own in scores] if kind == "falling" else scores
    sizes = [random.randrange(100) for _ in range(random.randrange(4))]
    assert found(rankings, golds, sizes=sizes) == defined(rankings, golds)
    for single in (False, True):
        assert found(rankings, golds, scores, single=single, sizes=sizes) == defined(
            rankings, golds, scores, single=single
        )


def test_all_copies_of_an_item_are_found():
    assert found([["a", "b", "a"]], [["a"]], [[1.0, 2.0, 3.0]]) == ([[0, 0, 2, 0], [0, 2, 0, 0]], True)


def test_only_finite_scores_are_reported_as_such():
    assert found([["a"]], [["b"]], [[1e300]]) == ([], True)
    assert found([["a"]], [["b"]], [[1e300]], single=True) == ([], False)
    assert found([["a"], ["b"]], [[], []], [[1.0], [-inf]]) == ([], False)


@pytest.mark.parametrize("golds", [["a", "a"], ["b", "x" * 40, "a", "x" * 40]])
def test_a_repeated_key_is_left_to_the_twin(golds):
    assert found([["a"]], [golds]) is None
    assert found([["a"], ["a"]], [golds[:1], golds[:1]]) is not None


def test_scores_that_are_no_numbers_are_left_to_the_twin():
    assert found([["a", "b"]], [[]], [[nan, 1.0]]) is None
    assert found([["a", "b"]], [["b"]], [[1.0, nan]], single=True) is None


ITEMS = {
    "numbers": pl.Series([1, 2]),
    "missing values": pl.Series(["a", None]),
    "categories": pl.Series(["a", "b"], dtype=pl.Categorical),
    "bytes": pl.Series([b"a", b"b"]),
    "lists": pl.Series([["a"], ["b"]]),
    "nothing": pl.Series([None, None]),
    "strings with offsets": pa.chunked_array([["a", "b"]], pa.string()),
    "large strings": pa.chunked_array([["a", "b"]], pa.large_string()),
    "a table": pl.DataFrame({"a": ["a", "b"]}),
}


@pytest.mark.parametrize("kind", ITEMS)
def test_other_columns_are_left_to_the_twin(kind):
    plain, parts = pl.Series(["a", "b"]), np.array([0, 2])
    assert kernel().find_in_column(stream(ITEMS[kind]), parts, stream(plain), parts, None, False) is None
    assert kernel().find_in_column(stream(plain), parts, stream(ITEMS[kind]), parts, None, False) is None
    assert kernel().find_in_column(stream(plain), parts, stream(plain), parts, stream(ITEMS[kind]), False) is None
    assert kernel().changes_in_column(stream(ITEMS[kind])) is None


def test_other_numbers_are_left_to_the_twin():
    plain, parts = pl.Series(["a", "b"]), np.array([0, 2])
    for column in (pl.Series([1, 2]), pl.Series([1.0, 2.0], dtype=pl.Float32), pl.Series([1.0, None])):
        assert kernel().find_in_column(stream(plain), parts, stream(plain), parts, stream(column), False) is None


def test_a_stream_that_is_used_up_has_no_rows():
    used, parts = stream(pl.Series(["a"])), np.array([0, 1])
    assert kernel().changes_in_column(used) == np.array([0]).tobytes()
    assert not kernel().changes_in_column(used)
    with pytest.raises(ValueError, match="the offsets do not fit the columns"):
        kernel().find_in_column(used, parts, stream(pl.Series(["a"])), parts, None, False)


@pytest.mark.parametrize("given", [None, "a", object(), pl.Series(["a"]), [1]])
def test_other_objects_are_refused(given):
    plain, parts = pl.Series(["a"]), np.array([0, 1])
    with pytest.raises((TypeError, ValueError)):
        kernel().changes_in_column(given)
    with pytest.raises((TypeError, ValueError)):
        kernel().find_in_column(given, parts, stream(plain), parts, None, False)
    with pytest.raises((TypeError, ValueError)):
        kernel().find_in_column(stream(plain), parts, given, parts, None, False)
    with pytest.raises((TypeError, ValueError)):
        kernel().find_in_column(stream(plain), given, stream(plain), parts, None, False)


def test_scores_of_another_number_of_items_are_refused():
    plain, parts = pl.Series(["a"]), np.array([0, 1])
    with pytest.raises(ValueError, match="the scores do not fit the items"):
        kernel().find_in_column(stream(plain), parts, stream(plain), parts, stream(pl.Series([1.0, 2.0])), False)


BAD_OFFSETS = [[0, 1], [0, 3], [1, 2], [-1, 2], [0, 2, 1, 2], [0, 2**62, 2], [0, -1, 2]]


@pytest.mark.parametrize("bad", BAD_OFFSETS)
def test_offsets_that_do_not_fit_are_refused(bad):
    plain = pl.Series(["a", "b"])
    good = np.linspace(0, 2, len(bad)).astype(np.int64)
    for start, key_start in ((np.array(bad, np.int64), good), (good, np.array(bad, np.int64))):
        with pytest.raises(ValueError, match="the offsets do not fit the columns"):
            kernel().find_in_column(stream(plain), start, stream(plain), key_start, None, False)
    with pytest.raises(ValueError, match="expected an aligned array"):
        kernel().find_in_column(stream(plain), np.array([0, 2]), stream(plain), np.array([0, 1, 2]), None, False)


def test_no_rows_and_no_queries():
    assert found([], []) == ([], True)
    assert found([[], []], [["a"], []], [[], []]) == ([], True)
    assert found([["a"]], [[]], sizes=(0, 0)) == ([], True)
    assert kernel().changes_in_column(stream(pl.Series([], dtype=pl.String))) == b""


def test_strings_made_to_have_one_code_are_left_to_the_twin():
    """The twin's hashes cannot be attacked; the result is the same."""
    same = [f"{'s' * 30}{number:06d}{'s' * 13}{number:06d}{'s' * 30}" for number in range(3000)]
    assert found([same], [same[::-1]]) is None
    frame = pl.DataFrame({"query": ["q"] * len(same), "doc": same, "score": np.arange(3000.0)})
    gold = pl.DataFrame({"query": ["q"] * 3000, "doc": same, "grade": [1] * 3000})
    result = same_outcome(lambda: {"retrieved": frame, "gold": gold, "metrics": "rr recall@9", "judge": "ids"})
    assert len(result["hits"]) == 3000


def test_a_search_for_strings_of_one_code_is_given_up_soon():
    """Also if the keys alone are not too many: it takes no more than some searches of plain strings."""
    rows, keys = 200_000, 1500

    def seconds(write):
        every = list(map(write, range(rows + keys)))
        start = perf_counter()
        answer = found([every[keys:]], [every[:keys]])
        return perf_counter() - start, answer

    alike, answer = seconds(lambda number: f"{'s' * 30}{number:07d}{'s' * 12}{number:07d}{'s' * 30}")
    plain, expected = seconds(lambda number: f"{'s' * 79}{number:07d}")
    assert (answer, expected) == (None, ([], True))
    assert alike < 20 * plain


@pytest.mark.parametrize("write", ["collection-{:04d}-{:03d}", "doc-{:04d}-{:03d}", "clueweb09-en{:04d}-00-{:05d}"])
def test_ids_that_differ_in_their_last_letters_have_different_codes(write):
    """Else every item would be compared with every key, and the search given up."""
    every = [[write.format(query, number) for number in range(1000)] for query in range(60)]
    golds = [own[:100] for own in every]
    assert found(every, golds) == defined(every, golds)


@given(st.lists(IDS, max_size=30), SIZES)
def test_the_rows_at_which_a_column_changes(ids, sizes):
    column = in_chunks(ids, sizes, pl.String)
    rows = [row for row, own in enumerate(ids) if row == 0 or own != ids[row - 1]]
    assert np.frombuffer(kernel().changes_in_column(stream(column)), np.int64).tolist() == rows
    with without_kernel():
        assert first_rows(column).tolist() == rows


def test_plain_columns_are_searched_by_the_kernel_alone(monkeypatch):
    monkeypatch.setattr(Table, "_find_by_hashes", None)
    monkeypatch.setattr(long_tables, "_first_rows_in", None)
    run = karat.evaluate(
        retrieved=pl.DataFrame({"query": ["q", "q", "r"], "doc": ["a", "b", "c"], "score": [1.0, 2.0, 1.0]}),
        gold=pl.DataFrame({"query": ["q", "r"], "doc": ["a", "c"]}),
        metrics="rr",
    )
    assert run.mean == {"rr": 0.75}


ROWS = st.tuples(st.sampled_from("qrst"), IDS, SCORES)
TIES = ["standard", "standard(ties=given)", "standard(ties=averaged)", "trec_eval", "beir", "ranx"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(ROWS, min_size=1, max_size=30),
    st.lists(ROWS, min_size=1, max_size=12, unique_by=lambda row: row[:2]),
    SIZES,
    st.sampled_from(TIES),
    st.booleans(),
)
def test_evaluations_of_tables_are_equal(rows, golds, sizes, convention, scored):
    def frame(rows, last, sizes):
        columns = zip(zip(*rows, strict=True), (pl.String, pl.String, pl.Float64), strict=True)
        query, doc, number = (in_chunks(list(values), sizes, dtype) for values, dtype in columns)
        return pl.DataFrame({"query": query, "doc": doc, last: number})

    results = frame(sorted(rows), "score", sizes)
    gold = frame([(query, doc, 1.0) for query, doc, _ in golds], "grade", [])
    same_outcome(
        lambda: {
            "retrieved": results if scored else results.drop("score").with_columns(rank=pl.int_range(pl.len())),
            "gold": gold,
            "metrics": "recall@3 rr ndcg@5",
            "convention": convention,
            "judge": "ids",
        }
    )
