"""The table of docs/reliability.md, from tests/fuzz/results.json, which `make fuzz` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "tests" / "fuzz" / "results.json"


def fuzz() -> str:
    """A row for every fuzzer: its promise, and the cases, faults and outcomes of the last `make fuzz`."""
    from fuzz.frame import fuzzers

    results = json.loads(RESULTS.read_text("utf-8"))
    rows = ["| fuzzer | promise | cases | faults | outcomes |", "|---|---|---|---|---|"]
    for name, fuzzer in fuzzers().items():
        found = results.get(name)
        figures = ["–", "–", "not run yet"] if found is None else _figures(found)
        rows.append(f"| {name} | {fuzzer.promise} | {' | '.join(figures)} |")
    cases, faults = (sum(found[column] for found in results.values()) for column in ("cases", "faults"))
    return "\n".join([*rows, f"| **all** | | **{cases:,}** | **{faults:,}** | |"])


def _figures(found: dict[str, Any]) -> list[str]:
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in found["outcomes"].items())
    return [f"{found['cases']:,}", f"{found['faults']:,}", outcomes]
