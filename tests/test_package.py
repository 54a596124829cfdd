"""The shape of the package: what importing loads, which room may import which, what is public."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import karat

SOURCE = Path(karat.__file__).parent
ROOMS = [
    "errors", "_internal", "_kernel", "stats", "fusion", "llm", "conventions", "samples", "collection", "hits",
    "judges", "metrics", "run", "plan", "scale", "pipeline", "analysis", "gold", "report", "compat", "bridges", "web",
    "cli", "pytest_plugin",
]  # fmt: skip
"""The folders and files at the top, in the order of the data: each imports only those before it."""
UPWARD = {("_internal", "report")}
"""A result loads `report` when it is shown: the one exception."""


def loaded_by(code):
    """The modules that a new interpreter has loaded after the code; coverage, which loads some itself, is off in it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy():
    heavy = {"numpy", "polars", "rich", "msgspec", "pandas", "pyarrow", "dataclasses", "inspect", "typing"}
    assert not heavy & loaded_by("import karat")


def test_evaluating_dicts_loads_numpy_alone():
    code = "import karat; karat.evaluate(retrieved={'q': {'a': 1.0}}, gold={'q': {'a': 1}}, metrics='recall@5')"
    assert not {"polars", "msgspec", "pandas", "pyarrow"} & loaded_by(code)


@pytest.mark.parametrize("items", ["{'a': 1.0}", "['a']"])
def test_the_judge_ids_loads_no_other_judge(items):
    code = f"import karat; karat.evaluate(retrieved={{'q': {items}}}, gold={{'q': ['a']}}, metrics='rr', judge='ids')"
    others = {"text", "contains", "fuzzy", "spans", "claims", "relevance", "pairwise", "model_judge"}
    loaded = loaded_by(code)
    assert not {f"karat.judges.{name}" for name in others} & loaded
    assert not any(name.startswith("karat.llm") for name in loaded)


def test_the_command_line_loads_no_llm_for_the_judge_ids(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text('{"retrieved": ["a"], "gold": ["a"]}\n')
    command = ["eval", str(path), "rr", "--judge", "ids", "-o", str(tmp_path / "run.parquet")]
    loaded = loaded_by(f"from karat.cli import main; main({command})")
    assert "karat.judges.ids" in loaded
    assert not any(name.startswith("karat.llm") for name in loaded)


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_the_command_line_loads_no_polars_for_jsonl(tmp_path, form):
    path, gold = tmp_path / "samples.jsonl", tmp_path / "gold.jsonl"
    path.write_text('{"id": "q", "retrieved": ["a"]}\r\n\n')
    gold.write_text('{"id": "q", "gold": ["a"]}')
    command = ["eval", str(path), "rr", "--gold", str(gold), "--format", form]
    loaded = loaded_by(f"from karat.cli import main; main({command})")
    assert "msgspec" in loaded
    assert not {"polars", "multiprocessing", "karat.scale.processes"} & loaded


def test_help_loads_no_numpy():
    code = "from karat.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    assert not {"numpy", "polars", "msgspec"} & loaded_by(code)


@pytest.mark.parametrize("name", karat.__all__)
def test_public_names_exist(name):
    assert getattr(karat, name) is not None
    assert name in dir(karat)


def test_verbs_are_not_hidden_by_modules():
    """Importing every module must not put a module where a function was; bridges need their frameworks."""
    modules = ["karat." + ".".join(p.relative_to(SOURCE).with_suffix("").parts) for p in SOURCE.rglob("*.py")]
    code = ";".join(
        f"import {m.removesuffix('.__init__')}"
        for m in modules
        if m != "karat.__init__" and not m.startswith("karat.bridges.")
    )
    verbs = [name for name in karat.__all__ if name.islower() and not name.startswith("_")]
    assert {
        "evaluate",
        "compare",
        "gate",
        "diagnose",
        "fuse",
        "lint",
        "rosetta",
        "calibrate",
        "merge",
        "metric",
        "judge",
    } <= set(verbs)
    check = f"; assert all(callable(getattr(karat, name)) for name in {verbs})"
    assert "karat.run.run" in loaded_by(code + check)


def test_unknown_public_name():
    with pytest.raises(AttributeError, match="evaluat"):
        karat.evaluat  # noqa: B018


SOURCES = pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
MAY_BE_SHORT = {"__init__", "__main__"}


class Code(NamedTuple):
    """The facts about a source file that tests check; its tree is parsed once and not kept."""

    imports: list
    """Every import of karat's own modules, as (module, name)."""
    imports_at_once: list
    """Those that are executed when the file is loaded."""
    functions: list
    """The name of every function and the number of its lines after the docstring."""
    docstrings: list
    """The line number and the first line of every docstring, also of constants and fields."""


def imports_of(nodes):
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "karat":
            yield from ((node.module, alias.name) for alias in node.names)


@cache
def code_of(path):
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    code = Code([*imports_of(nodes)], [*imports_of(tree.body)], [], [])
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            code.functions.append((node.name, node.end_lineno - first.lineno))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            code.docstrings.append((node.lineno, node.value.value.strip().partition("\n")[0]))
    return code


def module_of(path):
    parts = ("karat", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@SOURCES
def test_a_room_imports_only_rooms_before_it(path):
    own = path.relative_to(SOURCE).with_suffix("").parts[0]
    if own in {"__init__", "__main__"}:
        return
    for module, name in code_of(path).imports:
        parts = [*module.split("."), name]
        if module == "karat" and name not in ROOMS:
            continue
        allowed = ROOMS.index(parts[1]) <= ROOMS.index(own) or (own, parts[1]) in UPWARD
        assert allowed, f"{own} imports {parts[1]}"


def test_there_is_no_import_cycle():
    modules = {module_of(path): code_of(path) for path in SOURCE.rglob("*.py")}
    graph = {
        module: {f"{m}.{n}" if f"{m}.{n}" in modules else m for m, n in code.imports_at_once} - {module}
        for module, code in modules.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


@SOURCES
def test_functions_are_short(path):
    for name, lines in code_of(path).functions:
        assert lines < 45, f"{name} has more than 45 lines of code"


@SOURCES
def test_a_docstring_names_the_thing(path):
    """Also those of constants and fields: a noun, "True if …" or a verb, not a question about the thing."""
    for line, first in code_of(path).docstrings:
        assert not re.match(r"(What|How|Whether|Which|Why)\b", first), f"line {line}: {first}"


@SOURCES
def test_a_file_is_one_idea(path):
    lines = path.read_text().splitlines()
    assert len(lines) <= 400
    if path.stem not in MAY_BE_SHORT and len(lines) < 60:
        assert "separate" in lines[0], "a file under 60 lines says in its first line why it is loaded separately"


def test_names_are_used_once():
    """Two files share a name only if one renders the other: report/ and cli/ may repeat analysis/ and run/."""
    places = {}
    for path in SOURCE.rglob("*.py"):
        if path.stem not in MAY_BE_SHORT:
            places.setdefault(path.stem, set()).add(path.relative_to(SOURCE).parts[0])
    shared = {name: rooms for name, rooms in places.items() if len(rooms - {"report", "cli"}) > 1}
    assert not shared
    assert len([path for path in SOURCE.iterdir() if path.suffix in {"", ".py"} and path.name != "__pycache__"]) <= 26
