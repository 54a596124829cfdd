"""`karat metrics`, `judges`, `conventions` and `rosetta`: what there is, and how it differs."""

from __future__ import annotations

from argparse import Namespace

from karat._internal.user_code import load_user_code
from karat._internal.writers import put
from karat.cli import argument, command, emit, format_argument
from karat.cli.evaluate import IMPORT


@command(
    "judges",
    "list every judge, or explain one",
    argument("name", metavar="NAME", nargs="?", help="the judge to explain, such as fuzzy"),
    IMPORT,
    examples=[("karat judges", "all of them"), ("karat judges fuzzy", "one with its settings")],
)
def _judges(options: Namespace) -> None:
    from karat.report.catalog import judge_list, one_judge

    for name in options.imports:
        load_user_code(name)
    put(judge_list() if options.name is None else one_judge(options.name))


@command(
    "metrics",
    "list every metric, or explain one",
    argument("name", metavar="NAME", nargs="?", help="the metric to explain, such as ndcg"),
    IMPORT,
    examples=[("karat metrics", "all of them"), ("karat metrics ndcg", "one with its settings")],
)
def _metrics(options: Namespace) -> None:
    from karat.report.catalog import metric_list, one_metric

    for name in options.imports:
        load_user_code(name)
    put(metric_list() if options.name is None else one_metric(options.name))


@command(
    "conventions",
    "list the conventions of other libraries, or explain one",
    argument("name", metavar="NAME", nargs="?", help="the convention to explain, such as llamaindex"),
    format_argument("json"),
    examples=[
        ("karat conventions", "all of them"),
        ("karat conventions llamaindex", "one in sentences"),
        ('karat conventions "standard(ties=given)"', "one with another choice"),
    ],
)
def _conventions(options: Namespace) -> None:
    from karat._internal.writers import to_json
    from karat.conventions import CONVENTIONS, find_convention
    from karat.report.catalog import convention, convention_list
    from karat.run.metadata import write_choices

    chosen = list(CONVENTIONS.values()) if options.name is None else [find_convention(options.name)]
    if options.format == "json":
        put(to_json([write_choices(c) for c in chosen]))
    else:
        put(convention_list() if options.name is None else convention(chosen[0]))


@command(
    "rosetta",
    "show the same data under every convention, and why the numbers differ",
    argument("file", metavar="FILE", nargs="?", help="the formats of karat eval (default: an example)"),
    argument("--metrics", nargs="+", default=(), help="the metrics (default: precision@5 recall@5 ndcg@5 rr ap)"),
    argument("--gold", metavar="FILE", help="the gold, if FILE has only the retrieved items (default: FILE has it)"),
    argument("--judge", default="auto", help="how items are matched; karat judges lists them"),
    argument("--at", choices=("item", "doc"), default="item", help="doc: compare documents, not chunks"),
    argument("--conventions", metavar="NAME", nargs="+", help="only these (default: all)"),
    format_argument("json", "markdown", "html"),
    examples=[
        ("karat rosetta", "an example"),
        ("karat rosetta samples.jsonl --metrics recall@5 ndcg@10", "your data"),
        ("karat rosetta samples.jsonl --conventions trec_eval ranx", "some conventions, compared with standard"),
    ],
)
def _rosetta(options: Namespace) -> None:
    from karat.analysis.rosetta import METRICS_SHOWN, rosetta

    found = rosetta(
        options.file,
        " ".join(options.metrics) or METRICS_SHOWN,
        gold=options.gold,
        judge=options.judge,
        at=options.at,
        conventions=options.conventions,
    )
    emit(found, options.format)
