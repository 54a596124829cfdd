"""Odd values end in a sentence, or in a correct result: never in a traceback of Python or of a library."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from enum import Enum, IntEnum

import numpy as np
import pandas as pd
import polars as pl
import pytest

import karat
from fuzz.frame import command

DEEP = "[" * 3000 + "]" * 3000


class Topic(Enum):
    BILLING = "billing"


class Level(IntEnum):
    HIGH = 2


class Silent:
    def __repr__(self):
        raise RuntimeError("no words")


def sample(**more):
    return {"id": "q", "query": "?", "retrieved": ["a", "b"], "gold": ["a"], **more}


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (Topic.BILLING, "billing"),
        (Level.HIGH, 2),
        (b"abc\xff", "abc\\xff"),
        (Decimal("1.5"), "1.5"),
        (dt.date(2024, 1, 2), "2024-01-02"),
        (1j, "1j"),
        (np.float32(0.5), 0.5),
        (np.str_("x"), "x"),
        ({1}, "{1}"),
        (["x", "y"], "['x', 'y']"),
        (10**400, str(10**400)),
        ("\ud800", "\\ud800"),
    ],
    ids=repr,
)
def test_values_of_fields(given, stored, tmp_path):
    run = karat.evaluate([sample(topic=given), sample(id="r", topic=None)], "rr")
    run.save(tmp_path / "run.parquet")
    for one in (run, karat.load(tmp_path / "run.parquet")):
        assert one.by("topic").table["topic"].to_list() == sorted([str(stored), "(none)"])
    assert karat.load(tmp_path / "run.parquet").meta["topic"] == [stored, None]


@pytest.mark.parametrize("value", [Silent(), nested(3000), 10**5000], ids=["silent", "deep", "long"])
@pytest.mark.parametrize("field", ["topic", "query", "answer"])
def test_fields_that_cannot_be_text(value, field):
    with pytest.raises(karat.InputError, match=f'field "{field}" is a .* that cannot be written as text'):
        karat.evaluate([sample(**{field: value})], "rr")


@pytest.mark.parametrize("value", [Silent(), nested(3000), 10**5000, 1.5, b"a", {1: 2}], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("place", ["id", "retrieved", "gold"])
def test_other_places(value, place):
    with pytest.raises(karat.InputError):
        karat.evaluate([sample(**{place: value if place == "id" else [value]})], "rr", judge="ids")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.jsonl", f'{{"retrieved": {DEEP}, "gold": [NaN]}}', "nested too deeply"),
        ("a.json", f'[{{"retrieved": {DEEP}, "gold": [NaN]}}]', "nested too deeply"),
        ("a.csv", f'id,retrieved,gold\nq,"{DEEP}","[1]"\n', "not a list in valid JSON"),
        ("long.jsonl", f'{{"query_id": "q", "doc_id": "d", "score": {DEEP[2990:-2990]}}}', "nested too deeply"),
        ("long.jsonl", '{"query_id": "q", "doc_id": "\\ud800", "score": 1}', "has a lone surrogate"),
        ("long.jsonl", '{"query_id": "q", "doc_id": "d", "score": {"a": 1}}', "expected numbers"),
        ("a.jsonl", json.dumps(sample(id=0)).replace("0", "9" * 5000), "thousands of digits"),
    ],
)
def test_files(name, text, problem, tmp_path):
    (tmp_path / name).write_text(text)
    done = command("eval", tmp_path / name, "rr", *(["--gold", tmp_path / name] if "long" in name else []))
    assert done.code == 2
    assert problem in done.err


def test_an_id_of_400_digits(tmp_path):
    number = "9" * 400
    (tmp_path / "a.jsonl").write_text(f'{{"id": {number}, "retrieved": [{number}], "gold": ["{number}"]}}')
    done = command("eval", tmp_path / "a.jsonl", "rr", "--format", "csv")
    assert done.out.splitlines()[1] == f"{number},1.0"


@pytest.mark.parametrize("library", ["polars", "pandas", "parquet"])
def test_a_struct_as_score(library, tmp_path):
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "score": [{"a": 1}]})
    frame.write_parquet(tmp_path / "run.parquet")
    columns = {"query_id": ["q"], "doc_id": ["a"], "score": [{"a": 1}]}
    given = {"polars": frame, "pandas": pd.DataFrame(columns), "parquet": tmp_path / "run.parquet"}[library]
    with pytest.raises(karat.InputError, match=r'column "score" has type Struct.*; expected numbers'):
        karat.evaluate(retrieved=given, gold=[["a"]], metrics="rr")


@pytest.mark.parametrize(
    "text", ["a… [, more characters]", f"a… [{'9' * 20} more characters]", "… [12 more characters]"]
)
def test_texts_that_look_cut(text, tmp_path):
    run = karat.evaluate([{"retrieved": [text], "gold": [text]}], "rr", judge="exact")
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").items("1").retrieved[0].text == text


@pytest.mark.parametrize(
    ("option", "value"),
    [("--jobs", "1" + "0" * 30), ("--memory", "1" + "0" * 5000), ("--memory", "-1"), ("--jobs", "9" * 5000)],
)
def test_absurd_numbers(option, value, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(sample()))
    done = command("eval", tmp_path / "a.jsonl", "rr", "--judge", "text", option, value)
    assert done.code == (2 if option == "--jobs" or value == "-1" else 0)
    assert len(done.err) < 4000


@pytest.mark.parametrize(("encoding", "name"), [("utf-16", "UTF-16"), ("latin-1", "latin-1")])
def test_the_encoding_of_must_pass_queries_is_named(encoding, name, tmp_path):
    karat.evaluate([sample()], "rr").save(tmp_path / "run.parquet")
    (tmp_path / "must.txt").write_text("é\nq\n", encoding)
    done = command("gate", tmp_path / "run.parquet", "rr >= 0", "--must-pass", tmp_path / "must.txt")
    assert done.code == 2
    assert f"line 1 is not UTF-8; the file looks like {name}" in " ".join(done.err.split())
