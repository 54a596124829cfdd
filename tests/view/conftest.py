"""One viewer of one folder of runs, and one browser, for all tests of a process."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from support import run_folder
from support.browser import MISSING, Browser, program
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
    return _chromium
