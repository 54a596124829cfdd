"""Metrics of Future AGI's SDK that need relevance scores: import them from here instead of `fi.evals.metrics`."""

from karat.compat.futureagi.metrics.rag import MRR, NDCG, PrecisionAtK, RAGRankingInput, RecallAtK

__all__ = ["MRR", "NDCG", "PrecisionAtK", "RAGRankingInput", "RecallAtK"]
