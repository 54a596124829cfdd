"""ragas' metrics of entities, relevance and noise, with values by hand, cache, budget and failures."""

from __future__ import annotations

from math import isnan

import pytest

from karat.compat import ragas
from karat.compat.ragas.metrics import ContextEntityRecall, ContextRelevance, NoiseSensitivity, collections
from karat.errors import BadArgument, InputError, Unavailable
from support.scripted import Scripted

ROW = {
    "user_input": "what fell",
    "retrieved_contexts": ["rain fell in LEEDS and the museum is closed", "the tram is late", "in YORK"],
    "reference": "rain fell in LEEDS. snow fell in BATH",
    "response": "rain fell in LEEDS. the museum is closed. the tram is late. it was cold",
}
KINDS = (ContextEntityRecall, ContextRelevance, NoiseSensitivity)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# ---- values by hand -------------------------------------------------------------------------------------------------


def test_entities():
    result = ContextEntityRecall(llm=Scripted()).score(**ROW)
    assert result == 0.5
    assert result.reason == "1 of 2 entities of the reference are in the contexts"
    assert result.traces == [{"entity": "LEEDS", "found": True}, {"entity": "BATH", "found": False}]


def test_entities_of_nothing():
    model = Scripted()
    metric = ContextEntityRecall(llm=model)
    assert metric.score(reference="in LEEDS", retrieved_contexts=[]) == 0
    assert len(model.sent) == 1, "a blank text has no entities"
    result = metric.score(reference="nowhere", retrieved_contexts=["LEEDS"])
    assert isnan(result)
    assert result.reason == "undefined: the reference names no entities"


def test_entities_of_long_contexts_are_united():
    model = Scripted()
    contexts = [f"{'x ' * 600} LEEDS", f"{'y ' * 600} BATH"]
    metric = ContextEntityRecall(llm=model, per_call=400)
    assert metric.score(reference="LEEDS and BATH", retrieved_contexts=contexts) == 1
    assert len(model.sent) > 3


@pytest.mark.parametrize(
    ("question", "contexts", "score", "calls"),
    [
        ("what fell", ["what rain", "fell"], 1.0, 2),
        ("what fell", ["rain fell"], 0.5, 2),
        ("what fell", ["nothing"], 0.0, 2),
        ("what fell", ["fell"], 0.0, 0),  # the question contains the context
        ("what fell", [" "], 0.0, 0),
        (" ", ["rain"], 0.0, 0),
    ],
)
def test_relevance(question, contexts, score, calls):
    model = Scripted()
    assert ContextRelevance(llm=model).score(question, contexts) == score
    assert model.kinds() == ["rate"] * calls


def test_two_ratings_are_averaged_and_one_may_fail():
    def change(kind, reported):
        if "A reader" in model.sent[-1][0][0]["content"]:
            return {"rating": second, "reason": "x"}
        return {"rating": 2, "reason": "y"}

    model, second = Scripted(change), 1
    result = ContextRelevance(llm=model).score(**ROW)
    assert (result, result.reason) == (0.75, "rated 2 and 1 of 2")
    model, second = Scripted(change), 7
    result = ContextRelevance(llm=model, cache=False, retries=0).score(**ROW)
    assert result == 1
    assert result.reason.startswith("rated 2 of 2; one rating failed: answer.rating is none of the allowed values")


def test_noise():
    """Of four claims one is right, one is wrong from a relevant context, one from an irrelevant one, one from none."""
    model = Scripted()
    metric = NoiseSensitivity(llm=model)
    result = metric.score(**ROW)
    assert result == 0.25
    assert result.reason == "1 of 4 claims of the response are wrong and come from relevant contexts"
    assert [(one["correct"], one["contexts"]) for one in result.traces] == [
        (True, [1]), (False, [1]), (False, [2]), (False, []),
    ]  # fmt: skip
    assert model.kinds() == ["joint", "joint", "attribute"]
    irrelevant = NoiseSensitivity(llm=model, mode="irrelevant").score(**ROW)
    assert irrelevant == 0.25
    assert len(model.sent) == 3, "the other mode needs no other answers"


def test_a_claim_from_both_kinds_of_context_counts_as_relevant():
    row = {**ROW, "retrieved_contexts": [ROW["retrieved_contexts"][0], "the museum is closed"]}
    assert NoiseSensitivity(llm=Scripted()).score(**row) == 0.25
    assert NoiseSensitivity(llm=Scripted(), mode="irrelevant").score(**row) == 0


def test_noise_without_claims_is_undefined():
    result = NoiseSensitivity(llm=Scripted()).score(**{**ROW, "response": "."})
    assert isnan(result)
    assert result.reason == "undefined: the response makes no claims"


@pytest.mark.parametrize("call", [1, 2, 3])
def test_noise_is_missing_if_any_of_its_calls_fails(call):
    def change(kind, reported):
        return {"claims": 3} if len(model.sent) == call else reported

    model = Scripted(change)
    with pytest.raises(Unavailable, match="is not of type array"):
        NoiseSensitivity(llm=model, retries=0, cache=False).score(**ROW)
    assert len(model.sent) == call


def test_noise_with_repeats_extracts_claims_first():
    model = Scripted()
    assert NoiseSensitivity(llm=model, repeats=3).score(**ROW) == 0.25
    assert model.kinds().count("extract") == 2


# ---- what they share ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_to_call_gives_the_same_and_is_cached(kind):
    metric = kind(llm=(model := Scripted()))
    sample = ragas.SingleTurnSample(**ROW)
    first = metric.score(*(ROW[name] for name in metric.parameters))
    asked = len(model.sent)
    others = [metric.score(sample), metric.single_turn_score(sample), *metric.batch_score([ROW, sample])]
    others += ragas.evaluate([ROW], [metric])[metric.name]
    assert others == [first] * 5
    assert len(model.sent) == asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_failure_is_missing_and_affects_no_other_sample(kind):
    def change(_, reported):
        if "broken" in model.sent[-1][0][-1]["content"]:
            raise RuntimeError("no")
        return reported

    model = Scripted(change)
    metric = kind(llm=model, retries=0, cache=False)
    bad = {name: f"broken {text}" if isinstance(text, str) else text for name, text in ROW.items()}
    good, failed, unread = metric.batch_score([ROW, bad, {**ROW, "retrieved_contexts": "x"}])
    assert good == kind(llm=Scripted()).score(**ROW)
    assert isnan(failed)
    assert "RuntimeError" in failed.reason
    assert isnan(unread)
    with pytest.raises(Unavailable, match=f"{metric.name} could not be judged"):
        metric.score(**bad)


@pytest.mark.parametrize("kind", KINDS)
def test_a_budget_is_not_exceeded(kind):
    metric = kind(llm=(model := Scripted()), cache=False, max_calls=3)
    scores = metric.batch_score([{**ROW, "user_input": f"what fell {n}"} for n in range(4)])
    assert len(model.sent) <= 3
    assert sum(map(isnan, scores)) >= 2
    assert any("budget" in score.reason or "calls" in score.reason for score in scores)


@pytest.mark.parametrize("kind", KINDS)
def test_empty_and_missing_fields_are_errors(kind):
    metric = kind(llm=Scripted())
    for name in metric.parameters:
        if name not in metric.may_be_empty:
            with pytest.raises(InputError, match=f"{name} cannot be empty"):
                metric.score(**{**ROW, name: [] if name == "retrieved_contexts" else ""})
        with pytest.raises(InputError, match=f"{name} cannot be empty"):
            metric.single_turn_score(ragas.SingleTurnSample(**{**ROW, name: None}))


def test_bad_settings_are_refused_when_a_metric_is_created():
    with pytest.raises(BadArgument, match="mode must be relevant or irrelevant"):
        NoiseSensitivity(mode="other")
    with pytest.raises(BadArgument, match="karat has its own prompts"):
        ContextEntityRecall(context_entity_recall_prompt="x")
    with pytest.raises(BadArgument, match="scores are from 0 to 1"):
        ContextRelevance(allowed_values=(0, 5))
    assert ContextRelevance(allowed_values=(0.0, 1.0), max_retries=2).settings["retries"] == 2
    with pytest.raises(BadArgument, match="llm= is missing"):
        ContextRelevance().score(**ROW)


@pytest.mark.parametrize(
    "kind", [one for one in vars(collections).values() if isinstance(one, type) and hasattr(one, "against")]
)
def test_the_metrics_of_collections_need_a_model_at_once(kind):
    assert kind(llm=Scripted()).name == kind.name
    assert kind("gpt-4o-mini", "mine").name == "mine"
    with pytest.raises(TypeError, match="llm"):
        kind()
    for wrong in (None, 5, Scripted):
        with pytest.raises(BadArgument):
            kind(llm=wrong)
