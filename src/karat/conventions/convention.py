"""What a metric's name means: every choice on which libraries differ, as one frozen record.

A metric never decides such a thing itself; it asks the convention it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import nan
from typing import Any, Literal, get_args, get_origin, get_type_hints

from karat.errors import BadArgument

COUNTED = ("recall", "precision", "ap", "ndcg")
"""The metrics that may count copies."""
_NUMBERS = ("empty_gold", "nothing_judged", "empty_retrieved", "both_empty", "none_found")


def _choice(default: Any, question: str) -> Any:
    """A field of the record, together with the question that it answers."""
    return field(default=default, metadata={"question": question})


def _mapping() -> Any:
    return field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class Convention:
    """One library's choices; two runs compare only under the same one."""

    name: str
    precision_over: Literal["k", "returned", "different"] = _choice(
        "k", "Precision@k divides by k, by the number of items that came back within k, or by how many different ones?"
    )
    recall_over: Literal["gold", "retrieved"] = _choice(
        "gold", "Recall divides by all relevant gold items, or by those that were retrieved at any rank?"
    )
    ap_over: Literal["gold", "retrieved", "found"] = _choice(
        "gold",
        "Average precision divides by all relevant gold items, by those retrieved at any rank, "
        "or by those found within k?",
    )
    gain: Literal["linear", "exponential", "binary"] = _choice(
        "linear", "What is an item of grade g worth in nDCG: g, 2^g - 1, or 1?"
    )
    discount: Literal["log2", "log2_from_two"] = _choice(
        "log2", "Is rank i divided by log2(i + 1), or by log2(i) with ranks 1 and 2 weighing the same?"
    )
    ideal: Literal["k", "returned", "grown", "all", "retrieved"] = _choice(
        "k",
        "Is the ideal ranking of nDCG the gold cut at k, cut at the number of items returned, the same after every "
        "copy was added to the gold, not cut at all, or what was retrieved, relevant items first?",
    )
    unretrieved: Literal["absent", "last"] = _choice(
        "absent", "Are gold items that were not retrieved nowhere for nDCG, or below the ranking, all tied?"
    )
    rbp_of: Literal["rank", "grade"] = _choice("rank", "Does a relevant rank weigh 1 in RBP, or its grade?")
    duplicates: Literal["once", "remove", "last"] = _choice(
        "once",
        "Does an item that is returned again keep its rank and earn nothing, leave the ranking before it is "
        "measured, or stay while the earlier copy leaves?",
    )
    per_rank: tuple[str, ...] = _choice(
        (),
        "Which metrics count every relevant rank, copies and all, rather than every gold item once "
        "(for precision: every copy)?",
    )
    clamped: bool = _choice(False, "Are scores above 1, which counting copies can give, cut to 1?")
    ties: Literal["id_descending", "id_ascending", "given", "averaged"] = _choice(
        "id_descending",
        "In which order stand items of equal score? Averaged: as given, but nDCG takes the mean over all orders.",
    )
    scores: Literal["single", "double"] = _choice(
        "single", "Scores are equal when they agree in single, or in double precision?"
    )
    above_zero: bool = _choice(False, "Does an item count as relevant only if its score is above 0?")
    own_id: Literal["keep", "drop"] = _choice(
        "keep", "Is a retrieved item whose id is the query's own kept, or dropped before it is measured?"
    )
    empty_gold: float = _choice(nan, "What does a query without relevant gold score in a metric that needs gold?")
    nothing_judged: float | None = _choice(
        None, "And if its gold is empty altogether, without even an irrelevant item? None: the same."
    )
    empty_retrieved: float = _choice(0.0, "What does a query score for which nothing came back?")
    both_empty: float | None = _choice(
        None, "And if there was no gold either? None: the same as any query without gold."
    )
    none_found: float = _choice(0.0, "What does a query score of whose gold nothing was retrieved at any rank?")
    missing: Literal["zero", "drop"] = _choice(
        "zero", "Does a gold query that the run lacks score 0, or is it left out?"
    )
    rounding: int | None = _choice(None, "To how many decimal places are means rounded?")
    renames: Mapping[str, str] = _mapping()
    """Names under which the library computes another metric of karat's: its `recall` may be our `hit`."""
    exceptions: Mapping[str, Mapping[str, Any]] = _mapping()
    """Metrics for which it chooses otherwise; "rr@k" is rr with a cutoff."""
    about: str = ""
    """Whose it is, and how the library is taken to be called."""
    metrics: tuple[str, ...] = ()
    """The metrics that the library has; none listed: all of them."""
    cutoffs: tuple[int, ...] = ()
    """The cutoffs that it knows; none listed: all of them."""
    refuses: tuple[str, ...] = ()
    """The choices whose undefined stands for an error that the library raises."""

    def __post_init__(self) -> None:
        for name, hint in _hints().items():
            value, allowed = getattr(self, name), get_args(hint)
            if get_origin(hint) is Literal and value not in allowed:
                raise BadArgument(f"the convention's {name} is one of {', '.join(allowed)}", got=value)
            if name in _NUMBERS and not (isinstance(value, int | float) or (value is None and hint is not float)):
                raise BadArgument(f"the convention's {name} is a number", got=value)
        if not set(self.per_rank) <= set(COUNTED):
            raise BadArgument(f"the convention's per_rank is some of {', '.join(COUNTED)}", got=self.per_rank)
        if self.rounding is not None and not isinstance(self.rounding, int):
            raise BadArgument("the convention's rounding is a number of places, or None", got=self.rounding)
        for special in self.exceptions.values():
            if not set(special) <= set(questions()):
                raise BadArgument("an exception is made of choices", got=dict(special))

    def of(self, metric: str, *, cut: bool = True) -> Convention:
        """The convention as one metric sees it, asked with or without a cutoff."""
        special = {**self.exceptions.get(metric, {}), **(self.exceptions.get(f"{metric}@k", {}) if cut else {})}
        if not special:
            return self
        refuses = tuple(choice.removeprefix(f"{metric}.") for choice in self.refuses)
        return replace(self, **special, exceptions={}, refuses=refuses)

    @property
    def ranking_choices(self) -> tuple[object, ...]:
        """The choices that act before a metric is asked, on the rankings themselves."""
        return (self.ties, self.scores, self.duplicates, self.own_id)

    def has(self, metric: str, k: object = None) -> bool:
        """Whether the library has this metric, with this cutoff."""
        return (not self.metrics or metric in self.metrics) and (not self.cutoffs or k in self.cutoffs)

    def choices(self) -> dict[str, Any]:
        """Everything that decides a number, by its name."""
        return {name: getattr(self, name) for name in (*questions(), "renames", "exceptions")}

    def __str__(self) -> str:
        return self.name


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Convention)


@cache
def questions() -> dict[str, str]:
    """For each choice, the question that it answers."""
    return {f.name: f.metadata["question"] for f in fields(Convention) if f.metadata}


STANDARD = Convention(name="standard", about="karat's own: what trec_eval does wherever trec_eval has an opinion")
