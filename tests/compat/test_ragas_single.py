"""Single calls of the metrics of ids: the same scores and errors as those of the evaluation of many samples."""

from __future__ import annotations

import asyncio
from enum import Enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.compat.ragas import IDBasedContextPrecision, IDBasedContextRecall, SingleTurnSample
from karat.compat.ragas.metrics import metric as module
from karat.conventions.libraries import RAGAS_WITHOUT_LLM
from karat.errors import KaratError

KINDS = (IDBasedContextRecall, IDBasedContextPrecision)


class Name(str):
    """A string with another form."""

    __slots__ = ()

    def __str__(self):
        return "other"


class Color(str, Enum):  # noqa: UP042  # its text is not its value
    RED = "1"


class Hostile:
    def __hash__(self):
        raise RuntimeError("no hash")

    def __str__(self):
        raise RuntimeError("no text")


PLAIN = st.one_of(st.sampled_from(["1", "2", "a", "", " ", "é", "e\u0301", "[1]", '{"id": 1}']), st.integers(0, 4))
STRINGS = (Name("a"), Color.RED, np.str_("a"), "\ud800", "\\ud800")
ODD = st.sampled_from([*STRINGS, 1.0, 2.5, True, None, np.int64(1), 10**5000, b"a", ("a", 1)])
IDS = st.one_of(st.lists(PLAIN, max_size=6), st.lists(st.one_of(PLAIN, ODD), max_size=5))
SIDES = st.one_of(
    IDS, IDS.map(tuple), IDS.map(lambda ids: [*ids, *ids]), st.sampled_from([None, "a", 3, {"a": 1}, b"a"])
)


def outcome(call):
    """The score, or the error with its message."""
    try:
        return repr(call())
    except (KaratError, RuntimeError, TypeError) as error:
        return type(error), str(error)


def sample_of(retrieved, gold):
    """A sample whose fields are not checked when it is made."""
    return SingleTurnSample.model_construct(retrieved_context_ids=retrieved, reference_context_ids=gold)


def by_arrays(metric, sample):
    """The score by the evaluation that any metric takes."""
    retrieved, gold = metric._read(sample)
    return karat.score(metric.metric, retrieved, gold, judge="ids", convention=RAGAS_WITHOUT_LLM)


@pytest.mark.parametrize("kind", KINDS)
@given(retrieved=SIDES, gold=SIDES)
def test_the_score_and_the_error_are_those_of_the_evaluation(kind, retrieved, gold):
    metric, sample = kind(), sample_of(retrieved, gold)
    called = outcome(lambda: metric.single_turn_score(sample))
    assert called == outcome(lambda: by_arrays(metric, sample))
    assert called == outcome(lambda: asyncio.run(metric.single_turn_ascore(sample)))
    assert called == outcome(lambda: float(metric.score(sample)))


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_ids_fail_in_the_same_way(kind):
    metric, sample = kind(), sample_of(["a", Hostile()], ["a"])
    called = outcome(lambda: metric.single_turn_score(sample))
    assert isinstance(called, tuple)
    assert called == outcome(lambda: by_arrays(metric, sample))


@pytest.mark.parametrize("kind", KINDS)
def test_plain_ids_are_scored_without_an_evaluation(kind, monkeypatch):
    monkeypatch.setattr(module, "score", None)
    assert kind().single_turn_score(sample_of(["a", "b", "b"], ["b", 3])) == 0.5


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metric": "precision@1"}, 0.0),
        ({"metric": "rr"}, 0.5),
        ({"convention": "standard"}, 1 / 3),
        ({"convention": karat.Convention(name="mine", empty_gold=7.0)}, 1 / 3),
    ],
)
def test_classes_that_change_the_metric_or_the_convention_are_evaluated(changes, expected):
    metric = type("Mine", (IDBasedContextPrecision,), changes)()
    assert metric.single_turn_score(sample_of(["a", "b", "a"], ["b", "c"])) == expected
