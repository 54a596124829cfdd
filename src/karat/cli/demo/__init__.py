"""`karat demo`: two retrievers over a bundled example, evaluated and compared."""

from __future__ import annotations

from argparse import Namespace

from karat._internal.output import check_outputs
from karat._internal.writers import put
from karat.cli import argument, command, program, say
from karat.errors import BadArgument, KaratError


@command(
    "demo",
    "evaluate and compare two retrievers on the bundled example",
    argument(
        "-o", "--output", metavar="FOLDER", default="karat-demo",
        help="the folder for the samples, both runs and the report",
    ),
    argument("--force", action="store_true", help="replace files that were changed, too"),
    examples=[("karat demo", "writes the files into karat-demo"), ("karat demo -o example", "into another folder")],
)  # fmt: skip
def _demo(options: Namespace) -> None:
    from pathlib import Path

    from karat.cli.demo import screen

    folder = Path(options.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        check_outputs({str(file): file for file in screen.files(folder)})
        kept = screen.write(folder, force=options.force)
    except (OSError, ValueError) as error:
        if isinstance(error, KaratError):
            raise
        why = getattr(error, "strerror", None) or error
        raise BadArgument(f"cannot write to {folder}: {why}", hint="-o FOLDER") from error
    put(screen.show(program(), folder))
    for file in kept:
        say(f"Kept {file}: it was changed; --force replaces it", error=True)
