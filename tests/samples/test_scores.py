"""Ranks from scores: counting compared with sorting."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.samples.rankings import score_order as scores
from karat.samples.rankings.score_order import as_rows, blocks, count_above, sort_if_many, sort_rows

depths = st.lists(st.integers(0, 40), min_size=1, max_size=30)


@settings(deadline=None)
@given(depths, st.integers(0, 2**32 - 1), st.sampled_from(("search", "compare", "unsorted")))
def test_count_above_equals_counting(depth, seed, way):
    rng = np.random.default_rng(seed)
    size = np.array(depth)
    flat = rng.choice([rng.random(), 0.0, -np.inf, np.inf, 1.0, 2.0, 3.0, 4.0], int(size.sum())).astype(np.float32)
    row = np.repeat(np.arange(len(size)), size)
    own = flat.copy()
    start = np.concatenate(([0], np.cumsum(size)))
    each = [flat[a:b] for a, b in pairwise(start)]
    wanted = [(int((each[r] > o).sum()), int((each[r] == o).sum()) > 1) for r, o in zip(row, own, strict=True)]
    pieces = as_rows(flat.copy(), size)
    if way != "unsorted":
        sort_rows(pieces)
    little = scores._FEW
    try:
        scores._FEW = -1 if way == "search" else 1 << 40
        above, tied = count_above(pieces, row, own, in_order=way != "unsorted")
    finally:
        scores._FEW = little
    assert above.tolist() == [count for count, _ in wanted]
    # Filling is -inf too: it may call an item of that score tied, which is then resolved by looking.
    assert all(t or not w for t, (_, w) in zip(tied.tolist(), wanted, strict=True))
    assert all(t == w for t, (_, w), o in zip(tied.tolist(), wanted, own, strict=True) if o > -np.inf)


def test_few_items_are_compared_and_many_searched():
    def is_sorted(items):
        return sort_if_many(as_rows(np.arange(4000.0), np.full(4, 1000)), items)

    assert [is_sorted(items) for items in (0, 4, 8, 9, 40)] == [False, False, False, True, True]


def test_one_long_ranking_among_short_ones_is_not_copied_for_each_item():
    pieces = as_rows(np.arange(100_000.0), np.array([50_000, *[1] * 50_000]))
    assert not sort_if_many(pieces, 3)
    assert sort_if_many(pieces, 1_000)


def test_rows_of_different_lengths_need_little_padding():
    depth = np.array([3] * 500 + [100_000] + [2] * 500)
    pieces = as_rows(np.zeros(int(depth.sum()), np.float32), depth)
    cells = sum(piece.matrix.size for piece in pieces)
    assert cells <= 2 * depth.sum()
    assert sum(len(piece.matrix) for piece in pieces) == len(depth)


@pytest.mark.parametrize("depth", [[0, 0, 0], [10**6], [5] * 10, [scores.CELLS] * 3, [1, scores.CELLS * 2, 1]])
def test_blocks_cover_every_query_once(depth):
    cut = list(blocks(np.array(depth)))
    assert [row for first, last in cut for row in range(first, last)] == list(range(len(depth)))


INFINITE = "2 retrieved scores are infinite: check how they are computed."


def infinite(layout):
    rows = [("q1", "a", float("inf")), ("q1", "b", 1.0), ("q2", "c", 0.5), ("q2", "d", float("-inf"))]
    if layout == "dicts":
        return {q: {d: s for own, d, s in rows if own == q} for q in ("q1", "q2")}
    if layout == "lists":
        return {q: [{"id": d, "text": d, "score": s} for own, d, s in rows if own == q] for q in ("q1", "q2")}
    return pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row")


@pytest.mark.parametrize("layout", ["dicts", "lists", "table"])
def test_infinite_scores_are_noted(layout):
    gold = {"q1": ["b"], "q2": ["c"]}
    for how in ({}, {"judge": "text"}, {"convention": "azure"}, {"convention": "ranx"}):
        run = karat.evaluate(retrieved=infinite(layout), gold=gold, metrics="rr", **how)
        assert INFINITE in run.remarks(), how
        assert run.mean["rr"] == pytest.approx(0.75)
    single = karat.evaluate(retrieved=infinite(layout), gold={"q1": ["a"]}, metrics="rr")
    assert "1 retrieved score is infinite: check how it is computed." in single.remarks()


@pytest.mark.parametrize("layout", ["dicts", "lists", "table"])
def test_large_scores_are_not_infinite(layout):
    rows = [("a", 3e38), ("b", 1.0)]
    given = {"dicts": {"q": dict(rows)}, "lists": {"q": [{"id": d, "score": s} for d, s in rows]}}
    given["table"] = pl.DataFrame({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": [1e200, 1.0]})
    run = karat.evaluate(retrieved=given[layout], gold={"q": ["a"]}, metrics="rr")
    assert "infinite" not in " ".join(run.remarks())


@pytest.mark.parametrize("ending", ["jsonl", "run", "csv"])
def test_infinite_scores_in_files(tmp_path, ending):
    path = tmp_path / f"results.{ending}"
    path.write_text(
        {
            "jsonl": '{"id": "q", "retrieved": [{"id": "a", "score": Infinity}, {"id": "b", "score": -Infinity}]}\n',
            "run": "q Q0 a 1 inf x\nq Q0 b 2 -inf x\n",
            "csv": "query_id,doc_id,score\nq,a,inf\nq,b,-inf\n",
        }[ending]
    )
    assert INFINITE in karat.evaluate(path, "rr", gold={"q": ["a"]}).remarks()
