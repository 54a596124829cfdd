"""`karat diagnose`: why gold items were missed."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from karat.cli.program import program


def add(commands: Any) -> None:
    """Declare the command."""
    diagnose = commands.add_parser("diagnose", help="say why gold items were missed, and what would help")
    diagnose.add_argument("run", metavar="RUN", help="a run file, as karat eval -o writes it")
    diagnose.add_argument("query", metavar="QUERY", nargs="?", help="the id of one query, to see it in full")
    diagnose.add_argument("--k", type=int, metavar="K", help="the cutoff (default: the largest of the run's recall)")
    diagnose.add_argument("--with", dest="other", metavar="RUN", help="a second run: what both find together")
    diagnose.add_argument("--format", choices=("table", "json", "csv", "markdown"), default="table")
    diagnose.set_defaults(command=_diagnose)


def _diagnose(options: Namespace) -> None:
    from karat.diagnosis import diagnose
    from karat.report import diagnosis

    found = diagnose(options.run, options.query, k=options.k, other=options.other)
    if options.format == "json":
        from karat.report.json_text import json_text

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
