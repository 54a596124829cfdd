"""What a choice means, as a sentence about a library that makes it."""

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
        "gold": "recall is divided by all the gold",
        "retrieved": "recall is divided by the gold that was retrieved at any rank, not by all of it",
    },
    "ap_over": {
        "gold": "average precision is divided by all the gold",
        "retrieved": "average precision is divided by the gold that was retrieved at any rank, not by all of it",
        "found": "average precision is divided by the gold that was found, not by all of it",
    },
    "gain": {
        "linear": "an item of grade g gains g in nDCG",
        "exponential": "an item of grade g gains 2^g - 1 in nDCG, not g",
        "binary": "every relevant item gains 1 in nDCG, whatever its grade",
    },
    "discount": {
        "log2": "rank i is divided by log2(i + 1) in nDCG",
        "log2_from_two": "ranks 1 and 2 weigh the same in nDCG",
    },
    "ideal": {
        "k": "the ideal of nDCG is the gold, best first, cut at {k}",
        "returned": "the ideal of nDCG is cut at {returned}, not at {k}",
        "grown": "each copy is added to the gold, and the ideal of nDCG is cut at {returned}, not at {k}",
        "all": "the ideal of nDCG holds {gold}, and is not cut at {k}",
        "retrieved": "the ideal of nDCG is what was retrieved, relevant items first: what was missed costs nothing",
    },
    "unretrieved": {
        "absent": "gold that was not retrieved gains nothing",
        "last": "gold that was not retrieved stands below the ranking, all tied, and gains in nDCG within {k}",
    },
    "rbp_of": {
        "rank": "a relevant rank weighs 1 in RBP",
        "grade": "a relevant rank weighs its grade in RBP, which so may exceed 1",
    },
    "duplicates": {
        "once": "a copy keeps its rank and earns nothing",
        "remove": "copies leave the ranking before ranks are counted",
        "last": "of an item that is returned again only the last place counts, and the ranks close up",
    },
    "per_rank": {"": "{copy} counts again in {metrics}"},
    "clamped": {True: "a score above 1 is cut to 1", False: "scores are not cut"},
    "ties": {
        "id_descending": "items of equal score stand by id, descending",
        "id_ascending": "items of equal score stand by id, ascending, not descending",
        "given": "items of equal score stand in the order given, not by id",
        "averaged": "nDCG is the mean over all orders of items with equal scores; else they stand in the order given",
    },
    "scores": {
        "single": "scores are compared in single precision",
        "double": "scores are compared in double precision, not in single",
    },
    "above_zero": {
        True: "an item whose score is not above 0 never counts as relevant",
        False: "the sign of a score does not matter",
    },
    "own_id": {
        "keep": "an item whose id is the query's own is an item like others",
        "drop": "an item whose id is the query's own is dropped from the ranking",
    },
    "empty_gold": {"": "a query without relevant gold {scores}"},
    "nothing_judged": {"": "a query whose gold is empty altogether {scores}"},
    "empty_retrieved": {"": "a query for which nothing came back {scores}"},
    "both_empty": {"": "a query with neither gold nor anything retrieved {scores}"},
    "none_found": {"": "a query of whose gold nothing was retrieved {scores}"},
    "missing": {
        "zero": "a query that the run lacks scores 0",
        "drop": "a query that the run lacks is left out of the mean, and not 0",
    },
    "rounding": {None: "means are not rounded", "": "means are rounded to {value} decimal places"},
}
"""A sentence for each value of each choice; "" stands for whatever value."""

GENERAL = {
    "k": "k",
    "returned": "the number of items that came back",
    "different": "the number of different items that came back",
    "gold": "all the gold",
    "metrics": "the metrics that count ranks",
    "copy": "every copy of a relevant item",
}
"""What stands in a sentence that is about no data in particular."""


def sentence(choice: str, c: Convention, words: Mapping[str, str] = GENERAL) -> str:
    """What a convention's choice means; `words` are the numbers of the data at hand, or general ones."""
    value = getattr(c, choice)
    known = WORDS[choice]
    about = {**GENERAL, **words, "value": value, "scores": _scores(value, refused=choice in c.refuses)}
    return known[value if value in known else ""].format(**about)


def differing(c: Convention) -> list[str]:
    """The choices that a convention makes otherwise than STANDARD."""
    return [name for name in WORDS if not _same(getattr(c, name), getattr(STANDARD, name))]


def _scores(value: Any, *, refused: bool) -> str:
    if refused:
        return "raises an error: left out here"
    if value is None:
        return "is treated as any other"
    return "is undefined, and not in the mean" if value != value else f"scores {value}, and is in the mean"


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))
