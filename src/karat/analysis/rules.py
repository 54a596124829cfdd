"""Rules of a gate: `recall@5 >= 0.80`, `recall@5 lower >= 0.75`, `ndcg@10 no-drop 0.01`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat._internal.display import number, plural, span
from karat.errors import BadArgument, KaratError, unknown
from karat.metrics import parse
from karat.run import Run
from karat.stats import intervals
from karat.stats.paired import chances, smallest

_LIMIT = re.compile(r"(?P<metric>.+?)(?P<lower>\s+lower)?\s*(?P<sign>>=|<=|≥|≤|>|<)(?P<value>.*)", re.DOTALL)
_NO_DROP = re.compile(r"(?P<metric>.+?)\s+no[-_ ]?drop(?:\s+(?P<tolerance>\S+))?", re.DOTALL)
_SIGNS = {"≥": ">=", "≤": "<="}
_HINT = '"recall@5 >= 0.80", "recall@5 lower >= 0.75", "recall@5 no-drop", "recall@5 no-drop 0.01"'

# The mean of 0.7, 0.8 and 0.9 is 0.7999999999999999; nobody who asks for 0.8 means to fail it.
SLACK = 1e-9


class Limit(NamedTuple):
    """A mean, or the lower end of its interval, set against a number."""

    metric: str
    lower: bool
    sign: str
    value: float

    def __str__(self) -> str:
        return f"{self.metric}{' lower' if self.lower else ''} {self.sign} {_digits(self.value)}"

    def holds(self, value: float) -> bool:
        """Whether a value keeps to the limit."""
        above = value - self.value if self.sign.startswith(">") else self.value - value
        return above >= -SLACK if self.sign.endswith("=") else above > SLACK


class NoDrop(NamedTuple):
    """A metric that must not fall below the baseline; a drop larger than the tolerance fails in any case."""

    metric: str
    tolerance: float | None

    def __str__(self) -> str:
        return f"{self.metric} no-drop" + ("" if self.tolerance is None else f" {_digits(self.tolerance)}")


Rule = Limit | NoDrop


def read_rules(texts: Collection[str], metrics: Collection[str]) -> list[Rule]:
    """The rules, each about one metric that the run has; `recall@1,5 no-drop` is two."""
    if not texts:
        raise BadArgument("no rule was given", hint=_HINT)
    return list(dict.fromkeys(rule for text in texts for rule in _read(text, metrics)))


def _read(text: str, metrics: Collection[str]) -> list[Rule]:
    if not isinstance(text, str):
        raise BadArgument("a rule is a text", got=text, hint=_HINT)
    if "=>" in text or "=<" in text:
        raise BadArgument("not a comparison", got=text, hint=text.replace("=>", ">=").replace("=<", "<="))
    if found := _NO_DROP.fullmatch(text.strip()):
        tolerance = None if found["tolerance"] is None else read_tolerance(found["tolerance"])
        return [NoDrop(name, tolerance) for name in _names(found["metric"], metrics)]
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        problem = "not a rule: a metric, then a comparison with a number, or no-drop, all in quotes"
        raise BadArgument(problem, got=text, hint=_HINT)
    sign = _SIGNS.get(found["sign"], found["sign"])
    names = _names(found["metric"], metrics)
    return [Limit(name, bool(found["lower"]), sign, _number(found["value"], text)) for name in names]


def read_tolerance(given: str | float) -> float:
    """How large a drop may be: a number from 0 to 1."""
    tolerance = _float(given)
    if tolerance is None or not 0 <= tolerance <= 1:
        raise BadArgument("a tolerance is a number from 0 to 1", got=given, hint="0.02")
    return tolerance


def _names(text: str, metrics: Collection[str]) -> tuple[str, ...]:
    """The metric as the run calls it; one name for each cutoff."""
    if text in metrics:  # also a metric of the user's own, which is not defined here
        return (text,)
    try:
        names = parse(text).names
    except KaratError:
        names = (text,)
    for name in names:
        if name not in metrics:
            raise unknown("metric in this run", name, metrics, "one of: " + ", ".join(metrics))
    return names


def _number(text: str, rule: str) -> float:
    value = _float(text)
    if value is None:
        percent = _float(text.strip().removesuffix("%"))
        hint = _HINT if percent is None else rule.replace(text.strip(), _digits(percent / 100))
        raise BadArgument("a metric is compared with a number", got=rule, hint=hint)
    if not 0 <= value <= 1:
        hint = rule.replace(text.strip(), _digits(value / 100)) if 0 <= value <= 100 else _HINT
        raise BadArgument("a metric lies between 0 and 1", got=rule, hint=hint)
    return value


def _float(given: object) -> float | None:
    """The number, if it is one; what is infinite or not a number is none."""
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if abs(value) < float("inf") else None


def _digits(value: float) -> str:
    """A number as people write limits: two decimal places, more where it has more."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.10g}"


class Check(NamedTuple):
    """One thing that was looked at, and what came of it."""

    rule: str
    slice: str | None
    """The value of the field, if this is about a slice."""
    passed: bool
    text: str
    """What was measured."""
    metric: str | None = None
    """The metric of the rule."""
    query: str | None = None
    """The query that must pass, if this is about one."""
    unsure: bool = False
    """Passed only because there are too few queries to tell a drop from chance."""
    figures: Mapping[str, float] = {}


class Baseline(NamedTuple):
    """The run to set against, its queries in the order of the other."""

    name: str
    run: Run
    rows: Ints

    def scores(self, metric: str) -> Floats:
        """One number per query, in the order of the run that is judged."""
        return self.run.scores[metric][self.rows]

    def changes(self, run: Run, metric: str) -> Floats:
        """What each query gained or lost; a change in the last digits is none."""
        change = run.scores[metric] - self.scores(metric)
        return np.where(np.abs(change) <= SLACK, 0.0, change)


class Terms(NamedTuple):
    """What a drop may be."""

    alpha: float
    tolerance: float | None
    slice_tolerance: float | None


def limit(run: Run, rule: Limit) -> Check:
    """A mean, or the lower end of its interval, against a number."""
    mean, (low, high) = run.mean[rule.metric], run.interval()[rule.metric]
    if rule.lower and low != low:
        raise BadArgument(f"{rule.metric} has no interval: too few queries", hint=f"{rule.metric} {rule.sign} …")
    value = low if rule.lower else mean
    shown = _told(mean, rule.value)
    between = f"[{_told(low, rule.value, 2)}, {high:.2f}]" if rule.lower else span(low, high)
    figures = {"mean": mean, "low": low, "high": high, "queries": _defined(run.scores[rule.metric])}
    return Check(str(rule), None, rule.holds(value), f"{shown} {between}".rstrip(), rule.metric, figures=figures)


def drops(
    run: Run, baseline: Baseline, rules: Sequence[NoDrop], slices: Mapping[str, Sequence[int]], terms: Terms
) -> dict[NoDrop, list[Check]]:
    """Each rule for all queries, then for each slice; what is chance is decided for all of them together."""
    places: list[tuple[str | None, Sequence[int]]] = [(None, range(len(run))), *slices.items()]
    columns = []
    for rule in rules:
        change = baseline.changes(run, rule.metric)
        for _, rows in places:
            column = np.full(len(run), np.nan)
            column[rows] = change[rows]
            columns.append(column)
    p = chances(np.column_stack(columns))
    ends = intervals({str(i): column for i, column in enumerate(columns)})
    made: dict[NoDrop, list[Check]] = {}
    for i, column in enumerate(columns):
        rule, (name, rows) = rules[i // len(places)], places[i % len(places)]
        before = baseline.scores(rule.metric)[rows]
        after = run.scores[rule.metric][rows]
        drop = Drop(column, before, after, float(p[i]), *ends[str(i)])
        made.setdefault(rule, []).append(_no_drop(rule, name, drop, len(columns), baseline.name, terms))
    return made


class Drop(NamedTuple):
    """The change of one metric over some queries."""

    change: Floats
    before: Floats
    after: Floats
    p: float
    low: float
    high: float

    @property
    def queries(self) -> int:
        """How many queries have a score in both runs."""
        return _defined(self.change)

    @property
    def difference(self) -> float:
        """The mean of the changes."""
        return float(np.nanmean(self.change))

    @property
    def ends(self) -> tuple[float, float]:
        """The means before and after, over the queries that have both."""
        both = ~np.isnan(self.before + self.after)
        return float(self.before[both].mean()), float(self.after[both].mean())


def _no_drop(rule: NoDrop, name: str | None, drop: Drop, checks: int, against: str, terms: Terms) -> Check:
    """Whether this is a drop: beyond chance, or beyond the tolerance."""
    told = str(rule if name is None else rule._replace(tolerance=None))  # a rule's own tolerance is not for slices
    whole = terms.tolerance if rule.tolerance is None else rule.tolerance
    tolerance = whole if name is None else terms.slice_tolerance
    if name is None:
        _check_enough(rule, drop.queries, tolerance, terms.alpha)
    if drop.queries == 0:
        return Check(told, name, True, "undefined for all of its queries", rule.metric, unsure=True)
    fell = -drop.difference
    beyond_chance = fell > SLACK and drop.p <= terms.alpha
    too_large = tolerance is not None and fell > tolerance + SLACK
    passed = not (beyond_chance or too_large)
    unsure = passed and tolerance is None and drop.queries < smallest(checks, terms.alpha)
    before, after = drop.ends
    figures = {
        "before": before, "after": after, "difference": drop.difference, "low": drop.low, "high": drop.high,
        "p": drop.p, "queries": drop.queries,
    }  # fmt: skip
    text = _change(drop, against)
    if too_large and not beyond_chance:
        text += f": more than the {tolerance:g} allowed"
    if unsure:
        text += ": too few to tell"
    elif passed and tolerance is None and drop.high < 0:
        text += ": not beyond chance; a tolerance would decide"
    return Check(told, name, passed, text, rule.metric, unsure=unsure, figures=figures)


def _check_enough(rule: NoDrop, queries: int, tolerance: float | None, alpha: float) -> None:
    """Refuse to call it passed where nothing could have failed."""
    if queries == 0:
        raise BadArgument(f"{rule}: no query has a score in both the run and the baseline")
    if tolerance is None and queries < smallest(1, alpha):
        few = plural(queries, "query", "queries")
        hint = f"a tolerance: {rule.metric} no-drop 0.02"
        raise BadArgument(f"{rule}: with {few} no drop can be told from chance", hint=hint)


def _change(drop: Drop, against: str) -> str:
    if drop.difference >= -SLACK:
        return f"{drop.difference + 0.0:+.3f} against {against}"
    before, after = drop.ends
    between = "" if drop.low != drop.low else f" [{drop.low:+.2f}, {drop.high:+.2f}]"
    how = "p < 0.001" if drop.p < 0.001 else f"p = {drop.p:.3f}"
    few = plural(drop.queries, "query", "queries")
    return f"{number(before)} → {number(after)}  ({drop.difference:+.3f}{between}, {how}, {few})"


def must_pass(run: Run, baseline: Baseline | None, metrics: Iterable[str], ids: Iterable[str]) -> list[Check]:
    """Each of these queries: not below the baseline, or at 1 if there is none, in every metric that has a rule."""
    rows = {query: row for row, query in enumerate(run.ids)}
    made = []
    for query in dict.fromkeys(ids):
        if query not in rows:
            raise unknown("query", query, run.ids[:10_000], "must-pass queries are named by their ids")
        missed = []
        for metric in dict.fromkeys(metrics):
            now = float(run.scores[metric][rows[query]])
            wanted = 1.0 if baseline is None else min(1.0, float(baseline.scores(metric)[rows[query]]))
            if now != now or wanted != wanted:
                raise BadArgument(f'{metric} is undefined for the query "{query}", so it can neither pass nor fail')
            if now < wanted - SLACK:
                was = "wanted 1" if baseline is None else f"was {number(wanted)}"
                missed.append(f"{metric} {number(now)}, {was}")
        made.append(Check("must-pass", None, not missed, "; ".join(missed), query=query))
    return made


def _defined(values: Floats) -> int:
    return int((~np.isnan(values)).sum())


def _told(value: float, limit: float, places: int = 3) -> str:
    """A value with as many places as it takes to tell it from the limit."""
    while places < 9 and f"{value:.{places}f}" == f"{limit:.{places}f}" and abs(value - limit) > SLACK:
        places += 1
    return f"{value:.{places}f}"
