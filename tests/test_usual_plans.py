"""Plans that are remembered, and the short ways of small inputs: no evaluation sees another, and no digit changes."""

from __future__ import annotations

import pickle
from random import Random

import numpy as np
import pytest

import karat
from karat.judges.auto import SHARED
from karat.metrics.registry import METRICS
from karat.plan import Plan
from karat.samples import read_samples

METRIC_NAMES = "recall@1,5,10,3 precision@5,2 ndcg@3,10,100 rr rr@2 ap ap@2,5 f1@3 iprec@0.5,0.1"


def usual(metrics="recall@5"):
    return Plan.of(metrics, "auto", "standard")


def test_a_usual_plan_is_made_once_and_others_are_not():
    assert usual() is usual()
    assert Plan.of("recall@5", "ids", "standard") is not Plan.of("recall@5", "ids", "standard")
    assert usual() is not Plan.of("recall@5", "auto", "standard", order="score")


def test_a_judge_that_is_chosen_is_shared_only_without_state():
    samples = read_samples(retrieved=[["a"]], gold=[["a"]])
    fitted = usual().with_judge_for(samples)
    assert fitted is usual().with_judge_for(samples)
    assert fitted.judge in SHARED
    ranges = [[{"doc": "a", "start": 0, "end": 5}]]
    samples = read_samples(retrieved=ranges, gold=ranges)
    assert usual().with_judge_for(samples).judge is not usual().with_judge_for(samples).judge


def test_a_metric_that_is_registered_again_is_used():
    def register(value):
        def constant(hits, k, c):
            return np.full(hits.queries, value)

        karat.metric(constant)

    try:
        for value in (0.25, 0.75):
            register(value)
            assert karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="constant").mean["constant"] == value
    finally:
        del METRICS["constant"]


def test_runs_share_no_settings_that_could_be_changed():
    first, second = (karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="recall@5") for _ in range(2))
    assert first.provenance == second.provenance
    first.provenance.judge_settings["at"] = "changed"
    third = karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="recall@5")
    assert second.provenance.judge_settings == third.provenance.judge_settings == {"at": "item"}


def test_a_plan_that_was_used_can_be_sent_to_another_process():
    samples = read_samples(retrieved=[["a", "b"]], gold=[["b"]])
    plan = usual(METRIC_NAMES).with_judge_for(samples)
    scores = plan.evaluate_all(samples).scores
    sent = pickle.loads(pickle.dumps(plan))
    assert {name: own.tolist() for name, own in sent.evaluate(samples).scores.items()} == {
        name: own.tolist() for name, own in scores.items()
    }


@pytest.mark.parametrize("scored", [True, False])
def test_many_queries_score_as_few_do(scored):
    """From a thousand hits on, other ways of counting are faster."""
    random = Random(3)
    retrieved, gold = {}, {}
    for query in range(400):
        items = [f"d{number}" for number in random.sample(range(60), 25)]
        some = [*random.sample(items, 6), "missing"]
        gold[f"q{query}"] = {item: random.randint(0, 3) for item in some}
        retrieved[f"q{query}"] = {item: random.random() for item in items} if scored else items
    whole = karat.evaluate(retrieved=retrieved, gold=gold, metrics=METRIC_NAMES)
    assert len(whole.all_hits) > 2000
    for query in range(0, 400, 10):
        names = [f"q{number}" for number in range(query, query + 10)]
        part = karat.evaluate(
            retrieved={name: retrieved[name] for name in names},
            gold={name: gold[name] for name in names},
            metrics=METRIC_NAMES,
        )
        for name, scores in part.scores.items():
            assert np.array_equal(scores, whole.scores[name][query : query + 10], equal_nan=True)
