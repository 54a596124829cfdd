"""The whole page: written, read by a parser, and made by the command."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import karat
from karat.report.html import markup
from support import example, hostile
from support.forked import run_karat

KARAT = str(Path(sys.executable).with_name("karat"))
VOID = {"meta", "link", "input", "wbr"}


class Checked(HTMLParser):
    """Refuses elements that are not closed in order, and keeps what a page refers to and draws."""

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.scripts, self.ids, self.handlers = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.addresses += [given[name] for name in ("src", "href", "action", "data") if name in given]
        self.handlers += [name for name in given if name.startswith("on") or name == "style"]
        self.ids += [given["id"]] if "id" in given else []
        self.scripts += [given] if tag == "script" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    example.run().report(path, baseline=example.run("first-words"))
    return path.read_text("utf-8")


def test_the_page_is_whole_and_needs_nothing(page):
    read = Checked(page)
    assert all(address.startswith("#") or address == "data:," for address in read.addresses)
    assert read.scripts == [{}, {"type": "application/json", "id": "data"}, {}]
    assert read.handlers == []
    assert len(set(read.ids)) == len(read.ids)
    assert {address[1:] for address in read.addresses if address.startswith("#")} <= set(read.ids)
    assert "@import" not in page
    assert "url(" not in page


def test_everything_is_on_it(page):
    for heading in (
        "Scores", "Compared with the baseline", "Recall and precision over k", "Slices", "Missed gold", "All queries",
        "Provenance",
    ):  # fmt: skip
        assert f"<h2>{heading}</h2>" in page
    run = example.run()
    for name, value in run.mean.items():
        assert name in page
        assert f"{value:.3f}" in page
    for query in run.query:
        assert markup.write(query) in page


def test_the_same_run_gives_the_same_page(page, tmp_path):
    example.run().save(tmp_path / "samples.parquet")
    example.run("first-words").save(tmp_path / "baseline.parquet")
    karat.load(tmp_path / "samples.parquet").report(tmp_path / "a.html", baseline=tmp_path / "baseline.parquet")
    assert (tmp_path / "a.html").read_text("utf-8") == page


def test_hostile_data_are_shown_and_stay_data(tmp_path):
    run = hostile.run(10)
    run.report(tmp_path / "evil.html", baseline=run)
    text = (tmp_path / "evil.html").read_text("utf-8")
    read = Checked(text)
    assert read.scripts == [{}, {"type": "application/json", "id": "data"}, {}]
    assert read.handlers == []
    assert all(address.startswith("#") or address == "data:," for address in read.addresses)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "&lt;script&gt;" in text


ODD = {
    "no gold": [{"retrieved": ["a"], "gold": []}],
    "nothing retrieved": [{"retrieved": [], "gold": ["a"]}],
    "one query": [{"retrieved": ["a"], "gold": ["a"]}],
    "no query text, ids only": [{"id": str(i), "retrieved": ["a", "b"], "gold": ["b"]} for i in range(3)],
    "fields of every kind": [{"retrieved": ["a"], "gold": ["a"], "x": i, "y": [i], "z": None} for i in range(4)],
}


@pytest.mark.parametrize("rows", ODD.values(), ids=ODD)
def test_odd_runs_have_a_page_too(rows, tmp_path):
    run = karat.evaluate(rows, "recall@1,5 precision@5 rr", judge="ids")
    run.report(tmp_path / "odd.html", baseline=run)
    Checked((tmp_path / "odd.html").read_text("utf-8"))


def test_other_metrics_alone(tmp_path):
    karat.evaluate(example.help_centre(), "span_recall@5 recall@50t", judge="spans").report(tmp_path / "spans.html")
    assert "span_recall@5" in (tmp_path / "spans.html").read_text("utf-8")


def test_the_command(tmp_path):
    def report(*arguments, code=0):
        done = run_karat("report", *arguments, text=True, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    example.run().save(tmp_path / "main.parquet")
    assert report("main.parquet") == "Saved to report.html\n"
    example.run("first-words").save(tmp_path / "old.parquet")
    report("main.parquet", "--baseline", "old.parquet", "-o", "both.html")
    assert ">old<" in (tmp_path / "both.html").read_text("utf-8")
    assert "no run file" in report("none.parquet", code=2)
    assert "would replace a run" in report("main.parquet", "-o", "main.parquet", code=2)
    assert "cannot write" in report("main.parquet", "-o", "nowhere/report.html", code=2)
    karat.evaluate(example.help_centre()[:9], "rr", judge="exact").save(tmp_path / "other.parquet")
    assert "cannot be compared" in report("main.parquet", "--baseline", "other.parquet", code=2)
    report("main.parquet", "--baseline", "other.parquet", "--allow-mismatch")
    assert "Compared over the 9 queries in every run" in (tmp_path / "report.html").read_text("utf-8")
