"""Documentation: its Python and commands run, generated parts are current, links and the source map are correct."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import karat
from karat.conventions import CONVENTIONS
from karat.judges import all_judges
from karat.judges.protocol import JUDGES
from karat.metrics import METRICS
from karat.metrics.registry import _ALIASES
from support.forked import run_karat
from test_package import ROOMS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def code_blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture(autouse=True)
def isolated_registries():
    """Remove the metrics and judges that an example defines."""
    all_judges()  # loads the built-in judges, which register themselves only once
    registries: list[dict] = [METRICS, _ALIASES, JUDGES]
    before = [dict(registry) for registry in registries]
    yield
    for registry, old in zip(registries, before, strict=True):
        registry.clear()
        registry.update(old)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A folder in which `karat demo` was run."""
    folder = tmp_path_factory.mktemp("demo")
    assert run_karat("demo", cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_examples_run(page, tmp_path, monkeypatch, request):
    monkeypatch.chdir(request.getfixturevalue("demo") if page.name == "README.md" else tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for block in code_blocks(page.read_text("utf-8"), "python"):
        exec(compile(block, page.name, "exec"), names)


def test_generated_parts_are_current():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_is_documented():
    page = (ROOT / "docs" / "metrics.md").read_text("utf-8")
    for name in METRICS:
        assert f"`{name}" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_index_links_every_page():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    for page in PAGES:
        if page.name not in {"README.md", "index.md"}:
            assert f"({page.relative_to(ROOT / 'docs')})" in index


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 90
    assert README.count("![") == 1


def test_the_readme_counts_correctly():
    libraries = [c for c in CONVENTIONS.values() if c.metrics]
    locks = (ROOT / "docs" / "generate.py").read_text("utf-8").partition("PACKAGES = {")[2].partition("}")[0]
    assert f"recall, precision, nDCG and {len(METRICS) - 3} more metrics" in README
    assert f"[{len(libraries)} libraries](docs/conventions.md)" in README
    assert f"all {len(locks.strip().splitlines())} peer libraries" in README


def test_the_record_of_the_readme_is_complete():
    (block,) = code_blocks(README, "json")
    record = json.loads(block)
    assert {"query", "retrieved", "gold"} <= set(record)
    assert set(record["retrieved"][0]) == {"id", "text", "doc", "start", "end", "score"}
    assert record["retrieved"][0]["end"] - record["retrieved"][0]["start"] == len(record["retrieved"][0]["text"])
    assert karat.evaluate([record], "recall@1").mean == {"recall@1": 1.0}


def test_the_daily_loop_of_the_readme_works(demo):
    (block,) = code_blocks(README, "sh")
    first, *commands = block.splitlines()
    assert first.startswith("source .venv/bin/activate && cd karat-demo ")
    assert len(commands) >= 6
    for command in commands:
        program, *arguments = shlex.split(command, comments=True)
        assert program == "karat"
        done = run_karat(*arguments, cwd=demo / "karat-demo", text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def documented_tree():
    """The paths of the source map in docs/design.md, in its order."""
    page = (ROOT / "docs" / "design.md").read_text("utf-8")
    lines = page.partition("<!-- tree -->\n```\nsrc/karat/\n")[2].partition("```")[0].splitlines()
    folders: list[str] = []
    for line in lines:
        depth = (len(line) - len(line.lstrip())) // 2 - 1
        folders[depth:] = [line.split()[0].rstrip("/")]
        yield "/".join(folders)


def test_the_source_map_is_complete():
    source = ROOT / "src" / "karat"
    paths = [p for p in source.rglob("*") if "__pycache__" not in p.parts and p.suffix not in {".so", ".pyd"}]
    on_disk = {str(path.relative_to(source)) for path in paths if path.name != "__init__.py" or path.parent == source}
    documented = list(documented_tree())
    assert set(documented) == on_disk
    assert len(documented) == len(on_disk)


def test_the_source_map_is_in_import_order():
    top = [path.removesuffix(".py") for path in documented_tree() if "/" not in path]
    assert top == ["__init__", "__main__", "py.typed", *ROOMS]


def anchors(page):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_anchors_exist(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text("utf-8")):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


PLAIN = {
    "anew": "again", "came back": "was retrieved", "comes back": "is retrieved", "set against": "compared with",
    "but for": "except for", "of one's own": "custom", "of your own": "custom", "told": "reported", "stands": "is",
    "nobody": "name the cause", "reckoned": "computed", "a million million": "the number", "once more": "again",
}  # fmt: skip
"""Paraphrases to avoid in hand-written pages, and what to write instead."""


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=lambda p: p.name)
def test_pages_use_plain_words(page):
    written = re.sub(r"<!-- (\w+)[^>]* -->.*?<!-- /\1 -->", "", page.read_text("utf-8"), flags=re.DOTALL).lower()
    found = [word for word in PLAIN if re.search(rf"\b{word}\b", written)]
    assert not found, f"write {', '.join(PLAIN[word] for word in found)}"
