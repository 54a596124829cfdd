"""`karat demo`: two retrievers over a bundled example, evaluated and compared."""

from __future__ import annotations

from argparse import Namespace

from karat._internal.writers import put
from karat.cli import argument, command, program
from karat.errors import BadArgument


@command(
    "demo",
    "evaluate and compare two retrievers on the bundled example",
    argument(
        "-o", "--output", metavar="FOLDER", default="karat-demo",
        help="the folder for the samples, both runs and the report",
    ),
    examples=[("karat demo", "writes the files into karat-demo"), ("karat demo -o example", "into another folder")],
)  # fmt: skip
def _demo(options: Namespace) -> None:
    from pathlib import Path

    from karat.cli.demo import screen

    folder = Path(options.output)
    put(screen.show(program(), folder))
    try:
        screen.write(folder)
    except OSError as error:
        raise BadArgument(f"cannot write to {folder}: {error.strerror}", hint="-o FOLDER") from error
