"""The workbench with the keyboard alone: choose runs, compare them, open a query, go back, filter, sort. The focus is
always in sight."""

from __future__ import annotations

import json

import pytest

MOST = 150
"""Times that Tab is pressed before something counts as out of reach."""
FOCUS = """(() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const looks = ["outlineStyle", "outlineWidth", "boxShadow", "fill", "stroke", "strokeWidth", "opacity", "r", "color"];
  const look = () => [at, ...at.querySelectorAll("*")].slice(0, 20).map(one => {
    const style = getComputedStyle(one);
    return looks.map(name => style[name]).join();
  }).join();
  const box = at.getBoundingClientRect(), focused = look();
  at.blur();
  const other = look();
  at.focus({preventScroll: true});
  const within = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return {
    seen: box.width > 0 && box.height > 0 && within && focused !== other,
    html: at.outerHTML.slice(0, 200), href: at.getAttribute("href") || "", tag: at.tagName,
    row: at.closest("tr, li, article")?.textContent || "", text: at.textContent.trim(), type: at.type || "",
  };
})()"""
"""What has the focus, and if that can be seen: it is within the window and looks different."""


@pytest.fixture
def keyboard(chromium):
    return Keyboard(chromium)


class Keyboard:
    """Someone who has no mouse."""

    def __init__(self, chromium):
        self.chromium = chromium

    def tab_to(self, wanted, name):
        """Press Tab until something wanted has the focus; nothing on the way takes it out of sight."""
        for _ in range(MOST):
            self.chromium.press("Tab")
            at = self.chromium.run(FOCUS)
            if at is None:
                continue
            assert at["seen"], f"the focus cannot be seen: {at['html']}"
            if wanted(at):
                return at
        pytest.fail(f"{name} is out of reach: {self.path}")

    def enter(self):
        """Press Enter on a link or a button, and wait for the next page."""
        self.chromium.follow(lambda: self.chromium.press("Enter"))
        self.chromium.settle()

    @property
    def path(self):
        return self.chromium.run("location.pathname + location.search")

    def heading(self):
        return self.chromium.run("document.querySelector('h1').textContent")


def test_skip_to_the_content(viewer, keyboard, screens):
    for path in screens.values():
        keyboard.chromium.open(viewer.url + path)
        keyboard.chromium.settle()
        at = keyboard.tab_to(lambda at: True, "anything")
        assert at["href"] == "#main", path
        keyboard.chromium.press("Enter")
        assert keyboard.chromium.run("document.activeElement.id") == "main"


def test_choose_two_runs_compare_them_open_a_query_and_go_back(viewer, keyboard):
    keyboard.chromium.open(viewer.url, width=1400)
    keyboard.chromium.settle()
    for name in ("reranked", "first-words"):  # the newest is the first in the list
        keyboard.tab_to(lambda at, name=name: at["type"] == "checkbox" and name in at["row"], f"the box of {name}")
        keyboard.chromium.press("Space")
    keyboard.tab_to(lambda at: at["tag"] == "BUTTON" and at["text"].startswith("Compare"), "the button to compare")
    keyboard.enter()
    ids = {viewer.run(f"help-centre/{name}") for name in ("reranked", "first-words")}
    assert keyboard.path.startswith("/compare?runs=")
    assert all(number in keyboard.path for number in ids)
    compared = keyboard.path
    opened = keyboard.tab_to(lambda at: at["href"].startswith("/query?"), "a query that moved")
    keyboard.enter()
    assert keyboard.path == opened["href"].partition("#")[0]
    assert all(number in keyboard.path for number in ids)
    keyboard.tab_to(lambda at: at["text"] == "Compare" and at["href"].startswith("/compare"), "the way back")
    keyboard.enter()
    assert keyboard.path.partition("&")[0] == compared.partition("&")[0].replace("%2C", ",")


def test_open_a_run_filter_sort_and_open_a_query(viewer, keyboard):
    keyboard.chromium.open(viewer.url, width=1400)
    keyboard.chromium.settle()
    run = f"/run/{viewer.run('help-centre/bm25')}"
    keyboard.tab_to(lambda at: at["href"] == run, "the run")
    keyboard.enter()
    assert "bm25" in keyboard.heading()
    keyboard.tab_to(lambda at: at["type"] == "search", "the search")
    keyboard.chromium.type("workspace")
    searched = "document.querySelectorAll('#queries tbody details').length"
    whole = keyboard.chromium.run(searched)
    keyboard.chromium.press("Enter")
    wait(keyboard, "location.search.includes('workspace')")
    keyboard.chromium.settle()
    assert 0 < keyboard.chromium.run(searched) < whole
    keyboard.tab_to(lambda at: "sort=" in at["href"], "a heading that sorts")
    keyboard.chromium.press("Enter")
    wait(keyboard, "location.search.includes('sort=')")
    keyboard.chromium.settle()
    assert keyboard.chromium.run("document.querySelectorAll('#queries th[aria-sort]').length") == 1
    keyboard.tab_to(lambda at: at["tag"] == "SUMMARY" and "q" in at["text"][:1], "a query")
    keyboard.chromium.press("Enter")
    wait(keyboard, "document.activeElement.closest('details').open")
    wait(keyboard, "document.activeElement.closest('details').textContent.length > 200")


def wait(keyboard, condition):
    """Wait until something holds in the page."""
    code = f"new Promise(done => {{ const look = () => {condition} ? done(true) : setTimeout(look, 20); look(); }})"
    assert keyboard.chromium.run(code), json.dumps(condition)
