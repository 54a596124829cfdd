"""The code of Future AGI's pages, for both versions of their client against `karat serve`."""

from __future__ import annotations

import json
from contextlib import contextmanager
from uuid import UUID

import pytest

from support.served import served

P = "Paris is the capital of France."
E = "The Eiffel Tower was built in 1889."
F = "France is in Europe."
O = "The Louvre is in Paris."  # noqa: E741
N = "Napoleon was born in Corsica."
PAGES = {
    "recall_at_k": ([P, E, F, O, N], [P, E, O], {"k": 5}, 1.0, "Recall@5: 1.0"),
    "precision_at_k": ([P, F, E, N, O], [P, E, O], {"k": 5}, 0.6, "Precision@5: 0.6"),
    "ndcg_at_k": ([F, P, N, E, O], [P, E, O], {"k": 5}, 0.6797310500037655, "NDCG@5: 0.68"),
    "mrr": ([F, N, P, E, O], [P, E, O], None, 1 / 3, "MRR: 0.333"),
    "hit_rate": ([F, P, N], [P, E], None, 1.0, "Hit Rate: 1.0"),
    "mean_average_precision": ([P, F, E], [P, E], None, 5 / 6, "MAP: 0.833"),
}
"""For each evaluation its inputs, its parameters, its output and its reason."""
BATCH = {
    "hypothesis": [json.dumps([P, F]), json.dumps([E]), "[1,"],
    "reference": [json.dumps([P]), json.dumps([O]), json.dumps([E])],
}
"""Three rows: a hit, a miss, and one that cannot be read."""


@contextmanager
def client(kind, workers):
    """Their evaluator, which asks a `karat serve`."""
    with served("--workers", workers) as server, pytest.MonkeyPatch.context() as patch:
        for name, value in (("FI_BASE_URL", server.url), ("FI_API_KEY", "any"), ("FI_SECRET_KEY", "any")):
            patch.setenv(name, value)
        yield kind()


def check_page(evaluator, name):
    """Compare the one result of the call on a page with the page."""
    hypothesis, reference, config, score, reason = PAGES[name]
    inputs = {"hypothesis": json.dumps(hypothesis), "reference": json.dumps(reference)}
    (row,) = evaluator.evaluate(eval_templates=name, inputs=inputs, eval_config=config).eval_results
    assert row.output == pytest.approx(score, abs=1e-15)
    assert (row.name, row.reason, row.output_type) == (name, reason, "score")
    assert str(UUID(row.eval_id)) == row.eval_id


def pipeline_summary(evaluator, version):
    """The answers to a run of several evaluations, and its summary."""
    data = [{"eval_template": "recall_at_k", "inputs": BATCH}, {"eval_template": "mrr", "inputs": BATCH}]
    accepted = evaluator.evaluate_pipeline(project_name="search", version=version, eval_data=data)
    for _ in range(1000):
        result = evaluator.get_pipeline_results(project_name="search", versions=[version])["result"]
        if result["status"] != "processing":
            break
    return accepted, result
