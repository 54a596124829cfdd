"""Takes the pictures of the documentation: python tests/support/screenshots.py."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

import karat
from support import example
from support.browser import Browser

IMAGES = Path(__file__).parents[2] / "docs" / "img"


def main():
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        runs = {}
        for retriever in ("bm25", "first-words"):
            name = f"help-centre-{retriever}.jsonl"
            Path(name).write_text("\n".join(map(json.dumps, example.help_centre(retriever))))
            runs[retriever] = karat.evaluate(name, example.METRICS, judge="contains(gold_in_chunk)")
        runs["bm25"].report("light.html")
        runs["bm25"].report("dark.html", baseline=runs["first-words"])
        browser = Browser()
        browser.open("light.html", width=1100, height=1250)
        browser.screenshot(IMAGES / "report-light.png")
        browser.open("dark.html", dark=True, width=1100, height=1120)
        browser.run("[...document.querySelectorAll('#all tr')].find(r => r.textContent.startsWith('q06')).id = 'this'")
        browser.click("#this summary")
        browser.run("document.getElementById('queries').scrollIntoView()")
        browser.screenshot(IMAGES / "report-dark.png")
        browser.close()


if __name__ == "__main__":
    main()
