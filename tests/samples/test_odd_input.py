"""Unusual but common input: it is read correctly or refused, never scored wrongly without a message."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import karat


def rr(retrieved, gold, **kwargs):
    return karat.evaluate(retrieved=retrieved, gold=gold, metrics="rr", **kwargs).mean["rr"]


def test_existing_path_is_not_a_pattern(tmp_path):
    row = json.dumps({"retrieved": ["a"], "gold": ["a"]})
    (tmp_path / "data[1].jsonl").write_text(f"{row}\n{row}")
    (tmp_path / "data1.jsonl").write_text(row)
    run = karat.evaluate(tmp_path / "data[1].jsonl", "rr")
    assert len(run) == 2
    run.save(tmp_path / "run[1].parquet")
    assert len(karat.load(tmp_path / "run[1].parquet")) == 2
    pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]}).write_csv(tmp_path / "run[1].csv")
    assert rr(tmp_path / "run[1].csv", {"q": ["a"]}) == 1


def test_pairs_of_item_and_score():
    assert rr([[("d1", 0.1), ("d2", 0.8)]], [["d2"]]) == 0.5


@pytest.mark.parametrize("item", [b"a", ("a", "b", "c"), True, Decimal(1), 1.5, float("nan"), object()])
@pytest.mark.parametrize("layout", [lambda i: [i], lambda i: ["a", i], lambda i: {i: 1.0}, lambda i: [{"id": i}]])
def test_items_of_unsupported_types_are_refused(item, layout):
    with pytest.raises(karat.InputError, match="query"):
        rr({"q": layout(item)}, {"q": ["a"]})


@pytest.mark.parametrize("item", [b"a", ("a",), True, 1.5, float("nan"), 10**5000], ids=lambda i: type(i).__name__)
def test_gold_of_unsupported_types_is_refused(item):
    for gold in ([item], {item: 1}, [{"id": item}]):
        with pytest.raises(karat.InputError, match="query"):
            rr({"q": ["a"]}, {"q": gold})


@pytest.mark.parametrize("middle", [("b",), "x"])
def test_pairs_mixed_with_other_items_are_refused(middle):
    with pytest.raises(karat.InputError, match=r"mixes \(item, score\) pairs"):
        rr({"q": [("a", 1.0), middle, ("c", 0.5)]}, {"q": ["a"]})


def test_record_as_gold_is_refused():
    with pytest.raises(karat.InputError, match="expected a list of records"):
        rr({"q": ["5"]}, {"q": {"id": 5, "grade": 2}})


def test_very_long_numbers_are_ids():
    assert rr([[10**41]], [[10**41]]) == 1
    assert rr([{10**41: 1.0}], [[str(10**41)]]) == 1


def test_numbers_match_texts():
    assert karat.score("recall@5", [1], ["1", "a b", "c d"]) == pytest.approx(1 / 3)


def test_same_id_as_number_and_string_is_refused():
    with pytest.raises(karat.InputError, match="the same id"):
        rr({"q": {"1": 1.0, 1: 2.0}}, {"q": ["1"]})


def test_trec_files_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.run").write_text("\ufeffq Q0 a 1 1 t\nq Q0 b 2 .5 t", encoding="utf-8")
    (tmp_path / "a.qrels").write_text("\ufeffq 0 b 1\n", encoding="utf-8")
    assert rr(tmp_path / "a.run", tmp_path / "a.qrels") == 0.5


def test_swapped_results_and_gold_are_refused(tmp_path):
    (tmp_path / "a.run").write_text("q Q0 a 1 1 t\n")
    (tmp_path / "a.qrels").write_text("q 0 b 1\n")
    with pytest.raises(karat.InputError, match="looks like gold"):
        rr(tmp_path / "a.qrels", {"q": ["a"]})
    with pytest.raises(karat.InputError, match="looks like results"):
        rr({"q": ["a"]}, tmp_path / "a.run")


def test_qrels_with_tabs_and_no_header(tmp_path):
    (tmp_path / "qrels.tsv").write_text("1\t0\ta\t0\n1\t0\tb\t1\n")
    assert rr({"1": ["a", "b"]}, tmp_path / "qrels.tsv") == 0.5


def test_beir_calls_grades_scores():
    gold = pl.DataFrame({"query-id": ["q", "q"], "corpus-id": ["a", "b"], "score": [0, 2]})
    assert rr({"q": ["a", "b"]}, gold) == 0.5


def test_pyterrier_columns():
    run = pd.DataFrame({"qid": ["1"], "docid": [17], "docno": ["d1"], "score": [1.0], "rank": [0]})
    gold = pd.DataFrame({"qid": ["1"], "docno": ["d1"], "label": [1]})
    assert rr(run, gold) == 1


@pytest.mark.parametrize(
    ("run", "gold"),
    [
        ({"query_id": ["q"], "doc_id": ["a"], "scores": [1]}, {"q": ["a"]}),
        ({"query_id": ["q"], "doc_id": ["a"], "ranks": [1]}, {"q": ["a"]}),
        ({"q": ["a"]}, {"query_id": ["q"], "doc_id": ["a"], "grades": [1]}),
    ],
)
def test_misspelled_column_is_refused(run, gold):
    sides = [pl.DataFrame(side) if "query_id" in side else side for side in (run, gold)]
    with pytest.raises(karat.InputError, match="rename"):
        rr(*sides)


@pytest.mark.parametrize("name", ["bm25", "wert"])
def test_unknown_numeric_column_is_refused(name):
    frame = pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], name: [1.0]})
    with pytest.raises(karat.InputError, match=f'"{name}"'):
        rr(frame, {"q": ["a"]})
    with pytest.raises(karat.InputError, match=f'"{name}"'):
        rr({"q": ["a"]}, frame)


def test_other_names_of_grades_and_ranks():
    gold = pd.DataFrame({"query": ["q", "q"], "document": ["a", "b"], "judgement": [0, 1]})
    run = pd.DataFrame({"query": ["q", "q"], "document": ["b", "a"], "position": [2, 1]})
    assert rr(run, gold) == 0.5


def test_rows_of_older_ragas_and_of_langchain():
    row = {"question": "q?", "contexts": ["x y", "a b"], "ground_truth_contexts": ["a b"], "ground_truth": "r"}
    assert karat.evaluate([row], "rr").mean["rr"] == 0.5
    chain = {"retrieved": [{"page_content": "x", "metadata": {}}, {"page_content": "a"}], "gold": [{"text": "a"}]}
    assert karat.evaluate([chain], "rr").mean["rr"] == 0.5


def test_hints_do_not_confuse_results_and_gold():
    with pytest.raises(karat.InputError) as error:
        karat.evaluate([{"user_input": "q", "retrieved_contexts": ["a"], "reference": "r"}])
    assert 'no column "gold"' in str(error.value)
    assert "rename" not in str(error.value)


@pytest.mark.parametrize("gold", [{"q": ["a"]}, pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]})])
def test_gold_passed_as_metrics_is_refused(gold, tmp_path):
    with pytest.raises(karat.BadArgument, match="gold="):
        karat.evaluate({"q": ["a"]}, gold)
    path = tmp_path / "qrels.txt"
    path.write_text("q 0 a 1")
    with pytest.raises(karat.BadArgument, match="is a file"):
        karat.evaluate({"q": ["a"]}, str(path))
    with pytest.raises(karat.InputError, match='no column "retrieved" or "gold"'):
        karat.evaluate({"q": ["a"]})


def test_column_names_ignore_case():
    assert rr(pl.DataFrame({"Query_ID": ["q"] * 2, "Doc_Id": ["a", "b"], "Score": [1, 2]}), {"q": ["a"]}) == 0.5


@pytest.mark.parametrize(
    "gold", [{"q": [{"id": "a", "grade": float("inf")}]}, {"q": {"a": float("inf")}}, {"q": {"a": 10**400}}]
)
def test_infinite_grades_are_refused(gold):
    with pytest.raises(karat.InputError, match='query "q"'):
        rr({"q": ["a"]}, gold)


def test_infinite_grades_in_tables_are_refused():
    with pytest.raises(karat.InputError, match="infinite"):
        rr({"q": ["a"]}, pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "grade": [float("inf")]}))


def test_results_and_gold_are_joined_by_query_text():
    run = [{"query": "A", "retrieved": ["a"]}, {"query": "B", "retrieved": ["b"], "topic": "x"}]
    gold = [{"query": "B", "gold": ["b"]}, {"query": "A", "gold": ["a"]}]
    result = karat.evaluate(retrieved=run, gold=gold, metrics="rr")
    assert result.mean["rr"] == 1
    assert result.meta["topic"] == ["x", None]
    assert result.query == ["B", "A"]


def test_mixing_query_ids_and_positions_is_refused():
    with pytest.raises(karat.InputError, match="gold only by position"):
        rr({"q": ["a"]}, [["a"]])


def test_ids_may_equal_column_names():
    assert rr({"gold": ["a"], "retrieved": ["b"]}, {"gold": ["a"], "retrieved": ["b"]}) == 1
    assert karat.score("rr", {"gold": 1.0, "retrieved": 2.0}, ["gold"]) == 0.5


def test_long_rows():
    rows = [{"query_id": "q", "doc_id": "a", "score": 1}, {"query_id": "q", "doc_id": "b", "score": 2}]
    assert rr(rows, {"q": ["a"]}) == 0.5


def test_dicts_mixed_with_lists():
    assert rr({"q": {"a": 1.0}, "r": []}, {"q": ["a"], "r": ["b"]}) == 0.5
    assert rr({"q": ["a"], "r": ["b"]}, {"q": {"a": 1}, "r": ["b"]}) == 1


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"retrieved": [np.array(["b", "a"])], "gold": [np.array(["a"])], "note": [pd.NA]}),
        pd.DataFrame({"retrieved": [["b", "a"]], "gold": [["a"]], "when": [pd.NaT]}),
        pl.DataFrame({"retrieved": [["b", "a"]], "gold": [[{"id": "a", "grade": None}]]}),
    ],
)
def test_frames_of_various_types(frame):
    assert karat.evaluate(frame, "rr").mean["rr"] == 0.5


def test_single_columns():
    frame = pd.DataFrame({"r": [["b", "a"]], "g": [["a"]]})
    assert rr(frame["r"], frame["g"]) == 0.5
    assert rr(pl.Series([["b", "a"]]), pl.Series([["a"]])) == 0.5


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([["q", "a", 1]], columns=["query_id", "doc_id", "doc_id"]), "two columns with the same name"),
        (pl.DataFrame({"query_id": [float("nan")], "doc_id": ["a"]}), "not whole numbers"),
        (pl.DataFrame({"query_id": ["q"], "doc_id": [["a"]]}), "expected strings or whole numbers as ids"),
        (pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "score": [[1]]}), "expected numbers"),
        (pl.LazyFrame({"a": [1]}).select("b"), "cannot be read"),
    ],
)
def test_frames_that_cannot_be_read(frame, message):
    with pytest.raises(karat.InputError, match=message):
        rr(frame, {"q": ["a"]})


def test_blank_lines_and_spaces_in_csv(tmp_path):
    (tmp_path / "run.csv").write_text("query_id,doc_id,score\n\nq,a, 1\nq,b, 2\n\n")
    assert rr(tmp_path / "run.csv", {"q": ["a"]}) == 0.5


def test_lone_surrogates(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text(
        '{"id": "\\ud800", "query": "\\udfff", "retrieved": ["\\ud800"], "gold": ["\\ud800"], "t": "\\ud800"}'
    )
    run = karat.evaluate(path, "rr")
    assert run.mean["rr"] == 1
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").table["query_id"].to_list() == ["\\ud800"]
    assert rr(pl.DataFrame({"query_id": ["q"], "doc_id": ["a"]}), {"q": ["\ud800", "a"]}) == 1


@pytest.mark.parametrize("text", ["[" * 100_000, '{"retrieved": ' * 50_000])
def test_deeply_nested_json(tmp_path, text):
    (tmp_path / "deep.json").write_text(text)
    with pytest.raises(karat.InputError, match="JSON"):
        karat.evaluate(tmp_path / "deep.json")


def test_json_text_instead_of_a_path():
    with pytest.raises(karat.InputError):
        karat.evaluate(json.dumps([{"retrieved": ["a"] * 200, "gold": ["a"]}]))


def test_bad_rows_of_every_kind_are_skipped():
    good = {"id": "g", "retrieved": ["a"], "gold": ["a"]}
    bad = [
        {"id": 1, "retrieved": ["a", None], "gold": ["a"]},
        {"id": 2, "retrieved": {"a": float("nan")}, "gold": ["a"]},
        {"id": 3, "retrieved": ["a"], "gold": [1.5]},
        {"id": "g", "retrieved": ["b"], "gold": ["a"]},
        "nonsense",
    ]
    run = karat.evaluate([good, *bad], "rr", skip_bad_rows=True)
    assert (run.ids, run.mean["rr"], run.provenance.skipped) == (["g"], 1.0, 5)
    with pytest.raises(karat.BadArgument, match="gold="):
        karat.evaluate({"q": ["a"]}, gold={"q": ["a"]}, skip_bad_rows=True)


@pytest.mark.parametrize(
    "arguments",
    [{"metrics": None}, {"metrics": 5}, {"convention": []}, {"judge": karat.Judge}, {"metrics": "recall@1_0"}],
)
def test_arguments_of_the_wrong_type(arguments):
    with pytest.raises(karat.KaratError):
        karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}], **arguments)


def test_records_with_different_fields():
    rows = [{"retrieved": [{"id": "a", "text": "x"}, {"id": "b"}], "gold": ["b"]}]
    assert karat.evaluate(rows, "rr").mean["rr"] == 0.5
    assert karat.evaluate([{"retrieved_ids": [1, 2], "gold_ids": [2]}], "rr").mean["rr"] == 0.5
