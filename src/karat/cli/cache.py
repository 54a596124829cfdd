"""`karat cache`: the answers of models that are kept, so that none is paid for twice."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def add(commands: Any) -> None:
    """Declare the command and what it can do."""
    cache = commands.add_parser("cache", help="show, clear or export the kept answers of models")
    actions = cache.add_subparsers(title="actions", metavar="ACTION", required=True)
    info = actions.add_parser("info", help="how many answers of which models, and where")
    info.set_defaults(command=_info)
    clear = actions.add_parser("clear", help="forget all answers, or those of one model")
    clear.add_argument("--model", metavar="NAME", help="only the answers of this model, as info names it")
    clear.add_argument("--yes", action="store_true", help="do not ask first")
    clear.set_defaults(command=_clear)
    export = actions.add_parser("export", help="write every answer as a line of JSON")
    export.add_argument("-o", "--output", metavar="FILE", help="a file (default: standard output)")
    export.set_defaults(command=_export)
    for action in (info, clear, export):
        action.add_argument("--cache", metavar="FILE", default="default", help="another cache than the user's own")


def _info(options: Namespace) -> None:
    from karat.llm.cache import existing
    from karat.llm.inventory import described

    print(described(existing(options.cache), options.cache))


def _clear(options: Namespace) -> int:
    from karat.llm.cache import existing
    from karat.llm.inventory import cleared

    done, words = cleared(existing(options.cache), model=options.model, sure=options.yes)
    print(words)
    return 0 if done else 1


def _export(options: Namespace) -> None:
    from karat.llm.cache import existing
    from karat.llm.inventory import exported

    cache = existing(options.cache)
    if options.output:
        print(exported(cache, options.output))
        return
    for line in cache.export() if cache else ():
        print(line)
