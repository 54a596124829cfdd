"""The results table: one row per outcome, below the versions and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import distributions, version
from pathlib import Path

from benchmarks.outcome import Outcome

_PACKAGES = ("karat", "pytrec-eval-terrier", "ranx", "numpy", "polars", "rapidfuzz")
_RAGAS_ENVIRONMENT = Path(__file__).parents[1] / ".oracles" / "ragas"
_HEADER = ("case", "peer", "karat ms", "peer ms", "ratio", "target", "")
_LEFT = {0, 1, 6}

LEGEND = """\
Times are wall-clock times of the whole call, conversion included: the best of several calls (start-up: the median).
ratio: the peer's time divided by karat's (≥ targets, higher is better) or the inverse (≤ targets, lower is better).
Memory is peak allocation divided by input size.
ranx is warmed up on a small set with ids of the same length, so its compilation is not timed; on W3 it is timed once.
For ranked lists, pytrec_eval gets the same data as dicts.
W1: 1,000 queries × 100 items; W2: 10,000 × 100; W3: 10,000 × 1,000; tiny: 10 × 20.
fuzzy: 1,000 samples of 5 gold × 10 retrieved texts of 500 characters; karat uses all cores.
quotes: 1,000 queries with a quote of 200 characters × 10 chunks of 1,000, freshly loaded; the plain Python loop is
`quote in chunk`, without white-space folding, ranks or metrics.
remem: 10,000 examples of 20 chunks of 1,000 characters and 2 gold documents, REMem's three metrics at four k;
the nested loops apply its definitions for each example and each k."""


def setting() -> dict[str, str | int]:
    """Versions and machine, without anything that identifies the owner."""
    packages: dict[str, str | int] = {name: version(name) for name in _PACKAGES}
    return {
        **packages,
        "ragas": _ragas(),
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": cores(),
    }


def _ragas() -> str:
    """The version of ragas in its own environment."""
    folders = [str(folder) for folder in _RAGAS_ENVIRONMENT.glob("lib/python*/site-packages")]
    return next((found.version for found in distributions(name="ragas", path=folders)), "none")


def cores() -> int:
    """The number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def render(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as an aligned table, with notes below."""
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
    met = {True: "met", False: "NOT met", None: "not measured" if outcome.ratio is None else ""}[outcome.met]
    return (
        outcome.case,
        outcome.peer,
        _number(outcome.karat_ms),
        _number(outcome.peer_ms),
        _number(outcome.ratio),
        outcome.target or "–",
        met,
    )


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"
