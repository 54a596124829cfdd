"""The report in a real browser: opened by file://, searched, sorted, clicked, printed."""

from __future__ import annotations

import re
import time
from itertools import combinations

import pytest

import karat
from karat.cli.demo.example import queries
from karat.report.html.queries import PLAIN
from support import browser, example, hostile, retrievers

pytestmark = pytest.mark.skipif(browser.program() is None, reason=browser.MISSING)

ROWS = "[...document.querySelectorAll('#all tbody tr')]"
NAMES = f"{ROWS}.map(row => row.querySelector('summary .id').textContent)"


@pytest.fixture(scope="module")
def chromium():
    opened = browser.Browser()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pages that are looked at."""
    path = tmp_path_factory.mktemp("pages")
    example.run().report(path / "help.html", baseline=example.run("first-words"))
    hostile.run(10).report(path / "evil.html")
    example.many(100).report(path / "100.html")
    example.many(10_000).report(path / "10000.html")
    every_section().report(path / "sections.html", summary="p10,median,gm")
    return path


def every_section():
    """A run with queries without an answer, aspects and a precision–recall curve."""
    gold = [{"id": "a", "grade": 2, "aspects": ["price"]}, {"id": "b", "aspects": ["terms", "price"]}]
    rows = []
    for i in range(30):
        ids = ["a", "x", "b", "y", "z"][i % 3 :]
        found = [{"id": each, "score": 0.9 - 0.01 * i - 0.05 * rank} for rank, each in enumerate(ids)]
        rows.append({"id": f"q{i}", "retrieved": found, **({"gold": gold} if i % 5 else {"answerable": False})})
    return karat.evaluate(rows, "recall@5 false_alarm(threshold=0.65)@5 iprec@0,0.25,0.5,0.75,1 ndcg@10 st_recall@5")


def search(chromium, text):
    chromium.run("document.getElementById('search').value = ''")
    chromium.click("#search")
    chromium.type(text)


def test_opening_asks_for_nothing_and_complains_of_nothing(chromium, folder):
    chromium.open(folder / "help.html")
    assert chromium.requests() == []
    assert chromium.complaints() == []
    assert chromium.run(f"{ROWS}.length") == 32


def test_search_open_and_see_the_marked_match(chromium, folder):
    chromium.open(folder / "help.html")
    search(chromium, "SEAT middle")
    assert chromium.run(NAMES) == ["q06"]
    assert chromium.run("document.getElementById('count').textContent") == "1 of 1 queries matching, of 32"
    assert chromium.run("document.querySelector('#all mark').checkVisibility()") is False
    chromium.click("#all summary")
    assert chromium.run("document.querySelector('#all details').open") is True
    assert chromium.run("document.querySelector('#all mark').checkVisibility()") is True
    marks = chromium.run("[...document.querySelectorAll('#all mark')].map(m => m.textContent)")
    assert "Adjust the seat count under Settings > Billing > Seats." in marks
    search(chromium, "no such words")
    assert chromium.run(NAMES) == []


def test_sort(chromium, folder):
    chromium.open(folder / "help.html")
    chromium.click("#all thead th:nth-child(1) button")
    names = chromium.run(NAMES)
    assert names == sorted(names)
    assert chromium.run("document.querySelector('#all th').getAttribute('aria-sort')") == "ascending"
    chromium.click("#all thead th:nth-child(4) button")
    chromium.click("#all thead th:nth-child(4) button")
    shown = chromium.run(f"{ROWS}.map(row => row.cells[3].textContent)")
    scores = [float(text) for text in shown if text != "–"]
    assert scores == sorted(scores, reverse=True)
    assert shown[-1] == "–"
    assert chromium.run("document.querySelectorAll('#all [aria-sort]').length") == 1


def test_links_open_their_query(chromium, folder):
    chromium.open(folder / "help.html")
    wanted = chromium.run("document.querySelector('#misses .texts a').textContent")
    search(chromium, "no such words")
    chromium.click("#misses .texts a")
    opened = "[...document.querySelectorAll('#all details[open] summary .id')].map(e => e.textContent)"
    assert chromium.run(f"new Promise(done => setTimeout(() => done({opened}), 100))") == [wanted]


def test_hostile_data_do_nothing(chromium, folder):
    chromium.open(folder / "evil.html")
    count = chromium.run("JSON.parse(document.getElementById('data').textContent).keys.length")
    assert count == 10 * len(hostile.PAYLOADS) > PLAIN
    chromium.click("#more")
    assert chromium.run(f"{ROWS}.length") == count
    chromium.run(f"{ROWS}.forEach(row => row.querySelector('details').open = true)")
    search(chromium, "<script>window.__pwned")
    assert 0 < chromium.run(f"{ROWS}.length") < count
    assert chromium.run("window.__pwned") is None
    assert chromium.run("document.querySelectorAll('main script, main img, main iframe, #all a').length") == 0
    assert chromium.complaints() == []
    assert chromium.requests() == []
    assert "<script>window.__pwned=1</script>" in chromium.run("document.querySelector('#all tbody').textContent")


def test_rows_made_by_the_script_are_as_those_made_before(chromium, folder):
    """The same query twice, once in the plain part of the page and once in its data."""
    chromium.open(folder / "evil.html")
    chromium.click("#more")
    kinds = chromium.run(f"""(() => {{
        const rows = {ROWS}, seen = new Map();
        rows.forEach((row, i) => {{
            const name = row.querySelector("summary .id");
            const key = name.textContent.replace(/ [0-9]+$/, "");
            name.textContent = row.id = "";
            if (!seen.has(key)) seen.set(key, [new Set(), new Set()]);
            seen.get(key)[i < {PLAIN} ? 0 : 1].add(row.outerHTML);
        }});
        return [...seen.values()].map(([a, b]) => [[...a], [...b]]);
    }})()""")
    both = [(plain, made) for plain, made in kinds if plain and made]
    assert both
    assert all(plain == made and len(made) == 1 for plain, made in both)


def test_a_policy_keeps_other_scripts_out(chromium, folder):
    chromium.open(folder / "help.html")
    chromium.run("""(() => {
        const script = document.createElement("script");
        script.textContent = "window.__pwned = 1";
        document.body.append(script);
        document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.__pwned = 2'>");
    })()""")
    time.sleep(0.2)
    assert chromium.run("window.__pwned") is None


def test_without_javascript(chromium, folder):
    chromium.open(folder / "10000.html", script=False)
    assert chromium.html("#all tbody").count("<tr") == PLAIN
    assert "the others need JavaScript" in chromium.html("noscript")
    assert "hidden" in chromium.html("form").partition(">")[0]
    chromium.click("#all summary")
    assert chromium.html("#all details").startswith("<details open")


def test_ten_thousand_queries(chromium, folder):
    """As quick as with a hundred, or nearly: what is shown at a time is the same."""

    def seconds(name):
        chromium.open(folder / name)
        load = "performance.timing.loadEventEnd - performance.timing.navigationStart"
        typed = """(() => {
            const search = document.getElementById("search"), start = performance.now();
            for (const text of ["s", "section", "section 7", ""]) {
                search.value = text;
                search.dispatchEvent(new Event("input"));
                document.body.offsetHeight;
            }
            return performance.now() - start;
        })()"""
        return chromium.run(load), chromium.run(typed)

    def best(name):
        return [min(times) for times in zip(*(seconds(name) for _ in range(3)), strict=True)]

    few, much = best("100.html"), best("10000.html")
    chromium.open(folder / "10000.html")
    assert chromium.run("document.getElementById('count').textContent") == "100 of 10,000 queries"
    search(chromium, "section 9876 ")
    assert chromium.run(NAMES) == ["q9876"]
    chromium.click("#all summary")
    assert chromium.run("document.querySelectorAll('#all li').length") >= 10
    # A hundred times the queries: far from a hundred times the time.
    assert much[0] < 30 * max(few[0], 30)
    assert much[1] < 30 * max(few[1], 10)


@pytest.mark.parametrize("width", [400, 800, 1200])
def test_nothing_is_wider_than_the_window(chromium, folder, width):
    chromium.open(folder / "help.html", width=width)
    chromium.run(f"{ROWS}[3].querySelector('details').open = true")
    assert chromium.run("document.documentElement.scrollWidth") <= width


def test_a_telephone_shows_tables_and_charts_whole(chromium, folder):
    chromium.open(folder / "sections.html", width=390)
    heights = "[...document.querySelectorAll('#scores tbody tr')].map(row => row.getBoundingClientRect().height)"
    assert max(chromium.run(heights)) < 80
    captions = "[...document.querySelectorAll('caption')].map(e => e.getBoundingClientRect().right)"
    assert max(chromium.run(captions)) <= 390
    wide = "[...document.querySelectorAll('SECTION .wide')].filter(e => e.scrollWidth > e.clientWidth).length"
    for section in ("#scores", "#aspects", "#thresholds"):
        assert chromium.run(wide.replace("SECTION", section)) == 0
    charts = chromium.run("""[...document.querySelectorAll("svg.curves")].map(svg =>
        [...svg.querySelectorAll("text")].map(text => {
            const box = text.getBoundingClientRect();
            return [text.textContent, box.left, box.right, box.top, box.bottom];
        }))""")
    assert len(charts) == 3
    for labels in charts:
        assert all(left >= 0 and right <= 390 - 12 for _, left, right, *_ in labels), labels
        for one, other in combinations(labels, 2):
            beside = one[2] <= other[1] or other[2] <= one[1]
            assert beside or one[4] <= other[3] or other[4] <= one[3], (one, other)


@pytest.mark.parametrize("dark", [False, True])
def test_dark_and_light(chromium, folder, dark):
    """Text stands out from its ground by at least 4.5 to 1, as the accessibility guidelines ask."""
    chromium.open(folder / "help.html", dark=dark)
    colours = """(() => {
        document.querySelectorAll("details").forEach(d => d.open = true);
        const pairs = new Set(), none = "rgba(0, 0, 0, 0)";
        for (const e of document.querySelectorAll("body *")) {
            if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
            let ground = e;
            while (ground && getComputedStyle(ground).backgroundColor === none) ground = ground.parentElement;
            const ink = e instanceof SVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color;
            const mark = e.matches(".inside") && e.previousElementSibling;  // a number in a circle
            if (mark) pairs.add(ink + ";" + getComputedStyle(mark.querySelector("circle") ?? mark).fill);
            else pairs.add(ink + ";" + getComputedStyle(ground ?? document.body).backgroundColor);
        }
        return [...pairs];
    })()"""
    pairs = [[tuple(map(int, re.findall(r"\d+", c)))[:3] for c in pair.split(";")] for pair in chromium.run(colours)]
    assert len(pairs) > 5
    for ink, ground in pairs:
        assert contrast(ink, ground) >= 4.5, (ink, ground)
    assert (light(commonest_ground(pairs)) < 0.1) is dark


def commonest_ground(pairs):
    grounds = [ground for _, ground in pairs]
    return max(grounds, key=grounds.count)


def light(colour):
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([light(one), light(other)])
    return (high + 0.05) / (low + 0.05)


def test_the_button_turns_the_light(chromium, folder):
    chromium.open(folder / "help.html", dark=True)
    before = chromium.run("getComputedStyle(document.body).backgroundColor")
    chromium.click("#theme")
    assert chromium.run("getComputedStyle(document.body).backgroundColor") != before


def test_a_sweep(chromium, tmp_path):
    """Narrow: tables scroll in their boxes, the verdict of a setting is seen, no name is cut; and the theme changes."""
    grid = {"chunk": [10, 40], "step": [None, 20], "k": [3, 9]}
    gold = [{"id": one.id, "query": one.query, "gold": [*one.gold]} for one in queries() if one.gold]
    found = karat.sweep(retrievers.make, grid, gold, "recall@3 ndcg@10 rr", folder=tmp_path / "sweep")
    found.report(tmp_path / "sweep.html")
    chromium.open(tmp_path / "sweep.html", width=390)
    assert chromium.complaints() == []
    assert chromium.run("document.documentElement.scrollWidth") <= 390
    seen = "[...document.querySelectorAll('.legend li, #settings th:nth-child(4)')]"
    ends = chromium.run(f"{seen}.map(e => e.getBoundingClientRect().right)")
    assert len(ends) == 5
    assert max(ends) <= 390
    rows = chromium.run("[...document.querySelectorAll('#tokens tbody th')].map(e => e.getClientRects()[0].height)")
    assert max(rows) < 60  # a setting per line, none broken in the middle
    before = chromium.run("getComputedStyle(document.body).backgroundColor")
    chromium.click("#theme")
    assert chromium.run("getComputedStyle(document.body).backgroundColor") != before


def test_print(chromium, folder):
    """On paper nothing is cut off at the side, and everything that is shown is there."""
    chromium.open(folder / "help.html", width=720)
    chromium.send("Emulation.setEmulatedMedia", media="print")
    assert chromium.run("document.documentElement.scrollWidth") <= 720
    wide = "[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert chromium.run(wide) == 0
    pages = chromium.pdf()
    chromium.send("Emulation.setEmulatedMedia", media="")
    assert pages.startswith(b"%PDF")
    assert len(pages) > 20_000
