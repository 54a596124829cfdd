"""The judge `relevance`: grades without gold, and no recall."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from karat.errors import BadArgument, InputError, UnknownName
from karat.metrics import METRICS
from support.scripted import Scripted, framed, script
from support.server import Act, Server

SAMPLES = [
    {"id": "q1", "query": "tram airport", "retrieved": ["nothing", "the tram to the airport", "a tram", "nothing"]},
    {"id": "q2", "query": "museum", "retrieved": ["nothing", "whatever"]},
]
METRICS_WANTED = "precision@2,4 precision(rel=3)@4 ndcg@4 rr hit@1 context_precision judged"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def graded(samples=SAMPLES, metrics=METRICS_WANTED, change=lambda kind, reported: reported, **settings):
    model = Scripted(change)
    judge = karat.Relevance(model, **{"cache": False, **settings}).with_settings(backoff=0.0)
    return karat.evaluate(samples, metrics, judge=judge), model


def test_grades_without_any_gold():
    run, model = graded()
    assert model.kinds() == ["grade", "grade"]
    first = {name: values[0] for name, values in run.scores.items()}
    dcg, best = 3 / np.log2(3) + 2 / 2, 3 + 2 / np.log2(3)
    assert first == pytest.approx({
        "precision@2": 0.5, "precision@4": 0.5, "precision(rel=3)@4": 0.25, "ndcg@4": dcg / best, "rr": 0.5, "hit@1": 0,
        "context_precision": (1 / 2 + 2 / 3) / 2, "judged": 0.75,
    })  # fmt: skip
    assert run.hits("q1")[1] == (2, "the tram to the airport", 3.0, "grade 3")


def test_nothing_relevant_is_0_and_not_undefined():
    """It would leave the mean, which would rise."""
    run, _ = graded()
    assert {name: values[1] for name, values in run.scores.items() if name != "judged"} == dict.fromkeys(
        [name for name in run.scores if name != "judged"], 0.0
    )
    assert run.mean["rr"] == 0.25
    assert sum(run.undefined.values()) == 0
    assert run.take([1]).mean["rr"] == 0
    nothing, model = graded([{"id": "q0", "query": "x", "retrieved": []}, SAMPLES[0]], "rr precision@2")
    assert nothing.scores["rr"].tolist() == [0, 0.5]
    assert len(model.sent) == 1


@pytest.mark.parametrize("metric", ["recall@5", "recall_all", "ap", "f1@3", "bpref", "context_recall", "span_recall"])
def test_metrics_that_need_complete_gold_are_refused_before_any_call(metric):
    model = Scripted()
    with pytest.raises(BadArgument, match=f"{metric.partition('@')[0]} needs the complete gold"):
        karat.evaluate(SAMPLES, f"rr {metric}", judge=karat.Relevance(model, cache=False))
    assert model.sent == []


def test_every_allowed_metric_is_independent_of_unknown_gold():
    """Adding an item to the gold that nobody retrieved must not change what is allowed."""
    known = {"retrieved": [["a", "b", "c"]], "gold": [{"a": 1, "c": 2}]}
    more = {"retrieved": [["a", "b", "c"]], "gold": [{"a": 1, "c": 2, "unseen": 1}]}
    allowed = [name for name, one in METRICS.items() if not (one.needs_all_gold or one.of_unanswerable)]
    for name in allowed:
        # The ideal ranking of nDCG has only retrieved items, and the run says so.
        if name != "ndcg" and not name.startswith("chunk_"):
            assert karat.evaluate(**known, metrics=name).mean == karat.evaluate(**more, metrics=name).mean, name


def test_several_contexts_in_a_call():
    texts = [f"text {i}" for i in range(23)]
    run, model = graded([{"query": "text", "retrieved": texts}], "precision@23")
    assert [sum("passage" in label for label in framed(m[-1]["content"])) for m, _ in model.sent] == [10, 10, 3]
    assert run.mean["precision@23"] == 1


def test_a_long_text_is_graded_by_its_best_part():
    long = "Nothing is said here at all. " * 400
    run, model = graded(
        [{"query": "tram airport", "retrieved": [f"{long} The tram to the airport. {long}"]}], "rr", per_call=1000
    )
    assert len(model.sent) > 5
    assert run.hits(1)[0].grade == 3


def test_against_the_answer():
    rows = [{"query": "where?", "answer": "airport", "retrieved": ["the airport", "x"]}]
    run, model = graded(rows, "precision@1", to="answer")
    assert run.mean["precision@1"] == 1
    assert framed(model.sent[0][0][-1]["content"])["question"] == "where?"
    assert run.provenance.judge == "relevance(scripted, to=answer)"


def test_what_cannot_be_graded():
    run, _ = graded([SAMPLES[0], {"id": "q9", "query": " ", "retrieved": ["x"]}], "rr")
    assert run.all_hits.failed == {1: "it has no query"}
    assert np.isnan(run.scores["rr"][1])
    with pytest.raises(InputError, match=r'no query has one, such as "1"'):
        graded([{"retrieved": ["x"]}], "rr")
    with pytest.raises(BadArgument, match="name it"):
        karat.Relevance(None)
    with pytest.raises(UnknownName, match="Did you mean query"):
        karat.Relevance("m", to="querry")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"grade": 4}, "grade"),
        ({"grade": 2.5}, "grade"),
        ({"passage": 9}, "there is no passage 9"),
        ({"passage": 2}, "passage 2 is judged twice"),
    ],
)
def test_a_broken_answer_is_missing(change, cause):
    def spoil(_, reported):
        reported["passages"][0] |= change
        return reported

    run, _ = graded([SAMPLES[0]], "rr", spoil, concurrency=1)
    assert cause in run.all_hits.failed[0]
    assert np.isnan(run.scores["rr"][0])


def test_repeats_take_the_majority():
    count = iter(range(100))

    def fickle(_, reported):
        if next(count) == 1:
            for one in reported["passages"]:
                one["grade"] = 3
        return reported

    run, model = graded([SAMPLES[0]], "precision@4", fickle, repeats=3, concurrency=1)
    assert len(model.sent) == 3
    assert run.mean["precision@4"] == 0.5
    assert "Krippendorff" in str(run)


def test_over_http_a_failure_affects_no_other_query():
    with Server(lambda call: Act(status=400, content="no") if "museum" in call.text else script(call)) as server:
        run = karat.evaluate(SAMPLES, "rr", judge=f"relevance(m, base_url={server.url})")
    assert list(run.all_hits.failed) == [1]
    assert run.mean["rr"] == 0.5


def test_a_run_is_saved_and_read(tmp_path):
    run, _ = graded()
    run.save(tmp_path / "run.parquet")
    again = karat.load(tmp_path / "run.parquet")
    assert again.mean == run.mean
    assert again.hits("q1") == run.hits("q1")


def test_by_words():
    """At least half of the content words of the query: 1; three quarters: 2; all: 3."""
    rows = [
        {
            "id": "q1",
            "query": "How many trams go to the airport?",
            "retrieved": ["a tram", "an airport", "Airport tram", "b"],
        },
        {"id": "q2", "query": "old red brick tower", "retrieved": ["towers of red brick", "red"]},
        {"id": "q3", "query": " ", "retrieved": ["x"]},
        {"id": "q4", "query": "how is it", "retrieved": ["It is so.", "x"]},
    ]
    run = karat.evaluate(rows, "precision precision(rel=2) rr", judge="relevance(lexical)")
    assert [[hit.grade for hit in run.hits(row["id"])] for row in rows] == [[1, 1, 3, 0], [2, 0], [], [1, 0]]
    assert run.scores["precision"].tolist()[:2] == [0.75, 0.5]
    assert run.all_hits.failed == {2: "it has no query"}
    assert "relevance(lexical) is a heuristic: it compares words" in str(run)
    answers = [{"query": "x", "answer": "red bricks", "retrieved": ["a red brick"]}]
    assert karat.evaluate(answers, "rr", judge="relevance(lexical, to=answer)").mean["rr"] == 1
    with pytest.raises(BadArgument, match="calls no model"):
        karat.Relevance("lexical", repeats=3)
