"""The metrics of ragas: scores and reasons, for every way to call them."""

from __future__ import annotations

import asyncio
from math import isnan, nan

import numpy as np
import pytest

from karat.compat import ragas
from karat.compat.ragas import (
    DistanceMeasure,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
    SingleTurnSample,
)
from karat.errors import BadArgument, InputError, UnknownName

BY_TEXT = (NonLLMContextRecall, NonLLMContextPrecisionWithReference)
BY_ID = (IDBasedContextRecall, IDBasedContextPrecision)
BY_LLM = (
    ragas.ContextPrecision, ragas.ContextRecall, ragas.ContextUtilization, ragas.LLMContextPrecisionWithReference,
    ragas.LLMContextPrecisionWithoutReference, ragas.LLMContextRecall,
)  # fmt: skip

PARIS = "Paris is the capital of France."
TOWER = "The Eiffel Tower is one of the most famous landmarks in Paris."


def texts(retrieved, reference):
    return {"retrieved_contexts": retrieved, "reference_contexts": reference}


def ids(retrieved, reference):
    return {"retrieved_context_ids": retrieved, "reference_context_ids": reference}


def row_for(metric, retrieved, reference):
    return (texts if isinstance(metric, BY_TEXT) else ids)(retrieved, reference)


def score(metric, retrieved, reference):
    return metric.score(**row_for(metric, retrieved, reference))


# ---- the documented examples ----------------------------------------------------------------------------------------


def test_their_examples():
    assert score(NonLLMContextRecall(), [PARIS], [PARIS, TOWER]) == 0.5
    assert score(IDBasedContextRecall(), ["doc_1", "doc_2", "doc_3"], ["doc_1", "doc_4", "doc_5", "doc_6"]) == 0.25


def test_their_names():
    assert [metric().name for metric in (*BY_TEXT, *BY_ID)] == [
        "non_llm_context_recall", "non_llm_context_precision_with_reference",
        "id_based_context_recall", "id_based_context_precision",
    ]  # fmt: skip
    assert [metric(name="mine").name for metric in (*BY_TEXT, *BY_ID, *BY_LLM)] == ["mine"] * 10


# ---- however one calls it -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*BY_TEXT, *BY_ID])
def test_every_way_to_call_gives_the_same(kind):
    metric = kind()
    row = row_for(metric, ["one", "x-ray", "one"], ["one", "two", "three", "one"])
    wanted = {
        NonLLMContextRecall: 0.5,
        NonLLMContextPrecisionWithReference: (1 + 2 / 3) / 2,
        IDBasedContextRecall: 1 / 3,
        IDBasedContextPrecision: 0.5,
    }[kind]
    sample = SingleTurnSample(user_input="how many?", **row)

    async def awaited():
        """In a running loop, where ragas' `score` refuses to work, too."""
        return [
            await metric.ascore(**row),
            await metric.ascore(row),
            await metric.single_turn_ascore(sample),
            await metric.single_turn_ascore(sample, None, timeout=1),
            metric.score(**row),
            metric.single_turn_score(sample),
            *await metric.abatch_score([row, sample]),
            *metric.batch_score([row]),
        ]

    once = [
        metric.score(**row),
        metric.score(row),
        metric.score(sample),
        metric.score(row, **row),
        metric.single_turn_score(sample),
        metric.single_turn_score(sample, callbacks=[]),
        *metric.batch_score([row, sample]),
        *metric.batch_score(iter([row])),
        *asyncio.run(awaited()),
    ]
    assert once == [pytest.approx(wanted, abs=1e-15)] * len(once)
    assert type(metric.single_turn_score(sample)) is float
    assert type(asyncio.run(metric.single_turn_ascore(sample))) is float


# ---- what they count ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "retrieved", "reference", "wanted"),
    [
        (NonLLMContextRecall, [], ["a"], 0.0),
        (NonLLMContextRecall, ["a"], [], nan),
        (NonLLMContextRecall, [], [], nan),
        (NonLLMContextRecall, ["same"], ["same", "same", "other thing"], 2 / 3),  # each duplicate counts
        (NonLLMContextRecall, ["ABCD"], ["abcd"], 0.0),  # case matters
        (NonLLMContextRecall, [""], ["", " "], 0.5),
        (NonLLMContextPrecisionWithReference, [], ["a"], 0.0),
        (NonLLMContextPrecisionWithReference, ["a"], [], nan),
        (NonLLMContextPrecisionWithReference, [], [], nan),
        (NonLLMContextPrecisionWithReference, ["same"], ["same", "nowhere to be seen"], 1.0),  # of the found ones
        (NonLLMContextPrecisionWithReference, ["x", "same"], ["same"], 0.5),
        (NonLLMContextPrecisionWithReference, ["same", "x", "same"], ["same"], (1 + 2 / 3) / 2),  # each copy counts
        (NonLLMContextPrecisionWithReference, ["x"], ["same"], 0.0),
        (IDBasedContextRecall, [1, 2], ["1", "3"], 0.5),
        (IDBasedContextRecall, ["1", 1], [1, "1", 2], 0.5),
        (IDBasedContextRecall, [1.0], [1], 1.0),
        (IDBasedContextRecall, ["01"], [1], 0.0),
        (IDBasedContextRecall, [], ["a"], 0.0),
        (IDBasedContextRecall, ["a"], [], nan),
        (IDBasedContextRecall, [], [], nan),
        (IDBasedContextPrecision, [1, "1", 2], ["1"], 0.5),
        (IDBasedContextPrecision, ["a", "b", "c", "d"], ["d", "d"], 0.25),
        (IDBasedContextPrecision, [], ["a"], nan),
        (IDBasedContextPrecision, ["a"], [], 0.0),
        (IDBasedContextPrecision, [], [], nan),
    ],
)
def test_edges(kind, retrieved, reference, wanted):
    alone = score(kind(), retrieved, reference)
    beside = kind().batch_score([row_for(kind(), ["z"], ["z"]), row_for(kind(), retrieved, reference)])[1]
    plain = kind().single_turn_score(SingleTurnSample(**row_for(kind(), retrieved, reference)))
    assert alone == pytest.approx(wanted, nan_ok=True)
    assert (str(alone), alone.reason) == (str(beside), beside.reason)
    assert str(alone.value) == str(plain)


@pytest.mark.parametrize(
    ("kind", "retrieved", "reference", "reason"),
    [
        (NonLLMContextRecall, [PARIS], [PARIS, TOWER], "1 of 2 reference items were retrieved"),
        (NonLLMContextRecall, [PARIS], [], "undefined: there are no reference items"),
        (NonLLMContextPrecisionWithReference, [PARIS, "x", PARIS], [PARIS], "2 of 3 retrieved items are relevant"),
        (IDBasedContextPrecision, [1, "1", 2], [1], "1 of 2 retrieved items are relevant"),
        (IDBasedContextPrecision, [], [1], "undefined: nothing was retrieved"),
    ],
)
def test_reasons(kind, retrieved, reference, reason):
    assert score(kind(), retrieved, reference).reason == reason


# ---- similarity -----------------------------------------------------------------------------------------------------


def at_threshold(tenths, kind, **settings):
    """Two texts of ten characters that have so many in common."""
    metric = kind(threshold=tenths / 10, **settings)
    return score(metric, ["0123456789"[:tenths] + "x" * (10 - tenths)], ["0123456789"])


@pytest.mark.parametrize("measure", [DistanceMeasure.LEVENSHTEIN, DistanceMeasure.HAMMING])
@pytest.mark.parametrize("tenths", [1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_recall_exceeds_the_threshold_and_precision_reaches_it(tenths, measure):
    assert at_threshold(tenths, NonLLMContextRecall, distance_measure=measure) == 0
    assert at_threshold(tenths, NonLLMContextPrecisionWithReference, distance_measure=measure) == 1


SIMILARITY = {"levenshtein": 1 / 2, "hamming": 1 / 4, "jaro": 23 / 30, "jaro_winkler": 61 / 75}
"""Of "dixon" and "dicksonx", the pair of the textbooks."""


@pytest.mark.parametrize("measure", list(DistanceMeasure))
@pytest.mark.parametrize("kind", BY_TEXT)
def test_the_four_measures(kind, measure):
    alike = SIMILARITY[measure.value]
    below, above = kind(threshold=alike - 0.001), kind(threshold=alike + 0.001)
    for metric in (below, above):
        metric.distance_measure = measure
    assert [score(metric, ["dixon"], ["dicksonx"]) for metric in (below, above)] == [1, 0]


@pytest.mark.parametrize("kind", BY_TEXT)
def test_settings_may_be_changed_later(kind):
    metric = kind()
    assert (metric.distance_measure.distance_measure, metric.threshold) == (DistanceMeasure.LEVENSHTEIN, 0.5)
    both = ["abcdefgh"], ["xabcdefg"]
    assert score(metric, *both) == 1
    metric.distance_measure = DistanceMeasure.HAMMING
    assert score(metric, *both) == 0
    metric.distance_measure = NonLLMStringSimilarity(distance_measure=DistanceMeasure.JARO)
    assert score(metric, *both) == 1
    metric.threshold = 0.99
    assert score(metric, *both) == 0
    given = kind(distance_measure=NonLLMStringSimilarity(distance_measure=DistanceMeasure.JARO), threshold=0.8)
    assert (given.distance_measure.distance_measure, given.threshold) == (DistanceMeasure.JARO, 0.8)
    given.distance_measure = "hamming"
    assert given.distance_measure.distance_measure is DistanceMeasure.HAMMING


@pytest.mark.parametrize("kind", BY_TEXT)
def test_invalid_settings(kind):
    with pytest.raises(UnknownName, match=r"levenstein.*Did you mean levenshtein"):
        kind(distance_measure="levenstein")
    for threshold in (50, -0.1, nan, "0.5", None):
        with pytest.raises(BadArgument, match="threshold"):
            score(kind(threshold=threshold), ["a"], ["a"])


# ---- what cannot be read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [{}, texts(["a"], None), texts("a", ["a"]), texts(["a"], [1]), texts({"a": 1}, ["a"]), 5]
)
def test_a_bad_row_fails_alone(bad):
    metric = NonLLMContextRecall()
    first, second, third = metric.batch_score([texts([PARIS], [PARIS]), bad, texts([TOWER], [PARIS])])
    assert (first, third) == (1, 0)
    assert isnan(second)
    with pytest.raises(InputError) as reported:
        metric.score(bad)
    assert second.reason == str(reported.value)
    assert any(word in second.reason for word in ("contexts", "context is", "sample is"))


@pytest.mark.parametrize("bad", [None, True, 1.5, {"id": 1}, ["a"], 10**5000], ids=lambda bad: type(bad).__name__)
@pytest.mark.parametrize("kind", BY_ID)
def test_ids_are_strings_or_whole_numbers(kind, bad):
    for row in (ids([bad], ["a"]), ids(["a"], [bad])):
        with pytest.raises(InputError, match="an id is a string or a whole number"):
            kind().score(row)


def test_lists_may_be_tuples_or_arrays():
    assert score(IDBasedContextRecall(), np.array([1, 2]), ("1", "3")) == 0.5
    assert score(IDBasedContextRecall(), {"a"}, frozenset("a")) == 1
    with pytest.raises(InputError, match="expected a list"):
        score(IDBasedContextRecall(), np.array(1), [1])


def test_a_batch_is_a_list():
    assert NonLLMContextRecall().batch_score([]) == []
    for bad in (None, 5, "rows", texts(["a"], ["a"])):
        with pytest.raises(InputError, match="expected a list"):
            NonLLMContextRecall().batch_score(bad)
