"""`karat init`: a first evaluation to start from."""

from __future__ import annotations

from argparse import Namespace
from os import PathLike
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from karat import __version__
from karat._internal.display import bold, commands, paragraph, sanitize
from karat._internal.output import check_outputs, write_text
from karat._internal.writers import put
from karat.cli import argument, command, program
from karat.errors import BadArgument

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_HERE = Path(__file__).parent
FILES = {
    "retrieval/golden.jsonl": "golden.jsonl",
    "retrieval/evaluate.py": "evaluate.py.template",
    "retrieval/must-pass.txt": "must-pass.txt",
    "retrieval/.gitignore": "gitignore",
    ".github/workflows/retrieval.yml": "workflow.yml",
}
"""The files of a project, and the templates they start as."""

REQUIREMENTS = "retrieval/requirements.txt"
_REQUIREMENTS = """\
# The packages that retrieval/evaluate.py needs: add those of your retriever.
{karat}
"""
_RUN, _BASELINE = "retrieval/run.parquet", "retrieval/baseline.parquet"
NEXT = (
    ("python retrieval/evaluate.py", "runs as it is, with a toy retriever"),
    (f"cp {_RUN} {_BASELINE}", "the baseline of later runs: commit it"),
    (
        f'{{karat}} gate {_RUN} "recall@5 no-drop 0.15" --baseline {_BASELINE}',
        "what the workflow does on every pull request, with more rules",
    ),
)
"""The first commands in a new project, and what they do."""
_THEN = "Then put your queries into retrieval/golden.jsonl and your retriever into retrieval/evaluate.py."


class Requirement(NamedTuple):
    """The requirement by which the CI installs this karat."""

    line: str
    """A line of requirements.txt."""
    command: str = ""
    """The command that makes the file which the line names, if there is no package index or address to install from."""


def requirement(installed: Distribution | None) -> Requirement:
    """The release of karat, or the repository, address or wheel that it was installed from."""
    import json
    from urllib.parse import unquote, urlsplit

    about = json.loads((installed.read_text("direct_url.json") if installed else None) or "{}")
    url, vcs = about.get("url", ""), about.get("vcs_info")
    if vcs:
        return Requirement(f"karat @ {vcs['vcs']}+{url}@{vcs['commit_id']}")
    if not url.startswith("file:"):
        return Requirement(f"karat @ {url}" if url else f"karat=={__version__}")
    path = Path(unquote(urlsplit(url).path))
    if path.suffix == ".whl":
        return Requirement(f"./retrieval/{path.name}", f"cp {quote(str(path))} retrieval/")
    wheel = f"./retrieval/karat-{__version__}-py3-none-any.whl"
    return Requirement(wheel, f"pip wheel --no-deps --wheel-dir retrieval {quote(str(path))}")


def _installed() -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution("karat")
    except PackageNotFoundError:
        return None


@command(
    "init",
    "write a commented starter file and a CI workflow",
    argument("folder", metavar="DIR", nargs="?", default=".", help="the project (default: the current folder)"),
    examples=[("karat init", "in the current folder"), ("karat init project", "in another folder")],
)
def _init(options: Namespace) -> None:
    for place, is_new in write_starter(options.folder).items():
        put(f"  {'wrote' if is_new else 'kept '}  {place}{'' if is_new else '  (exists already)'}")
    steps = [] if options.folder == "." else [(f"cd {quote(sanitize(options.folder))}", "")]
    steps += [(line.format(karat=program()), text) for line, text in NEXT]
    if command := requirement(_installed()).command:
        steps.append((command, "karat is not on PyPI yet: its wheel, from which CI installs it. Commit it"))
    put("\n".join(["", bold("Next"), commands(steps), paragraph(_THEN, default=80)]))


def write_starter(folder: str | PathLike[str] = ".") -> dict[str, bool]:
    """Write the files into a project; True for each that is new. A file that exists stays as it is."""
    written = {}
    texts = {place: (_HERE / template).read_text("utf-8") for place, template in FILES.items()}
    texts[REQUIREMENTS] = _REQUIREMENTS.format(karat=requirement(_installed()).line)
    for place in texts:
        target = Path(folder) / place
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            written[place] = not (target.exists() or target.is_symlink())
        except FileExistsError:
            raise BadArgument(f"cannot write {target}: {target.parent} is not a folder") from None
        except (OSError, ValueError) as error:
            raise BadArgument(f"cannot write {target}: {getattr(error, 'strerror', None) or error}") from error
    new = {place: Path(folder) / place for place, is_new in written.items() if is_new}
    check_outputs(new)
    for place, target in new.items():
        write_text(target, texts[place])
    return written
