"""The Compare screen as a worker renders it: filters whose counts are right, and pages for runs that do not compare."""

from __future__ import annotations

import html
import re
from datetime import datetime
from urllib.parse import parse_qsl, urlsplit

import pytest

import karat
from karat.web.messages import Call
from karat.web.tasks import do, load_tasks
from karat.web.view import compared_runs
from karat.web.view.folder import id_of
from support import compared, example

QUERIES = 130
COMMIT = "0123456789" * 4


def rows(found, seed=0):
    """Queries of a field with two values, some without gold, some without a text."""
    made = compared.rows(found, QUERIES, seed)
    return [{**row, "kind": "odd" if i % 2 else "even"} for i, row in enumerate(made)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs")
    runs = {
        "main": rows(0.5),
        "branch": rows(0.8, 1),
        "third": rows(0.3, 2),
        "undefined": [{**row, "gold": []} if i < 7 else row for i, row in enumerate(rows(0.4))],
        "fewer": rows(0.5)[:40],
        "others": [{**row, "id": f"x{row['id']}"} for row in rows(0.5)],
        "repeated": [{**row, "repeat": again} for again in (1, 2) for row in rows(0.6, again)],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("karat.run.run.current_commit", lambda: COMMIT)
        for name, given in runs.items():
            karat.evaluate(given, "recall@5 ndcg@10 rr", judge="ids").save(path / f"{name}.parquet")
    karat.evaluate(rows(0.5), "precision@3", judge="ids").save(path / "precision.parquet")
    karat.evaluate(rows(0.5), "rr", judge="ids", convention="ranx").save(path / "ranx.parquet")
    (path / "broken.parquet").write_bytes(b"PAR1 and no more")
    for name in ("bm25", "first-words"):
        example.run(name).save(path / f"{name}.parquet")
    load_tasks(view=True)
    return path


def ids(*names):
    return ",".join(id_of(f"{name}.parquet") for name in names)


def ask(folder, arguments, part=None):
    task, more = ("view_compare", {}) if part is None else ("view_compare_part", {"part": part})
    reply, body = do(Call(task, accept="text/html", arguments={**arguments, **more}, store=str(folder)), b"", print)
    assert reply.fault is None
    assert reply.content_type == "text/html"
    return reply.status, body.decode()


def page(folder, *names, status=200, **more):
    got, text = ask(folder, {"runs": ids(*names), **more})
    assert got == status, words(text)
    return text


def follow(folder, href):
    """The page of a link, as a reader without script gets it."""
    parts = urlsplit(html.unescape(href))
    assert parts.path == "/compare"
    status, text = ask(folder, dict(parse_qsl(parts.query, keep_blank_values=True)))
    assert status == 200
    return text


def words(text):
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", text))).strip()


def section(text, name):
    return re.search(rf'<section id="{name}"[^>]*>.*?</section>', text, re.DOTALL)[0]


def listed(text):
    """The number of queries that the section of moved queries says it has, and the rows on this page."""
    moved = section(text, "moved")
    said = re.search(r"<caption>(?:[\d,]+ to [\d,]+ of )?([\d,]+) quer", moved)
    return int(said[1].replace(",", "")) if said else 0, moved.count('<th scope="row"')


def choices(text, name):
    """The links of a line of choices, with the number at the end of each."""
    line = re.search(rf'<div [^>]*aria-label="{name}"[^>]*>.*?</div>', text, re.DOTALL)[0]
    found = re.findall(r'<a href="([^"]*)"[^>]*><bdi>([^<]*)</bdi>', line)
    return {label: href for href, label in found}


def test_two_runs(folder):
    text = page(folder, "main", "branch")
    found = karat.compare(folder / "main.parquet", folder / "branch.parquet")
    row = found.rows[0]
    told = words(section(text, "metrics"))
    assert f"branch is better than main in recall@5: {row.difference:+.3f} [{row.low:+.3f}, {row.high:+.3f}]" in told
    assert f"{row.won} won, {row.tied} tied, {row.lost} lost" in told
    assert listed(text)[0] == row.won + row.lost


@pytest.mark.parametrize("metric", ["recall@5", "ndcg@10"])
def test_every_circle_leads_to_as_many_queries_as_it_says(folder, metric):
    text = page(folder, "main", "branch", metric=metric)
    figure = text[text.index('<figure class="scatter"') :].partition("</figure>")[0]
    circles = re.findall(r'<a href="([^"]*)" aria-label="[^"]*: ([\d,]+) quer', figure)
    assert sum(int(count) for _, count in circles) == QUERIES
    for href, count in circles:
        assert listed(follow(folder, href))[0] == int(count)


def test_counts_on_the_filters_are_those_of_their_rows(folder):
    start = page(folder, "bm25", "first-words", metric="ndcg@10")
    for name in ("Result", "Cause"):
        for label, href in choices(start, name).items():
            text = follow(folder, href)
            if label != "any":
                assert listed(text)[0] == int(label.split()[-1].replace(",", "")), label
            for inner, further in choices(text, "Result").items():
                assert listed(follow(folder, further))[0] == int(inner.split()[-1]), (label, inner)


def test_causes_are_those_of_the_losing_run(folder):
    before, after = (karat.load(folder / f"{name}.parquet") for name in ("bm25", "first-words"))
    found = karat.compare(before, after)
    expected = {}
    changed = zip(found.ids, *(scores["recall@5"] for scores in found.scores), strict=True)
    loser = {query: after if new < old else before for query, old, new in changed if old != new and old == old}
    for run in (before, after):
        for miss in karat.diagnose(run, k=5).misses:
            if loser.get(miss.query_id) is run:
                expected.setdefault(miss.cause, set()).add(miss.query_id)
    text = page(folder, "bm25", "first-words")
    links = choices(text, "Cause")
    assert set(links) == {"any", *(f"{cause} {len(queries)}" for cause, queries in expected.items())}
    for cause, queries in expected.items():
        rows = section(follow(folder, links[f"{cause} {len(queries)}"]), "moved")
        assert set(re.findall(r"query=([^\"&]*)&", rows)) == queries


def test_pages_have_fifty_queries_and_all_of_them(folder):
    seen, number = [], 1
    while True:
        text = page(folder, "main", "branch", metric="ndcg@10", page=str(number))
        moved = section(text, "moved")
        seen += re.findall(r"query=(q\d+)&", moved)
        if 'rel="next"' not in moved:
            break
        assert listed(text)[1] == 50
        number += 1
    row = next(
        row for row in karat.compare(folder / "main.parquet", folder / "branch.parquet").rows if "ndcg" in row.metric
    )
    assert number == 3
    assert len(set(seen)) == len(seen) == row.won + row.lost
    assert listed(page(folder, "main", "branch", page="999"))[1] > 0


def test_the_largest_change_is_first(folder):
    moved = section(page(folder, "main", "branch", metric="ndcg@10", way="lost"), "moved")
    found = karat.compare(folder / "main.parquet", folder / "branch.parquet")
    before, after = (dict(zip(found.ids, scores["ndcg@10"], strict=True)) for scores in found.scores)
    changes = [round(after[query] - before[query], 9) for query in re.findall(r"query=(q\d+)", moved)]
    assert len(set(changes)) > 3
    assert changes == sorted(changes)
    assert max(changes) < 0


def test_a_slice_is_a_filter(folder):
    text = page(folder, "main", "branch", by="kind")
    links = re.findall(r'<a href="([^"]*slice=(\w+)[^"]*)"', section(text, "slices"))
    found = karat.compare(folder / "main.parquet", folder / "branch.parquet").by("kind")
    assert {value for _, value in links} == {"odd", "even"}
    for href, value in links:
        assert listed(follow(folder, href))[0] == found[value][0].won + found[value][0].lost
        assert f"{found[value][0].difference:+.3f}" in section(text, "slices")


def test_three_runs_choose_the_pair(folder):
    text = page(folder, "main", "branch", "third")
    others = choices(text, "Compared with main")
    assert list(others) == ["branch", "third"]
    pair = karat.compare(*(folder / f"{name}.parquet" for name in ("main", "branch", "third")), metrics="recall@5")
    second = next(each for each in pair.rows[0].pairs if (each.first, each.second) == (0, 2))
    assert listed(follow(folder, others["third"]))[0] == second.won + second.lost
    assert "third is worse than main" in words(text)
    assert f"/query?runs={ids('main', 'branch', 'third')}&amp;query=" in text
    assert "make it the baseline · leave it out" in words(text)
    links = re.findall(r'<a href="([^"]*)" aria-label="((?:make|leave) [^"]*)"', text)
    runs = {label: dict(parse_qsl(urlsplit(html.unescape(href)).query))["runs"] for href, label in links}
    assert runs == {
        "leave it out: main": ids("branch", "third"),
        "make it the baseline: branch": ids("branch", "main", "third"),
        "leave it out: branch": ids("main", "third"),
        "make it the baseline: third": ids("third", "main", "branch"),
        "leave it out: third": ids("main", "branch"),
    }


@pytest.mark.parametrize("large", [False, True])
def test_a_query_is_won_with_less_where_less_is_better(tmp_path, monkeypatch, large):
    if large:
        monkeypatch.setattr(compared_runs, "LARGE", 3)
    for name, alarms in (("before", 6), ("after", 2)):
        rows = [{"id": f"q{i}", "retrieved": ["x"][: i < alarms], "answerable": False} for i in range(9)]
        karat.evaluate(rows, "false_alarm@5", judge="ids").save(tmp_path / f"{name}.parquet")
    text = page(tmp_path, "before", "after", metric="false_alarm@5", show="moved")
    assert list(choices(text, "Result")) == ["moved 4", "won 4", "lost 0", "tied 5", "all 9"]


def test_a_query_links_to_all_runs_and_tells_where_its_gold_went(folder):
    moved = section(page(folder, "main", "branch", way="won"), "moved")
    links = re.findall(rf'href="/query\?runs={ids("main", "branch")}&amp;query=(q\d+)&amp;among=([^"]*)"', moved)
    assert len(links) == listed(page(folder, "main", "branch", way="won"))[1]
    assert {tuple(among.split(",")) for _, among in links} == {tuple(query for query, _ in links)}
    assert re.search(r"not retrieved → \d+", words(moved))


@pytest.mark.parametrize(
    ("names", "status", "told"),
    [
        ((), 400, "None is chosen"),
        ((), 400, "the oldest is the baseline, unless you choose another"),
        (("main",), 400, "Only one is chosen"),
        (("main", "main"), 400, "A comparison needs two different runs"),
        (("main", "nothing"), 404, "there is no such run"),
        (("main", "broken"), 404, "broken.parquet is a damaged run file"),
        (("main", "broken", "branch"), 404, "Compare the 2 others"),
        (("main", "fewer"), 409, "90 queries only in main"),
        (("main", "ranx"), 409, "conventions differ"),
        (("main", "others"), 409, "share no query"),
        (("main", "precision"), 409, "no metric in common"),
    ],
)
def test_runs_that_cannot_be_compared(folder, names, status, told):
    text = page(folder, *names, status=status)
    assert told in words(text)
    assert str(folder) not in text


def test_the_shared_queries_can_be_compared_anyway(folder):
    href = re.search(r'href="([^"]*allow_mismatch=1[^"]*)"', page(folder, "main", "fewer", status=409))[1]
    text = follow(folder, href)
    told = words(section(text, "metrics"))
    assert "compared in spite of differences: 90 queries only in main" in told
    assert "Compared over the 40 queries in every run" in told
    assert "allow_mismatch=1" in choices(text, "Result")["all 40"]
    assert "allow_mismatch" not in page(folder, "main", "others", status=409)


def test_repeats_and_undefined_scores(folder):
    text = page(folder, "main", "repeated", allow_mismatch="1")
    assert "a query counts once, with the mean of its repeats" in words(text)
    assert "all 130" in choices(text, "Result")
    text = page(folder, "undefined", "main", allow_mismatch="1")
    assert "7 queries are undefined in at least one run" in words(text)
    assert f"all {QUERIES - 7}" in choices(text, "Result")
    assert f"Differences are paired, over {QUERIES - 7} queries: each run minus" in words(text)


@pytest.mark.parametrize(
    "given",
    [
        {"metric": "no@5"}, {"way": "up"}, {"cause": "bad luck"}, {"before": "7", "after": "0"}, {"by": "colour"},
        {"by": "kind", "slice": "red"}, {"slice": "odd"}, {"page": "-1"}, {"b": "0"}, {"before": "<script>"},
    ],
)  # fmt: skip
def test_bad_addresses_have_a_page(folder, given):
    status, text = ask(folder, {"runs": ids("main", "branch"), **given})
    assert status in (400, 404)
    assert "<script>alert" not in text
    assert "got" in words(text) or "try" in words(text)


def test_too_many_runs(folder):
    status, text = ask(folder, {"runs": ",".join("abcdefghi")})
    assert status == 400
    assert "<h1>This page cannot be shown</h1>" in text
    assert "at most 8 runs are compared at once; got 9 runs" in words(text)
    assert '<a href="/">All runs</a>' in text


def test_each_run_has_its_time_and_its_commit(folder):
    written = folder / "main.parquet"
    told = words(re.search(r'<ol class="compared"[^>]*>.*?</ol>', page(folder, "main", "branch"))[0])
    time = datetime.fromtimestamp(written.stat().st_mtime).astimezone()
    assert f"{time.day} {time:%b %Y, %H:%M} · commit {COMMIT[:7]} · {QUERIES} queries" in told


def test_a_difference_that_is_detectable_is_explained(folder):
    assert "The detectable difference is" in words(page(folder, "main", "repeated", allow_mismatch="1"))


def test_only_names_of_runs_break_inside_words(folder):
    heads = re.findall(r"<thead>(.*?)</thead>", section(page(folder, "main", "branch"), "slices"))[0]
    assert re.findall(r'class="run-name">(\w+)<', heads) == ["main", "branch"]


def test_parts_are_the_sections_of_the_page(folder):
    text = page(folder, "main", "branch")
    for part in ("metrics", "scores", "moved", "slices"):
        assert ask(folder, {"runs": ids("main", "branch")}, part) == (200, section(text, part))
    assert ask(folder, {"runs": ids("main", "branch")}, "nothing")[0] == 404
    assert ask(folder, {"runs": ids("main")}, "moved")[0] == 404


def test_large_runs_come_in_parts_with_the_same_numbers(folder, monkeypatch):
    names = ("main", "branch")
    whole = page(folder, *names, by="kind")
    monkeypatch.setattr(compared_runs, "LARGE", 60)
    compared_runs._COMPARED.clear()
    try:
        text = page(folder, *names, by="kind")
        places = dict(re.findall(r'<section id="(\w+)" data-part="([^"]*)"', text))
        assert list(places) == ["metrics", "scores", "moved", "slices"]
        for part, address in places.items():
            query = dict(parse_qsl(urlsplit(html.unescape(address)).query))
            shown = words(ask(folder, query, part)[1])
            link = re.search(rf'href="([^"]*show={part}[^"]*)"', text)[1]
            assert words(section(follow(folder, link), part)) == shown
            if part != "moved":
                assert shown == words(section(whole, part))
        moved = ask(folder, {"runs": ids(*names)}, "moved")[1]
        assert re.findall(r"query=(q\d+)", moved) == re.findall(r"query=(q\d+)", section(whole, "moved"))
        causes = words(ask(folder, {"runs": ids(*names)}, "causes")[1])
        total = listed(whole)[0]
        assert f"They are known for a random sample of 60 of the {total} queries that moved" in causes
        for label, href in choices(ask(folder, {"runs": ids(*names)}, "causes")[1], "Cause").items():
            if label != "any":
                assert listed(follow(folder, href))[0] == int(label.split()[-1])
    finally:
        compared_runs._COMPARED.clear()


def test_a_part_of_another_version_is_refused(tmp_path):
    for name, found in (("main", 0.5), ("branch", 0.8)):
        compared.run(found).save(tmp_path / f"{name}.parquet")
    load_tasks(view=True)
    given = {"runs": ids("main", "branch")}
    version = re.search(r'data-version="([^"]*)"', page(tmp_path, "main", "branch"))[1]
    assert ask(tmp_path, {**given, "version": version}, "moved")[0] == 200
    compared.run(0.7, seed=3).save(tmp_path / "branch.parquet")
    assert ask(tmp_path, {**given, "version": version}, "moved")[0] == 409
    assert ask(tmp_path, given, "moved")[0] == 200
