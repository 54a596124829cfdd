"""Takes the pictures of the documentation, of the report and of `karat view`: `make docs` runs it."""

from __future__ import annotations

import json
import os
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

import karat
from support import example, run_folder
from support.browser import Browser, program
from support.labelled import labelled, write_pool
from support.viewed import viewed

IMAGES = Path(__file__).parents[2] / "docs" / "img"
_WIDTH = 1200


def main():
    """Take all pictures; without a browser, say so and leave those that are there."""
    if program() is None:
        print("The pictures of the documentation stay as they are: there is no Chromium to take them with.")
        return
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA"):  # the pictures are the same wherever they are taken
        os.environ.pop(name, None)
    browser = Browser()
    try:
        with TemporaryDirectory() as folder, chdir(folder):
            _report(browser)
            run_folder.write_history("help-centre")
            with viewed("help-centre") as viewer:
                browser.open(viewer.address)
                _view(browser, viewer)
            labelled_pool = Path("pool.parquet")
            write_pool(labelled_pool, 12, 8)
            with labelled(labelled_pool, Path("gold.jsonl"), "--by", "Ada") as server:
                _label(browser, server)
    finally:
        browser.close()


def _report(browser):
    runs = {}
    for retriever in ("bm25", "first-words"):
        name = f"help-centre-{retriever}.jsonl"
        Path(name).write_text("\n".join(map(json.dumps, example.help_centre(retriever))))
        runs[retriever] = karat.evaluate(name, example.METRICS, judge="contains(gold_in_chunk)")
    runs["bm25"].report("light.html")
    runs["bm25"].report("dark.html", baseline=runs["first-words"])
    browser.open("light.html", width=1100, height=1250)
    _keep(browser, "report-light")
    browser.open("dark.html", dark=True, width=1100, height=1120)
    browser.run("[...document.querySelectorAll('#all tr')].find(r => r.textContent.startsWith('q06')).id = 'this'")
    browser.click("#this summary")
    browser.run("document.getElementById('queries').scrollIntoView()")
    _keep(browser, "report-dark")


def _view(browser, viewer):
    """The four screens, the last one also in the dark."""
    first, second, third = map(viewer.run, ("first-words", "bm25", "reranked"))
    query = f"/query?runs={first},{second},{third}&query=q06"
    for name, path, height, dark in (
        ("view-runs", "/", 970, False),
        ("view-run", f"/run/{second}", 900, False),
        ("view-compare", f"/compare?runs={first},{second}", 1000, False),
        ("view-query", query, 900, False),
        ("view-query-dark", query, 760, True),
    ):
        browser.open(viewer.url + path, width=_WIDTH, height=height, dark=dark)
        browser.settle()
        if dark:
            browser.run("document.querySelector('.rankings').scrollIntoView()")
        _keep(browser, name)


def _label(browser, server):
    """The labelling page with some answers of two people, and a marked passage."""
    sheet = server.sheet(0, "Ada")
    for number, item in enumerate(sheet["items"][:5]):
        server.grade(sheet["query"], item["key"], (0, 0, 1, 0, 0)[number], "Bob")
    for item in sheet["items"][:3]:
        at = item["text"].find("Settings > Billing")
        quotes = [{"start": at, "end": item["text"].index(".", at)}] if at >= 0 else []
        server.grade(sheet["query"], item["key"], 2 if quotes else 0, "Ada", quotes=quotes)
    browser.open(server.address, width=_WIDTH, height=900)
    browser.settle()
    browser.run("new Promise(done => setTimeout(done, 1500))")
    browser.run("document.querySelector('#progress').textContent = document.querySelector('#progress').textContent"
                ".replace(/ · [\\d.]+ labels per minute/, ''); scrollTo(0, 0)")  # fmt: skip
    _keep(browser, "label-page")


def _keep(browser, name):
    """Write a picture, if it is another one than before."""
    taken, path = browser.picture(), IMAGES / f"{name}.png"
    if not path.exists() or path.read_bytes() != taken:
        path.write_bytes(taken)


if __name__ == "__main__":
    main()
