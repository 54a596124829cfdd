"""`karat metrics`, `judges`, `conventions` and `rosetta`: what there is, and how it differs."""

from __future__ import annotations

from argparse import Namespace

from karat.cli import argument, command, emit, format_argument
from karat.cli.evaluate import IMPORT, load


@command("judges", "list every judge")
def _judges(options: Namespace) -> None:
    from karat.report.catalog import judge_list

    print(judge_list())


@command("metrics", "list every metric", IMPORT)
def _metrics(options: Namespace) -> None:
    from karat.report.catalog import metric_list

    for name in options.imports:
        load(name)
    print(metric_list())


@command(
    "conventions",
    "list the conventions of other libraries, or explain one",
    argument("name", metavar="NAME", nargs="?", help="the convention to explain, such as llamaindex"),
    format_argument("json"),
)
def _conventions(options: Namespace) -> None:
    from karat._internal.output import to_json
    from karat.conventions import CONVENTIONS, find_convention
    from karat.report.catalog import convention, convention_list
    from karat.run.file import write_choices

    chosen = list(CONVENTIONS.values()) if options.name is None else [find_convention(options.name)]
    if options.format == "json":
        print(to_json([write_choices(c) for c in chosen]))
    else:
        print(convention_list() if options.name is None else convention(chosen[0]))


@command(
    "rosetta",
    "the same data under every convention, and why the numbers differ",
    argument("file", metavar="FILE", nargs="?", help="the formats of karat eval; without a file, an example"),
    argument("metrics", metavar="METRICS", nargs="*", help="default: precision@5 recall@5 ndcg@5 rr ap"),
    argument("--gold", metavar="FILE", help="the gold, if FILE has only the retrieved items"),
    argument("--judge", default="auto", help="how items are matched; karat judges lists them"),
    argument("--at", choices=("item", "doc"), default="item", help="doc: compare documents, not chunks"),
    argument("--convention", dest="conventions", metavar="NAME", action="append", help="only this one; repeatable"),
    format_argument("json", "markdown", "html"),
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
