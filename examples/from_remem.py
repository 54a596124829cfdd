"""Code for REMem with the import changed.

    python examples/from_remem.py

Before the change the first line was

    from remem.evaluation.retrieval_eval import RetrievalNDCGAny, RetrievalRecall, RetrievalRecallAll
"""

from __future__ import annotations

import json

from karat.compat.remem import RetrievalNDCGAny, RetrievalRecall, RetrievalRecallAll, is_chunk_from_original

TALKS = [
    {
        "date": "2025/05/03",
        "messages": [
            {"role": "user", "content": 'My sister moved to "old" Cologne.\nShe likes it.'},
            {"role": "assistant", "content": "How nice! Will you visit her?"},
        ],
    },
    {"date": "2025/05/09", "messages": [{"role": "user", "content": "I booked a train for the 20th."}]},
]
GOLD_DOCS = [[json.dumps(talk) for talk in TALKS], [json.dumps(TALKS[1])]]
RETRIEVED_CHUNKS = [
    [
        "Date: 2025/04/01\nuser: What shall I cook?",
        'Date: 2025/05/03\nuser: My sister moved to "old" Cologne.\nShe likes it.',
        "Date: 2025/05/09\nuser: I booked a train for the 20th.",
    ],
    [
        "Date: 2025/05/03\nassistant: How nice! Will you visit her?",
        json.dumps(TALKS[1]),
        "Date: 2025/04/01\nuser: What shall I cook?",
    ],
]


def main() -> None:
    """Print the means of each metric, then the scores of each example."""
    for metric in (RetrievalRecall(), RetrievalRecallAll(), RetrievalNDCGAny()):
        pooled, each = metric.calculate_metric_scores(GOLD_DOCS, RETRIEVED_CHUNKS, k_list=[1, 2, 3])
        print(f"{metric.metric_name}  {pooled}")
        for scores in each:
            print(f"  {scores}")
    verb = "is" if is_chunk_from_original(RETRIEVED_CHUNKS[0][1], GOLD_DOCS[0][0]) else "is not"
    print(f"\nThe second chunk of the first example {verb} from its first document.")


if __name__ == "__main__":
    main()
