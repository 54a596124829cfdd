"""The numbers of a run under flat names, separate from its texts: for MLflow, W&B, DVC and other trackers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from karat.analysis.number_tests import STATISTICS
from karat.metrics.flat_names import flat_name
from karat.run import Run


def flat_metrics(run: Run, *, summary: Sequence[str] = (), bounds: bool = False) -> dict[str, float]:
    """The mean of each metric, the summaries of each measure and number, and the numbers of queries, by flat name.

    The ends of the interval of a mean are `recall_at_5__low` and `recall_at_5__high`. What is undefined is left out:
    neither 0 nor NaN would be true.

    Args:
        run: the run.
        summary: also summaries of each metric and measure, such as "p10", as `recall_at_5__p10`.
        bounds: also the bounds of each mean, whatever the unjudged items are, as `recall_at_5__lowest` and `__highest`.
    """
    found = {flat_name(name): float(value) for name, value in _named(run, summary, bounds=bounds)}
    counts = {"queries": len(run.queries), "failed_queries": len(run.queries) - run.judged}
    return counts | {name: value for name, value in found.items() if isfinite(value)}


def _named(run: Run, summary: Sequence[str], *, bounds: bool) -> Iterator[tuple[str, float]]:
    """Each number with the name of its metric and that of the summary."""
    from karat.run.summaries import read_statistics

    yield from run.mean.items()
    for name, of_measure in run.measure_summary.items():
        yield from ((f"{name} {one}", getattr(of_measure, one)) for one in ("mean", "median", "p90"))
    for statistic in STATISTICS if run.numbers else ():
        of_field = run.summary(statistic)
        yield from ((f"{name} {statistic}", of_field[name].value) for name in run.numbers)
    for name, ends in run.interval().items():
        yield from ((f"{name} low", ends[0]), (f"{name} high", ends[1]))
    if bounds:
        for name, ends in run.bounds().items():
            yield from ((f"{name} lowest", ends[0]), (f"{name} highest", ends[1]))
    for wanted in read_statistics(summary):
        yield from ((f"{name} {wanted}", one.value) for name, one in run.summary(str(wanted)).items())


def nested_metrics(
    run: Run, by: Sequence[str] = (), summary: Sequence[str] = (), *, bounds: bool = False
) -> dict[str, Any]:
    """The numbers of a run, and below `by` those of its slices: DVC reads both."""
    numbers: dict[str, Any] = dict(flat_metrics(run, summary=summary, bounds=bounds))
    if by:
        numbers["by"] = {
            fields: {value: flat_metrics(part, summary=summary) for value, part in run.by(fields).items()}
            for fields in by
        }
    return numbers
