"""Inputs of Future AGI's metrics, separate because programs import them from this path."""

from karat.compat.futureagi.metrics.rag.retrieval.ranking import RAGRankingInput

__all__ = ["RAGRankingInput"]
