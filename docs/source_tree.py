"""The source map of docs/design.md: every folder and file of src/karat in import order, and what each room imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from test_package import ROOMS

SOURCE = Path(__file__).parents[1] / "src" / "karat"
_WIDTH = 26
_FIRST = ("__init__.py", "__main__.py", "py.typed")
_RULES = {
    "errors": "every error says what was expected, what it got and what to try",
    "_internal": "knows nothing about retrieval",
    "_kernel": "plain data in, numbers out; None if the data is not plain, so that Python decides",
    "stats": "numbers → intervals, tests, power; knows nothing about retrieval",
    "fusion": "ranks and scores of several rankings → one score per item; knows nothing about gold",
    "llm": "requests → answers or explained failures; knows nothing about retrieval",
    "conventions": "one frozen record per library",
    "samples": "the caller's data → columns, copied only if needed",
    "collection": "a retriever and gold → samples; knows no framework by import",
    "hits": "immutable tables of matches",
    "judges": "samples → hits",
    "metrics": "hits → one number per query",
    "run": "the result; the only room that knows the file format",
    "plan": "metrics, judge and convention → the run of any part of the queries",
    "scale": "the same plan in batches, worker processes and on Spark",
    "pipeline": "`evaluate()` and `score()`",
    "analysis": "runs → verdicts, without rendering",
    "gold": "runs → a pool → labels → gold, without rendering",
    "report": "results → text, Markdown, HTML, LaTeX, JUnit",
    "compat": "renames and chooses a convention; contains no arithmetic",
    "bridges": "karat in the interfaces of other frameworks; contains no arithmetic",
    "web": "requests in, answers out; bodies are read and evaluated in worker processes",
    "cli": "arguments in, a printed result out",
    "pytest_plugin": "the fixture `karat` and its options",
}
"""The rule of each room."""


def source_tree() -> str:
    """The tree as a code block: each entry imports only entries above it, and files in the same folder."""
    return "\n".join(["```", "src/karat/", *_lines(SOURCE, 1), "```"])


def room_table() -> str:
    """Each room with its rule and the rooms before it that it imports, besides `errors` and `_internal`."""
    rows = ["| room | rule | imports |", "|---|---|---|"]
    for number, room in enumerate(ROOMS):
        path = SOURCE / room if (SOURCE / room).is_dir() else SOURCE / f"{room}.py"
        imported = _imported(path, ("karat",), everywhere=True)
        shown = [f"`{name}`" for name in ROOMS[2:number] if name in imported]
        rows.append(f"| `{room}` | {_RULES[room]} | {', '.join(shown) or '–'} |")
    return "\n".join(rows)


def _lines(folder: Path, depth: int) -> Iterator[str]:
    for path in _entries(folder):
        name = "  " * depth + path.name + ("/" if path.is_dir() else "")
        yield f"{name:<{_WIDTH - 1}} {_summary(path)}".rstrip()
        if path.is_dir():
            yield from _lines(path, depth + 1)


def _entries(folder: Path) -> list[Path]:
    """The contents of a folder in import order; `__init__.py` is only listed at the top, elsewhere it is the folder."""
    paths = [
        path for path in sorted(folder.iterdir()) if path.name != "__pycache__" and path.suffix not in {".so", ".pyd"}
    ]
    first = [path for path in paths if path.name in _FIRST and folder == SOURCE]
    data = [path for path in paths if path.is_file() and path.suffix != ".py" and path not in first]
    code = {path.stem: path for path in paths if path.name != "__init__.py" and path not in [*first, *data]}
    return [*first, *(code[name] for name in _in_import_order(code, folder)), *data]


def _in_import_order(code: dict[str, Path], folder: Path) -> Iterator[str]:
    """The names, each after those it imports; in alphabetical order if imports do not decide."""
    package = ("karat", *folder.relative_to(SOURCE).parts)
    needs = {name: _imported(path, package) & set(code) - {name} for name, path in code.items()}
    if folder == SOURCE:
        yield from ROOMS
        return
    while needs:
        ready = sorted(name for name, needed in needs.items() if not needed & set(needs))
        name = ready[0] if ready else min(needs)
        del needs[name]
        yield name


def _imported(path: Path, package: tuple[str, ...], *, everywhere: bool = False) -> set[str]:
    """The entries of a package that a file or folder imports: when it is loaded, or anywhere."""
    names: set[str] = set()
    for file in path.rglob("*.py") if path.is_dir() else [path]:
        tree = ast.parse(file.read_text("utf-8"))
        for node in ast.walk(tree) if everywhere else tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [(*node.module.split("."), alias.name) for alias in node.names]
                names |= {module[len(package)] for module in modules if module[: len(package)] == package}
    return names


def _summary(path: Path) -> str:
    """The first sentence of the docstring, or of the comment with which a file of C or of stubs begins."""
    file = path / "__init__.py" if path.is_dir() else path
    if file.suffix in {".c", ".pyi"}:
        return file.read_text("utf-8").partition("\n")[0].strip("/*# ").partition(". ")[0].rstrip(".:")
    if file.suffix != ".py":
        return ""
    docstring = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0].partition(". ")[0].rstrip(".:")
