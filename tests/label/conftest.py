"""One browser for all tests of the labelling page, and a pool for each test."""

from __future__ import annotations

import time

import pytest

from support.browser import MISSING, Browser, program
from support.labelled import write_pool


class Page:
    """A browser on the labelling page, and what it shows."""

    def __init__(self, browser):
        self.browser = browser

    def until(self, code, seconds=15):
        """Wait until an expression in the page is true."""
        end = time.monotonic() + seconds
        while True:
            if self.browser.run(f"Boolean({code})"):
                return
            assert time.monotonic() < end, (code, self.text("main")[:600])
            time.sleep(0.02)

    def open(self, server, path=None, **more):
        """Open a path, or the address with the token, which leads to the labelling page."""
        self.browser.open(server.address if path is None else server.url + path, **more)
        self.until("document.querySelector('#who:not([hidden]), #items > *, #differing > *')")

    def name(self, name):
        """Answer the question for the name."""
        self.browser.click("#by")
        self.browser.type(name)
        self.browser.press("Enter")
        self.until("document.querySelector('#items .item')")

    def text(self, selector):
        return self.browser.run(f"(document.querySelector({selector!r}) || {{}}).innerText || ''")

    @property
    def place(self):
        return self.text("#place")

    @property
    def current(self):
        """The number and the key of the item that has the focus."""
        return self.browser.run(
            "(() => { const own = document.querySelector('.item.current');"
            "return own && document.activeElement === own "
            "? [[...own.parentNode.children].indexOf(own), own.dataset.key] : null; })()"
        )

    def press(self, *keys):
        """Press keys, and wait until their answers are stored and shown."""
        self.browser.press(*keys)
        self.browser.settle()
        self.until("!document.querySelector('[aria-busy]')")


@pytest.fixture(scope="session")
def _chromium():
    if program() is None:
        pytest.skip(MISSING)
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture
def page(_chromium):
    return Page(_chromium)


@pytest.fixture
def pool(tmp_path):
    """A small pool of two retrievers; its file is `pool.parquet`."""
    return write_pool(tmp_path / "pool.parquet", 3, 3)
