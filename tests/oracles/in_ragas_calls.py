"""Run by the Python that has ragas: makes every call with ragas and with karat, and writes both outcomes as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import sys
import textwrap
import warnings
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import count
from tempfile import TemporaryDirectory

from oracles.ragas_model import script
from oracles.ragas_snippets import PRELUDE, SNIPPETS
from support.server import Server

BUILTIN = (TimeoutError, ImportError, AttributeError, KeyError, TypeError, ValueError, RuntimeError, AssertionError)
_IMPORT = re.compile(r"^(\s*)(from|import) ragas\b(?=(.*))", re.MULTILINE)


def for_karat(code):
    """The snippet with karat's module in place of ragas in its import lines, and no other change."""

    def changed(found):
        alias = " as ragas" if found[2] == "import" and not found[3].strip() else ""
        return f"{found[1]}{found[2]} karat.compat.ragas{alias}"

    return _IMPORT.sub(changed, code)


def plain(value):
    """A result that JSON can hold: scores as numbers, objects by the name of their class."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(one) for one in (sorted(value) if isinstance(value, set) else value)]
    if value is None or isinstance(value, str | bool):
        return value
    if hasattr(value, "value") and not isinstance(value, type):
        return plain(value.value)
    if hasattr(value, "scores"):
        return plain(value.scores)
    if hasattr(value, "__float__"):
        return "nan" if math.isnan(value) else round(float(value), 8)
    return type(value).__name__


def family(error):
    return next((kind.__name__ for kind in BUILTIN if isinstance(error, kind)), "Exception")


def outcome(code, given, loop):
    """The result of a snippet, or its error with the builtin error that it is."""
    space = dict(given)
    awaits = "await " in code
    body = textwrap.indent(textwrap.dedent(code), "    ")
    try:
        exec(f"{'async ' if awaits else ''}def main():\n{body}", space)  # noqa: S102
        made = space["main"]()
        result = loop.run_until_complete(made) if awaits else made
        return {"result": plain(result)}
    except Exception as error:  # noqa: BLE001
        return {"error": family(error), "class": type(error).__name__, "message": str(error)[:300]}


def verdict(theirs, ours):
    if "error" in theirs or "error" in ours:
        if "error" not in ours:
            return "only ragas fails"
        if "error" not in theirs:
            return "only karat fails"
        return "same" if theirs["error"] == ours["error"] else "both raise"
    return "same" if theirs["result"] == ours["result"] else "differs"


def all_calls():
    found, numbers, loop = {}, count(), asyncio.new_event_loop()
    server = Server(script).__enter__()
    with TemporaryDirectory() as folder:
        for number, (name, code) in enumerate(SNIPPETS.items()):
            both = {}
            for library, text in (("ragas", PRELUDE + code), ("karat", for_karat(PRELUDE + code))):
                os.environ["XDG_CACHE_HOME"] = f"{folder}/{number}"
                given = {"server": server, "folder": folder, "number": numbers}
                both[library] = outcome(text, given, loop)
            found[name] = {"verdict": verdict(both["ragas"], both["karat"]), **both}
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        everything = all_calls()
    json.dump(everything, sys.stdout, indent=1)
    sys.stdout.flush()
    os._exit(0)  # threads of ragas that still wait for a slow answer are not waited for
