"""`karat report`: a run as one HTML page."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def add(commands: Any) -> None:
    """Declare the command."""
    report = commands.add_parser("report", help="a page with curves, slices, causes and every query opened")
    report.add_argument("run", metavar="RUN", help="a run file, as karat eval -o writes it")
    report.add_argument("--baseline", metavar="RUN", help="the run file to compare it with")
    report.add_argument("--allow", action="store_true", help="compare over the queries that both have")
    report.add_argument("-o", "--output", metavar="HTML", default="report.html", help="default: %(default)s")
    report.set_defaults(command=_report)


def _report(options: Namespace) -> None:
    from karat.runfile import load

    load(options.run).report(options.output, baseline=options.baseline, allow=options.allow)
    print(f"Saved to {options.output}")
