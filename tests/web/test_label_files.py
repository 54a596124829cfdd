"""The files of `karat label`: texts and ids as they are, gold that is never lost, names, and opinions seen before."""

from __future__ import annotations

import json
import os
from uuid import uuid4

import pytest

import karat
from karat.gold.judged_sample import sample_of
from karat.gold.labels import Label, LabelFile, read_labels
from karat.gold.pool import pool
from karat.gold.pool_file import read_pool
from support.forked import run_karat
from support.labelled import labelled, samples, write_pool
from support.scripted import script
from support.server import Server

ODD = [
    "می\u200cخواهم",
    "👩\u200d👧",
    "x ##[error] ##vso[y]",
    "::error::x",
    "\u202eabc",
    "\ud800",
    "\x1b[31m\ta",
    "\ufeffb",
]


def gold_of(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_texts_and_ids_reach_the_page_and_the_gold_as_they_are(tmp_path):
    rows = [{"id": f"q{one}", "query": one, "retrieved": [{"id": f"i{n}", "text": f"{n} {text} end"}
             for n, text in enumerate(ODD)]} for one in ODD]  # fmt: skip
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pool([tmp_path / "odd.jsonl"]).save(tmp_path / "pool.parquet")
    stored = {query.id: query for query in read_pool(tmp_path / "pool.parquet").queries}
    shown = [one.replace("\ud800", "\\ud800") for one in ODD]  # no file can have it
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl") as server:
        for number, one in enumerate(shown):
            sheet = server.sheet(number)
            assert (sheet["query"], sheet["text"]) == (f"q{one}", one)
            texts = {item.key: item.text for item in stored[sheet["query"]].items}
            assert {item["key"]: item["text"] for item in sheet["items"]} == texts
            for item in sheet["items"]:
                quotes = [{"start": 2, "end": len(item["text"]) - 4}]
                assert server.grade(sheet["query"], item["key"], 2, quotes=quotes).status == 200
    gold = gold_of(tmp_path / "gold.jsonl")
    assert [line["id"] for line in gold] == [f"q{one}" for one in shown]
    assert [item["text"] for item in gold[0]["gold"]] == shown
    for judge, found in (("ids", 1), ("contains", (len(ODD) - 1) / len(ODD))):  # no text contains a lone surrogate
        run = karat.evaluate(tmp_path / "odd.jsonl", "recall@8", gold=tmp_path / "gold.jsonl", judge=judge)
        assert run.mean["recall@8"] == found


def test_another_pool_does_not_replace_gold(tmp_path):
    made = write_pool(tmp_path / "pool.parquet", 2, 2)
    pool([{"other": ["a", "b"]}]).save(tmp_path / "other.parquet")
    write_pool(tmp_path / "grown.parquet", 3, 3)
    with LabelFile(tmp_path / "gold.labels.jsonl", pool="of the first pool") as file:
        file.append(Label(made.queries[0].id, made.queries[0].items[0].key, grade=2, by="ada"))
    for name, code in (("pool", 0), ("other", 2), ("grown", 0)):
        done = run_karat("label", f"{name}.parquet", "-o", "gold.jsonl", "--write", cwd=tmp_path, text=True)
        assert done.returncode == code, done.stderr
        assert [len(line["gold"]) for line in gold_of(tmp_path / "gold.jsonl")] == [1]
        if code:
            assert "has labels of another pool" in done.stderr
            assert "-o new-gold.jsonl" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "gold.labels.jsonl"], "-o gold.jsonl"),
        (["-o", "."], "-o gold.jsonl"),
        (["-o", ".."], "-o ../gold.jsonl"),
        (["-o", "g.jsonl", "--max-cost", "2"], "--model gpt-4o-mini --max-cost"),
        (["-o", "g.jsonl", "--model", "lexical", "--repeats", "3"], "--repeats is for a language model"),
        (["-o", "g.jsonl", "--by", "Settled"], "kept for settled"),
        (["-o", "g.jsonl", "--by", "ｓettled"], "kept for settled"),
        (["-o", "g.jsonl", "--depth", "5"], "--depth is for --holes and --sample"),
        (["-o", "g.jsonl", "--sample", "5", "--depth", "0"], "--depth must be above 0"),
    ],
)
def test_names_that_are_refused(tmp_path, arguments, words):
    done = run_karat("label", "pool.parquet", *arguments, "--no-open", cwd=tmp_path, text=True)
    assert done.returncode == 2
    assert words in done.stderr


def test_one_person_has_one_name_and_by_counts_at_each_start(tmp_path):
    write_pool(tmp_path / "pool.parquet", 2, 2)
    files = tmp_path / "pool.parquet", tmp_path / "gold.jsonl"
    cookies = []
    for by in ("Bob", "Eve"):
        with labelled(*files, "--by", by) as server:
            sheet = server.sheet(0, "Ada")
            key = sheet["items"][0]["key"]
            for name in ("Ada", "ada", "Ａda"):
                assert server.grade(sheet["query"], key, 2, name, note=f"{by} {name}").status == 200
            assert {line["by"] for line in server.labels} == {"Ada"}
            assert server.post("/label/name", {"by": "SETTLED"}).status == 400
            sent = "; ".join([server.cookie, *cookies])
            assert server.ask("/label/work", cookie=sent).json["by"] == by
            chosen = server.post("/label/name", {"by": "ADA"}).headers["Set-Cookie"].partition(";")[0]
            assert server.ask("/label/work", cookie=f"{sent}; {chosen}").json["by"] == "Ada"
            cookies.append(chosen)


def test_an_answer_after_the_opinion_of_the_model_is_marked(tmp_path):
    write_pool(tmp_path / "pool.parquet", 2, 2)
    with labelled(tmp_path / "pool.parquet", tmp_path / "gold.jsonl", "--model", "lexical") as server:
        sheet = server.sheet(0)
        key = sheet["items"][0]["key"]
        server.grade(sheet["query"], key, 2)
        number = server.grade(sheet["query"], key, 3).json["label"]["number"]
        for last in (number, server.labels[0]["number"]):
            server.post("/label/undo", {"id": uuid4().hex, "by": "ada", "number": last})
        server.grade(sheet["query"], key, 1)
        server.grade(sheet["query"], key, 1, "bob")
        seen = [line.get("seen") for line in server.labels if line.get("answer") != "undo"]
        assert seen == [None, True, True, None]


def test_a_model_grades_within_its_budget_and_is_asked_once(tmp_path):
    made = write_pool(tmp_path / "pool.parquet", 4, 3)
    files = tmp_path / "pool.parquet", tmp_path / "gold.jsonl"
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "OPENAI_API_KEY": "sk-of-a-test"}
    with Server(script) as model:
        options = ("--model", "gpt-4o-mini", "--base-url", model.url, "--yes", "--max-cost", "2")
        with labelled(*files, *options, "--max-calls", "3", env=env) as server:
            said = "\n".join(server.log)
            assert "the model has no opinion on 1 of 4 queries: not called: the budget of 3 calls is used up" in said
        assert model.count == 3
        for _ in range(2):
            with labelled(*files, *options, env=env) as server:
                assert len((tmp_path / "gold.opinions.jsonl").read_text().splitlines()) == made.size
                sheet = server.sheet(0)
                assert {item["model"] for item in sheet["items"] if item["label"] is None} == {None}
                server.grade(sheet["query"], sheet["items"][0]["key"], 0)
                assert server.labels[0]["model"] in (0, 1, 2, 3)
        assert model.count == 4
    done = run_karat("label", "pool.parquet", "-o", "gold.jsonl", "--write", cwd=tmp_path, text=True)
    opinion = server.labels[0]["model"]
    assert f"ada and the model: the same grade for {int(opinion == 0)} of 1 item graded without its" in done.stderr


def test_calibration_uses_answers_from_before_the_opinion(tmp_path):
    rows = [{"id": f"q{n}", "query": "closed on sunday", "retrieved": ["closed on sunday", "open"]} for n in range(12)]
    run = karat.evaluate(rows, "precision@2", judge="relevance(lexical)")
    items = [(query.id, item.key) for query in sample_of(run, 24).queries for item in query.items]
    results = []
    for name, swayed in (("plain", 0), ("swayed", 1)):
        with LabelFile(tmp_path / f"{name}.labels.jsonl") as file:
            for number, (query, item) in enumerate(items):
                file.append(Label(query, item, grade=3 * (number % 3 > 0), by="ada"))
                for grade in (0, 3)[: 2 * swayed]:
                    file.append(Label(query, item, grade=grade, by="ada", seen=True))
        results.append(karat.calibrate(run, tmp_path / f"{name}.labels.jsonl"))
    assert results[0].corrected == results[1].corrected
    with LabelFile(tmp_path / "all.labels.jsonl") as file:
        file.append(Label(*items[0], grade=3, by="ada", seen=True))
    with pytest.raises(karat.KaratError, match="without seeing a model's opinion"):
        karat.calibrate(run, tmp_path / "all.labels.jsonl")


def test_labels_that_an_editor_saved_with_a_mark_of_bytes(tmp_path):
    path = tmp_path / "gold.labels.jsonl"
    with LabelFile(path) as file:
        file.append(Label("q", "a", grade=1, by="ada"))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b'{"query": "q", "it')
    with LabelFile(path) as file:
        assert file.torn == 18
        file.append(Label("q", "b", grade=2, by="Ada"))
    assert [one.item for one in read_labels(path).lines] == ["a", "b"]
    assert {by for *_, by in read_labels(path).standing().latest} == {"ada"}


def test_holes_say_what_the_run_left_out(tmp_path):
    rows = samples(4, 3)
    gold = {row["id"]: [row["retrieved"][0]["id"]] for row in rows[:3]}
    run = karat.evaluate(rows, "recall@3", gold=gold)
    run.save(tmp_path / "new.parquet")
    (said,) = [one for one in pool([tmp_path / "new.parquet"], gold=gold).remarks() if "left out" in one]
    assert "1 query without gold" in said
    assert "--holes SAMPLES" in said
