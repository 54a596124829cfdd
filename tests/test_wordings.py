"""Messages on input that is rare: what is wrong and where, in plain words and at a length that can be read."""

from __future__ import annotations

import re

import polars as pl
import pytest

import karat
from karat.cli import main
from karat.samples.id_differences import IdDifference

LONG = "7" * 450
DEEP = "[" * 100_000 + "]" * 100_000


def refused(*given, **named):
    with pytest.raises(karat.KaratError) as raised:
        karat.evaluate(*given, **named)
    said = str(raised.value)
    assert len(said) < 600
    return said


def rows(*gold, text="who is it", count=6):
    return [{"id": f"q{n}", "query": text, "retrieved": ["a", "b"], "gold": list(gold)} for n in range(count)]


def run(*gold, **named):
    return karat.evaluate(rows(*gold, **named), "recall@2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("who is it ", "'who is it' / 'who is it '"),
        ("who\tis it", r"'who is it' / 'who\\tis it'"),
        ("who is ıt", '"who is it" / "who is ıt"'),
        ("how?", '"who is it" / "how?"'),
    ],
)
def test_query_texts_that_look_the_same(text, said):
    with pytest.raises(karat.BadArgument, match=re.escape(said).replace("\\\\\\\\", "\\\\")):
        karat.compare(run("a"), run("a", text=text))


def test_long_query_texts_are_cut_where_they_differ():
    with pytest.raises(karat.BadArgument, match=re.escape("…'" + "x" * 20 + "\\u0301")):
        karat.compare(run("a", text="x" * 90), run("a", text="x" * 70 + "\u0301" + "x" * 20))


def test_other_groups_are_named():
    both = [{"id": "a", "group": "x"}, {"id": "b", "group": "x"}]
    alone = [{"id": "a"}, {"id": "b"}]
    with pytest.raises(karat.BadArgument, match=r'such as q0 has other groups: "a \| b" \(grade 1'):
        karat.compare(run(*both), run(*alone))
    with pytest.raises(karat.BadArgument, match='such as q0 has "a"'):
        karat.compare(run("a", "c"), run("b", "c"))


def test_a_run_of_no_queries_is_not_compared(tmp_path, capsys):
    run("a").save(tmp_path / "run.parquet")
    about = pl.read_parquet_metadata(tmp_path / "run.parquet")["karat"]
    pl.read_parquet(tmp_path / "run.parquet").head(0).write_parquet(
        tmp_path / "none.parquet", metadata={"karat": about}
    )
    given = [str(tmp_path / "run.parquet"), str(tmp_path / "none.parquet")]
    for command in (["compare", *given], ["gate", given[0], "recall@2 no-drop", "--baseline", given[1]]):
        assert main(command) == 2
        assert re.search("(none|the baseline) has no queries to compare", capsys.readouterr().err)


def test_columns_that_differ_in_case_or_spaces(tmp_path):
    path = tmp_path / "samples.csv"
    for name in ("Gold", " gold", "GOLD "):
        path.write_text(f'id,retrieved,gold,{name}\n1,"[""a""]","[""a""]","[""b""]"\n')
        found = karat.evaluate(path, "recall@1")
        assert found.mean["recall@1"] == 1
        assert f'Column "gold" was read; "{name}", which 1 sample has, was not.' in found.remarks()
    path.write_text("query_id,doc_id, doc_id,score\n1,a,b,0.5\n")
    assert '"doc_id" and " doc_id" differ only in spaces' in refused(retrieved=path, gold={"1": ["a"]})


@pytest.mark.parametrize("side", ["retrieved", "gold"])
def test_a_cell_nested_too_deeply(tmp_path, side):
    cells = {"retrieved": '["a"]', "gold": '["a"]'} | {side: DEEP}
    pl.DataFrame({name: [cell] for name, cell in cells.items()}).write_csv(tmp_path / "deep.csv")
    assert f'field "{side}" is not a list in valid JSON: nested too deeply' in refused(tmp_path / "deep.csv")


def test_a_lone_surrogate_is_found(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_text('{"query_id":"q","doc_id":"a","score":1}\n\n{"query_id":"q","doc_id":"b\\ud800","score":0.5}\n')
    said = refused(retrieved=path, gold={"q": ["a"]})
    assert "long.jsonl, line 3: field 'doc_id' has a lone surrogate" in said
    assert "codec" not in said


def test_long_ids_are_cut(tmp_path):
    for results, gold in ((LONG, "b"), (LONG + "1", f"b{LONG}2")):
        assert "share no query id" in refused(retrieved={results: ["a"]}, gold={gold: ["a"]})
    assert "have the same id" in refused([{"id": LONG, "retrieved": ["a"], "gold": ["a"]}] * 2)
    assert "is not a number" in refused(retrieved={LONG: {LONG: None}}, gold={LONG: ["a"]})
    path = tmp_path / "samples.jsonl"
    path.write_text('{"id": %s, "retrieved": ["a"], "gold": ["a"]}' % ("7" * 5000))
    assert "line 1: not a JSON object: a number with thousands of digits" in refused(path)


@pytest.mark.parametrize(("end", "code"), [("prefix", "id[450:]"), ("suffix", "id[:-450]")])
def test_a_long_prefix_is_not_spelt_out(end, code):
    found = IdDifference(end=end, results=LONG)
    assert found.hint == f"{code} for the results"
    assert len(found.phrase) < 120
    assert eval(code, {"id": LONG}) == ""


def test_none_is_a_value_that_was_given():
    assert refused(retrieved={"q": {"a": None}}, gold={"q": ["a"]}).endswith("\n  got  None")


def test_a_cache_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "cache").write_text("something else")
    assert main(["cache", "info", "--cache", str(tmp_path / "cache")]) == 2
    assert "--cache FILE or --cache none" in capsys.readouterr().err
