"""`karat compare`: runs against each other, and which queries moved."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


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
    from karat.comparison import compare

    found = compare(options.first, *options.others, metrics=options.metrics, allow=options.allow)
    if options.format == "json":
        from karat.report.json_text import json_text

        print(json_text(found.to_dict()))
    elif options.format == "csv":
        print(found.table.write_csv(), end="")
    elif options.format == "markdown":
        print(found.to_markdown())
    elif options.format == "latex":
        print(found.to_latex())
    else:
        print(found)
