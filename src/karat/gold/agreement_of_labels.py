"""Agreement of people who label the same items: Cohen's kappa of each two, Krippendorff's alpha of all.

The person "settled" settles disagreements and is not compared. A model that gave its opinion is compared with each
person, by the answers that were given without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import NamedTuple

from karat._internal.label_lines import SETTLED, Key, Label, by_item
from karat.stats.agreement import Kind, alpha, cohen_kappa

MODEL = "the model"
"""The name under which the opinions of the model are compared."""


class PairAgreement(NamedTuple):
    """The agreement of two people on the items that both graded."""

    first: str
    second: str
    items: int
    same: int
    """Items with the same grade from both."""
    kappa: float
    """Cohen's kappa; NaN if both always give the same one grade."""


class LabelAgreement(NamedTuple):
    """The agreement of all people."""

    pairs: list[PairAgreement]
    alpha: float
    """Krippendorff's alpha; NaN if no item has two grades, or all grades are equal."""
    items: int
    """Items with grades from at least two people."""
    disagreements: int
    """Items to which people gave different grades."""
    unsettled: int
    """Those that the person "settled" has not decided."""


def agreement_of_labels(latest: Mapping[Key, Label], *, kind: Kind = "interval") -> LabelAgreement:
    """The agreement of the people.

    Args:
        latest: the labels that stand, `LabelFile.latest()`.
        kind: the distance of two grades in alpha: "interval", by their squared difference, or "nominal".
    """
    rows: list[list[float]] = []
    both: list[tuple[tuple[str, float], tuple[str, float]]] = []
    differ = unsettled = 0
    for labels in by_item(latest).values():
        own = {by: one.grade for by, one in labels.items() if by != SETTLED and one.grade is not None}
        if len(own) < 2:
            continue
        rows.append([*own.values()])
        both += combinations(sorted(own.items()), 2)
        if len({*own.values()}) > 1:
            settled = labels.get(SETTLED)
            differ += 1
            unsettled += settled is None or settled.answer == "skip"
    value = alpha(rows, kind) if rows else float("nan")
    return LabelAgreement(_pairs(both), value, len(rows), differ, unsettled)


def agreement_with_model(unswayed: Mapping[Key, Label]) -> list[PairAgreement]:
    """The agreement of each person with the model.

    Args:
        unswayed: the labels that were given without its opinion, `StandingLabels.unswayed()`.
    """
    return _pairs(
        ((by, one.grade), (MODEL, one.model))
        for (_, _, by), one in unswayed.items()
        if by != SETTLED and one.grade is not None and one.model is not None
    )


def _pairs(both: Iterable[tuple[tuple[str, float], tuple[str, float]]]) -> list[PairAgreement]:
    """The agreement of each two names, from the grades of items that both graded."""
    tables: dict[tuple[str, str], Counter[tuple[float, float]]] = {}
    for (first, one), (second, other) in both:
        tables.setdefault((first, second), Counter())[one, other] += 1
    found = []
    for names, table in sorted(tables.items()):
        same = sum(times for (one, other), times in table.items() if one == other)
        found.append(PairAgreement(*names, table.total(), same, cohen_kappa(table)))
    return found
