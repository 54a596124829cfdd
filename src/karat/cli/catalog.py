"""`karat metrics`, `karat judges`: what there is."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from karat.cli.evaluate import add_import, load


def add(commands: Any) -> None:
    """Declare the commands."""
    judges = commands.add_parser("judges", help="list every judge")
    judges.set_defaults(command=_judges)

    metrics = commands.add_parser("metrics", help="list every metric")
    add_import(metrics)
    metrics.set_defaults(command=_metrics)


def _judges(options: Namespace) -> None:
    from karat.report import run as terminal

    print(terminal.judge_list())


def _metrics(options: Namespace) -> None:
    from karat.report import run as terminal

    for name in options.imports:
        load(name)
    print(terminal.metric_list())


def add_conventions(commands: Any) -> None:
    """Declare the commands."""
    listing = commands.add_parser("conventions", help="list whose definitions there are, or explain one")
    listing.add_argument("name", metavar="NAME", nargs="?", help="the one to explain, such as llamaindex")
    listing.add_argument("--format", choices=("table", "json"), default="table")
    listing.set_defaults(command=_conventions)

    rosetta = commands.add_parser("rosetta", help="the same data under every convention, and why the numbers differ")
    rosetta.add_argument("file", metavar="FILE", nargs="?", help="as for karat eval; without one, an example")
    rosetta.add_argument("metrics", metavar="METRICS", nargs="?", help="default: precision@5 recall@5 ndcg@5 rr ap")
    rosetta.add_argument("--gold", metavar="FILE", help="the gold, if FILE holds only what was retrieved")
    rosetta.add_argument("--judge", default="auto", help="how items are compared; karat judges lists them")
    rosetta.add_argument("--at", choices=("item", "doc"), default="item", help="doc: compare documents, not chunks")
    rosetta.add_argument(
        "--convention", dest="conventions", metavar="NAME", action="append", help="only this one; may be repeated"
    )
    rosetta.add_argument("--format", choices=("table", "json", "markdown", "html"), default="table")
    rosetta.set_defaults(command=_rosetta, takes_metrics=True)


def _conventions(options: Namespace) -> None:
    from karat.conventions import CONVENTIONS, find_convention
    from karat.report import rosetta

    chosen = list(CONVENTIONS.values()) if options.name is None else [find_convention(options.name)]
    if options.format == "json":
        from karat.run.file import write_choices

        _print_json([write_choices(c) for c in chosen])
    else:
        print(rosetta.convention_list() if options.name is None else rosetta.convention(chosen[0]))


def _rosetta(options: Namespace) -> None:
    from karat.analysis.rosetta import METRICS_SHOWN, rosetta
    from karat.report import rosetta as report

    told = rosetta(
        options.file,
        options.metrics or METRICS_SHOWN,
        gold=options.gold,
        judge=options.judge,
        at=options.at,
        conventions=options.conventions,
    )
    if options.format == "json":
        _print_json(told.to_dict())
    else:
        print({"table": report.text, "markdown": report.markdown, "html": report.page}[options.format](told))


def _print_json(told: Any) -> None:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
