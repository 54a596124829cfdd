"""Conventions in words: a sentence for each choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat.conventions.convention import STANDARD, Convention

WORDS: dict[str, dict[Any, str]] = {
    "precision_over": {
        "k": "precision is divided by {k}",
        "returned": "precision is divided by {returned}, not by {k}",
        "different": "precision is divided by {different}, not by {k}",
    },
    "recall_over": {
        "gold": "recall is divided by all gold items",
        "retrieved": "recall is divided by the gold items retrieved at any rank, not by all",
    },
    "ap_over": {
        "gold": "average precision is divided by all gold items",
        "retrieved": "average precision is divided by the gold items retrieved at any rank, not by all",
        "found": "average precision is divided by the gold items found, not by all",
        "reachable": "average precision is divided by the gold items that fit into {k}, if these are fewer than all",
    },
    "ap_counts": {
        "so_far": "average precision counts, at the rank of each gold item, all gold items found so far",
        "there": "average precision counts, at each rank, only the gold items found there: a mean of reciprocal ranks",
    },
    "recall_level": {
        "up": "a recall level of r takes r times the gold items in interpolated precision, rounded up",
        "nearest": "a recall level of r takes r times the gold items in interpolated precision, rounded to the nearest",
    },
    "gain": {
        "linear": "grade g has gain g in nDCG",
        "exponential": "grade g has gain 2^g - 1 in nDCG, not g",
        "binary": "every relevant item has gain 1 in nDCG, whatever its grade",
    },
    "discount": {
        "log2": "the gain at rank i is divided by log2(i + 1) in nDCG",
        "log2_from_two": "ranks 1 and 2 have the same weight in nDCG",
    },
    "ideal": {
        "k": "the ideal ranking of nDCG is the gold, best first, cut at {k}",
        "returned": "the ideal ranking of nDCG is cut at {returned}, not at {k}",
        "grown": "each copy is added to the gold, and the ideal ranking of nDCG is cut at {returned}, not at {k}",
        "all": "the ideal ranking of nDCG contains {gold} and is not cut at {k}",
        "retrieved": "the ideal ranking of nDCG is the retrieved items sorted by relevance: misses cost nothing",
    },
    "unretrieved": {
        "absent": "gold that was not retrieved has no gain",
        "last": "gold that was not retrieved is ranked last, all tied, and has a gain in nDCG within {k}",
    },
    "rbp_of": {
        "rank": "a relevant item weighs 1 in RBP",
        "grade": "a relevant item weighs its grade in RBP, which can exceed 1",
    },
    "aspect_scores": {
        "bounded": "alpha_ndcg and err_ia are at most 1",
        "ndeval": "err_ia@1 is not divided by the number of aspects, and alpha_ndcg can exceed 1",
    },
    "unjudged": {
        "irrelevant": "a retrieved item without a judgement is irrelevant",
        "removed": "retrieved items without a judgement are removed before ranks are counted",
    },
    "pooled": {
        "unjudged": "an item with a grade below 0 is unjudged",
        "judged": "an item with a grade below 0 is judged in judged@k",
    },
    "duplicates": {
        "once": "a copy keeps its rank and counts nothing",
        "remove": "copies are removed before ranks are counted",
        "last": "only the last copy of an item counts; earlier ones are removed before ranks are counted",
    },
    "per_rank": {"": "{copy} counts again in {metrics}"},
    "clamped": {True: "scores above 1 are clamped to 1", False: "scores are not clamped"},
    "order": {
        "listed": "items given as a list keep the order of the list",
        "score": "items given as a list are sorted by score, if they have scores",
    },
    "ties": {
        "id_descending": "ties are ordered by id, descending",
        "id_ascending": "ties are ordered by id, ascending, not descending",
        "given": "ties stay in the order given, not by id",
        "averaged": "nDCG is the mean over all orders of ties; for other metrics ties stay in the order given",
    },
    "scores": {
        "single": "scores are compared in single precision",
        "double": "scores are compared in double precision, not single",
    },
    "above_zero": {
        True: "an item with a retrieval score of 0 or less is never relevant",
        False: "the sign of a retrieval score does not matter",
    },
    "own_id": {
        "keep": "an item with the id of the query is treated like any other",
        "drop": "an item with the id of the query is dropped from the ranking",
    },
    "empty_gold": {"": "a query without relevant gold {scores}"},
    "nothing_judged": {"": "a query with empty gold {scores}"},
    "empty_retrieved": {"": "a query for which nothing was retrieved {scores}"},
    "both_empty": {"": "a query with neither gold nor results {scores}"},
    "none_found": {"": "a query none of whose gold was retrieved {scores}"},
    "nothing_cited": {"": "a query whose answer cites nothing {scores}"},
    "missing": {
        "zero": "a query that is missing from the results scores 0",
        "drop": "a query that is missing from the results is excluded from the mean instead of scoring 0",
    },
    "rounding": {None: "means are not rounded", "": "means are rounded to {value} decimal places"},
}
"""A sentence for each value of each choice; "" is any other value."""

GENERAL = {
    "k": "k",
    "returned": "the number of items retrieved",
    "different": "the number of distinct items retrieved",
    "gold": "all gold items",
    "metrics": "the metrics that count ranks",
    "copy": "every copy of a relevant item",
}
"""The words for the numbers of particular data."""


def sentence(choice: str, c: Convention, words: Mapping[str, str] = GENERAL) -> str:
    """A choice of a convention as a sentence; `words` may have the numbers of particular data."""
    value = getattr(c, choice)
    known = WORDS[choice]
    about = {**GENERAL, **words, "value": value, "scores": _scores(value, refused=choice in c.refuses)}
    return known[value if value in known else ""].format(**about)


def differing(c: Convention) -> list[str]:
    """The choices in which a convention differs from STANDARD."""
    return [name for name in WORDS if not _same(getattr(c, name), getattr(STANDARD, name))]


def _scores(value: Any, *, refused: bool) -> str:
    if refused:
        return "raises an error: excluded here"
    if value is None:
        return "is treated like any other"
    return "is undefined and excluded from the mean" if value != value else f"scores {value}, included in the mean"


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))
