"""`karat init`: a first evaluation to start from."""

from __future__ import annotations

from argparse import Namespace
from os import PathLike
from pathlib import Path
from typing import Any

from karat.errors import BadArgument


def add(commands: Any) -> None:
    """Declare the command."""
    init = commands.add_parser("init", help="write a commented starter file and a CI workflow")
    init.add_argument("folder", metavar="DIR", nargs="?", default=".", help="the project (default: here)")
    init.set_defaults(command=_init)


def _init(options: Namespace) -> None:
    from karat._internal.display import sanitize
    from karat.cli import program

    for place, new in write_starter(options.folder).items():
        print(f"  {'wrote' if new else 'kept '}  {place}{'' if new else '  (it was there)'}")
    there = "" if options.folder == "." else f"  cd {sanitize(options.folder)}\n"
    print(f"\nNext\n{there}{NEXT.format(karat=program())}")


_HERE = Path(__file__).parent
FILES = {
    "retrieval/golden.jsonl": "golden.jsonl",
    "retrieval/evaluate.py": "evaluate.py.template",
    "retrieval/must-pass.txt": "must-pass.txt",
    ".github/workflows/retrieval.yml": "workflow.yml",
}
"""Where each file goes, and what it starts as."""

NEXT = """\
  python retrieval/evaluate.py                                    it runs as it is, with a toy retriever
  cp retrieval/run.parquet retrieval/baseline.parquet             what later runs are set against: commit it
  {karat} gate retrieval/run.parquet "recall@5 no-drop" --baseline retrieval/baseline.parquet --by topic
  then put your queries into retrieval/golden.jsonl and your retriever into retrieval/evaluate.py"""


def write_starter(folder: str | PathLike[str] = ".") -> dict[str, bool]:
    """Write the files into a project; whether each is new. One that is there already stays as it is."""
    written = {}
    for place, template in FILES.items():
        target = Path(folder) / place
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write((_HERE / template).read_bytes())
        except FileExistsError:
            if not target.parent.is_dir():
                raise BadArgument(f"cannot write {target}: {target.parent} is no folder") from None
            written[place] = False
        except (OSError, ValueError) as error:
            raise BadArgument(f"cannot write {target}: {getattr(error, 'strerror', None) or error}") from error
        else:
            written[place] = True
    return written
