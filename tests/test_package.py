"""The shape of the package: what importing loads, which layer may use which, what is public."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import karat

SOURCE = Path(karat.__file__).parent
LAYERS = [
    "errors", "_version", "arrays", "grammar", "conventions", "tables", "progress", "tokens", "llm", "agreement",
    "samples", "views", "along", "hits", "regroup", "judges", "budgets", "metrics", "verdicts", "items", "keeping",
    "stored", "provenance", "stats", "slices", "means", "remarks", "run", "runfile",
    "comparable", "contrasts", "movement", "comparison", "calibration",
    "diagnosis", "evaluation", "scale", "merging", "translation", "linting",
    "rules", "drops", "checks", "gatekeeping", "outfile", "starter",
    "demo", "compat", "report", "tested", "pytest_plugin", "cli",
]  # fmt: skip
"""From left to right, as the data walk: a layer uses only what stands left of it."""
UPWARD = {("run", "runfile"), ("slices", "run"), ("remarks", "run"), ("evaluation", "scale")} | {
    (result, "report")
    for result in ("run", "translation", "comparison", "calibration", "diagnosis", "linting", "gatekeeping")
}
"""`run.save` is a method because people look for it there; it loads the writer when it is called.
Slices hold runs, and name them for the type checker. Files larger than memory are evaluated in batches. Results
know how to be shown, and load the report when they are."""


def loaded_by(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy():
    heavy = {"numpy", "polars", "rich", "msgspec", "pandas", "pyarrow", "dataclasses", "inspect", "typing"}
    assert not heavy & loaded_by("import karat")


def test_evaluating_dicts_loads_numpy_alone():
    code = "import karat; karat.evaluate(retrieved={'q': {'a': 1.0}}, gold={'q': {'a': 1}}, metrics='recall@5')"
    assert not {"polars", "msgspec", "pandas", "pyarrow"} & loaded_by(code)


def test_help_loads_no_numpy():
    code = "from karat.cli import _parser; _parser().format_help()"
    assert not {"numpy", "polars", "msgspec"} & loaded_by(code)


@pytest.mark.parametrize("name", karat.__all__)
def test_public_names_exist(name):
    assert getattr(karat, name) is not None
    assert name in dir(karat)


def test_verbs_are_not_hidden_by_modules():
    """Importing every module must not put a module where a function was."""
    modules = ["karat." + ".".join(p.relative_to(SOURCE).with_suffix("").parts) for p in SOURCE.rglob("*.py")]
    code = ";".join(f"import {m.removesuffix('.__init__')}" for m in modules if m != "karat.__init__")
    verbs = [name for name in karat.__all__ if name.islower() and not name.startswith("_")]
    assert {"evaluate", "compare", "gate", "diagnose", "lint", "rosetta", "calibrate", "merge"} <= set(verbs)
    check = f"; assert all(callable(getattr(karat, name)) for name in {verbs})"
    assert "karat.run.run" in loaded_by(code + check)


def test_unknown_public_name():
    with pytest.raises(AttributeError, match="evaluat"):
        karat.evaluat  # noqa: B018


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_layers_look_left_only(path):
    own = path.relative_to(SOURCE).with_suffix("").parts[0]
    if own in {"__init__", "__main__"}:
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("karat"):
            parts = (node.module or "").split(".")
            used = [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
            for layer in used:
                allowed = LAYERS.index(layer) <= LAYERS.index(own) or (own, layer) in UPWARD
                assert allowed, f"{own} imports {layer}"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_files_stay_short(path):
    assert len(path.read_text().splitlines()) <= 300
