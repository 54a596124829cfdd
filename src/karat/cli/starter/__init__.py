"""`karat init`: a first evaluation to start from."""

from __future__ import annotations

from argparse import Namespace
from os import PathLike
from pathlib import Path

from karat._internal.output import write_text
from karat.cli import argument, command, program
from karat.errors import BadArgument

_HERE = Path(__file__).parent
FILES = {
    "retrieval/golden.jsonl": "golden.jsonl",
    "retrieval/evaluate.py": "evaluate.py.template",
    "retrieval/must-pass.txt": "must-pass.txt",
    ".github/workflows/retrieval.yml": "workflow.yml",
}
"""The files of a project, and the templates they start as."""

NEXT = """\
  python retrieval/evaluate.py                           runs as it is, with a toy retriever
  cp retrieval/run.parquet retrieval/baseline.parquet    the baseline of later runs: commit it
  {karat} gate retrieval/run.parquet "recall@5 no-drop" --baseline retrieval/baseline.parquet --by topic
  then put your queries into retrieval/golden.jsonl and your retriever into retrieval/evaluate.py"""


@command(
    "init",
    "write a commented starter file and a CI workflow",
    argument("folder", metavar="DIR", nargs="?", default=".", help="the project (default: the current folder)"),
    examples=[("karat init", "in the current folder"), ("karat init project", "in another folder")],
)
def _init(options: Namespace) -> None:
    from karat._internal.display import sanitize

    for place, is_new in write_starter(options.folder).items():
        print(f"  {'wrote' if is_new else 'kept '}  {place}{'' if is_new else '  (exists already)'}")
    there = "" if options.folder == "." else f"  cd {sanitize(options.folder)}\n"
    print(f"\nNext\n{there}{NEXT.format(karat=program())}")


def write_starter(folder: str | PathLike[str] = ".") -> dict[str, bool]:
    """Write the files into a project; True for each that is new. A file that exists stays as it is."""
    written = {}
    for place, template in FILES.items():
        target = Path(folder) / place
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            written[place] = not (target.exists() or target.is_symlink())
        except FileExistsError:
            raise BadArgument(f"cannot write {target}: {target.parent} is not a folder") from None
        except (OSError, ValueError) as error:
            raise BadArgument(f"cannot write {target}: {getattr(error, 'strerror', None) or error}") from error
        if written[place]:
            write_text(target, (_HERE / template).read_text("utf-8"))
    return written
