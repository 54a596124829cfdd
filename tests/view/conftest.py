"""One viewer of one folder of runs, and one browser, for all tests of a process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from support import run_folder
from support.browser import MISSING, Browser, program
from support.run_folder import HOSTILE
from support.viewed import viewed


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The runs of `run_folder`, with their paths by name."""
    root = tmp_path_factory.mktemp("view") / "runs"
    return SimpleNamespace(root=root, paths=run_folder.write(root))


@pytest.fixture(scope="session")
def viewer(folder):
    with viewed(folder.root) as running:
        yield running


@pytest.fixture(scope="session")
def _chromium():
    if program() is None:
        pytest.skip(MISSING)
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture
def chromium(_chromium, viewer):
    """A browser that has the cookie of the viewer."""
    if not any(cookie["value"] and str(viewer.port) in cookie["name"] for cookie in _chromium.cookies(viewer.url)):
        _chromium.open(viewer.address)
    _chromium.send("Page.resetNavigationHistory")  # which keeps 50 pages
    return _chromium


@pytest.fixture(scope="session")
def screens(viewer):
    """The addresses of the screens, with runs of the same questions."""
    first, second, third = (viewer.run(f"help-centre/{name}") for name in ("first-words", "bm25", "reranked"))
    cheap, dear = (viewer.run(f"own-metrics/{name}") for name in ("cheap", "dear"))
    steps, spans, hostile = map(viewer.run, ("steps/two-hops", "spans", HOSTILE.removesuffix(".parquet")))
    return {
        "runs": "/",
        "run": f"/run/{second}",
        "run with steps": f"/run/{steps}",
        "hostile run": f"/run/{hostile}",
        "run with metrics of its own": f"/run/{cheap}",
        "compare": f"/compare?runs={first},{second}",
        "compare three": f"/compare?runs={first},{second},{third}",
        "compare metrics of their own": f"/compare?runs={cheap},{dear}&metric=cost_in_cents@5",
        "query": f"/query?runs={first},{second},{third}&query=q06",
        "query with steps": f"/query?runs={steps}&query=q1",
        "query with spans": f"/query?runs={spans}&query=s1",
    }
