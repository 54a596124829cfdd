"""The bundled example: a small help centre, its queries with gold, and two simple retrievers."""

from karat.demo.data import Document, Query, corpus, queries
from karat.demo.retrievers import RETRIEVERS, bm25, first_words

__all__ = ["RETRIEVERS", "Document", "Query", "bm25", "corpus", "first_words", "queries"]
