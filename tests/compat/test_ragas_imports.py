"""The import lines of ragas, with karat.compat.ragas in place of ragas."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from karat.compat import ragas
from karat.compat.ragas import llms
from karat.compat.ragas.absent import ABSENT
from karat.errors import Unavailable

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


@pytest.mark.parametrize("name", ABSENT)
def test_a_name_that_is_left_out_says_why(name):
    for module in (ragas, ragas.metrics, import_module("karat.compat.ragas.metrics.collections"), llms):
        if name in vars(module):
            continue
        with pytest.raises(ImportError, match=rf"has no {name}: .*docs/migrate/ragas\.md"):
            exec(f"from {module.__name__} import {name}", {})


def test_other_names_are_attribute_errors():
    assert not hasattr(ragas, "nonsense")
    with pytest.raises(ImportError, match="cannot import name"):
        exec("from karat.compat.ragas.metrics import nonsense", {})


def test_version_and_exceptions():
    assert ragas.__version__ == "0.4.3"
    from karat.compat.ragas.exceptions import RagasException, RagasOutputParserException

    assert issubclass(Unavailable, RagasException)
    assert RagasOutputParserException is Unavailable


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from ragas import evaluate", "from karat.compat.ragas import evaluate"),
        ("    from ragas.llms import llm_factory", "    from karat.compat.ragas.llms import llm_factory"),
        ("import ragas", "from karat.compat import ragas"),
        ("import ragas.metrics", "from karat.compat import ragas"),
        ("  import ragas as r", "  import karat.compat.ragas as r"),
        ("import ragas.metrics as m", "import karat.compat.ragas.metrics as m"),
        ("import ragas_other", "import ragas_other"),
        ("import fragas", "import fragas"),
    ],
)
def test_the_command_of_the_page(before, after):
    page = (Path(__file__).parents[2] / "docs" / "migrate" / "ragas.md").read_text("utf-8")
    script = re.search(r"sed -i -E '(.*)' evaluate_rag\.py", page)[1]
    done = subprocess.run(["sed", "-E", script], input=before, capture_output=True, text=True, check=True)
    assert done.stdout == after
