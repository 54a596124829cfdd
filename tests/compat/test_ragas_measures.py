"""ragas' text metrics with a measure of one's own, metrics of one's own, positional values and time limits."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import isnan
from threading import Event
from time import monotonic, sleep

import pytest

from karat.compat import ragas
from karat.compat.ragas.metrics import (
    DistanceMeasure,
    ExactMatch,
    IDBasedContextRecall,
    LLMContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
    StringPresence,
)
from karat.compat.ragas.metrics import metric as metric_module
from karat.compat.ragas.metrics.base import MetricType, SingleTurnMetric
from karat.errors import BadArgument, InputError, Unavailable
from karat.llm import ModelSettings
from support.scripted import Scripted
from support.waiting import wait_until

TEXTS = {"retrieved_contexts": ["ab", "no"], "reference_contexts": ["xabx", "b", ""]}


class FirstLetter:
    """A measure of one's own: scores need not be from 0 to 1, and equal texts need not be alike."""

    async def single_turn_ascore(self, sample):
        await asyncio.sleep(0)
        return 3 if sample.reference[:1] == sample.response[:1] else -1


def test_the_own_scores_of_text_metrics():
    assert NonLLMStringSimilarity().score("kitten", "sitting") == pytest.approx(4 / 7)
    assert NonLLMStringSimilarity(distance_measure="hamming").score(reference="abcd", response="abdc") == 0.5
    assert NonLLMStringSimilarity(distance_measure=DistanceMeasure.JARO).score("abcd", "abcd") == 1
    assert StringPresence().batch_score(
        [{"reference": "b", "response": "abc"}, {"reference": "x", "response": "a"}]
    ) == [1, 0]
    assert ExactMatch(name="mine").single_turn_score(ragas.SingleTurnSample(reference="a", response="a")) == 1
    with pytest.raises(InputError, match='exact_match needs "response", a text'):
        ExactMatch().score(reference="a")
    assert ragas.evaluate([{"reference": "a", "response": "a"}], [ExactMatch()])["exact_match"] == [1]


def test_presence_as_a_measure():
    """A retrieved context is present in a reference context, in ragas' order of the two."""
    assert NonLLMContextRecall(_distance_measure=StringPresence()).score(**TEXTS) == pytest.approx(1 / 3)
    assert NonLLMContextPrecisionWithReference(distance_measure=StringPresence()).score(**TEXTS) == 1


def test_an_own_measure_is_asked_once_per_pair_and_decides_alone():
    asked = []

    class Counting(FirstLetter):
        async def single_turn_ascore(self, sample):
            asked.append((sample.reference, sample.response))
            return await super().single_turn_ascore(sample)

    metric = NonLLMContextRecall(_distance_measure=Counting())
    row = {"retrieved_contexts": ["ab", "ab", "x"], "reference_contexts": ["ac", "xy", "xy", "ab"]}
    assert metric.batch_score([row, row]) == [1, 1]
    assert sorted(asked) == sorted((a, b) for a in ("ab", "x") for b in ("ac", "xy", "ab"))

    class Never(FirstLetter):
        async def single_turn_ascore(self, sample):
            return 0

    assert NonLLMContextRecall(_distance_measure=Never()).score(**row) == 0, "also for equal texts"
    assert asyncio.run(metric.ascore(**row)) == 1


@pytest.mark.parametrize("wrong", [5, object(), LLMContextRecall(), LLMContextRecall(llm=Scripted())])
def test_what_is_no_measure_is_refused(wrong):
    with pytest.raises(BadArgument, match="a distance measure compares two texts without a model"):
        NonLLMContextPrecisionWithReference(distance_measure=wrong)


# ---- metrics of one's own -------------------------------------------------------------------------------------------


@dataclass
class AnswerLength(SingleTurnMetric):
    name: str = ""
    _required_columns: dict = field(default_factory=lambda: {MetricType.SINGLE_TURN: {"response"}})

    async def _single_turn_ascore(self, sample, callbacks):
        if sample.response == "bad":
            raise LookupError("no length")
        return len(sample.response)


def test_a_metric_of_ones_own():
    metric = AnswerLength()
    assert (metric.name, metric.required_columns) == ("answer_length", {"SINGLE_TURN": {"response"}})
    sample = ragas.SingleTurnSample(response="four")
    assert metric.score(response="four") == metric.single_turn_score(sample) == 4
    assert asyncio.run(metric.single_turn_ascore(sample)) == 4
    good, bad, missing = metric.batch_score([sample, {"response": "bad"}, {}])
    assert good == 4
    assert isnan(bad)
    assert bad.reason == "LookupError: no length"
    assert missing.reason == 'answer_length needs "response"'
    with pytest.raises(LookupError):
        metric.score(response="bad")
    assert ragas.evaluate([{"response": "a"}], [metric]).scores == [{"answer_length": 1}]


# ---- arguments ------------------------------------------------------------------------------------------------------


def test_values_by_position():
    metric = IDBasedContextRecall()
    assert metric.score(["a"], ["a", "b"]) == metric.score(["a"], reference_context_ids=["a", "b"]) == 0.5
    assert asyncio.run(metric.ascore(["a"], ["a", "b"])) == 0.5
    assert metric.score({"retrieved_context_ids": ["a"]}, reference_context_ids=["a"]) == 1
    for values, fields in (((["a"], ["a"], 3), {}), ((["a"],), {"retrieved_context_ids": ["a"]})):
        with pytest.raises(BadArgument, match="reads retrieved_context_ids, reference_context_ids"):
            metric.score(*values, **fields)
    with pytest.raises(BadArgument, match='a sample has no field "retrieved"'):
        metric.score(retrieved=["a"])


# ---- time limits ----------------------------------------------------------------------------------------------------


class Slow(Scripted):
    """Answers after a minute, unless it is cancelled."""

    begun = cancelled = 0

    async def __call__(self, messages, schema):
        self.begun += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


LLM_ROW = {"user_input": "q", "retrieved_contexts": ["a"], "reference": "a"}


@pytest.mark.parametrize("how", ["timeout", "ascore", "wait_for", "batch"])
def test_a_time_limit_ends_the_calls(how):
    metric = LLMContextRecall(llm=(model := Slow()), cache=False)
    sample = ragas.SingleTurnSample(**LLM_ROW)

    async def limited():
        if how == "timeout":
            await metric.single_turn_ascore(sample, timeout=0.1)
        elif how == "ascore":
            await metric.ascore(**LLM_ROW, timeout=0.1)
        elif how == "wait_for":
            await asyncio.wait_for(metric.single_turn_ascore(sample), 0.1)
        else:
            await asyncio.wait_for(metric.abatch_score([LLM_ROW] * 3), 0.1)

    began = monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(limited())
    assert monotonic() - began < 30
    wait_until(lambda: model.cancelled == model.begun)
    metric.llm = Scripted()
    assert metric.single_turn_score(sample) == 1


@pytest.mark.parametrize("kind", ["ascore", "aevaluate"])
def test_a_call_under_way_is_cancelled_with_the_task(kind):
    metric = LLMContextRecall(llm=(model := Slow()), cache=False)

    async def cancelled():
        work = metric.ascore(**LLM_ROW) if kind == "ascore" else ragas.aevaluate([LLM_ROW], [metric])
        task = asyncio.create_task(work)
        await asyncio.to_thread(wait_until, lambda: model.begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    wait_until(lambda: (model.begun, model.cancelled) == (1, 1))


def test_another_sample_of_the_same_metric_goes_on():
    async def sometimes(messages, schema):
        if "slow" in messages[-1]["content"]:
            await asyncio.sleep(60)
        return await Scripted()(messages, schema)

    sometimes.name = "sometimes"  # type: ignore[attr-defined]
    metric = LLMContextRecall(llm=sometimes, cache=False)

    async def both():
        slow = metric.ascore(**{**LLM_ROW, "user_input": "slow"}, timeout=0.1)
        return await asyncio.gather(slow, metric.ascore(**LLM_ROW, timeout=20), return_exceptions=True)

    late, good = asyncio.run(both())
    assert isinstance(late, TimeoutError)
    assert good == 1
    assert metric.score(**LLM_ROW) == 1, "and so do later ones"


# ---- many at once ---------------------------------------------------------------------------------------------------


class Together(Scripted):
    """Answers when this many calls wait for it, and counts the calls."""

    wanted, begun = 1, 0

    async def __call__(self, messages, schema):
        self.begun += 1
        await asyncio.to_thread(wait_until, lambda: self.begun >= self.wanted)
        return await super().__call__(messages, schema)


def rows_of(count):
    return [{**LLM_ROW, "user_input": f"q{number}"} for number in range(count)]


def test_many_samples_are_scored_at_once():
    metric = LLMContextRecall(llm=(model := Together()), cache=False, progress=False)
    model.wanted = 40

    async def every():
        return await asyncio.gather(*(metric.ascore(**row) for row in rows_of(40)))

    assert asyncio.run(every()) == [1.0] * 40


def test_waiting_for_a_thread_does_not_count(monkeypatch):
    one = ThreadPoolExecutor(1)
    monkeypatch.setattr(metric_module, "_executor", lambda process: one)

    async def both():
        free = Event()
        first = asyncio.create_task(metric_module.in_thread(lambda: free.wait(60)))
        await asyncio.sleep(0)
        second = asyncio.create_task(metric_module.in_thread(lambda: "done", 0.05))
        await asyncio.sleep(0.1)
        free.set()
        return await asyncio.gather(first, second)

    assert asyncio.run(both()) == [True, "done"]


def test_a_budget_holds_for_samples_that_start_at_once(monkeypatch):
    """Without a lock, each of them finds no judge yet and makes its own."""
    real = ModelSettings.of

    def slowly(model, given):
        sleep(0.02)
        return real(model, given)

    monkeypatch.setattr(ModelSettings, "of", slowly)
    metric = LLMContextRecall(llm=(model := Together()), cache=False, max_calls=1, progress=False)

    async def every():
        return await asyncio.gather(*(metric.ascore(**row) for row in rows_of(6)), return_exceptions=True)

    found = asyncio.run(every())
    assert model.begun == 1
    assert sum(isinstance(one, Unavailable) for one in found) == 5
