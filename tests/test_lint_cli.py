"""`karat lint`, driven as a user does: exit code 0 sound, 1 serious problems, 2 cannot be read."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import pytest

import karat
from support.forked import run_karat
from support.markdown import outside_code

SOUND = [{"id": "a", "query": "Where?", "gold": ["x"]}, {"id": "b", "query": "When?", "gold": ["y"]}]
HOSTILE = "<script>alert(1)</script> \x1b[31mred \u202eevil \0 \ud800 | `x` [a](http://b)"


def call(*arguments, code=0, given=None):
    done = run_karat("lint", *arguments, input=given)
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    return (done.stderr if code == 2 else done.stdout).decode("utf-8")


def written(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


@pytest.fixture
def sound(tmp_path):
    return written(tmp_path / "tests.jsonl", SOUND)


@pytest.fixture
def corpus(tmp_path):
    return written(tmp_path / "corpus.jsonl", [{"id": "x", "text": "Here it is."}, {"id": "y", "text": "At nine."}])


def test_sound(sound, corpus):
    out = call(sound, "--corpus", corpus)
    assert "tests.jsonl · 2 queries · 2 gold items · sound" in out
    assert "PROBLEM" not in out
    assert "The test set is too small: 2 queries cannot detect any difference in recall@5." in out


def test_serious_problems(tmp_path, corpus):
    rows = [*SOUND, {"id": "c", "query": "where", "gold": ["z"]}]
    out = call(written(tmp_path / "bad.jsonl", rows), "--corpus", corpus, code=1)
    assert "2 serious problems" in out
    assert "PROBLEM  1 gold item is not in the corpus" in out
    assert 'c: z: no id "z"' in out
    assert "PROBLEM  1 query occurs more than once with different gold" in out


def test_unreadable(tmp_path, sound):
    assert "no file" in call(tmp_path / "none.jsonl", code=2)
    (tmp_path / "broken.jsonl").write_text("{nonsense")
    assert "line 1" in call(tmp_path / "broken.jsonl", code=2)
    assert "no corpus" in call(sound, "--corpus", tmp_path / "none", code=2)
    assert "no run file" in call(sound, "--runs", tmp_path / "none.parquet", code=2)
    no_gold = written(tmp_path / "other.jsonl", [{"id": "a", "query": "Where?"}])
    assert "gold" in call(no_gold, code=2)
    bad_ranking = written(tmp_path / "ranking.jsonl", [{"retrieved": {"a": "b"}, "gold": ["x"]}] * 2)
    assert "the score of 'a' is not a number" in call(bad_ranking, code=2)


def test_standard_input_and_gold_of_its_own(tmp_path):
    given = "\n".join(map(json.dumps, SOUND)).encode()
    assert "standard input · 2 queries" in call("-", given=given)
    (tmp_path / "qrels.txt").write_text("a 0 x 1\nb 0 y 1\n")
    (tmp_path / "run.trec").write_text("a Q0 x 1 9.5 tag\nb Q0 z 1 8.5 tag\n")
    assert "2 queries · 2 gold items" in call(tmp_path / "run.trec", "--gold", tmp_path / "qrels.txt")
    assert "2 queries · 2 gold items" in call(tmp_path / "qrels.txt")


def test_runs(sound, tmp_path):
    for name in "ab":
        rows = [{**row, "retrieved": row["gold"]} for row in SOUND]
        karat.evaluate(rows, "recall@5").save(tmp_path / f"{name}.parquet")
    out = call(sound, "--runs", tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert "Every run scores above 0.98 in every metric" in out
    assert "recall@5: 1.000 at the lowest" in out


def test_formats(tmp_path, corpus):
    bad = written(tmp_path / "bad.jsonl", [*SOUND, {"id": "c", "query": "Why?", "gold": ["z", "w", "v", "u"]}])
    told = json.loads(call(bad, "--corpus", corpus, "--format", "json", code=1))
    assert told["sound"] is False
    assert told["problems"][0]["count"] == 4
    assert len(told["problems"][0]["examples"]) == 3
    rows = list(csv.DictReader(io.StringIO(call(bad, "--corpus", corpus, "--format", "csv", code=1))))
    assert [row["kind"] for row in rows] == ["not in the corpus", "small"]
    assert "| problem | not in the corpus | 4 |" in call(bad, "--corpus", corpus, "--format", "markdown", code=1)
    assert "… 1 more" in call(bad, "--corpus", corpus, code=1)


@pytest.mark.parametrize("style", ["table", "json", "csv", "markdown"])
def test_hostile_texts_come_out_harmless(tmp_path, corpus, style):
    rows = [{"id": HOSTILE + str(i), "query": HOSTILE, "gold": [HOSTILE + str(i)]} for i in range(2)]
    out = call(written(tmp_path / "bad.jsonl", rows), "--corpus", corpus, "--format", style, code=1)
    bad = {ch for ch in out if unicodedata.category(ch) in ("Cc", "Cf", "Cs", "Co") and ch != "\n"}
    assert not bad
    if style == "markdown":
        assert "<script>" not in outside_code(out)
        assert "[a](" not in outside_code(out)
    if style == "json":
        assert "<script>" in json.loads(out)["problems"][0]["examples"][0]
