"""`karat demo`: see it work, no data needed."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from karat.cli.program import program
from karat.errors import BadArgument


def add(commands: Any) -> None:
    """Declare the command."""
    demo = commands.add_parser("demo", help="evaluate two retrievers on the bundled example")
    demo.add_argument("--samples", metavar="FILE", help="write the samples of the first retriever to a JSONL file")
    demo.set_defaults(command=_demo)


def _demo(options: Namespace) -> None:
    from karat.report import demo

    if options.samples is None:
        print(demo.show(program()))
        return
    from pathlib import Path

    import msgspec

    lines = [msgspec.json.encode(row) for row in demo.samples("bm25")]
    try:
        Path(options.samples).write_bytes(b"\n".join([*lines, b""]))
    except OSError as error:
        raise BadArgument(f"cannot write {options.samples}: {error.strerror}") from error
    print(f"{options.samples}: {len(lines)} samples. Next: {program()} eval {options.samples}")
