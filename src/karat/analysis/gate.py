"""Gate a run for CI: limits, drops below a baseline, slices, and queries that must pass."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import cut_name, plural, sanitize
from karat._internal.result import Result
from karat.analysis.changes import QueryChange, check_comparable, few_groups, query_change, rows_of
from karat.analysis.checks import (
    Baseline,
    Check,
    DropLimits,
    Part,
    Verdict,
    check_change,
    check_drops,
    check_judged,
    check_limit,
    check_must_pass,
)
from karat.analysis.rules import SLACK, NoChange, NoDrop, Rule, read_rules, read_tolerance, with_fields
from karat.errors import BadArgument, InputError
from karat.metrics.names import sign_of
from karat.run import Run
from karat.run.file import as_run
from karat.stats import ALPHA, detectable
from karat.stats.paired import min_queries

MIN_JUDGED = 0.8
"""The share of the queries that must have been judged."""


class Power(NamedTuple):
    """The minimum detectable drop of a metric at 80 % power; NaN if no query changed, or the queries are too few."""

    metric: str
    queries: int
    drop: float


@dataclass(repr=False, eq=False, kw_only=True)
class Gate(Result):
    """The result of `karat.gate`: every check, passed or failed."""

    run: Run
    name: str
    """The file name of the run, or where its data is from."""
    when: datetime
    rules: list[Rule]
    checks: list[Check]
    baseline: Baseline | None = None
    missing_baseline: str | None = None
    """The path of a baseline that does not exist yet."""
    by: tuple[str, ...] = ()
    limits: DropLimits
    fail_undecided: bool = False

    @property
    def counts(self) -> dict[Verdict, int]:
        """The number of checks with each verdict."""
        found = Counter(check.verdict for check in self.checks)
        return {verdict: found[verdict] for verdict in get_args(Verdict)}

    @property
    def verdict(self) -> Verdict:
        """Failed if a check failed; undecided if no rule could be decided; else passed."""
        if self.counts["failed"] or (self.fail_undecided and self.counts["undecided"]):
            return "failed"
        decided = any(check.passed for check in self.checks if check.metric or check.query is not None)
        return "passed" if decided else "undecided"

    @property
    def passed(self) -> bool:
        """True if no check failed, and at least one rule could be decided."""
        return self.verdict == "passed"

    @property
    def exit_code(self) -> int:
        """0 if the gate passed, 1 if it failed, 2 if nothing could be decided; also 2 on an error."""
        return {"passed": 0, "failed": 1, "undecided": 2}[self.verdict]

    @property
    def metrics(self) -> list[str]:
        """The metrics with a rule, those first that failed one; no measures."""
        failed = {check.metric for check in self.checks if check.failed}
        rules = [rule for rule in self.rules if rule.metric in self.run.scores]
        ordered = sorted(rules, key=lambda rule: rule.metric not in failed)
        return list(dict.fromkeys(rule.metric for rule in ordered))

    def worst(self, count: int = 10) -> list[QueryChange]:
        """The queries that became worse most against the baseline; without one, those with the worst scores."""
        losses: dict[int, tuple[float, str]] = {}
        for metric in self.metrics if self.baseline else self.metrics[:1]:
            best = max(sign_of(metric), 0.0)
            expected = self.baseline.scores(metric) if self.baseline else best
            lost = sign_of(metric) * (expected - self.run.scores[metric])
            for row in np.flatnonzero(lost > SLACK).tolist():
                if row not in losses or lost[row] > losses[row][0] + SLACK:
                    losses[row] = float(lost[row]), metric
        rows = sorted(losses, key=lambda row: (-losses[row][0], row))[:count]
        before = self.baseline.run if self.baseline else None
        return [query_change(before, self.run, self.run.ids[row], losses[row][1]) for row in rows]

    @property
    def drop_checks(self) -> int:
        """The number of significance tests, over which the p-values are corrected."""
        return sum("difference" in check.figures for check in self.checks)

    def power(self) -> list[Power]:
        """The minimum detectable drop of each metric with a no-drop rule."""
        metrics = dict.fromkeys(rule.metric for rule in self.rules if isinstance(rule, NoDrop))
        return [] if self.baseline is None else [self._power(metric, self.baseline) for metric in metrics]

    def _power(self, metric: str, baseline: Baseline) -> Power:
        change = baseline.changes(self.run, metric)
        change = change[~np.isnan(change)]
        enough = len(change) > 1 and change.any()
        drop = _detectable_drop(change, self.drop_checks, self.limits.alpha) if enough else float("nan")
        return Power(metric, len(change), drop if drop <= 1 else float("nan"))

    def remarks(self) -> list[str]:
        """One sentence for each thing to know: how drops were tested, what was excluded, how the data was read."""
        return list(self._render("remarks"))

    def to_junit(self) -> str:
        """JUnit XML: one test case per check."""
        return str(self._render("junit"))


def _detectable_drop(change: Floats, checks: int, alpha: float) -> float:
    """The smallest drop that would probably fail if it were the only one of these checks to drop."""
    by_spread = detectable(float(change.std(ddof=1)), len(change), alpha=min(2 * alpha / checks, 0.99))
    # If few queries changed, the spread looks small, but a minimum number of queries must drop to be significant.
    typical = float(np.abs(change[change != 0]).mean())
    return max(by_spread, min_queries(checks, alpha) * typical / len(change))


def gate(
    run: Run | str | PathLike[str],
    *rules: str,
    baseline: Run | str | PathLike[str] | None = None,
    by: str | Sequence[str] = (),
    must_pass: str | PathLike[str] | Iterable[str] = (),
    tolerance: float | None = None,
    slice_tolerance: float | None = None,
    alpha: float = ALPHA,
    min_defined: int = 1,
    min_judged: float = MIN_JUDGED,
    fail_undecided: bool = False,
) -> Gate:
    """Check a run against rules and a baseline.

    Args:
        run: the run, or the path of its file.
        rules: such as "recall@5 >= 0.80" (the mean), "recall@5 lower >= 0.75" (the lower end of its 95 % interval),
            "recall@5 p10 >= 0.3" (a summary other than the mean, as in `run.summary`; also with "lower" or "upper"),
            "ndcg@10 no-drop" (no significant drop below the baseline), "ndcg@10 no-drop 0.01" (nor one above 0.01).
        baseline: the run to compare with, or the path of its file; it must have the same queries, gold and settings.
            If there is no such file yet, the checks that need it are undecided.
        by: a field of the samples, or several. No-drop rules are also checked for each value; "a,b" crosses two.
        must_pass: ids of queries that may not drop at all, or the path of a file with one id per line.
        tolerance: a larger drop fails even if it is not significant.
        slice_tolerance: the same for slices.
        alpha: the significance level: the false-alarm rate of all no-drop checks together.
        min_defined: raise an error if a mean is over fewer queries.
        min_judged: fail, without checking the rules, if a smaller share of the queries was judged, or none; of their
            repeats, if there are any.
        fail_undecided: fail also if a check is undecided: too few queries to detect a drop, or no baseline.

    Returns:
        A `Gate`: `passed`, `verdict`, `checks`, `counts`, `worst()`, `remarks()`, `exit_code`, `to_dict()`,
        `to_markdown()`, `to_junit()`. An error is raised if the input is unusable.

    Example:
        >>> gate = karat.gate("branch.parquet", "recall@5 >= 0.80", "ndcg@10 no-drop", baseline="main.parquet")
        >>> gate.passed
        True
    """
    checked = with_fields(as_run(run), rules).averaged()
    read = read_rules(rules, checked)
    if not isinstance(min_defined, int):
        raise BadArgument("min_defined is a number of queries", got=min_defined, hint="20")
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise BadArgument("alpha must be between 0 and 1", got=alpha, hint="0.05")
    tolerances = (None if given is None else read_tolerance(given) for given in (tolerance, slice_tolerance))
    limits = DropLimits(alpha, *tolerances)
    fields = (by,) if isinstance(by, str) else tuple(by or ())
    found = Gate(
        run=checked, name=cut_name(checked.name, 60), when=_now(), rules=read, by=fields, limits=limits,
        checks=check_judged(checked.with_repeats, min_judged), fail_undecided=fail_undecided,
    )  # fmt: skip
    if found.counts["failed"]:
        return found
    for rule in read:
        _check_defined(checked, rule.metric, min_defined)
    if baseline is not None:
        if not isinstance(baseline, Run) and not Path(baseline).exists():
            found.missing_baseline = sanitize(str(baseline))
        else:
            found.baseline = _baseline(checked, baseline, read)
    found.checks += _check_rules(found)
    found.checks += _check_must_pass(found, list(_must_pass_ids(must_pass)))
    return found


def _now() -> datetime:
    """The time, or that of SOURCE_DATE_EPOCH, with which output can be repeated."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(given), UTC) if given.isdecimal() else datetime.now(UTC)


def _check_rules(gate: Gate) -> list[Check]:
    """The checks of all rules, in the order of the rules."""
    no_drop = [rule for rule in gate.rules if isinstance(rule, NoDrop)]
    parts = [
        Part(groups.name, name, rows)
        for groups in (few_groups(gate.run.meta, fields) for fields in gate.by)
        for name, rows in groups.rows.items()
    ]
    if gate.baseline is None:
        drops = {rule: [Check(str(rule), None, "undecided", "no baseline", rule.metric)] for rule in no_drop}
    else:
        drops = check_drops(gate.run, gate.baseline, no_drop, parts, gate.limits) if no_drop else {}
    checks: list[Check] = []
    for rule in gate.rules:
        if isinstance(rule, NoDrop):
            checks += drops[rule]
        elif isinstance(rule, NoChange):
            checks.append(_check_change(gate, rule))
        else:
            checks.append(check_limit(gate.run.with_repeats, rule))
    return checks


def _check_change(gate: Gate, rule: NoChange) -> Check:
    """The check of a rule about the change of a numeric field."""
    if gate.baseline is None:
        return Check(str(rule), None, "undecided", "no baseline", rule.metric)
    field = next(field for field in gate.run.number_fields if field.name == rule.metric)
    base = gate.baseline.run.with_repeats
    base = base.also([str(field)]) if field.name in base.meta and field.name not in base.numbers else base
    return check_change(gate.run.with_repeats, base, gate.run.ids, rule)


def _check_must_pass(gate: Gate, ids: Sequence[str]) -> list[Check]:
    """The checks of the must-pass queries; undecided if there will be a baseline, but there is none yet."""
    if ids and not gate.metrics:
        raise BadArgument("must-pass queries need a rule about a metric", hint='"recall@5 >= 0.80"')
    checks = check_must_pass(
        gate.run, gate.baseline, [rule.metric for rule in gate.rules if rule.metric in gate.run.scores], ids
    )
    if gate.missing_baseline is None:
        return checks
    return [check._replace(verdict="undecided", text="no baseline") for check in checks]


def _check_defined(run: Run, metric: str, least: int) -> None:
    """Refuse a mean over too few queries."""
    defined = len(run) - int(np.isnan(run.all_columns[metric]).sum())
    if defined < max(least, 1):
        have = plural(defined, "query", "queries")
        problem = f"{metric} is defined for {have} of {len(run):,}; expected at least {max(least, 1):,}"
        unmarked = not run.unanswerable.any() and not run.about(metric).any()
        raise BadArgument(problem, hint='"answerable": false in some samples' if unmarked else None)


def _baseline(run: Run, given: Run | str | PathLike[str], rules: Sequence[Rule]) -> Baseline:
    """The baseline, if it has the same queries, gold and settings."""
    base = as_run(given).averaged()
    file = given.file if isinstance(given, Run) else given
    name = "the baseline" if file is None else cut_name(Path(file).name.removesuffix(".parquet"), 40)
    try:
        check_comparable(base, run, names=("the baseline", "the run"))
    except BadArgument as error:
        error.hint = "karat eval on the main branch, with the same gold and settings"
        raise
    for rule in rules:
        if rule.metric not in base.columns and rule.metric in run.columns:
            raise BadArgument(
                f"the baseline has no {rule.metric}", hint="karat eval on the main branch, with this metric"
            )
    return Baseline(name, cut_name(base.name, 60), base, rows_of(base, run.ids))


def _must_pass_ids(given: object) -> Iterable[str]:
    if isinstance(given, str | PathLike):
        return read_ids(given)
    if not isinstance(given, Iterable):
        raise BadArgument("must_pass is a list of query ids, or the path of a file of them", got=given)
    return map(str, given)


def read_ids(path: str | PathLike[str]) -> dict[str, int]:
    """The query ids of a file, one per line, and the lines; a # at the start or after a space begins a comment."""
    from karat.samples.encoding import encoding_error

    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"the file of must-pass queries {path} cannot be read: {why}") from error
    if (not_text := encoding_error(str(path), content)) is not None:
        raise not_text
    lines = content.decode("utf-8-sig").split("\n")
    ids = ((f" {line}".replace("\t", " ").partition(" #")[0].strip(), number) for number, line in enumerate(lines, 1))
    return {query: number for query, number in ids if query}
