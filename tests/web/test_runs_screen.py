"""The list of runs as a worker renders it: groups by gold, order, filters, pages, errors, hostile names."""

from __future__ import annotations

import os
import re
import shutil
from datetime import UTC, datetime
from html import unescape
from urllib.parse import unquote

import polars as pl
import pytest

import karat
from karat.run.overview import read_overview
from karat.web.messages import Call
from karat.web.view import listed_runs, run_groups
from karat.web.view.folder import find_files
from karat.web.view.listed_runs import read_runs
from karat.web.view.runs_screen import runs_screen

GOLD = ["a", "b", "c", "d", "e", "f"]
START = datetime(2026, 3, 2, 9, 30, tzinfo=UTC).timestamp()


def samples(found, source="q"):
    """Six queries, of which some find their gold."""
    rows = enumerate(GOLD)
    return [{"id": f"{source}{i}", "retrieved": ["x", g if i < found else "y"], "gold": [g]} for i, g in rows]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files of runs: three of one gold, one of another."""
    folder = tmp_path_factory.mktemp("made")
    for found in (2, 4, 6):
        karat.evaluate(samples(found), "recall@1,2 rr").save(folder / f"found{found}.parquet")
    karat.evaluate(samples(3, "other"), "recall@2", convention="llamaindex").save(folder / "other.parquet")
    return folder


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch):
    monkeypatch.setattr(listed_runs, "_READ", type(listed_runs._READ)())
    monkeypatch.setattr(listed_runs, "_LATEST", {})


def copy(made, folder, *, day=0, **files):
    """Copy runs under other names, each a day after the one before."""
    for number, (name, source) in enumerate(files.items()):
        place(made / f"{source}.parquet", folder / f"{name.replace('__', '/')}.parquet", day + number)


def place(source, path, day):
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, path)
    os.utime(path, (START + 86400 * day,) * 2)


@pytest.fixture
def folder(made, tmp_path):
    copy(made, tmp_path, nightly__main="found2", extra="other", branch="found6", nightly2__main="found4")
    return tmp_path


def page(folder, **arguments):
    return runs_screen(Call("view_runs", store=str(folder), arguments=arguments), b"", lambda *_: None)[1].decode()


def text(html):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


def rows(html):
    """The names of the runs in the tables, in their order."""
    found = re.findall(r'<th scope="row"><span class="name"><a[^>]*>(.*?)</a>', html)
    return [unescape(re.sub(r"<[^>]+>", "", name)) for name in found]


def headings(html):
    return [text(found).strip() for found in re.findall("<h2[^>]*>(.*?)</h2>", html)]


def test_runs_of_the_same_gold_are_a_group_and_the_latest_group_is_first(folder):
    html = page(folder)
    assert [line.partition(" ·")[0][:9] for line in headings(html)] == ["6 queries"] * 2
    assert "3 runs, the latest of 5 Mar 2026" in headings(html)[0]
    assert "1 run of 3 Mar 2026" in headings(html)[1]
    assert rows(html) == ["nightly2/main", "branch", "nightly/main", "extra"]
    assert "4 runs of 2 test sets" in text(html)


def test_a_row_has_its_means_with_intervals_and_a_link(folder):
    html = page(folder)
    (row,) = re.findall(r'<tr id="run-[^"]*"[^>]*>(?:(?!</tr>).)*branch.*?</tr>', html)[:1]
    run = find_files(folder)
    (file,) = [file for file in run.files if file.name == "branch"]
    assert f'href="/run/{file.id}"' in row
    assert "1.000" in row
    assert re.search(r'class="sure">0\.\d\d – 1\.00', row)
    assert re.search(r'<time datetime="2026-03-04T\d\d:30:00[+-]\d\d:\d\d">4 Mar 2026, \d\d:30</time>', row)
    assert str(folder) not in html


def test_a_commit_is_short_and_a_column_only_where_there_is_one(made, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_SHA", "0123456789abcdef0123456789abcdef01234567")
    monkeypatch.chdir(tmp_path)
    karat.evaluate(samples(5), "recall@2").save(tmp_path / "new.parquet")
    html = page(tmp_path)
    assert '<bdi class="id">0123456</bdi>' in html
    assert "01234567" not in html
    assert "0123456789" not in page(made)


def test_equal_facts_are_said_once_and_different_ones_in_columns(made, tmp_path):
    copy(made, tmp_path, one="found2")
    karat.evaluate(samples(4), "recall@2", convention="haystack").save(tmp_path / "two.parquet")
    html = page(tmp_path)
    assert "judge: ids" in text(html)
    assert re.findall(r'data-name="convention"[^>]*><bdi>(\w+)', html) == ["haystack", "standard"]
    assert "differ in their convention, so compare the numbers with care" in text(html)


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("-time", ["nightly2/main", "branch", "nightly/main"]),
        ("time", ["nightly/main", "branch", "nightly2/main"]),
        ("name", ["branch", "nightly/main", "nightly2/main"]),
        ("-recall@2", ["branch", "nightly2/main", "nightly/main"]),
        ("recall@2", ["nightly/main", "nightly2/main", "branch"]),
        ("-no such metric", ["nightly2/main", "branch", "nightly/main"]),
    ],
)
def test_the_order_is_in_the_address_and_in_the_heading(folder, sort, order):
    html = page(folder, sort=sort)
    assert rows(html)[:3] == order
    told = re.findall(r'aria-sort="(\w+)"><a[^>]*><bdi>([^<]+)', html)
    if sort.startswith("-no"):
        assert told == []
    else:
        way = "descending" if sort.startswith("-") else "ascending"
        name = sort.removeprefix("-").replace("name", "run")
        assert told[0] == (way, name)


@pytest.mark.parametrize("sort", ["recall@1", "-recall@1"])
def test_runs_without_the_metric_are_last_in_either_order(made, tmp_path, sort):
    copy(made, tmp_path, one="found2", two="found4")
    karat.evaluate(samples(6), "recall@2").save(tmp_path / "none.parquet")
    assert rows(page(tmp_path, sort=sort))[-1] == "none"


def test_a_second_click_on_a_heading_turns_the_order_around(folder):
    assert 'href="/?sort=-recall@2#' in page(folder)
    assert 'href="/?sort=recall@2#' in page(folder, sort="-recall@2")


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"text": "nightly"}, ["nightly2/main", "nightly/main"]),
        ({"text": "MAIN nightly2"}, ["nightly2/main"]),
        ({"text": "llama"}, ["extra"]),
        ({"convention": "llamaindex"}, ["extra"]),
        ({"convention": "standard", "text": "branch"}, ["branch"]),
        ({"judge": "text"}, []),
        ({"text": "no such run"}, []),
    ],
)
def test_filters_are_in_the_address(folder, asked, names):
    html = page(folder, **asked)
    assert rows(html) == names
    if not names:
        assert "No run matches the filter" in text(html)
    else:
        assert f"{len(names)} file{'s' * (len(names) > 1)} of 4 match" in text(html)
    for name, value in asked.items():
        assert f'value="{value}"' in html, name


def test_the_metric_of_the_chart_is_in_the_address(folder):
    assert "recall@2 of 3 runs in the order of time" in page(folder)
    html = page(folder, metric="rr", sort="name")
    assert "rr of 3 runs in the order of time" in html
    assert re.search(r'href="/\?metric=recall@1&amp;sort=name#[^"]*"', html)
    assert re.search(r'aria-current="true"><bdi>rr</bdi>', html)
    html = page(folder, metric="recall@1")
    assert html.count('data-name="recall@1"') == 3, "a metric that is asked for has a column"


def test_the_chart_offers_every_metric(tmp_path):
    metrics = "recall@1,2,3,4,5,6,7,8,9,10 precision@1,2,3,4,5,6,7,8,9,10 ndcg@1,2,3,4,5,6,7,8,9,10 rr ap"
    for found in (2, 4):
        karat.evaluate(samples(found), metrics).save(tmp_path / f"{found}.parquet")
    (file, _) = find_files(tmp_path).files
    overview = read_overview(file.path)
    html = page(tmp_path, sort="name", runs=file.id)
    links = re.findall(r'href="/\?metric=([^&]*)&', html)
    assert [unquote(one) for one in links][: len(overview.headline)] == overview.headline
    form = re.search('<form class="metric".*?</form>', html)[0]
    offered = {*map(unquote, links), *re.findall('<option value="([^"]+)"', form)}
    assert offered == {*overview.mean}
    assert '<input type="hidden" name="sort" value="name">' in form
    assert f'<input type="hidden" name="runs" value="{file.id}">' in form
    html = page(tmp_path, metric="ndcg@7")
    assert '<option value="ndcg@7" selected="">' in html
    assert "ndcg@7 of 2 runs in the order of time" in html


def test_chosen_runs_stay_chosen(folder):
    first, second, other, third = (file.id for file in find_files(folder).files)
    html = page(folder, runs=f"{first},{third},gone,<b>")
    assert re.findall(r'value="(\w+)" form="compared"[^>]* checked=""', html) == [first, third]
    assert "2 runs chosen" in html
    assert f"runs={first},{third}" in html
    assert re.search(r'<span class="warning differ" hidden="">', html)
    assert re.search(r'<span class="warning most" hidden="" data-most="8">At most 8 runs', html)
    html = page(folder, runs=f"{first},{other}", text="nightly2")
    assert re.search(r'<span class="warning differ">They have different gold', html)
    assert f'<input type="hidden" name="runs" value="{other}"' in html, "also if it is not on the page"
    assert f'<input type="hidden" name="runs" value="{second}"' not in html


def test_a_damaged_and_a_foreign_file_are_listed_with_their_errors_at_the_end(folder):
    whole = (folder / "branch.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    pl.DataFrame({"town": ["Prague"]}).write_parquet(folder / "foreign.parquet")
    (folder / "text.parquet").write_text("no Parquet at all")
    (folder / "empty.parquet").write_bytes(b"")
    for name in ("cut", "foreign", "text", "empty"):
        os.utime(folder / f"{name}.parquet", (START, START))
    html = page(folder)
    assert rows(html) == ["nightly2/main", "branch", "nightly/main", "extra"]
    assert headings(html)[-1] == "4 files cannot be read as a run"
    assert "cut.parquet is a damaged run file" in text(html)
    assert "foreign.parquet is a Parquet file, but not a run file" in text(html)
    assert "text.parquet is not a run file" in text(html)
    assert str(folder) not in html
    assert headings(page(folder, text="foreign"))[-1] == "1 file cannot be read as a run"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_says_so(folder):
    (folder / "branch.parquet").chmod(0)
    assert "it cannot be read: Permission denied" in text(page(folder))
    (folder / "branch.parquet").chmod(0o600)
    assert "branch" in rows(page(folder))


def test_a_file_that_is_being_written_is_no_error_until_it_stays_so(folder, monkeypatch):
    whole = (folder / "branch.parquet").read_bytes()
    (folder / "new.parquet").write_bytes(whole[:100])
    html = page(folder)
    assert "It is being written." in text(html)
    assert "data-again" in html
    (folder / "new.parquet").write_bytes(whole)
    html = page(folder)
    assert "new" in rows(html)
    assert "data-again" not in html
    (folder / "new.parquet").write_bytes(whole[:200])
    html = page(folder)
    assert "new" in rows(html), "the run of before"
    assert "is being replaced" in text(html)
    monkeypatch.setattr(listed_runs, "_SETTLED", 0)
    html = page(folder)
    assert "new" not in rows(html)
    assert "new.parquet is a damaged run file" in text(html)


def test_a_file_that_is_gone_before_it_is_read_is_not_listed(folder):
    found = find_files(folder)
    (folder / "branch.parquet").unlink()
    assert [run.file.name for run in read_runs(found.files).runs] == ["nightly2/main", "extra", "nightly/main"]


def test_an_empty_folder_shows_the_commands_that_make_a_run(tmp_path):
    folder = tmp_path / "my runs"
    folder.mkdir()
    html = page(folder)
    assert "No runs yet" in headings(html)
    assert f"karat eval your.jsonl -o '{folder}/first.parquet'" in text(html)
    assert f"karat demo -o '{folder}/karat-demo'" in text(html)
    assert '<div id="filter"></div>' in html
    assert "<form" not in html


def test_a_folder_that_is_gone_is_said(tmp_path):
    assert headings(page(tmp_path / "gone")) == ["The folder cannot be read"]


def test_a_part_of_the_page_for_the_script(folder):
    html = page(folder, part="list", text="branch")
    assert html.startswith('<div id="filter">')
    assert "<html" not in html
    assert rows(html) == ["branch"]
    assert f'data-state="{find_files(folder).state}"' in html


def test_pages_and_a_group_that_goes_on(folder, monkeypatch):
    monkeypatch.setattr(run_groups, "SIZE", 2)
    first, second, beyond = (page(folder, page=number, sort="-time") for number in ("1", "2", "99"))
    assert rows(first) == ["nightly2/main", "branch"]
    assert "2 runs of 3" in text(first)
    assert rows(second) == ["nightly/main", "extra"]
    assert rows(beyond) == rows(second)
    assert re.search(r'aria-current="page"[^>]*>2<', second)
    assert 'href="/?page=2"' in first
    assert "in the order of time" in first
    assert "in the order of time" not in second, "the chart is where the group begins"
    assert rows(page(folder, page="-1")) == rows(page(folder, page="x")) == rows(first)


def test_files_are_read_for_a_limited_time_and_the_rest_later(folder):
    files = find_files(folder).files
    for read in (1, 2, 3, 4):
        listing = read_runs(files, seconds=-1)
        assert (len(listing.runs), listing.unread) == (read, 4 - read)
    assert [run.file for run in listing.runs] == files, "the newest first"


def test_the_page_says_how_many_files_are_not_read_yet(folder, monkeypatch):
    monkeypatch.setattr("karat.web.view.runs_screen.read_runs", lambda files: read_runs(files, seconds=-1))
    html = page(folder)
    assert "Reading the run files: 1 of 4, the latest first." in text(html)
    assert '<progress value="1" max="4">' in html
    assert "data-again" in html
    for _ in range(3):
        html = page(folder)
    assert "Reading" not in text(html)
    assert "data-again" not in html


def test_a_file_is_read_once_for_each_version(folder, monkeypatch):
    read = []

    def counted(path, shown):
        read.append(shown.name)
        return read_overview(path, shown)

    monkeypatch.setattr(listed_runs, "read_overview", counted)
    page(folder)
    page(folder, sort="name")
    assert len(read) == 4
    shutil.copy(folder / "branch.parquet", folder / "extra.parquet")
    page(folder)
    assert read[4:] == ["extra.parquet"]


def test_a_large_folder_says_that_only_a_part_was_looked_at(folder, monkeypatch):
    monkeypatch.setattr("karat.web.view.runs_screen.find_files", lambda path: find_files(path, most=2))
    assert "only the first 2 files and folders in it were looked at" in text(page(folder))


def test_a_run_of_which_the_gold_is_not_known_is_in_the_last_group(folder, monkeypatch):

    def without(path, shown):
        found = read_overview(path, shown)
        return found._replace(gold_hash=None) if "nightly2" in str(path) else found

    monkeypatch.setattr(listed_runs, "read_overview", without)
    html = page(folder)
    assert headings(html)[-1].startswith("Runs whose gold is not known")
    assert rows(html)[-1] == "nightly2/main"


HOSTILE = [
    b'"><img src=x onerror=alert(1)>',
    b"<script>alert(1)<_script>",
    b"line\nbreak",
    b"\xff\xfe",
    "\u202egnp.exe".encode(),
    "x" * 240,
    b"&amp;",
    b"' onmouseover='alert(1)",
    b"a,b",
    b"%2e%2e%2f..%2fetc",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_stays_text(made, tmp_path, name):
    raw = name.encode() if isinstance(name, str) else name
    path = tmp_path / os.fsdecode(raw + b".parquet")
    shutil.copy(made / "found2.parquet", path)
    copy(made, tmp_path, plain="found4")
    (tmp_path / os.fsdecode(b"bad" + raw[:200] + b".parquet")).write_text("damaged")
    os.utime(tmp_path / os.fsdecode(b"bad" + raw[:200] + b".parquet"), (START, START))
    html = page(tmp_path, runs=",".join(file.id for file in find_files(tmp_path).files))
    assert len(rows(html)) == 2
    assert not re.search(r"<(img|script>|[a-z]+[^>]* onmouseover=')", html)
    assert "\u202e" not in html
    tags = re.findall(r"<(\w+)", html)
    assert {"img"} & set(tags) == set()
    for address in re.findall(r'(?:href|action|value)="([^"]*)"', html):
        assert "onerror" not in address
        assert "etc" not in address
    html.encode()


def test_hostile_facts_stay_text(made, folder, monkeypatch):
    evil = '"><img src=x onerror=alert(1)>\u202e'

    def changed(path, shown):
        found = read_overview(path, shown)
        mean, interval = {f"{evil}@5": 0.5, **found.mean}, {f"{evil}@5": found.interval["recall@2"], **found.interval}
        return found._replace(
            mean=mean, interval=interval, headline=[f"{evil}@5"], judge=f"{path.name}{evil}", convention=evil,
            source=f"/x/{evil}", commit=evil, gold_hash=evil,
        )  # fmt: skip

    monkeypatch.setattr(listed_runs, "read_overview", changed)
    html = page(folder, text="onerror", metric=f"{evil}@5", sort=f"-{evil}@5", judge=f"branch.parquet{evil}")
    assert rows(html) == ["branch"]
    html = page(folder, text=evil, metric=f"{evil}@5", sort=evil, runs=evil)
    assert len(rows(html)) == 4
    assert "<img" not in html
    assert "\u202e" not in html


def test_less_is_better_is_said(tmp_path):
    karat.evaluate(samples(3), "recall@2 false_alarm@5").save(tmp_path / "run.parquet")
    assert text(page(tmp_path)).count("less is better") == 1
