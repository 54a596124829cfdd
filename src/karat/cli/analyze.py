"""`karat compare`, `gate`, `diagnose`, `calibrate`, `lint` and `report`: from runs to verdicts."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import TYPE_CHECKING

from karat._internal.display import has_color
from karat._internal.output import is_special
from karat.cli import RUN, argument, command, emit, format_argument, on_github, program, say
from karat.cli.evaluate import ALSO, MAP, SPLIT, SUMMARY, also_fields
from karat.cli.gate_files import GateFiles, refused_arguments
from karat.cli.overlap import NO_GOLD_ARGUMENTS, compares_rankings, print_overlap
from karat.errors import BadArgument

if TYPE_CHECKING:
    from karat.analysis.gate import Gate
    from karat.report.github import Place

_RULES = """\
rules:
  "recall@5 >= 0.80"         the mean; also >, <=, <
  "recall@5 lower >= 0.75"   the lower end of its 95 % interval
  "recall@5 p10 >= 0.3"      another summary: p1 to p99, median, gm, worst(field); also with lower or upper
  "latency p95 <= 300ms"     a number of the samples: p50, p95, mean; also with lower or upper
  "latency p95 no-rise 10%"  not more than 10 % above the baseline; also 20ms
  "recall@5 no-drop"         no significant drop against the baseline
  "recall@5 no-drop 0.01"    and no drop larger than 0.01
  "false_alarm@5 no-rise"    the same where less is better

exit code: 0 passed, 1 failed, 2 could not decide (bad input, other gold in the baseline, or every rule undecided)
"""
_ALLOW_MISMATCH = argument(
    "--allow-mismatch", action="store_true", help="compare runs of different data or settings over the shared queries"
)


@command(
    "compare",
    "compare two or more runs, query by query; or two rankings without gold",
    argument("first", metavar="RUN", help="a run file, written by karat eval -o; or results without gold"),
    argument("others", metavar="RUN", nargs="+", help="the run files, or results, to compare with it"),
    argument("--metrics", nargs="+", default=(), help="metrics that all runs have (default: all of them)"),
    argument(
        "--by", metavar="FIELD", action="append", default=[],
        help='also compare the slices by a field; may be repeated; "a,b" crosses two fields',
    ),
    _ALLOW_MISMATCH,
    argument("--summary", metavar="NAME", help='compare p10, median, gm or "worst(field)" (default: the mean)'),
    argument(
        "--test", choices=("sign-flip", "bounded"), default="sign-flip",
        help="sign-flip assumes that gains and losses are alike, bounded assumes nothing (default: %(default)s)",
    ),
    argument(
        "--bounds", action="store_true",
        help="also show the bounds of each difference of two runs, whatever the unjudged items are (default: no)",
    ),
    ALSO,
    *NO_GOLD_ARGUMENTS,
    format_argument("json", "csv", "markdown", "latex"),
    examples=[
        ("karat compare main.parquet branch.parquet", "is branch better than main?"),
        ("karat compare main.parquet branch.parquet --metrics recall@5 ndcg@10", "only these metrics"),
        ("karat compare main.parquet branch.parquet --summary p10", "the worst tenth of the queries"),
        ("karat compare main.parquet branch.parquet run.parquet", "several runs: which beats which"),
        ("karat compare main.parquet branch.parquet --no-gold", "what changed in the rankings?"),
    ],
)  # fmt: skip
def _compare(options: Namespace) -> None:
    if compares_rankings(options):
        return print_overlap(options)
    if options.bounds and options.format in {"csv", "latex"}:
        problem = "the bounds of the differences have no CSV or LaTeX table"
        raise BadArgument(problem, got=f"--bounds --format {options.format}", hint="--format json")
    from karat.analysis.compare import compare

    settings = {"metrics": " ".join(options.metrics) or None, "by": options.by, "test": options.test}
    settings |= {"summary": options.summary, "also": also_fields(options)}
    found = compare(options.first, *options.others, **settings, allow_mismatch=options.allow_mismatch)
    emit(found, options.format, **({"bounds": True} if options.bounds else {}))
    return None


@command(
    "gate",
    "check a run against rules and a baseline, for CI",
    RUN,
    argument("rules", metavar="RULE", nargs="+", help='such as "recall@5 >= 0.80" or "ndcg@10 no-drop"'),
    argument("--baseline", metavar="RUN", help="the run to compare with, over the same queries and gold"),
    argument(
        "--by", metavar="FIELD", action="append", default=[],
        help='also check drops for each value of a field; may be repeated; "a,b" crosses two fields',
    ),
    argument("--must-pass", metavar="FILE", default=(), help="ids of queries that must not drop, one per line"),
    argument(
        "--gold", metavar="FILE",
        help="the file of the queries, to mark failed must-pass queries on GitHub (default: the file of the run)",
    ),
    argument("--tolerance", metavar="X", help="a larger drop fails even if it may be chance (default: none)"),
    argument("--slice-tolerance", metavar="X", help="the same for slices (default: none)"),
    argument(
        "--alpha", type=float, metavar="X", default=0.05,
        help="significance level: the false-alarm rate of the whole gate",
    ),
    argument(
        "--min-judged", metavar="SHARE", type=float, default=0.8,
        help="fail unless this share of the queries was judged (default: %(default)s)",
    ),
    argument(
        "--min-defined", type=int, metavar="N", default=1,
        help="exit 2 if a mean is over fewer queries (default: %(default)s)",
    ),
    argument("--fail-undecided", action="store_true", help="fail also if a check is undecided (default: no)"),
    argument("--junit", metavar="FILE", help="write the checks as JUnit test results"),
    argument("--markdown", metavar="FILE", help='write a summary for a pull request, or "$GITHUB_STEP_SUMMARY"'),
    argument("--force", action="store_true", help="replace files that karat gate did not write, too"),
    format_argument("json"),
    examples=[
        ('karat gate run.parquet "recall@5 >= 0.5"', "a limit"),
        ('karat gate run.parquet "recall@5 no-drop" --baseline main.parquet', "no drop below a baseline"),
        ('karat gate run.parquet "recall@5 no-drop" --baseline main.parquet --by topic', "nor in any topic"),
    ],
    epilog=_RULES,
    refused=refused_arguments,
)  # fmt: skip
def _gate(options: Namespace) -> int:
    from karat.analysis.gate import gate
    from karat.report import github

    names = ("baseline", "by", "must_pass", "tolerance", "slice_tolerance", "alpha", "min_defined", "min_judged")
    files = GateFiles(options)
    with files.failure():
        files.check()
        found = gate(
            options.run, *options.rules, fail_undecided=options.fail_undecided,
            **{name: getattr(options, name) for name in names},
        )  # fmt: skip
        annotations = github.annotate(found, _places(options, found)) if on_github() else []
        problem = files.write(found.to_junit(), found.to_markdown(), annotations, github.outputs(found))
    emit(found, options.format)
    if problem is not None:
        raise problem
    return found.exit_code


def _places(options: Namespace, gate: Gate) -> dict[str, Place]:
    """The lines of the must-pass queries that failed: in the golden file, or else in the file of their ids."""
    from pathlib import Path

    from karat.report.github import find_places

    failed = [check.query for check in gate.checks if check.failed and check.query is not None]
    golden = [Path(file) for file in (options.gold, gate.run.provenance.source) if file]
    listed, root = (Path(path) if path else None for path in (options.must_pass, os.environ.get("GITHUB_WORKSPACE")))
    return find_places(failed, golden, listed, root)


@command(
    "diagnose",
    "explain why gold items were missed, and what would help",
    RUN,
    argument("query", metavar="QUERY", nargs="?", help="the id of a query to show in full"),
    argument("--k", type=int, metavar="K", help="the cutoff (default: that of the run's recall nearest to 5)"),
    argument("-n", type=int, metavar="N", default=3, help="misses to list for each cause (default: %(default)s)"),
    argument("--all", action="store_true", help="list every miss"),
    argument("--other", metavar="RUN", help="a second run: the gain of a hybrid, or of a reranker"),
    format_argument("json", "csv", "markdown"),
    examples=[
        ("karat diagnose run.parquet", "every missed gold item by its cause, and advice"),
        ("karat diagnose run.parquet q01", "one query in full, its texts side by side"),
        ("karat diagnose branch.parquet --other main.parquet", "what a hybrid of both would gain"),
    ],
)
def _diagnose(options: Namespace) -> None:
    from karat.analysis.diagnose import diagnose

    shown = None if options.all else max(options.n, 0)
    style = {"bold": has_color(), "program": program(), "shown": shown} if options.format == "table" else {}
    emit(diagnose(options.run, options.query, k=options.k, other=options.other), options.format, **style)


@command(
    "calibrate",
    "compare a judge with human labels, and correct its mean by them",
    RUN,
    argument("labels", metavar="LABELS", help="a table: query_id,gold,label or query_id,rank,label or query_id,score"),
    argument(
        "--metrics", "--metric", dest="metric", metavar="METRIC",
        help="one metric of the run (default: the largest cutoff for which there are enough labels)",
    ),
    argument("--level", type=float, default=0.95, help="confidence level of the intervals"),
    argument("--labelled-depth", type=int, metavar="K", help="people labelled only the top K (default: all)"),
    format_argument("json", "markdown"),
    examples=[
        ("karat calibrate run.parquet labels.csv", "how far the judge agrees with people"),
        ("karat calibrate run.parquet labels.csv --labelled-depth 5", "people labelled only the top 5"),
    ],
)  # fmt: skip
def _calibrate(options: Namespace) -> None:
    from karat.analysis.calibrate import calibrate

    found = calibrate(
        options.run, options.labels, metric=options.metric, level=options.level, labelled_depth=options.labelled_depth
    )
    emit(found, options.format)


@command(
    "lint",
    "check a test set for problems in its queries and gold",
    argument("file", metavar="FILE", help="samples, or queries with gold only; the formats of karat eval"),
    argument("--gold", metavar="FILE", help="the gold, if FILE has only the retrieved items"),
    argument("--corpus", metavar="PATH", help="the documents with the gold: a folder of texts, or a JSONL file"),
    argument("--runs", metavar="RUN", nargs="+", default=[], help="run files over this test set"),
    MAP,
    SPLIT,
    format_argument("json", "csv", "markdown"),
    examples=[
        ("karat lint samples.jsonl", "repeated queries, conflicting gold, size"),
        ("karat lint samples.jsonl --runs main.parquet branch.parquet", "queries that all runs miss, too"),
    ],
    epilog="exit code: 0 sound, 1 serious problems, 2 cannot be read",
)
def _lint(options: Namespace) -> int:
    from karat.analysis.lint import lint

    found = lint(
        options.file, gold=options.gold, corpus=options.corpus, runs=options.runs, fields=",".join(options.map),
        split=options.split,
    )  # fmt: skip
    emit(found, options.format)
    return 0 if found.sound else 1


@command(
    "report",
    "write an HTML page with curves, slices, misses and every query",
    RUN,
    argument("--baseline", metavar="RUN", help="the run file to compare with"),
    _ALLOW_MISMATCH,
    SUMMARY,
    ALSO,
    argument("-o", "--output", metavar="HTML", default="report.html", help="the page"),
    examples=[
        ("karat report run.parquet", "writes report.html"),
        ("karat report branch.parquet --baseline main.parquet -o branch.html", "with what changed"),
    ],
)
def _report(options: Namespace) -> None:
    from karat.run.file import load

    settings = {"allow_mismatch": options.allow_mismatch, "summary": options.summary}
    run = load(options.run)
    run = run.also(also) if (also := also_fields(options)) else run
    run.report(options.output, baseline=options.baseline, **settings)
    say(f"Saved to {options.output}", error=is_special(options.output))
