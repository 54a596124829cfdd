"""Every metric that pytrec_eval has, query by query, against pytrec_eval itself."""

from __future__ import annotations

import math

import pytest
import pytrec_eval

import karat
from karat._internal import threads as background
from karat.report.notes import remarks
from karat.samples.rankings import dicts
from support.data import random_results_and_gold
from support.kernels import without_kernel

KS = (1, 3, 5, 10, 20, 100)
CUT = ",".join(map(str, KS))
SAME_NAME = {
    f"recall.{CUT}": ("recall_{k}", "recall@{k}"),
    f"P.{CUT}": ("P_{k}", "precision@{k}"),
    f"success.{CUT}": ("success_{k}", "hit@{k}"),
    f"map_cut.{CUT}": ("map_cut_{k}", "ap@{k}"),
    f"relative_P.{CUT}": ("relative_P_{k}", "recall_capped@{k}"),
    "map": ("map", "ap"),
    "recip_rank": ("recip_rank", "rr"),
    "bpref": ("bpref", "bpref"),
    "Rprec": ("Rprec", "r_precision"),
    "set_recall": ("set_recall", "recall"),
    "set_P": ("set_P", "precision"),
    "set_F": ("set_F", "f1"),
}
GRADED = {f"ndcg_cut.{CUT}": ("ndcg_cut_{k}", "ndcg@{k}"), "ndcg": ("ndcg", "ndcg")}


def pairs(names):
    for theirs, ours in names.values():
        for k in KS if "{k}" in theirs else (0,):
            yield theirs.format(k=k), ours.format(k=k)


def _bearable(run, gold):
    """Leave out what makes pytrec_eval 0.5.11 crash or hang: empty rankings, and only negative grades."""
    return {q: scores for q, scores in run.items() if scores and max(gold[q].values()) >= 0}


def compare(run, gold, names, level):
    """Check every query that both have; where there is no relevant gold we say undefined, they say 0."""
    evaluator = pytrec_eval.RelevanceEvaluator(gold, set(names), relevance_level=level)
    theirs = evaluator.evaluate(_bearable(run, gold))
    ours_of = dict(pairs(names))
    rel = f"(rel={level})" if level > 1 else ""
    ours = {name: name.replace(name.split("@")[0], name.split("@")[0] + rel, 1) for name in ours_of.values()}
    if names is GRADED:
        ours = {name: name for name in ours_of.values()}
    result = karat.evaluate(retrieved=run, gold=gold, metrics=list(ours.values()))
    rows = dict(zip(result.ids, range(len(result)), strict=True))
    checked = 0
    for query, scores in theirs.items():
        least = level if names is not GRADED else 1
        relevant = any(grade >= least for grade in gold[query].values())
        for their_name, our_name in ours_of.items():
            value = result.scores[ours[our_name]][rows[query]]
            if not relevant:
                assert math.isnan(value), (query, our_name)
                assert scores[their_name] == 0
            else:
                assert value == pytest.approx(scores[their_name], abs=1e-9), (query, our_name)
                checked += 1
    return checked


@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("names", [SAME_NAME, GRADED], ids=["binary", "graded"])
@pytest.mark.parametrize("seed", range(8))
def test_equals_pytrec_eval(seed, names, level):
    run, gold = random_results_and_gold(seed)
    assert compare(run, gold, names, level) > 150


@pytest.mark.parametrize("level", [1, 2])
def test_interpolated_precision_to_the_last_digit(level):
    """The names are the aliases of ours; trec_eval 9 rounds the number of gold items at a recall level up."""
    checked = 0
    for seed in range(6):
        run, gold = random_results_and_gold(seed)
        evaluator = pytrec_eval.RelevanceEvaluator(gold, {"iprec_at_recall", "11pt_avg"}, relevance_level=level)
        theirs = evaluator.evaluate(_bearable(run, gold))
        names = [*next(iter(theirs.values()))]
        assert len(names) == 12
        ours = {name: str(karat.parse(name)).replace("iprec", f"iprec(rel={level})") for name in names}
        result = karat.evaluate(retrieved=run, gold=gold, metrics=[*ours.values()])
        for query, scores in theirs.items():
            for name, score in scores.items():
                value = result.scores[ours[name]][result.row(query)]
                assert value == score or (math.isnan(value) and score == 0), (query, name)
                checked += value == score
    assert checked > 1000


def test_the_geometric_mean_is_gm_map():
    run, gold = random_results_and_gold(3)
    theirs = pytrec_eval.RelevanceEvaluator(gold, {"gm_map"}).evaluate(_bearable(run, gold))
    logs = {query: scores["gm_map"] for query, scores in theirs.items()}
    result = karat.evaluate(retrieved=run, gold=gold, metrics="ap")
    rows = [row for row, query in enumerate(result.ids) if query in logs and not math.isnan(result.scores["ap"][row])]
    expected = math.exp(sum(logs[result.ids[row]] for row in rows) / len(rows))
    assert result.take(rows).summary("gm")["ap"].value == pytest.approx(expected, rel=1e-12)


def test_equals_pytrec_eval_where_scores_differ_beyond_single_precision():
    run = {"q": {"a": 1.00000001, "b": 1.0, "c": 0.5}}
    gold = {"q": {"a": 1}}
    assert compare(run, gold, SAME_NAME, 1)
    result = karat.evaluate(retrieved=run, gold=gold, metrics="rr")
    assert result.mean["rr"] == 0.5
    assert "single precision" in remarks(result)[1]


def test_equals_pytrec_eval_on_long_rankings():
    """Long enough for several blocks, deep enough for ties in single precision."""
    run, gold = random_results_and_gold(99, queries=300, depth=3000)
    assert compare(run, gold, SAME_NAME, 1) > 1000


@without_kernel()
def test_the_second_thread_changes_nothing(monkeypatch):
    """The kernel needs no thread that sorts the scores."""
    run, gold = random_results_and_gold(98, queries=300, depth=3000)
    alone = karat.evaluate(retrieved=run, gold=gold, metrics="rr ap ndcg@10,100")
    started = []
    start = background.Background.start
    monkeypatch.setattr(dicts, "_WORTH_A_THREAD", 0)
    monkeypatch.setattr(background.Background, "start", lambda self, *a: started.append(self._pool) or start(self, *a))
    assert karat.evaluate(retrieved=run, gold=gold, metrics="rr ap ndcg@10,100").table.equals(alone.table)
    assert len(started) > 1
    assert None not in started
    run["q200"] = {"d": float("nan")}
    with pytest.raises(karat.InputError, match="q200"):
        karat.evaluate(retrieved=run, gold=gold)


def test_ranked_lists_give_what_the_scores_give():
    run, gold = random_results_and_gold(5)
    lists = {q: sorted(r, key=lambda d, r=r: (r[d], d), reverse=True) for q, r in run.items()}
    metrics = "recall@1,5,20 precision@5 ndcg@3,10 rr ap bpref"
    by_score = karat.evaluate(retrieved=run, gold=gold, metrics=metrics)
    by_list = karat.evaluate(retrieved=lists, gold=gold, metrics=metrics)
    assert by_score.table.equals(by_list.table)
