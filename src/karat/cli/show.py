"""`karat show`: a saved run again, as `karat eval` showed it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def add(commands: Any) -> None:
    """Declare the command."""
    show = commands.add_parser("show", help="print the means of a saved run again")
    show.add_argument("run", metavar="RUN", help="a run file, as karat eval -o writes it")
    show.add_argument("--by", metavar="FIELD", help="also show the means for each value of a field")
    show.add_argument(
        "--format", choices=("table", "json", "csv", "markdown"), default="table", help="csv: one row per query"
    )
    show.set_defaults(command=_show)


def _show(options: Namespace) -> None:
    from karat.cli.output import shown
    from karat.runfile import load

    print(shown(load(options.run), options.by, options.format), end="")
