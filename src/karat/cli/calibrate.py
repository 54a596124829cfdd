"""`karat calibrate`: a judge set beside human labels."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def add(commands: Any) -> None:
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
    from karat.calibration import calibrate

    found = calibrate(options.run, options.labels, metric=options.metric, level=options.level, seen=options.seen)
    if options.format == "json":
        from karat.report.json_text import json_text

        print(json_text(found.to_dict()))
    else:
        print(found.to_markdown() if options.format == "markdown" else found)
