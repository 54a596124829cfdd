"""Texts written whole: a reader finds the old file or the new one, never half of one."""

from __future__ import annotations

import os
from pathlib import Path

from karat.errors import BadArgument


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write beside the old file, then put it in its place; a pipe or a device is written to as it is."""
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, "utf-8")
            return
        target = target.resolve()  # the file behind a link, and not the link, is replaced
        beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            beside.write_text(text, "utf-8")
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise BadArgument(f"cannot write {path}: {why}") from error
