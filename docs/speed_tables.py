"""The speed tables of README.md and docs/benchmarks.md, from benchmarks/results.json and the modules of the cases."""

from __future__ import annotations

import ast
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


_NO_PEER = {"startup", "startup-import", "startup-help"}
"""Cases whose second time is a part of the first: the bare interpreter."""


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
    """Every outcome but those on growth, with its target."""
    return _table([o for o in _outcomes() if o["case"] != "growth"])


def large() -> str:
    """The outcomes on large data."""
    return _table([o for o in _outcomes() if o["case"].partition("-")[0] in ("files", "spark", "memory")])


def growth() -> str:
    """The outcomes on growth."""
    return _table([o for o in _outcomes() if o["case"] == "growth"])


def slower() -> str:
    """The outcomes in which karat takes longer than its peer, the worst first."""
    timed = [o for o in _outcomes() if o["karat_ms"] and o["peer_ms"] and o["case"] not in _NO_PEER]
    every = sorted((o for o in timed if o["karat_ms"] > o["peer_ms"]), key=lambda o: o["peer_ms"] / o["karat_ms"])
    return _table(every)


def cases() -> str:
    """What each case measures: the first two paragraphs of its module."""
    rows = ["| case | what it measures |", "|---|---|"]
    for module in dict.fromkeys(o["case"].partition("-")[0] for o in _outcomes()):
        text = ast.get_docstring(ast.parse((RESULTS.parent / f"{module}.py").read_text("utf-8"))) or ""
        first_two = " ".join(text.split("\n\n")[:2])
        rows.append(f"| `{module}` | {' '.join(first_two.split())} |")
    return "\n".join(rows)


def _outcomes() -> list[dict[str, Any]]:
    outcomes: list[dict[str, Any]] = json.loads(RESULTS.read_text("utf-8"))["outcomes"]
    return outcomes


def _table(outcomes: list[dict[str, Any]]) -> str:
    rows = ["| case | peer | karat | peer's time | ratio | target | met | note |", "|---|---|---|---|---|---|---|---|"]
    for o in outcomes:
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
    if milliseconds < 1e-3:
        return f"{milliseconds * 1e6:.3g} ns"
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"
