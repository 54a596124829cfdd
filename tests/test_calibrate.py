"""Calibration through its front door: people's labels give the scores that people as a judge would have given."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import karat
from karat._internal.arrays import starts

METRICS = "recall@2,4 recall_all@4 hit@4 precision@2,4 rr ndcg@4 ap"


class Says:
    """A judge that says what it is told: the pairs of rank and gold item, by query."""

    name = "told"
    needs_gold = False

    def __init__(self, pairs, failed=()):
        self.pairs = pairs
        self.failed = failed

    def __call__(self, samples, convention):
        rows = [
            (q, rank, int(samples.gold.start[q]) + gold)
            for q, query in enumerate(samples.ids)
            for rank, gold in sorted(self.pairs[query])
        ]
        query, rank, gold = np.array(rows, np.int64).reshape(-1, 3).T
        labels = samples.gold.columns["text"]
        return karat.Hits(
            query,
            rank,
            gold,
            depth=np.array([4] * len(samples)),
            gold_items=karat.Gold(labels, samples.gold.start, samples.gold.grade),
            failed={samples.ids.index(query): "timed out" for query in self.failed},
        )


class Grades:
    """A judge without gold: it grades each of the four retrieved items."""

    name = "graded"
    needs_gold = False

    def __init__(self, grades):
        self.grades = grades

    def __call__(self, samples, convention):
        size = len(samples)
        return karat.Hits(
            np.repeat(np.arange(size), 4),
            np.tile(np.arange(1, 5), size),
            np.arange(4 * size),
            depth=np.full(size, 4),
            gold_items=karat.Gold(
                [f"{query} text {rank}" for query in samples.ids for rank in range(1, 5)],
                starts(np.full(size, 4)),
                np.concatenate([self.grades[query] for query in samples.ids]).astype(float),
                incomplete=True,
            ),
        )


def data(seed=1, queries=60, claims=3):
    """What people and a judge say: it misses little and imagines some."""
    rng = np.random.default_rng(seed)
    ids = [f"q{i}" for i in range(queries)]
    people, judge = {}, {}
    for query in ids:
        cells = [(rank, claim) for rank in range(1, 5) for claim in range(claims)]
        likely = rng.beta(1, 2)
        people[query] = {cell for cell in cells if rng.random() < likely}
        judge[query] = {cell for cell in cells if rng.random() < (0.9 if cell in people[query] else 0.15)}
    samples = [
        {"id": query, "retrieved": [f"t{i}" for i in range(4)], "gold": [f"{query} claim {i}" for i in range(claims)]}
        for query in ids
    ]
    return samples, people, judge


def evaluated(samples, pairs, metrics=METRICS, **kwargs):
    return karat.evaluate(samples, metrics, judge=Says(pairs, **kwargs))


def labels_of(samples, people, kind, some):
    """Every label of some queries."""
    rows = []
    for sample in samples[:some]:
        query = sample["id"]
        found = {gold for _, gold in people[query]}
        relevant = {rank for rank, _ in people[query]}
        if kind == "gold":
            rows += [{"query_id": query, "gold": g, "label": int(i in found)} for i, g in enumerate(sample["gold"])]
        elif kind == "rank":
            rows += [{"query_id": query, "rank": r, "label": int(r in relevant)} for r in range(1, 5)]
        else:
            rows += [
                {"query_id": query, "rank": r, "gold": g, "label": int((r, i) in people[query])}
                for r in range(1, 5)
                for i, g in enumerate(sample["gold"])
            ]
    return rows


SETTLED = {
    "gold": ["recall@4", "recall_all@4", "hit@4"],
    "rank": ["hit@4", "precision@2", "precision@4", "rr"],
    "pair": ["recall@2", "recall@4", "recall_all@4", "hit@4", "precision@2", "precision@4", "rr", "ndcg@4", "ap"],
}


@pytest.mark.parametrize(("kind", "metric"), [(kind, metric) for kind, names in SETTLED.items() for metric in names])
def test_labels_give_what_people_as_a_judge_would(kind, metric):
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
def test_labels_that_leave_a_metric_open_do_not_correct_it(kind, metric):
    samples, people, judge = data()
    got = karat.calibrate(evaluated(samples, judge), labels_of(samples, people, kind, 25), metric=metric)
    assert got.corrected is None
    assert got.agreement.judgements == 25 * (3 if kind == "gold" else 4)
    assert any(f"No corrected mean: {metric} needs to know" in remark for remark in got.remarks())


@pytest.mark.parametrize("kind", SETTLED)
def test_the_judge_as_its_own_human_agrees(kind):
    samples, _, judge = data()
    got = karat.calibrate(evaluated(samples, judge), labels_of(samples, judge, kind, 60))
    assert got.agreement.kappa.value == got.agreement.agreement.value == 1
    assert got.agreement.fp == got.agreement.fn == 0
    assert got.corrected.bias.value == 0
    assert got.corrected.mean.value == pytest.approx(got.corrected.judge.value)


@pytest.mark.parametrize("kind", SETTLED)
def test_confusion_is_counted(kind):
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


def test_the_metric_is_the_deepest_that_labels_settle():
    samples, people, judge = data()
    run = evaluated(samples, judge)
    assert karat.calibrate(run, labels_of(samples, people, "gold", 20)).metric == "recall@4"
    assert karat.calibrate(run, labels_of(samples, people, "rank", 20)).metric == "rr"
    assert karat.calibrate(run, labels_of(samples, people, "gold", 20), seen=2).metric == "recall@2"


def test_people_who_saw_the_top_only():
    """What they did not find may stand below; what they found stands in what they saw."""
    samples, people, judge = data()
    run, wanted = evaluated(samples, judge), evaluated(samples, people)
    top = {query: {(rank, gold) for rank, gold in pairs if rank <= 2} for query, pairs in people.items()}
    labels = labels_of(samples, top, "gold", 25)
    got = karat.calibrate(run, labels, metric="recall@2", seen=2)
    assert got.corrected.human.value == pytest.approx(wanted.scores["recall@2"][:25].mean())
    assert karat.calibrate(run, labels, metric="recall@4", seen=2).corrected is None
    found = sum(len({gold for rank, gold in judge[s["id"]] if rank <= 2}) for s in samples[:25])
    assert got.agreement.tp + got.agreement.fp == found
    with pytest.raises(karat.BadArgument, match="number of ranks"):
        karat.calibrate(run, labels, seen=0)


def test_queries_labelled_in_part_are_in_the_confusion_alone():
    samples, people, judge = data()
    labels = labels_of(samples, people, "gold", 25)[:-1]
    got = karat.calibrate(evaluated(samples, judge), labels)
    assert got.corrected.labelled == 24
    assert got.agreement.judgements == 74
    assert "1 query is labelled in part: not in the corrected mean." in got.remarks()
    alone = karat.calibrate(evaluated(samples, judge), labels[:2])
    assert alone.corrected is None
    assert any("no query has a label on all" in remark for remark in alone.remarks())


def test_scores_of_whole_queries():
    samples, people, judge = data()
    run, wanted = evaluated(samples, judge), evaluated(samples, people)
    scores = dict(zip(wanted.ids[:25], wanted.scores["ndcg@4"][:25].tolist(), strict=True))
    got = karat.calibrate(run, scores, metric="ndcg@4")
    assert got.agreement is None
    assert got.corrected.human.value == pytest.approx(np.mean(list(scores.values())))
    assert got.corrected == karat.calibrate(run, wanted.table[:25].select("query_id", "ndcg@4")).corrected
    with pytest.raises(karat.BadArgument, match="by which metric"):
        karat.calibrate(run, scores)
    hits = {query: bool(score) for query, score in zip(wanted.ids, wanted.scores["hit@4"], strict=True)}
    assert karat.calibrate(run, hits, metric="hit@4").agreement.judgements == 60


def test_gold_made_of_what_was_retrieved():
    """Grades of retrieved items, as the judge `relevance` gives: labels settle what counts ranks."""
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
    assert karat.calibrate(run, rows, seen=1).agreement == karat.calibrate(run, rows).agreement
    yes = sum(bool(grade) for query in ids[:20] for grade in judge[query])
    assert got.agreement.tp + got.agreement.fp == yes
    assert any("whether the item at a rank is relevant" in remark for remark in karat.calibrate(run, rows).remarks())


def test_parts_are_not_found_alone():
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


def test_copies_stay_copies():
    """An item that came back twice earns nothing the second time, though people call it relevant."""
    samples = [{"id": f"q{i}", "retrieved": ["a", "a", "x", "b"], "gold": ["a", "b"]} for i in range(5)]
    run = karat.evaluate(samples, "precision@4")
    assert run.mean["precision@4"] == 0.5
    rows = [{"query_id": query, "rank": r, "label": int(r != 3)} for query in run.ids for r in range(1, 5)]
    got = karat.calibrate(run, rows)
    assert got.agreement.agreement.value == 1
    assert got.corrected.human.value == 0.5


def test_what_counts_as_relevant_is_the_metrics_own():
    """With rel=2 a label of 1 means a grade of 2 or more, and gold below that is not asked for."""
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


def test_scores_that_do_not_follow_from_the_hits():
    """As if they had been computed otherwise than by the run's own convention."""
    samples, people, judge = data()
    run = evaluated(samples, judge)
    run.scores["recall@4"][3] += 0.1
    got = karat.calibrate(run, labels_of(samples, people, "gold", 25), metric="recall@4")
    assert got.corrected is None
    assert any("does not follow from its hits alone" in remark for remark in got.remarks())


def test_metrics_of_ones_own():
    from karat.metrics import METRICS

    @karat.metric
    def any_claim(hits, k, c):
        """Whether anything is found."""
        return (hits.found(k, c) > 0).astype(float)

    samples, people, judge = data()
    try:
        run = evaluated(samples, judge, "any_claim@4")
        got = karat.calibrate(run, labels_of(samples, people, "gold", 25))
        assert got.corrected.human.value == np.mean([bool(people[f"q{i}"]) for i in range(25)])
    finally:
        del METRICS["any_claim"]
    gone = karat.calibrate(run, labels_of(samples, people, "gold", 25))
    assert gone.corrected is None
    assert any("any_claim@4 cannot be computed here" in remark for remark in gone.remarks())
    assert gone.agreement == got.agreement


def test_queries_without_gold_keep_the_score_that_the_convention_gives_them():
    nothing_is_zero = dataclasses.replace(karat.STANDARD, name="nothing is zero", empty_gold=0.0)
    samples = [{"id": f"q{i}", "retrieved": ["a", "x"], "gold": ["a"] if i else []} for i in range(6)]
    run = karat.evaluate(samples, "precision@2", convention=nothing_is_zero)
    rows = [{"query_id": query, "rank": rank, "label": 1} for query in run.ids for rank in (1, 2)]
    got = karat.calibrate(run, rows).corrected
    assert (got.labelled, got.human.value) == (6, pytest.approx(5 / 6))


def test_what_failed_is_missing_and_said():
    samples, people, judge = data()
    run = evaluated(samples, judge, failed=("q0", "q1", "q59"))
    got = karat.calibrate(run, labels_of(samples, people, "gold", 25))
    assert got.corrected.queries == 57
    assert got.corrected.labelled == 23
    assert got.agreement.queries == 23
    assert got.corrected.judge.value == pytest.approx(np.nanmean(run.scores["recall@4"]))
    assert "6 labels are of queries that could not be judged: not used." in got.remarks()
    assert "Judged 57 of 60 queries: the means are over these, and say nothing of the others." in got.remarks()
    assert "60 queries, 57 judged" in repr(got)
    with pytest.raises(karat.InputError, match="could not be judged"):
        karat.calibrate(run, labels_of(samples, people, "gold", 2))


def test_undefined_queries_are_not_used():
    samples, people, judge = data()
    samples[0]["gold"] = []
    people["q0"] = judge["q0"] = set()
    run = evaluated(samples, judge)
    got = karat.calibrate(run, {sample["id"]: 0.5 for sample in samples[:25]}, metric="recall@4")
    assert got.corrected.labelled == 24
    assert got.corrected.queries == 59
    assert "1 label is of queries for which recall@4 is undefined: not used." in got.remarks()
    assert "1 query is undefined for recall@4: not in the means." in got.remarks()


def test_queries_that_the_convention_leaves_out_are_not_used():
    leaves_out = dataclasses.replace(karat.STANDARD, name="leaves out", missing="drop")
    gold = {f"q{i}": ["a", "b"] for i in range(6)}
    run = karat.evaluate(
        retrieved={f"q{i}": ["a", "x"] for i in range(5)}, gold=gold, metrics="recall@2", convention=leaves_out
    )
    rows = [{"query_id": query, "gold": item, "label": 0} for query in gold for item in "ab"]
    got = karat.calibrate(run, rows).corrected
    assert (got.queries, got.labelled, got.human.value) == (5, 5, 0)


def test_labels_that_were_not_drawn_at_random_are_noticed():
    samples, people, judge = data()
    run = evaluated(samples, judge)
    best = np.argsort(-run.scores["recall@4"])[:20]
    picked = [samples[i] for i in best]
    assert any(
        "drawn at random, the corrected" in r
        for r in karat.calibrate(run, labels_of(picked, people, "gold", 20)).remarks()
    )
    fair = karat.calibrate(run, labels_of(samples, people, "gold", 20)).remarks()
    assert "The corrected mean holds if the labelled queries were drawn at random." in fair


def test_metrics_that_no_label_is_about():
    """How much of a text is gold is measured in characters, not judged item by item."""
    samples = [
        {"id": q, "retrieved": [{"text": "one two three"}], "gold": [{"text": "two three"}]} for q in ("a", "b", "c")
    ]
    run = karat.evaluate(samples, "span_recall@1 recall@1", judge="spans")
    rows = [{"query_id": q, "gold": "two three", "label": 0} for q in "abc"]
    got = karat.calibrate(run, rows, metric="span_recall@1")
    assert got.corrected is None
    assert any("does not look at such judgements" in remark for remark in got.remarks())
    assert karat.calibrate(run, rows, metric="recall@1").corrected.human.value == 0


def test_a_saved_run_gives_the_same(tmp_path):
    samples, people, judge = data()
    run = evaluated(samples, judge, failed=("q3",))
    run.save(tmp_path / "judged.parquet")
    for kind in SETTLED:
        labels = labels_of(samples, people, kind, 25)
        saved, given = karat.calibrate(tmp_path / "judged.parquet", labels), karat.calibrate(run, labels)
        assert saved.to_dict() == given.to_dict()


def test_level():
    samples, people, judge = data()
    run, labels = evaluated(samples, judge), labels_of(samples, people, "gold", 25)
    narrow, wide = (karat.calibrate(run, labels, level=level) for level in (0.5, 0.99))
    for part in ("mean", "human", "bias", "judge"):
        a, b = (getattr(one.corrected, part) for one in (narrow, wide))
        assert a.high - a.low < b.high - b.low
        assert a.value == b.value
    assert narrow.agreement.kappa.low > wide.agreement.kappa.low
    assert "50 % interval" in repr(narrow)
    for level in (0, 1, 95, True, "high"):
        with pytest.raises(karat.BadArgument, match="level"):
            karat.calibrate(run, labels, level=level)


def test_bad_arguments():
    samples, people, judge = data()
    run, labels = evaluated(samples, judge), labels_of(samples, people, "gold", 25)
    with pytest.raises(karat.UnknownName, match="recall@5"):
        karat.calibrate(run, labels, metric="recall@5")
    with pytest.raises(karat.BadArgument, match="by its name"):
        karat.calibrate(run, labels, metric=5)
    with pytest.raises(karat.BadArgument, match="wanted a run"):
        karat.calibrate(samples, labels)
    assert karat.calibrate(run, labels, metric="mrr").metric == "rr"


def test_few_queries():
    samples, people, judge = data()
    got = karat.calibrate(evaluated(samples, judge), labels_of(samples, people, "gold", 2))
    assert np.isnan(got.corrected.mean.value)
    assert "No corrected mean: it takes at least 3 queries with a human score." in got.remarks()
    assert "corrected" in repr(got)
