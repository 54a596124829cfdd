"""Checks of a gate: each compares a run with a rule, and has a verdict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, mean_defined
from karat._internal.display import number, p_equals, percent, plural, quantity, quantity_span, signed, span
from karat.analysis.number_tests import paired_calls, shared_calls
from karat.analysis.rules import NEVER, SLACK, Limit, NoChange, NoDrop, digits, worse_change
from karat.errors import BadArgument
from karat.judges.protocol import share_of_one
from karat.metrics.names import sign_of
from karat.run import Run
from karat.run.repeats import judged_in_words
from karat.stats import Summary, difference_intervals, read_statistic
from karat.stats.paired import maxt_p_values, min_queries
from karat.stats.summary import least_for_interval

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


def too_few(metric: str) -> str:
    """The reason for which a no-drop rule is undecided."""
    return f"too few queries to detect a {worse_change(metric)}"


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
        """The gain of each query, negative if it became worse; rounding errors are no change."""
        change = sign_of(metric) * (run.scores[metric] - self.scores(metric))
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
    text = judged_in_words(run) + ("" if passed else ": the rules were not checked")
    rule, of = f"judged >= {digits(share)}" if share else "judged > 0", "queries" if run.repeats is None else "repeats"
    return [Check(rule, None, _verdict(passed=passed), text, figures={"judged": run.judged_rows, of: len(run)})]


def check_limit(run: Run, rule: Limit) -> Check:
    """Compare a mean or another summary, or an end of its interval, with a number."""
    if rule.metric in run.numbers:
        return _check_number(run, rule)
    if rule.measure:
        return _check_measure(run, rule)
    if rule.statistic == "mean":
        found = Summary(run.mean[rule.metric], *run.interval()[rule.metric], run.defined[rule.metric])
    else:
        found = run.summary(rule.statistic)[rule.metric]
    value, low, high, count = found
    figures = {"mean" if rule.statistic == "mean" else "value": value, "low": low, "high": high, "queries": count}
    ends = {"lower": low, "upper": high}
    limited = ends.get(rule.end, value)
    shown = [_distinct(end, rule.value, 2) if name == rule.end else number(end, 2) for name, end in ends.items()]
    between = f"[{', '.join(shown)}]" if low == low or high == high else ""
    if limited != limited:  # the rule asks for evidence, and there is none
        unit = ("family is", "families are") if rule.statistic.startswith("worst") else ("query is", "queries are")
        which = f"the {rule.end} end of an interval" if between or rule.statistic != "mean" else "an interval"
        which += "" if rule.statistic == "mean" else f" of {rule.statistic}"
        least = least_for_interval(read_statistic(rule.statistic), rule.end)
        few = f"{plural(count, *unit)} too few for {which}: it takes at least {least}"
        return Check(str(rule), None, "failed", f"{number(value)}: {few}", rule.metric, figures=figures)
    text = f"{_distinct(value, rule.value)} {between}".rstrip()
    return Check(str(rule), None, _verdict(passed=rule.holds(limited)), text, rule.metric, figures=figures)


def _check_measure(run: Run, rule: Limit) -> Check:
    """Compare a summary of a measure with a number."""
    of = run.measure_summary[rule.metric]
    share = of.never / of.defined
    if rule.statistic == NEVER:
        found = Summary(share, np.nan, np.nan, of.defined)
    else:
        found = run.summary(rule.statistic)[rule.metric]
    value = {"lower": found.low, "upper": found.high}.get(rule.end, found.value)
    figures = {"median": of.median, "p90": of.p90, "mean": of.mean, rule.statistic: found.value, "never": share}
    figures |= {"low": found.low, "high": found.high} if rule.end else {}
    finite = {name: number for name, number in (figures | {"queries": of.defined}).items() if abs(number) < np.inf}
    text = percent(share) if rule.statistic == NEVER else "never" if np.isinf(value) else f"{value:,.4g}"
    if of.never:
        text += f": never reached in {of.never:,} of {plural(of.defined, 'query', 'queries')}"
    elif value != value:
        text = _no_end(rule, found.n)
    passed = value == value and rule.holds(value)
    return Check(str(rule), None, _verdict(passed=passed), text.removeprefix("nan: "), rule.metric, figures=finite)


def _check_number(run: Run, rule: Limit) -> Check:
    """Compare a summary of a numeric field of the samples, or an end of its interval, with a number."""
    found = run.summary(rule.statistic)[rule.metric]
    value = {"lower": found.low, "upper": found.high}.get(rule.end, found.value)
    figures = {rule.statistic: found.value, "low": found.low, "high": found.high, "queries": found.n}
    text = f"{quantity(found.value, rule.unit)} {quantity_span(found.low, found.high, found.value, rule.unit)}".rstrip()
    if value != value:
        text += f": {_no_end(rule, found.n, ('quantile', 'mean'))}"
    passed = value == value and rule.holds(value)
    return Check(str(rule), None, _verdict(passed=passed), text, rule.metric, figures=figures)


def check_change(run: Run, baseline: Run, ids: Sequence[str], rule: NoChange) -> Check:
    """Compare a summary of a numeric field with that of the baseline, over the queries with a number in both."""
    if rule.metric not in baseline.numbers:
        raise BadArgument(f"the baseline has no {rule.metric}", hint=f'"{rule.metric}" in the samples of both runs')
    before, after = shared_calls([baseline, run], rule.metric, ids)
    if not len(before.values):
        raise BadArgument(
            f"no query has {rule.metric} in both runs", hint=f'"{rule.metric}" in the samples of both runs'
        )
    statistic = read_statistic(rule.statistic)
    old, new, test = (
        before.summary(statistic).value,
        after.summary(statistic).value,
        paired_calls(before, after, statistic),
    )
    worse = test.difference if rule.change == "rise" else -test.difference
    allowed = rule.tolerance * (abs(old) if rule.share else 1.0)
    between = quantity_span(test.low, test.high, test.difference, rule.unit, "+")
    change = f"{quantity(test.difference, rule.unit, '+')} {between}".rstrip()
    text = f"{quantity(old, rule.unit)} → {quantity(new, rule.unit)} ({change}, {plural(test.n, 'query', 'queries')})"
    figures = {"before": old, "after": new, "change": test.difference, "low": test.low, "high": test.high}
    figures["queries"] = test.n
    passed = worse <= allowed + SLACK * max(abs(old), abs(new))
    return Check(str(rule), None, _verdict(passed=passed), text, rule.metric, figures=figures)


def _no_end(rule: Limit, count: int, known: Collection[str] = ("quantile",)) -> str:
    """The reason for which a measure has no such end of an interval, given the summaries that have intervals."""
    statistic = read_statistic(rule.statistic)
    if statistic.name not in known:
        return f"the {rule.statistic} of a measure has no interval"
    few = plural(count, "query is", "queries are")
    least = least_for_interval(statistic, rule.end)
    return f"{few} too few for the {rule.end} end of an interval of {statistic}: it takes at least {least}"


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
        if sign_of(rule.metric) < 0:
            drop = drop._replace(difference=-drop.difference, low=-drop.high, high=-drop.low)
        if part.by is not None and not run.about(rule.metric)[part.rows].any():
            continue  # such as recall in a slice of queries without an answer
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
    sign = sign_of(rule.metric)
    loss = -sign * drop.difference
    made = Check(
        rule_text, part.name, "passed", _change(drop, baseline, loss), rule.metric, figures=figures, by=part.by
    )
    if drop.queries == 0:
        if whole:
            raise BadArgument(f"{rule}: no query has a score in both the run and the baseline")
        return made._replace(verdict="undecided", text="undefined for all of its queries", figures={})
    if loss > SLACK and drop.p <= limits.alpha:
        return made._replace(verdict="failed")
    if tolerance is not None and loss > tolerance + SLACK:
        return made._replace(verdict="failed", text=f"{made.text}: more than the {tolerance:g} allowed")
    if tolerance is None and drop.queries < min_queries(checks, limits.alpha):
        return made._replace(verdict="undecided", text=f"{made.text}: {too_few(rule.metric)}")
    if tolerance is None and (drop.high if sign > 0 else -drop.low) < 0:
        return made._replace(text=f"{made.text}: not significant; a tolerance would decide")
    return made


def _change(drop: _Drop, baseline: str, loss: float) -> str:
    if loss <= SLACK:
        return f"{signed(drop.difference)} against {baseline}"
    between = f" {span(drop.low, drop.high, sign='+')}".rstrip()
    few = plural(drop.queries, "query", "queries")
    few += ", too few for an interval" if drop.low != drop.low else ""
    how = f"({signed(drop.difference)}{between}, {p_equals(drop.p)}, {few})"
    return f"{number(drop.before)} → {number(drop.after)}  {how}"


def check_must_pass(run: Run, baseline: Baseline | None, metrics: Iterable[str], ids: Iterable[str]) -> list[Check]:
    """Check that these queries are not worse than the baseline, or perfect without one, in every metric with a rule.

    A query without an answer is checked in the metrics that are about such queries, the others in theirs.
    """
    checks = []
    for query in dict.fromkeys(ids):
        row, failed = run.row(query), []
        about = [metric for metric in dict.fromkeys(metrics) if run.about(metric)[row]]
        if not about:
            kind = "a query without an answer" if run.unanswerable[row] else "a query with an answer"
            raise BadArgument(f'no rule is about the must-pass query "{query}": it is {kind}')
        for metric in about:
            sign, score = sign_of(metric), float(run.scores[metric][row])
            best = max(sign, 0.0)
            expected = best if baseline is None else sign * min(sign * best, sign * float(baseline.scores(metric)[row]))
            if score != score or expected != expected:
                raise BadArgument(f'{metric} is undefined for the must-pass query "{query}"')
            if sign * (expected - score) > SLACK:
                was = f"expected {best:g}" if baseline is None else f"was {number(expected)}"
                failed.append(f"{metric} {number(score)}, {was}")
        checks.append(Check("must-pass", None, _verdict(passed=not failed), "; ".join(failed), query=query))
    return checks


def _defined(values: Floats) -> int:
    return int(np.count_nonzero(~np.isnan(values)))
