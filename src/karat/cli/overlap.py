"""`karat compare` without gold: two rankings of the same queries, from run files or from files that nobody labelled."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from karat.cli import argument, emit
from karat.errors import BadArgument

_GROUP = "without gold"
_OPTIONS = {"k": 10, "p": 0.9, "at": "item", "depth": None, "queries": None, "query": None, "map": []}
"""The options that only rankings without gold have, and their defaults."""
NO_GOLD_ARGUMENTS = (
    argument(
        "--no-gold", action="store_true", group=_GROUP,
        help="compare the rankings alone; the default for files that are not run files",
    ),
    argument("--k", type=int, metavar="K", default=10, group=_GROUP, help="the depth of jaccard and of the lists"),
    argument(
        "--p", type=float, metavar="P", default=0.9, group=_GROUP,
        help="the persistence of rank-biased overlap: how much lower ranks count (default: %(default)s)",
    ),
    argument(
        "--at", choices=("item", "doc"), default="item", group=_GROUP,
        help="compare items, or their documents (default: %(default)s)",
    ),
    argument("--depth", type=int, metavar="N", group=_GROUP, help="use the top N of each ranking (default: all)"),
    argument("--queries", type=int, metavar="N", group=_GROUP, help="changed queries to show (default: 3; 10 in JSON)"),
    argument(
        "--map", "--fields", metavar="FIELD=COLUMN", action="append", default=[], group=_GROUP,
        help="your column names, such as retrieved=docs",
    ),
    argument("--query", metavar="ID", group=_GROUP, help="show one query alone, all of its top k (default: none)"),
)  # fmt: skip


def compares_rankings(options: Namespace) -> bool:
    """True if rankings are compared without gold: by choice, or because a file is not a run file.

    A path that does not exist is taken for the kind of file that its name says. Options of the other kind are refused.
    """
    from karat.analysis.overlap import is_run

    def has_gold(path: str) -> bool:
        return is_run(path) or (path.endswith(".parquet") and not Path(path).exists())

    given = (options.first, *options.others)
    other = next((path for path in given if not has_gold(path)), None)
    no_gold = options.no_gold or other is not None
    if not no_gold:
        if wrong := [f"--{name}" for name, default in _OPTIONS.items() if getattr(options, name) != default]:
            raise BadArgument(f"{wrong[0]} is for rankings without gold", hint=f"--no-gold {wrong[0]} …")
        return False
    why = "--no-gold" if other is None else f"{other} is not a run file, so rankings are compared without gold"
    if options.format == "latex":
        raise BadArgument("there is no LaTeX table of rankings without gold", hint="--format markdown")
    used = {"--metrics": options.metrics, "--by": options.by, "--allow-mismatch": options.allow_mismatch}
    used |= {"--summary": options.summary, "--bounds": options.bounds, "--test": options.test != "sign-flip"}
    if wrong := [name for name, value in used.items() if value]:
        raise BadArgument(f"{wrong[0]} needs runs with gold", got=why, hint="karat eval FILE -o run.parquet")
    if len(given) > 2:
        raise BadArgument("without gold, two rankings are compared at a time", got=f"{len(given)}; {why}")
    return True


def print_overlap(options: Namespace) -> None:
    """Compare two rankings and print what changed."""
    from karat.analysis.overlap import overlap

    settings = {name: getattr(options, name) for name in ("k", "p", "at", "depth")}
    if options.queries is not None and options.queries < 0:
        raise BadArgument("--queries is a number of queries", got=options.queries, hint="--queries 10")
    found = overlap(options.first, options.others[0], **settings, fields=",".join(options.map))
    shown: dict[str, Any] = {name: getattr(options, name) for name in ("queries", "query")}
    emit(found, options.format, **{name: value for name, value in shown.items() if value is not None})
