"""karat.calibrate: human scores from labels equal those of people as a judge; the confusion matrix."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from support.calibrated import DETERMINED, Grades, data, evaluated, labels_of


@pytest.mark.parametrize(("kind", "metric"), [(kind, metric) for kind, names in DETERMINED.items() for metric in names])
def test_human_scores_equal_those_of_people_as_a_judge(kind, metric):
    samples, people, judge = data()
    run, wanted = evaluated(samples, judge), evaluated(samples, people)
    got = karat.calibrate(run, labels_of(samples, people, kind, 25), metric=metric).corrected
    assert got.labelled == 25
    assert got.queries == 60
    assert got.human.value == pytest.approx(wanted.scores[metric][:25].mean())
    assert got.bias.value == pytest.approx((run.scores[metric] - wanted.scores[metric])[:25].mean())
    assert got.judge.value == pytest.approx(run.mean[metric])
    assert (got.judge.low, got.judge.high) == run.interval()[metric]
    assert got.mean.value == pytest.approx(
        got.human.value + got.weight * (run.mean[metric] - run.scores[metric][:25].mean())
    )


@pytest.mark.parametrize(
    ("kind", "metric"),
    [("gold", name) for name in ("recall@2", "precision@4", "rr", "ndcg@4", "ap")]
    + [("rank", name) for name in ("recall@4", "recall_all@4", "ndcg@4", "ap")],
)
def test_labels_that_do_not_determine_a_metric(kind, metric):
    samples, people, judge = data()
    got = karat.calibrate(evaluated(samples, judge), labels_of(samples, people, kind, 25), metric=metric)
    assert got.corrected is None
    assert got.agreement.judgements == 25 * (3 if kind == "gold" else 4)
    assert any(f"No corrected mean: {metric} needs " in remark for remark in got.remarks())


@pytest.mark.parametrize("kind", DETERMINED)
def test_the_judge_agrees_with_itself(kind):
    samples, _, judge = data()
    got = karat.calibrate(evaluated(samples, judge), labels_of(samples, judge, kind, 60))
    assert got.agreement.kappa.value == got.agreement.agreement.value == 1
    assert got.agreement.fp == got.agreement.fn == 0
    assert got.corrected.bias.value == 0
    assert got.corrected.mean.value == pytest.approx(got.corrected.judge.value)


@pytest.mark.parametrize("kind", DETERMINED)
def test_the_confusion_matrix(kind):
    samples, people, judge = data()
    got = karat.calibrate(evaluated(samples, judge), labels_of(samples, people, kind, 30)).agreement
    cells = {"tp": 0, "fp": 0, "fn": 0, "tn": 0}
    for sample in samples[:30]:
        theirs, own = people[sample["id"]], judge[sample["id"]]
        for unit in {"gold": range(3), "rank": range(1, 5), "pair": [(r, g) for r in range(1, 5) for g in range(3)]}[
            kind
        ]:

            def says(pairs, unit=unit):
                return unit in {"gold": {g for _, g in pairs}, "rank": {r for r, _ in pairs}, "pair": pairs}[kind]

            cells[{(1, 1): "tp", (1, 0): "fp", (0, 1): "fn", (0, 0): "tn"}[says(own), says(theirs)]] += 1
    assert {name: getattr(got, name) for name in cells} == cells
    assert got.queries == 30
    assert got.bias.value == pytest.approx((cells["fp"] - cells["fn"]) / sum(cells.values()))


def test_the_default_metric_has_the_largest_cutoff_that_labels_determine():
    samples, people, judge = data()
    run = evaluated(samples, judge)
    assert karat.calibrate(run, labels_of(samples, people, "gold", 20)).metric == "recall@4"
    assert karat.calibrate(run, labels_of(samples, people, "rank", 20)).metric == "rr"
    assert karat.calibrate(run, labels_of(samples, people, "gold", 20), labelled_depth=2).metric == "recall@2"


def test_labels_of_the_top_ranks_only():
    """A gold item that people did not find may be below the ranks they checked."""
    samples, people, judge = data()
    run, wanted = evaluated(samples, judge), evaluated(samples, people)
    top = {query: {(rank, gold) for rank, gold in pairs if rank <= 2} for query, pairs in people.items()}
    labels = labels_of(samples, top, "gold", 25)
    got = karat.calibrate(run, labels, metric="recall@2", labelled_depth=2)
    assert got.corrected.human.value == pytest.approx(wanted.scores["recall@2"][:25].mean())
    assert karat.calibrate(run, labels, metric="recall@4", labelled_depth=2).corrected is None
    found = sum(len({gold for rank, gold in judge[s["id"]] if rank <= 2}) for s in samples[:25])
    assert got.agreement.tp + got.agreement.fp == found
    with pytest.raises(karat.BadArgument, match="number of ranks"):
        karat.calibrate(run, labels, labelled_depth=0)


def test_partially_labelled_queries_are_only_in_the_confusion_matrix():
    samples, people, judge = data()
    labels = labels_of(samples, people, "gold", 25)[:-1]
    got = karat.calibrate(evaluated(samples, judge), labels)
    assert got.corrected.labelled == 24
    assert got.agreement.judgements == 74
    assert "1 query is partially labelled and excluded from the corrected mean." in got.remarks()
    alone = karat.calibrate(evaluated(samples, judge), labels[:2])
    assert alone.corrected is None
    assert any("no query is fully labelled for" in remark for remark in alone.remarks())


def test_scores_of_whole_queries():
    samples, people, judge = data()
    run, wanted = evaluated(samples, judge), evaluated(samples, people)
    scores = dict(zip(wanted.ids[:25], wanted.scores["ndcg@4"][:25].tolist(), strict=True))
    got = karat.calibrate(run, scores, metric="ndcg@4")
    assert got.agreement is None
    assert got.corrected.human.value == pytest.approx(np.mean(list(scores.values())))
    assert got.corrected == karat.calibrate(run, wanted.table[:25].select("query_id", "ndcg@4")).corrected
    with pytest.raises(karat.BadArgument, match="which metric are the human scores of"):
        karat.calibrate(run, scores)
    hits = {query: bool(score) for query, score in zip(wanted.ids, wanted.scores["hit@4"], strict=True)}
    assert karat.calibrate(run, hits, metric="hit@4").agreement.judgements == 60


def test_graded_retrieved_items():
    """Grades of retrieved items, as from the judge `relevance`: labels determine metrics that count ranks."""
    rng = np.random.default_rng(2)
    ids = [f"q{i}" for i in range(40)]
    samples = [{"id": query, "retrieved": ["a", "b", "c", "d"], "gold": []} for query in ids]
    theirs = {query: rng.random(4) < rng.random() for query in ids}
    judge = {
        query: np.where(rng.random(4) < 0.8, theirs[query] * rng.integers(1, 4, 4), rng.integers(0, 2, 4))
        for query in ids
    }
    run = karat.evaluate(samples, "precision@2,4 rr ndcg@4", judge=Grades(judge))
    wanted = karat.evaluate(samples, "precision@2,4 rr ndcg@4", judge=Grades(theirs))
    rows = [{"qid": q, "position": r + 1, "relevant": bool(theirs[q][r])} for q in ids[:20] for r in range(4)]
    named = [
        {"qid": row["qid"], "text": f"{row['qid']} text {row['position']}", "label": row["relevant"]} for row in rows
    ]
    for metric in ("precision@2", "precision@4", "rr"):
        for labels in (rows, named):
            got = karat.calibrate(run, labels, metric=metric)
            assert got.corrected.labelled == 20
            assert got.corrected.human.value == pytest.approx(wanted.scores[metric][:20].mean())
    assert karat.calibrate(run, rows, metric="ndcg@4").corrected is None
    strict = karat.evaluate(samples, "precision(rel=2)@4", judge=Grades(judge))
    assert karat.calibrate(strict, rows).corrected.human.value == pytest.approx(np.mean([theirs[q] for q in ids[:20]]))
    assert karat.calibrate(run, rows, labelled_depth=1).agreement == karat.calibrate(run, rows).agreement
    yes = sum(bool(grade) for query in ids[:20] for grade in judge[query])
    assert got.agreement.tp + got.agreement.fp == yes
    assert any("the item at a rank is relevant" in remark for remark in karat.calibrate(run, rows).remarks())


def test_partial_matches_count_together():
    """Two items that satisfy a gold item only together: both are relevant, the second finds it."""
    samples = [{"id": f"q{i}", "retrieved": ["a", "b", "c"], "gold": ["g", "h"]} for i in range(5)]

    class Together:
        name = "together"

        def __call__(self, samples, convention):
            query = np.repeat(np.arange(5), 3)
            gold = np.tile([0, 0, 1], 5) + 2 * query
            part = np.tile([True, False, True], 5)
            of = karat.Gold(["g", "h"] * 5, samples.gold.start, samples.gold.grade)
            return karat.Hits(query, np.tile([1, 2, 3], 5), gold, depth=np.full(5, 3), gold_items=of, part=part)

    run = karat.evaluate(samples, "recall@1,3 precision@3", judge=Together())
    assert run.mean == {"recall@1": 0, "recall@3": 0.5, "precision@3": 1}
    found = [{"query_id": query, "gold": gold, "label": int(gold == "g")} for query in run.ids for gold in "gh"]
    got = karat.calibrate(run, found, metric="recall@3")
    assert (got.agreement.fp, got.agreement.fn, got.corrected.bias.value) == (0, 0, 0)
    said = {("g", 1), ("g", 2), ("h", 3)}
    pairs = [
        {"query_id": query, "gold": gold, "rank": rank, "label": int((gold, rank) in said)}
        for query in run.ids
        for gold in "gh"
        for rank in (1, 2, 3)
    ]
    for metric in run.mean:
        got = karat.calibrate(run, pairs, metric=metric)
        assert (got.agreement.fp, got.agreement.fn, got.corrected.bias.value) == (0, 0, 0)


def test_copies_count_once():
    """An item that was retrieved twice counts once, although people label both as relevant."""
    samples = [{"id": f"q{i}", "retrieved": ["a", "a", "x", "b"], "gold": ["a", "b"]} for i in range(5)]
    run = karat.evaluate(samples, "precision@4")
    assert run.mean["precision@4"] == 0.5
    rows = [{"query_id": query, "rank": r, "label": int(r != 3)} for query in run.ids for r in range(1, 5)]
    got = karat.calibrate(run, rows)
    assert got.agreement.agreement.value == 1
    assert got.corrected.human.value == 0.5


def test_the_relevance_threshold_of_the_metric_is_used():
    """With rel=2 a label of 1 means a grade of 2 or more, and gold below that is ignored."""
    gold = [{"id": "a", "grade": 2}, {"id": "b", "grade": 1}]
    samples = [{"id": f"q{i}", "retrieved": ["a", "b"] if i % 2 else ["b", "x"], "gold": gold} for i in range(6)]
    run = karat.evaluate(samples, "recall(rel=2)@2 precision(rel=2)@2")
    rows = [{"query_id": f"q{i}", "gold": "a", "label": int(i < 5)} for i in range(6)]
    got = karat.calibrate(run, rows)
    assert got.metric == "recall(rel=2)@2"
    assert got.corrected.human.value == pytest.approx(5 / 6)
    ranked = [{"query_id": f"q{i}", "rank": r, "label": int(r == 1 and i % 2)} for i in range(6) for r in (1, 2)]
    got = karat.calibrate(run, ranked, metric="precision(rel=2)@2")
    assert got.agreement.agreement.value == 1
    assert got.corrected.bias.value == 0


def test_scores_that_cannot_be_recomputed_from_the_hits():
    """Such as scores of another convention."""
    samples, people, judge = data()
    run = evaluated(samples, judge)
    run.scores["recall@4"][3] += 0.1
    got = karat.calibrate(run, labels_of(samples, people, "gold", 25), metric="recall@4")
    assert got.corrected is None
    assert any("cannot be recomputed from its hits" in remark for remark in got.remarks())
