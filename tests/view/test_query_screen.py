"""One query in several runs, in a real browser: columns, lines, keys, narrow screens, repeats, hostile texts."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from karat._internal.display import valid_utf8
from support import example, hostile
from support.run_folder import HOSTILE

ITEMS = "[...document.querySelectorAll('.ranking .item')].filter(item => item.offsetParent)"
MISPLACED = f"""(() => {{
    const columns = [...document.querySelectorAll('.ranking')], near = (a, b) => Math.abs(a - b) < 2;
    const frame = document.querySelector('.rankings').getBoundingClientRect();
    const items = (column) => {ITEMS}.filter(item => column.contains(item));
    const wanted = columns.slice(1).flatMap((column, i) => items(columns[i]).flatMap(a =>
        items(column).filter(b => a.dataset.item === b.dataset.item).map(b => [a, b])));
    const paths = [...document.querySelectorAll('.lines path')];
    const lost = wanted.filter(([a, b]) => !paths.some(path => {{
        const length = path.getTotalLength(), [from, to] = [0, length].map(at => path.getPointAtLength(at));
        const [left, right] = [a, b].map(one => one.getBoundingClientRect());
        return near(from.x + frame.left, left.right) && near(to.x + frame.left, right.left)
            && from.y + frame.top > left.top && from.y + frame.top < left.bottom
            && to.y + frame.top > right.top && to.y + frame.top < right.bottom;
    }}));
    return [wanted.length, paths.length, lost.length];
}})()"""


@pytest.fixture
def address(viewer):
    def of(*names, query="q06", more=""):
        runs = ",".join(viewer.run(name) for name in names)
        return f"{viewer.url}/query?runs={runs}&query={quote(query)}{more}"

    return of


HELP = tuple(f"help-centre/{name}" for name in ("first-words", "bm25", "reranked"))


def lines(chromium):
    """The pairs of equal items in neighbouring columns, the lines, and the pairs without a line between them."""
    chromium.settle()
    return chromium.run(MISPLACED)


def test_lines_connect_the_same_items(chromium, address):
    chromium.open(address(*HELP), width=1400)
    pairs, drawn, lost = lines(chromium)
    assert (drawn, lost) == (pairs, 0)
    assert pairs > 15
    assert chromium.run("document.querySelectorAll('.lines path.gold').length") >= 3


def test_lines_follow_what_is_opened_and_the_size_of_the_window(chromium, address):
    chromium.open(address(*HELP), width=1400)
    opened = "document.querySelectorAll('.ranking .long').forEach(text => { text.open = true; })"
    assert chromium.run("document.querySelectorAll('.ranking .long').length") > 0
    heights = f"{ITEMS}.map(item => item.offsetHeight).reduce((a, b) => a + b)"
    before = chromium.run(heights)
    chromium.run(opened)
    assert lines(chromium)[2] == 0
    assert chromium.run(heights) > before
    chromium.send("Emulation.setDeviceMetricsOverride", width=1000, height=900, deviceScaleFactor=1, mobile=False)
    pairs, drawn, lost = lines(chromium)
    assert (drawn, lost) == (pairs, 0)


@pytest.mark.parametrize("by", ["focus", "mouse"])
def test_an_item_is_highlighted_in_every_run(chromium, address, by):
    chromium.open(address(*HELP), width=1400)
    chromium.send("Emulation.setFocusEmulationEnabled", enabled=True)
    gold = "document.querySelector('.item.hit')"
    if by == "focus":
        chromium.run(f"{gold}.focus()")
    else:
        chromium.run(f"{gold}.scrollIntoView({{ block: 'center' }})")
        x, y = chromium.run(
            f"(() => {{ const at = {gold}.getBoundingClientRect(); return [at.left + 9, at.top + 9]; }})()"
        )
        chromium.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    found = chromium.run("[...document.querySelectorAll('.same')].map(one => [one.localName, one.dataset.item])")
    assert {item for _, item in found} == {chromium.run(f"{gold}.dataset.item")}
    names = [name for name, _ in found]
    assert [names.count(name) for name in ("li", "path", "span")] == [3, 2, 3]  # items, lines, ranks of the gold
    style = "getComputedStyle(document.querySelector('.lines path.same'))"
    assert chromium.run(f"[{style}.outlineStyle, parseFloat({style}.strokeWidth) > 3]") == ["none", True]
    if by == "focus":
        chromium.run("document.activeElement.blur()")
    else:
        chromium.send("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)
    assert chromium.run("document.querySelectorAll('.same').length") == 0


def test_keys(chromium, address):
    chromium.open(address(*HELP), width=1400)
    assert chromium.run("document.querySelector('.keys').hidden") is False
    chromium.run("document.querySelectorAll('.ranking')[1].querySelector('.item').focus()")
    names = "[...document.activeElement.closest('.ranking').querySelectorAll('.item')].indexOf(document.activeElement)"
    chromium.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert chromium.run(names) == 1
    item = chromium.run("document.activeElement.dataset.item")
    chromium.press("ArrowRight")
    assert chromium.run("document.activeElement.dataset.item") == item
    assert chromium.run("document.activeElement.closest('.ranking').querySelector('h3').innerText").endswith("reranked")
    for key, place in (("End", "at(-1)"), ("Home", "at(0)")):
        chromium.press(key)
        column = "[...document.activeElement.closest('.ranking').querySelectorAll('.item')]"
        assert chromium.run(f"{column}.{place} === document.activeElement"), key
    chromium.press("Shift+Tab")
    assert chromium.run("document.querySelectorAll('.item[tabindex=\"0\"]').length") == 1
    following = chromium.run("document.querySelector('#next').href")
    chromium.follow(lambda: chromium.press("j"))
    assert chromium.run("location.href") == following
    chromium.follow(lambda: chromium.press("k"))
    assert "query=q06" in chromium.run("location.search")


def test_the_way_through_all_queries(viewer, chromium, address):
    """The first query of the order has no one before it, and each other one is after the one before it."""
    seen = []
    url = address(HELP[1], query="q05")
    before = "(document.querySelector('#prev') || {}).href"
    chromium.open(url)
    while (earlier := chromium.run(before)) is not None:
        chromium.open(earlier)
    while True:
        seen.append(chromium.run("document.querySelector('.about .id').innerText"))
        following = chromium.run("(document.querySelector('#next') || {}).href")
        if following is None:
            break
        chromium.open(following)
    assert len(seen) == len(set(seen)) == 32
    assert seen[0] in {"q05", "q27", "q31"}  # nothing of their gold was found
    assert chromium.run("document.querySelector('.way').innerText").count("query 32 of 32") == 1


def test_a_list_of_queries_in_the_address(chromium, address):
    chromium.open(address(*HELP, more="&among=q13,q06,a%252Cb"))
    ends = "[...document.querySelectorAll('#prev bdi, #next bdi')].map(one => one.innerText)"
    assert chromium.run(ends) == ["q13", "a,b"]
    assert "query 2 of 3 of the list" in chromium.run("document.querySelector('.way').innerText")


def test_most_changed_first(chromium, address):
    chromium.open(address(*HELP, query="q18", more="&order=moved"))
    assert chromium.run("document.querySelector('[aria-label=Order] [aria-current]').innerText") == "most changed first"
    place = chromium.run("Number(/query (\\d+) of/.exec(document.querySelector('.way').innerText)[1])")
    assert place <= 10  # its recall@5 went from 0 to 1


@pytest.mark.parametrize("width", [390, 1400])
def test_the_heading_of_a_run_is_above_its_scores(chromium, address, width):
    chromium.open(address(*HELP[:2], query="q18"), width=width)
    ends = """[...document.querySelectorAll('#scores tr')].map(row => {
        const cell = row.lastElementChild, inner = cell.querySelector('div'), range = document.createRange();
        range.selectNodeContents(inner ? inner.firstChild : cell);
        return Math.round(range.getBoundingClientRect().right);
    })"""
    found = chromium.run(ends)
    assert len(found) > 3
    assert len(set(found)) == 1
    assert chromium.run("document.querySelectorAll('#scores .change').length") > 0


def test_narrow(chromium, address):
    chromium.open(address(*HELP), width=390)
    chromium.settle()
    assert chromium.run("getComputedStyle(document.querySelector('.lines')).display") == "none"
    assert chromium.run("document.querySelector('.elsewhere').getBoundingClientRect().height") > 10
    assert chromium.run("document.documentElement.scrollWidth") == 390
    widths = chromium.run("[...document.querySelectorAll('.ranking')].map(one => one.offsetWidth)")
    assert all(280 < width < 390 for width in widths)
    label = "getComputedStyle(document.querySelector('#gold td:nth-child(3)'), '::before').content"
    assert chromium.run(label) == '"bm25"'


def test_without_javascript(chromium, address):
    chromium.open(address(*HELP), script=False, width=1400)
    written = chromium.html("#rankings")
    assert written.count('class="ranking"') == 3
    assert "rank 8 in " in written
    assert "hidden" in chromium.html("#copy")


def test_link_to_the_view(chromium, address):
    chromium.open(address(*HELP))
    assert chromium.run("document.querySelector('#link').href.replaceAll('%2C', ',') === location.href")
    chromium.run("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    chromium.click("#copy")
    assert chromium.run("window.copied") == chromium.run("location.href")
    assert chromium.run("document.getElementById('said').textContent") == "The link is copied."


def test_a_run_without_the_query(chromium, address):
    chromium.open(address(HELP[0], "spans", HELP[1]), width=1400)
    assert "This run does not have the query." in chromium.run("document.querySelectorAll('.ranking')[1].innerText")
    assert chromium.run("document.querySelectorAll('.lines path').length") > 0
    assert chromium.complaints() == []


def test_repeats_can_be_chosen(chromium, address):
    chromium.open(address("repeats", query="r1"))
    first = chromium.run("document.querySelector('.ranking ol').innerText")
    links = "[...document.querySelectorAll('[aria-label=Repeat] a')].map(one => [one.innerText, one.ariaCurrent])"
    assert chromium.run(links) == [["1", "true"], ["2", None], ["3", None]]
    chromium.follow(lambda: chromium.click("[aria-label=Repeat] a:nth-of-type(2)"))
    assert chromium.run(links) == [["1", None], ["2", "true"], ["3", None]]
    assert chromium.run("document.querySelector('.ranking ol').innerText") != first
    chromium.open(address("repeats", query="r1 #2"))
    assert chromium.run(links)[1] == ["2", "true"]


def test_hostile_texts(viewer, chromium, address):
    for query in valid_utf8([row["id"] for row in hostile.samples()]):
        chromium.open(address(HOSTILE.removesuffix(".parquet"), "evil/other", query=query))
        chromium.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert chromium.run(f"{ITEMS}.length") == 2, query  # the other run has other ids
        assert chromium.run("window.__pwned") is None
        assert chromium.run("document.querySelectorAll('main script, main img, main iframe').length") == 0
        assert chromium.complaints() == []
        assert chromium.hosts() == {f"127.0.0.1:{viewer.port}"}


def test_gold_of_the_static_report_stays_in_view(chromium, tmp_path):
    example.run().report(tmp_path / "report.html", baseline=example.run("first-words"))
    for width, stays in ((1400, True), (390, False)):
        chromium.open(tmp_path / "report.html", width=width, height=700)
        row = "[...document.querySelectorAll('#all tbody tr')].find(row => row.innerText.includes('q06'))"
        chromium.run(f"window.row = {row}; row.querySelector('details').open = true; row.scrollIntoView(); 0")
        assert chromium.run("row.querySelector('.before').innerText").startswith("Baseline")
        chromium.run("scrollBy(0, 600); 0")
        top, bottom = chromium.run(
            "(({ top, bottom }) => [top, bottom])(row.querySelector('.wanted').getBoundingClientRect())"
        )
        assert (top > 0 and bottom < 700) is stays


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/query", 400, "no run is chosen"),
        ("/query?runs={run}", 400, "no query is chosen"),
        ("/query?runs={run}&query=nowhere", 404, "none of these runs has such a query"),
        ("/query?runs=0&query=q06", 404, "no such run"),
    ],
)
def test_what_is_not_there(viewer, path, status, words):
    answer = viewer.ask(path.format(run=viewer.run(HELP[0])))
    assert answer.status == status
    assert words in answer.body.decode()
