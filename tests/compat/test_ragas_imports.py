"""The import lines of ragas, with karat.compat.ragas in place of ragas."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from karat.compat import ragas

SNIPPET = Path(__file__).parents[1] / "oracles" / "ragas_snippets" / "import_lines.txt"
"""The lines that ragas itself runs, too."""
LINES = [line for line in SNIPPET.read_text("utf-8").splitlines() if line.startswith("from ragas")]


def ours(line):
    return line.replace("from ragas", "from karat.compat.ragas", 1)


def test_there_are_lines():
    assert len(LINES) > 30


@pytest.mark.parametrize("line", LINES)
def test_every_import_line_works(line):
    exec(ours(line), {})


def test_the_names_of_submodules_are_one():
    from karat.compat.ragas.metrics import collections

    assert issubclass(collections.ContextRecall, ragas.ContextRecall)
    assert import_module("karat.compat.ragas.metrics._context_recall").context_recall is ragas.context_recall
    assert callable(ragas.experiment), "the decorator, not the module"


@pytest.mark.parametrize("module", ["ragas.llms.base", "ragas.metrics._string", "ragas.dataset", "ragas.experiment"])
def test_a_deep_path_may_be_the_first_import(module):
    line = next(line for line in LINES if line.startswith(f"from {module} "))
    code = f"{ours(line)}; import sys; assert 'langchain_core' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
