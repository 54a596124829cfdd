"""Run by the Python that has ragas: reads samples as JSON, writes the score of each metric or the name of its error."""

import asyncio
import json
import sys

from ragas import SingleTurnSample
from ragas.metrics import (
    DistanceMeasure,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
    NonLLMStringSimilarity,
)


def metrics_of(measure, threshold):
    recall = NonLLMContextRecall(threshold=threshold)
    recall.distance_measure = DistanceMeasure(measure)
    by = NonLLMStringSimilarity(distance_measure=DistanceMeasure(measure))
    precision = NonLLMContextPrecisionWithReference(distance_measure=by, threshold=threshold)
    return [recall, precision, IDBasedContextRecall(), IDBasedContextPrecision()]


async def scores(case):
    sample = SingleTurnSample(**case["sample"])
    found = {}
    for metric in metrics_of(case["measure"], case["threshold"]):
        try:
            found[type(metric).__name__] = await metric.single_turn_ascore(sample)
        except Exception as error:  # noqa: BLE001
            found[type(metric).__name__] = type(error).__name__
    return found


async def all_scores(cases):
    return [await scores(case) for case in cases]


json.dump(asyncio.run(all_scores(json.load(sys.stdin))), sys.stdout)
