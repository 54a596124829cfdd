"""Every screen opens in a real browser: no error in the console, no request to another host, nothing wider than it."""

from __future__ import annotations

import pytest

SIZES = (390, 1400)


@pytest.mark.parametrize("width", SIZES)
def test_every_screen_opens(viewer, chromium, screens, width):
    for name, path in screens.items():
        chromium.open(viewer.url + path, width=width, dark=width == SIZES[0])
        assert chromium.complaints() == [], name
        assert chromium.hosts() == {f"127.0.0.1:{viewer.port}"}, name
        assert chromium.run("document.documentElement.scrollWidth") == width, name
        assert chromium.run("document.querySelectorAll('h1').length") == 1, name
