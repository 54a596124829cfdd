"""Hits: what a judge may say, and what metrics share."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from karat.conventions import STANDARD
from karat.hits.combine import take
from karat.hits.reranking import ideal
from karat.metrics import parse
from support.strategies import hits_of
from support.twins import Case, ndcg


def hits(rows, depth=3, gold=(1.0, 1.0), **kwargs):
    query, rank, item = np.array(rows).reshape(-1, 3).T
    of = karat.Gold(["g"] * len(gold), np.array([0, len(gold)]), np.array(gold))
    return karat.Hits(query, rank, item, depth=np.array([depth]), gold_items=of, **kwargs)


@pytest.mark.parametrize(
    ("rows", "kwargs", "said"),
    [
        ([(0, 0, 0)], {}, "rank"),
        ([(0, 4, 0)], {}, "rank"),
        ([(1, 1, 0)], {}, "query"),
        ([(0, 1, 2)], {}, "gold"),
        ([(0, 1, 0)], {"grade": np.array([5.0])}, "higher grade"),
    ],
)
def test_hits_that_cannot_be_are_refused(rows, kwargs, said):
    class Wrong:
        name = "wrong"

        def __call__(self, samples, convention):
            return hits(rows, **kwargs)

    with pytest.raises(karat.BadArgument, match=said):
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], judge=Wrong())


@pytest.mark.parametrize("given", [None, take(hits([]), np.array([], int))])
def test_a_judge_returns_hits_of_all_samples(given):
    class Wrong:
        name = "wrong"

        def __call__(self, samples, convention):
            return given

    with pytest.raises(karat.BadArgument, match='judge "wrong" returned'):
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], judge=Wrong())


def test_no_hits_at_all():
    assert parse("recall@3").scores(hits([]), STANDARD)["recall@3"].tolist() == [0.0]


@pytest.mark.parametrize("kind", [np.int32, np.uint32, np.int64])
def test_columns_of_any_integer(kind):
    query = np.repeat(np.arange(5000), 2).astype(kind)
    rank = np.tile([1_000_000, 1], 5000).astype(kind)
    of = karat.Gold(["g"] * 10_000, np.arange(0, 10_001, 2), np.ones(10_000))
    made = karat.Hits(query, rank, np.arange(10_000).astype(kind), depth=np.full(5000, 1_000_000), gold_items=of)
    assert (parse("rr").scores(made, STANDARD)["rr"] == 1).all()


def test_two_items_on_one_gold_item_are_both_relevant_unless_they_are_equal():
    rows = [(0, 1, 0), (0, 2, 0)]
    assert parse("precision@2").scores(hits(rows), STANDARD)["precision@2"] == [1.0]
    assert parse("precision@2").scores(hits(rows, equality=True), STANDARD)["precision@2"] == [0.5]


def test_what_metrics_share_cannot_be_written_into():
    made = hits([(0, 1, 0)])
    k = parse("recall@3").cutoffs(made)
    for column in (made.found(k, STANDARD), made.gold_count(), k):
        with pytest.raises(ValueError, match="read-only"):
            column[:] = 2
    with pytest.raises(TypeError):
        parse("recall(rel=2)@3").settings["rel"] = 3.0


def test_a_view_of_ones_own_is_not_taken_for_another():
    made = hits([(0, 1, 0), (0, 2, 1)])
    view, k = made.ranks(STANDARD), parse("recall@3").cutoffs(made)
    counts = []
    for rows in ([0], [0, 1], [1], []):
        part = type(view)(*(column[rows] for column in view))
        counts.append(made.count(part, k)[0, 0])
    assert counts == [1, 2, 1, 0]


@pytest.mark.parametrize("levels", [1, 3, 40])
def test_the_best_ranking_of_much_gold(levels):
    """Enough of it for the way without sorting, which few grades take; the twin sorts."""
    rng = np.random.default_rng(levels)
    queries = []
    for _ in range(30):
        grades = rng.integers(1, levels + 1, 60).astype(float).tolist()
        queries.append(Case(rng.permutation(80).tolist(), {i: {i} for i in range(60)}, grades))
    best = [Case(np.argsort([-g for g in q.grades], kind="stable").tolist(), q.satisfies, q.grades) for q in queries]
    made = parse("ndcg@10,100").scores(hits_of(queries), STANDARD)
    for k in (10, 100):
        np.testing.assert_allclose(made[f"ndcg@{k}"], [ndcg(q, k) for q in queries], atol=1e-12)
        assert (parse(f"ndcg@{k}").scores(hits_of(best), STANDARD)[f"ndcg@{k}"] == 1).all()


def test_rbp_of_very_many_is_bounded():
    ids = [f"d{i}" for i in range(2000)]
    for p in (0.01, 0.04, 0.37, 0.5, 0.99):
        assert karat.score(f"rbp(p={p})", ids, ids) <= 1


def test_scores_are_values_not_sums():
    """They stay with their items if unjudged items are removed, and if the items are reranked."""
    retrieved = [{"id": item, "score": score} for item, score in (("u", 0.9), ("b", 0.75), ("a", 0.5))]
    sample = {"retrieved": retrieved, "gold": {"a": 2, "b": 1}, "answerable": True}
    hits = karat.evaluate([sample], "recall@2").all_hits
    assert hits.totals.at_rank["raw_score"].tolist() == [0.9, 0.75, 0.5]
    assert hits.condensed.totals.at_rank["raw_score"].tolist() == [0.75, 0.5]
    assert ideal(hits).totals.at_rank["raw_score"].tolist() == [0.5, 0.75, 0.9]
