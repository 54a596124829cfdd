"""Nuggets: vital and okay facts, supported wholly or in part; as nuggetizer counts them."""

from __future__ import annotations

from math import isnan

import pytest

import karat
from karat.errors import BadArgument
from karat.judges.prompts import ATTRIBUTE, attribute
from karat.judges.support import NONE, Support, unite, vote
from karat.llm import BadAnswer
from support.scripted import Scripted, script
from support.server import Server

METRICS = "nugget_vital nugget_all nugget_vital_strict nugget_all_strict"
OF_NUGGETIZER = {
    "": (0.0, 0.0, 0.0, 0.0),
    "o0o0V1V0V2V1": (0.5, 1 / 3, 0.25, 1 / 6),
    "V1V0V2V1o2": (0.5, 0.6, 0.25, 0.4),
    "o2o2o2o0o0": (0.0, 0.6, 0.0, 0.6),
    "V2V2V2V2o1": (1.0, 0.9, 1.0, 0.8),
    "V2": (1.0, 1.0, 1.0, 1.0),
    "o1": (0.0, 0.5, 0.0, 0.0),
}
"""Results of `calculate_nugget_scores` of nuggetizer 0.0.6: vital, all, strict vital, strict all. Each nugget is vital
(V) or okay (o), and supported (2), partly supported (1) or not (0)."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def sample(code):
    """A query with these nuggets, each of two words, and a passage with both, one or none of them."""
    nuggets = [(code[i], int(code[i + 1])) for i in range(0, len(code), 2)]
    return {
        "id": code or "none",
        "query": "What is known?",
        "retrieved": [
            {"text": " ".join([f"first{n}", f"second{n}"][:has]) or f"nothing{n}"} for n, (_, has) in enumerate(nuggets)
        ],
        "gold": [
            {"text": f"first{n} second{n}", "grade": 2 if kind == "V" else 1} for n, (kind, _) in enumerate(nuggets)
        ],
    }


def judged(rows, metrics=METRICS, convention="standard", change=lambda kind, reported: reported, **settings):
    model = Scripted(change)
    judge = karat.Claims(model, of="gold", partial=True, cache=False, **settings).with_settings(backoff=0.0)
    return karat.evaluate(rows, metrics, judge=judge, convention=convention)


def test_equals_nuggetizer():
    run = judged([sample(code) for code in OF_NUGGETIZER], convention="standard(empty_gold=0)")
    for row, wanted in enumerate(OF_NUGGETIZER.values()):
        assert [values[row] for values in run.scores.values()] == pytest.approx(wanted), run.ids[row]


def test_without_vital_nuggets_the_vital_score_is_undefined():
    """nuggetizer scores 0, and lowers its means by it."""
    run = judged([sample("o2"), sample("V2")])
    assert isnan(run.scores["nugget_vital"][0])
    assert run.undefined["nugget_vital_strict"] == 1
    assert run.mean == dict.fromkeys(run.mean, 1.0)


def test_partial_support_counts_half_and_finds_nothing():
    """The second passage completes what the first holds a part of; a nugget never held wholly stays at a half."""
    row = {
        "retrieved": [{"text": "first0"}, {"text": "first0 second0"}, {"text": "second1"}],
        "gold": [{"text": "first0 second0", "grade": 2}, {"text": "first1 second1", "grade": 1}],
    }
    run = judged([row], "nugget_all@1,2,3 nugget_all_strict@3 recall@1,2,3 precision@1 hit@1")
    assert run.mean == {
        "nugget_all@1": 0.25, "nugget_all@2": 0.5, "nugget_all@3": 0.75, "nugget_all_strict@3": 0.5,
        "recall@1": 0, "recall@2": 0.5, "recall@3": 0.5, "precision@1": 1, "hit@1": 0,
    }  # fmt: skip
    assert [item.rank for item in run.gold(1)] == [2, None]


def test_over_http_from_the_cache_and_in_a_file(tmp_path):
    rows = [sample(code) for code in list(OF_NUGGETIZER)[1:4]]
    with Server(script) as server:
        judge = f"claims(m, of=gold, partial=True, base_url={server.url})"
        run = karat.evaluate(rows, METRICS, judge=judge)
        assert run.provenance.judge == judge
        asked = server.count
        assert karat.evaluate(rows, METRICS, judge=judge).table.equals(run.table)
        assert server.count == asked
        whole = karat.evaluate(rows, METRICS, judge=f"claims(m, of=gold, base_url={server.url})")
        assert server.count == 2 * asked, "another prompt has other answers"
    assert whole.mean["nugget_all"] == run.mean["nugget_all_strict"] < run.mean["nugget_all"]
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").table.equals(run.table)
    assert karat.merge([run.take([1]), run.take([0, 2])]).mean == pytest.approx(run.mean)


def test_long_inputs_are_split_and_united():
    code = "V1V0V2V1o2" * 4
    whole, split = judged([sample(code)]), judged([sample(code)], per_call=500)
    assert split.mean == pytest.approx(whole.mean)
    assert whole.mean["nugget_all"] == pytest.approx(0.6)


def test_other_judges():
    gold = [{"id": "a", "grade": 2}, {"id": "b", "grade": 1}, {"id": "c", "grade": 0}]
    assert karat.score("nugget_all@1", ["a"], gold) == 0.5
    assert karat.score("strict_vital@1", ["a"], gold) == karat.score("vital_score@1", ["a"], gold) == 1
    quote = [{"text": "the sky is blue and wide", "grade": 2}]
    halves = [{"text": "the sky is"}, {"text": "blue and wide"}]
    scores = karat.evaluate(
        [{"retrieved": halves, "gold": quote}], "nugget_vital@1,2 nugget_vital_strict@1", judge="spans"
    )
    assert list(scores.mean.values()) == [0.5, 1, 0], "a part of a quote is partial support"


# ---- what the model says --------------------------------------------------------------------------------------------


def answer(**change):
    return {"claims": [{"claim": 1, "verdict": 0, "passages": [], "together": 0, "parts": [], "reason": "r", **change}]}


def read(**change):
    request = attribute(None, ["claim"], ["one", "two"], partial=True)
    (support,) = request.check(answer(**change))
    return support


def test_answers():
    assert read() == Support(why="r")
    assert read(verdict=1, parts=[2]) == Support(why="r", partly=frozenset({1}))
    assert read(verdict=2, passages=[1], parts=[2]) == Support(frozenset({0}), (), "r", frozenset({1}))
    assert read(verdict=2, passages=[1], parts=[1]).partly == frozenset()
    for wrong in ({"verdict": 1}, {"parts": [1]}, {"verdict": 2, "parts": [1]}, {"verdict": 1, "parts": [3]}):
        with pytest.raises(BadAnswer):
            read(**wrong)


def test_the_usual_question_stays_the_same():
    """Answers in the cache stay valid, and runs of older versions comparable."""
    request = attribute(None, ["claim"], ["one"])
    assert (request.schema, ATTRIBUTE.version) == (ATTRIBUTE.schema, "claims-attribute-1")
    assert "parts" not in str(request.schema)
    assert karat.Claims("m", base_url="http://x").settings == {
        "model": "m", "of": "auto", "split": "model", "threshold": karat.Claims().threshold, "base_url": "http://x",
    }  # fmt: skip


def test_votes():
    full, part, other = Support(frozenset({0})), Support(partly=frozenset({0})), Support(partly=frozenset({1}))
    assert vote([full, full, part]) == full
    assert vote([full, part, part]).partly == {0}
    assert vote([part, part, NONE]).partly == {0}
    assert vote([part, other, NONE]).partly == {0, 1}
    assert vote([full, NONE, NONE]) == vote([part, NONE]) == NONE
    assert vote([full, part]).partly == {0}, "half of the judgements are no majority for full support"
    assert unite([part, NONE, Support(frozenset({1}))]) == Support(frozenset({1}), (), "", frozenset({0}))
    assert unite([NONE]) == NONE
    assert Support(frozenset({0}), partly=frozenset({1})).moved([4, 2]) == Support(
        frozenset({4}), partly=frozenset({2})
    )


@pytest.mark.parametrize("judge", ["claims(lexical, partial=true)", "claims(m, base_url=http://x, partial=2)"])
def test_refused(judge):
    with pytest.raises(BadArgument, match=r"knows no partial support|partial must be true or false"):
        karat.evaluate([sample("V2")], METRICS, judge=judge)
