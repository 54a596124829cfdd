"""TruLens takes texts and a k; the grades of its golden set count in nDCG."""

from functools import partial

from trulens.feedback import GroundTruthAgreement
from trulens.feedback.llm_provider import LLMProvider

PACKAGE = "trulens-feedback"
NOBODY = LLMProvider.model_construct()
"""No language model is asked."""


def columns(query, ks):
    chunks = [{"text": doc, "expect_score": grade} for doc, grade in query["gold"].items() if grade > 0]
    by = GroundTruthAgreement([{"query": "?", "expected_chunks": chunks}], provider=NOBODY)
    at_k = {"recall": by.recall_at_k, "precision": by.precision_at_k, "ndcg": by.ndcg_at_k, "hit": by.ir_hit_rate}
    found = {
        f"{name}@{k}" if k else name: partial(score, "?", query["retrieved"], k=k)
        for name, score in at_k.items()
        for k in (None, *ks)
    }
    return found | {"rr": partial(by.mrr, "?", query["retrieved"])}
