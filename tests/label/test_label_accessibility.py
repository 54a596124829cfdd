"""The pages of labelling have a name for each control and enough contrast, says axe-core, and the focus is seen."""

from __future__ import annotations

import pytest

from support import axe
from support.labelled import labelled

NAMES = pytest.mark.skipif(not axe.installed(), reason=axe.MISSING)
STATES = {
    "items": ("3", "2"),
    "marking": ("m", "ArrowRight", "m"),
    "note": ("Escape", "n"),
}


@NAMES
def test_axe_finds_nothing(page, pool, tmp_path):
    found = []
    guide = tmp_path / "guide.md"
    guide.write_text("Read the query twice.\n" * 80)
    options = ("--by", "Ada", "--for", "recall@2", "--model", "lexical", "--guideline", guide)
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", *options) as server:
        for width in (1400, 390):
            page.open(server, width=width)
            for item in server.sheet(0, "Ada")["items"][:2]:
                server.grade(server.sheet(0, "Ada")["query"], item["key"], 1, "Bob")
            for state, keys in STATES.items():
                page.press(*keys)
                page.browser.run("document.querySelectorAll('details').forEach(own => { own.open = true; })")
                for dark in (False, True):
                    page.browser.scheme(dark=dark)
                    found += [f"{width} {state} dark={dark}: {line}" for line in axe.violations(page.browser)]
        for path in ("/label/disagreements", "/label"):
            page.open(server, path)
            page.press("l")
            found += [f"{path}: {line}" for line in axe.violations(page.browser)]
    with labelled(tmp_path / "pool.parquet", tmp_path / "other.jsonl") as server:
        page.open(server)
        found += [f"name: {line}" for line in axe.violations(page.browser)]
    assert found == []


def test_the_focus_is_seen_and_read(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        page.open(server)
        page.browser.press("j")
        style = page.browser.run(
            "(own => [own.outlineStyle, own.outlineWidth])(getComputedStyle(document.activeElement))"
        )
        assert style == ["solid", "2px"]
        tree = page.browser.send("Accessibility.getFullAXTree")["nodes"]
        names = {node["role"]["value"]: node["name"]["value"] for node in tree if node.get("properties") and any(
            one["name"] == "focused" and one["value"].get("value") for one in node["properties"])}  # fmt: skip
        assert names["article"] == (f"Item 2 of {len(pool.queries[0].items)} no answer yet")
        page.press("2")
        page.until("document.querySelector('#said').textContent === 'Item 2: graded 2'")
