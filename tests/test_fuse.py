"""Fusion of rankings: every method against its twin, fused runs against a new evaluation, the sweep, bad input."""

from __future__ import annotations

import json
import random
from itertools import product

import numpy as np
import pytest

import karat
from karat.cli import main
from support.two_legs import two_legs

ITEMS = list("abcdefgh")
METRICS = "recall@1,3 precision@3 ndcg@5 rr ap"


# ---- fused runs -----------------------------------------------------------------------------------------------------


def random_legs(seed, queries=12, legs=2, depth=6, *, scores=True):
    rng = random.Random(seed)
    gold = {f"q{n:03}": {item: rng.randint(0, 2) for item in rng.sample(ITEMS, 3)} for n in range(queries)}
    found = []
    for _ in range(legs):
        rankings = {}
        for query in gold:
            items = rng.sample(ITEMS, rng.randint(0, depth))
            rankings[query] = {item: rng.randint(1, 9) / 4 for item in items} if scores else items
        found.append(rankings)
    return found, gold


@pytest.mark.parametrize("convention", ["standard", "ranx", "sklearn", "llamaindex", "standard(duplicates=remove)"])
@pytest.mark.parametrize(
    ("method", "scores"),
    [*product(["rrf(60)", "borda", "wsum(norm=rank)"], [True, False]), ("combmnz", True), ("wsum(norm=zmuv)", True)],
)
def test_a_fused_run_is_the_evaluation_of_the_fused_rankings(convention, method, scores):
    for seed in range(5):
        legs, gold = random_legs(seed, scores=scores)
        settings = {"gold": gold, "metrics": "recall@1,3 precision@3 ndcg@5 rr", "convention": convention}
        runs = [karat.evaluate(retrieved=leg, **settings) for leg in legs]
        found = karat.fuse(*runs, method=method)
        again = karat.evaluate(retrieved=found.retrieved, **settings)
        assert found.run is not None
        assert found.run.ids == again.ids
        for name, values in again.scores.items():
            np.testing.assert_allclose(found.run.scores[name], values, err_msg=name)
        assert found.retrieved == karat.fuse(*legs, method=method).retrieved or convention != "standard"


def test_a_fused_run_of_documents_counts_a_document_once():
    gold = {"q": ["d1", "d2"]}
    legs = [
        {"q": [{"id": "c1", "doc": "d1"}, {"id": "c2", "doc": "d1"}, {"id": "c3", "doc": "d3"}]},
        {"q": [{"id": "c2", "doc": "d1"}, {"id": "c4", "doc": "d2"}]},
    ]
    runs = [karat.evaluate(retrieved=leg, gold=gold, metrics="recall@2,4 ap precision@4", at="doc") for leg in legs]
    found = karat.fuse(*runs)
    assert list(found.retrieved["q"]) == ["c2", "c1", "c4", "c3"]
    order = {"q": [{"id": c, "doc": d} for c, d in zip(found.retrieved["q"], ("d1", "d1", "d2", "d3"), strict=True)]}
    again = karat.evaluate(retrieved=order, gold=gold, metrics="recall@2,4 ap precision@4", at="doc")
    assert found.run.mean == again.mean
    assert found.run.mean["recall@2"] == 0.5


@pytest.mark.parametrize("judge", ["text", "contains", "exact"])
def test_a_fused_run_of_texts(judge):
    gold = {"q": ["the cat", "a dog"]}
    legs = [{"q": ["The cat", "the cat", "a bird", "a dog"]}, {"q": ["a dog", "the cat"]}]
    runs = [karat.evaluate(retrieved=leg, gold=gold, metrics="recall@1,2 ap precision@3", judge=judge) for leg in legs]
    found = karat.fuse(*runs)
    again = karat.evaluate(
        retrieved={"q": list(found.retrieved["q"])}, gold=gold, metrics="recall@1,2 ap precision@3", judge=judge
    )
    assert found.run.mean == again.mean


def test_groups_token_budgets_and_queries_in_another_order():
    def row(query, items):
        gold = [{"id": "a", "group": "g"}, {"id": "b", "group": "g"}, {"id": "c"}]
        texts = {"a": "one two", "b": "one", "c": "one two three", "x": "one two three four"}
        return {"id": query, "retrieved": [{"id": i, "text": texts[i]} for i in items], "gold": gold, "topic": query}

    settings = {"metrics": "recall@1,2 recall@6t", "judge": "ids"}
    first = karat.evaluate([row("q1", "xab"), row("q2", "cx")], **settings)
    second = karat.evaluate([row("q2", "xc"), row("q1", "ba")], **settings)
    found = karat.fuse(first, second)
    order = {query: list(items) for query, items in found.retrieved.items()}
    again = karat.evaluate([row(query, items) for query, items in order.items()], **settings)
    assert found.run.ids == ["q1", "q2"]
    assert {name: values.tolist() for name, values in found.run.scores.items()} == {
        name: values.tolist() for name, values in again.scores.items()
    }
    assert found.run.meta == {"topic": ["q1", "q2"]}
    assert found.run.gold_hash == first.gold_hash


def test_measures_of_a_fused_run():
    legs, gold = random_legs(2)
    settings = {"gold": gold, "metrics": "recall@1 full_rank first_rank"}
    runs = [karat.evaluate(retrieved=leg, **settings) for leg in legs]
    found = karat.fuse(*runs)
    again = karat.evaluate(retrieved=found.retrieved, **settings)
    assert list(found.run.measured) == ["full_rank", "first_rank"]
    for name, values in again.measured.items():
        np.testing.assert_array_equal(found.run.measured[name], values)
    assert [row.measure for row in found.comparison.measures] == ["full_rank", "first_rank"]
    assert list(karat.fuse(*runs, metrics="recall@1").run.columns) == ["recall@1"]


def test_a_fused_run_is_an_ordinary_run_file(tmp_path):
    legs, gold = random_legs(1)
    runs = [karat.evaluate(retrieved=leg, gold=gold, metrics=METRICS) for leg in legs]
    for run, name in zip(runs, ("bm25", "dense"), strict=True):
        run.save(tmp_path / f"{name}.parquet")
    found = karat.fuse(tmp_path / "bm25.parquet", tmp_path / "dense.parquet")
    assert found.names == ["bm25", "dense"]
    found.run.save(tmp_path / "fused.parquet")
    loaded = karat.load(tmp_path / "fused.parquet")
    assert loaded.mean == found.run.mean
    assert loaded.provenance.source == "rrf(k=60) of bm25, dense"
    first = loaded.items(loaded.ids[0]).retrieved[0]
    assert (first.id, first.score) == next(iter(found.retrieved[loaded.ids[0]].items()))
    assert karat.compare(tmp_path / "bm25.parquet", tmp_path / "fused.parquet").names == ["bm25", "fused"]
    assert karat.gate(tmp_path / "fused.parquet", "recall@3 >= 0.01").exit_code == 0
    again = karat.fuse(tmp_path / "fused.parquet", tmp_path / "bm25.parquet")
    assert again.run is not None
    found.run.report(tmp_path / "fused.html")


def test_items_that_a_run_does_not_store_are_counted():
    items = [f"d{i:03}" for i in range(50)]
    gold = {"q": ["d030", "d000"]}
    runs = [karat.evaluate(retrieved={"q": own}, gold=gold, metrics="recall@5 rr") for own in (items, items[:10])]
    found = karat.fuse(*runs)
    assert len(found.retrieved["q"]) == 20
    assert (
        "30 retrieved items are not in the run files, which store 20 ranks of each query, 1 match of gold"
        in (found.remarks()[0])
    )
    assert found.remarks()[0] in found.run.remarks()
    assert found.ceiling == 0.5


def test_the_ceiling_is_the_gold_of_any_leg():
    gold = {"q1": ["a", "b", "c", "d"], "q2": ["e"]}
    legs = [{"q1": ["a", "b"], "q2": ["x"]}, {"q1": ["x", "c"], "q2": ["y"]}]
    runs = [karat.evaluate(retrieved=leg, gold=gold, metrics="recall@1") for leg in legs]
    assert karat.fuse(*runs).ceiling == 0.375
    cut = karat.fuse(*runs, depth=1)
    assert (cut.ceiling, cut.within_depth) == (0.375, 0.125)
    assert "Ceiling: 38 % of the gold was found by any leg, 12 % within rank 1 (mean over queries)." in repr(cut)


def test_the_comparison_is_with_the_best_leg():
    gold = {f"q{n}": ["a"] for n in range(8)}
    good, bad = {q: ["a", "b"] for q in gold}, {q: ["b", "a"] for q in gold}
    runs = [karat.evaluate(retrieved=leg, gold=gold, metrics="recall@1 rr") for leg in (bad, good)]
    found = karat.fuse(*runs, names=["bad", "good"])
    assert found.comparison.names == ["good", "fused"]
    assert found.comparison.rows[0].difference == -1  # a tie, broken by id
    assert found.best_leg == 1
    named = karat.fuse(*runs, names=["fused", "good"])
    assert named.comparison.names == ["good", "fused (rrf(k=60))"]


def test_failed_queries_stay_failed():
    def judge(gold, item):
        return gold == item

    gold = {"q1": ["a"], "q2": ["a"]}
    legs = [dict.fromkeys(gold, items) for items in (["a", "b"], ["b", "a"])]
    runs = [karat.evaluate(retrieved=leg, gold=gold, metrics="rr", judge=judge) for leg in legs]
    hits = runs[0].all_hits.replace(failed={1: "no answer"})
    broken = runs[0].replace(hits=hits, scores={"rr": np.array([1.0, np.nan])})
    found = karat.fuse(broken, runs[1])
    assert found.run.failures == {"q2": "no answer"}
    assert np.isnan(found.run.scores["rr"][1])


def test_items_found_together_are_fused_but_not_evaluated():
    gold = [{"doc": "d", "start": 0, "end": 10}]
    chunks = [{"id": "a", "doc": "d", "start": 0, "end": 5}, {"id": "b", "doc": "d", "start": 5, "end": 10}]
    samples = [{"id": "q", "retrieved": chunks, "gold": gold}]
    run = karat.evaluate(samples, "recall@2", judge="spans")
    found = karat.fuse(run, run)
    assert found.run is None
    assert found.comparison is None
    assert list(found.retrieved["q"]) == ["a", "b"]
    assert "not evaluated" in found.remarks()[-1]
    assert "not evaluated" in repr(found)
    with pytest.raises(karat.BadArgument, match="no sweep for the judge"):
        karat.fuse(run, run, sweep=True)


# ---- bad input ------------------------------------------------------------------------------------------------------

A, B = {"q": {"a": 1.0}}, {"q": {"b": 1.0}}
LISTS = {"q": ["a"]}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "rff(60)"}, 'no method of fusion "rff". Did you mean rrf?'),
        ({"method": "rrf(60"}, "expected name or name"),
        ({"method": "rrf(-1)"}, "k of rrf must be a number from 0 on"),
        ({"method": "rrf(nan)"}, "k of rrf must be a number"),
        ({"method": "rbc(1)"}, "phi of rbc must be between 0 and 1"),
        ({"method": "rbc(True)"}, "phi of rbc must be between 0 and 1"),
        ({"method": "rrf(kk=1)"}, 'no setting of rrf "kk". Did you mean k?'),
        ({"method": "rrf(1, k=2)"}, '"k" is given twice'),
        ({"method": "rrf(1, 2)"}, "too many settings"),
        ({"method": "isr(norm=max)"}, 'no setting of isr "norm"'),
        ({"method": "wsum(norm=minmax)"}, 'no normalisation "minmax". Did you mean min-max?'),
        ({"method": 60}, "a method of fusion is a text"),
        ({"weights": [1]}, "expected 2 weights"),
        ({"weights": "0.5,0.3,0.2"}, "expected 2 weights"),
        ({"weights": [1, -1]}, "weights must be finite, not below 0"),
        ({"weights": [1, float("nan")]}, "weights must be finite"),
        ({"weights": [0, 0]}, "not all 0"),
        ({"weights": "a,b"}, "weights are numbers"),
        ({"weights": 3}, "weights are numbers"),
        ({"method": "combsum", "weights": [1, 2]}, "combsum takes no weights: rrf and wsum do"),
        ({"depth": 0}, "depth must be a whole number from 1 on"),
        ({"names": ["x", "x"]}, "expected 2 different names"),
        ({"sweep": True}, "sweep needs runs as legs"),
        ({"metrics": "rr"}, "metrics needs runs as legs"),
    ],
)
def test_bad_settings(settings, said):
    with pytest.raises(karat.KaratError, match=said.replace("(", r"\(").replace(".", r"\.")):
        karat.fuse(A, B, **settings)


@pytest.mark.parametrize(
    ("legs", "settings", "said"),
    [
        ((A, {"p": {"a": 1.0}}), {}, "the legs share no query"),
        ((A, LISTS), {"method": "wsum"}, "wsum fuses scores, but B has none"),
        ((A, {"q": {"a": float("nan")}}), {}, "is not a number"),
        ((A, {"q": {"a": float("inf")}}), {"method": "combsum"}, 'B: query "q" has an infinite score'),
        ((A, {"q": {"a": -1.0, "b": -2.0}}), {"method": "combsum(norm=max)"}, "only scores below 0"),
        ((A, 3), {}, "a leg is a run"),
        ((A, "nowhere.run"), {}, "nowhere.run"),
        ((A, {"q": [{"text": "some text"}]}), {}, "no field in common"),
    ],
)
def test_bad_legs(legs, settings, said):
    with pytest.raises(karat.KaratError, match=said):
        karat.fuse(*legs, **settings)


def test_one_leg_is_not_enough(capsys, tmp_path):
    with pytest.raises(TypeError):
        karat.fuse(A)  # type: ignore[call-arg]
    assert main(["fuse", "a.parquet"]) == 2
    assert "karat fuse needs LEG" in capsys.readouterr().err


def test_legs_without_scores_are_fused_by_rank():
    assert karat.fuse(A, LISTS, method="wsum(norm=rank)").retrieved == {"q": {"a": 1.0}}
    assert karat.fuse(A, LISTS, method="borda").retrieved == {"q": {"a": 2.0}}
    assert karat.fuse(A, {"q": {"a": float("inf")}}).retrieved["q"] == {"a": 2 / 61}


def test_a_query_that_a_leg_lacks_is_counted():
    found = karat.fuse({"q1": ["a"], "q2": ["b"]}, {"q1": ["c"]}, names=["bm25", "dense"])
    assert list(found.retrieved) == ["q1", "q2"]
    assert found.retrieved["q2"] == {"b": 1 / 61}
    assert found.remarks() == ["1 of 2 queries is not in dense: ranked by the other legs, which have it."]


def test_runs_that_cannot_be_compared_are_refused():
    first = karat.evaluate(retrieved={"q1": ["a"], "q2": ["b"]}, gold={"q1": ["a"], "q2": ["a"]}, metrics="rr")
    other_gold = karat.evaluate(retrieved={"q1": ["a"], "q2": ["b"]}, gold={"q1": ["a"], "q2": ["b"]}, metrics="rr")
    fewer = karat.evaluate(retrieved={"q1": ["a"]}, gold={"q1": ["a"]}, metrics="rr")
    other_metric = karat.evaluate(retrieved={"q1": ["a"], "q2": ["b"]}, gold={"q1": ["a"], "q2": ["a"]}, metrics="ap")
    for other in (other_gold, fewer):
        with pytest.raises(karat.BadArgument, match="cannot be compared"):
            karat.fuse(first, other)
    found = karat.fuse(first, fewer, allow_mismatch=True)
    assert found.ids == ["q1"]
    assert "in spite of differences" in found.remarks()[0]
    assert karat.fuse(first, other_gold, allow_mismatch=True).run.mean["rr"] == 0.5
    with pytest.raises(karat.BadArgument, match="no metric in common"):
        karat.fuse(first, other_metric)
    with pytest.raises(karat.UnknownName, match="recall@5"):
        karat.fuse(first, first, metrics="recall@5")


def test_too_few_queries_for_a_sweep():
    run = karat.evaluate(retrieved={"q1": ["a"]}, gold={"q1": ["a"]}, metrics="rr")
    with pytest.raises(karat.BadArgument, match="a sweep with 5 folds needs at least 10 queries with a defined rr"):
        karat.fuse(run, run, sweep=True)
    with pytest.raises(karat.BadArgument, match="folds must be a whole number from 2 on"):
        karat.fuse(run, run, sweep=True, folds=1)
    with pytest.raises(karat.BadArgument, match="a sweep chooses the weights itself"):
        karat.fuse(run, run, sweep=True, weights=[1, 1])


# ---- files and the command line -------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for run, name in zip(two_legs(30), ("bm25", "dense"), strict=True):
        run.save(f"{name}.parquet")
    return tmp_path


def test_the_command(folder, capsys):
    assert main(["fuse", "bm25.parquet", "dense.parquet", "-o", "fused.parquet", "--trec", "fused.trec"]) == 0
    out = capsys.readouterr().out
    assert "rrf(k=60) of bm25, dense · 30 queries" in out
    assert "Ceiling: " in out
    assert "Saved to fused.parquet" in out
    found = karat.fuse("bm25.parquet", "dense.parquet")
    assert karat.load("fused.parquet").mean == found.run.mean
    gold = {query: ["gold"] for query in found.ids}
    again = karat.evaluate(retrieved="fused.trec", gold=gold, metrics="recall@1,3 rr")
    assert again.mean == found.run.mean
    assert karat.fuse("fused.trec", "fused.trec", method="combmax(norm=none)").retrieved == found.retrieved


def test_formats(folder, capsys):
    arguments = ["fuse", "bm25.parquet", "dense.parquet", "--sweep", "--metric", "rr", "--folds", "3"]
    for form in ("json", "csv", "markdown"):
        assert main([*arguments, "--format", form, "-o", "fused.parquet"]) == 0
        out, err = capsys.readouterr()
        assert "Saved to fused.parquet" in err
        if form == "json":
            values = json.loads(out)
            assert values["sweep"]["folds"] == 3
            assert values["comparison"]["names"][1] == "fused"
        elif form == "csv":
            assert out.splitlines()[0] == "query_id,rank,id,score"
            items = karat.fuse("bm25.parquet", "dense.parquet").retrieved.values()
            assert len(out.splitlines()) == 1 + sum(map(len, items))
        else:
            assert "| setting | weights | rr | chosen in folds |" in out
    found = karat.fuse("bm25.parquet", "dense.parquet", sweep=True)
    assert "<table>" in found._repr_html_()


def test_outputs_are_checked_before_any_work(folder, capsys):
    for arguments, said in (
        (["-o", "bm25.parquet"], "bm25.parquet"),
        (["-o", "fused.csv"], "a run is saved as Parquet"),
        (["--trec", "dense.parquet"], "dense.parquet"),
        (["-o", "x.parquet", "--trec", "x.parquet"], "the same file"),
        (["--method", "rff"], "Did you mean rrf?"),
        (["--weights", "1"], "expected 2 weights"),
        (["--metric", "recall@7", "--sweep"], 'no metric in every leg "recall@7"'),
    ):
        assert main(["fuse", "bm25.parquet", "dense.parquet", *arguments]) == 2
        assert said in capsys.readouterr().err


def test_results_without_gold_are_fused_to_a_trec_file(folder, capsys):
    (folder / "a.jsonl").write_text('{"id": "q", "retrieved": ["a", "b"], "gold": ["a"]}\n')
    (folder / "b.run").write_text("q Q0 b 1 2.0 t\nq Q0 c 2 1.0 t\n")
    assert main(["fuse", "a.jsonl", "b.run", "--trec", "c.run"]) == 0
    assert "items" in capsys.readouterr().out
    lines = [line.split() for line in (folder / "c.run").read_text().splitlines()]
    assert [(line[2], line[3]) for line in lines] == [("b", "1"), ("a", "2"), ("c", "3")]
    assert main(["fuse", "a.jsonl", "b.run", "-o", "c.parquet"]) == 2
    assert "there is no fused run to save" in capsys.readouterr().err
    assert not (folder / "c.parquet").exists()


def test_a_trec_file_cannot_hold_white_space(tmp_path):
    with pytest.raises(karat.BadArgument, match="white space"):
        karat.fuse({"q": ["a b"]}, {"q": ["c"]}).to_trec(tmp_path / "x.run")


def test_a_table_of_samples_in_parquet_is_not_taken_for_a_run(tmp_path):
    import polars as pl

    path = tmp_path / "samples.parquet"
    pl.DataFrame({"id": ["q"], "retrieved": [["a", "b"]], "gold": [["a"]]}).write_parquet(path)
    assert list(karat.fuse(path, {"q": ["b"]}).retrieved["q"]) == ["b", "a"]
