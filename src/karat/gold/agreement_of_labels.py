"""Agreement of people who label the same items: Cohen's kappa of each two, Krippendorff's alpha of all.

It is kept up to date label by label, so that a page can show it after every keystroke. The person "settled" settles
disagreements and is not compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

from karat._internal.label_lines import SETTLED, Key, Label
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
    """Cohen's kappa; NaN if both always give the same one grade, or have no item in common."""


class Disagreement(NamedTuple):
    """An item to which people gave different grades."""

    query: str
    item: str
    grades: dict[str, float]
    """The grade of each person."""
    settled: bool
    """True if the person "settled" has decided it."""


class LabelAgreement(NamedTuple):
    """The agreement of all people."""

    pairs: list[PairAgreement]
    alpha: float
    """Krippendorff's alpha; NaN if no item has two grades, or all grades are equal."""
    items: int
    """Items with grades from at least two people."""
    grades: int
    """Their grades."""
    disagreements: int
    unsettled: int


class AgreementOfLabels:
    """The agreement of the labels that stand, updated with each of them."""

    def __init__(self, latest: Mapping[Key, Label] | None = None, *, kind: Kind = "interval") -> None:
        """Begin with labels that stand.

        Args:
            latest: the labels, `LabelFile.latest()`.
            kind: the distance of two grades in alpha: "interval", by their squared difference, or "nominal".
        """
        self._kind = kind
        self._grades: dict[tuple[str, str], dict[str, float]] = {}
        self._model: dict[tuple[str, str], float] = {}
        self._tables: dict[tuple[str, str], Counter[tuple[float, float]]] = {}
        self._shared: dict[tuple[str, str], dict[str, float]] = {}
        self._differ: dict[tuple[str, str], None] = {}
        self._settled: set[tuple[str, str]] = set()
        self._begin(latest or {})

    def _begin(self, latest: Mapping[Key, Label]) -> None:
        """Take many labels at once: as `update` for each, in a fraction of the time."""
        for (query, item, by), label in latest.items():
            pair = (query, item)
            if label.model is not None:
                self._model[pair] = label.model
            if by == SETTLED:
                self._settle(pair, label)
            elif label.grade is not None:
                self._grades.setdefault(pair, {})[by] = label.grade
        cells: Counter[tuple[tuple[str, float], tuple[str, float]]] = Counter()
        for pair, own in self._grades.items():
            cells.update(combinations(sorted(own.items()), 2))
            self._place(pair, own)
        for ((first, one), (second, other)), times in cells.items():
            self._tables.setdefault((first, second), Counter())[one, other] = times

    def _settle(self, pair: tuple[str, str], label: Label | None) -> None:
        is_settled = label is not None and label.answer in ("grade", "cannot tell")
        (self._settled.add if is_settled else self._settled.discard)(pair)

    def update(self, key: Key, label: Label | None) -> None:
        """Take the label that stands now for a query, an item and a person; None after an undo of the only one."""
        query, item, by = key
        pair, grade = (query, item), None if label is None else label.grade
        if label is not None and label.model is not None:
            self._model[pair] = label.model
        if by == SETTLED:
            self._settle(pair, label)
            return
        own = self._grades.setdefault(pair, {})
        self._count(own, by, own.pop(by, None), -1)
        self._count(own, by, grade, 1)
        if grade is not None:
            own[by] = grade
        self._place(pair, own)

    def _count(self, others: Mapping[str, float], by: str, grade: float | None, change: int) -> None:
        """Add a grade to the tables of this person with all others, or remove it."""
        if grade is None:
            return
        for other, theirs in others.items():
            if other != by:
                cell = (grade, theirs) if by < other else (theirs, grade)
                self._tables.setdefault((min(by, other), max(by, other)), Counter())[cell] += change

    def _place(self, pair: tuple[str, str], own: dict[str, float]) -> None:
        if len(own) > 1:
            self._shared[pair] = own
        else:
            self._shared.pop(pair, None)
        if len(set(own.values())) > 1:
            self._differ[pair] = None
        else:
            self._differ.pop(pair, None)

    def summary(self) -> LabelAgreement:
        """The agreement now."""
        rows = [list(own.values()) for own in self._shared.values()]
        pairs = [_pair(*names, table) for names, table in sorted(self._tables.items())]
        value = alpha(rows, self._kind) if rows else float("nan")
        unsettled = sum(pair not in self._settled for pair in self._differ)
        found = [one for one in pairs if one.items]
        return LabelAgreement(found, value, len(rows), sum(map(len, rows)), len(self._differ), unsettled)

    def disagreements(self) -> list[Disagreement]:
        """The items to which people gave different grades, in the order in which that was found."""
        return [Disagreement(*pair, dict(self._grades[pair]), pair in self._settled) for pair in self._differ]

    def with_model(self) -> list[PairAgreement]:
        """The agreement of each person with the model, on the items for which it was asked."""
        tables: dict[str, Counter[tuple[float, float]]] = {}
        for pair, opinion in self._model.items():
            for by, grade in self._grades.get(pair, {}).items():
                tables.setdefault(by, Counter())[grade, opinion] += 1
        return [_pair(by, MODEL, table) for by, table in sorted(tables.items())]


def _pair(first: str, second: str, table: Mapping[tuple[float, float], int]) -> PairAgreement:
    same = sum(times for (one, other), times in table.items() if one == other)
    return PairAgreement(first, second, sum(table.values()), same, cohen_kappa(table))
