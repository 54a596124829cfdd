"""`karat cache`: show, clear or export the cached answers of models."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from karat._internal.display import bold, heading, paragraph, plural, sanitize, text_table
from karat._internal.output import check_outputs, is_special, text_file
from karat._internal.progress import confirm
from karat._internal.writers import put
from karat.cli import argument, command, say
from karat.errors import BadArgument

if TYPE_CHECKING:
    from karat.llm.cache import Cache

_ACTIONS = """\
actions:
  info      the file, its size, and the number of answers per model
  clear     delete all answers, or those of one model
  export    write every answer as a line of JSON
"""


@command(
    "cache",
    "show, clear or export the cached answers of models",
    argument("action", metavar="ACTION", choices=("info", "clear", "export"), help="info, clear or export"),
    argument("--cache", metavar="FILE", default="default", help="the cache file (default: the user's own)"),
    argument("--model", metavar="NAME", help="clear: only the answers of this model, as info names it (default: all)"),
    argument("--yes", action="store_true", help="clear: delete without a question"),
    argument("-o", "--output", metavar="FILE", help="export: write to a file (default: standard output)"),
    examples=[
        ("karat cache info", "how many answers of which models"),
        ("karat cache clear --model gpt-4o-mini", "delete the answers of one model"),
        ("karat cache export -o answers.jsonl", "a line of JSON per answer"),
    ],
    epilog=_ACTIONS,
)
def _cache(options: Namespace) -> int:
    from karat.llm.cache import Cache, cache_path

    path = cache_path(options.cache)
    check_outputs({"-o": options.output}, [path, f"{path}-wal", f"{path}-shm"])
    cache, done = Cache(path) if path.exists() else None, True
    if options.action == "info":
        put(described(cache, path))
    elif options.action == "clear":
        done, message = cleared(cache, model=options.model, sure=options.yes)
        say(message)
    elif options.output:
        target = Path(options.output)
        direct = is_special(target)
        if target.exists() and target.stat().st_size and not direct and not (cache and cache.models()):
            raise BadArgument(f"the cache {path} has no answers: {target} is not replaced", hint="--cache FILE")
        say(exported(cache, target), error=direct)
    else:
        for line in cache.export() if cache else ():
            put(line)
    return 0 if done else 1


_MEGABYTE = 1e6


def described(cache: Cache | None, path: Path) -> str:
    """The path of the cache, its size, and the number of answers per model."""
    if cache is None:
        return paragraph(f"{sanitize(str(path))}: no cache yet", "", "")
    models = cache.models()
    total = sum(model.answers for model in models)
    size = f"{cache.size() / _MEGABYTE:.1f} MB"
    head = heading(f"{sanitize(str(cache.path))} · {plural(total, 'answer', 'answers')} · {size}")
    if not models:
        return head
    rows = [[bold(name) for name in ("model", "answers", "tokens in", "tokens out", "oldest", "newest")]]
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
    with text_file(path) as write:
        for line in cache.export() if cache else ():
            write(f"{line}\n")
            count += 1
    return f"{plural(count, 'answer', 'answers')} in {sanitize(str(path))}"


def _day(moment: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
