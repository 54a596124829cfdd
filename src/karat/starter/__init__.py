"""A first evaluation to start from: gold, a script around the retriever, and the check in CI."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from karat.errors import BadArgument

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
