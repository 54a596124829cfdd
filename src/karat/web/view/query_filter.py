"""The choice of queries in an address of the Run screen: filters, search, sort and page, read and written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np

from karat._internal.arrays import Bools, Floats
from karat.analysis.diagnose.miss import CAUSES
from karat.errors import shorten
from karat.web.problems import Refused

FIELD, METRIC = "field.", "metric."
"""Beginnings of parameters: of a field of the samples, and of a metric that is named like a parameter."""
CAUSE, SEARCH, SORT, PAGE, SIZE, BASELINE, SHOW = "cause", "q", "sort", "page", "size", "baseline", "show"
VERSION = "version"
"""The version of the file that a page is of, sent by its script."""
_OWN = frozenset((CAUSE, SEARCH, SORT, PAGE, SIZE, BASELINE, SHOW, VERSION, "run_id", "part", "row", "token"))
SIZES = (50, 100)
"""Queries on a page."""
BY_ID, BY_FOUND, BY_CHANGE = "id", "found", "change"
UNDEFINED = "undefined"
_NUMBER = re.compile(r"\d{1,9}(\.\d{1,20})?")
_PLACES, _SLACK = 6, 1e-9
"""Decimal places in which scores are the same, as in the histograms."""
_LONGEST = 1_000
_MOST_DIGITS = 9


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
        if not (len(ends) <= 2 and all(map(_NUMBER.fullmatch, ends)) and all(float(end) <= 1 for end in ends)):
            hint = f"{name}=0.4..0.5, or {name}=1"
            raise Refused(400, f"this is not a range of {name} from 0 to 1", got=shorten(text), hint=hint)
        low, high = sorted(round(float(end), _PLACES) for end in (ends[0], ends[-1]))
        return cls(low, high)

    def flags(self, scores: Floats) -> Bools:
        """Flags of the scores in the range, by the rule of `histogram.bars`.

        Scores are compared after rounding; from 0 to 1, the bars of 0 and 1 are not part of the ranges next to them.
        """
        flags: Bools
        if self.low != self.low:
            flags = np.isnan(scores)
            return flags
        own = np.round(np.clip(scores, 0, 1), _PLACES)
        if self.low == self.high:
            flags = own == self.low
            return flags
        tenfold = own * 10 + _SLACK
        below = inf if self.high == 1 else round(self.high * 10, _PLACES)
        flags = (own > 0) & (own < 1) & (tenfold >= round(self.low * 10, _PLACES)) & (tenfold < below)
        return flags

    def __str__(self) -> str:
        """The text that `read` reads."""
        if self.low != self.low:
            return UNDEFINED
        low, high = (f"{end:.{_PLACES}f}".rstrip("0").removesuffix(".") for end in self)
        return low if low == high else f"{low}..{high}"

    @property
    def words(self) -> str:
        """The range for people."""
        if self.low != self.low:
            return UNDEFINED
        if self.low == self.high:
            return f"{self.low:.3g}"
        low = f"from {self.low:.3g}" if self.low else "above 0"
        return f"{low}, below {self.high:.3g}"


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


class QueryFilter(NamedTuple):
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
        return dict(self.conditions) | {name: value for name, value in given.items() if value}

    def address(self, path: str, place: str = "") -> str:
        """An address with this state; `place` is the id of a section."""
        words = urlencode(self.parameters, safe="@/")
        return f"{path}{'?' if words else ''}{words}{'#' if place else ''}{place}"

    def adding(self, condition: Condition) -> QueryFilter:
        """The same with one more filter, which replaces one of the same kind; from the first page."""
        others = (one for one in self.conditions if one.key != condition.key)
        return self._replace(conditions=(*others, condition), page=1, show="")

    def removing(self, condition: Condition) -> QueryFilter:
        """The same without a filter."""
        return self._replace(conditions=tuple(one for one in self.conditions if one != condition), page=1, show="")

    def cleared(self) -> QueryFilter:
        """All queries, in the same order."""
        return self._replace(conditions=(), search="", page=1, show="")


def read_filter(arguments: Mapping[str, str], names: Sequence[str], fields: Sequence[str]) -> QueryFilter:
    """The state in an address, for a run with these metrics and fields; refuse what the run does not have."""
    conditions = []
    for key, value in arguments.items():
        if (key in _OWN and key != CAUSE) or (value == "" and not key.startswith(FIELD)):
            continue
        condition = Condition(key, value)
        _check(condition, names, fields)
        conditions.append(condition)
    return QueryFilter(
        tuple(conditions),
        " ".join(arguments.get(SEARCH, "")[:_LONGEST].split()),
        _sort(arguments.get(SORT, ""), names, changes=bool(arguments.get(BASELINE))),
        _number(arguments, PAGE, 1),
        min(SIZES, key=lambda size: abs(size - _number(arguments, SIZE, SIZES[0]))),
        arguments.get(BASELINE, ""),
        arguments.get(SHOW, ""),
    )


def _check(condition: Condition, names: Sequence[str], fields: Sequence[str]) -> None:
    """Refuse a filter that is about nothing in the run."""
    if condition.field is not None:
        if condition.field not in fields:
            raise Refused(400, f'this run has no field "{shorten(condition.field)}"', hint=", ".join(fields) or None)
    elif condition.metric is None:
        if condition.value not in CAUSES:
            raise Refused(400, "there is no such cause", got=shorten(condition.value), hint=", ".join(CAUSES))
    elif condition.metric not in names:
        raise Refused(400, f'this run has no metric "{shorten(condition.metric)}"', hint=", ".join(names))
    else:
        ScoreRange.read(condition.value, condition.metric)


def _sort(text: str, names: Sequence[str], *, changes: bool) -> str:
    """The sort of an address; one by changes is dropped together with the baseline."""
    column = text.removeprefix("-")
    if column == BY_CHANGE and column not in names and not changes:
        return ""
    known = [*names, BY_ID, BY_FOUND, BY_CHANGE]
    if column and column not in known:
        raise Refused(400, "there is no such column to sort by", got=shorten(column), hint=", ".join(known))
    return text if column else ""


def _number(arguments: Mapping[str, str], name: str, usual: int) -> int:
    """A number from 1 in an address."""
    text = arguments.get(name, "") or str(usual)
    if not (text.isascii() and text.isdigit()):
        raise Refused(400, f'"{name}" is a number from 1', got=shorten(text), hint=f"{name}={usual}")
    return max(int(text[-_MOST_DIGITS:] if len(text) <= _MOST_DIGITS else "9" * _MOST_DIGITS), 1)
