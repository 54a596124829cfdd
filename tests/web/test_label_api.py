"""The requests of the labelling page, over HTTP with a real server: nothing is lost, doubled, or a stranger's."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile
from uuid import uuid4

import pytest
from benchmarks.label_server import write_labels

from support.forked import run_karat
from support.labelled import RETRIEVERS, labelled, samples, write_pool

HOSTILE = "<script>alert(1)</script>\u202e\x00&amp;"


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    path = tmp_path_factory.mktemp("pool") / "pool.parquet"
    return path, write_pool(path)


@pytest.fixture(scope="module")
def desk(pool):
    with labelled(pool[0], pool[0].with_name("gold.jsonl")) as server:
        yield server


@pytest.fixture
def person(request):
    """A name of its own for each test."""
    return f"person {uuid4().hex[:8]}"


def mine(desk, by):
    return [line for line in desk.labels if line["by"] == by]


def answer(desk, by, **more):
    sheet = desk.sheet(0, by.replace(" ", "%20"))
    about = {"id": uuid4().hex, "by": by, "query": sheet["query"], "item": sheet["items"][0]["key"]}
    return about | {"answer": "grade", "grade": 2} | more


def test_an_answer_is_in_the_file_when_it_is_acknowledged(desk, person):
    body = answer(desk, person, quotes=[{"start": 0, "end": 4}], note="good")
    reply = desk.post("/label/answer", body)
    assert reply.status == 200
    (line,) = mine(desk, person)
    assert (line["grade"], line["note"], line["quotes"][0]["start"]) == (2, "good", 0)
    assert len(line["quotes"][0]["text"]) == 4
    assert reply.json["label"]["number"] == line["number"]
    assert reply.json["progress"]["done"] == 1


def test_the_same_keystroke_twice_is_one_line(desk, person):
    body = answer(desk, person)
    first, second = desk.post("/label/answer", body), desk.post("/label/answer", body)
    assert first.json["label"] == second.json["label"]
    assert len(mine(desk, person)) == 1


def test_an_undo_that_is_sent_twice_takes_one_answer_back(desk, person):
    one, two = answer(desk, person), answer(desk, person)
    two["item"] = desk.sheet(0, person.replace(" ", "%20"))["items"][1]["key"]
    desk.post("/label/answer", one)
    number = desk.post("/label/answer", two).json["label"]["number"]
    undo = {"id": uuid4().hex, "by": person, "number": number}
    assert desk.post("/label/undo", undo).json["item"] == two["item"]
    assert desk.post("/label/undo", undo).json["item"] == two["item"]
    assert desk.post("/label/undo", undo | {"id": "another"}).json["item"] is None
    sheet = desk.sheet(0, person.replace(" ", "%20"))
    assert [bool(item["label"]) for item in sheet["items"][:2]] == [True, False]


def test_nothing_of_a_run_is_in_what_the_page_gets(desk, pool, person):
    by = person.replace(" ", "%20")
    parts = [
        desk.page(f"/label/{path}") for path in (f"work?by={by}", f"sheet/0?by={by}", f"sheets?by={by}", "standing")
    ]
    parts += [desk.page("/label"), desk.page(f"/label/search?by={by}&text=a")]
    for text in parts:
        assert not any(name in text for name in (*RETRIEVERS, "rank", "score"))
    shown = [item["key"] for item in desk.sheet(0, by)["items"]]
    stored = [item.key for item in pool[1].queries[0].items]
    assert sorted(shown) == sorted(stored)
    orders = {tuple(item["key"] for item in desk.sheet(0, f"other{n}")["items"]) for n in range(6)}
    assert len(orders) > 3
    assert desk.sheet(0, "other1") == desk.sheet(0, "other1")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"grade": 7}, 400), ({"grade": "2"}, 400), ({"grade": None}, 400), ({"answer": "undo"}, 400),
        ({"answer": "skip"}, 400), ({"query": "nothing"}, 404), ({"item": "nothing"}, 404), ({"by": ""}, 400),
        ({"by": "a" * 61}, 400), ({"by": "settled"}, 400), ({"by": "a\nb\x00"}, 400),
        ({"id": ""}, 400), ({"id": 5}, 400),
        ({"quotes": [{"start": 5, "end": 5}]}, 400), ({"quotes": [{"start": -1, "end": 5}]}, 400),
        ({"quotes": [{"start": 0, "end": 10**9}]}, 400), ({"quotes": "all"}, 400), ({"note": "n" * 6000}, 413),
        ({"probability": 1.0}, 400), ({"model": 3}, 400), ({"note": "n" * 300_000}, 413),
    ],
)  # fmt: skip
def test_answers_that_are_none(desk, person, change, status):
    before = len(desk.labels)
    assert desk.post("/label/answer", answer(desk, person) | change).status == status
    assert len(desk.labels) == before


def test_only_the_page_may_write(desk, person):
    body = answer(desk, person)
    assert desk.post("/label/answer", body, cookie=None).status == 403
    assert desk.post("/label/answer", body, Origin="http://evil.example").status == 403
    assert desk.post("/label/answer", body, Origin="null").status == 403
    assert desk.ask("/label/answer", body).status == 403
    text = desk.post("/label/answer", json.dumps(body).encode(), Content_Type="text/plain")
    assert text.status == 415
    assert desk.post("/label/answer", b"{", Content_Type="application/json").status == 400
    assert desk.ask("/label/answer").status == 405
    assert mine(desk, person) == []
    words = desk.ask("/label", cookie=None).json["detail"]
    assert "karat label printed" in words


def test_hostile_words_stay_words(desk):
    by = "<b>Eve</b>"
    assert desk.post("/label/answer", answer(desk, by, note=HOSTILE)).status == 200
    assert mine(desk, by)[0]["note"].startswith("<script>")
    reply = desk.post("/label/name", {"by": "Zoë; Path=/x"})
    assert reply.json == {"by": "Zoë; Path=/x"}
    assert "Zo%C3%AB%3B%20Path" in reply.headers["Set-Cookie"]
    assert desk.ask("/label/sheet/0?by=").status == 400
    assert desk.ask("/label/sheet/999999?by=ada").status == 404


def test_search_and_the_list_of_queries(desk, pool):
    word = pool[1].queries[0].items[0].text.split()[0]
    found = desk.get(f"/label/search?by=ada&text={word}")
    assert found["found"]
    assert all(word.lower() in (one["begin"] + one["text"]).lower() for one in found["found"])
    assert desk.get("/label/search?by=ada&text=xyzzyq")["found"] == []
    assert [one["query"] for one in desk.get("/label/sheets?by=ada")["sheets"]] == [one.id for one in pool[1].queries]


def test_people_disagree_and_settle(tmp_path, pool):
    with labelled(pool[0], tmp_path / "gold.jsonl", "--qrels", tmp_path / "qrels.txt") as server:
        sheet = server.sheet(0)
        keys = [item["key"] for item in sheet["items"][:3]]
        for key, ada, bob in zip(keys, (0, 2, 3), (0, 2, 1), strict=True):
            server.grade(sheet["query"], key, ada, "ada")
            server.grade(sheet["query"], key, bob, "bob")
        agreement = server.get("/label/standing")["agreement"]
        assert (agreement["items"], agreement["differ"]) == (3, 1)
        assert agreement["kappas"][0]["kappa"] == pytest.approx((2 / 3 - 2 / 9) / (1 - 2 / 9))
        assert 0 < agreement["alpha"] < 1
        (one,) = server.get("/label/differing")["items"]
        assert [(own["by"], own["grade"]) for own in one["grades"]] == [("ada", 3), ("bob", 1)]
        settle = {"id": "s", "by": "ada", "query": sheet["query"], "item": keys[2], "answer": "grade", "grade": 3}
        assert server.post("/label/settle", settle).json == {"settled": {"answer": "grade", "grade": 3}}
        assert server.get("/label/differing")["items"][0]["settled"] == {"answer": "grade", "grade": 3}
        assert server.get("/label/standing")["agreement"]["unsettled"] == 0
    gold = [json.loads(line) for line in (tmp_path / "gold.jsonl").read_text().splitlines()]
    assert Counter(item["grade"] for item in gold[0]["gold"]) == Counter([0, 2, 3])
    grades = [int(line.split()[3]) for line in (tmp_path / "qrels.txt").read_text().splitlines()]
    assert Counter(grades) == Counter({-1: pool[1].size - 3, 0: 1, 2: 1, 3: 1})


def test_settled_as_cannot_tell(tmp_path, pool):
    with labelled(pool[0], tmp_path / "gold.jsonl", "--for", "precision@2") as server:
        sheet = server.sheet(0)
        key = sheet["items"][0]["key"]
        server.grade(sheet["query"], key, 3, "ada")
        server.grade(sheet["query"], key, 1, "bob")
        before = server.get("/label/standing")["choice"]
        settle = {"id": "s", "by": "ada", "query": sheet["query"], "item": key, "answer": "cannot tell"}
        settled = {"answer": "cannot tell", "grade": None}
        assert server.post("/label/settle", settle).json == {"settled": settled}
        assert [one["settled"] for one in server.get("/label/differing")["items"]] == [settled]
        standing = server.get("/label/standing")
        assert standing["agreement"]["unsettled"] == 0
        assert standing["choice"]["left"] == before["left"]
        (one,) = server.get("/label/estimate")["estimates"]
        assert (one["labels"], one["drawn"], one["unit"]) == (0, 0, "item")


def test_the_first_answer_says_if_an_item_was_drawn(tmp_path, pool):
    """Also for later answers, when the order has come to it; and a skip ends the work like any answer."""
    with labelled(pool[0], tmp_path / "gold.jsonl", "--for", "precision@2") as server:
        last = server.sheet(server.get("/label/sheets?by=ada")["of"] - 1)
        key = {"by": "ada", "query": last["query"], "item": last["items"][-1]["key"]}
        server.post("/label/answer", {"id": "skip", "answer": "skip", **key})
        number = 0
        while number is not None:
            sheet = server.sheet(number)
            for item in sheet["items"]:
                if item["label"] is None:
                    number = server.grade(sheet["query"], item["key"], 1).json["next"]
        assert server.get("/label/standing")["choice"] == {"metric": "precision@2", "more": 0, "left": 0, "stop": "all"}
        server.grade(last["query"], key["item"], 1, "bob")
        first = server.labels[1]
        server.grade(first["query"], first["item"], 2, "bob")
        chosen, drawn = server.labels[-2:]
        assert not {"probability", "order"} & {*chosen}
        assert (drawn["probability"], drawn["order"]) == (first["probability"], first["order"])
        (one,) = server.get("/label/estimate")["estimates"]
        assert (one["known"], one["stop"]) == (1, "all")
    done = run_karat("label", pool[0], "-o", "gold.jsonl", "--for", "precision@3", "--write", cwd=tmp_path, text=True)
    assert " 0 of them drawn; " in done.stderr


def test_the_order_for_a_metric(tmp_path, pool):
    with labelled(pool[0], tmp_path / "gold.jsonl", "--for", "precision@2", "--model", "lexical") as server:
        sheets = server.get("/label/work")["progress"] or server.get("/label/sheets?by=ada")
        assert sheets["of"] > 2
        first, last = server.sheet(0), server.sheet(sheets["of"] - 1)
        assert all(item["model"] is None for item in first["items"])
        asked = server.grade(first["query"], first["items"][0]["key"], 2)
        assert asked.json["model"] is not None
        server.grade(last["query"], last["items"][0]["key"], 2)
        drawn, chosen = server.labels
        assert 0 < drawn["probability"] < 1
        assert "probability" not in chosen
        assert drawn["model"] == asked.json["model"]
        standing = server.get("/label/standing")
        assert standing["choice"]["metric"] == "precision@2"
        assert not any(name in json.dumps(standing) for name in RETRIEVERS)
        (one,) = server.get("/label/estimate")["estimates"]
        assert one["low"] <= one["difference"] <= one["high"]
        assert {one["run"], one["baseline"]} == set(RETRIEVERS)


def test_two_servers_on_one_file(tmp_path, pool):
    with labelled(pool[0], tmp_path / "gold.jsonl"):
        command = [sys.executable, "-m", "karat", "label", pool[0], "-o", tmp_path / "gold.jsonl", "--no-open"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "gold.labels.jsonl" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.parquet", "-o", "new.jsonl"], "no pool nothing.parquet"),
        (["-o", "new.jsonl"], "needs a pool"),
        (["pool.parquet", "-o", "mine.jsonl"], "mine.jsonl was not made by karat label"),
        (["pool.parquet", "-o", "new.jsonl", "--for", "recal@5"], "recall"),
        (["pool.parquet", "-o", "new.jsonl", "--scale", "1=yes"], "scale"),
        (["pool.parquet", "-o", "new.jsonl", "--guideline", "none.md"], "cannot read none.md"),
        (["pool.parquet", "-o", "new.jsonl", "--write"], "there are no labels"),
        (["--holes", "pool.parquet", "-o", "new.jsonl"], "--holes and --gold belong together"),
        (["pool.parquet", "-o", "new.jsonl", "--sample", "0"], "--sample must be above 0"),
    ],
)
def test_commands_that_are_refused(pool, tmp_path, arguments, words):
    copyfile(pool[0], tmp_path / "pool.parquet")
    (tmp_path / "mine.jsonl").write_text("{}")
    done = run_karat("label", *arguments, "--no-open", cwd=tmp_path, text=True)
    assert done.returncode == 2
    assert words in done.stderr
    assert (tmp_path / "mine.jsonl").read_text() == "{}"


def test_holes_of_a_new_run(tmp_path):
    for name in RETRIEVERS:
        rows = [json.dumps(row) for row in samples(3, 3, name)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    first = write_pool(tmp_path / "pool.parquet", 3, 3, RETRIEVERS[:1])
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl") as server:
        for number in range(len(first)):
            sheet = server.sheet(number)
            for item in sheet["items"]:
                server.grade(sheet["query"], item["key"], 1)
    new = ("--holes", tmp_path / f"{RETRIEVERS[1]}.jsonl", "--gold", tmp_path / "gold.jsonl")
    with labelled(None, tmp_path / "more.jsonl", *new) as server:
        judged = {item.id for query in first.queries for item in query.items}
        sheets = [server.sheet(number) for number in range(server.get("/label/sheets?by=ada")["of"])]
        asked = [(sheet["query"], item["key"]) for sheet in sheets for item in sheet["items"]]
        known = {(query.id, item.key) for query in first.queries for item in query.items}
        assert asked
        assert not known & {*asked}
        for pair in asked:
            server.grade(*pair, 2)
    gold = [json.loads(line) for line in (tmp_path / "more.jsonl").read_text().splitlines()]
    assert judged <= {item["id"] for row in gold for item in row["gold"]}
    assert sum(len(row["gold"]) for row in gold) == len(asked) + first.size


def test_the_server_process_loads_no_polars(desk):
    assert "polars" not in Path(f"/proc/{desk.process.pid}/maps").read_text()


def test_clients_at_once_lose_nothing(tmp_path):
    found = write_labels(tmp_path, clients=5, per_second=50, seconds=2)
    assert found.sent == found.acknowledged == found.stored > 80
    assert found.doubled == 0


def test_people_at_once_on_one_item(desk):
    sheet = desk.sheet(1)
    key = sheet["items"][0]["key"]
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: desk.grade(sheet["query"], key, n % 4, f"p{n}").status, range(24)))
    assert done == [200] * 24
    assert len([line for line in desk.labels if line["item"] == key and line["by"].startswith("p")]) >= 24
