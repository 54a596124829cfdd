"""Remarks on comparisons, gates, calibrations and test sets: the sentences for their notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from karat._internal.display import plural, sanitize
from karat.analysis.rules import NoDrop, worse_change
from karat.metrics.names import more_is_better
from karat.report.notes import listed, too_few
from karat.report.notes import remarks as run_remarks
from karat.report.unjudged_items import differs
from karat.run.repeats import judged_in_words
from karat.samples.notes import Note
from karat.stats import ALPHA

if TYPE_CHECKING:
    from karat.analysis.calibrate import Calibration
    from karat.analysis.compare import Comparison
    from karat.analysis.gate import Gate
    from karat.analysis.lint import Lint


def comparison_remarks(comparison: Comparison) -> list[str]:
    """The differences of the runs, and the queries that were excluded."""
    lines = [_comparison_note(note, comparison) for note in comparison.notes]
    rows = comparison.rows
    lines += too_few({row.metric: row.n for row in rows}) if comparison.summary is None else []
    unsure = [row.metric for row in rows if row.p < ALPHA and row.low <= 0 <= row.high]
    if unsure and len(comparison.names) == 2:
        lines.append(
            f"{', '.join(unsure)}: p < {ALPHA:g}, yet the interval contains 0. p assumes that gains and losses are "
            "alike; the interval also allows for larger ones than were seen."
        )
    repeated = [name for name, run in zip(comparison.names, comparison.runs, strict=True) if run.averages is not None]
    if repeated:
        once = "a query counts once, with the mean of its repeats; ranks are those of the first"
        lines.append(f"Repeats in {', '.join(repeated)}: {once}.")
    lines += [
        f"{name}: {judged_in_words(run.with_repeats)}."
        for name, run in zip(comparison.names, comparison.runs, strict=True)
        if run.with_repeats.failures
    ]
    lines += [*_excluded(comparison), *_unknown_direction(row.metric for row in rows)]
    return [sanitize(line) for line in lines]


def _unknown_direction(metrics: Iterable[str]) -> list[str]:
    """A sentence on the metrics that are not registered here, and whose run files do not say if less is better."""
    unknown = [name for name in dict.fromkeys(metrics) if more_is_better(name) is None]
    return [f"{', '.join(unknown)}: more is taken as better; the run files do not say it."] if unknown else []


def _excluded(comparison: Comparison) -> list[str]:
    """The queries without a score in some run: those that failed, and those for which a metric is undefined."""
    failures = {query for run in comparison.runs for query in run.failures}
    failed = np.array([query in failures for query in comparison.ids])
    counts: dict[tuple[int, int], list[str]] = {}
    for name, values in comparison.scores[0].items():
        out = comparison.about(name) & np.isnan(values)
        counts.setdefault((int(out.sum()), int((out & failed).sum())), []).append(name)
    lines = []
    for (count, own), names in sorted(counts.items()):
        if not count:
            continue
        which = "" if len(counts) == 1 else f" for {', '.join(names)}"
        why = "failed" if own == count else f"{'is' if count == 1 else 'are'} undefined"
        if 0 < own < count:
            why = f"failed ({own:,}) or are undefined"
        queries, verb = plural(count, "query", "queries"), "was" if count == 1 else "were"
        lines.append(f"{queries} {why} in at least one run{which} and {verb} excluded.")
    return lines


def _comparison_note(note: Note, comparison: Comparison) -> str:
    d = note.details
    if note.kind == "judged_differs":
        return differs(note, comparison)
    if note.kind == "mismatch":
        first, second = d["runs"]
        return f"{first} and {second} were compared in spite of differences: {'; '.join(d['differences'])}."
    if note.kind == "shared_queries":
        sizes = ", ".join(f"{name} has {size:,}" for name, size in d["sizes"].items())
        return f"Compared over the {plural(note.count, 'query', 'queries')} in every run: {sizes}."
    return f"Not in every run and not compared: {', '.join(d['metrics'])} of {d['run']}."


def gate_remarks(gate: Gate) -> list[str]:
    """The power of the tests, the queries without a score, and the remarks on the data."""
    means = all(isinstance(rule, NoDrop) or rule.statistic == "mean" for rule in gate.rules)
    about = run_remarks(gate.run.with_repeats, ids=True, interval="an interval" if means else "an interval of the mean")
    direction = _unknown_direction(rule.metric for rule in gate.rules if rule.metric in gate.run.scores)
    lines = (*no_baseline(gate), *_power(gate), *_without_score(gate), *direction, *about)
    return [sanitize(line) for line in lines]


def no_baseline(gate: Gate) -> list[str]:
    """The rules that are undecided without a baseline, and the command that makes one."""
    if gate.baseline is not None or not any(check.verdict == "undecided" for check in gate.checks):
        return []
    path = gate.missing_baseline
    if path is None:
        why, how = "No baseline was given", "karat eval FILE -o main.parquet, then --baseline main.parquet"
    else:
        why, how = f"There is no baseline yet: {path} does not exist", f"karat eval FILE -o {path}"
    must_pass = path is not None and any(check.query is not None for check in gate.checks)
    rules = " and ".join(f"no-{change}" for change in _changes(gate)).capitalize()
    which = f"{rules} rules and must-pass queries are" if must_pass else f"{rules} rules are"
    others = "" if gate.verdict == "undecided" else "; the other rules were checked"
    return [
        f"{why}. {which} undecided{others}.",
        f"To make a baseline, evaluate the main branch: {how}. If this run is good, its file can be the baseline.",
    ]


def _changes(gate: Gate) -> list[str]:
    """The changes that the no-drop rules are against: drop, rise where less is better, or both."""
    found = {rule.change for rule in gate.rules if isinstance(rule, NoDrop)}
    return sorted(found or {"drop"})


def _power(gate: Gate) -> list[str]:
    power = gate.power()
    if not power:
        unused = gate.by and not any(isinstance(rule, NoDrop) for rule in gate.rules)
        by = " and ".join(gate.by)
        return [f"Slices by {by} were not checked: only no-drop and no-rise rules apply to slices."] if unused else []
    changes = _changes(gate)
    kind, worse = " and ".join(f"no-{change}" for change in changes), changes[0]
    tests = plural(gate.drop_checks, f"{kind} check", f"{kind} checks")
    worse += " (or a rise, where less is better)" if len(changes) > 1 else ""
    lines = [
        f"p: one-sided sign-flip test, corrected over {tests} (maxT); a {worse} with p <= {gate.limits.alpha:g} fails."
    ]
    for metric, queries, drop in power:
        change = worse_change(metric)
        if drop == drop:
            able = plural(queries, "query", "queries")
            lines.append(
                f"{able} can detect a {change} of {drop:.3f} in {metric} (80 % power); smaller {change}s may be missed."
            )
        elif gate.baseline is not None and not np.nan_to_num(gate.baseline.changes(gate.run, metric)).any():
            lines.append(f"{metric}: no query changed.")
        else:
            lines.append(f"{plural(queries, 'query is', 'queries are')} too few to detect a {change} in {metric}.")
    return lines


def _without_score(gate: Gate) -> list[str]:
    """The queries that could not be judged, and those without a retrieved item that may have an answer."""
    run, failed = gate.run, list(gate.run.with_repeats.failures)
    empty = [run.ids[row] for row in np.flatnonzero((run.all_hits.depth == 0) & ~run.unanswerable).tolist()]
    empty = [query for query in empty if query not in gate.run.failures]
    lines = [f"Not judged: {listed(failed)}."] if failed else []
    return [*lines, f"Nothing was retrieved for {listed(empty)}."] if empty else lines


def calibration_remarks(calibration: Calibration) -> list[str]:
    """Remarks on the labels, on those that were not used, and on the assumptions of the numbers."""
    return [sanitize(_CALIBRATION[note.kind](note)) for note in calibration.notes]


def _labels_read(note: Note) -> str:
    d = note.details
    meaning = {
        "score": f"the {d['metric']} of a query",
        "gold": f"a gold item is found in the {'retrieved items' if d['depth'] is None else 'top ' + str(d['depth'])}",
        "rank": "the item at a rank is relevant",
        "pair": "the item at a rank satisfies a gold item",
    }
    by = ", ".join(f'"{name}"' for role, name in d["columns"].items() if role != "value")
    return f'Labels (column "{d["columns"]["value"]}" by {by}) were read as: {meaning[d["kind"]]}.'


def _labels_unused(note: Note) -> str:
    reasons = {
        "unknown_query": "of queries that are not in the run: not used.",
        "unknown_item": "of items that are not in the run: not used.",
        "not_judged": "of queries that could not be judged: not used.",
        "repeated": "repeated: used once.",
    }
    return f"{plural(note.count, 'label is', 'labels are')} {reasons[note.details['why']]}"


def _no_corrected_mean(note: Note) -> str:
    d, metric = note.details, note.details["metric"]
    needs = {
        "gold": "the ranks at which each gold item is found (columns gold, rank, label), or labelled_depth",
        "rank": "the gold items that each rank satisfies (columns gold, rank, label)",
        "pair": "more than yes or no",
        "grade": "grades, not only yes or no",
    }
    reasons = {
        "not_fully_labelled": f"no query is fully labelled for {metric}",
        "not_from_hits": f"{metric} of this run cannot be recomputed from its hits",
        "not_affected": f"{metric} does not depend on the labelled judgements",
        "not_determined": f"{metric} needs {needs.get(d.get('kind', ''), '')}; scores of whole queries work too",
        "not_computed": f"{metric} cannot be computed here: {d.get('problem')}",
    }
    return f"No corrected mean: {reasons[d['reason']]}."


def _not_random(note: Note) -> str:
    shift = note.details["shift"]
    return (
        f"The judge scores the labelled queries {'higher' if shift > 0 else 'lower'} than the others, by "
        f"{abs(shift):.1f} standard errors. If they are not a random sample, the corrected mean is not valid."
    )


_CALIBRATION: dict[str, Callable[[Note], str]] = {
    "labels_read": _labels_read,
    "labels_unused": _labels_unused,
    "labels_by_number": lambda note: f'Column "{note.details["column"]}" was read as numbers of gold items, from 0.',
    "labels_undefined": lambda note: (
        f"{plural(note.count, 'label is', 'labels are')} of queries for which {note.details['metric']} is undefined: "
        "not used."
    ),
    "rows_without_label": lambda note: f"{plural(note.count, 'row has', 'rows have')} no label.",
    "partially_labelled": lambda note: (
        f"{plural(note.count, 'query is', 'queries are')} partially labelled and excluded from the corrected mean."
    ),
    "no_corrected_mean": _no_corrected_mean,
    "too_few_for_interval": lambda note: too_few({"": note.count})[0],
    "too_few_labelled": lambda note: f"No corrected mean: it needs at least {note.count} queries with a human score.",
    "not_judged": lambda note: (
        f"{note.count:,} of {plural(note.of, 'query', 'queries')} could not be judged and "
        f"{'is' if note.count == 1 else 'are'} excluded from the means."
    ),
    "undefined": lambda note: (
        f"{plural(note.count, 'query is', 'queries are')} undefined for {note.details['metric']} and excluded "
        "from the means."
    ),
    "not_random": _not_random,
    "assumes_random": lambda note: "The corrected mean is valid if the labelled queries are a random sample.",
}


_SKIPPED = {
    "no_corpus": "No corpus was given: gold was not checked against the documents.",
    "no_query_texts": "The queries have no texts: repeated queries were not checked.",
    "no_texts": "There are no retrieved texts and no corpus: near copies of gold were not checked.",
    "no_runs": "No runs were given: saturation was not checked.",
}


def skipped_checks(lint: Lint) -> list[str]:
    """The checks of a test set that were skipped."""
    return [_SKIPPED[note.kind] for note in lint.skipped]
