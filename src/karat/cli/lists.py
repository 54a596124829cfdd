"""`karat metrics`, `karat judges`: what there is."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from karat.cli.user_code import add_import, load


def add(commands: Any) -> None:
    """Declare the commands."""
    judges = commands.add_parser("judges", help="list every judge")
    judges.set_defaults(command=_judges)

    metrics = commands.add_parser("metrics", help="list every metric")
    add_import(metrics)
    metrics.set_defaults(command=_metrics)


def _judges(options: Namespace) -> None:
    from karat.report import terminal

    print(terminal.judge_list())


def _metrics(options: Namespace) -> None:
    from karat.report import terminal

    for name in options.imports:
        load(name)
    print(terminal.metric_list())
