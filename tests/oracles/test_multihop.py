"""BrowseComp-Plus, which is trec_eval for retrievers and a set of citations for agents; texts in MultiHop-RAG."""

from __future__ import annotations

import math
import random

import pytest

import karat
from oracles import written_out
from oracles.cases import KS
from oracles.test_peers import asked, given, queries

CITATIONS = "citation_precision citation_recall"


@pytest.mark.parametrize("column", [f"{metric}@{k}" for metric in ("recall", "ndcg") for k in KS])
def test_retrievers_are_scored_as_by_trec_eval(column):
    """With the binary relevance of its qrels, of which every query has some."""
    cases = queries("trec_eval")
    run = karat.evaluate(
        retrieved={case.id: given(case) for case in cases if case.scores is not None},
        gold={case.id: case.gold for case in cases if case.scores is not None},
        metrics=column,
        convention="browsecomp-plus",
    )
    ours = dict(zip(run.ids, run.scores[column], strict=True))
    checked = 0
    for case, theirs in zip(cases, asked("trec_eval")[column], strict=True):
        if case.scores is not None and case.relevant:
            assert ours[case.id] == pytest.approx(theirs, abs=1e-9)
            checked += 1
    assert checked > 300


def test_a_query_that_is_missing_from_the_results_scores_zero():
    """As with `trec_eval -c`."""
    results, gold = {"q1": {"a": 1.0}}, {"q1": ["a"], "q2": ["b"]}
    assert karat.evaluate(retrieved=results, gold=gold, metrics="recall", convention="trec_eval").mean["recall"] == 1
    run = karat.evaluate(retrieved=results, gold=gold, metrics="recall", convention="browsecomp-plus")
    assert run.mean["recall"] == 0.5


@pytest.fixture(scope="module")
def answers():
    rng = random.Random(5)
    docs = [f"d{number}" for number in range(20)]
    rows = []
    for number in range(400):
        row = {"id": number, "retrieved": rng.sample(docs, 5), "gold": rng.sample(docs, rng.randint(1, 6))}
        if number % 10:
            row["cited"] = rng.choices(docs, k=rng.choice((0, 1, 2, 5)))
        rows.append(row)
    return rows


@pytest.mark.parametrize("convention", ["standard", "browsecomp-plus"])
def test_citations_equal_the_definition(answers, convention):
    run = karat.evaluate(answers, CITATIONS, convention=convention)
    for i, row in enumerate(answers):
        ours = [run.scores[name][i] for name in CITATIONS.split()]
        if "cited" not in row or (convention != "standard" and not row["cited"]):
            assert all(map(math.isnan, ours))
        else:
            assert ours == pytest.approx(written_out.citations(set(row["gold"]), row["cited"]))


def test_the_mean_of_browsecomp_plus_leaves_out_answers_without_citations(answers):
    citing = [written_out.citations(set(row["gold"]), row["cited"]) for row in answers if row.get("cited")]
    run = karat.evaluate(answers, CITATIONS, convention="browsecomp-plus")
    assert [*run.mean.values()] == pytest.approx([sum(own) / len(citing) for own in zip(*citing, strict=True)])


def test_map_of_multihop_rag_on_texts():
    """Rank 1 has two facts, rank 3 repeats one and has a third: (2/1 + 1/3) / 4."""
    facts = ["The tide rose at six.", "Gulls left at dawn.", "The harbour froze.", "No ship came."]
    chunks = [f"{facts[0]} {facts[1]}", "Nothing here.", f"{facts[1]} {facts[2]}"]
    judge, name = "contains(direction=gold_in_chunk)", "multihop-rag"
    run = karat.evaluate(retrieved=[chunks], gold=[facts], metrics="ap@10 rr@10 hit@4", judge=judge, convention=name)
    assert run.mean["ap@10"] == pytest.approx((2 / 1 + 1 / 3) / 4)
    assert run.mean["rr@10"] == run.mean["hit@4"] == 1
    usual = karat.evaluate(retrieved=[chunks], gold=[facts], metrics="ap@10", judge=judge)
    assert usual.mean["ap@10"] == pytest.approx((1 + 2 / 2 + 3 / 3) / 4)


def test_map_of_multihop_rag_may_exceed_one(tmp_path):
    """One chunk with both facts, and room for one: 2/1, divided by one. A run file may say so."""
    given = {"retrieved": [["a b"]], "gold": [["a", "b"]], "judge": "contains"}
    run = karat.evaluate(metrics="ap@1", convention="multihop-rag", **given)
    assert run.mean["ap@1"] == 2
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").mean["ap@1"] == 2
