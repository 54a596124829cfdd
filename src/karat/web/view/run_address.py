"""The address of the Run screen: the filters of its queries, the search, their order and page, and the baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats
from karat._internal.display import cut_name
from karat.analysis.diagnose.miss import CAUSES
from karat.errors import shorten
from karat.report.html.histogram import ABOVE, PLACES, inside, score_text
from karat.web.problems import Refused
from karat.web.view.address import count_of, link, without_empty
from karat.web.view.opened import VERSION

FIELD, METRIC = "field.", "metric."
"""Beginnings of parameters: of a field of the samples, and of a metric that is named like a parameter."""
CAUSE, SEARCH, SORT, PAGE, SIZE, BASELINE, SHOW = "cause", "q", "sort", "page", "size", "baseline", "show"
_OWN = frozenset((CAUSE, SEARCH, SORT, PAGE, SIZE, BASELINE, SHOW, VERSION, "run_id", "part", "row", "token"))
SIZES = (50, 100)
"""Queries on a page."""
BY_ID, BY_FOUND, BY_CHANGE = "id", "found", "change"
UNDEFINED = "undefined"
_NUMBER = re.compile(r"-?\d{1,309}(\.\d{1,20})?")
_RANGE = re.compile(rf"{_NUMBER.pattern}(\.\.{_NUMBER.pattern})?|{UNDEFINED}")
_LONGEST = 1_000
_NAME = 80


class ScoreRange(NamedTuple):
    """Queries by their score, as the bars of a histogram divide them."""

    low: float
    high: float
    """The same as `low` for the bar of one score; both NaN for queries without a score."""

    @classmethod
    def read(cls, text: str, name: str) -> ScoreRange:
        """The range that a text says: "0.5", "0.4..0.5" or "undefined"."""
        if text == UNDEFINED:
            return cls(np.nan, np.nan)
        ends = text.split("..")
        if not (len(ends) <= 2 and all(map(_NUMBER.fullmatch, ends)) and all(isfinite(float(end)) for end in ends)):
            hint = f"{name}=0.4..0.5, or {name}=1"
            raise Refused(400, f"this is not a range of {name}", got=shorten(text), hint=hint)
        low, high = sorted(round(float(end), PLACES) for end in (ends[0], ends[-1]))
        return cls(low, high)

    def flags(self, scores: Floats) -> Bools:
        """Flags of the scores in the range, by the rule of the bars."""
        return np.isnan(scores) if self.low != self.low else inside(scores, *self)

    def __str__(self) -> str:
        """The text that `read` reads."""
        if self.low != self.low:
            return UNDEFINED
        low, high = (f"{end:.{PLACES}f}".rstrip("0").removesuffix(".") for end in self)
        return low if low == high else f"{low}..{high}"

    @property
    def words(self) -> str:
        """The range for people."""
        if self.low != self.low:
            return UNDEFINED
        if self.low == self.high:
            return score_text(self.low)
        low = "above 0" if self.low == ABOVE else f"from {score_text(self.low)}"
        return f"{low}, below {score_text(self.high)}"


class Condition(NamedTuple):
    """One filter: a parameter of the address and its value."""

    key: str
    value: str

    @property
    def field(self) -> str | None:
        """The field of the samples that it is about."""
        return self.key.removeprefix(FIELD) if self.key.startswith(FIELD) else None

    @property
    def metric(self) -> str | None:
        """The metric that it is about."""
        return None if self.field is not None or self.key == CAUSE else self.key.removeprefix(METRIC)

    @property
    def words(self) -> tuple[str, str]:
        """Its subject and its value for people."""
        if self.metric is not None:
            return self.metric, ScoreRange.read(self.value, self.metric).words
        return self.field or CAUSE, self.value


def score_condition(name: str, of: ScoreRange) -> Condition:
    """The filter for a bar of a histogram."""
    return Condition(METRIC + name if name in _OWN or name.startswith((FIELD, METRIC)) else name, str(of))


def field_condition(field: str, value: str) -> Condition:
    """The filter for a slice."""
    return Condition(FIELD + field, value)


def cause_condition(cause: str) -> Condition:
    """The filter for a cause of missed gold."""
    return Condition(CAUSE, cause)


class RunAddress(NamedTuple):
    """All that an address says about the queries to show."""

    conditions: tuple[Condition, ...] = ()
    search: str = ""
    sort: str = ""
    """The column; a minus before it is descending; empty is worst first."""
    page: int = 1
    size: int = SIZES[0]
    baseline: str = ""
    """The id of the run to compare with."""
    show: str = ""
    """The section that is shown at once, for readers without script."""
    unknown: tuple[str, ...] = ()
    """Fields and metrics of filters that the run does not have."""

    @classmethod
    def read(cls, arguments: Mapping[str, str], names: Sequence[str], fields: Sequence[str]) -> RunAddress:
        """The address that was asked for, of a run with these metrics and fields."""
        conditions, unknown = [], []
        for key, value in arguments.items():
            if (key in _OWN and key != CAUSE) or (value == "" and not key.startswith(FIELD)):
                continue
            condition = Condition(key, value)
            missing = _unknown(condition, names, fields)
            if missing is None:
                conditions.append(condition)
            elif missing:
                unknown.append(missing)
        return cls(
            tuple(conditions),
            " ".join(arguments.get(SEARCH, "")[:_LONGEST].split()),
            _sort(arguments.get(SORT, ""), names, changes=bool(arguments.get(BASELINE))),
            count_of(arguments, PAGE),
            min(SIZES, key=lambda size: abs(size - count_of(arguments, SIZE, SIZES[0]))),
            arguments.get(BASELINE, ""),
            arguments.get(SHOW, ""),
            tuple(unknown),
        )

    @property
    def column(self) -> str:
        """The column by which the queries are sorted; empty is worst first."""
        return self.sort.removeprefix("-")

    @property
    def down(self) -> bool:
        """True if the greatest is first."""
        return self.sort.startswith("-")

    @property
    def chooses(self) -> bool:
        """True if not all queries are shown, or not the worst first."""
        return bool(self.conditions or self.search or self.sort)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the address; what is as usual has none."""
        given = {SEARCH: self.search, SORT: self.sort, BASELINE: self.baseline, SHOW: self.show}
        given |= {PAGE: str(self.page) if self.page > 1 else "", SIZE: str(self.size) if self.size != SIZES[0] else ""}
        return dict(self.conditions) | without_empty(given)

    def href(self, path: str, section: str = "") -> str:
        """The address of a path with this state, at a section of the page."""
        return link(path, self.parameters, section)

    def adding(self, condition: Condition) -> RunAddress:
        """The same with one more filter, which replaces one of the same kind; from the first page."""
        others = (one for one in self.conditions if one.key != condition.key)
        return self._replace(conditions=(*others, condition), page=1, show="")

    def removing(self, condition: Condition) -> RunAddress:
        """The same without a filter."""
        return self._replace(conditions=tuple(one for one in self.conditions if one != condition), page=1, show="")

    def cleared(self) -> RunAddress:
        """All queries, in the same order."""
        return self._replace(conditions=(), search="", page=1, show="")


def _unknown(condition: Condition, names: Sequence[str], fields: Sequence[str]) -> str | None:
    """The field or the metric of a filter that the run does not have, for people.

    Empty if the parameter was not meant as a filter, as those that other programs add to a link. None if the filter
    is about something in the run; then refuse a value that cannot be.
    """
    if condition.field is not None:
        return None if condition.field in fields else f"field “{cut_name(condition.field, _NAME)}”"
    if condition.metric is None:
        if condition.value not in CAUSES:
            raise Refused(400, "there is no such cause", got=shorten(condition.value), hint=", ".join(CAUSES))
        return None
    if condition.metric in names:
        ScoreRange.read(condition.value, condition.metric)
        return None
    meant = "@" in condition.key or condition.key.startswith(METRIC) or _RANGE.fullmatch(condition.value)
    return f"metric “{cut_name(condition.metric, _NAME)}”" if meant else ""


def _sort(text: str, names: Sequence[str], *, changes: bool) -> str:
    """The sort of an address; one by changes is dropped together with the baseline."""
    column = text.removeprefix("-")
    if column == BY_CHANGE and column not in names and not changes:
        return ""
    known = [*names, BY_ID, BY_FOUND, BY_CHANGE]
    if column and column not in known:
        raise Refused(400, "there is no such column to sort by", got=shorten(column), hint=", ".join(known))
    return text if column else ""
