"""The metrics of ragas that ask no language model, sample by sample, against ragas itself."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
from itertools import product
from math import isnan, nan
from pathlib import Path
from typing import NamedTuple

import pytest
from rapidfuzz import distance

from karat.compat import ragas

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".oracles" / "ragas" / "bin" / "python"
QUIET = {"RAGAS_DO_NOT_TRACK": "true", "LANGSMITH_TRACING": "false"}  # nothing is sent to anybody

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="ragas is not installed; `make oracle-ragas` does it")

RECALL, PRECISION = "NonLLMContextRecall", "NonLLMContextPrecisionWithReference"
ID_RECALL, ID_PRECISION = "IDBasedContextRecall", "IDBasedContextPrecision"
METRICS = (RECALL, PRECISION, ID_RECALL, ID_PRECISION)
THRESHOLDS = (0.3, 0.5, 0.8)
MEASURES = [measure.value for measure in ragas.DistanceMeasure]
SETTINGS = list(product(MEASURES, THRESHOLDS))
RANDOM = 500


class Better(NamedTuple):
    """A difference that is meant: whose, when, what they say, what we say."""

    metric: str
    retrieved: bool
    """Whether anything was retrieved."""
    reference: bool
    theirs: float | str
    ours: float


BETTER = {
    "nothing retrieved finds nothing, where ragas crashes": Better(RECALL, False, True, "ValueError", 0.0),
    "no references is undefined, where ragas crashes": Better(PRECISION, True, False, "ValueError", nan),
    "neither is undefined, as in all of ragas' other metrics": Better(PRECISION, False, False, 0.0, nan),
}
ROUNDED = "texts just as alike as the threshold: ragas computes 1 - 0.7, which is a little more than 0.3"

# ---- the samples ----------------------------------------------------------------------------------------------------

WORDS = [
    "the",
    "museum",
    "opens",
    "at",
    "nine",
    "Größe",
    "naïve",
    "東京",
    "café",
    "cafe\u0301",
    "ß",
    "ẞ",
    "🙂",
    "İzmir",
]
WHOLE = [1, 2, 3, -1, 10**20]
IDS = [*WHOLE, *map(str, WHOLE), "01", "", " ", "doc_1", "doc_2", "Doc_1", "é", "e\u0301", "東京"]
TENTHS = [2, 5, 7]
"""Of ten characters, replaced: what is left is as much as a threshold."""


def text(rng):
    """Some words; sometimes none, sometimes of just ten characters, so that similarities are whole tenths."""
    kind = rng.random()
    if kind < 0.05:
        return rng.choice(["", " ", "a"])
    words = " ".join(rng.choices(WORDS, k=rng.randint(1, 8)))
    return words.ljust(10, "~")[:10] if kind < 0.7 else words


def like(rng, original):
    """The same text, with some of its characters replaced, left out or added."""
    letters = list(original)
    count = rng.choice(TENTHS) if len(letters) == 10 else rng.randint(0, len(letters))
    some = rng.sample(range(len(letters)), count)
    how = rng.choice(["replace", "replace", "replace", "leave out", "add", "case", "cut"])
    for i in sorted(some, reverse=True):
        if how == "replace":
            letters[i] = "#"
        elif how == "leave out":
            del letters[i]
        elif how == "add":
            letters.insert(i, "+")
        elif how == "case":
            letters[i] = letters[i].swapcase()
    return "".join(letters[: len(some)] if how == "cut" else letters)


def sample(rng):
    """Both sides may be empty and may repeat themselves."""
    reference = [text(rng) for _ in range(rng.choice([0, 1, 2, 3, 5]))]
    retrieved = [text(rng) for _ in range(rng.choice([0, 0, 1, 2]))]
    retrieved += [like(rng, rng.choice(reference)) for _ in range(rng.choice([0, 1, 2, 4])) if reference]
    for side in (reference, retrieved):
        if side and rng.random() < 0.4:
            side.extend(rng.choices(side, k=rng.randint(1, 3)))
    rng.shuffle(retrieved)
    return {
        "retrieved_contexts": retrieved,
        "reference_contexts": reference,
        "retrieved_context_ids": rng.choices(IDS, k=rng.choice([0, 1, 3, 8])),
        "reference_context_ids": rng.choices(IDS, k=rng.choice([0, 1, 3, 8])),
    }


def cases():
    rng = random.Random(2024)
    return [
        {"sample": sample(rng), "measure": measure, "threshold": threshold}
        for measure, threshold in (SETTINGS[i % len(SETTINGS)] for i in range(RANDOM))
    ]


# ---- both libraries -------------------------------------------------------------------------------------------------


def in_ragas(wanted):
    done = subprocess.run(
        [PYTHON, "-W", "ignore", Path(__file__).with_name("in_ragas.py")],
        input=json.dumps(wanted), capture_output=True, text=True, check=False, env=os.environ | QUIET,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def metric_of(name, case):
    if name in {ID_RECALL, ID_PRECISION}:
        return getattr(ragas, name)()
    metric = getattr(ragas, name)(threshold=case["threshold"])
    metric.distance_measure = ragas.DistanceMeasure(case["measure"])
    return metric


def ours(name, case):
    return metric_of(name, case).single_turn_score(ragas.SingleTurnSample(**case["sample"]))


def sides(name, case):
    """Whether there is anything on each side of what the metric reads."""
    what = "context_ids" if name in {ID_RECALL, ID_PRECISION} else "contexts"
    return bool(case["sample"][f"retrieved_{what}"]), bool(case["sample"][f"reference_{what}"])


def same(a, b):
    """As ragas adds 1e-10 to what it divides by, a perfect precision is a little less than 1 there."""
    return (isnan(a) and isnan(b)) or abs(a - b) <= 1e-9


def alike(case, one, many):
    """For each text of one side, by how much the most alike of the other side exceeds the threshold."""
    measure = getattr(distance, {"jaro_winkler": "JaroWinkler"}.get(case["measure"], case["measure"].title()))
    texts = [case["sample"][f"{side}_contexts"] for side in (one, many)]
    best = [max((measure.normalized_similarity(a, b) for b in texts[1]), default=-1.0) for a in texts[0]]
    return [round(similarity - case["threshold"], 12) for similarity in best]


def by_hand(name, case, *, ties):
    """The score, if texts just as alike as the threshold count as hits, or do not."""
    sides = ("reference", "retrieved") if name == RECALL else ("retrieved", "reference")
    found = [excess > 0 or (ties and excess == 0) for excess in alike(case, *sides)]
    if name == RECALL:
        return sum(found) / len(found)
    precisions = [sum(found[:rank]) / rank for rank, hit in enumerate(found, 1) if hit]
    return sum(precisions) / max(len(precisions), 1)


def intended(name, case, theirs, our):
    """Why the scores differ, if they should."""
    for why, better in BETTER.items():
        here = (better.metric, better.retrieved, better.reference) == (name, *sides(name, case))
        if here and theirs == better.theirs and same(our, better.ours):
            return why
    if name in {RECALL, PRECISION} and all(sides(name, case)):
        either = [by_hand(name, case, ties=ties) for ties in (False, True)]
        if any(same(theirs, score) for score in either) and any(same(our, score) for score in either):
            return ROUNDED
    return None


@pytest.fixture(scope="module")
def both():
    """Each case, the scores of ragas and ours; ragas is started once."""
    wanted = cases()
    return [
        (case, theirs, {name: ours(name, case) for name in METRICS})
        for case, theirs in zip(wanted, in_ragas(wanted), strict=True)
    ]


# ---- the comparison -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_equals_ragas_but_for_what_is_better(both, name):
    equal = 0
    found = set()
    for case, theirs, our in both:
        if isinstance(theirs[name], str) or not same(theirs[name], our[name]):
            why = intended(name, case, theirs[name], our[name])
            assert why, (case, theirs[name], our[name])
            found.add(why)
        else:
            equal += 1
    assert found - {ROUNDED} == {why for why, better in BETTER.items() if better.metric == name}
    assert equal > 0.75 * RANDOM


@pytest.mark.parametrize("name", METRICS)
def test_a_batch_gives_the_same(both, name):
    for measure, threshold in SETTINGS:
        here = [row for row in both if (row[0]["measure"], row[0]["threshold"]) == (measure, threshold)]
        batch = metric_of(name, here[0][0]).batch_score([case["sample"] for case, _, _ in here])
        assert [str(float(score)) for score in batch] == [str(our[name]) for _, _, our in here]


def test_the_samples_are_worth_comparing(both):
    """Every kind of score, for every measure and threshold, and some texts as alike as the threshold itself."""
    for measure, threshold in SETTINGS:
        here = [our for case, _, our in both if (case["measure"], case["threshold"]) == (measure, threshold)]
        for name in (RECALL, PRECISION):
            scores = {our[name] for our in here}
            assert {0.0, 1.0} <= scores
            assert any(0 < score < 1 for score in scores)
            assert any(map(isnan, scores))
    for threshold in THRESHOLDS:
        here = [case for case, _, _ in both if case["threshold"] == threshold]
        assert sum(0 in alike(case, "reference", "retrieved") for case in here) > 5


@pytest.mark.parametrize("name", [ID_RECALL, ID_PRECISION])
def test_the_scores_of_ids_are_equal_to_the_last_digit_also_if_awaited(both, name):
    for case, theirs, our in both:
        assert repr(theirs[name]) == repr(our[name]), case
        sample = ragas.SingleTurnSample(**case["sample"])
        assert repr(asyncio.run(metric_of(name, case).single_turn_ascore(sample))) == repr(our[name])
