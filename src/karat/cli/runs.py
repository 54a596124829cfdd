"""`karat show` and `merge`: saved runs, separate from `karat eval`, which makes them."""

from __future__ import annotations

from argparse import Namespace

from karat.cli import RUN, argument, command, emit
from karat.cli.evaluate import ALSO, BOUNDS, BY, ELSEWHERE, FORMAT, SUMMARY, also_fields, check_output, emit_and_save
from karat.errors import RunFileError


@command(
    "show",
    "print the means of a saved run",
    RUN,
    argument("--metrics", nargs="+", default=(), help="metrics that the run has (default: all of them)"),
    BY,
    BOUNDS,
    SUMMARY,
    ALSO,
    FORMAT,
    examples=[
        ("karat show run.parquet", "the table of karat eval"),
        ("karat show run.parquet --summary p10,median", "the worst tenth of the queries, and the middle"),
        ("karat show run.parquet --metrics recall@5", "only this metric"),
        ("karat show run.parquet --format csv", "the scores of every query"),
        ("karat show run.parquet --format metrics", "numbers for DVC and other trackers"),
    ],
)
def _show(options: Namespace) -> None:
    from karat.analysis.compare import chosen_metrics
    from karat.metrics.names import parse_stored
    from karat.run.file import load

    run = load(options.run)
    run = run.also(also) if (also := also_fields(options)) else run
    if options.metrics:
        names = chosen_metrics(" ".join(options.metrics), list(run.scores), "metric in this run")
        scores = {name: run.scores[name] for name in names}
        run = run.replace(scores=scores, metrics=tuple(map(parse_stored, names)))
    emit(run, options.format, by=options.by, bounds=options.bounds, summary=options.summary)


@command(
    "merge",
    "merge runs over different queries into one run",
    argument("parts", metavar="RUN", nargs="+", help="run files, written by karat eval -o, in any order"),
    argument("-o", "--output", metavar="RUN", required=True, help="save the run of all queries as this file"),
    examples=[("karat merge part-1.parquet part-2.parquet -o run.parquet", "one run of all queries")],
)
def _merge(options: Namespace) -> None:
    from karat.run.merge import merge

    check_output(options, options.parts)
    if problem := emit_and_save(merge(options.parts), options):
        raise RunFileError(problem.problem, hint=ELSEWHERE) from problem
