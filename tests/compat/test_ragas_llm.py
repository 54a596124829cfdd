"""ragas' metrics that call a model, with the real openai client against a local server."""

from __future__ import annotations

import asyncio
import json
from math import isnan

import openai
import pytest

from karat.compat import ragas
from karat.compat.ragas import (
    ContextPrecision,
    ContextRecall,
    ContextUtilization,
    LLMContextPrecisionWithoutReference,
    LLMContextPrecisionWithReference,
    LLMContextRecall,
    SingleTurnSample,
    llm_factory,
)
from karat.errors import BadArgument, InputError, Unavailable
from support.scripted import Scripted, framed, script
from support.server import Act, Server

RECALL = (ContextRecall, LLMContextRecall)
PRECISION = (ContextPrecision, ragas.ContextPrecisionWithReference, LLMContextPrecisionWithReference)
WITHOUT = (ContextUtilization, ragas.ContextPrecisionWithoutReference, LLMContextPrecisionWithoutReference)
RAIN, MUSEUM, TRAM = "rain fell in Leeds", "the museum is closed", "the tram goes far"
ROW = {
    "user_input": "What happened?",
    "retrieved_contexts": [TRAM, f"{RAIN} today", MUSEUM],
    "reference": f"{RAIN}. It snowed.",
    "response": RAIN,
}
KEY = "unusual-secret-0123456789"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def server():
    with Server(script) as running:
        yield running


def client_of(server, kind=openai.AsyncOpenAI):
    return kind(base_url=server.url, api_key=KEY)


@pytest.mark.parametrize("kind", [*RECALL, *PRECISION, *WITHOUT])
def test_every_way_to_call_gives_the_same(kind, server):
    metric = kind(llm=llm_factory("gpt-4o-mini", client=client_of(server)))
    row = {**ROW, "reference": f"{RAIN}. It snowed." if kind in RECALL else RAIN}
    sample = SingleTurnSample(**row)

    async def awaited():
        return [
            await metric.ascore(**row),
            await metric.single_turn_ascore(sample),
            *await metric.abatch_score([row, sample]),
            metric.score(**row),
            (await ragas.aevaluate([row], [metric]))[metric.name][0],
        ]

    reported = [
        metric.score(**row),
        metric.single_turn_score(sample),
        *metric.batch_score([row]),
        *asyncio.run(awaited()),
    ]
    reported.append(ragas.evaluate([row], [metric])[metric.name][0])
    assert reported == [0.5] * len(reported)
    assert server.count == 1, "the rest comes from the cache"
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"


def test_the_code_of_their_page_runs(server):
    """They show 1.0. The context does not say where the tower is, and a strict judge says so."""

    async def page():
        client = client_of(server)
        llm = llm_factory("gpt-4o-mini", client=client)
        scorer = ContextRecall(llm=llm)
        result = await scorer.ascore(
            user_input="Where is the Eiffel Tower located?",
            retrieved_contexts=["Paris is the capital of France."],
            reference="The Eiffel Tower is located in Paris.",
        )
        await client.close()
        return result

    result = asyncio.run(page())
    assert result.value == 0.0
    assert result.reason == "0 of 1 claims are supported by the contexts"
    assert result.traces == [{"claim": "The Eiffel Tower is located in Paris", "contexts": [], "reason": ""}]


def test_results_have_reasons_and_traces(server):
    recall = ContextRecall(llm=llm_factory("m", client=client_of(server))).score(**ROW)
    assert recall.reason == "1 of 2 claims are supported by the contexts"
    assert recall.traces[0] == {"claim": RAIN, "contexts": [2], "reason": "because [2]"}
    precision = ContextPrecision(llm=llm_factory("m", client=client_of(server))).score(**{**ROW, "reference": RAIN})
    assert precision.reason == "1 of 3 contexts are useful"
    assert [one["verdict"] for one in precision.traces] == [0, 1, 0]


def test_copies_count_as_in_ragas(server):
    row = {**ROW, "retrieved_contexts": [TRAM, RAIN, RAIN], "reference": RAIN}
    assert ContextPrecision(llm=llm_factory("m", client=client_of(server))).score(row) == pytest.approx(
        (1 / 2 + 2 / 3) / 2
    )


@pytest.mark.parametrize("field", ["user_input", "reference", "retrieved_contexts"])
@pytest.mark.parametrize("kind", [*RECALL, *PRECISION])
def test_empty_fields(kind, field):
    metric = kind(llm=Scripted())
    for empty in ("", None) if field != "retrieved_contexts" else ([], None):
        with pytest.raises(ValueError, match=f"{field} cannot be empty"):
            metric.score(**{**ROW, field: empty})
        with pytest.raises(InputError, match=f"{field} cannot be empty"):
            asyncio.run(metric.ascore(**{**ROW, field: empty}))


@pytest.mark.parametrize("kind", [*RECALL, *PRECISION])
def test_a_retriever_that_found_nothing_scores_0_in_a_batch(kind):
    metric = kind(llm=Scripted(), cache=False)
    nothing = {**ROW, "retrieved_contexts": []}
    assert metric.batch_score([nothing]) == [0]
    assert metric.single_turn_score(SingleTurnSample(**nothing)) == 0
    assert ragas.evaluate([nothing], [metric])[metric.name] == [0]


def test_a_bad_row_and_a_failed_judgement_fail_alone():
    def scripted(call):
        return Act(status=400, content="too long") if "fail me" in call.text else script(call)

    with Server(scripted) as server:
        metric = ContextRecall(llm=llm_factory("m", client=client_of(server)))
        rows = [ROW, {**ROW, "user_input": "fail me"}, {**ROW, "reference": ""}, {**ROW, "retrieved_contexts": [1]}]
        reported = metric.batch_score(rows)
        assert reported[0] == 0.5
        assert all(isnan(one) for one in reported[1:])
        assert "400" in reported[1].reason
        assert "reference cannot be empty" in reported[2].reason
        assert "a context is a int" in reported[3].reason
        with pytest.raises(Unavailable, match="context_recall could not be judged"):
            metric.score(rows[1])
        assert repr(ragas.evaluate(rows, [metric])) == "{'context_recall': 0.5000 (3 of 4 undefined or failed)}"


def test_a_reference_without_a_claim_is_undefined():
    metric = ContextRecall(llm=Scripted(lambda kind, reported: {"claims": []}), cache=False)
    reported = metric.score(**ROW)
    assert isnan(reported)
    assert reported.reason == "undefined: the reference has no claims"


def test_supported_models(server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for llm in (
        llm_factory("m", client=client_of(server, openai.OpenAI), temperature=0.5, max_tokens=500),
        llm_factory("n", base_url=server.url),
        f"openai(o, base_url={server.url})",
        Scripted(),
    ):
        assert ContextRecall(llm=llm).score(**ROW) == 0.5
    assert server.calls[0].body["temperature"] == 0.5
    assert server.calls[0].body["max_tokens"] == 500
    with pytest.raises(BadArgument, match="llm= is missing"):
        ContextRecall().score(**ROW)


def test_the_key_of_a_client_is_shown_nowhere(tmp_path):
    def leaking(call):
        return Act(status=400, content=f"bad request with {KEY[:-2]}ab {KEY}")

    with Server(leaking) as server:
        llm = llm_factory("m", client=client_of(server))
        metric = ContextRecall(llm=llm)
        reported = metric.batch_score([ROW])[0]
        shown = [repr(llm), llm.name, reported.reason, repr(reported), repr(metric), str(vars(metric))]
    assert all(KEY not in text for text in shown)
    with Server(lambda call: Act(status=401, content="no")) as server:
        metric = ContextRecall(llm=llm_factory("m", client=client_of(server)))
        with pytest.raises(Unavailable, match="it is the client's") as error:
            metric.score(**ROW)
    assert KEY not in str(error.value)
    for kept in tmp_path.rglob("*"):
        if kept.is_file():
            assert KEY.encode() not in kept.read_bytes()


def test_a_budget_covers_all_calls_of_a_metric():
    metric = ContextRecall(llm=(model := Scripted()), cache=False, max_calls=2)
    rows = [{**ROW, "user_input": f"q{i}"} for i in range(3)]
    reported = [metric.batch_score([row])[0] for row in rows]
    assert len(model.sent) == 2
    assert reported[:2] == [0.5, 0.5]
    assert isnan(reported[2])


def test_models_do_not_share_answers(server):
    for name in ("one", "two"):
        ContextRecall(llm=llm_factory(name, client=client_of(server))).score(**ROW)
    assert server.count == 2
    assert {json.loads(json.dumps(call.body))["model"] for call in server.calls} == {"one", "two"}
    assert framed(server.calls[0].text)["question"] == ROW["user_input"]
