"""Code for ragas with the imports changed.

    python examples/from_ragas.py

Before the change the first lines were

    from ragas import EvaluationDataset, SingleTurnSample, evaluate
    from ragas.metrics import DistanceMeasure, IDBasedContextPrecision, IDBasedContextRecall, …
"""

from __future__ import annotations

import asyncio

from karat.compat.ragas import EvaluationDataset, SingleTurnSample, evaluate
from karat.compat.ragas.metrics import (
    DistanceMeasure,
    IDBasedContextPrecision,
    IDBasedContextRecall,
    NonLLMContextPrecisionWithReference,
    NonLLMContextRecall,
)

SAMPLES = [
    {
        "user_input": "When was the Eiffel Tower built?",
        "retrieved_contexts": [
            "The Eiffel Tower was built from 1887 to 1889.",
            "Paris is the capital of France.",
        ],
        "reference_contexts": ["The Eiffel Tower was built between 1887 and 1889."],
        "retrieved_context_ids": ["tower-1", "paris-4"],
        "reference_context_ids": ["tower-1"],
    },
    {
        "user_input": "Who designed it, and what is it made of?",
        "retrieved_contexts": [
            "Gustave Eiffel was born in Dijon.",
            "The tower is made of wrought iron.",
        ],
        "reference_contexts": [
            "Maurice Koechlin and Émile Nouguier designed the tower.",
            "The tower is made of wrought iron.",
        ],
        "retrieved_context_ids": ["eiffel-1", "tower-3"],
        "reference_context_ids": ["tower-2", "tower-3"],
    },
    {
        "user_input": "How many visitors come each year?",
        "retrieved_contexts": [],
        "reference_contexts": ["Nearly six million people visit the tower each year."],
        "retrieved_context_ids": [],
        "reference_context_ids": ["tower-9"],
    },
]


async def one_by_one() -> None:
    """Score single samples asynchronously."""
    recall = NonLLMContextRecall(threshold=0.7)
    recall.distance_measure = DistanceMeasure.JARO_WINKLER
    for fields in SAMPLES:
        sample = SingleTurnSample(**fields)
        print(f"{await recall.single_turn_ascore(sample):.2f}  {sample.user_input}")


def main() -> None:
    """Print single scores, and the means over the data set."""
    asyncio.run(one_by_one())

    sample = SingleTurnSample(
        retrieved_context_ids=["doc_1", "doc_2", "doc_3"],
        reference_context_ids=["doc_1", "doc_4", "doc_5", "doc_6"],
    )
    print(f"\n{IDBasedContextRecall().single_turn_score(sample)} of the ids\n")

    metrics = [
        NonLLMContextRecall(),
        NonLLMContextPrecisionWithReference(),
        IDBasedContextRecall(),
        IDBasedContextPrecision(),
    ]
    scores = evaluate(EvaluationDataset.from_list(SAMPLES), metrics=metrics)
    print(scores)
    for row in scores.scores:
        print("  ".join(f"{value:.2f}" for value in row.values()))


if __name__ == "__main__":
    main()
