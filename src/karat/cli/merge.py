"""`karat merge`: partial runs as one."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def add(commands: Any) -> None:
    """Declare the command."""
    merge = commands.add_parser("merge", help="put runs of some of the queries each together as one run")
    merge.add_argument("parts", metavar="RUN", nargs="+", help="run files, as karat eval -o writes them, in any order")
    merge.add_argument("-o", "--output", metavar="RUN", required=True, help="save the run of all queries here")
    merge.set_defaults(command=_merge)


def _merge(options: Namespace) -> None:
    from karat.merging import merge
    from karat.report import terminal

    run = merge(options.parts)
    run.save(options.output)
    print(terminal.evaluation(run))
    print(f"\nSaved to {options.output}")
