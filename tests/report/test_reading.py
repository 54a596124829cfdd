"""The report as it is read in a browser: on a telephone, by pointer and by keyboard, and by clicks on what is drawn."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

import karat
from karat.report.html.histogram import bars
from support import browser, example

pytestmark = pytest.mark.skipif(browser.program() is None, reason=browser.MISSING)

ROWS = "[...document.querySelectorAll('#all tbody tr')]"
NAMES = f"{ROWS}.map(row => row.querySelector('summary .id').textContent)"
NAMED = ("bm25", "first-words")
LONG = " ".join(f"and also about clause number {i}" for i in range(20))


@pytest.fixture(scope="module")
def chromium():
    opened = browser.Browser()
    yield opened
    opened.close()


def evaluated(retriever):
    rows = example.help_centre(retriever)
    for row in rows[::3]:
        row["query"] += f" {LONG}"
    return karat.evaluate(rows, example.METRICS, judge="contains(gold_in_chunk)")


@pytest.fixture(scope="module")
def run():
    return evaluated("bm25")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run):
    """The pages that are looked at."""
    path = tmp_path_factory.mktemp("pages")
    evaluated("first-words").save(path / "older.parquet")
    run.report(path / "both.html", baseline=path / "older.parquet", summary="median")
    example.many(300).report(path / "many.html")
    metrics = "recall@5 precision@5 ndcg@10 rr false_alarm@5"
    runs = [karat.evaluate(example.help_centre(name), metrics, judge="contains(gold_in_chunk)") for name in NAMED]
    runs[0].report(path / "long.html", baseline=runs[1])
    return path


def move(chromium, x, y):
    chromium.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)


def press(chromium, key):
    for kind in ("keyDown", "keyUp"):
        chromium.send("Input.dispatchKeyEvent", type=kind, key=key, code=key)


def boxes(chromium, selector):
    """Left, top, right and bottom of every element that is drawn."""
    return chromium.run(f"""[...document.querySelectorAll({selector!r})].filter(e => e.checkVisibility()).map(e => {{
        const box = e.getBoundingClientRect();
        return [box.left, box.top + scrollY, box.right, box.bottom + scrollY];
    }})""")


# On a telephone


def test_no_table_scrolls_sideways_and_nothing_in_it_is_cut(chromium, folder):
    chromium.open(folder / "both.html", width=390)
    chromium.run("document.querySelectorAll('details.numbers').forEach(e => e.open = true)")
    wide = "[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert chromium.run(wide) == 0
    for shown in (".wide td", ".wide th", "svg.strip", "svg.share"):
        ends = boxes(chromium, shown)
        assert ends, shown
        assert all(left >= 0 and right <= 390 for left, _, right, _ in ends), shown
    assert all(right - left > 60 for left, _, right, _ in boxes(chromium, "svg.strip"))


def test_the_winner_of_every_metric_and_slice_is_seen_beside_its_name(chromium, folder):
    chromium.open(folder / "both.html", width=390)
    for section in ("#baseline", "#slices"):
        names = boxes(chromium, f"{section} tr:has(> .verdict) > th[scope=row]")
        verdicts = boxes(chromium, f"{section} td.verdict")
        assert len(names) == len(verdicts) > 1
        for name, verdict in zip(names, verdicts, strict=True):
            assert name[2] <= verdict[0]
            assert abs(name[3] - verdict[3]) < 4
    heading = "getComputedStyle(document.querySelector('#slices td.n'), '::before').content"
    assert chromium.run(heading) == '"queries"'


def test_no_row_is_tall_and_blank(chromium, folder):
    """Every row ends where its last cell ends."""
    chromium.open(folder / "both.html", width=390)
    blank = chromium.run("""[...document.querySelectorAll("tbody tr")].map(row => {
        const range = document.createRange();
        range.selectNodeContents(row);
        const lines = [...range.getClientRects()].filter(box => box.width && box.height < 60).map(box => box.bottom);
        return row.getBoundingClientRect().bottom - Math.max(...lines);
    })""")
    assert len(blank) > 40
    assert max(blank) < 24


def test_a_query_is_above_its_numbers(chromium, folder):
    chromium.open(folder / "both.html", width=390)
    for kind in ("th", "td"):
        first, *numbers = boxes(chromium, f"#all tr:first-child > {kind}")
        assert len(numbers) == 5
        assert all(top >= first[3] and right <= 390 for _, top, right, _ in numbers)
    heads, cells = (boxes(chromium, f"#all tr:first-child > {kind}") for kind in ("th", "td"))
    assert [box[0] for box in heads] == [box[0] for box in cells]


def test_the_numbers_of_an_opened_query_are_above_its_details(chromium, folder):
    chromium.open(folder / "both.html", width=390)
    chromium.run("document.querySelector('#all tbody summary').click()")
    row = "#all tbody tr:first-child"
    ((_, _, _, query),) = boxes(chromium, f"{row} > td > details > summary")
    ((_, details, _, end),) = boxes(chromium, f"{row} .details")
    numbers = boxes(chromium, f"{row} > td.n")
    assert len(numbers) == 5
    assert all(query <= top + 1 and bottom <= details + 1 for _, top, _, bottom in numbers)
    ((_, _, _, bottom),) = boxes(chromium, row)
    assert bottom - end < 24
    coloured = f"getComputedStyle(document.querySelector('{row}')).backgroundColor"
    assert chromium.run(coloured) != chromium.run(coloured.replace("first", "last"))


def test_columns_without_room_are_named(chromium, folder):
    seen = "[...document.querySelectorAll('caption .tight')].filter(e => e.checkVisibility())"
    said = f"{seen}.map(e => e.textContent.trim())"
    chromium.open(folder / "long.html", width=390)
    assert chromium.run(said) == [
        "Only on a wider screen: from 0 to 1, description.",
        "Only on a wider screen: rr, false_alarm@5.",
    ]
    chromium.open(folder / "long.html", width=1400)
    assert chromium.run(said) == []


def test_the_headings_of_metrics_do_not_touch(chromium, folder):
    chromium.open(folder / "long.html", width=1400)
    heads = "[...document.querySelectorAll('#all th')]"
    ends = chromium.run(f"""{heads}.map(head => {{
        const range = document.createRange();
        range.selectNodeContents(head);
        const box = range.getBoundingClientRect();
        return [box.left, box.right];
    }})""")
    assert all(after[0] - before[1] > 6 for before, after in pairwise(ends))
    assert chromium.run(f"{heads}.every(head => head.scrollWidth <= head.clientWidth)")


def test_the_button_that_folds_a_text_is_below_it(chromium, folder):
    chromium.open(folder / "both.html", width=1400)
    chromium.run("document.querySelector('#misses .long > summary').click()")
    ((_, _, _, text),) = boxes(chromium, "#misses .long[open] > bdi")
    ((_, button, _, _),) = boxes(chromium, "#misses .long[open] .less")
    assert button >= text - 6


# Charts


def test_a_chart_is_as_wide_as_the_page(chromium, folder):
    for width, least in ((1400, 1000), (390, 230)):
        chromium.open(folder / "both.html", width=width)
        ((left, _, right, _),) = boxes(chromium, "#curves .axis")
        assert right - left > least


def test_the_pointer_shows_the_values_of_the_nearest_k(chromium, folder, run):
    chromium.open(folder / "both.html", width=1400)
    chromium.run("document.getElementById('curves').scrollIntoView()")
    left, top, right, bottom = boxes(chromium, "#curves .stop")[9]
    move(chromium, (left + right) / 2 + 4, (top + bottom) / 2 - chromium.run("scrollY"))
    shown = chromium.run("document.querySelector('#curves .values').textContent").split("\n")
    assert shown[0] == "k = 10"
    assert shown[1].startswith(f"recall {run.mean['recall@10']:.3f} [")
    assert [line.rpartition(", ")[2] for line in shown[3:]] == ["baseline", "baseline"]
    ((rule, *_),) = boxes(chromium, "#curves .rule")
    dots = boxes(chromium, "#curves circle.recall")
    assert abs(rule - (dots[9][0] + dots[9][2]) / 2) <= 1
    move(chromium, 5, 5)
    assert boxes(chromium, "#curves .values") == []


def test_the_arrow_keys_show_the_values(chromium, folder):
    chromium.open(folder / "both.html")
    chromium.run("document.querySelector('#curves svg').focus()")
    for _ in range(3):
        press(chromium, "ArrowRight")
    words = "document.querySelector('#curves .values').textContent.split('\\n')[0]"
    assert chromium.run(words) == "k = 3"
    press(chromium, "End")
    assert chromium.run(words) == "k = 12"
    press(chromium, "Escape")
    assert boxes(chromium, "#curves .values") == []


def test_without_a_script_the_values_are_titles(chromium, folder):
    chromium.open(folder / "both.html", script=False)
    assert "<title>k = 10\n" in chromium.html("#curves svg")
    assert "<title>100 tokens\n" in chromium.html("#tokens svg")


def test_the_curve_over_tokens_ends_at_the_recall_of_everything(folder):
    text = (folder / "both.html").read_text("utf-8")
    last = re.search(r'aria-label="Recall over tokens: [^"]*, ([\d.]+) at [\d,]+ tokens"', text)[1]
    assert (
        last == f"{karat.evaluate(example.help_centre(), 'recall', judge='contains(gold_in_chunk)').mean['recall']:.3f}"
    )


# Clicks that filter the queries


def chips(chromium):
    return chromium.run("[...document.querySelectorAll('#chips button')].map(e => e.textContent)")


def test_a_cause_filters_the_queries(chromium, folder, run):
    chromium.open(folder / "both.html")
    misses = karat.diagnose(run).misses
    wanted = {miss.query_id for miss in misses if miss.cause == "below k"}
    chromium.run("[...document.querySelectorAll('#misses a')].find(e => e.textContent === 'below k').id = 'this'")
    chromium.click("#this")
    assert {*chromium.run(NAMES)} == wanted
    assert chips(chromium) == ["missed gold: below k ×"]
    assert chromium.run("location.hash").startswith("#only-")
    assert 0 <= chromium.run("document.getElementById('chips').getBoundingClientRect().top") < 800
    chromium.click("#chips button")
    assert len(chromium.run(NAMES)) == len(run)
    assert chips(chromium) == []


def test_a_slice_and_a_bar_filter_together_and_the_address_has_both(chromium, folder, run):
    chromium.open(folder / "both.html")
    scores, topics = run.scores["recall@5"], run.meta["topic"]
    perfect = {one for one, score in zip(run.ids, scores, strict=True) if score == 1}
    billing = {one for one, topic in zip(run.ids, topics, strict=True) if topic == "billing"}
    chromium.run("document.querySelector('.tile .histogram a:last-of-type .column').id = 'bar'")
    chromium.click("#bar")
    assert {*chromium.run(NAMES)} == perfect
    assert chips(chromium) == ["recall@5 is 1 ×"]
    chromium.run("[...document.querySelectorAll('#slices a')].find(e => e.textContent === 'billing').id = 'this'")
    chromium.click("#this")
    assert {*chromium.run(NAMES)} == perfect & billing
    assert chips(chromium) == ["recall@5 is 1 ×", "topic: billing ×"]
    address = chromium.run("location.hash")
    chromium.run("history.back()")
    chromium.run("new Promise(done => setTimeout(done, 100))")
    assert {*chromium.run(NAMES)} == perfect
    chromium.run(f"location.hash = {address!r}")
    chromium.run("new Promise(done => setTimeout(done, 100))")
    assert {*chromium.run(NAMES)} == perfect & billing
    assert chromium.complaints() == []


def test_every_bar_lists_as_many_queries_as_it_counts(chromium, folder, run):
    chromium.open(folder / "both.html")
    for place, name in enumerate(["recall@5", "precision@5", "ndcg@10", "rr"], 1):
        links = f"[...document.querySelectorAll('.tile:nth-child({place}) .histogram a')]"
        counted = chromium.run(f"""{links}.map(link => {{
            link.dispatchEvent(new MouseEvent("click", {{bubbles: true, cancelable: true}}));
            const rows = document.querySelectorAll("#all tbody tr").length;
            document.querySelector("#chips button").click();
            return rows;
        }})""")
        assert counted == [bar.size for bar in bars(run.scores[name])]


def test_without_a_script_a_filter_leads_to_the_table(folder):
    text = (folder / "both.html").read_text("utf-8")
    links = {*re.findall(r'href="#(only-\d+)"', text)}
    assert len(links) > 20
    table = text.partition('<section id="queries">')[2]
    assert all(f'<span id="{link}"></span>' in table for link in links)


# The table of queries


def test_the_headings_tell_the_order_from_the_first_moment(chromium, folder):
    for script in (True, False):
        chromium.open(folder / "both.html", script=script)
        head = chromium.html("#all thead")
        assert re.search(r'<th[^>]* aria-sort="ascending"[^>]*>(<button[^>]*>)?recall<wbr>@5', head)
        assert head.count("aria-sort") == 1
        assert "Sorted by recall@5, lowest first." in chromium.html("#all caption")
    chromium.open(folder / "both.html")
    arrow = "getComputedStyle(document.querySelector('#all [aria-sort]'), '::after').content"
    assert chromium.run(arrow) == '" ↑"'
    chromium.click("#all th:nth-child(2) button")
    assert chromium.run(arrow) == '" ↓"'
    assert chromium.run("document.getElementById('order').textContent") == "Sorted by recall@5, highest first."
    chromium.click("#all th:nth-child(1) button")
    assert chromium.run("document.getElementById('order').textContent") == "Sorted by query, A to Z."


def test_the_worst_of_less_is_better_are_the_highest(tmp_path):
    rows = [{"retrieved": [{"id": "a", "score": 0.5}], "answerable": False}, {"retrieved": [], "answerable": False}] * 3
    karat.evaluate(rows, "false_alarm@5").report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert 'aria-sort="descending">false_<wbr>alarm<wbr>@5' in text
    assert "Sorted by false_alarm@5, highest first." in text


@pytest.mark.parametrize("row", [40, 120])
@pytest.mark.parametrize("width", [390, 1400])
def test_a_linked_query_is_not_hidden_by_the_headings(chromium, folder, width, row):
    """Also one that the script has yet to create."""
    chromium.open(folder / "many.html", width=width)
    chromium.run(f"location.hash = '#row-{row}'")
    chromium.run("new Promise(done => setTimeout(done, 200))")
    below = chromium.run("document.querySelector('#all thead th:last-child').getBoundingClientRect().bottom")
    top = chromium.run(f"document.getElementById('row-{row}').getBoundingClientRect().top")
    assert below <= top + 1 < below + 60
    assert chromium.run(f"document.querySelector('#row-{row} details').open") is True


# Texts, names, theme


@pytest.mark.parametrize("script", [True, False])
def test_a_long_text_is_cut_at_a_word_and_expands(chromium, folder, script):
    chromium.open(folder / "both.html", script=script)
    cut = chromium.html("#misses .long")
    start = re.search(r'class="start"><bdi>(.*?)…</bdi>', cut)[1]
    whole = re.search(r"</summary><bdi>(.*?)</bdi>", cut)[1]
    assert whole.startswith(f"{start} ")
    assert whole.endswith("clause number 19")
    chromium.click("#misses .long .more")
    assert chromium.html("#misses .long").startswith('<details class="long" open')
    if script:
        shown = chromium.run("document.querySelector('#misses .long').innerText")
        assert shown.count("clause number 19") == 1
        assert shown.count(start) == 1


def test_an_opened_row_shows_its_whole_query(chromium, folder):
    chromium.open(folder / "both.html")
    chromium.run(f"{ROWS}.find(row => row.querySelector('.dots')).id = 'this'")
    before = chromium.run("document.querySelector('#this summary').innerText")
    assert before.endswith("…")
    assert "number 19" not in before
    chromium.click("#this summary")
    after = chromium.run("document.querySelector('#this summary').innerText")
    assert after.endswith("clause number 19")
    assert "…" not in after


def test_the_page_names_the_baseline(chromium, folder):
    chromium.open(folder / "both.html")
    top = chromium.run("document.querySelector('header').innerText")
    assert "baseline: older · this run is better in " in top
    assert "Compared with older" in top
    tile = chromium.run("document.querySelector('.tile').innerText")
    assert re.search(r"\+0\.\d{3} from older", tile)
    assert "from older" in chromium.run("document.querySelector('#all caption').innerText")


def test_the_theme_is_remembered_before_anything_is_drawn(chromium, folder):
    chromium.open(folder / "both.html")
    chromium.click("#theme")
    assert chromium.run("document.documentElement.dataset.theme") == "dark"
    chromium.open(folder / "many.html")
    assert chromium.run("document.documentElement.dataset.theme") == "dark"
    head = (folder / "many.html").read_text("utf-8").partition("<body")[0]
    assert 'localStorage.getItem("karat-theme")' in head
    chromium.click("#theme")
    assert chromium.run("document.documentElement.dataset.theme") == "light"
    assert chromium.complaints() == []
