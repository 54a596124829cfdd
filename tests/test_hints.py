"""What an error suggests after "try" is a command or a value, never a sentence."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import karat

SOURCE = Path(karat.__file__).parent
SENTENCE = re.compile(
    r"^(give|put|evaluate|define|write|pass|make|use|split|check|leave|set) |; | (takes?|lists|needs?|writes) |\.$"
)
"""Imperatives at the beginning, a second clause, a verb, a full stop."""


def hints(path):
    """The constant text of each hint in a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        values = []
        if isinstance(node, ast.Call):
            values = [keyword.value for keyword in node.keywords if keyword.arg == "hint"]
            if isinstance(node.func, ast.Name) and node.func.id == "unknown" and len(node.args) == 4:
                values.append(node.args[3])
        elif isinstance(node, ast.Assign) and any(
            ast.unparse(name).lower().strip("_") == "hint" for name in node.targets
        ):
            values = [node.value]
        for value in values:
            parts = [
                one.value for one in ast.walk(value) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
            yield "".join(parts)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_hints_are_commands_or_values(path):
    assert [hint for hint in hints(path) if SENTENCE.search(hint)] == []


def test_advice_for_python_is_not_shown_on_the_command_line():
    run = karat.evaluate(retrieved={"a": ["x"], "b": ["x"]}, gold={"a": ["x"], "b": ["y"]}, metrics="rr")
    with pytest.raises(karat.UnknownName) as caught:
        run.row("c")
    assert caught.value.hint == "one of: a, b"


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("bm26.parquet", "bm25.parquet"),
        ("BM25.parquet", "bm25.parquet"),
        ("sample.json", "samples.jsonl"),
        ("nix.parquet", None),
        ("none/x", None),
    ],
)
def test_a_file_that_does_not_exist_is_taken_for_a_similar_one(tmp_path, wanted, meant):
    for name in ("bm25.parquet", "bm25.html", "samples.jsonl", "run.parquet"):
        (tmp_path / name).touch()
    found = None if meant is None else str(tmp_path / meant)
    for read in (karat.load, karat.evaluate):
        with pytest.raises(karat.KaratError, match=r"no (run )?file") as error:
            read(str(tmp_path / wanted))
        assert error.value.hint == found
