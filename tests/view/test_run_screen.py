"""The Run screen in a real browser: filters by click, sort by key, pages, search, Back, opened rows, without script."""

from __future__ import annotations

import time

import pytest

from support import example
from support.run_pages import many
from support.viewed import viewed

MATCHES = "document.getElementById('matches').textContent"
FOCUS = "document.activeElement.textContent"
LOADED = """new Promise(done => {
    const look = () => ("loaded" in document.body.dataset ? done() : setTimeout(look, 50));
    look();
})"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    many(300).save(folder / "many.parquet")
    example.run().save(folder / "bm25.parquet")
    example.run("first-words").save(folder / "first-words.parquet")
    with viewed(folder) as running:
        yield running


@pytest.fixture
def screen(chromium, runs):
    if not any(str(runs.port) in cookie["name"] for cookie in chromium.cookies(runs.url)):
        chromium.open(runs.address)
    chromium.send("Emulation.setFocusEmulationEnabled", enabled=True)
    return chromium


@pytest.fixture
def opened(screen, runs):
    """A function that opens a run, and waits until its sections are there."""

    def show(name, state="", **how):
        screen.open(f"{runs.url}/run/{runs.run(name)}{state}", **{"width": 1400, **how})
        if how.get("script", True):
            screen.settle()
            screen.run("window.stays = true")
        return screen

    return show


def until(page, code):
    """Wait until an expression in the page is true."""
    end = time.monotonic() + 20
    while not page.run(code):
        assert time.monotonic() < end, code
        time.sleep(0.02)


def back(page):
    page.run("new Promise(done => { addEventListener('popstate', done, { once: true }); history.back(); })")
    page.settle()


def click_bar(page):
    """Press the mouse above a low bar: its whole column is a link."""
    page.run("document.querySelector('#scores svg').scrollIntoView({ block: 'center' })")
    box = "document.querySelector('#scores svg a').getBoundingClientRect()"
    x, y = page.run(f"[{box}.left + {box}.width / 2, {box}.top + 3]")
    for kind in ("mousePressed", "mouseReleased"):
        page.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def test_bars_slices_and_causes_filter_the_table_in_place(opened):
    page = opened("many")
    assert page.run(MATCHES) == "300 queries"
    click_bar(page)
    page.settle()
    first = page.run(MATCHES)
    assert first.endswith(" of 300")
    assert page.run("document.getElementById('said').textContent") == first
    page.click("#slices tbody a")
    page.settle()
    both = page.run(MATCHES)
    assert both not in (first, "300 queries")
    assert page.run("document.querySelectorAll('.chip').length") == 2
    assert page.run(FOCUS) == "All queries"
    assert page.run("document.getElementById('queries').getBoundingClientRect().top") < 500
    assert page.run("document.querySelectorAll('a[aria-current=true]').length") >= 2
    page.click("#misses tbody a")
    page.settle()
    assert page.run("document.querySelectorAll('.chip').length") == 3
    back(page)
    back(page)
    assert page.run(MATCHES) == first
    page.click(".chip a")
    page.settle()
    assert page.run(MATCHES) == "300 queries"
    assert page.run("window.stays")
    assert page.complaints() == []


def test_heads_sort_by_key_and_keep_the_focus(opened):
    page = opened("many")
    head = "document.querySelector('#all thead th:nth-child(5) a')"
    page.run(f"{head}.focus()")
    order = []
    for _ in range(2):
        page.press("Enter")
        page.settle()
        assert page.run(FOCUS) == "rr"
        order.append(page.run(f"{head}.closest('th').getAttribute('aria-sort')"))
    assert order == ["ascending", "descending"]
    assert page.run("document.getElementById('order').textContent") == "Sorted by rr, highest first."
    assert page.run("window.stays")


def test_pages_are_turned_and_linked(opened, screen):
    page = opened("many")
    ids = "[...document.querySelectorAll('#all tbody .id')].map(one => one.textContent)"
    first = page.run(ids)
    page.run("[...document.querySelectorAll('.pages a')].find(link => link.textContent === 'next →').click()")
    page.settle()
    assert page.run("document.querySelector('.pages [aria-current]').textContent") == "2"
    second = page.run(ids)
    assert not {*first} & {*second}
    screen.open(page.run("location.href"))
    screen.settle()
    assert page.run(ids) == second


def test_search_while_typing(opened):
    page = opened("bm25")
    page.run("var pushed = 0, push = history.pushState.bind(history)")
    page.run("history.pushState = (...given) => { pushed += 1; push(...given); }")
    page.run("document.getElementById('search').focus()")
    for letter in "invoice":
        page.type(letter)
    page.run("new Promise(done => setTimeout(done, 500))")
    page.settle()
    assert page.run(MATCHES).endswith(" of 32")
    assert page.run("document.activeElement.id") == "search"
    assert page.run("location.search") == "?q=invoice"
    assert page.run("pushed") == 1
    back(page)
    assert page.run(MATCHES) == "32 queries"


def test_a_row_is_fetched_once_when_it_opens(opened):
    page = opened("bm25")
    page.click("#all summary")
    page.settle()
    assert page.run("document.querySelectorAll('#all .opened').length") == 1
    page.click("#all summary")
    page.click("#all summary")
    page.settle()
    assert page.run("document.querySelectorAll('#all .opened').length") == 1
    assert sum("/opened/" in url for url in page.requests()) == 1
    link = ".unopened a[href^='/query']"
    assert page.run(f"""document.querySelector("{link}").getBoundingClientRect().bottom
        <= document.querySelector("#all .opened").getBoundingClientRect().top""")
    page.follow(lambda: page.click(link))
    assert page.run("document.body.className") == "screen-query"


def test_without_script_everything_is_a_link(opened):
    page = opened("many", script=False)
    assert "300 queries" in page.html("#matches")
    page.follow(lambda: page.click("#misses a"))
    assert "Causes" in page.html("#misses")
    page.follow(lambda: page.click("#misses tbody a"))
    assert "of 300" in page.html("#matches")
    page.follow(lambda: page.click("#all thead th:nth-child(2) a"))
    assert "highest first" in page.html("#order")
    page.follow(lambda: page.click(".chip a"))
    assert "300 queries" in page.html("#matches")
    page.follow(lambda: page.click("#chooser a"))
    assert "There is no other run of the same gold." in page.html("main")


def test_without_script_a_query_is_searched_opened_and_leads_to_its_page(opened):
    page = opened("bm25", script=False)
    page.click("#search")
    page.type("q06")
    page.follow(lambda: page.press("Enter"))
    assert "1 query of 32" in page.html("#matches")
    page.click("#all summary")
    page.follow(lambda: page.click("#all details[open] a[href^='/query']"))
    assert 'class="screen-query"' in page.html("body")
    assert "query=q06" in page.send("Page.getFrameTree")["frameTree"]["frame"]["url"]


def test_a_baseline_is_chosen(opened, runs):
    page = opened("bm25")
    page.run(f"document.querySelector('.chooser select').value = '{runs.run('first-words')}'")
    page.follow(lambda: page.click(".chooser button"))
    page.settle()
    assert page.run("document.querySelector('#baseline h2').textContent") == "Compared with first-words"
    assert page.run("[...document.querySelectorAll('#all thead th')].at(-1).textContent") == "change"
    assert not page.complaints()


def test_a_run_that_was_replaced_is_loaded_again(opened, runs):
    page = opened("bm25")
    path = runs.folder / "bm25.parquet"
    whole = path.read_bytes()
    try:
        example.run().take(range(10)).save(path)
        page.follow(lambda: page.click("#all thead th:nth-child(3) a"))
        page.run(LOADED)
        assert page.run(MATCHES) == "10 queries"
        assert "sort=precision" in page.run("location.search")
    finally:
        path.write_bytes(whole)


def test_a_run_that_was_deleted_says_so_where_it_is_asked_for(opened, runs):
    page = opened("bm25")
    path = runs.folder / "bm25.parquet"
    whole = path.read_bytes()
    try:
        path.unlink()
        page.run("document.querySelector('#all summary').click()")
        until(page, "document.querySelector('#all .problem')?.textContent.includes('moved or deleted')")
        page.click("#all thead th:nth-child(3) a")
        until(page, f"{MATCHES}.includes('The file of the run may have been moved or deleted.')")
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_screen(opened, width, dark):
    page = opened("bm25", "?recall@5=0..1&q=a", width=width, dark=dark)
    page.click("#all summary")
    page.settle()
    assert page.run("document.documentElement.scrollWidth") == width
    assert not page.run("document.querySelector('[data-part]')")
    assert len(page.hosts()) == 1
    assert not page.complaints()


def test_the_status_line_is_seen_for_a_while_and_stays_for_screen_readers(opened):
    page = opened("bm25")
    page.run("{ const later = setTimeout; window.setTimeout = (act, wait) => later(act, wait / 50); }")
    shown = "document.getElementById('said').getBoundingClientRect().width > 1"
    page.run("view.say('3 queries of 32')")
    assert page.run(shown)
    page.run("new Promise(done => setTimeout(done, 6000))")
    assert not page.run(shown)
    assert page.run("document.getElementById('said').textContent") == "3 queries of 32"
    assert page.run("document.getElementById('said').checkVisibility()")
    page.run("view.say('It has ended.', true)")
    page.run("new Promise(done => setTimeout(done, 6000))")
    assert page.run(shown)


def test_an_opened_query_has_its_numbers_above_its_details_on_a_telephone(opened):
    page = opened("bm25", width=390)
    page.run("document.querySelector('#queries tbody summary').click()")
    page.settle()
    top = "document.querySelector('#queries tbody tr:first-child {}').getBoundingClientRect()"
    number = page.run(f"{top.format('td.n')}.bottom")
    assert number <= page.run(f"{top.format('.details')}.top") + 1
    assert number >= page.run(f"{top.format('summary')}.bottom")
