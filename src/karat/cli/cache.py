"""`karat cache`: show, clear or export the cached answers of models."""

from __future__ import annotations

import os
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat._internal.display import plural, sanitize, text_table
from karat._internal.progress import confirm
from karat.errors import BadArgument
from karat.llm.cache import Cache, cache_path


def add(commands: Any) -> None:
    """Declare the command and what it can do."""
    cache = commands.add_parser("cache", help="show, clear or export the cached answers of models")
    actions = cache.add_subparsers(title="actions", metavar="ACTION", required=True)
    info = actions.add_parser("info", help="the file, its size, and the number of answers per model")
    info.set_defaults(command=_info)
    clear = actions.add_parser("clear", help="delete all answers, or those of one model")
    clear.add_argument("--model", metavar="NAME", help="only the answers of this model, as info names it")
    clear.add_argument("--yes", action="store_true", help="delete without a question")
    clear.set_defaults(command=_clear)
    export = actions.add_parser("export", help="write every answer as a line of JSON")
    export.add_argument("-o", "--output", metavar="FILE", help="a file (default: standard output)")
    export.set_defaults(command=_export)
    for action in (info, clear, export):
        action.add_argument(
            "--cache", metavar="FILE", default="default", help="the file (default: in your cache directory)"
        )


def _info(options: Namespace) -> None:
    print(described(_existing(options.cache), options.cache))


def _clear(options: Namespace) -> int:
    done, words = cleared(_existing(options.cache), model=options.model, sure=options.yes)
    print(words)
    return 0 if done else 1


def _export(options: Namespace) -> None:
    cache = _existing(options.cache)
    if options.output:
        print(exported(cache, options.output))
        return
    for line in cache.export() if cache else ():
        print(line)


_MEGABYTE = 1e6


def _existing(name: str) -> Cache | None:
    """The cache in this file; None if there is no file, which is not created."""
    return Cache(name) if cache_path(name).exists() else None


def described(cache: Cache | None, named: str) -> str:
    """The path of the cache, its size, and the number of answers per model."""
    if cache is None:
        return f"{sanitize(str(cache_path(named)))}: no cache yet"
    models = cache.models()
    total = sum(model.answers for model in models)
    head = f"{sanitize(str(cache.path))} · {plural(total, 'answer', 'answers')} · {cache.size() / _MEGABYTE:.1f} MB"
    if not models:
        return head
    rows = [["model", "answers", "tokens in", "tokens out", "oldest", "newest"]]
    rows += [
        [
            sanitize(model.model),
            f"{model.answers:,}",
            f"{model.prompt_tokens:,}",
            f"{model.completion_tokens:,}",
            _day(model.oldest),
            _day(model.newest),
        ]
        for model in models
    ]
    return f"{head}\n\n{text_table(rows, right=(1, 2, 3))}"


def cleared(cache: Cache | None, *, model: str | None, sure: bool) -> tuple[bool, str]:
    """Clear the cache after confirmation: True if it was done, and the message."""
    models = [] if cache is None else cache.models()
    count = sum(one.answers for one in models if model in {None, one.model})
    if cache is None or not count:
        return True, "nothing to clear"
    answers = plural(count, "answer", "answers")
    if not sure and not confirm(f"Delete {answers} that were paid for?", unattended=False):
        return False, f"{answers} not deleted; --yes deletes without a question"
    return True, f"deleted {plural(cache.clear(model), 'answer', 'answers')}"


def exported(cache: Cache | None, path: str | os.PathLike[str]) -> str:
    """Write every answer as a line of JSON into a file; return the message."""
    count = 0
    try:
        with Path(path).open("w", encoding="utf-8") as file:
            for line in cache.export() if cache else ():
                file.write(f"{line}\n")
                count += 1
    except OSError as error:
        raise BadArgument(f"cannot write {path}: {error.strerror}") from error
    return f"{plural(count, 'answer', 'answers')} in {sanitize(str(path))}"


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
