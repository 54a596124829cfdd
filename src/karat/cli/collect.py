"""`karat collect`: from a retriever and a gold set to samples."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import nullcontext, redirect_stdout
from shlex import quote
from typing import Any

from karat._internal.output import Terminated, check_outputs
from karat._internal.user_code import load_user_code
from karat._internal.writers import put
from karat.cli import argument, command, emit, program, say
from karat.cli.evaluate import IMPORT, MAP, SPLIT
from karat.errors import BadArgument

_HTTP = "endpoints (TARGET is a URL)"
_EPILOG = """\
TARGET is file.py:function, package.module:object, or the URL of an endpoint.
A function takes the query, or the query and k, and returns items, best first: ids, texts, or records with id and text.

The same command continues what was stopped, and calls failed queries again. --fresh starts again.

exit code: 0 collected, also if some queries failed; 2 bad input or settings; 3 every query failed; 130 after Ctrl-C
"""


@command(
    "collect",
    "call a retriever for every query of a gold set, and write samples",
    argument("target", metavar="TARGET", help="file.py:function, package.module:object, or https://…"),
    argument(
        "--gold", metavar="FILE", required=True,
        help="the queries and their gold: a file, a BEIR folder, irds:…; - for standard input",
    ),
    MAP,
    SPLIT,
    argument("-k", type=int, default=20, metavar="K", help="the number of items to retrieve"),
    argument("-o", "--output", metavar="FILE", default="samples.jsonl", help="the JSONL file; - for standard output"),
    argument("--concurrency", type=int, default=8, metavar="N", help="simultaneous calls"),
    argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="the time of each call; 0 for no limit"),
    argument("--retries", type=int, default=0, metavar="N", help="repeat a failed call N times, after growing pauses"),
    argument("--repeats", type=int, default=1, metavar="N", help="call each query N times, if results vary"),
    argument("--warm-up", type=int, default=0, metavar="N", help="make N calls before, which are not recorded"),
    argument("--fresh", action="store_true", help="start again, and replace the file"),
    IMPORT,
    argument(
        "--method", choices=("GET", "POST"), group=_HTTP,
        help="of the request (default: GET if the URL has {query}, else POST)",
    ),
    argument(
        "--request", metavar="JSON", group=_HTTP,
        help='what is posted (default: {"query": "{query}", "k": {k}})',
    ),
    argument(
        "--header", metavar="HEADER", action="append", default=[], group=_HTTP,
        help="such as 'Authorization: Bearer $TOKEN', with environment variables; never stored; repeatable",
    ),
    argument(
        "--path", metavar="PATH", group=_HTTP,
        help="where the documents are in the answer, such as hits.hits[]._source (default: recognised)",
    ),
    argument(
        "--item", metavar="FIELDS", group=_HTTP,
        help="where the fields are in each document, such as id=_id,text=_source.body (default: recognised)",
    ),
    examples=[
        ("karat collect search.py:retrieve --gold gold.jsonl -k 20 -o samples.jsonl", "call a function of yours"),
        ("karat eval samples.jsonl", "then evaluate"),
    ],
    epilog=_EPILOG,
)  # fmt: skip
def _collect(options: Namespace) -> int:
    from karat.collection import collect

    to_stdout = options.output == "-"
    settings = {name: getattr(options, name) for name in ("k", "concurrency", "retries", "repeats", "warm_up", "fresh")}
    settings |= {"fields": ",".join(options.map), "split": options.split}
    settings["timeout"] = options.timeout or None
    settings["output"] = None if to_stdout else options.output
    if not to_stdout:
        check_outputs({"-o": options.output}, [options.gold, *options.imports, options.target.rpartition(":")[0]])
    try:
        with redirect_stdout(sys.stderr) if to_stdout else nullcontext():  # for what the user's code prints
            for name in options.imports:
                load_user_code(name)
            found = collect(_retriever(options), options.gold, **settings)
    except (KeyboardInterrupt, Terminated):
        if not to_stdout:
            say(f"What is done is kept in {options.output}.collect: the same command continues.", error=True)
        raise
    if to_stdout:
        from karat.collection.journal import json_lines

        put(json_lines(found).decode(), end="")
        put(repr(found), error=True)
        return 0
    emit(found, "table")
    say(f"Saved to {found.output}. Next: {program()} eval {quote(str(found.output))}")
    return 0


def _retriever(options: Namespace) -> Any:
    """The target, or the endpoint with its options."""
    from karat.collection.targets import is_url

    given = {name: getattr(options, name) for name in ("method", "request", "path", "item")}
    if is_url(options.target):
        from karat.collection.http_endpoint import HttpEndpoint

        return HttpEndpoint(
            options.target, k=options.k, timeout=options.timeout or None, headers=options.header, **given
        )
    used = [name for name, value in {**given, "header": options.header}.items() if value]
    if used:
        raise BadArgument(f"--{used[0]} is for endpoints", got=options.target, hint="https://localhost:8000/search")
    return options.target
