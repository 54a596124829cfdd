"""A small example for each choice of a convention, on which its values give different scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

import karat
from karat.conventions import CONVENTIONS, STANDARD, Convention


@dataclass(frozen=True)
class Example:
    """One or two queries, a metric, and the values to show."""

    metric: str
    retrieved: Any
    gold: Any
    values: tuple[Any, ...]
    others: Mapping[str, Any] = field(default_factory=dict)
    """Other choices that the example needs."""
    cited: tuple[str, ...] | None = None
    """The ids that the answer cites, if the example is of citations."""

    def score(self, choice: str, value: Any) -> float:
        """The mean under STANDARD with this choice replaced."""
        c = replace(STANDARD, name="example", **{**self.others, choice: value})
        if self.cited is not None:
            sample = {"retrieved": self.retrieved[0], "gold": self.gold[0], "cited": self.cited}
            return karat.evaluate([sample], self.metric, judge="ids", convention=c).mean[self.metric]
        return karat.evaluate(
            metrics=self.metric, retrieved=self.retrieved, gold=self.gold, judge="ids", convention=c
        ).mean[self.metric]

    def __str__(self) -> str:
        cited = "" if self.cited is None else f", cited `{list(self.cited)}`"
        return f"`{self.metric}` of retrieved `{_plain(self.retrieved)}`, gold `{_plain(self.gold)}`{cited}"


EXAMPLES = {
    "precision_over": Example("precision@5", [["A", "A", "X"]], [["A", "B", "C"]], ("k", "returned", "different")),
    "recall_over": Example("recall@5", [["A", "A", "X"]], [["A", "B", "C"]], ("gold", "retrieved")),
    "ap_over": Example(
        "ap@3", [["X", "A", "Y", "B"]], [["A", "B", "C", "D"]], ("gold", "retrieved", "found", "reachable")
    ),
    "ap_counts": Example("ap@3", [["X", "A", "B"]], [["A", "B"]], ("so_far", "there")),
    "recall_level": Example("iprec@0.4", [["A", "X", "Y", "B"]], [["A", "B", "C"]], ("up", "nearest")),
    "gain": Example("ndcg@2", [["B", "A"]], [{"A": 3, "B": 1}], ("linear", "exponential", "binary")),
    "discount": Example("ndcg@2", [["X", "A"]], [["A"]], ("log2", "log2_from_two")),
    "ideal": Example("ndcg@3", [["X", "A", "A"]], [["A"]], ("k", "grown"), {"per_rank": ("ndcg",)}),
    "ideal, short": Example("ndcg@2", [["A"]], [["A", "B", "C"]], ("k", "returned", "all", "retrieved")),
    "unretrieved": Example("ndcg@5", [["A"]], [["A", "B"]], ("absent", "last")),
    "rbp_of": Example("rbp", [["A"]], [{"A": 3}], ("rank", "grade")),
    "aspect_scores": Example(
        "err_ia@1", [["A"]], [[{"id": "A", "aspects": ["x", "y"]}, {"id": "B", "aspects": "z"}]], ("bounded", "ndeval")
    ),
    "unjudged": Example("rr", [["X", "A", "B"]], [{"A": 1, "B": 0}], ("irrelevant", "removed")),
    "pooled": Example("judged@2", [["A", "B"]], [{"A": 1, "B": -1}], ("unjudged", "judged")),
    "duplicates": Example("ap", [["A", "X", "A", "B"]], [["A", "B"]], ("once", "remove", "last")),
    "per_rank": Example("precision@5", [["A", "A", "X"]], [["A", "B", "C"]], ((), ("precision",))),
    "clamped": Example("ndcg@2", [["A", "A"]], [["A"]], (False, True), {"per_rank": ("ndcg",)}),
    "order": Example("rr", [[("a", 0.1), ("b", 0.2)]], [["a"]], ("listed", "score")),
    "ties": Example(
        "ndcg@3", [{"b": 1.0, "a": 1.0, "c": 1.0}], [["a"]], ("id_descending", "id_ascending", "given", "averaged")
    ),
    "scores": Example("rr", [{"a": 1.00000001, "b": 1.0}], [["a"]], ("single", "double")),
    "above_zero": Example("recall@1", [{"a": -0.5, "b": -1.5}], [["a"]], (False, True)),
    "own_id": Example("rr", {"A": ["A", "B"]}, {"A": ["B"]}, ("keep", "drop")),
    "empty_gold": Example("recall@5", [["A"]], [[]], (nan, 0.0)),
    "nothing_judged": Example("recall@5", [["A"]], [[]], (None, nan), {"empty_gold": 0.0}),
    "empty_retrieved": Example("recall@5", [[]], [["A"]], (0.0, 1.0, nan)),
    "both_empty": Example("recall@5", [[]], [[]], (None, 1.0)),
    "none_found": Example("recall@5", [["X"]], [["A"]], (0.0, nan)),
    "nothing_cited": Example("citation_recall", [["A"]], [["A"]], (0.0, nan), cited=()),
    "missing": Example("rr", {"q1": ["A"]}, {"q1": ["A"], "q2": ["B"]}, ("zero", "drop")),
    "rounding": Example("rr", [["X", "Y", "A"]], [["A"]], (None, 4, 5)),
}


CONCERNS = {
    "precision_over": {"precision", "f1"},
    "recall_over": {"recall", "r_precision", "f1"},
    "ap_over": {"ap"},
    "ap_counts": {"ap"},
    "nothing_cited": {"citation_precision", "citation_recall"},
    "rbp_of": {"rbp"},
    "aspect_scores": {"alpha_ndcg", "err_ia"},
    "recall_level": {"iprec"},
    "gain": {"ndcg"},
    "discount": {"ndcg"},
    "ideal": {"ndcg"},
    "unretrieved": {"ndcg"},
}
"""The metrics that a choice affects, if not all."""


def who(choice: str, value: Any) -> list[str]:
    """The conventions with this choice, and the metrics it applies to if not all."""
    names = []
    for c in CONVENTIONS.values():
        own = set(c.metrics) - set(c.renames)
        if c.metrics and choice in CONCERNS and not own & CONCERNS[choice]:
            continue
        if same(choice, c, value):
            names.append(c.name)
        else:
            special = [name for name in c.exceptions if same(choice, c.of(name.partition("@")[0]), value)]
            names += [f"{c.name} ({', '.join(special)})"] if special else []
    return names


def same(choice: str, c: Convention, value: Any) -> bool:
    """True if a convention makes this choice; `per_rank` lists metrics, so any list is the same."""
    own = getattr(c, choice)
    if choice == "per_rank":
        return bool(own) == bool(value)
    return bool(own == value or (own != own and value != value))


def _plain(by_query: Any) -> str:
    one = by_query[0] if isinstance(by_query, list) else by_query
    return str(one).replace("'", "")
