"""`karat compare`: runs against each other, and which queries moved."""

from __future__ import annotations

from argparse import Namespace, RawDescriptionHelpFormatter
from typing import Any

from karat.cli import program


def add(commands: Any) -> None:
    """Declare the command."""
    compare = commands.add_parser("compare", help="compare two or more runs, query by query")
    compare.add_argument("first", metavar="RUN", help="a run file, as karat eval -o writes it: what to compare with")
    compare.add_argument("others", metavar="RUN", nargs="+", help="the run files to compare with it")
    compare.add_argument("--metrics", help='some of those that all have, such as "recall@5 ndcg@10"')
    compare.add_argument(
        "--allow", action="store_true", help="compare runs of different data or settings, over the queries they share"
    )
    compare.add_argument("--format", choices=("table", "json", "csv", "markdown", "latex"), default="table")
    compare.set_defaults(command=_compare, takes_metrics=True)


def _compare(options: Namespace) -> None:
    from karat.analysis.compare import compare

    found = compare(options.first, *options.others, metrics=options.metrics, allow_mismatch=options.allow)
    if options.format == "json":
        from karat.report.forms import json_text

        print(json_text(found.to_dict()))
    elif options.format == "csv":
        print(found.table.write_csv(), end="")
    elif options.format == "markdown":
        print(found.to_markdown())
    elif options.format == "latex":
        print(found.to_latex())
    else:
        print(found)


_EPILOG = """\
rules:
  "recall@5 >= 0.80"         the mean; also >, <=, <
  "recall@5 lower >= 0.75"   the lower end of its 95 % interval
  "recall@5 no-drop"         no drop against the baseline that is beyond chance
  "recall@5 no-drop 0.01"    nor one that is larger than 0.01

exit code: 0 passed, 1 failed, 2 could not decide (bad input, a baseline with other gold)
"""


def add_gate(commands: Any) -> None:
    """Declare the command."""
    gate = commands.add_parser(
        "gate",
        help="judge a run by rules and against a baseline, for CI",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    gate.add_argument("run", metavar="RUN", help="a run file, from karat eval -o")
    gate.add_argument("rules", metavar="RULE", nargs="+", help='such as "recall@5 >= 0.80" or "ndcg@10 no-drop"')
    gate.add_argument("--baseline", metavar="RUN", help="the run to set against, with the same queries and gold")
    gate.add_argument("--by", metavar="FIELD", help="judge drops for each value of a field, too")
    gate.add_argument("--must-pass", metavar="FILE", default=(), help="ids of queries that may not fall, one per line")
    gate.add_argument("--tolerance", metavar="X", help="a larger drop fails even if it could be chance (default: none)")
    gate.add_argument("--slice-tolerance", metavar="X", help="the same for slices (default: none)")
    gate.add_argument(
        "--alpha", type=float, metavar="X", default=0.05,
        help="how often the gate may fail if nothing has changed (default: %(default)s)",
    )  # fmt: skip
    gate.add_argument(
        "--min-judged", metavar="SHARE", type=float, default=0.0,
        help="undecided unless this share of the queries was judged, such as 0.95 (default: %(default)s)",
    )  # fmt: skip
    gate.add_argument(
        "--min-defined", type=int, metavar="N", default=1,
        help="a mean over fewer queries cannot be decided (default: %(default)s)",
    )  # fmt: skip
    gate.add_argument("--junit", metavar="FILE", help="write the checks as test results")
    gate.add_argument(
        "--markdown", metavar="FILE", help='write a summary for a pull request, or "$GITHUB_STEP_SUMMARY"'
    )
    gate.add_argument("--format", choices=("table", "json"), default="table")
    gate.set_defaults(command=_gate, takes_metrics=True)


def _gate(options: Namespace) -> int:
    from karat._internal.output import write_text
    from karat.analysis.gate import gate
    from karat.errors import KaratError
    from karat.report.gate import undecided_junit, undecided_markdown

    try:
        judged = gate(
            options.run,
            *options.rules,
            baseline=options.baseline,
            by=options.by,
            must_pass=options.must_pass,
            tolerance=options.tolerance,
            slice_tolerance=options.slice_tolerance,
            alpha=options.alpha,
            min_defined=options.min_defined,
            min_judged=options.min_judged,
        )
    except KaratError as error:  # no summary of an earlier run may stay and be taken for this one
        if options.junit:
            write_text(options.junit, undecided_junit(error))
        if options.markdown:
            write_text(options.markdown, undecided_markdown(error))
        raise
    if options.junit:
        write_text(options.junit, judged.to_junit())
    if options.markdown:
        write_text(options.markdown, judged.to_markdown())
    if options.format == "json":
        import msgspec

        print(msgspec.json.format(msgspec.json.encode(judged.to_dict()), indent=2).decode())
    else:
        print(f"{judged} · exit {judged.exit_code}")
    return judged.exit_code


def add_diagnose(commands: Any) -> None:
    """Declare the command."""
    diagnose = commands.add_parser("diagnose", help="say why gold items were missed, and what would help")
    diagnose.add_argument("run", metavar="RUN", help="a run file, as karat eval -o writes it")
    diagnose.add_argument("query", metavar="QUERY", nargs="?", help="the id of one query, to see it in full")
    diagnose.add_argument("--k", type=int, metavar="K", help="the cutoff (default: the largest of the run's recall)")
    diagnose.add_argument("--with", dest="other", metavar="RUN", help="a second run: what both find together")
    diagnose.add_argument("--format", choices=("table", "json", "csv", "markdown"), default="table")
    diagnose.set_defaults(command=_diagnose)


def _diagnose(options: Namespace) -> None:
    from karat.analysis.diagnose import diagnose
    from karat.report import diagnosis

    found = diagnose(options.run, options.query, k=options.k, other=options.other)
    if options.format == "json":
        from karat.report.forms import json_text

        print(json_text(found.to_dict()))
    elif options.format == "csv":
        print(diagnosis.csv(found), end="")
    elif options.format == "markdown":
        print(diagnosis.markdown(found))
    else:
        import os
        import shutil
        import sys

        bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 160)
        print(diagnosis.show(found, width=width, bold=bold, program=program()))


def add_calibrate(commands: Any) -> None:
    """Declare the command."""
    calibrate = commands.add_parser("calibrate", help="compare a judge with human labels, and correct its mean by them")
    calibrate.add_argument("run", metavar="RUN", help="a run file, as karat eval -o writes it")
    calibrate.add_argument(
        "labels", metavar="LABELS", help="a table: query_id,gold,label or query_id,rank,label or query_id,score"
    )
    calibrate.add_argument("--metric", help="one of the run's (default: of the largest cutoff that the labels settle)")
    calibrate.add_argument("--level", type=float, default=0.95, help="of the intervals (default: 0.95)")
    calibrate.add_argument("--seen", type=int, metavar="K", help="people looked at the top K only (default: at all)")
    calibrate.add_argument("--format", choices=("table", "json", "markdown"), default="table")
    calibrate.set_defaults(command=_calibrate)


def _calibrate(options: Namespace) -> None:
    from karat.analysis.calibrate import calibrate

    found = calibrate(
        options.run, options.labels, metric=options.metric, level=options.level, labelled_depth=options.seen
    )
    if options.format == "json":
        from karat.report.forms import json_text

        print(json_text(found.to_dict()))
    else:
        print(found.to_markdown() if options.format == "markdown" else found)


def add_lint(commands: Any) -> None:
    """Declare the command."""
    lint = commands.add_parser("lint", help="check a test set: exit 0 sound, 1 serious problems, 2 cannot be read")
    lint.add_argument("file", metavar="FILE", help="samples, or queries with their gold alone; as for karat eval")
    lint.add_argument("--gold", metavar="FILE", help="the gold, if FILE holds only what was retrieved")
    lint.add_argument("--corpus", metavar="PATH", help="what gold must be in: a folder of texts, or a JSONL file")
    lint.add_argument("--runs", metavar="RUN", nargs="+", default=[], help="run files over this test set")
    lint.add_argument("--format", choices=("table", "json", "csv", "markdown"), default="table")
    lint.set_defaults(command=_lint)


def _lint(options: Namespace) -> int:
    from karat.analysis.lint import lint
    from karat.report import lint as report

    found = lint(options.file, gold=options.gold, corpus=options.corpus, runs=options.runs)
    if options.format == "json":
        from karat.report.forms import json_text

        print(json_text(found.to_dict()))
    elif options.format == "csv":
        print(report.csv(found), end="")
    else:
        print(report.markdown(found) if options.format == "markdown" else report.show(found))
    return 0 if found.sound else 1


def add_report(commands: Any) -> None:
    """Declare the command."""
    report = commands.add_parser("report", help="a page with curves, slices, causes and every query opened")
    report.add_argument("run", metavar="RUN", help="a run file, as karat eval -o writes it")
    report.add_argument("--baseline", metavar="RUN", help="the run file to compare it with")
    report.add_argument("--allow", action="store_true", help="compare over the queries that both have")
    report.add_argument("-o", "--output", metavar="HTML", default="report.html", help="default: %(default)s")
    report.set_defaults(command=_report)


def _report(options: Namespace) -> None:
    from karat.run.file import load

    load(options.run).report(options.output, baseline=options.baseline, allow_mismatch=options.allow)
    print(f"Saved to {options.output}")
