"""`karat cache`: the answers of models that are kept, so that none is paid for twice."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat._internal.display import plural, sanitize, text_table
from karat.errors import BadArgument
from karat.llm.cache import Cache, path_of


def add(commands: Any) -> None:
    """Declare the command and what it can do."""
    cache = commands.add_parser("cache", help="show, clear or export the kept answers of models")
    actions = cache.add_subparsers(title="actions", metavar="ACTION", required=True)
    info = actions.add_parser("info", help="how many answers of which models, and where")
    info.set_defaults(command=_info)
    clear = actions.add_parser("clear", help="forget all answers, or those of one model")
    clear.add_argument("--model", metavar="NAME", help="only the answers of this model, as info names it")
    clear.add_argument("--yes", action="store_true", help="do not ask first")
    clear.set_defaults(command=_clear)
    export = actions.add_parser("export", help="write every answer as a line of JSON")
    export.add_argument("-o", "--output", metavar="FILE", help="a file (default: standard output)")
    export.set_defaults(command=_export)
    for action in (info, clear, export):
        action.add_argument("--cache", metavar="FILE", default="default", help="another cache than the user's own")


def _info(options: Namespace) -> None:
    from karat.llm.cache import existing

    print(described(existing(options.cache), options.cache))


def _clear(options: Namespace) -> int:
    from karat.llm.cache import existing

    done, words = cleared(existing(options.cache), model=options.model, sure=options.yes)
    print(words)
    return 0 if done else 1


def _export(options: Namespace) -> None:
    from karat.llm.cache import existing

    cache = existing(options.cache)
    if options.output:
        print(exported(cache, options.output))
        return
    for line in cache.export() if cache else ():
        print(line)


_MEGABYTE = 1e6


def described(cache: Cache | None, named: str) -> str:
    """Where the cache is, how large, and how many answers of which models it holds."""
    if cache is None:
        return f"{sanitize(str(path_of(named)))}: there is none yet"
    held = cache.held()
    total = sum(model.answers for model in held)
    head = f"{sanitize(str(cache.path))} · {plural(total, 'answer', 'answers')} · {cache.size() / _MEGABYTE:.1f} MB"
    if not held:
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
        for model in held
    ]
    return f"{head}\n\n{text_table(rows, right=(1, 2, 3))}"


def cleared(cache: Cache | None, *, model: str | None, sure: bool) -> tuple[bool, str]:
    """Clear the cache once somebody is sure of it; whether it was done, and what to say."""
    held = [] if cache is None else [kept for kept in cache.held() if model in {None, kept.model}]
    count = sum(kept.answers for kept in held)
    if cache is None or not count:
        return True, "nothing to clear"
    if not sure and not _agreed(f"Forget {plural(count, 'answer', 'answers')} that were paid for? [y/N] "):
        return False, f"kept {plural(count, 'answer', 'answers')}; --yes clears without a question"
    return True, f"cleared {plural(cache.clear(model), 'answer', 'answers')}"


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
    return f"{plural(count, 'answer', 'answers')} in {sanitize(str(path))}"


def _agreed(question: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        return False
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
