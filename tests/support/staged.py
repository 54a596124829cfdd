"""Samples of three stages, and the gold that moved between them."""

from __future__ import annotations


def sample(number, gold, **stages):
    return {"id": number, "query": f"{number}?", "gold": list(gold), "stages": {n: list(r) for n, r in stages.items()}}


SAMPLES = [
    sample("q1", "a", bm25="xya", dense="xza", reranked="axy"),
    sample("q2", "b", bm25="xby", dense="xyz", reranked="bxz"),
    sample("q3", "cd", bm25="cxy", dense="xyd", reranked="cdx"),
    sample("q4", "e", bm25="exy", dense="xey", reranked="xye"),
    sample("q5", "f", bm25="xyz", dense="yxw", reranked="yxz"),
]
"""The example of docs/stages.md."""


def moves(found):
    return [(move.query_id, move.gold, move.before, move.after) for move in found]
