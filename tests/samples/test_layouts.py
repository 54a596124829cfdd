"""One data set in every supported layout: the scores are the same."""

from __future__ import annotations

import gzip
import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import karat
from karat.report.notes import remarks
from support.data import random_results_and_gold

METRICS = "recall@1,3,10 precision@3 ndcg@5 rr ap bpref judged@5"
RUN, GOLD = random_results_and_gold(11, queries=30, depth=12)
RUN = {q: RUN.get(q, {}) for q in GOLD}
WANTED = karat.evaluate(retrieved=RUN, gold=GOLD, metrics=METRICS).table

LONG_RUN = pl.DataFrame(
    [{"query_id": q, "doc_id": d, "score": s} for q, r in RUN.items() for d, s in r.items()]
).sample(fraction=1, shuffle=True, seed=1)
LONG_GOLD = pl.DataFrame([{"query_id": q, "doc_id": d, "grade": g} for q, r in GOLD.items() for d, g in r.items()])


def best_first(scores):
    return sorted(scores, key=lambda d: (scores[d], d), reverse=True)


NESTED = [
    {
        "id": q,
        "retrieved": [{"id": d, "score": RUN[q][d]} for d in best_first(RUN[q])],
        "gold": [{"id": d, "grade": g} for d, g in GOLD[q].items()],
    }
    for q in GOLD
]


def check(*args, **kwargs):
    run = karat.evaluate(*args, metrics=METRICS, **kwargs)
    assert run.table.equals(WANTED)
    return run


def write(path, text):
    """Write text, compressed according to the ending."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(text.encode())
    else:
        path.write_text(text, encoding="utf-8")
    return path


def test_dicts_of_dicts_positionally():
    check(RUN, gold=GOLD)


def test_dicts_of_ranked_lists():
    check(retrieved={q: best_first(r) for q, r in RUN.items()}, gold=GOLD)


def test_lists_by_position():
    run = karat.evaluate(retrieved=[best_first(RUN[q]) for q in GOLD], gold=list(GOLD.values()), metrics=METRICS)
    assert run.table.drop("query_id").equals(WANTED.drop("query_id"))
    assert run.ids == [str(i + 1) for i in range(len(GOLD))]


def test_dicts_of_scores_by_position():
    run = karat.evaluate(retrieved=list(RUN.values()), gold=list(GOLD.values()), metrics=METRICS)
    assert run.table.drop("query_id").equals(WANTED.drop("query_id"))


def test_rows_of_records():
    check(NESTED)
    unsorted = [{**row, "retrieved": [{"id": d, "score": s} for d, s in RUN[row["id"]].items()]} for row in NESTED]
    check(unsorted, order="score")
    assert not karat.evaluate(unsorted, METRICS).table.equals(WANTED)


def test_rows_of_dicts():
    check([{"id": q, "retrieved": RUN[q], "gold": GOLD[q]} for q in GOLD])


def test_samples():
    check([karat.Sample(id=q, retrieved=RUN[q], gold=GOLD[q]) for q in GOLD])


def test_columns():
    check({"id": list(GOLD), "retrieved": [best_first(RUN[q]) for q in GOLD], "gold": [GOLD[q] for q in GOLD]})


@pytest.mark.parametrize("convert", [lambda f: f, pl.DataFrame.lazy, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_long_frames(convert):
    run = karat.evaluate(convert(LONG_RUN), gold=convert(LONG_GOLD), metrics=METRICS)
    assert run.table.equals(WANTED)
    assert run.provenance.missing == sum(not r for r in RUN.values())


def test_long_frames_by_rank_or_row_order():
    rows = [{"qid": q, "docno": d, "rank": i} for q, r in RUN.items() for i, d in enumerate(best_first(r))]
    assert karat.evaluate(pl.DataFrame(rows), gold=GOLD, metrics=METRICS).table.equals(WANTED)
    shuffled = pl.DataFrame(rows).sample(fraction=1, shuffle=True, seed=2)
    assert karat.evaluate(shuffled, gold=GOLD, metrics=METRICS).table.equals(WANTED)
    assert karat.evaluate(pl.DataFrame(rows).drop("rank"), gold=GOLD, metrics=METRICS).table.equals(WANTED)


def test_nested_frames():
    frame = pl.DataFrame(
        {
            "id": list(GOLD),
            "retrieved": [best_first(RUN[q]) for q in GOLD],
            "gold": [[{"id": d, "grade": g} for d, g in GOLD[q].items()] for q in GOLD],
        }
    )
    check(frame)
    check(frame.to_arrow())
    check(pd.DataFrame(frame.to_dicts()))


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_json_lines(tmp_path, ending):
    lines = "\n".join(json.dumps(row) for row in NESTED)
    check(write(tmp_path / f"samples.jsonl{ending}", lines + "\n\n"))
    check(str(write(tmp_path / f"samples.ndjson{ending}", "\ufeff" + lines)))


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_json(tmp_path, ending):
    check(write(tmp_path / f"samples.json{ending}", json.dumps(NESTED, indent=1)))
    run = write(tmp_path / f"run.json{ending}", json.dumps(RUN))
    gold = write(tmp_path / f"gold.json{ending}", json.dumps(GOLD))
    check(run, gold=gold)


def test_csv(tmp_path):
    LONG_RUN.write_csv(tmp_path / "run.csv")
    LONG_GOLD.write_csv(tmp_path / "gold.tsv", separator="\t")
    check(tmp_path / "run.csv", gold=tmp_path / "gold.tsv")
    for ending in (".gz", ".zst"):
        run = write(tmp_path / f"run.csv{ending}", LONG_RUN.write_csv())
        check(run, gold=write(tmp_path / f"gold.tsv{ending}", LONG_GOLD.write_csv(separator="\t")))
    nested = pl.DataFrame({"id": list(GOLD), "retrieved": [json.dumps(best_first(RUN[q])) for q in GOLD]}).with_columns(
        gold=pl.Series([json.dumps([{"id": d, "grade": g} for d, g in GOLD[q].items()]) for q in GOLD])
    )
    nested.write_csv(tmp_path / "nested.csv")
    check(tmp_path / "nested.csv")


def test_parquet(tmp_path):
    LONG_RUN.write_parquet(tmp_path / "run.parquet")
    LONG_GOLD.write_parquet(tmp_path / "gold.parquet")
    check(tmp_path / "run.parquet", gold=tmp_path / "gold.parquet")
    pl.DataFrame(NESTED).write_parquet(tmp_path / "nested.parquet")
    check(tmp_path / "nested.parquet")


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("gap", [" ", "\t", "  \t "])
def test_trec(tmp_path, ending, gap):
    plain = str.maketrans(" ", "_")  # TREC files know no white space in ids
    run = "".join(
        gap.join([q, "Q0", d.translate(plain), "0", repr(s), "tag"]) + "\n"
        for q, r in RUN.items()
        for d, s in r.items()
    )
    gold = "".join(
        gap.join([q, "0", d.translate(plain), str(g)]) + "\r\n" for q, r in GOLD.items() for d, g in r.items()
    )
    check(write(tmp_path / f"my.run{ending}", run), gold=write(tmp_path / f"my.qrels{ending}", gold))


def test_results_and_gold_may_have_different_formats(tmp_path):
    check(LONG_RUN, gold=GOLD)
    check(RUN, gold=LONG_GOLD)
    path = write(tmp_path / "gold.jsonl", "\n".join(json.dumps({"id": q, "gold": g}) for q, g in GOLD.items()))
    check(RUN, gold=path)


def test_column_names_of_other_tools_are_recognised_and_noted():
    ragas = karat.evaluate(
        [
            {
                "user_input": "q?",
                "retrieved_contexts": ["x y", "a b"],
                "reference_contexts": ["a b"],
                "reference": "r",
            }
        ],
        "rr",
    )
    assert ragas.mean["rr"] == 0.5
    assert ragas.provenance.judge == "exact"
    assert "columns read as ragas: " in remarks(ragas)[1]
    assert "reference → answer" in remarks(ragas)[1]
    by_id = {"retrieved_context_ids": [1, 2], "reference_context_ids": ["2"]}
    assert karat.evaluate([by_id], "rr").mean["rr"] == 0.5
    both = by_id | {"retrieved_contexts": ["p", "q"], "reference_contexts": ["q"]}
    assert karat.evaluate([both], "rr").provenance.judge == "ids"
    assert karat.evaluate([both], "rr", judge="exact").mean["rr"] == 0.5
    agi = karat.evaluate([{"hypothesis": json.dumps(["b", "a"]), "reference": json.dumps(["a"])}], "rr")
    assert agi.mean["rr"] == 0.5
    assert "columns read as Future AGI: " in remarks(agi)[1]
    remem = karat.evaluate([{"gold_docs": ["a"], "retrieved_chunks": ["b", "a"]}], "rr")
    assert remem.mean["rr"] == 0.5
    assert "columns read as REMem: " in remarks(remem)[1]


@pytest.mark.parametrize("gold", [[1, "2"], ["1", 2], [1.0, 2], {1: 1, "2": 1}, {"1": 1, 2: 1}])
@pytest.mark.parametrize(
    "retrieved",
    [["x", 1, "2"], ["x", "1", 2], {"x": 3.0, 1: 2.0, "2": 1.0}, [{"id": "x"}, {"id": 1}, {"id": "2"}]],
)
def test_numbers_and_strings_are_the_same_id(gold, retrieved):
    run = karat.evaluate(retrieved={7: retrieved}, gold={"7": gold}, metrics="recall@3 rr")
    assert run.mean == {"recall@3": 1.0, "rr": 0.5}


def test_numbers_in_frames_are_ids():
    frame = pl.DataFrame({"query_id": [1, 1], "doc_id": [10.0, 11.0], "score": [1, 2]})
    assert karat.evaluate(frame, gold={"1": {"10": 1}}, metrics="rr").mean["rr"] == 0.5


def test_input_is_not_modified():
    before = json.dumps([RUN, GOLD, NESTED])
    karat.evaluate(retrieved=RUN, gold=GOLD)
    karat.evaluate(NESTED)
    assert json.dumps([RUN, GOLD, NESTED]) == before


def test_unknown_columns_become_meta():
    run = karat.evaluate([{"retrieved": ["a"], "gold": ["a"], "topic": "x", "meta": {"hop": 2}}])
    assert dict(run.meta) == {"topic": ["x"], "hop": [2]}


RANKED_ROWS = {"query_id": ["q", "q", "p"], "rank": [2, 1, 1]}
GOLD_ROWS = {"query_id": ["p", "q"]}


@pytest.mark.parametrize(
    ("run", "gold", "judge"),
    [
        (
            {"doc": ["a", "b", "a"], "start": [0, 5, 9], "end": [9, 9, 20]},
            {"doc": ["a", "a"], "start": [9, 0], "end": [20, 9]},
            "auto",
        ),
        ({"doc_id": ["a", "b", "c"], "text": ["A  x", "y", "z"]}, {"doc_id": ["o", "p"], "text": ["z", "a X"]}, "text"),
        ({"text": ["A  x", "y", "z"]}, {"text": ["z", "a X"]}, "text"),
        ({"chunk_id": ["1", "2", "3"], "doc_id": ["a", "b", "c"]}, {"doc_id": ["c", "a"]}, "ids(at=doc)"),
        ({"doc_id": ["a", "b", "c"]}, {"doc_id": ["c", "a"], "group": ["g", "h"]}, "ids"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_long_tables_with_more_than_ids(run, gold, judge, kind):
    """The relevant item is at rank 2 for q and at rank 1 for p."""
    result = karat.evaluate(kind(RANKED_ROWS | run), gold=kind(GOLD_ROWS | gold), metrics="rr", judge=judge)
    assert dict(zip(result.ids, result.scores["rr"].tolist(), strict=True)) == {"p": 1.0, "q": 0.5}
    scored = {"query_id": RANKED_ROWS["query_id"], "score": [0.1, 0.9, 0.5]} | run
    assert karat.evaluate(kind(scored), gold=kind(GOLD_ROWS | gold), metrics="rr", judge=judge).mean["rr"] == 0.75


def test_scores_take_precedence_over_ranks_in_long_tables_of_texts():
    run = pl.DataFrame(
        {"query_id": ["q"] * 2, "text": ["a b", "c d"], "doc": ["x", "y"], "rank": [1, 2], "score": [1, 2]}
    )
    assert karat.evaluate(run, gold={"q": ["c d"]}, metrics="rr", judge="exact").mean["rr"] == 1.0


def test_alternatives_in_a_long_table():
    gold = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["a", "b", "c"], "grade": [1, 3, 1], "group": [1, 1, None]})
    assert karat.evaluate({"q": ["b", "c"]}, gold=gold, metrics="recall@1 ndcg").mean == {"recall@1": 0.5, "ndcg": 1.0}
