"""Every screen and the static report have a name for each control and enough contrast, says axe-core: wide and narrow,
dark and light, with everything opened that can be opened."""

from __future__ import annotations

import pytest

from report.test_browser import every_section
from support import axe, example

pytestmark = pytest.mark.skipif(not axe.installed(), reason=axe.MISSING)

NAMES = ("runs", "run", "run with steps", "compare", "compare three", "query", "query with steps", "query with spans")
PROBLEMS = ("/run/0", "/nothing", "/run/{broken}")
OPEN = "document.querySelectorAll('main details').forEach((each, i) => { if (i < 6) each.open = true; })"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    path = tmp_path_factory.mktemp("pages")
    example.run().report(path / "help.html", baseline=example.run("first-words"))
    every_section().report(path / "sections.html", summary="p10,median,gm")
    return path


def look(chromium, address):
    """The violations of a page in each width and scheme, and with it opened."""
    found = {}
    for width in (1400, 390):
        chromium.open(address, width=width)
        chromium.settle()
        for dark, opened in ((False, False), (True, True)):
            chromium.scheme(dark=dark)
            if opened:
                chromium.run(OPEN)
                chromium.settle()
            found |= {f"{width} dark={dark}: {line}": None for line in axe.violations(chromium)}
    return list(found)


def test_a_page_with_mistakes_is_found_out(chromium, tmp_path):
    (tmp_path / "bad.html").write_text("<title>x</title><h1>x</h1><button></button><p style='color:#ddd'>pale</p>")
    found = " ".join(look(chromium, tmp_path / "bad.html"))
    assert "button-name" in found
    assert "color-contrast" in found


@pytest.mark.parametrize("name", NAMES)
def test_a_screen(viewer, chromium, screens, name):
    assert look(chromium, viewer.url + screens[name]) == []


@pytest.mark.parametrize("path", PROBLEMS)
def test_a_problem(viewer, chromium, path):
    assert look(chromium, viewer.url + path.format(broken=viewer.run("broken/damaged"))) == []


@pytest.mark.parametrize("name", ["help", "sections"])
def test_the_static_report(chromium, pages, name):
    assert look(chromium, pages / f"{name}.html") == []
