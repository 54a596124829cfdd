"""`karat demo`: see it work, no data needed."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from karat.cli import program
from karat.errors import BadArgument


def add(commands: Any) -> None:
    """Declare the command."""
    demo = commands.add_parser("demo", help="evaluate and compare two retrievers on the bundled example")
    demo.add_argument(
        "-o", "--output", metavar="FOLDER", default="karat-demo",
        help="where the samples, both runs and the report go (default: %(default)s)",
    )  # fmt: skip
    demo.set_defaults(command=_demo)


def _demo(options: Namespace) -> None:
    from pathlib import Path

    from karat.cli.demo import screen

    folder = Path(options.output)
    print(screen.show(program(), folder))
    try:
        screen.write(folder)
    except OSError as error:
        raise BadArgument(f"cannot write to {folder}: {error.strerror}", hint="-o FOLDER") from error
