"""Edge cases: an example of each, what karat does, and the expected scores.

The tests check the scores; docs/edge-cases.md is generated from the same table.
"""

from __future__ import annotations

from math import log2, nan
from typing import Any, NamedTuple


class Edge(NamedTuple):
    """One decision with an example."""

    name: str
    decision: str
    retrieved: Any
    gold: Any
    scores: dict[str, float]
    judge: str = "auto"


DISCOUNT = [1 / log2(rank + 1) for rank in range(1, 10)]

EDGES = [
    Edge(
        "empty gold",
        "Undefined in every metric that needs gold; counted in `run.undefined` and excluded from the mean.",
        {"q": ["A", "B"]},
        {"q": []},
        {"recall@5": nan, "precision@5": nan, "ndcg@5": nan, "rr": nan, "judged@5": 0.0},
    ),
    Edge(
        "nothing retrieved",
        "0: the retriever failed. `judged@k` is undefined.",
        {"q": []},
        {"q": ["A"]},
        {"recall@5": 0.0, "precision@5": 0.0, "ndcg@5": 0.0, "rr": 0.0, "judged@5": nan},
    ),
    Edge(
        "both empty",
        "Undefined: there was nothing to find. It is not scored 1.",
        {"q": []},
        {"q": []},
        {"recall@5": nan, "precision@5": nan, "ndcg@5": nan, "rr": nan},
    ),
    Edge(
        "k greater than the number of retrieved items",
        "Precision still divides by k; missing items count as irrelevant. Without k it divides by the number of items.",
        {"q": ["A"]},
        {"q": ["A", "B", "C"]},
        {"recall@5": 1 / 3, "precision@5": 0.2, "precision": 1.0, "ndcg@5": 1 / sum(DISCOUNT[:3])},
    ),
    Edge(
        "k smaller than the gold",
        "Recall divides by all gold; the ideal ranking of nDCG is cut at k; `recall_capped` divides by at most k.",
        {"q": ["A", "B"]},
        {"q": ["A", "B", "C"]},
        {"recall@2": 2 / 3, "ndcg@2": 1.0, "recall_capped@2": 1.0, "recall_all@2": 0.0},
    ),
    Edge(
        "duplicate retrieved",
        "Keeps its rank and counts nothing the second time.",
        {"q": ["A", "A", "B"]},
        {"q": ["A", "B", "C"]},
        {
            "recall@2": 1 / 3,
            "precision@2": 0.5,
            "precision@3": 2 / 3,
            "ndcg@3": (DISCOUNT[0] + DISCOUNT[2]) / sum(DISCOUNT[:3]),
            "ap": (1 / 1 + 2 / 3) / 3,
        },
    ),
    Edge(
        "duplicate gold",
        "One gold item; the better of two grades counts.",
        {"q": ["A"]},
        {"q": [{"id": "A", "grade": 1}, {"id": "A", "grade": 3}]},
        {"recall@1": 1.0, "precision@1": 1.0, "ndcg@1": 1.0},
    ),
    Edge(
        "a list with scores",
        "Keeps its order, whatever the scores: they may be distances. `order=score` sorts it.",
        {"q": [{"id": "A", "score": 0.1}, {"id": "B", "score": 0.2}]},
        {"q": ["A"]},
        {"rr": 1.0, "recall@1": 1.0},
    ),
    Edge(
        "ties in a dict of scores or a long table",
        "By id, descending, with scores in single precision, as in trec_eval.",
        {"q": {"A": 1.0, "B": 1.0, "C": 1.0}},
        {"q": ["B"]},
        {"rr": 0.5, "recall@1": 0.0, "recall@2": 1.0},
    ),
    Edge(
        "a query missing from the results",
        "0, and counted in `run.provenance.missing`: excluding it would raise the mean.",
        {"q": ["A"]},
        {"q": ["A"], "lost": ["B"]},
        {"recall@1": 0.5, "rr": 0.5},
    ),
    Edge(
        "a query without gold in the results",
        "Ignored, and counted in `run.provenance.extra`.",
        {"q": ["A"], "more": ["B"]},
        {"q": ["A"]},
        {"recall@1": 1.0, "rr": 1.0},
    ),
    Edge(
        "grades of 0 and below",
        "Not relevant. Grade 0 is judged irrelevant, which bpref uses; below 0 is pooled and not judged; no gain.",
        {"q": ["Z", "N", "A"]},
        {"q": {"A": 1, "Z": 0, "N": -1}},
        {
            "recall@3": 1.0,
            "precision@3": 1 / 3,
            "rr": 1 / 3,
            "ndcg@3": DISCOUNT[2],
            "bpref": 0.0,
            "judged@3": 2 / 3,
        },
    ),
    Edge(
        "unjudged items",
        "Count as irrelevant in every metric except bpref, which ignores them; `judged@k` is the judged share.",
        {"q": ["X", "A", "Y", "Z"]},
        {"q": {"A": 1, "Z": 0}},
        {"precision@2": 0.5, "rr": 0.5, "bpref": 1.0, "judged@4": 0.5},
    ),
    Edge(
        "alternatives in the gold",
        "One item of a group is enough; recall counts the group once, precision every rank with a member.",
        {"q": ["B", "A", "X"]},
        {"q": [{"id": "A", "group": 1}, {"id": "B", "group": 1}, {"id": "C"}]},
        {"recall@1": 0.5, "recall@3": 0.5, "precision@3": 2 / 3, "rr": 1.0},
    ),
    Edge(
        "several chunks of one document",
        "With `at=doc` the document is found at its first chunk; the others keep their ranks and count nothing.",
        {"q": [{"id": "A1", "doc": "A"}, {"id": "A2", "doc": "A"}, {"id": "B1", "doc": "B"}]},
        {"q": ["A", "B"]},
        {"recall@2": 0.5, "recall@3": 1.0, "precision@3": 2 / 3},
        "ids(at=doc)",
    ),
    Edge(
        "a blank text",
        "Equal only to another blank text; not contained in any text, and not similar to any.",
        {"q": ["", "one"]},
        {"q": ["one", "two"]},
        {"recall@1": 0.0, "recall@2": 0.5},
        "contains",
    ),
    Edge(
        "a quote across two chunks",
        "Found at the rank at which enough of it is covered; both ranks are relevant.",
        {"q": [{"doc": "A", "start": 0, "end": 40}, {"doc": "A", "start": 40, "end": 80}]},
        {"q": [{"doc": "A", "start": 0, "end": 100}]},
        {"recall@1": 0.0, "recall@2": 1.0, "precision@2": 1.0, "span_recall@1": 0.4, "span_precision@2": 1.0},
        "spans",
    ),
    Edge(
        "overlapping or repeated chunks",
        "The overlap is counted once.",
        {"q": [{"doc": "A", "start": 0, "end": 10}, {"doc": "A", "start": 5, "end": 15}]},
        {"q": [{"doc": "A", "start": 0, "end": 30}]},
        {"span_recall@2": 0.5, "span_precision@2": 1.0, "span_iou@2": 0.5, "recall@2": 1.0},
        "spans",
    ),
    Edge(
        "a budget below the first item",
        "Nothing fits, so nothing is retrieved: 0.",
        {"q": ["one two three", "four"]},
        {"q": ["four"]},
        {"recall@2t": 0.0, "precision@2t": 0.0, "recall@4t": 1.0, "precision@4t": 0.5},
        "exact",
    ),
]


class Many(NamedTuple):
    """A decision on matches that are not one to one, as text and span judges produce them."""

    name: str
    decision: str
    ranking: list[int]
    satisfies: dict[int, set[int]]
    gold: int
    scores: dict[str, float]


MANY = [
    Many(
        "two chunks on one gold item",
        "Precision counts both ranks; recall, AP and nDCG count the gold item once, at its first rank.",
        [0, 1],
        {0: {0}, 1: {0}},
        2,
        {"precision@2": 1.0, "recall@2": 0.5, "ap": 0.5, "ndcg@2": 1 / sum(DISCOUNT[:2])},
    ),
    Many(
        "one chunk on two gold items",
        "Recall counts both; precision counts one rank; AP and nDCG give the second the next place, so that a chunk "
        "with all the gold is perfect and no score exceeds 1.",
        [0],
        {0: {0, 1}},
        2,
        {"precision@1": 1.0, "recall@1": 1.0, "ap": 1.0, "ndcg@2": 1.0, "ndcg@1": 1.0},
    ),
]
