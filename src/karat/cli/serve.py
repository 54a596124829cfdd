"""`karat serve`: evaluation over HTTP."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from urllib.parse import urlsplit

from karat._internal.output import delete_leftovers
from karat._internal.writers import put
from karat.cli import argument, command, say
from karat.errors import BadArgument

_PORT = 5272
_MOST = 1e12
"""Above every limit that means anything."""
_EPILOG = """\
documentation of the API: http://127.0.0.1:5272/docs
Future AGI's clients work with FI_BASE_URL=http://127.0.0.1:5272.
"""


@command(
    "serve", "evaluate over HTTP: JSON in, numbers out; also for Future AGI's clients",
    argument("--port", type=int, default=_PORT, help="0 takes a free one"),
    argument("--host", default="127.0.0.1", help="another address needs --keys"),
    argument("--store", metavar="FOLDER", type=Path, help="where runs are stored, as run files"),
    argument("--keys", metavar="FILE", type=Path, help="the file of keys; without one, only this machine may ask"),
    argument("--new-key", metavar="NAME",
             help="make a key, print it once, and exit; its hash is added to --keys, or to keys.json"),
    argument("--workers", metavar="N", type=int, help="processes that evaluate (default: one per core)"),
    argument("--allow-model", metavar="NAME", action="append", default=[],
             help="a language model that requests may name; repeat for more (default: none, LLM judges are off)"),
    argument("--allow-origin", metavar="ORIGIN", action="append", default=[],
             help="an origin whose web pages may ask; repeat for more"),
    argument("--max-body", metavar="MB", type=float, default=100.0, group="limits", help="size of a body"),
    argument("--max-rows", metavar="N", type=int, default=1_000_000, group="limits", help="queries of a request"),
    argument("--max-seconds", metavar="S", type=float, default=60.0, group="limits",
             help="time of an evaluation, and of the arrival of a body"),
    argument("--max-waiting", metavar="N", type=int, default=1000, group="limits", help="evaluations that wait"),
    examples=(
        ("karat serve", "on this machine, without keys"),
        ("karat serve --store runs", "runs can be stored, listed and compared"),
        ("karat serve --keys keys.json --new-key search-team", "make a key"),
        ("karat serve --host 0.0.0.0 --keys keys.json", "for other machines"),
    ),
    epilog=_EPILOG,
)  # fmt: skip
def serve(options: Namespace) -> None:
    """Start the server, or make a key."""
    if options.new_key is not None:
        _make_key(options)
        return
    from karat.llm.endpoint import find_model
    from karat.web.server import listen, serve
    from karat.web.settings import MEGABYTE, Limits, Settings

    for name in ("workers", "max_body", "max_rows", "max_seconds", "max_waiting"):
        value = getattr(options, name)
        if value is not None and not 0 < value < _MOST:
            raise BadArgument(f"--{name.replace('_', '-')} must be above 0 and not too large", got=value)
    for origin in options.allow_origin:
        _check_origin(origin)
    for model in options.allow_model:
        find_model(model)
    limits = Limits(
        body=int(options.max_body * MEGABYTE), rows=options.max_rows, seconds=options.max_seconds,
        waiting=options.max_waiting,
    )  # fmt: skip
    more = {} if options.workers is None else {"workers": options.workers}
    settings = Settings(
        options.store, options.keys, models=tuple(options.allow_model), origins=tuple(options.allow_origin),
        limits=limits, **more,
    )  # fmt: skip
    if options.store is not None:
        _make_store(options.store)
    at = listen(options.host, options.port, settings)
    host, port = at.getsockname()[:2]
    serve(at, settings, lambda: _say_where(f"[{host}]" if ":" in host else host, port, settings.store, settings.keys))


def _make_store(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"--store {folder} is no folder, and cannot become one: {error.strerror or error}"
        raise BadArgument(problem, hint="--store runs") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadArgument(f"--store {folder} is a folder that karat may not write to", hint="--store runs")
    delete_leftovers(folder)


def _check_origin(given: str) -> None:
    """Refuse an origin that no browser sends: it has a scheme, a host, and a port if that is unusual."""
    try:
        parts = urlsplit(given if "://" in given else f"https://{given}")
        port = "" if parts.port in (None, {"http": 80, "https": 443}.get(parts.scheme)) else f":{parts.port}"
        host = parts.hostname or ""
    except ValueError:
        host = port = ""
    if not host or "*" in host or parts.scheme not in ("http", "https"):
        raise BadArgument("--allow-origin is one origin", got=given, hint="https://example.org")
    written = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"
    if written != given:
        raise BadArgument("--allow-origin is not as browsers write it", got=given, hint=written)


def _say_where(host: str, port: int, store: Path | None, keys: Path | None) -> None:
    from karat.web.access_keys import Keys

    put(f"http://{host}:{port}")
    say(f"operations to read and try: http://{host}:{port}/docs", error=True)
    say("only this machine may ask: there are no keys" if keys is None else f"keys: {keys}", error=True)
    if keys is not None and not len(Keys.read(keys)):
        say(f"{keys} has no keys, so nobody may ask; make one: karat serve --keys {keys} --new-key NAME", error=True)
    say("nothing is stored: there is no --store" if store is None else f"runs are stored in {store}", error=True)


def _make_key(options: Namespace) -> None:
    from karat.web.access_keys import Keys, new_key

    path = options.keys or Path("keys.json")
    replaces = path.exists() and options.new_key in Keys.read(path)
    key = new_key(path, options.new_key)
    put(key)
    if replaces:
        say(f"it replaces the key that {options.new_key} had, which is wrong from now on", error=True)
    say(f"this key is not shown again; {path} has its hash, for karat serve --keys {path}", error=True)
    say(f"use it as Authorization: Bearer KEY, or as FI_API_KEY={options.new_key} FI_SECRET_KEY=KEY", error=True)
