"""Run by the Python that has ragas: makes every call with ragas and with karat, and writes both outcomes as JSON.

The calls are in the folder ragas_snippets, as programs for ragas write them: a name after `##`, then the code.
"""

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
from pathlib import Path
from tempfile import TemporaryDirectory

from oracles.ragas_model import script
from support.server import Server

BUILTIN = (TimeoutError, ImportError, AttributeError, KeyError, TypeError, ValueError, RuntimeError, AssertionError)
FOLDER = Path(__file__).with_name("ragas_snippets")
_CALL = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_IMPORT = re.compile(r"^(\s*)(from|import) ragas\b(?=(.*))", re.MULTILINE)


def snippets():
    """Every call by its name, with what all of them share before it."""
    prelude, *files = (FOLDER / "prelude.txt", *sorted(set(FOLDER.glob("*.txt")) - {FOLDER / "prelude.txt"}))
    calls = [call for file in files for call in _CALL.findall(file.read_text("utf-8"))]
    assert len(dict(calls)) == len(calls), "two calls have the same name"
    return {name: f"{prelude.read_text('utf-8')}\n{code}" for name, code in calls}


def for_karat(code):
    """The snippet with karat's module in place of ragas in its import lines, and no other change."""

    def changed(found):
        alias = " as ragas" if found[2] == "import" and not found[3].strip() else ""
        return f"{found[1]}{found[2]} karat.compat.ragas{alias}"

    return _IMPORT.sub(changed, code)


def plain(value):
    """A result that JSON can hold: scores as numbers, objects by the name of their class."""
    value = getattr(value, "value", getattr(value, "scores", value))
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(one) for one in (sorted(value) if isinstance(value, set) else value)]
    if hasattr(value, "__float__") and not isinstance(value, bool):
        return "nan" if math.isnan(value) else round(float(value), 8)
    return value if value is None or isinstance(value, str | bool) else type(value).__name__


def family(error):
    return next((kind.__name__ for kind in BUILTIN if isinstance(error, kind)), "Exception")


def outcome(code, given, loop):
    """The result of a snippet, or its error with the builtin error that it is."""
    space = dict(given)
    awaits = "await " in code
    body = textwrap.indent(textwrap.dedent(code), "    ")
    try:
        exec(f"{'async ' if awaits else ''}def main():\n{body}", space)
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
        for number, (name, code) in enumerate(snippets().items()):
            both = {}
            for library, text in (("ragas", code), ("karat", for_karat(code))):
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
