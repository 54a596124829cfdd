"""A list is a ranking: it keeps its order, whatever its scores; scores order what has no order of its own."""

from __future__ import annotations

import json
from itertools import pairwise
from math import isclose

import numpy as np
import polars as pl
import pytest

import karat
from karat.conventions import CONVENTIONS
from karat.scale.memory import MemoryLimits
from support.forked import run_karat
from support.split_samples import made, saved

WORDS = {"a": "apples and pears", "b": "books about bread", "c": "clouds over the city"}
DISTANCES = {"a": 0.1, "b": 0.2, "c": 0.3}
TIED = dict.fromkeys("abc", 1.0)
SORTING = {"trec_eval", "ranx", "ir-measures", "beir", "mteb", "sklearn", "torchmetrics", "azure", "browsecomp-plus"}


def records(scores):
    spans = {d: {"doc": d, "start": 0, "end": len(text)} for d, text in WORDS.items()}
    return [{"id": d, "text": WORDS[d], "score": s, **spans[d]} for d, s in scores.items()]


def written(path, row):
    path.write_text(json.dumps(row) + "\n")
    return path


LISTS = {
    "records": lambda scores, _: [{"retrieved": records(scores), "gold": ["a"]}],
    "sample": lambda scores, _: [karat.Sample(retrieved=records(scores), gold=["a"])],
    "pairs": lambda scores, _: [{"retrieved": list(scores.items()), "gold": ["a"]}],
    "columns": lambda scores, _: {"retrieved": [records(scores)], "gold": [["a"]]},
    "frame": lambda scores, _: pl.DataFrame([{"retrieved": records(scores), "gold": ["a"]}]),
    "pandas": lambda scores, _: pl.DataFrame([{"retrieved": records(scores), "gold": ["a"]}]).to_pandas(),
    "jsonl": lambda scores, tmp: written(tmp / "samples.jsonl", {"retrieved": records(scores), "gold": ["a"]}),
}


@pytest.mark.parametrize("scores", [DISTANCES, TIED], ids=["distances", "ties"])
@pytest.mark.parametrize("form", LISTS)
def test_a_list_keeps_its_order(form, scores, tmp_path):
    run = karat.evaluate(LISTS[form](scores, tmp_path), "rr", judge="ids")
    assert run.mean["rr"] == 1.0
    assert [item.id for item in run.items("1").retrieved] == list("abc")
    by_score = karat.evaluate(LISTS[form](scores, tmp_path), "rr", judge="ids", order="score")
    assert isclose(by_score.mean["rr"], 1 / 3)
    assert [item.id for item in by_score.items("1").retrieved] == list("cba")


@pytest.mark.parametrize("judge", ["ids", "exact", "text", "contains", "fuzzy(0.9)", "spans", "ids(at=doc)"])
def test_every_judge_sees_the_same_order(judge):
    gold = [{"id": "a", "text": WORDS["a"], "doc": "a", "start": 0, "end": len(WORDS["a"])}]
    for order, rr in (("listed", 1.0), ("score", 1 / 3)):
        assert isclose(karat.score("rr", records(DISTANCES), gold, judge=judge, order=order), rr)
        assert karat.score("recall@4t", records(DISTANCES), gold, judge=judge, order=order) == (rr == 1)


def long_table(*columns):
    rows = [{"query_id": "q", "doc_id": d, "text": WORDS[d], "score": s} for d, s in DISTANCES.items()]
    return pl.DataFrame(rows).select("query_id", *columns, "score")


def trec_file(folder):
    path = folder / "run.trec"
    path.write_text("".join(f"q Q0 {d} 1 {s} tag\n" for d, s in DISTANCES.items()))
    return path


@pytest.mark.parametrize("order", [None, "listed", "score"])
def test_scores_order_what_has_no_order_of_its_own(order, tmp_path):
    for retrieved in ({"q": DISTANCES}, long_table("doc_id"), long_table("doc_id", "text"), trec_file(tmp_path)):
        run = karat.evaluate(retrieved=retrieved, gold={"q": ["c"]}, metrics="rr", order=order, judge="ids")
        assert run.mean["rr"] == 1.0


def test_a_dict_of_scores_among_lists_is_ordered_by_score():
    samples = [{"retrieved": DISTANCES, "gold": ["c"]}, {"retrieved": records(DISTANCES), "gold": ["c"]}]
    assert karat.evaluate(samples, "rr", judge="ids").scores["rr"].tolist() == [1.0, 1 / 3]
    assert karat.evaluate(samples, "rr", judge="ids", order="score").scores["rr"].tolist() == [1.0, 1.0]


def test_a_rank_in_a_record_does_not_move_it():
    retrieved = [{"id": "a", "rank": 2}, {"id": "b", "rank": 1}]
    assert karat.score("rr", retrieved, ["a"]) == 1.0


@pytest.mark.parametrize("name", CONVENTIONS)
def test_libraries_that_sort_still_sort(name):
    run = karat.evaluate([{"retrieved": records(DISTANCES), "gold": ["c"]}], "ndcg@3", judge="ids", convention=name)
    assert (run.mean["ndcg@3"] == 1.0) == (name in SORTING)
    assert (CONVENTIONS[name].order == "score") == (name in SORTING)


def test_ties_of_a_list_are_not_averaged():
    assert karat.score("ndcg@3", records(TIED), ["a"], convention="standard(ties=averaged)") == 1.0
    assert karat.score("ndcg@3", TIED, ["a"], convention="standard(ties=averaged)") < 1.0


# What the note says


def test_scores_that_agree_with_the_list_are_not_mentioned():
    falling = [{"retrieved": records({"a": 0.9, "b": 0.9, "c": 0.1}), "gold": ["b"]}]
    assert karat.evaluate(falling, "recall@1", judge="ids").provenance.notes == ()


MIXED = [
    {"retrieved": records(DISTANCES), "gold": ["a"]},
    {"retrieved": records({"b": 0.5, "c": 0.9, "a": 0.4}), "gold": ["c"]},
    {"retrieved": records({"b": 0.9, "a": 0.4}), "gold": ["a"]},
    {"retrieved": records({"c": 0.9, "a": 0.4}), "gold": ["c"]},
]


@pytest.mark.parametrize("judge", ["ids", "text", "contains", "fuzzy(0.9)"])
def test_the_note_has_the_number_of_lists_and_the_effect(judge):
    samples = [{**row, "gold": [{"id": d, "text": WORDS[d]} for d in row["gold"]]} for row in MIXED]
    run = karat.evaluate(samples, "rr recall@1", judge=judge)
    by_score = karat.evaluate(samples, "rr recall@1", judge=judge, order="score")
    assert run.mean["rr"] != by_score.mean["rr"]
    said = run.remarks()[-1]
    sorted_mean, listed_mean = (one.scores["rr"][:2].mean() for one in (by_score, run))
    assert said == (
        "2 lists have scores that contradict their order: the order is kept. "
        'Sorted by score (order="score", --order score), '
        f"their rr would be {sorted_mean:.3f} instead of {listed_mean:.3f}."
    )


def test_the_note_says_if_nothing_would_change():
    samples = [{"retrieved": records({"a": 0.9, "b": 0.1, "c": 0.2}), "gold": ["a"]}]
    _, said = karat.evaluate(samples, "recall@1", judge="ids").remarks()
    assert said.endswith(
        "1 list has scores that contradict its order: the order is kept. "
        'Sorted by score (order="score", --order score), its recall@1 would stay 1.000.'
    )


def test_rising_scores_are_called_distances():
    _, said = karat.evaluate([{"retrieved": records(DISTANCES), "gold": ["a"]}], "recall@1", judge="ids").remarks()
    assert said.startswith("1 list has scores that rise down the list, as distances do: the order is kept.")


def test_without_a_metric_to_compute_the_note_counts_first_items():
    _, said = karat.evaluate(MIXED[:2], "recall@3t", judge="ids").remarks()
    assert said.endswith('Sorted by score (order="score", --order score), the first item would change in 2 lists.')


@pytest.mark.parametrize("metrics", ["recall@1", "ndcg@5 rr", "precision@2"])
@pytest.mark.parametrize(("judge", "convention"), [("ids", "standard"), ("fuzzy(0.3)", "standard"), ("text", "mlflow")])
def test_the_effect_is_that_of_sorting(judge, metrics, convention):
    samples = made(60)
    for row in samples:  # copies, too
        row["retrieved"] += [{**item, "score": item["score"] / 2} for item in row["retrieved"][:3]]
    listed, by_score = (
        karat.evaluate(samples, metrics, judge=judge, convention=convention, order=order) for order in (None, "score")
    )
    (note,) = [note for note in listed.provenance.notes if note.kind == "order_kept"]
    name = listed.metrics[0].names[0]
    assert note.details["metric"] == name
    falling = [all(a["score"] >= b["score"] for a, b in pairwise(row["retrieved"])) for row in samples]
    defined = ~np.array(falling) & ~np.isnan(listed.scores[name])
    assert (note.count, note.sums["queries"]) == (falling.count(False), defined.sum())
    assert note.sums["by_score"] == pytest.approx(by_score.scores[name][defined].sum(), abs=1e-6)
    assert note.sums["listed"] == pytest.approx(listed.scores[name][defined].sum(), abs=1e-6)


def test_sorting_is_mentioned_with_its_ties():
    run = karat.evaluate(
        [{"retrieved": records(s), "gold": ["a"]} for s in ({"b": 0.5, "c": 0.9, "a": 0.4}, TIED)],
        "rr",
        judge="ids",
        order="score",
    )
    assert run.remarks()[1:] == [
        "1 list was not in the order of its scores: sorted by score, the greatest first.",
        "1 list has items of equal score: ranked by id, descending, not as listed.",
    ]


def test_a_library_that_reverses_distances_is_mentioned():
    run = karat.evaluate([{"retrieved": records(DISTANCES), "gold": ["a"]}], "rr", judge="ids", convention="ranx")
    _, said = run.remarks()
    assert said == "1 list has scores that rise down the list, as distances do: reversed by sorting the greatest first."


# The same wherever it runs


@pytest.mark.parametrize("order", ["listed", "score"])
@pytest.mark.parametrize("judge", ["ids", "text", "spans"])
def test_the_order_is_the_same_in_batches_and_processes(judge, order, tmp_path):
    samples = made()
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in samples))
    whole = karat.evaluate(path, "recall@1,5 rr", judge=judge, order=order)
    assert any(note.kind in ("order_kept", "reordered_by_score") for note in whole.provenance.notes)
    limits = MemoryLimits(20_000, fewest_rows=7, item_bytes=0)
    for options in ({"memory": limits}, {"jobs": 2}):
        other = karat.evaluate(path, "recall@1,5 rr", judge=judge, order=order, **options)
        assert other.to_dict() == whole.to_dict()
        assert other.remarks() == whole.remarks()
    parts = [karat.evaluate(samples[a:b], "recall@1,5 rr", judge=judge, order=order) for a, b in ((0, 9), (9, 41))]
    assert karat.merge(parts).provenance.notes == whole.provenance.notes
    assert saved(karat.merge(parts), tmp_path / "m.parquet")
    again = karat.load(tmp_path / "m.parquet")
    assert again.provenance.notes == whole.provenance.notes
    assert again.convention.order == order


def test_the_command_line(tmp_path):
    path = written(tmp_path / "samples.jsonl", {"retrieved": records(DISTANCES), "gold": ["c"]})

    def mean(*options):
        done = run_karat("eval", path, "rr", "--judge", "ids", "--format", "json", *options, text=True)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        return told["mean"]["rr"], told["provenance"]["convention"]

    assert mean() == (pytest.approx(1 / 3), "standard")
    assert mean("--order", "score") == (1.0, "standard(order=score)")
    assert mean("--convention", "standard(order=score)") == (1.0, "standard(order=score)")
    assert mean("--convention", "trec_eval") == (1.0, "trec_eval")
    assert mean("--convention", "trec_eval", "--order", "listed") == (pytest.approx(1 / 3), "trec_eval(order=listed)")


def test_an_unknown_order_is_refused():
    with pytest.raises(karat.BadArgument, match="order of a convention must be one of listed, score"):
        karat.score("rr", ["a"], ["a"], order="best")
