"""The git commit of the working directory, read from the files of the repository: git itself is not needed.

Whatever is odd gives an empty string: a commit is a help for the reader, and no reason to fail.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OF_CI = ("GITHUB_SHA", "CI_COMMIT_SHA")
"""Variables with the commit of a job that has the files of a repository, but not its history."""
_LONGEST = 4096
"""Bytes of a file with a reference."""
_LONGEST_LIST = 2**26
_SHORT = 7
_DEEPEST = 5
"""References that lead to a commit; git follows as many."""


def current_commit(folder: Path | None = None) -> str:
    """The commit that is checked out in the repository of a folder, in hexadecimal digits; empty if it is not known."""
    try:
        place = (Path.cwd() if folder is None else folder).resolve()
        found = next((own / ".git" for own in (place, *place.parents) if (own / ".git").exists()), None)
        return _of_environment() if found is None else _of_repository(found)
    except (OSError, ValueError, RuntimeError):
        return ""


def short(commit: str) -> str:
    """The first digits of a commit, as git shows them."""
    return commit[:_SHORT]


def _of_environment() -> str:
    given = (os.environ.get(name, "").strip().lower() for name in _OF_CI)
    return next((text for text in given if _COMMIT.fullmatch(text)), "")


def _of_repository(place: Path) -> str:
    """The commit of HEAD; in a worktree, `.git` is a file that names the folder with its HEAD."""
    if place.is_file():
        own = _read(place).removeprefix("gitdir:").strip()
        place = place.parent / own
    shared = place / (_read(place / "commondir").strip() or ".")
    reference = _read(place / "HEAD").strip()
    for _ in range(_DEEPEST):
        if _COMMIT.fullmatch(reference):
            return reference
        name = reference.removeprefix("ref:").strip()
        if name == reference or not name.startswith("refs/") or ".." in name.split("/"):
            return ""
        reference = (_read(place / name) or _read(shared / name) or _packed(shared / "packed-refs", name)).strip()
    return ""


def _packed(path: Path, name: str) -> str:
    """The commit of a reference in the list of those that have no file of their own."""
    lines = (line.split() for line in _read(path, _LONGEST_LIST).splitlines())
    return next((words[0] for words in lines if words[1:] == [name]), "")


def _read(path: Path, longest: int = _LONGEST) -> str:
    """The text of a file; empty if there is none, or if it is too long."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        content = file.read(longest + 1)
    return content.decode() if len(content) <= longest else ""
