"""Metrics of Future AGI's SDK that need relevance scores: import them from here instead of `fi.evals.metrics.rag`."""

from karat.compat.futureagi.metrics.rag.retrieval.ranking import MRR, NDCG, PrecisionAtK, RAGRankingInput, RecallAtK

__all__ = ["MRR", "NDCG", "PrecisionAtK", "RAGRankingInput", "RecallAtK"]
