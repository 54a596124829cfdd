"""Gold with holes: unjudged items removed, bounds for whatever they are, and what each screen says of them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import karat
from karat.cli import main
from karat.conventions import STANDARD
from karat.metrics import METRICS, parse
from karat.run import bounds
from karat.run.bounds import QueryBounds, query_bounds
from support.strategies import hits_of
from support.twins import Case, twin_score

HOLES = [
    {"id": "q1", "retrieved": ["a", "x", "b"], "gold": {"a": 1, "b": 0, "c": 1}},
    {"id": "q2", "retrieved": ["x", "d", "y"], "gold": {"d": 1, "e": 0}},
]
"""Unjudged: x in both, y."""
CLAIMS = [{"retrieved": ["a"], "answer": "a"}]
LABELLED = [
    name
    for name, d in METRICS.items()
    if not (d.of_steps or d.of_unanswerable or "cited" in d.sizes or name.startswith("chunk_"))
]


def test_removed_by_hand():
    run = karat.evaluate(HOLES, "precision@2 rr judged@2", convention="standard(unjudged=removed)")
    assert run.scores["precision@2"].tolist() == [0.5, 0.5]  # a b; d
    assert run.scores["rr"].tolist() == [1.0, 1.0]
    assert run.scores["judged@2"].tolist() == [0.5, 0.5]  # of the whole ranking
    assert [hit.rank for hit in run.hits("q2")] == [2]  # hits keep their ranks


def test_copies_and_pooled_items_when_unjudged_are_removed():
    rows = [{"retrieved": ["p", "a", "x", "a", "b"], "gold": {"a": 1, "b": 1, "p": -1}}]
    run = karat.evaluate(rows, "precision@2 ap", convention="standard(unjudged=removed)")
    assert run.mean["precision@2"] == 0.5  # a, and a copy of it
    assert run.mean["ap"] == pytest.approx((1 + 2 / 3) / 2)


def test_token_budgets_and_sets_when_unjudged_are_removed():
    rows = [
        {
            "retrieved": [{"id": "x", "text": "one two"}, {"id": "a", "text": "three four"}],
            "gold": [{"id": "a", "grade": 1}, {"id": "z", "grade": 0}],
        }
    ]
    assert karat.evaluate(rows, "recall@2t", judge="ids").mean["recall@2t"] == 0.0
    removed = karat.evaluate(rows, "recall@2t set_em", judge="ids", convention="standard(unjudged=removed)")
    assert removed.mean == {"recall@2t": 1.0, "set_em": 1.0}


def test_scores_are_the_same_however_they_are_computed(tmp_path):
    c = "trec_eval(unjudged=removed)"
    whole = karat.evaluate(HOLES, "ap ndcg@2 judged@2", convention=c)
    whole.save(tmp_path / "whole.parquet")
    parts = [karat.evaluate([row], "ap ndcg@2 judged@2", convention=c) for row in HOLES]
    for other in (karat.load(tmp_path / "whole.parquet"), karat.merge(parts)):
        assert other.convention.unjudged == "removed"
        for name, values in whole.scores.items():
            assert other.scores[name].tolist() == values.tolist()
        assert other.bounds() == whole.bounds()
        assert other.pooled == whole.pooled


def test_only_relevant_gold_is_warned_of():
    rows = [{"retrieved": ["x", "a"], "gold": ["a"]}]
    run = karat.evaluate(rows, "rr", convention="standard(unjudged=removed)")
    assert run.mean["rr"] == 1.0
    assert "no judged irrelevant items" in " ".join(run.remarks())


def test_what_cannot_be_removed_is_refused():
    with pytest.raises(karat.BadArgument, match="judges every retrieved item"):
        karat.evaluate(CLAIMS, "hit@1", judge="claims(lexical)", convention="standard(unjudged=removed)")
    rows = [{"retrieved": [{"text": "a b c"}], "gold": [{"text": "a b"}]}]
    with pytest.raises(karat.BadArgument, match="count text, not items"):
        karat.evaluate(rows, "span_recall", judge="spans", convention="standard(unjudged=removed)")


def test_bounds_by_hand():
    run = karat.evaluate(HOLES, "precision@2 recall@2 rr")
    assert run.mean == {"precision@2": 0.5, "recall@2": 0.75, "rr": 0.75}
    ends = run.bounds()
    assert ends["precision@2"] == (0.5, 1.0)
    assert ends["recall@2"] == pytest.approx((0.75, (2 / 3 + 1) / 2))  # x makes q1's gold three items
    assert ends["rr"] == (0.75, 1.0)
    own = run.query_bounds()["recall@2"]
    assert own.low.tolist() == [0.5, 1.0]
    assert own.high.tolist() == pytest.approx([2 / 3, 1.0])
    assert run.bounds(unjudged=False)["precision@2"] == (0.5, 0.5)


def test_a_relevant_item_can_lower_a_normalised_metric():
    """All irrelevant and all relevant are no bounds: nDCG is 1 with either, and lower between them."""
    run = karat.evaluate([{"retrieved": ["a", "x", "y"], "gold": {"a": 1, "z": 0}}], "ndcg")
    low, high = run.bounds()["ndcg"]
    assert low == pytest.approx((1 + 1 / 2) / (1 + 1 / np.log2(3)))  # y relevant, x not
    assert high == 1.0


def test_rbp_bounds_differ_by_the_residual_of_the_ranks():
    """trec_eval's rbp_resid is this plus p^n, the weight of the ranks below the ranking."""
    run = karat.evaluate(HOLES, "rbp(p=0.5)")
    low, high = run.query_bounds()["rbp(p=0.5)"][:2]
    np.testing.assert_allclose(high - low, [0.5 * 0.5, 0.5 * (1 + 0.25)])


def test_queries_that_become_defined_are_in_the_mean_only_where_they_help():
    rows = [*HOLES, {"id": "q3", "retrieved": ["x", "y"], "gold": {"e": 0}}]
    run = karat.evaluate(rows, "precision@2")
    assert run.undefined == {"precision@2": 1}
    assert run.bounds()["precision@2"] == (0.5, 1.0)
    ends = QueryBounds(np.array([0.5, 0.2, 0.9]), np.array([0.5, 0.4, 0.9]), np.array([False, True, True]), exact=True)
    assert ends.of_mean() == pytest.approx((0.35, 0.7))
    assert ends.with_failed(np.array([False, False, True])).of_mean() == pytest.approx((0.7 / 3, 0.75))


def cases(rng, c, count):
    """Queries of few items, of which some match a judged gold item, a pooled one, two of them, or none."""
    for _ in range(count):
        grades = [rng.choice([-1.0, 0.0, 1.0, 2.0]) for _ in range(rng.randint(0, 4))]
        satisfies = {item: {item} for item in range(len(grades))}
        if len(grades) > 1:
            satisfies[rng.randrange(6)] = set(rng.sample(range(len(grades)), 2))
        yield Case(rng.sample(range(6), rng.randint(0, 6)), satisfies, grades, c)


def every_labelling(q, k, top):
    """The query with every choice of labels for the unjudged items within k."""
    judged = {item for item, own in q.satisfies.items() if any(q.grades[gold] >= 0 for gold in own)}
    holes = [item for item in q.ranking[:k] if item not in judged]
    for labels in product([0.0, top], repeat=len(holes)):
        own = {item: {len(q.grades) + number} for number, item in enumerate(holes)}
        yield replace(q, grades=[*q.grades, *labels], satisfies={**q.satisfies, **own})


CHOICES = [{}, {"unjudged": "removed"}, {"gain": "exponential", "ap_over": "found"}]
LAWS = [(name, choice) for name in LABELLED for choice in CHOICES if not (name.startswith("span_") and choice)]


@pytest.mark.parametrize(("name", "choice"), LAWS, ids=str)
def test_bounds_are_the_extremes_of_all_labels(name, choice):
    """Law: no labels exceed the bounds, and some reach each of them."""
    c = replace(STANDARD, name="test", **choice)
    rng = random.Random(f"{name} {choice}")
    queries = list(cases(rng, c, 12))
    hits, top = hits_of(queries), max([1.0, *(grade for q in queries for grade in q.grades)])
    for k in (2, None) if METRICS[name].cutoff and not METRICS[name].at_recall else (None,):
        metric = parse(name if k is None else f"{name}@{k}")
        scores = metric.scores(hits, c)
        ends = query_bounds(hits, [metric], c, scores)[str(metric)]
        assert ends.exact
        for row, q in enumerate(queries):
            if METRICS[name].of_aspects and not q.size():
                assert np.isnan(ends.high[row])  # the aspects of the query are not known
                continue
            if name.startswith("span_"):
                assert_spans_within(q, k, scores[str(metric)][row], ends.low[row], ends.high[row])
                continue
            values = [twin_score(name, k, own) for own in every_labelling(q, k, top)]
            values = [value for value in (*values, scores[str(metric)][row]) if value == value]
            wanted = (min(values), max(values)) if values else (np.nan, np.nan)
            np.testing.assert_allclose((ends.low[row], ends.high[row]), wanted, atol=1e-9, err_msg=str((k, q)))


def assert_spans_within(q, k, score, low, high):
    """More gold text raises every span metric: the score is the lowest, if the query has gold."""
    if q.size():
        assert low == score <= high <= 1
    else:
        assert np.isnan(score)


def test_custom_metrics_have_bounds(monkeypatch):
    monkeypatch.setitem(METRICS, "missing_share", None)  # and not registered after the test

    @karat.metric
    def missing_share(hits, k, c):
        """Share of the gold items that are not in the top k: less is better."""
        return 1 - hits.found(k, c) / np.maximum(hits.gold_count(), 1)

    run = karat.evaluate(HOLES, "missing_share@2")
    assert run.bounds()["missing_share@2"] == pytest.approx(((1 / 3 + 0) / 2, 0.25))


def test_bounds_with_token_budgets_and_averaged_ties():
    rows = [{"retrieved": [{"id": i, "text": "w w"} for i in "xab"], "gold": [{"id": "a"}, {"id": "b", "grade": 0}]}]
    run = karat.evaluate(rows, "precision@4t recall@2t", judge="ids")
    assert run.bounds() == {"precision@4t": (0.5, 1.0), "recall@2t": (0.0, 0.5)}
    tied = karat.evaluate(
        retrieved={"q": {"x": 1.0, "a": 1.0}}, gold={"q": {"a": 1, "b": 0}}, metrics="ndcg@1", convention="sklearn"
    )
    assert tied.bounds()["ndcg@1"] == (0.5, 1.0)


def test_too_deep_for_exact_bounds_is_wide_not_wrong():
    run = karat.evaluate(HOLES, "ap precision@2")
    ends = query_bounds(run.all_hits, run.metrics, run.convention, run.scores, effort=20)
    assert not ends["ap"].exact
    assert (ends["ap"].low.tolist(), ends["ap"].high.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_bounds_asked_in_vain():
    run = karat.evaluate([{"retrieved": ["a"], "gold": {"a": 1, "b": 0}}], "rr")
    assert run.bounds()["rr"] == (1.0, 1.0)
    with pytest.raises(karat.BadArgument, match="nothing to bound"):
        run.bounds(unjudged=True)


def test_gold_of_only_relevant_items_has_bounds_on_request():
    run = karat.evaluate([{"retrieved": ["x", "a"], "gold": ["a"]}], "rr")
    assert run.bounds()["rr"] == (0.5, 0.5)
    assert run.bounds(unjudged=True)["rr"] == (0.5, 1.0)
    assert run.judged_items is None


def test_judged_is_left_out_of_the_bounds(tmp_path, capsys):
    path = tmp_path / "run.parquet"
    karat.evaluate(HOLES, "precision@2 judged@2").save(path)
    main(["show", str(path), "--bounds"])
    shown = capsys.readouterr().out.partition("lowest  highest")[2]
    assert "precision@2" in shown
    assert "judged@2" not in shown
    main(["show", str(path), "--bounds", "--format", "csv"])
    assert capsys.readouterr().out.splitlines()[0] == "query_id,precision@2,judged@2,precision@2 low,precision@2 high"
    main(["compare", str(path), str(path), "--bounds"])
    shown = capsys.readouterr().out.partition("whatever the labels")[2].partition("Bounds")[0]
    assert "precision@2" in shown
    assert "judged@2" not in shown


@pytest.mark.parametrize(
    ("retrieved", "gold", "end"),
    [
        (["x", "y"], {"z": 0}, "recall@2 is defined only if one of them is relevant."),
        (["x", "z"], {"z": 0}, "recall@2 is defined only if it is relevant."),
        (["x", "a"], {"a": 1, "z": 0}, "if judged, recall@2 would still be 1.000."),
    ],
)  # fmt: skip
def test_bounds_that_say_little_have_a_sentence_of_their_own(retrieved, gold, end):
    remarks = karat.evaluate([{"retrieved": retrieved, "gold": gold}], "recall@2").remarks()
    assert any(line.endswith(f"unjudged: {end}") for line in remarks)


def test_steps_and_citations_have_their_limits():
    rows = [{"retrieved": ["a", "x"], "gold": {"a": 1, "b": 0}, "cited": ["a", "x"]}]
    run = karat.evaluate(rows, "citation_precision recall")
    assert not run.query_bounds()["citation_precision"].exact
    assert run.bounds()["citation_precision"] == (0.0, 1.0)
    assert run.bounds()["recall"] == (1.0, 1.0)


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "holes.jsonl", tmp_path / "full.jsonl"]
    full = [{**row, "gold": {**row["gold"], "x": 0, "y": 1}} for row in HOLES]
    for path, rows in zip(paths, (HOLES, full), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return paths


def test_screens_show_the_judged_share_and_the_bounds(files, capsys, tmp_path):
    run = tmp_path / "run.parquet"
    assert main(["eval", str(files[0]), "precision@2", "rr", "-o", str(run)]) == 0
    shown = capsys.readouterr().out
    assert "judged@2 0.500" in shown
    assert "2 of the 4 items in the top 2 are unjudged: if judged, precision@2 would be between 0.500 and" in shown
    assert main(["show", str(run), "--bounds"]) == 0
    assert "lowest  highest" in capsys.readouterr().out
    assert main(["show", str(run), "--bounds", "--format", "csv"]) == 0
    assert "rr low,rr high" in capsys.readouterr().out
    assert main(["show", str(run), "--format", "markdown", "--bounds"]) == 0
    assert "| `rr` | 0.750 | 0.750 | 1.000 |" in capsys.readouterr().out
    assert main(["show", str(run), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["judged"] == {"judged@2": 0.5, "unjudged": [2, 4]}
    assert found["bounds"] == {"precision@2": [0.5, 1.0]}
    assert main(["gate", str(run), "rr >= 0.5"]) == 0
    assert "are unjudged" in capsys.readouterr().out
    assert main(["diagnose", str(run), "--k", "2"]) in (0, 1)
    assert "judge them before you change the retriever" in " ".join(capsys.readouterr().out.split())
    karat.load(run).report(tmp_path / "run.html")
    assert "judged@2 0.500" in (tmp_path / "run.html").read_text()


def test_bounds_that_would_take_long_are_left_to_the_command_that_has_them(monkeypatch):
    monkeypatch.setattr(bounds, "QUICK", 0)
    said = karat.gate(karat.evaluate(HOLES, "precision@2"), "precision@2 >= 0").remarks()
    assert "2 of the 4 items in the top 2 are unjudged: karat show RUN --bounds shows the bounds of the means." in said


def test_bounds_asked_in_vain_on_the_command_line(files, capsys):
    assert main(["eval", str(files[1]), "rr", "--bounds"]) == 2
    assert "nothing to bound" in capsys.readouterr().err
