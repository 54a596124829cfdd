"""The `Convention` record: every choice on which libraries differ in computing a metric.

Metrics make none of these choices themselves; they read them from the convention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from math import isinf, nan
from typing import Any, Literal, get_args, get_origin, get_type_hints

from karat._internal.grammar import write_call
from karat.errors import BadArgument, nearest

COUNTED = ("recall", "precision", "ap", "ndcg")
"""The metrics that can count copies."""
_NUMBERS = ("empty_gold", "nothing_judged", "empty_retrieved", "both_empty", "none_found", "nothing_cited")
_MOST_PLACES = 15
_WORDS = {"undefined": nan, "nan": nan, "none": None}
"""Values that are not numbers, as they are written in a setting."""


def _choice(default: Any, question: str) -> Any:
    """A field with the question that it answers."""
    return field(default=default, metadata={"question": question})


@dataclass(frozen=True, kw_only=True)
class Convention:
    """The definition of the metrics in one library. Runs are comparable only under the same convention.

    Every field is a choice with karat's standard as the default; docs/conventions.md explains each with an example.
    Derive a custom convention with `dataclasses.replace` and give it a new name.

    Example:
        >>> mine = karat.Convention(name="mine", gain="exponential", ties="given")
        >>> round(karat.score("ndcg@2", ["b", "a"], {"a": 3, "b": 1}, convention=mine), 4)
        0.7098
    """

    name: str
    precision_over: Literal["k", "returned", "different"] = _choice(
        "k",
        "Does precision@k divide by k, by the number of items retrieved within k, or by the number of distinct ones?",
    )
    recall_over: Literal["gold", "retrieved"] = _choice(
        "gold", "Does recall divide by all relevant gold items, or by those retrieved at any rank?"
    )
    ap_over: Literal["gold", "retrieved", "found", "reachable"] = _choice(
        "gold",
        "Does average precision divide by all relevant gold items, by those retrieved at any rank, "
        "by those found within k, or by as many as fit into k?",
    )
    ap_counts: Literal["so_far", "there"] = _choice(
        "so_far",
        "Does average precision count, at the rank of each gold item, all gold items found so far, "
        "or only those found at that rank?",
    )
    recall_level: Literal["up", "nearest"] = _choice(
        "up",
        "How many of R gold items make a recall of r in iprec@r: r·R rounded up, as in trec_eval 9, or to the nearest "
        "whole number, as in trec_eval 10?",
    )
    gain: Literal["linear", "exponential", "binary"] = _choice(
        "linear", "What is the gain of grade g in nDCG: g, 2^g - 1, or 1?"
    )
    discount: Literal["log2", "log2_from_two"] = _choice(
        "log2", "Is the gain at rank i divided by log2(i + 1), or by log2(i) with ranks 1 and 2 equal?"
    )
    ideal: Literal["k", "returned", "grown", "all", "retrieved"] = _choice(
        "k",
        "Is the ideal ranking of nDCG the gold cut at k, cut at the number of retrieved items, the same with every "
        "copy added to the gold, all of the gold, or the retrieved items sorted by relevance?",
    )
    unretrieved: Literal["absent", "last"] = _choice(
        "absent", "In nDCG, are gold items that were not retrieved ignored, or ranked last, all tied?"
    )
    rbp_of: Literal["rank", "grade"] = _choice("rank", "Does a relevant item weigh 1 in RBP, or its grade?")
    aspect_scores: Literal["bounded", "ndeval"] = _choice(
        "bounded",
        "Are alpha_ndcg and err_ia at most 1, or as in ndeval, which does not divide err_ia@1 and whose greedy ideal "
        "a ranking can exceed?",
    )
    unjudged: Literal["irrelevant", "removed"] = _choice(
        "irrelevant",
        "Is a retrieved item without a judgement irrelevant, or is it removed before ranks are counted?",
    )
    pooled: Literal["unjudged", "judged"] = _choice(
        "unjudged", "In judged@k, is an item with a grade below 0 (pooled, not judged) unjudged or judged?"
    )
    duplicates: Literal["once", "remove", "last"] = _choice(
        "once",
        "Does a copy of an item keep its rank and count nothing, is it removed before scoring, or is the earlier "
        "copy removed instead?",
    )
    per_rank: tuple[str, ...] = _choice(
        (),
        "Which metrics count every relevant rank, including copies, rather than every gold item once?",
    )
    clamped: bool = _choice(False, "Are scores above 1, which counting copies can produce, clamped to 1?")
    order: Literal["listed", "score"] = _choice(
        "listed", "Do items given as a list keep the order of the list, or are they sorted by score?"
    )
    ties: Literal["id_descending", "id_ascending", "given", "averaged"] = _choice(
        "id_descending",
        "How are items of equal score ordered? Averaged: as given, but nDCG is the mean over all orders.",
    )
    scores: Literal["single", "double"] = _choice("single", "Are scores compared in single or in double precision?")
    above_zero: bool = _choice(False, "Does an item count as relevant only if its retrieval score is above 0?")
    own_id: Literal["keep", "drop"] = _choice(
        "keep", "Is a retrieved item with the id of the query kept, or dropped before scoring?"
    )
    empty_gold: float = _choice(nan, "What is the score of a query without relevant gold?")
    nothing_judged: float | None = _choice(
        None, "And if its gold is empty, without even an irrelevant item? None: the same."
    )
    empty_retrieved: float = _choice(0.0, "What is the score of a query for which nothing was retrieved?")
    both_empty: float | None = _choice(None, "And if it has no gold either? None: the same as any query without gold.")
    none_found: float = _choice(0.0, "What is the score of a query none of whose gold was retrieved at any rank?")
    nothing_cited: float = _choice(0.0, "What is the citation score of a query whose answer cites nothing?")
    missing: Literal["zero", "drop"] = _choice(
        "zero", "Does a gold query that is missing from the results score 0, or is it excluded?"
    )
    rounding: int | None = _choice(None, "To how many decimal places are means rounded?")
    renames: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Metrics that have another meaning in the library: its `recall` may be karat's `hit`."""
    exceptions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    """Other choices for single metrics; "rr@k" is rr with a cutoff."""
    about: str = ""
    """The library, and how it is called."""
    metrics: tuple[str, ...] = ()
    """The metrics that the library has; empty for all."""
    cutoffs: tuple[int, ...] = ()
    """The cutoffs that it supports; empty for all."""
    refuses: tuple[str, ...] = ()
    """The choices for which the library raises an error; karat returns undefined."""

    def __post_init__(self) -> None:
        for name, hint in _hints().items():
            value, allowed = getattr(self, name), get_args(hint)
            if get_origin(hint) is Literal and value not in allowed:
                raise BadArgument(f"{name} of a convention must be one of {', '.join(allowed)}", got=value)
            if hint is bool and not isinstance(value, bool):
                raise BadArgument(f"{name} of a convention must be True or False", got=value)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if name in _NUMBERS and not ((number and not isinf(value)) or (value is None and hint is not float)):
                known = "a number or undefined" if hint is float else "a number, undefined or None"
                raise BadArgument(f"{name} of a convention must be {known}", got=value)
        if not set(self.per_rank) <= set(COUNTED):
            raise BadArgument(f"per_rank of a convention must be some of {', '.join(COUNTED)}", got=self.per_rank)
        if self.rounding is not None and not (isinstance(self.rounding, int) and 0 <= self.rounding <= _MOST_PLACES):
            raise BadArgument(
                f"rounding of a convention must be 0 to {_MOST_PLACES} decimal places, or None", got=self.rounding
            )
        for special in self.exceptions.values():
            if not set(special) <= set(questions()):
                raise BadArgument("exceptions of a convention must be choices", got=dict(special))

    def of(self, metric: str, *, cut: bool = True) -> Convention:
        """The convention for one metric, with or without a cutoff."""
        if (metric, cut) not in self._special:
            self._special[metric, cut] = self._of(metric, cut=cut)
        return self._special[metric, cut]

    @cached_property
    def _special(self) -> dict[tuple[str, bool], Convention]:
        """The conventions for single metrics, as far as they were asked for: checking their choices takes long."""
        return {}

    def _of(self, metric: str, *, cut: bool) -> Convention:
        special = {**self.exceptions.get(metric, {}), **(self.exceptions.get(f"{metric}@k", {}) if cut else {})}
        if not special:
            return self
        refuses = tuple(choice.removeprefix(f"{metric}.") for choice in self.refuses)
        return replace(self, **special, exceptions={}, refuses=refuses)

    def edge_values(self) -> list[float]:
        """The scores of queries without gold, or for which nothing was retrieved or found, as far as defined."""
        values = [getattr(self, name) for name in _NUMBERS]
        return [float(value) for value in values if value is not None and value == value]

    @property
    def ranking_choices(self) -> tuple[object, ...]:
        """The choices that apply to the rankings, before any metric is computed."""
        return (self.order, self.ties, self.scores, self.duplicates, self.own_id)

    def adjusted(self, settings: Mapping[str, Any]) -> Convention:
        """The convention with other choices, for every metric: `standard(ties=given)`; itself if nothing differs."""
        for name in settings:
            if name not in questions():
                close = nearest(name, questions())
                meant = f" Did you mean {close}?" if close else ""
                problem = f'convention "{self.name}" has no setting "{name}".{meant}'
                raise BadArgument(problem, hint=f"one of: {', '.join(questions())}")
        changed, written = self, {}
        for name in (name for name in questions() if name in settings):
            other = changed._with(name, _value(name, settings[name]))
            if str(other.choices()) != str(changed.choices()):
                value = getattr(other, name)
                changed, written[name] = other, "undefined" if value != value else value
        return replace(changed, name=write_call(self.name, **written)) if written else self

    def _with(self, choice: str, value: Any) -> Convention:
        """The convention with another choice, without the exceptions from it."""
        exceptions = {m: {n: v for n, v in own.items() if n != choice} for m, own in self.exceptions.items()}
        return replace(
            self,
            **{choice: value},
            exceptions={metric: own for metric, own in exceptions.items() if own},
            refuses=tuple(refused for refused in self.refuses if refused.rpartition(".")[2] != choice),
        )

    def has(self, metric: str, k: object = None) -> bool:
        """True if the library has this metric with this cutoff."""
        return (not self.metrics or metric in self.metrics) and (not self.cutoffs or k in self.cutoffs)

    def choices(self) -> dict[str, Any]:
        """All choices that affect a score, by name."""
        return {name: getattr(self, name) for name in (*questions(), "renames", "exceptions")}

    def __str__(self) -> str:
        return self.name


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Convention)


@cache
def questions() -> dict[str, str]:
    """The question that each choice answers."""
    return {f.name: f.metadata["question"] for f in fields(Convention) if f.metadata}


def _value(choice: str, given: Any) -> Any:
    """The value of a choice, from a setting."""
    word = given.lower() if isinstance(given, str) else None
    if choice == "per_rank":
        given = () if word == "none" else given
        return (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else given
    if choice in _NUMBERS or choice == "rounding":
        given = _WORDS.get(word, given) if word else given
    return float(given) if choice in _NUMBERS and type(given) is int else given


STANDARD = Convention(name="standard", about="karat's own: as trec_eval, wherever trec_eval defines it")
