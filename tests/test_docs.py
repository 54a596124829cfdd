"""The documentation tells the truth: its Python runs, its generated parts are current, nothing is left out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from karat.metrics import METRICS
from karat.metrics.registry import _ALIASES

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture(autouse=True)
def own_metrics():
    """Forget the metrics that an example defines."""
    before = dict(METRICS), dict(_ALIASES)
    yield
    for registry, old in zip((METRICS, _ALIASES), before, strict=True):
        registry.clear()
        registry.update(old)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
        exec(compile(block, page.name, "exec"), names)


def test_generated_parts_are_current():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_every_metric_is_documented():
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    for name in METRICS:
        assert f"`{name}" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
