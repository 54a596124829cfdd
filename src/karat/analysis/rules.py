"""Gate rules, such as `recall@5 >= 0.80`, `recall@5 lower >= 0.75`, `ndcg@10 no-drop 0.01`: parse and check them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, mean_defined
from karat._internal.display import number, p_equals, percent, plural, signed, span
from karat.analysis.measures import STATISTICS
from karat.errors import BadArgument, KaratError, unknown
from karat.judges.protocol import share_of_one
from karat.metrics import MEASURES, parse
from karat.run import Run
from karat.stats import difference_intervals
from karat.stats.paired import maxt_p_values, min_queries

_LIMIT = re.compile(r"(?P<metric>.+?)(?P<lower>\s+lower)?\s*(?P<sign>>=|<=|≥|≤|>|<)(?P<value>.*)", re.DOTALL)
_NO_DROP = re.compile(r"(?P<metric>.+?)\s+no[-_ ]?drop(?:\s+(?P<tolerance>\S+))?", re.DOTALL)
_BOUND = re.compile(
    rf"(?P<measure>.+?)\s+(?P<statistic>{'|'.join(STATISTICS)})\s*(?P<sign>>=|<=|≥|≤|>|<)(?P<value>.*)", re.DOTALL
)
_NO_AT = re.compile(r"(?P<name>[A-Za-z][A-Za-z_-]*?)[\s_-]*(?P<k>\d+)")
_SIGNS = {"≥": ">=", "≤": "<="}
_HINT = '"recall@5 >= 0.80", "recall@5 lower >= 0.75", "recall@5 no-drop", "recall@5 no-drop 0.01"'

TOO_FEW = "too few queries to detect a drop"

# The mean of 0.7, 0.8 and 0.9 is 0.7999999999999999, which must pass >= 0.8.
SLACK = 1e-9


class Limit(NamedTuple):
    """A rule that compares a mean, or the lower end of its interval, with a number."""

    metric: str
    lower: bool
    sign: str
    value: float

    def __str__(self) -> str:
        return f"{self.metric}{' lower' if self.lower else ''} {self.sign} {_digits(self.value)}"

    def holds(self, value: float) -> bool:
        """True if a value is within the limit."""
        above = value - self.value if self.sign.startswith(">") else self.value - value
        return above >= -SLACK if self.sign.endswith("=") else above > SLACK


class Bound(NamedTuple):
    """A rule that compares the median of a measure, or another statistic of it, with a number."""

    metric: str
    statistic: str
    sign: str
    value: float

    def __str__(self) -> str:
        return f"{self.metric} {self.statistic} {self.sign} {self.value:.10g}"


class NoDrop(NamedTuple):
    """A rule against a significant drop below the baseline; a drop larger than the tolerance always fails."""

    metric: str
    tolerance: float | None

    def __str__(self) -> str:
        return f"{self.metric} no-drop" + ("" if self.tolerance is None else f" {_digits(self.tolerance)}")


Rule = Limit | Bound | NoDrop


def read_rules(texts: Collection[str], run: Run) -> list[Rule]:
    """Parse rules about the metrics and measures of a run; `recall@1,5 no-drop` is two rules."""
    if not texts:
        raise BadArgument("expected at least one rule", hint=_HINT)
    return list(dict.fromkeys(rule for text in texts for rule in _read(text, run.scores, run.measured)))


def _read(text: str, metrics: Collection[str], measures: Collection[str]) -> list[Rule]:
    if not isinstance(text, str):
        raise BadArgument("a rule is a string", got=text, hint=_HINT)
    if "=>" in text or "=<" in text:
        raise BadArgument("expected >=, <=, > or <", got=text, hint=text.replace("=>", ">=").replace("=<", "<="))
    if (bound := _read_bound(text, measures)) is not None:
        return [bound]
    if found := _NO_DROP.fullmatch(text.strip()):
        tolerance = None if found["tolerance"] is None else read_tolerance(found["tolerance"])
        return [NoDrop(name, tolerance) for name in _names(found["metric"], metrics)]
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        problem = 'expected "METRIC >= NUMBER" (or >, <=, <) or "METRIC no-drop", in quotes'
        raise BadArgument(problem, got=text, hint=_HINT)
    sign = _SIGNS.get(found["sign"], found["sign"])
    names = _names(found["metric"], metrics)
    return [Limit(name, bool(found["lower"]), sign, _number(found["value"], text)) for name in names]


def _read_bound(text: str, measures: Collection[str]) -> Bound | None:
    """A rule about a measure; None if the text names none."""
    found = _BOUND.fullmatch(text.strip())
    measure = "" if found is None else _spelled(found["measure"])
    if found is None or measure not in measures:
        if measure.partition("(")[0] in MEASURES:
            known = f"one of: {', '.join(measures)}" if measures else f"karat eval … {measure}"
            raise unknown("measure in this run", measure, measures, known)
        named = re.split(r"\s|[<>≤≥]|=(?![^()]*\))", text.strip(), maxsplit=1)[0]
        if _spelled(named).partition("(")[0] in MEASURES:
            problem = f"{named} is a measure: a rule limits its {', '.join(STATISTICS[:-1])}, or the share of never"
            raise BadArgument(problem, got=text, hint=f'"{named} median <= 5", "{named} never <= 0.1"')
        return None
    value, sign = _float(found["value"]), _SIGNS.get(found["sign"], found["sign"])
    if value is None or value < 0 or (found["statistic"] == "never" and value > 1):
        expected = "a share from 0 to 1" if found["statistic"] == "never" else "a number from 0 on"
        raise BadArgument(f"the {found['statistic']} of a measure must be compared with {expected}", got=text)
    return Bound(measure, found["statistic"], sign, value)


def _spelled(text: str) -> str:
    """The name of a measure as runs have it; other texts as they are."""
    try:
        return str(parse(text))
    except KaratError:
        return text


def read_tolerance(given: str | float) -> float:
    """The largest drop allowed, a number from 0 to 1."""
    tolerance = _float(given)
    if tolerance is None or not 0 <= tolerance <= 1:
        raise BadArgument("a tolerance must be a number from 0 to 1", got=given, hint="0.02")
    return tolerance


def _names(text: str, metrics: Collection[str]) -> tuple[str, ...]:
    """The columns of the run for a metric, one per cutoff."""
    if text in metrics:  # also a custom metric that is not defined here
        return (text,)
    try:
        names = parse(text).names
    except KaratError:
        close = _NO_AT.fullmatch(text)
        guess = f"{close['name']}@{close['k']}" if close else ""
        if guess in metrics:
            raise unknown("metric in this run", text, [guess], guess) from None
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
        raise BadArgument("a metric must be compared with a number", got=rule, hint=hint)
    if not 0 <= value <= 1:
        hint = rule.replace(text.strip(), _digits(value / 100)) if 0 <= value <= 100 else _HINT
        raise BadArgument("a metric is between 0 and 1", got=rule, hint=hint)
    return value


def _float(given: object) -> float | None:
    """The value as a finite number; None if it is not one."""
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if abs(value) < float("inf") else None


def _digits(value: float) -> str:
    """A number with two decimal places, or more if it has more."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.10g}"


Verdict = Literal["passed", "failed", "undecided"]
"""The result of a check. Undecided: it could not have failed, whatever the scores (too few queries, no baseline)."""


class Check(NamedTuple):
    """One check and its result."""

    rule: str
    slice: str | None
    """The value of the field, for a check of a slice."""
    verdict: Verdict
    text: str
    """The measured values."""
    metric: str | None = None
    query: str | None = None
    """The id, for a check of a must-pass query."""
    figures: Mapping[str, float] = {}
    by: str | None = None
    """The field, for a check of a slice."""

    @property
    def passed(self) -> bool:
        """True if the check was decided and holds."""
        return self.verdict == "passed"

    @property
    def failed(self) -> bool:
        """True if the check was decided and does not hold."""
        return self.verdict == "failed"


def _verdict(*, passed: bool) -> Verdict:
    return "passed" if passed else "failed"


class Part(NamedTuple):
    """A slice of the run: the field, its value, and the rows; all rows without a field."""

    by: str | None
    name: str | None
    rows: Sequence[int]


class Baseline(NamedTuple):
    """The run to compare with, and the rows of its queries in the order of the checked run."""

    name: str
    source: str
    """The file name, or where the data of the run is from."""
    run: Run
    rows: Ints

    def scores(self, metric: str) -> Floats:
        """One score per query, in the order of the checked run."""
        return self.run.scores[metric][self.rows]

    def changes(self, run: Run, metric: str) -> Floats:
        """The change of each query; rounding errors are no change."""
        change = run.scores[metric] - self.scores(metric)
        return np.where(np.abs(change) <= SLACK, 0.0, change)


class DropLimits(NamedTuple):
    """The significance level and the largest drops allowed."""

    alpha: float
    tolerance: float | None
    slice_tolerance: float | None


def check_judged(run: Run, least: float) -> list[Check]:
    """Fail a run with too many failed judgements: the failed queries may be the bad ones; no check if none failed."""
    share = share_of_one("min_judged", least)
    if not run.failures:
        return []
    passed = run.enough_judged(share)
    text = f"{run.judged:,} of {plural(len(run), 'query was', 'queries were')} judged"
    text += "" if passed else ": the rules were not checked"
    rule = f"judged >= {_digits(share)}" if share else "judged > 0"
    return [Check(rule, None, _verdict(passed=passed), text, figures={"judged": run.judged, "queries": len(run)})]


def check_limit(run: Run, rule: Limit) -> Check:
    """Compare a mean, or the lower end of its interval, with a number."""
    mean, (low, high) = run.mean[rule.metric], run.interval()[rule.metric]
    between = f"[{_distinct(low, rule.value, 2)}, {high:.2f}]" if rule.lower else span(low, high)
    queries = _defined(run.scores[rule.metric])
    figures = {"mean": mean, "low": low, "high": high, "queries": queries}
    text = f"{_distinct(mean, rule.value)} {between}".rstrip()
    if rule.lower and low != low:  # the rule asks for evidence, and there is none
        few = f"{plural(queries, 'query is', 'queries are')} too few for an interval"
        return Check(str(rule), None, "failed", f"{number(mean)}: {few}", rule.metric, figures=figures)
    verdict = _verdict(passed=rule.holds(low if rule.lower else mean))
    return Check(str(rule), None, verdict, text, rule.metric, figures=figures)


def check_bound(run: Run, rule: Bound) -> Check:
    """Compare a statistic of a measure with a number."""
    of = run.summary[rule.metric]
    share = of.never / of.defined
    value = share if rule.statistic == "never" else getattr(of, rule.statistic)
    figures = {"median": of.median, "p90": of.p90, "mean": of.mean, "never": share, "queries": of.defined}
    finite = {name: number for name, number in figures.items() if abs(number) < np.inf}
    text = percent(share) if rule.statistic == "never" else "never" if np.isinf(value) else f"{value:,.4g}"
    if of.never:
        text += f": never reached in {of.never:,} of {plural(of.defined, 'query', 'queries')}"
    passed = value == value and Limit(rule.metric, False, rule.sign, rule.value).holds(value)
    return Check(str(rule), None, _verdict(passed=passed), text.removeprefix("nan: "), rule.metric, figures=finite)


def _distinct(value: float, limit: float, places: int = 3) -> str:
    """A value with as many decimal places as distinguish it from the limit."""
    while places < 9 and f"{value:.{places}f}" == f"{limit:.{places}f}" and abs(value - limit) > SLACK:
        places += 1
    return f"{value:.{places}f}"


def check_drops(
    run: Run, baseline: Baseline, rules: Sequence[NoDrop], slices: Sequence[Part], limits: DropLimits
) -> dict[NoDrop, list[Check]]:
    """Check each rule for all queries and for each slice; the p-values are corrected over all of these."""
    parts = [Part(None, None, range(len(run))), *slices]
    columns = []
    for rule in rules:
        change = baseline.changes(run, rule.metric)
        for part in parts:
            columns.append(np.full(len(run), np.nan))
            columns[-1][part.rows] = change[part.rows]
    ps = maxt_p_values(np.column_stack(columns))
    ends = difference_intervals({str(i): column for i, column in enumerate(columns)})
    checks: dict[NoDrop, list[Check]] = {}
    for i, column in enumerate(columns):
        rule, part = rules[i // len(parts)], parts[i % len(parts)]
        both = np.where(np.isnan(column), np.nan, 0.0)
        drop = _Drop(
            mean_defined(baseline.scores(rule.metric) + both), mean_defined(run.scores[rule.metric] + both),
            mean_defined(column), *ends[str(i)], float(ps[i]), _defined(column),
        )  # fmt: skip
        checks.setdefault(rule, []).append(_check_drop(rule, part, drop, len(columns), baseline.name, limits))
    return checks


class _Drop(NamedTuple):
    """The change of one mean, over the queries with a score in both runs."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float
    queries: int


def _check_drop(rule: NoDrop, part: Part, drop: _Drop, checks: int, baseline: str, limits: DropLimits) -> Check:
    """Fail a drop that is significant, or larger than the tolerance."""
    whole = part.by is None
    rule_text = str(rule if whole else rule._replace(tolerance=None))  # a rule's tolerance is not for slices
    given = limits.tolerance if rule.tolerance is None else rule.tolerance
    tolerance = given if whole else limits.slice_tolerance
    figures = drop._asdict()
    made = Check(rule_text, part.name, "passed", _change(drop, baseline), rule.metric, figures=figures, by=part.by)
    if drop.queries == 0:
        if whole:
            raise BadArgument(f"{rule}: no query has a score in both the run and the baseline")
        return made._replace(verdict="undecided", text="undefined for all of its queries", figures={})
    if -drop.difference > SLACK and drop.p <= limits.alpha:
        return made._replace(verdict="failed")
    if tolerance is not None and -drop.difference > tolerance + SLACK:
        return made._replace(verdict="failed", text=f"{made.text}: more than the {tolerance:g} allowed")
    if tolerance is None and drop.queries < min_queries(checks, limits.alpha):
        return made._replace(verdict="undecided", text=f"{made.text}: {TOO_FEW}")
    if tolerance is None and drop.high < 0:
        return made._replace(text=f"{made.text}: not significant; a tolerance would decide")
    return made


def _change(drop: _Drop, baseline: str) -> str:
    if drop.difference >= -SLACK:
        return f"{signed(drop.difference)} against {baseline}"
    between = f" {span(drop.low, drop.high, sign='+')}".rstrip()
    few = plural(drop.queries, "query", "queries")
    few += ", too few for an interval" if drop.low != drop.low else ""
    how = f"({signed(drop.difference)}{between}, {p_equals(drop.p)}, {few})"
    return f"{number(drop.before)} → {number(drop.after)}  {how}"


def check_must_pass(run: Run, baseline: Baseline | None, metrics: Iterable[str], ids: Iterable[str]) -> list[Check]:
    """Check that these queries are not below the baseline, or at 1 without one, in every metric with a rule."""
    checks = []
    for query in dict.fromkeys(ids):
        row, failed = run.row(query), []
        for metric in dict.fromkeys(metrics):
            score = float(run.scores[metric][row])
            expected = 1.0 if baseline is None else min(1.0, float(baseline.scores(metric)[row]))
            if score != score or expected != expected:
                raise BadArgument(f'{metric} is undefined for the must-pass query "{query}"')
            if score < expected - SLACK:
                was = "expected 1" if baseline is None else f"was {number(expected)}"
                failed.append(f"{metric} {number(score)}, {was}")
        checks.append(Check("must-pass", None, _verdict(passed=not failed), "; ".join(failed), query=query))
    return checks


def _defined(values: Floats) -> int:
    return int(np.count_nonzero(~np.isnan(values)))
