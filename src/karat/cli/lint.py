"""`karat lint`: whether the test set itself is sound."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def add(commands: Any) -> None:
    """Declare the command."""
    lint = commands.add_parser("lint", help="check a test set: exit 0 sound, 1 serious problems, 2 cannot be read")
    lint.add_argument("file", metavar="FILE", help="samples, or queries with their gold alone; as for karat eval")
    lint.add_argument("--gold", metavar="FILE", help="the gold, if FILE holds only what was retrieved")
    lint.add_argument("--corpus", metavar="PATH", help="what gold must be in: a folder of texts, or a JSONL file")
    lint.add_argument("--runs", metavar="RUN", nargs="+", default=[], help="run files over this test set")
    lint.add_argument("--format", choices=("table", "json", "csv", "markdown"), default="table")
    lint.set_defaults(command=_lint)


def _lint(options: Namespace) -> int:
    from karat.linting import lint
    from karat.report import lint as report

    found = lint(options.file, gold=options.gold, corpus=options.corpus, runs=options.runs)
    if options.format == "json":
        from karat.report.json_text import json_text

        print(json_text(found.to_dict()))
    elif options.format == "csv":
        print(report.csv(found), end="")
    else:
        print(report.markdown(found) if options.format == "markdown" else report.show(found))
    return 0 if found.sound else 1
