"""A model is asked once in an evaluation, also if metrics of one convention rank ties differently."""

from __future__ import annotations

import pytest

import karat
from support import scripted
from support.scripted import Scripted
from support.server import Act, Server

SAMPLES = [
    {
        "query": f"red {n}",
        "answer": f"Red {n}. Blue {n}.",
        "retrieved": [
            {"id": "a", "text": f"blue {n}", "score": 1.0},
            {"id": "c", "text": f"red {n}", "score": 1.0},
            {"id": "b", "text": f"grey {n}. red {n}.", "score": 1.0},
        ],
    }
    for n in range(4)
]
JUDGES = {
    "claims": karat.Claims,
    "claims of the response": lambda model, **more: karat.Claims(model, of="response", **more),
    "relevance": karat.Relevance,
}
METRICS = {"claims": "rr@3 hit@1 precision@2", "relevance": "rr@3 hit@1 precision@2 ndcg@3"}


def _always(samples, rankings, ask):
    return ask(), [list(range(len(one.passages))) for one in rankings]


def _samples():
    return [{**one, "response": one["answer"]} for one in SAMPLES]


@pytest.mark.parametrize("convention", ["standard", "beir", "mteb", "ranx"])
@pytest.mark.parametrize("name", JUDGES)
def test_each_request_is_made_once_and_the_scores_are_those_of_a_judge_that_is_asked_twice(
    name, convention, monkeypatch
):
    settings = {"metrics": METRICS[name.split()[0]], "convention": convention, "order": "score"}
    once, again = Scripted(), Scripted()
    run = karat.evaluate(_samples(), judge=JUDGES[name](once, cache=None), **settings)
    twice = JUDGES[name](again, cache=None)
    monkeypatch.setattr(twice, "once", _always)
    assert run.mean == karat.evaluate(_samples(), judge=twice, **settings).mean
    assert len(once.sent) == (4 if name == "relevance" else 8)


def test_the_test_has_conventions_that_rank_twice(monkeypatch):
    model = Scripted()
    judge = karat.Relevance(model, cache=None)
    monkeypatch.setattr(judge, "once", _always)
    karat.evaluate(_samples(), "rr@3 precision@2", judge=judge, convention="mteb", order="score")
    assert len(model.sent) == 8


def test_the_next_evaluation_asks_again():
    model = Scripted()
    judge = karat.Relevance(model, cache=None)
    for _ in range(2):
        karat.evaluate(_samples(), "rr@3", judge=judge)
    assert len(model.sent) == 8


def test_a_key_that_is_rejected_after_the_answers_loses_nothing():
    with Server(lambda call: scripted.script(call) if call.number < 4 else Act(status=401)) as server:
        judge = karat.Relevance(server.model(), cache=None)
        run = karat.evaluate(_samples(), "rr@3 precision@2", judge=judge, convention="mteb", order="score")
    assert run.judged == 4
    assert server.count == 4


@pytest.mark.parametrize("cache", [None, False, True])
@pytest.mark.parametrize("judge", [karat.Claims, karat.Relevance])
def test_no_cache_is_none(judge, cache, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = judge(Scripted(), cache=cache)
    karat.evaluate(_samples(), "rr@3", judge=first)
    assert [file.name for file in tmp_path.iterdir()] == (["karat"] if cache else [])
    karat.evaluate(_samples(), "rr@3", judge=first.with_settings(concurrency=2))
    assert [file.name for file in tmp_path.iterdir()] == (["karat"] if cache else [])
