"""The table: one line for each outcome, under what was measured with."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import distributions, version
from pathlib import Path

from benchmarks.outcome import Outcome

_PACKAGES = ("karat", "pytrec-eval-terrier", "ranx", "numpy", "polars", "rapidfuzz")
_OF_RAGAS = Path(__file__).parents[1] / ".oracles" / "ragas"
_HEADER = ("case", "peer", "karat ms", "peer ms", "ratio", "asked", "")
_LEFT = {0, 1, 6}

LEGEND = """\
Times are wall times of the whole call, conversion included, best of several (median for start-up).
ratio: where at least (≥) so much is asked, peer ÷ karat; where at most (≤), karat ÷ peer;
for memory, the peak above the input ÷ the size of the input.
ranx is called once before on a small set with ids of the same length, so that its compiling is not counted;
on W3 it is timed once. In ranked lists pytrec_eval is given the same data as dicts.
W1 is 1,000 queries × 100 items, W2 10,000 × 100, W3 10,000 × 1,000, tiny 10 × 20.
fuzzy: 1,000 samples of 5 gold × 10 retrieved texts of 500 characters, karat's threads on all cores.
quotes: 1,000 queries of a quote of 200 characters × 10 chunks of 1,000, loaded a moment ago; the bare loop is
`quote in chunk`, which knows nothing of white space, ranks and metrics.
remem: 10,000 examples of 20 chunks of 1,000 characters and 2 gold documents, the three metrics of REMem at four k;
the nested loops are its definitions, for each example and each k."""


def setting() -> dict[str, str | int]:
    """The versions and the machine, without anything that tells whose it is."""
    packages: dict[str, str | int] = {name: version(name) for name in _PACKAGES}
    return {
        **packages,
        "ragas": _ragas(),
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores(),
    }


def _ragas() -> str:
    """The version of ragas in the environment that it has for itself."""
    folders = [str(folder) for folder in _OF_RAGAS.glob("lib/python*/site-packages")]
    return next((found.version for found in distributions(name="ragas", path=folders)), "none")


def cores() -> int:
    """How many cores this process may use, where the system tells; otherwise how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def render(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as aligned text, with their notes below."""
    lines = [_HEADER, *map(_cells, outcomes)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ["  ".join(_align(line, widths)).rstrip() for line in lines]
    rows.insert(1, "  ".join("─" * width for width in widths))
    notes = [f"{outcome.case}: {outcome.note}" for outcome in outcomes if outcome.note]
    return "\n".join([*rows, *(["", *notes] if notes else [])])


def _align(line: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if column in _LEFT else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(line, widths, strict=True))
    ]


def _cells(outcome: Outcome) -> tuple[str, ...]:
    met = {True: "met", False: "NOT met", None: "not measured"}[outcome.met]
    return (
        outcome.case,
        outcome.peer,
        _number(outcome.karat_ms),
        _number(outcome.peer_ms),
        _number(outcome.ratio),
        outcome.asked or "–",
        met,
    )


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
