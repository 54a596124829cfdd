"""Metrics of Future AGI's SDK that need relevance scores: import them from here instead of `fi.evals.metrics`."""

from typing import Never

from karat.compat.futureagi.left_out import refuse
from karat.compat.futureagi.metrics.rag import MRR, NDCG, PrecisionAtK, RAGRankingInput, RecallAtK

__all__ = ["MRR", "NDCG", "PrecisionAtK", "RAGRankingInput", "RecallAtK"]


def __getattr__(name: str) -> Never:
    refuse(__name__, name)
