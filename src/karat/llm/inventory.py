"""What a cache holds, for people: shown, cleared, exported."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from karat.errors import BadArgument
from karat.llm.cache import Cache, path_of
from karat.tables import clean, many, text_table

_MEGABYTE = 1e6


def described(cache: Cache | None, named: str) -> str:
    """Where the cache is, how large, and how many answers of which models it holds."""
    if cache is None:
        return f"{clean(str(path_of(named)))}: there is none yet"
    held = cache.held()
    total = sum(model.answers for model in held)
    head = f"{clean(str(cache.path))} · {many(total, 'answer', 'answers')} · {cache.size() / _MEGABYTE:.1f} MB"
    if not held:
        return head
    rows = [["model", "answers", "tokens in", "tokens out", "oldest", "newest"]]
    rows += [
        [
            clean(model.model),
            f"{model.answers:,}",
            f"{model.prompt_tokens:,}",
            f"{model.completion_tokens:,}",
            _day(model.oldest),
            _day(model.newest),
        ]
        for model in held
    ]
    return f"{head}\n\n{text_table(rows, right=(1, 2, 3))}"


def cleared(cache: Cache | None, *, model: str | None, sure: bool) -> tuple[bool, str]:
    """Clear the cache once somebody is sure of it; whether it was done, and what to say."""
    held = [] if cache is None else [kept for kept in cache.held() if model in {None, kept.model}]
    count = sum(kept.answers for kept in held)
    if cache is None or not count:
        return True, "nothing to clear"
    if not sure and not _agreed(f"Forget {many(count, 'answer', 'answers')} that were paid for? [y/N] "):
        return False, f"kept {many(count, 'answer', 'answers')}; --yes clears without a question"
    return True, f"cleared {many(cache.clear(model), 'answer', 'answers')}"


def exported(cache: Cache | None, path: str | os.PathLike[str]) -> str:
    """Write every answer as a line of JSON into a file; what to say about it."""
    count = 0
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            for line in cache.export() if cache else ():
                file.write(f"{line}\n")
                count += 1
    except OSError as error:
        raise BadArgument(f"cannot write {path}: {error.strerror}") from error
    return f"{many(count, 'answer', 'answers')} in {clean(str(path))}"


def _agreed(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
