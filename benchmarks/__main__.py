"""`python -m benchmarks`: runs each case in its own process and prints one table."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

from benchmarks.outcome import Outcome, read_outcomes
from benchmarks.table import LEGEND, render, setting

_HERE = Path(__file__).parent
_ROOT = _HERE.parent
_RESULTS = _HERE / "results.json"

# A case is a module of this package, followed by a dash and its argument.
CASES = (
    "dicts-W2",
    "dicts-W3",
    "lists-W2",
    "lists-W3",
    "fresh-W1",
    "tiny",
    "steps",
    "fuzzy-ragas",
    "single-ragas",
    "quotes-contains",
    "quotes-spans",
    "chunking",
    "remem",
    "intervals",
    "llm",
    "collect",
    "files-W2",
    "files-W3",
    "files-trec",
    "spark",
    "save-W3",
    "memory-dicts",
    "memory-lists",
    "startup-import",
    "startup-help",
    "startup-eval",
)

LONG_CASES = ("files-100M", "growth")
"""Cases that run only if named: they take many minutes, or gigabytes of disk."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; the exit code is 1 if one of them crashed."""
    parser = ArgumentParser(prog="python -m benchmarks", description="Compare the speed of karat with its peers.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="the cases to run (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases and stop")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join((*CASES, *LONG_CASES)))
        return 0
    selected = tuple(dict.fromkeys(options.cases)) or CASES
    if unknown := [case for case in selected if case not in (*CASES, *LONG_CASES)]:
        parser.error(f"no case {', '.join(unknown)}; choose from {', '.join((*CASES, *LONG_CASES))}")
    try:
        environment = setting()
    except PackageNotFoundError as missing:
        parser.error(f"{missing.name} is not installed; make bench installs all peers, into .venv")
    outcomes: list[Outcome] = []
    crashed = 0
    for case in selected:
        measured = _run(case)
        crashed += measured is None
        outcomes += measured or [Outcome(case=case, note="crashed")]
    results = {"setting": environment, "outcomes": _with_earlier([asdict(outcome) for outcome in outcomes])}
    _RESULTS.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(" · ".join(f"{name} {value}" for name, value in environment.items()))
    print(f"\n{render(outcomes)}\n\n{LEGEND}")
    return 1 if crashed else 0


def _with_earlier(outcomes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The new outcomes, and the earlier ones of all other cases."""
    now = {outcome["case"] for outcome in outcomes}
    before = json.loads(_RESULTS.read_text(encoding="utf-8"))["outcomes"] if _RESULTS.exists() else []
    every = outcomes + [outcome for outcome in before if outcome["case"] not in now]
    return sorted(every, key=lambda outcome: (*CASES, *LONG_CASES).index(outcome["case"]))


def _run(case: str) -> list[Outcome] | None:
    """The outcomes of a case, or None if it crashed. Each case has its own process: a full heap would slow the next."""
    print(f"{case} …", file=sys.stderr, flush=True)
    module, _, argument = case.partition("-")
    command = ["-m", f"benchmarks.{module}", *([argument] if argument else [])]
    done = subprocess.run([sys.executable, *command], cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return read_outcomes(done.stdout)
    # Only the last line: the rest of a traceback contains the paths of this machine.
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    print(f"  crashed: {last.replace(str(_ROOT), '.')}", file=sys.stderr)
    print(f"  full traceback: python {' '.join(command)}", file=sys.stderr)
    return None


if __name__ == "__main__":
    sys.exit(main())
