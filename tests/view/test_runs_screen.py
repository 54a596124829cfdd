"""The list of runs in a browser: it follows the folder, keeps the place of its reader, and leads to a comparison."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

import pytest

import karat
from karat.web.view.folder import find_files
from support import example
from support.viewed import viewed

SOON = 2.0
"""Seconds within which a run of another process is in the list."""
SAVE = """
import sys, shutil
from pathlib import Path
from karat._internal.output import atomic_path
with atomic_path(sys.argv[2]) as place:
    place.write_bytes(Path(sys.argv[1]).read_bytes())
"""
LOOKS = "performance.getEntriesByType('resource').filter(one => one.name.endsWith('/state')).length"
ROWS = "document.querySelectorAll('.gold tbody tr').length"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The files of three runs of the same questions."""
    folder = tmp_path_factory.mktemp("made")
    rows = {"bm25": example.help_centre(), "first": example.help_centre("first-words")}
    for name, samples in rows.items():
        karat.evaluate(samples, "recall@5 rr", judge="contains").save(folder / f"{name}.parquet")
    karat.evaluate(rows["bm25"][:20], "recall@5", judge="contains").save(folder / "less.parquet")
    return folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A viewer of a folder of its own."""
    folder = tmp_path_factory.mktemp("followed") / "runs"
    folder.mkdir()
    with viewed(folder) as viewer:
        viewer.at = folder
        yield viewer


@pytest.fixture
def own(empty, chromium):
    """The viewer with an empty folder, and the browser on it."""
    for path in empty.at.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    chromium.open(empty.address)
    return empty


def until(chromium, code, seconds=20.0):
    """Wait until an expression in the page is true; the seconds it took."""
    begin = time.monotonic()
    while not chromium.run(code):
        assert time.monotonic() - begin < seconds, code
        time.sleep(0.02)
    return time.monotonic() - begin


def put(made, viewer, name, source="bm25", *, age=0):
    path = viewer.at / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(made / f"{source}.parquet", path.with_suffix(".tmp"))
    saved = time.time() - age
    os.utime(path.with_suffix(".tmp"), (saved, saved))
    path.with_suffix(".tmp").rename(path)


def test_a_run_saved_by_another_process_appears_within_two_seconds(made, own, chromium):
    assert "No runs yet" in chromium.run("document.body.textContent")
    until(chromium, f"{LOOKS} > 2")  # the page has already seen the folder as it is
    process = [sys.executable, "-c", SAVE, str(made / "bm25.parquet"), str(own.at / "first.parquet")]
    subprocess.run(process, check=True)
    assert until(chromium, f"{ROWS} === 1") < SOON
    assert chromium.run("document.querySelector('.gold .ago').textContent") == "just now"
    assert chromium.run("document.getElementById('said').textContent") == "New run: first."
    assert chromium.run("document.querySelector('tr.new') !== null")
    assert chromium.complaints() == []
    (own.at / "first.parquet").unlink()
    until(chromium, "document.body.textContent.includes('No runs yet')")


def test_a_new_run_keeps_choices_focus_scroll_and_the_words_of_the_filter(made, own, chromium):
    for number in range(30):
        put(made, own, f"run{number:02d}", age=3600 * (number + 1))
    chromium.open(own.url + "/?sort=name", height=500)
    until(chromium, f"{ROWS} === 30")
    chromium.run("document.querySelectorAll('.gold input')[3].click()")
    chromium.run("document.querySelectorAll('.gold tbody th a')[20].focus()")
    chromium.run("document.activeElement.scrollIntoView({block: 'center'})")
    before = chromium.run("document.activeElement.getBoundingClientRect().top")
    put(made, own, "a-new-one")
    until(chromium, f"{ROWS} === 31")
    assert chromium.run("document.activeElement.textContent") == "run20"
    assert abs(chromium.run("document.activeElement.getBoundingClientRect().top") - before) < 2
    chosen = "[...document.querySelectorAll('.gold input:checked')].map((box) => box.dataset.name)"
    assert chromium.run(chosen) == ["run03"]
    chromium.run("document.getElementById('filter-text').focus()")
    chromium.type("run0")
    put(made, own, "another")
    until(chromium, f"{ROWS} === 32")
    assert chromium.run("document.activeElement.value") == "run0"
    chromium.run("document.querySelector('.filter button').click()")
    until(chromium, f"{ROWS} === 10")
    assert chromium.run(chosen) == ["run03"]
    assert chromium.run("new URL(location).searchParams.get('text')") == "run0"


def test_two_chosen_runs_are_compared_and_the_oldest_is_the_baseline(made, own, chromium):
    put(made, own, "new", "bm25", age=60)
    put(made, own, "old", "first", age=600)
    put(made, own, "other", "less", age=300)
    until(chromium, f"{ROWS} === 3")
    ids = {file.name: file.id for file in find_files(own.at).files}
    button = "document.querySelector('.compared .main')"
    assert chromium.run(f"{button}.disabled")
    chromium.click(f"#pick-{ids['new']}")
    chromium.click(f"#pick-{ids['old']}")
    assert chromium.run("document.querySelector('.compared .count').textContent") == "2 runs chosen"
    warned = "!document.querySelector('.compared .warning').hidden"
    assert not chromium.run(warned)
    chromium.click(f"#pick-{ids['other']}")
    assert chromium.run(warned), "it has other gold"
    chromium.run(f"document.getElementById('pick-{ids['other']}').click()")
    assert chromium.run("location.search") == f"?runs={ids['new']},{ids['old']}"
    chromium.run(f"{button}.click()")
    until(chromium, "location.pathname === '/compare'")
    assert chromium.run("location.search") == f"?runs={ids['old']},{ids['new']}"
    chromium.run("history.back()")
    until(chromium, "document.querySelectorAll('#compared-baseline option').length === 3")
    assert chromium.run("document.querySelectorAll('.gold input:checked').length") == 2
    chromium.run(f"document.getElementById('compared-baseline').value = '{ids['new']}'")
    chromium.run(f"{button}.click()")
    until(chromium, "location.pathname === '/compare'")
    assert chromium.run("location.search") == f"?runs={ids['new']},{ids['old']}"


def test_more_runs_than_are_compared_cannot_be_taken_there(made, own, chromium):
    for number in range(9):
        put(made, own, f"run-{number}", age=60 + number)
    until(chromium, f"{ROWS} === 9")
    state = "[document.querySelector('.compared .main').disabled, document.querySelector('.compared .most').hidden]"
    boxes = "[...document.querySelectorAll('.gold tbody input')]"
    chromium.run(f"{boxes}.slice(0, 8).forEach(box => box.click())")
    assert chromium.run(state) == [False, True]
    chromium.run(f"{boxes}[8].click()")
    assert chromium.run(state) == [True, False]
    assert "At most 8 runs" in chromium.run("document.querySelector('.compared').innerText")


def test_without_a_script_runs_can_be_chosen_sorted_and_filtered(made, own, chromium):
    put(made, own, "alpha", "bm25", age=60)
    put(made, own, "omega", "first", age=600)
    ids = {file.name: file.id for file in find_files(own.at).files}
    page = own.page("/?sort=name&text=omega")
    assert "omega" in page
    assert ids["alpha"] not in page
    chosen = own.ask(f"/compare?runs={ids['alpha']}&runs={ids['omega']}&baseline=")
    assert (chosen.status, chosen.headers["Location"]) == (303, f"/compare?runs={ids['omega']},{ids['alpha']}")
    chromium.open(own.url, script=False)
    assert "New runs appear here" not in chromium.run("document.body.innerText")
    chromium.open(own.url, script=True)


def test_a_file_in_several_writes_is_no_error_when_it_is_complete(made, own, chromium):
    whole = (made / "bm25.parquet").read_bytes()
    path = own.at / "slow.parquet"
    path.write_bytes(whole[:2000])
    until(chromium, "document.body.textContent.includes('It is being written')")
    path.write_bytes(whole)
    until(chromium, f"{ROWS} === 1 && document.getElementById('problems') === null")
    path.write_bytes(b"no run")
    until(chromium, "document.body.textContent.includes('slow.parquet is not a run file')")
    assert chromium.run(ROWS) == 0


def test_a_dot_of_the_history_leads_to_its_run_and_shows_its_value(made, own, chromium):
    put(made, own, "new", "bm25", age=60)
    put(made, own, "old", "first", age=600)
    until(chromium, "document.querySelectorAll('.history circle').length === 2")
    ids = {file.name: file.id for file in find_files(own.at).files}
    assert chromium.run("document.querySelector('.history a').getAttribute('href')") == f"/run/{ids['old']}"
    chromium.run("document.querySelector('.history svg').focus()")
    chromium.press("ArrowRight")
    assert chromium.run("document.querySelector('.history .values').textContent").startswith("old\n0.")


@pytest.mark.parametrize("width", [390, 1400])
def test_long_and_odd_names_stay_within_the_page(made, own, chromium, width):
    for name in ("x" * 240, "w w" * 80, "\u05d0" * 90, "a/" * 60 + "deep", "<b>bold"):
        put(made, own, name)
    chromium.open(own.url, width=width)
    until(chromium, f"{ROWS} === 5")
    assert chromium.run("document.documentElement.scrollWidth") == width
    inside = "[...document.querySelectorAll('.gold tbody th')].every((one) => one.scrollWidth <= one.clientWidth + 1)"
    assert chromium.run(inside)
    assert chromium.complaints() == []


def test_a_server_that_has_ended_is_said(tmp_path, chromium):
    with viewed(tmp_path) as viewer:
        chromium.open(viewer.address)
        until(chromium, "document.body.textContent.includes('No runs yet')")
    until(chromium, "document.getElementById('said').textContent.includes('karat view has ended')")


def test_long_names_of_metrics_are_inside_their_cards(chromium, viewer):
    chromium.open(f"{viewer.url}/", width=390)
    chromium.settle()
    names = chromium.run("[...document.querySelectorAll('td.score')].map(one => one.dataset.name)")
    assert "span_precision@3" in names
    # a row is as dark as the text, whatever the names of its metrics
    colours = "[...document.querySelectorAll('td.score .value')].map(one => getComputedStyle(one).color)"
    assert set(chromium.run(colours)) == {chromium.run("getComputedStyle(document.body).color")}
    beyond = chromium.run("""[...document.querySelectorAll("td.score")].filter((one) => {
        const box = one.getBoundingClientRect(), next = one.nextElementSibling?.getBoundingClientRect();
        const over = next && next.top < box.bottom && next.left < box.right;
        return over || one.scrollWidth > one.clientWidth || box.right > one.closest("tr").getBoundingClientRect().right;
    }).map((one) => one.dataset.name)""")
    assert beyond == []
