"""`karat sweep`: try every setting of a retriever, and choose one without being fooled by chance."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from shlex import quote
from typing import Any

from karat._internal.output import Terminated
from karat._internal.user_code import load_user_code, user_function
from karat.cli import argument, command, emit, format_argument, say
from karat.cli.evaluate import ALSO, IMPORT, MAP, SPLIT, also_fields
from karat.errors import BadArgument

_FOLDER = "karat-sweep"
_WORDS = {"none": None, "null": None, "true": True, "false": False}
_VALUE = re.compile(r'\s*("(?:[^"]|"")*"|[^,"]*)\s*(?:,|$)')
_INTEGER, _NUMBER = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_EPILOG = """\
the Python file:
  def make(chunk, k, reranker):      the settings, by name
      return retrieve                anything that karat collect calls

values: 200 and 0.5 are numbers; true, false and none are what they say; "200" and "a,b" in quotes are texts

The same command continues what was stopped, and tries failed settings again. --restart begins anew.

exit code: 0 swept, also if some settings failed; 2 bad input, or no setting worked; 3 every query failed;
130 after Ctrl-C
"""


@command(
    "sweep",
    "try every setting of a retriever, and say which is best, and how sure that is",
    argument("make", metavar="FILE", help="a Python file with make(**settings), or file.py:name; or a finished sweep"),
    argument("metrics", metavar="METRICS", nargs="*", help="such as recall@5 ndcg@10"),
    argument("--metrics", metavar="METRICS", dest="more_metrics", nargs="+", default=[], help="the same"),
    argument(
        "--set", metavar="NAME=A,B", dest="settings", action="append", default=[],
        help="the values of a setting; repeat it for others: all combinations are tried",
    ),
    argument("--gold", metavar="FILE", help="the queries and their gold"),
    MAP,
    SPLIT,
    argument("-o", "--folder", metavar="FOLDER", default=_FOLDER, help="one run file per setting"),
    argument("--metric", help="the metric that ranks the settings (default: the first)"),
    argument("-k", "--k", type=int, metavar="K", help="items to retrieve, without a setting k (default: 20 or more)"),
    argument("--judge", default="auto", help='how items are matched, such as "fuzzy(0.8)"; karat judges lists them'),
    argument("--at", choices=("item", "doc"), default="item", help="doc: compare documents, not chunks"),
    argument("--tokens", metavar="FILE:NAME", help="the function that counts tokens (default: words)"),
    argument("--convention", default="standard", help="whose definitions of the metrics, such as llamaindex"),
    argument("--order", choices=("listed", "score"), help="score: sort lists by their scores (default: as listed)"),
    argument("--concurrency", type=int, metavar="N", default=8, help="simultaneous calls of a retriever"),
    argument("--timeout", type=float, metavar="SECONDS", default=30.0, help="the time limit of a call"),
    argument("--retries", type=int, metavar="N", default=0, help="how often a failed call is repeated"),
    argument("--repeats", type=int, metavar="N", default=1, help="how often each query is called"),
    ALSO,
    argument("--limit", type=int, metavar="N", default=100, help="refuse more settings than this"),
    argument("--restart", action="store_true", help="remove the sweep that is in the folder, and begin anew"),
    argument("--report", metavar="HTML", help="also write the result as an HTML page"),
    IMPORT,
    format_argument("json", "csv", "markdown", "html", about="csv: one row per setting"),
    examples=[
        ("karat sweep retrievers.py --set chunk=20,40 --set k=3,5 --gold gold.jsonl recall@3", "four settings"),
        ("karat sweep karat-sweep", "show a finished sweep again"),
    ],
    epilog=_EPILOG,
)  # fmt: skip
def _sweep(options: Namespace) -> None:
    from pathlib import Path

    from karat._internal.output import check_outputs
    from karat.analysis.sweep import saved_sweep, sweep
    from karat.judges import find_judge
    from karat.judges.tokens import words
    from karat.metrics import DEFAULT

    for name in options.imports:
        load_user_code(name)
    if find_judge(options.judge).model is not None:
        problem = f"judge {options.judge} calls a model: karat sweep does not estimate its cost"
        raise BadArgument(problem, hint=f'karat.sweep(…, judge="{options.judge}") in Python')
    check_outputs({"--report": options.report}, [options.gold])
    shown = Path(options.make).is_dir()
    if shown:
        _check_alone(options)
        found = saved_sweep(options.make, options.metric)
    else:
        _check_whole(options)
        same = ("folder", "metric", "k", "judge", "at", "convention", "order", "concurrency", "timeout", "retries",
                "repeats", "split", "limit", "restart")  # fmt: skip
        try:
            found = sweep(
                options.make,
                read_settings(options.settings),
                options.gold,
                " ".join([*options.metrics, *options.more_metrics]) or DEFAULT,
                tokens=user_function(options.tokens) if options.tokens else words,
                also=also_fields(options),
                fields=",".join(options.map),
                **{name: getattr(options, name) for name in same},
            )
        except (KeyboardInterrupt, Terminated):
            say(f"What is done is kept in {options.folder}: the same command continues.", error=True)
            raise
    if options.report is not None:
        found.report(options.report)
    emit(found, options.format)
    saved = [*([] if shown else [found.folder]), *filter(None, [options.report])]
    if saved:
        say(f"Saved to {' and '.join(saved)}", error=options.format != "table")


def _check_whole(options: Namespace) -> None:
    """A new sweep needs a Python file, settings and gold: what is missing is named."""
    from pathlib import Path

    if ":" not in options.make and not Path(options.make).exists():
        raise BadArgument(f"{options.make} does not exist", hint="karat sweep retrievers.py --set k=5,10 …")
    missing = [name for name, given in (("--set", options.settings), ("--gold", options.gold)) if not given]
    if missing:
        given = "".join(f" --set {quote(text)}" for text in options.settings) or " --set k=5,10"
        hint = f"karat sweep {quote(options.make)}{given} --gold {quote(options.gold or 'gold.jsonl')}"
        raise BadArgument(f"karat sweep needs {' and '.join(missing)}", hint=hint)


def _check_alone(options: Namespace) -> None:
    """A finished sweep is shown as it is: what would change it is refused."""
    if options.settings or options.gold or options.metrics or options.more_metrics:
        problem = f"{options.make} is a finished sweep, which is shown as it is; a sweep needs a Python file"
        raise BadArgument(problem, hint=f"karat sweep {options.make}, or karat sweep retrievers.py --set …")


def read_settings(given: Sequence[str]) -> dict[str, list[Any]]:
    """The values of each setting, from texts such as "k=5,10"."""
    settings: dict[str, list[Any]] = {}
    for text in given:
        name, equals, values = text.partition("=")
        if not equals or not name.strip() or not values.strip():
            raise BadArgument("--set is a name and its values", got=text, hint="--set k=5,10")
        settings.setdefault(name.strip(), []).extend(_values(values, text))
    return settings


def _values(text: str, whole: str) -> list[Any]:
    found, at = [], 0
    while at < len(text):
        part = _VALUE.match(text, at)
        if part is None:
            raise BadArgument("a value in quotes ends with its quote", got=whole, hint='--set a="x,y",z')
        found.append(_value(part[1].strip()))
        at = part.end()
    return found


def _value(text: str) -> Any:
    """A number, True, False, None or a text."""
    if text.startswith('"'):
        return text[1:-1].replace('""', '"')
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
