"""`karat init`: a first evaluation to start from."""

from __future__ import annotations

from argparse import Namespace
from typing import Any


def add(commands: Any) -> None:
    """Declare the command."""
    init = commands.add_parser("init", help="write a commented starter file and a CI workflow")
    init.add_argument("folder", metavar="DIR", nargs="?", default=".", help="the project (default: here)")
    init.set_defaults(command=_init)


def _init(options: Namespace) -> None:
    from karat.cli.program import program
    from karat.starter import NEXT, write_starter
    from karat.tables import clean

    for place, new in write_starter(options.folder).items():
        print(f"  {'wrote' if new else 'kept '}  {place}{'' if new else '  (it was there)'}")
    there = "" if options.folder == "." else f"  cd {clean(options.folder)}\n"
    print(f"\nNext\n{there}{NEXT.format(karat=program())}")
