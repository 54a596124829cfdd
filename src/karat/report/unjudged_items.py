"""Unjudged items in words: their number, the bounds of the means, and how runs differ in them; and failed queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from karat._internal.arrays import mean_defined
from karat._internal.display import number, plural, signed
from karat.analysis.rules import SLACK
from karat.errors import BadArgument
from karat.metrics.names import sign_of
from karat.run import Run
from karat.run.bounds import QUICK, best_grade, knows_irrelevant, nothing_unjudged
from karat.samples.notes import Note
from karat.stats import Interval

if TYPE_CHECKING:
    import polars as pl

    from karat.analysis.compare import Comparison

_CAUSES_SHOWN = 3
_REPEATS = ("repeat", "repeats")
Ends = TypeVar("Ends")
_NO_IRRELEVANT = "The gold has no irrelevant items (grade 0): whatever is not gold counts as unjudged."
DIFFERENCE_HEADER = ("metric", "difference", "lowest", "highest", "whatever the labels")
HEADER = ("metric", "mean", "lowest", "highest")


def failed(run: Run) -> list[str]:
    """The number of queries that could not be judged, why, and the bounds of the means."""
    failures = run.failures
    if not failures:
        return []
    causes = Counter(failures.values()).most_common()
    why = "; ".join(f"{cause} ({count:,})" for cause, count in causes[:_CAUSES_SHOWN])
    more = f"; {len(causes) - _CAUSES_SHOWN} other causes" if len(causes) > _CAUSES_SHOWN else ""
    if not run.judged:
        return [f"0 of {plural(len(run.queries), 'query was', 'queries were')} judged: {why}{more}."]
    rows = f"{len(failures):,} of {plural(len(run), *('query', 'queries') if run.repeats is None else _REPEATS)}"
    missing, verb = len(run.queries) - run.judged, "is" if len(failures) == 1 else "are"
    if run.repeats is not None and missing:
        rows = f"{missing:,} of {plural(len(run.queries), 'query', 'queries')} and {rows}"
    ends = [(name, f"between {low:.3f} and {high:.3f}") for name, (low, high) in run.bounds(unjudged=False).items()]
    bounds = ", ".join([f"{ends[0][0]} would be {ends[0][1]}", *(f"{name} {text}" for name, text in ends[1:])])
    return [
        f"{rows} could not be judged and {verb} excluded: {why}{more}.",
        f"If {'it' if len(failures) == 1 else 'they all'} scored 0 or 1, {bounds}.",
    ]


def unjudged(run: Run) -> list[str]:
    """The number of unjudged items within the cutoff of the headline metric, and its bounds."""
    if run.convention.unjudged == "removed" and not knows_irrelevant(run.all_hits):
        problem = "Warning: the gold has no judged irrelevant items (grade 0), so removing unjudged items leaves only"
        return [f"{problem} relevant ones in the rankings: every item that was found is at the top."]
    found = run.judged_items
    if found is None or not found.unjudged.items:
        return []
    count, of = found.unjudged
    where = _where(found.name)
    items = f"{count:,} of the {plural(of, 'item', 'items')} {where} {'is' if count == 1 else 'are'} unjudged"
    if found.bounds is None:
        return [f"{items}: karat show RUN --bounds shows the bounds of the means."]
    low, high = found.bounds
    if run.mean[found.metric] != run.mean[found.metric]:
        one = "it" if count == 1 else "one of them"
        return [f"{items}: {found.metric} is defined only if {one} is relevant." if low == low else f"{items}."]
    grades = run.all_hits.gold_items.grade
    graded = len(set(grades[grades > 0].tolist())) > 1
    labels = f"if each is irrelevant or of grade {best_grade(run.all_hits):g}" if graded else "if judged"
    if f"{low:.3f}" == f"{high:.3f}":
        return [f"{items}: {labels}, {found.metric} would still be {low:.3f}."]
    return [f"{items}: {labels}, {found.metric} would be between {low:.3f} and {high:.3f}."]


def _where(judged: str) -> str:
    """The part of the rankings that a metric such as judged@5 reads."""
    k = judged.partition("@")[2]
    if not k:
        return "retrieved"
    return f"within {k[:-1]} tokens" if k.endswith("t") else f"in the top {k}"


def judged_comment(run: Run) -> dict[str, str]:
    """The share of judged items, next to the headline metric, unless the run has it as a metric."""
    found = run.judged_items
    if found is None or found.name in run.scores or found.share != found.share:
        return {}
    return {found.metric: f"{found.name} {found.share:.3f}"}


def rows(run: Run) -> list[list[str]]:
    """The bounds of each mean, whatever the missing judgements are."""
    return [[name, number(run.mean[name]), number(low), number(high)] for name, (low, high) in _asked(run).items()]


def _asked(run: Run) -> dict[str, Any]:
    """The bounds on request; what was not judged may be relevant, also if the gold has no irrelevant items."""
    return _about_relevance(run, run.bounds(unjudged=True if run.has_unjudged or not run.failures else None))


def _about_relevance(run: Run, bounds: Mapping[str, Ends]) -> dict[str, Ends]:
    """The bounds without those of judged@k, which say nothing: whatever is judged then counts."""
    judged = {name for metric in run.metrics if metric.name == "judged" for name in metric.names}
    return {name: ends for name, ends in bounds.items() if name not in judged} or dict(bounds)


def bounds_note(run: Run) -> str:
    """The meaning of the bounds, and the metrics for which they are only the limits."""
    ends = _about_relevance(run, run.query_bounds(unjudged=True if run.has_unjudged else None))
    wide = [name for name, own in ends.items() if not own.exact]
    known = knows_irrelevant(run.all_hits)
    text = "Bounds: each unjudged item in the top k is irrelevant, or relevant with the best grade of the gold."
    text += "" if known else f" {_NO_IRRELEVANT}"
    return text + (f" {', '.join(wide)}: too deep, or not decided by labels; from 0 to 1 if unjudged." if wide else "")


def with_bounds(run: Run) -> pl.DataFrame:
    """The table of scores with the bounds of each query: two more columns for each metric."""
    import polars as pl

    ends = _about_relevance(run, run.query_bounds(unjudged=True))
    more = {f"{name} {end}": getattr(own, end) for name, own in ends.items() for end in ("low", "high")}
    return run.table.with_columns(pl.Series(name, values).fill_nan(None) for name, values in more.items())


def data(run: Run, *, asked: bool) -> dict[str, Any]:
    """The share of judged items and the bounds, as plain values."""
    found, bounds = run.judged_items, {}
    if asked:
        bounds = _asked(run)
    elif run.failures:
        bounds = run.bounds(unjudged=False)
    elif found is not None and found.bounds is not None:
        bounds = {found.metric: found.bounds}
    share = {} if found is None else {"judged": {found.name: found.share, "unjudged": list(found.unjudged)}}
    return {"bounds": {name: list(ends) for name, ends in bounds.items()}, **share}


def differs(note: Note, comparison: Comparison) -> str:
    """The shares of judged items of the runs, and the bounds of the difference of two."""
    d = note.details
    shares = ", ".join(f"{share:.3f} in {name}" for name, share in d["shares"].items())
    text = f"{d['judged']} differs: {shares}. Unjudged items count as irrelevant, which favours the run with fewer."
    if comparison.runs[0].convention.unjudged == "removed":
        text = f"{d['judged']} differs: {shares}. Unjudged items were removed."
    ends = comparison.bounds_of([d["metric"]], QUICK) if len(comparison.names) == 2 else {}
    if not ends:
        return text
    low, high = ends[d["metric"]]
    difference = f"the difference {'in' if comparison.summary is None else 'of the means of'} {d['metric']}"
    between = f"between {signed(low)} and {signed(high)}"
    return f"{text} If judged, {difference} would be {between}, so {_conclusion(comparison, d['metric'], ends)}."


def _conclusion(comparison: Comparison, metric: str, bounds: Mapping[str, Interval]) -> str:
    """The better of two runs whatever the unjudged items are, if there is one."""
    low, high = sorted(sign_of(metric) * end for end in bounds[metric])
    second = comparison.names[1]
    if low != low:
        return "undefined"
    if low > SLACK or high < -SLACK:
        return f"{second} stays {'better' if low > 0 else 'worse'}"
    if high - low <= SLACK:
        return "the runs stay equal"
    if low >= -SLACK or high <= SLACK:
        return f"{second} is not {'worse' if low >= -SLACK else 'better'}"
    return "either run may be better"


def difference_rows(comparison: Comparison) -> list[list[str]]:
    """The bounds of the difference of each mean, and the better run whatever the unjudged items are."""
    bounds = _asked_difference(comparison)
    before, after = comparison.scores[:2]
    now = {name: mean_defined(after[name] - before[name]) for name in bounds}
    return [
        [name, *map(signed, (now[name], low, high)), _conclusion(comparison, name, bounds)]
        for name, (low, high) in bounds.items()
    ]


def _asked_difference(comparison: Comparison) -> dict[str, Interval]:
    """The bounds of the difference on request, of two runs."""
    if len(comparison.names) > 2:
        raise BadArgument("--bounds is for two runs", got=len(comparison.names), hint="karat compare A B --bounds")
    if not any(run.has_unjudged for run in comparison.runs):
        raise nothing_unjudged(comparison.runs[0].all_hits, "karat compare without --bounds")
    return _about_relevance(comparison.runs[0], comparison.bounds)


def difference_data(comparison: Comparison, *, asked: bool) -> dict[str, Any]:
    """The bounds of the differences as plain values: on request, or if the runs differ in their unjudged items."""
    if asked:
        ends = _asked_difference(comparison)
    elif len(comparison.names) == 2 and any(note.kind == "judged_differs" for note in comparison.notes):
        ends = comparison.bounds_of(comparison.scores[0], QUICK)
    else:
        return {}
    return {"bounds": {name: list(own) for name, own in ends.items()}}


def difference_note(comparison: Comparison) -> str:
    """The meaning of the bounds, and the metrics that have none."""
    known = knows_irrelevant(comparison.runs[0].all_hits)
    missing = [name for name in comparison.scores[0] if name not in comparison.bounds]
    text = "Bounds of the difference of the means: each unjudged item in the top k is irrelevant, or relevant with the"
    text += " best grade of the gold, and has one label in both runs."
    text += "" if known else f" {_NO_IRRELEVANT}"
    return text + (f" {', '.join(missing)}: too deep, or not decided by labels." if missing else "")
