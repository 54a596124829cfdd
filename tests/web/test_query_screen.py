"""The Query screen as a worker renders it: names that differ, the order in words, and runs that cannot be opened."""

from __future__ import annotations

import html
import re
import shutil

import pytest

import karat
from karat.web.messages import Call
from karat.web.tasks import do, load_tasks
from karat.web.view.folder import id_of
from support import example

SAME = [f"a-long-name/2026-11-{kind}-embeddings-small/run" for kind in ("10T10-00-00-base", "11T10-00-00-new")]
SHORT = ["…11-10T10-00-00-base…", "…11-11T10-00-00-new…"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    for name, source in zip(SAME, ("first-words", "bm25"), strict=True):
        (path / name).parent.mkdir(parents=True)
        example.run(source).save(path / f"{name}.parquet")
    shutil.copy(path / f"{SAME[0]}.parquet", path / "third.parquet")
    (path / "team").mkdir()
    (path / "team" / "broken.parquet").write_bytes(b"PAR1 and no more")
    load_tasks(view=True)
    return path


def ask(folder, *names, status=200, **more):
    runs = ",".join(id_of(f"{name}.parquet") for name in names)
    given = {"runs": runs, "query": "q06", **more}
    reply, body = do(Call("view_query", accept="text/html", arguments=given, store=str(folder)), b"", print)
    assert (reply.status, reply.fault) == (status, None)
    return body.decode()


def words(text):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", text))).strip()


def test_runs_with_the_same_file_name_are_told_apart(folder):
    text = ask(folder, *SAME)
    heads = re.findall(r'<h3><a [^>]*><bdi title="([^"]*)">([^<]*)<', text)
    assert heads == [*zip(SAME, SHORT, strict=True)]
    columns = re.search(r'<section id="scores">.*?<thead>(.*?)</thead>', text, re.DOTALL)[1]
    assert [name for name in SHORT if name in columns] == SHORT


def test_each_miss_has_its_cause_in_each_run(folder):
    gold = re.search(r'<section id="gold">.*?</section>', ask(folder, *SAME), re.DOTALL)[0]
    for name in SAME:
        run = karat.load(folder / f"{name}.parquet")
        causes = [miss.text for miss in karat.diagnose(run, "q06").misses]
        assert causes
        assert [cause for cause in causes if cause not in words(gold)] == []


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ("", "by recall@5 in {0}"),
        ("moved", "by recall@5, {0} → {1}"),
        ("file", "as in {0}"),
    ],
)
def test_the_order_names_its_runs(folder, order, told):
    assert re.search(rf"query \d+ of 32, {re.escape(told.format(*SHORT))}", words(ask(folder, *SAME, order=order)))
    alone = words(ask(folder, SAME[0], order=order))
    assert re.search(r"query \d+ of 32(?!,)", alone)


def test_the_arrow_points_from_the_name(folder):
    way = words(re.search(r'<nav class="way".*?</nav>', ask(folder, *SAME))[0])
    assert re.match(r"← previous: q\d+next: q\d+ →", way)


def test_a_damaged_run_is_named_and_can_be_left_out(folder):
    text = ask(folder, "third", "team/broken", SAME[1], status=404, order="moved")
    assert "team/broken.parquet is a damaged run file" in words(text)
    assert str(folder) not in text
    without = re.search(r'<a href="([^"]*)">Show the query in the 2 other runs', text)[1]
    assert "order=moved" in without
    assert id_of("team/broken.parquet") not in without
    assert "Show the query" not in ask(folder, "team/broken", status=404)
    assert "Show the query in the other run<" in ask(folder, "third", "team/broken", status=404)
