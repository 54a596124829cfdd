"""Every screen opens in a real browser: no error in the console, no request to another host, nothing wider than it."""

from __future__ import annotations

import pytest

SIZES = (390, 1400)
PAPER = "getComputedStyle(document.documentElement).backgroundColor + getComputedStyle(document.body).backgroundColor"


CUT_LABELS = """[...document.querySelectorAll("svg.chart text")].filter((one) => {
  const box = one.getBoundingClientRect(), around = one.closest("figure").getBoundingClientRect();
  return box.width > 0 && (box.left < around.left - 1 || box.right > around.right + 1);
}).map((one) => one.textContent)"""


@pytest.mark.parametrize("width", SIZES)
def test_every_screen_opens_in_light_and_dark(viewer, chromium, screens, width):
    for name, path in screens.items():
        chromium.open(viewer.url + path, width=width)
        chromium.settle()
        light = chromium.run(PAPER)
        chromium.scheme(dark=True)
        chromium.settle()
        assert chromium.run(PAPER) != light, name
        assert chromium.complaints() == [], name
        assert chromium.hosts() == {f"127.0.0.1:{viewer.port}"}, name
        assert chromium.run("document.documentElement.scrollWidth") == width, name
        assert chromium.run(CUT_LABELS) == [], name
        assert chromium.run("document.querySelectorAll('h1').length") == 1, name
        assert chromium.run("document.title").endswith(" · karat"), name


def test_every_screen_says_it_without_script(viewer, chromium, screens):
    """The words are in the page that the server sends."""
    for name, path in screens.items():
        chromium.open(viewer.url + path, script=False)
        assert len(chromium.html("main")) > 500, name
        assert chromium.complaints() == [], name
