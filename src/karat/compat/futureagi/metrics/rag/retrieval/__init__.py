"""Metrics of rankings in Future AGI's SDK: import them from here instead of `fi.evals.metrics.rag.retrieval`."""

from karat.compat.futureagi.metrics.rag.retrieval.ranking import MRR, NDCG, PrecisionAtK, RecallAtK

__all__ = ["MRR", "NDCG", "PrecisionAtK", "RecallAtK"]
