"""The labelling page in a real browser: whole pools by keyboard, quotes, undo, two people, reload, and kill -9."""

from __future__ import annotations

import json

import karat
from support.labelled import labelled, samples, write_pool

GRADES = {f"{n}": n for n in range(4)}


def standing(server, by="Ada"):
    """The answer that stands for each item."""
    found = {}
    order = []
    for line in server.labels:
        if line["by"] != by:
            continue
        if line.get("answer") == "undo":
            found.pop(order.pop(), None)
        else:
            order.append((line["query"], line["item"]))
            found[order[-1]] = line
    return found


def test_a_whole_pool_by_keyboard_becomes_gold(page, pool, tmp_path):
    out = tmp_path / "gold.jsonl"
    with labelled(tmp_path / "pool.parquet", out) as server:
        page.open(server)
        assert "Who labels?" in page.text("main")
        page.name("Ada")
        assert page.place == "Query 1 of 3"
        for number in range(pool.size):
            before = page.current
            assert before is not None, number
            page.press(str(number % 4))
            page.until(f"document.querySelector('.done, .item.current').dataset.key !== {before[1]!r}")
            assert len(server.labels) == number + 1
        page.until("document.querySelector('.done')")
        assert page.text("#query") == "All done"
        assert f"{pool.size} of {pool.size} items" in page.text("#progress")
        assert {grade["grade"] for grade in server.labels} == {0, 1, 2, 3}
        assert page.browser.complaints() == []
        assert page.browser.hosts() == {f"127.0.0.1:{server.port}"}
        server.process.terminate()
        server.process.wait(30)
        said = "\n".join(server.log)
    assert f"{pool.size} labels" in said
    assert "karat eval" in said
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum(len(row["gold"]) for row in rows) == pool.size
    run = karat.evaluate(samples(3, 3), "precision@3 recall@3", gold=str(out))
    assert run.mean["recall@3"] > 0


def test_keys_that_come_fast_wait_in_a_line(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        page.open(server)
        page.browser.press("3", "2", "1", "0")
        page.until("document.querySelector('#progress').textContent.startsWith('4 of')")
        assert [line["grade"] for line in server.labels] == [3, 2, 1, 0]
        assert len({(line["query"], line["item"]) for line in server.labels}) == 4


def test_skip_cannot_tell_note_undo_and_moving(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada", "--scale", "binary") as server:
        page.open(server)
        assert page.browser.run("document.querySelectorAll('.item.current .grades button').length") == 2
        first = page.current[1]
        page.press("3")
        assert server.labels == []
        page.press("Space")
        page.until("document.querySelectorAll('.answered').length === 1")
        page.press("d")
        page.until("document.querySelectorAll('.answered').length === 2")
        assert [line["answer"] for line in server.labels] == ["skip", "cannot tell"]
        page.browser.press("k", "k")
        assert page.current == [0, first]
        page.browser.press("n")
        page.browser.type("odd <b>text</b>")
        page.press("Enter")
        page.until("document.querySelector('.own')")
        assert page.text(".own") == "Note: odd <b>text</b>"
        assert server.labels[-1]["note"] == "odd <b>text</b>"
        page.press("1")
        page.until("document.querySelector('.answered .answer').textContent === 'graded 1'")
        assert standing(server)[server.labels[0]["query"], first]["note"] == "odd <b>text</b>"
        page.press("u")
        page.until("document.querySelector('.answered .answer').textContent === 'skipped'")
        assert page.current == [0, first]
        assert server.labels[-1]["answer"] == "undo"
        page.press("u", "u", "u")
        page.until("!document.querySelector('.answered')")
        assert standing(server) == {}
        page.press("ArrowRight")
        page.until("document.querySelector('#place').textContent === 'Query 2 of 3'")
        page.press("ArrowLeft")
        page.until("document.querySelector('#place').textContent === 'Query 1 of 3'")


def test_a_quote_by_mouse_and_by_keyboard(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        page.open(server)
        box = page.browser.run(
            "(() => { const node = document.querySelector('.item .text').firstChild, range = new Range();"
            "range.setStart(node, 0); range.setEnd(node, node.data.indexOf(' ', 8));"
            "const { left, right, top, bottom } = range.getClientRects()[0];"
            "return [left + 1, right, (top + bottom) / 2, range.toString()]; })()"
        )
        left, right, middle, marked = box
        for kind, x in (
            ("mousePressed", left),
            ("mouseMoved", (left + right) / 2),
            ("mouseMoved", right),
            ("mouseReleased", right),
        ):
            page.browser.send(
                "Input.dispatchMouseEvent", type=kind, x=x, y=middle, button="left", buttons=1, clickCount=1
            )
        page.until("document.querySelector('.quotes li')")
        assert page.text(".quotes q").strip("“”") == marked.strip()
        assert server.labels == []
        page.press("2")
        page.until("document.querySelectorAll('.answered').length === 1")
        (line,) = server.labels
        assert line["quotes"] == [{"start": 0, "end": len(marked.strip()), "text": marked.strip()}]

        words = page.text(".item.current .text").split()
        page.press("m", "ArrowRight", "m", "ArrowRight", "ArrowRight", "m")
        page.until("document.querySelector('.item.current .quotes li')")
        page.press("3")
        page.until("document.querySelectorAll('.answered').length === 2")
        quote = server.labels[-1]["quotes"][0]
        assert quote["text"].split() == words[1:4]
        page.browser.press("k")
        page.press("Backspace")
        page.until("document.querySelectorAll('.quotes li').length === 1")
        assert "quotes" not in server.labels[-1]
        server.process.terminate()
        server.process.wait(30)
    gold = json.loads((tmp_path / "gold.jsonl").read_text().splitlines()[0])["gold"]
    assert any(marked.strip() == item.get("text") for item in gold)


def test_what_one_person_left_unsent_is_not_of_the_next(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl") as server:
        page.open(server)
        page.name("Ada")
        page.press("m", "m", "m")
        page.until("document.querySelector('.quotes li')")
        page.browser.click("#rename")
        page.browser.type("Bob")  # instead of the name that is selected
        page.browser.press("Enter")
        page.until("document.querySelector('#me').textContent === 'Bob' && document.querySelector('#items .item')")
        assert not page.browser.run("document.querySelector('.quotes')")
        page.press("2")
        page.until("document.querySelectorAll('.answered').length === 1")
        assert "quotes" not in server.labels[-1]
        page.browser.click("#rename")
        page.browser.type("Ada")
        page.browser.press("Enter")
        page.until("document.querySelector('.quotes li')")
        page.press("3")
        page.until("document.querySelectorAll('.answered').length === 1")
        assert (server.labels[-1]["by"], len(server.labels[-1]["quotes"])) == ("Ada", 1)


def test_queries_and_items_without_words_say_so(page, tmp_path):
    rows = [{"id": "q 1", "query": " ", "retrieved": [{"id": "a", "text": " \n "}]}]
    karat.pool([rows]).save(tmp_path / "pool.parquet")
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        page.open(server)
        assert page.text("#query") == "q 1"
        shown = page.browser.run("getComputedStyle(document.querySelector('.item .text'), '::before').content")
        assert "The text of this item is empty" in shown
        page.browser.press("m")
        assert page.text("#said") == "There are no words to mark."
        page.press("0")
        page.until("document.querySelector('.done')")


def test_two_people_at_once_see_their_agreement_and_settle(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        page.open(server)
        query, count = pool.queries[0].id, len(pool.queries[0].items)
        for number in range(count):
            key = page.current[1]
            assert server.grade(query, key, 3 if number else 0, "Bob").status == 200
            page.press("3")
            page.until(f"document.querySelector('.item.current').dataset.key !== {key!r}")
        page.until("document.querySelector('#agreement a')")
        assert "Bob: " in page.text("#agreement")
        assert f"{count} items" in page.text("#agreement")
        assert page.text("#agreement a") == "1 disagreement"
        page.open(server, "/label/disagreements")
        assert page.browser.run("document.querySelectorAll('.item').length") == 1
        page.browser.click(".grades button:nth-child(3)")
        page.until("document.querySelector('.answer').textContent === 'Settled: 2'")
        assert (server.labels[-1]["by"], server.labels[-1]["grade"]) == ("settled", 2)
        page.browser.click(".grades button:last-child")
        page.until("document.querySelector('.answer').textContent.startsWith('Settled: can’t tell')")
        assert (server.labels[-1]["by"], server.labels[-1]["answer"]) == ("settled", "cannot tell")
        assert page.text(".grades button[aria-pressed=true]").strip() == "Can’t tell"


def test_a_reload_goes_on_where_the_person_was(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl") as server:
        page.open(server)
        page.name("Ada")
        page.press("1")
        page.until("document.querySelectorAll('.answered').length === 1")
        page.press("2")
        page.until("document.querySelectorAll('.answered').length === 2")
        key = page.current
        page.open(server, "/label")
        page.until("document.querySelectorAll('.answered').length === 2")
        assert page.current == key
        assert page.text("#me") == "Ada"


def test_a_killed_server_loses_nothing(page, pool, tmp_path):
    files = tmp_path / "pool.parquet", tmp_path / "gold.jsonl"
    with labelled(*files, "--by", "Ada") as server:
        page.open(server)
        page.press("1")
        page.until("document.querySelectorAll('.answered').length === 1")
        page.press("2")
        page.until("document.querySelectorAll('.answered').length === 2")
        key, port = page.current, server.port
        server.process.kill()
        server.process.wait()
        page.browser.press("3")
        page.until("!document.querySelector('#problem').hidden")
        assert "Nothing is lost" in page.text("#problem")
        page.browser.press("0", "0", "0")  # nothing seems to happen; these grade nothing
        assert page.current == key
        assert len(server.labels) == 2
    with labelled(*files, "--by", "Ada", port=port) as server:
        page.open(server)
        assert "2 labels from before" in "\n".join(server.log)
        page.until("document.querySelectorAll('.answered').length === 3")
        assert page.browser.run("document.querySelector('#problem').hidden")
        assert [line["grade"] for line in server.labels] == [1, 2, 3]
        assert server.labels[-1]["item"] == key[1]


def test_at_390_pixels_with_a_finger(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        page.open(server, width=390, height=844)
        assert page.browser.run("document.documentElement.scrollWidth") <= 390
        small = page.browser.run(
            "[...document.querySelectorAll('.item button, .steps button')].filter(b => b.offsetParent && !b.hidden && "
            "(b.offsetHeight < 40 && !b.classList.contains('whole'))).map(b => b.textContent)"
        )
        assert small == []
        page.browser.click(".item.current [data-act=mark]")
        page.until("document.querySelector('.item.marking')")
        spots = page.browser.run(
            "(() => { const node = document.querySelector('.item.marking .text').firstChild;"
            "return [[0, 1], [node.data.indexOf(' ') + 1, node.data.indexOf(' ') + 2]].map(([from, to]) => {"
            "const range = new Range(); range.setStart(node, from); range.setEnd(node, to);"
            "const { left, top, width, height } = range.getBoundingClientRect();"
            "return [left + width / 2, top + height / 2]; }); })()"
        )
        for x, y in spots:
            for kind in ("mousePressed", "mouseReleased"):
                page.browser.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        page.until("document.querySelector('.quotes li')")
        page.browser.click(".item.current .grades button:nth-child(2)")
        page.until("document.querySelectorAll('.answered').length === 1")
        assert server.labels[0]["grade"] == 1
        assert len(server.labels[0]["quotes"][0]["text"].split()) == 2


def test_the_order_for_a_metric_says_how_many_more(page, pool, tmp_path):
    guide = tmp_path / "guide.md"
    guide.write_text("# Rules\n\n<script>alert(1)</script>")
    options = ("--by", "Ada", "--for", "recall@2", "--model", "lexical", "--guideline", guide)
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", *options) as server:
        page.open(server)
        page.until("document.querySelector('#stop').textContent.includes('would decide recall@2')")
        assert not page.browser.run("document.querySelector('#estimate-pane').open")
        assert "bm25" not in page.browser.html("html")
        assert "opinion" not in page.text("#items")
        page.press("2")
        page.until("document.querySelector('.answered')")
        assert "The model’s opinion" in page.text(".answered")
        page.browser.press("g")
        assert "<script>alert(1)</script>" in page.text("#guideline")
        page.browser.click("#estimate-pane summary")
        page.until("document.querySelector('#estimate .big')")
        assert "first-words minus bm25" in page.text("#estimate")


def test_enough_is_said_above_the_item_at_any_width(page, tmp_path):
    made = write_pool(tmp_path / "pool.parquet", 12, 8)
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada", "--for", "precision@3") as server:
        only = {item.key for query in made.queries for item in query.items if item.ranks[1] is None}
        for number in range(30):
            sheet = server.sheet(number, "Ada")
            for item in sheet["items"]:
                assert server.grade(sheet["query"], item["key"], 3 * (item["key"] in only), "Ada").status == 200
        for width in (390, 1400):
            page.open(server, width=width, height=844)
            page.until("document.querySelector('#stop.enough')")
            assert page.text("#stop") == "Enough: the comparison is decided. You may stop."
            stop, item = (
                page.browser.run(f"document.querySelector({one!r}).getBoundingClientRect().bottom")
                for one in ("#stop", ".item")
            )
            assert 0 < stop < item


def test_dialogs_open_and_close_by_key(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        page.open(server)
        for key in ("l", "?", "/"):
            page.browser.press(key)
            page.until("document.querySelector('dialog[open]')")
            if key == "/":
                page.browser.type(pool.queries[2].items[0].text.split()[0])
                page.press("Enter")
                page.until("document.querySelector('#found .jump')")
            page.browser.press("1")
            page.browser.press("Escape")
            page.until("!document.querySelector('dialog[open]')")
            assert page.current is not None
            assert server.labels == []


def test_an_undo_in_a_page_that_is_behind(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        page.open(server)
        page.press("1")
        page.until("document.querySelectorAll('.answered').length === 1")
        server.grade(pool.queries[0].id, page.current[1], 2, "Ada")
        page.browser.press("u")
        page.until("document.querySelector('#said').textContent.startsWith('Another page of yours has answered since')")
        assert "undo" not in [line.get("answer") for line in server.labels]
        page.press("u")
        page.until("document.querySelectorAll('.answered').length === 1")
        assert server.labels[-1]["answer"] == "undo"


def test_the_bar_below_covers_no_button_of_the_item(page, pool, tmp_path):
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--by", "Ada") as server:
        for width, height in ((390, 844), (1400, 700)):
            page.open(server, width=width, height=height)
            for _ in pool.queries[0].items:
                rows, bottom, bar = page.browser.run(
                    "(() => { const row = [...document.querySelectorAll('.item.current .more button')];"
                    "return [new Set(row.map(b => b.offsetTop)).size, row[0].getBoundingClientRect().bottom,"
                    "document.querySelector('.steps').getBoundingClientRect().top]; })()"
                )
                assert rows == 1
                assert bottom < bar
                page.browser.press("j")
                page.browser.settle()
