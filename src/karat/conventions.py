"""What a metric's name means: every choice on which libraries differ, as one frozen record.

A metric never decides such a thing itself; it asks the convention it is given. `STANDARD` is what
trec_eval does wherever trec_eval has an opinion.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import nan
from typing import Any, Literal, get_args, get_origin, get_type_hints

from karat.errors import BadArgument, unknown

_PER_RANK = ("recall", "precision", "ap", "ndcg")


def _choice(default: Any, question: str) -> Any:
    """A field of the record, together with the question that it answers."""
    return field(default=default, metadata={"question": question})


@dataclass(frozen=True, kw_only=True)
class Convention:
    """One library's choices; two runs compare only under the same one."""

    name: str
    precision_over: Literal["k", "returned"] = _choice(
        "k", "Precision@k divides by k, or by the number of items that came back within k?"
    )
    ap_over: Literal["gold", "found"] = _choice(
        "gold", "Average precision divides by all relevant gold items, or by those that were found?"
    )
    gain: Literal["linear", "exponential", "binary"] = _choice(
        "linear", "What is an item of grade g worth in nDCG: g, 2^g - 1, or 1?"
    )
    discount: Literal["log2", "log2_from_two"] = _choice(
        "log2", "Is rank i divided by log2(i + 1), or by log2(i) with ranks 1 and 2 weighing the same?"
    )
    ideal: Literal["k", "returned", "all", "retrieved"] = _choice(
        "k",
        "Is the ideal ranking of nDCG the gold cut at k, cut at the number of items returned, not cut at all, "
        "or what was retrieved, relevant items first?",
    )
    duplicates: Literal["once", "remove"] = _choice(
        "once",
        "Does an item that is returned again keep its rank and earn nothing, "
        "or leave the ranking before it is measured?",
    )
    per_rank: tuple[str, ...] = _choice(
        (),
        "Which metrics count every relevant rank, copies and all, rather than every gold item once "
        "(for precision: every copy)?",
    )
    clamped: bool = _choice(False, "Are scores above 1, which counting copies can give, cut to 1?")
    ties: Literal["id_descending", "id_ascending", "given"] = _choice(
        "id_descending", "In which order stand items of equal score?"
    )
    scores: Literal["single", "double"] = _choice(
        "single", "Scores are equal when they agree in single, or in double precision?"
    )
    empty_gold: float = _choice(nan, "What does a query without relevant gold score in a metric that needs gold?")
    empty_retrieved: float = _choice(0.0, "What is the precision of a query for which nothing came back?")
    missing: Literal["zero", "drop"] = _choice(
        "zero", "Does a gold query that the run lacks score 0, or is it left out?"
    )
    rounding: int | None = _choice(None, "To how many decimal places are means rounded?")

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(Convention).items():
            value, allowed = getattr(self, name), get_args(hint)
            if get_origin(hint) is Literal and value not in allowed:
                raise BadArgument(f"the convention's {name} is one of {', '.join(allowed)}", got=value)
        if not set(self.per_rank) <= set(_PER_RANK):
            raise BadArgument(f"the convention's per_rank is some of {', '.join(_PER_RANK)}", got=self.per_rank)
        for name in ("empty_gold", "empty_retrieved"):
            if not isinstance(getattr(self, name), int | float):
                raise BadArgument(f"the convention's {name} is a number", got=getattr(self, name))
        if self.rounding is not None and not isinstance(self.rounding, int):
            raise BadArgument("the convention's rounding is a number of places, or None", got=self.rounding)

    def choices(self) -> dict[str, Any]:
        """Every choice by its name, without the name of the convention."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "name"}

    def __str__(self) -> str:
        return self.name


def questions() -> dict[str, str]:
    """For each choice, the question that it answers."""
    return {f.name: f.metadata["question"] for f in fields(Convention) if f.name != "name"}


STANDARD = Convention(name="standard")

CONVENTIONS: dict[str, Convention] = {
    c.name: c
    for c in (
        STANDARD,
        Convention(name="futureagi"),
        Convention(
            name="futureagi-server",
            precision_over="returned",
            ideal="returned",
            per_rank=("precision", "ap", "ndcg"),
            clamped=True,
        ),
        Convention(name="ragas", ap_over="found", per_rank=("ap",), precision_over="returned"),
        Convention(
            name="remem",
            discount="log2_from_two",
            gain="binary",
            ideal="retrieved",
            per_rank=("ndcg",),
            empty_gold=0.0,
            rounding=4,
        ),
    )
}


def find_convention(wanted: str | Convention) -> Convention:
    """The convention of this name, or the record itself."""
    if isinstance(wanted, Convention):
        known = CONVENTIONS.get(wanted.name, wanted)
        if str(known.choices()) != str(wanted.choices()):
            raise BadArgument(f'"{wanted.name}" is the name of another convention; give yours its own')
        return wanted
    if isinstance(wanted, str) and wanted in CONVENTIONS:
        return CONVENTIONS[wanted]
    raise unknown("convention", str(wanted), CONVENTIONS, 'convention="standard"')
