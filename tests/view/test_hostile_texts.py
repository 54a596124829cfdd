"""Hostile texts in every field of a run, and in the name of its file, stay text on every screen."""

from __future__ import annotations

from urllib.parse import quote

import pytest

import karat
from support import hostile
from support.run_folder import HOSTILE

OPEN = "document.querySelectorAll('main details').forEach(each => { each.open = true; })"
MARKUP = (
    "document.querySelectorAll('main :is(script, img, iframe, object, embed, style, base, [onload], [onerror])').length"
)
LINKS = "[...document.querySelectorAll('a[href]')].map(a => new URL(a.getAttribute('href'), location).origin)"
SCRIPT, IMAGE = hostile.PAYLOADS[0], hostile.PAYLOADS[4]


@pytest.fixture(scope="module")
def evil(viewer, folder):
    """The addresses of the two hostile runs, and of every query in both."""
    first, second = viewer.run(HOSTILE.removesuffix(".parquet")), viewer.run("evil/other")
    ids = karat.load(folder.paths[HOSTILE]).ids
    return {
        "runs": "/",
        "run": f"/run/{first}",
        "other run": f"/run/{second}",
        "search": f"/run/{first}?search={quote(SCRIPT)}&q={quote(SCRIPT)}",
        "unknown field": f"/run/{first}?{quote(SCRIPT)}={quote(IMAGE)}&sort={quote(IMAGE)}",
        "compare": f"/compare?runs={first},{second}",
        "unknown runs": f"/compare?runs={quote(IMAGE)},{quote(SCRIPT)}",
        **{f"query {i}": f"/query?runs={first},{second}&query={quote(name, safe='')}" for i, name in enumerate(ids)},
    }


def test_nothing_of_it_is_markup(viewer, chromium, evil):
    for name, path in evil.items():
        chromium.open(viewer.url + path)
        chromium.settle()
        chromium.run(OPEN)
        chromium.settle()
        assert chromium.run("window.__pwned") is None, name
        assert chromium.run(MARKUP) == 0, name
        assert set(chromium.run(LINKS)) <= {viewer.url}, name
        assert [one for one in chromium.complaints() if "the server responded with" not in str(one)] == [], name
        assert chromium.hosts() == {f"127.0.0.1:{viewer.port}"}, name


@pytest.mark.parametrize("name", ["run", "compare", "query 0"])
def test_it_is_shown_as_text(viewer, chromium, evil, name):
    chromium.open(viewer.url + evil[name])
    chromium.settle()
    chromium.run(OPEN)
    chromium.settle()
    text = chromium.run("document.querySelector('main').textContent")
    assert SCRIPT in text
    assert chromium.run("document.title").strip()


def test_the_name_of_a_file_is_shown_as_text(viewer, chromium, evil):
    chromium.open(viewer.url)
    assert '"><img src=x onerror="window.__pwned=1">' in chromium.run("document.querySelector('main').textContent")


def test_every_query_of_it_opens(viewer, evil):
    for name, path in evil.items():
        if name.startswith("query"):
            assert viewer.ask(path).status == 200, name
    assert not any("fault" in line for line in viewer.log)
