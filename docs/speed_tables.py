"""The speed tables of README.md and docs/benchmarks.md, from benchmarks/results.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results.json"
README_ROWS = {
    ("dicts-W3", "pytrec_eval"): "10,000 queries × 1,000 results, dicts",
    ("dicts-W3", "ranx"): "10,000 queries × 1,000 results, dicts",
    ("files-W3", "pytrec_eval"): "the same as Parquet files, reading included",
    ("fuzzy-ragas", "ragas, evaluate()"): "1,000 queries, similarity of 50 text pairs each",
    ("tiny", "pytrec_eval"): "10 queries × 20 results: the fixed cost of a call",
}
"""The rows of the README, with the workload in words."""
_NO_TIME = {"second run: calls", "kill -9: lost ÷ in flight", "20 % faults: lost", "memory: growth ÷ prompts", "GiB"}
"""Peers of rows whose ratio is not a ratio of times."""


def speed() -> str:
    """Five rows for the README."""
    results = json.loads(RESULTS.read_text("utf-8"))
    rows = ["| workload | peer | karat | peer's time | speedup |", "|---|---|---|---|---|"]
    for (case, peer), workload in README_ROWS.items():
        o = next(o for o in results["outcomes"] if (o["case"], o["peer"]) == (case, peer))
        name = peer.replace(", evaluate()", "")
        speedup = _number(o["peer_ms"] / o["karat_ms"])
        rows.append(f"| {workload} | {name} | {_time(o['karat_ms'])} | {_time(o['peer_ms'])} | {speedup}× |")
    return "\n".join(rows)


def benchmarks() -> str:
    """Every outcome, with its target."""
    results = json.loads(RESULTS.read_text("utf-8"))
    rows = ["| case | peer | karat | peer's time | ratio | target | met | note |", "|---|---|---|---|---|---|---|---|"]
    for o in results["outcomes"]:
        met = {True: "yes", False: "**no**", None: "not measured" if o["ratio"] is None else "–"}[o["met"]]
        cells = [o["case"], o["peer"], _time(o["karat_ms"]), _time(o["peer_ms"]), _ratio(o), o["target"] or "–", met]
        rows.append(f"| {' | '.join([*cells, o['note']])} |")
    return "\n".join(rows)


def machine() -> str:
    """The versions and the machine of the last measurement."""
    setting = json.loads(RESULTS.read_text("utf-8"))["setting"]
    packages = {name: value for name, value in setting.items() if name not in {"system", "cores"}}
    versions = ", ".join(f"{name} {value}" for name, value in packages.items())
    return f"{setting['system']}, {setting['cores']} cores. {versions}."


def _ratio(o: dict[str, Any]) -> str:
    if o["ratio"] is None:
        return "–"
    unit = "" if o["peer"] in _NO_TIME or o["case"] == "growth" else "×"
    return f"{_number(o['ratio'])}{unit}{' ↓' if o['target'].startswith('≤') else ''}"


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def _time(milliseconds: float | None) -> str:
    if milliseconds is None:
        return "–"
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"
