"""Code for Future AGI with the import changed: no key, no account, no network.

    python examples/from_futureagi.py

Before the change the first line was

    from fi.evals import Evaluator
"""

from __future__ import annotations

import json

from karat.compat.futureagi import Evaluator

RETRIEVED = [
    "Paris is the capital of France.",
    "The Eiffel Tower was built in 1889.",
    "France is in Europe.",
    "The Louvre is in Paris.",
    "Napoleon was born in Corsica.",
]
RELEVANT = [
    "Paris is the capital of France.",
    "The Eiffel Tower was built in 1889.",
    "The Louvre is in Paris.",
]
BATCH = [
    (RETRIEVED, RELEVANT),
    (["The sky is blue.", "Water is wet."], ["Water is wet."]),
    ([], ["Nothing was retrieved for this one."]),
]


def main() -> None:
    """Print one query with several metrics, then a batch, then several k."""
    evaluator = Evaluator()
    inputs = {"hypothesis": json.dumps(RETRIEVED), "reference": json.dumps(RELEVANT)}
    for template in ("recall_at_k", "precision_at_k", "ndcg_at_k", "mrr", "hit_rate"):
        result = evaluator.evaluate(eval_templates=template, inputs=inputs, eval_config={"k": 3})
        print(result.eval_results[0].reason)

    print("\nA batch")
    batch = {
        "hypothesis": [json.dumps(retrieved) for retrieved, _ in BATCH],
        "reference": [json.dumps(relevant) for _, relevant in BATCH],
    }
    for one in evaluator.evaluate("recall_at_k", batch, eval_config={"k": 3}).eval_results:
        print(one.output, one.reason, sep="  ")

    print("\nSeveral k, with the definitions of the server")
    server = Evaluator(convention="futureagi-server")
    for one in server.evaluate("recall_at_k", inputs, eval_config={"k": [1, 3, 5]}).eval_results:
        print(one.reason)


if __name__ == "__main__":
    main()
