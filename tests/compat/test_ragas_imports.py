"""The import lines of ragas, with karat.compat.ragas in place of ragas."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from karat.compat import ragas
from support.ragas_imports import IMPORTS


def ours(module):
    return "karat.compat.ragas" + module.removeprefix("ragas")


@pytest.mark.parametrize("module", IMPORTS)
def test_every_import_line_works(module):
    found = import_module(ours(module))
    assert [name for name in IMPORTS[module] if not hasattr(found, name)] == []


def test_the_names_of_submodules_are_one():
    from karat.compat.ragas.metrics import collections

    assert issubclass(collections.ContextRecall, ragas.ContextRecall)
    assert import_module("karat.compat.ragas.metrics._context_recall").context_recall is ragas.context_recall
    assert callable(ragas.experiment), "the decorator, not the module"


@pytest.mark.parametrize("module", ["ragas.llms.base", "ragas.metrics._string", "ragas.dataset", "ragas.experiment"])
def test_a_deep_path_may_be_the_first_import(module):
    names = ", ".join(IMPORTS[module])
    code = f"from {ours(module)} import {names}; import sys; assert 'langchain_core' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
