"""The gate: may this run be merged? Limits, drops against a baseline, slices, and queries that must pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import plural, sanitize
from karat._internal.result import Result
from karat.analysis.changes import Move, check_comparable, moves
from karat.analysis.rules import (
    SLACK,
    Baseline,
    Check,
    Limit,
    NoDrop,
    Rule,
    Terms,
    drops,
    limit,
    must_pass,
    read_rules,
    read_tolerance,
)
from karat.errors import BadArgument, InputError
from karat.run import Run
from karat.run.file import as_run
from karat.stats import ALPHA, detectable
from karat.stats.paired import smallest

_MOST_SLICES = 500
_NAMED = 5


class Worst(NamedTuple):
    """A query that scored badly: its score now, in the baseline if there is one, and where its gold items stand."""

    query_id: str
    query: str | None
    metric: str
    before: float | None
    after: float
    gold: list[Move]
    """Its gold items, with their ranks in the baseline and now."""


class Gate(Result):
    """What came of every check."""

    def __init__(
        self, run: Run, rules: Sequence[Rule], checks: list[Check], *, baseline: Baseline | None, by: str | None,
        terms: Terms,
    ) -> None:  # fmt: skip
        self.run = run
        self.rules = rules
        self.checks = checks
        self.baseline = baseline
        self.by = by
        self.terms = terms

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(check.passed for check in self.checks)

    @property
    def exit_code(self) -> int:
        """0 if it passed, 1 if it failed; what cannot be decided is an error, and 2 on the command line."""
        return 0 if self.passed else 1

    @property
    def metrics(self) -> list[str]:
        """The metrics that have a rule, those first that failed one."""
        failed = {check.metric for check in self.checks if not check.passed}
        ordered = sorted(self.rules, key=lambda rule: rule.metric not in failed)
        return list(dict.fromkeys(rule.metric for rule in ordered))

    def worst(self, count: int = 10) -> list[Worst]:
        """The queries that lost most against the baseline; without one, those with the lowest scores."""
        found: dict[int, tuple[float, str]] = {}
        for metric in self.metrics if self.baseline else self.metrics[:1]:
            wanted = self.baseline.scores(metric) if self.baseline else 1.0
            lost = wanted - self.run.scores[metric]
            for row in np.flatnonzero(lost > SLACK).tolist():
                if row not in found or lost[row] > found[row][0] + SLACK:
                    found[row] = float(lost[row]), metric
        rows = sorted(found, key=lambda row: (-found[row][0], row))[:count]
        return [self._worst(row, found[row][1]) for row in rows]

    def _worst(self, row: int, metric: str) -> Worst:
        query, base = self.run.ids[row], self.baseline
        found = [Move(item.gold, None, item.rank) for item in self.run.gold(query) if item.grade > 0]
        return Worst(
            query,
            None if self.run.query is None else self.run.query[row],
            metric,
            float(base.scores(metric)[row]) if base else None,
            float(self.run.scores[metric][row]),
            moves(base.run, self.run, query) if base else found,
        )

    def remarks(self) -> list[str]:
        """What was not looked at, and what could not have been seen."""
        return [sanitize(said) for said in (*self._unseen(), *self._unscored(), *self.run.remarks())]

    def _unseen(self) -> list[str]:
        """How drops were judged, and how large one must be to be noticed."""
        falling = dict.fromkeys(rule.metric for rule in self.rules if isinstance(rule, NoDrop))
        if not falling or self.baseline is None:
            return [f"no slice by {self.by} was judged: only no-drop rules look at slices."] if self.by else []
        count = sum("difference" in check.figures for check in self.checks)
        together = plural(count, "no-drop check", "no-drop checks")
        how = f"by one-sided sign flips; at {self.terms.alpha:g} or below it fails."
        said = [f"p: how often chance makes such a drop in any of {together}, {how}"]
        for metric in falling:
            change = self.baseline.changes(self.run, metric)
            change = change[~np.isnan(change)]
            if not change.any():
                said.append(f"{metric}: no query changed.")
            elif len(change) > 1:
                least = _least(change, count, self.terms.alpha)
                queries = plural(len(change), "query", "queries")
                said.append(f"with {queries} a drop below {least:.3f} in {metric} would often go unseen (80 % power).")
        return said

    def _unscored(self) -> list[str]:
        """The names of the queries without a score, or with nothing retrieved."""
        said = []
        missing: dict[tuple[str, ...], list[str]] = {}
        for metric in self.metrics:
            ids = tuple(self.run.ids[row] for row in np.flatnonzero(np.isnan(self.run.scores[metric])).tolist())
            missing.setdefault(ids, []).append(metric)
        for ids, metrics in missing.items():
            if ids:
                said.append(f"undefined for {', '.join(metrics)}: {_listed(ids)}.")
        empty = [self.run.ids[row] for row in np.flatnonzero(self.run.all_hits.depth == 0).tolist()]
        return [*said, f"nothing was retrieved for {_listed(empty)}."] if empty else said

    def to_junit(self) -> str:
        """For tools that show test results: one case for each check, as JUnit's XML."""
        return str(self._render("junit"))


def gate(
    run: Run | str | PathLike[str],
    *rules: str,
    baseline: Run | str | PathLike[str] | None = None,
    by: str | None = None,
    must_pass: str | PathLike[str] | Iterable[str] = (),
    tolerance: float | None = None,
    slice_tolerance: float | None = None,
    alpha: float = ALPHA,
    min_defined: int = 1,
    min_judged: float = 0.0,
) -> Gate:
    """Judge a run by rules such as "recall@5 >= 0.80", "recall@5 lower >= 0.75" and "ndcg@10 no-drop".

    A drop against the baseline fails if it is beyond chance (at `alpha`, for all checks together), or
    larger than the tolerance, if one is stated; with `by` each value of a field is judged as well. The
    queries of `must_pass` (ids, or the path of a file of them) may not fall at all. What cannot be
    decided raises: another gold than the baseline's, a metric that the run lacks, a mean over fewer
    queries than `min_defined`, a smaller share of the queries judged than `min_judged`.
    """
    own = as_run(run)
    read = read_rules(rules, own.scores)
    if not isinstance(min_defined, int):
        raise BadArgument("min_defined is a number of queries", got=min_defined, hint="20")
    for rule in read:
        _check_defined(own, rule.metric, min_defined)
    _check_judged(own, min_judged)
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise BadArgument("alpha lies between 0 and 1", got=alpha, hint="0.05")
    tolerances = (None if given is None else read_tolerance(given) for given in (tolerance, slice_tolerance))
    terms = Terms(alpha, *tolerances)
    base = None if baseline is None else _baseline(own, baseline, read)
    checks = _ruled(own, base, read, _slices(own, by), terms)
    checks += _must_pass(own, base, read, must_pass)
    return Gate(own, read, checks, baseline=base, by=by, terms=terms)


def _ruled(
    run: Run, base: Baseline | None, rules: Sequence[Rule], slices: Mapping[str, Sequence[int]], terms: Terms
) -> list[Check]:
    """The checks of all rules, in the order of the rules."""
    falling = [rule for rule in rules if isinstance(rule, NoDrop)]
    if falling and base is None:
        raise BadArgument(f'"{falling[0]}" needs a baseline', hint='baseline="main.parquet", or --baseline')
    judged = drops(run, base, falling, slices, terms) if falling and base else {}
    made: list[Check] = []
    for rule in rules:
        made += [limit(run, rule)] if isinstance(rule, Limit) else judged[rule]
    return made


def _check_defined(run: Run, metric: str, least: int) -> None:
    """Refuse a mean of too few queries: it would pass or fail for no reason."""
    defined = len(run) - run.undefined[metric]
    if defined < max(least, 1):
        have = plural(defined, "query", "queries")
        raise BadArgument(f"{metric} is defined for {have} of {len(run):,}; wanted at least {max(least, 1):,}")


def _check_judged(run: Run, least: float) -> None:
    """Refuse a run of which too much could not be judged: what is missing may be what is bad."""
    if not isinstance(least, int | float) or not 0 <= least <= 1:
        raise BadArgument("min_judged lies between 0 and 1", got=least, hint="0.95")
    judged = len(run) - len(run.failures)
    if judged < least * len(run):
        raise BadArgument(f"only {judged:,} of {len(run):,} queries were judged; wanted {100 * least:g} %")


def _baseline(run: Run, given: Run | str | PathLike[str], rules: Sequence[Rule]) -> Baseline:
    """The baseline, if it was made of the same queries and gold in the same way."""
    base = as_run(given)
    name = "the baseline" if isinstance(given, Run) else sanitize(Path(given).stem, 40)
    try:
        check_comparable(base, run, names=("the baseline", "the run"))
    except BadArgument as error:
        hint = "make the baseline anew: evaluate what is on main with the same gold and settings"
        raise BadArgument(error.problem, got=error.got, hint=hint) from error
    for rule in rules:
        if rule.metric not in base.scores:
            raise BadArgument(f"the baseline has no {rule.metric}", hint="make the baseline anew, with this metric")
    rows = {query: row for row, query in enumerate(base.ids)}
    return Baseline(name, base, np.array([rows[query] for query in run.ids], np.int64))


def _slices(run: Run, by: str | None) -> dict[str, list[int]]:
    """The rows of each value of a field."""
    if by is None:
        return {}
    parts = run.by(by)
    if len(parts) > _MOST_SLICES:
        raise BadArgument(f'"{by}" has {len(parts):,} values; at most {_MOST_SLICES} slices are judged')
    rows = {query: row for row, query in enumerate(run.ids)}
    return {value: [rows[query] for query in part.ids] for value, part in parts.items()}


def _must_pass(run: Run, base: Baseline | None, rules: Sequence[Rule], given: object) -> list[Check]:
    if isinstance(given, str | PathLike):
        given = read_ids(given)
    if not isinstance(given, Iterable):
        raise BadArgument("must_pass is a list of query ids, or the path of a file of them", got=given)
    return must_pass(run, base, [rule.metric for rule in rules], map(str, given))


def read_ids(path: str | PathLike[str]) -> list[str]:
    """A file of query ids, one per line; what follows a # at the start or after a space is a comment."""
    try:
        lines = Path(path).read_text("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        why = "is not UTF-8 text" if isinstance(error, ValueError) else "cannot be read"
        raise InputError(f"the file of must-pass queries {path} {why}") from error
    ids = [f" {line}".replace("\t", " ").partition(" #")[0].strip() for line in lines]
    return [query for query in ids if query]


def _least(change: Floats, checks: int, alpha: float) -> float:
    """The smallest drop that would probably fail, were it the only one of the checks to fall."""
    by_spread = detectable(float(change.std(ddof=1)), len(change), alpha=min(2 * alpha / checks, 0.99))
    # Where few queries changed, the spread looks small; but so many at least must fall before it counts.
    each = float(np.abs(change[change != 0]).mean())
    return max(by_spread, smallest(checks, alpha) * each / len(change))


def _listed(ids: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    shown = ", ".join(sanitize(query, 40) for query in ids[:_NAMED])
    return shown if len(ids) <= _NAMED else f"{shown} and {len(ids) - _NAMED:,} more"
