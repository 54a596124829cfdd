"""Steps: merged rankings, trajectories and hops, against plain twins; in memory, in pieces, in files, and bad input."""

from __future__ import annotations

import json
from math import inf, nan

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.metrics import MEASURES
from karat.metrics import METRICS as METRICS_OF_KARAT
from karat.samples.rankings.steps import MERGES, Merge
from karat.scale.memory import MemoryLimits
from support.two_hops import TWO_HOPS

ITEMS = [f"d{i}" for i in range(9)]
METRICS = (
    "recall@2 recall precision@3 ndcg rr full_rank steps wasted_steps steps_to_all new_gold new_gold(step=2) repeated "
    "recall_after(step=1) recall_after(step=2) recall_per_step"
)
rankings = st.lists(st.sampled_from(ITEMS), max_size=6)
samples = st.lists(
    st.fixed_dictionaries(
        {
            "steps": st.lists(rankings, max_size=4),
            "gold": st.lists(st.sampled_from(ITEMS), min_size=1, max_size=4, unique=True),
        }
    ),
    min_size=1,
    max_size=5,
)


def distinct(items):
    return list(dict.fromkeys(items))


def merged(steps, how):
    """The plain twin of every merge that needs no scores."""
    if how in ("concat", "union"):
        return distinct(item for step in steps for item in step)
    longest = max(map(len, steps), default=0)
    if how == "interleave":
        return distinct(step[rank] for rank in range(longest) for step in steps if rank < len(step))
    score = {}
    for step in map(distinct, steps):
        for rank, item in enumerate(step, 1):
            score[item] = score.get(item, 0) + 1 / (60 + rank)
    order = distinct(item for step in steps for item in step)
    return sorted(order, key=lambda item: (-score[item], order.index(item)))


def trajectory(steps, gold):
    """The plain twin of every measure of a trajectory."""
    seen, found, new, repeated = set(), set(), [], 0
    after = []
    for step in steps:
        repeated += sum(item in seen for item in step)
        fresh = (set(step) & set(gold)) - found
        new.append(len(fresh))
        found |= fresh
        seen |= set(step)
        after.append(len(found) / len(gold))
    count, returned = len(steps), sum(map(len, steps))

    def until(n):
        return after[min(n, count) - 1] if count else 0.0

    return {
        "steps": count,
        "wasted_steps": new.count(0),
        "steps_to_all": after.index(1.0) + 1 if 1.0 in after else inf,
        "new_gold": sum(new) / count if count else 0.0,
        "new_gold(step=2)": new[1] if count > 1 else nan,
        "repeated": repeated / returned if returned else nan,
        "recall_after(step=1)": until(1),
        "recall_after(step=2)": until(2),
        "recall_per_step": (after[-1] / count) if count else 0.0,
    }


@pytest.mark.parametrize("how", ["concat", "interleave", "rrf(60)"])
@settings(max_examples=80, deadline=None)
@given(rows=samples)
def test_the_merged_ranking_is_that_of_the_twin(how, rows):
    run = karat.evaluate(rows, METRICS, judge="ids", merge=how)
    plain = [{"retrieved": merged(row["steps"], how), "gold": row["gold"]} for row in rows]
    whole = karat.evaluate(plain, "recall@2 recall precision@3 ndcg rr full_rank", judge="ids")
    for name, values in whole.columns.items():
        np.testing.assert_array_equal(run.columns[name], values, err_msg=name)
    for row, sample in enumerate(rows):
        for name, value in trajectory(sample["steps"], sample["gold"]).items():
            assert run.columns[name][row] == pytest.approx(value, nan_ok=True), (name, sample)
        items = run.items(run.ids[row]).retrieved
        assert [item.id for item in items] == plain[row]["retrieved"]


def test_every_metric_of_steps_has_a_twin():
    known = {name.partition("(")[0] for name in trajectory([["a"]], ["a"])} | {"recall_per_1000_tokens"}
    assert known == {name for name, own in {**METRICS_OF_KARAT, **MEASURES}.items() if own.of_steps}


@settings(max_examples=60, deadline=None)
@given(rows=samples, data=st.data())
def test_laws(rows, data):
    """Scores are from 0 to 1, more steps never lose gold, and a query scores the same alone and in any order."""
    run = karat.evaluate(rows, METRICS, judge="ids")
    for values in run.scores.values():
        assert ((values >= 0) & (values <= 1)).all()
    assert (run.scores["recall_after(step=1)"] <= run.scores["recall_after(step=2)"]).all()
    assert (run.scores["recall_after(step=2)"] <= run.scores["recall"]).all()
    assert (run.measured["wasted_steps"] <= run.measured["steps"]).all()
    order = data.draw(st.permutations(range(len(rows))))
    shuffled = karat.evaluate([rows[row] for row in order], METRICS, judge="ids")
    for name, values in run.columns.items():
        np.testing.assert_array_equal(shuffled.columns[name], values[list(order)], err_msg=name)
        alone = [karat.evaluate([row], METRICS, judge="ids").columns[name][0] for row in rows[:2]]
        np.testing.assert_array_equal(alone, values[:2], err_msg=name)


@settings(max_examples=60, deadline=None)
@given(rows=samples, data=st.data())
def test_each_step_alone(rows, data):
    """The table of steps has the means of each step as a ranking of its own, for any merge, as at="step" has."""
    how = data.draw(st.sampled_from(["concat", "interleave", "rrf(60)"]))
    run = karat.evaluate(rows, "recall@2 ndcg", judge="ids", merge=how)
    for row in run.steps.rows:
        own = [
            {"retrieved": sample["steps"][row.step - 1], "gold": sample["gold"]}
            for sample in rows
            if len(sample["steps"]) >= row.step
        ]
        alone = karat.evaluate(own, "recall@2 ndcg", judge="ids")
        assert row.alone == pytest.approx(alone.mean)
        assert row.queries == len(own)
    after = [trajectory(sample["steps"], sample["gold"]) for sample in rows]
    if run.steps.rows:
        assert run.steps.rows[0].recall_after == pytest.approx(np.mean([own["recall_after(step=1)"] for own in after]))


@settings(max_examples=60, deadline=None)
@given(rows=samples)
def test_gold_hidden_by_the_cutoff(rows):
    run = karat.evaluate(rows, "recall@2", judge="ids")
    hidden = 0
    for sample in rows:
        top = merged(sample["steps"], "concat")[:2]
        near = {item for step in sample["steps"] for item in step[:2]}
        hidden += len((near - set(top)) & set(sample["gold"]))
    assert run.steps.hidden == hidden


def test_two_calls_of_ten_and_a_cutoff_of_ten():
    """The second hop is found at rank 1 of the second call, and the merged top 10 do not show it: karat says so."""
    steps = [[f"a{i}" for i in range(10)], [f"b{i}" for i in range(10)]]
    rows = [{"steps": steps, "gold": [{"id": "a0", "hop": 1}, {"id": "b0", "hop": 2}]} for _ in range(6)]
    run = karat.evaluate(rows, "recall@10")
    assert run.mean["recall@10"] == 0.5
    assert [row.alone["recall@10"] for row in run.steps.rows] == [0.5, 0.5]
    assert [row.recall_after for row in run.steps.rows] == [0.5, 1.0]
    assert run.steps.hidden == 6
    shown = str(run)
    assert "6 gold items are in the top 10 of a step, but below the top 10 of the merged ranking" in shown
    assert "Hop 2: of 6 gold items 0 in the top 10, 6 below it, 0 not returned." in shown
    assert karat.evaluate(rows, "recall@10", merge="interleave").mean["recall@10"] == 1.0
    assert karat.evaluate(rows, "recall", merge="union").mean["recall"] == 1.0


def test_two_hops():
    run = karat.evaluate(TWO_HOPS, "recall@2 recall full_rank steps_to_all")
    assert run.mean == {"recall@2": 0.5, "recall": 0.75}
    np.testing.assert_array_equal(run.measured["full_rank"], [4, inf])
    np.testing.assert_array_equal(run.measured["steps_to_all"], [2, inf])
    assert [tuple(row) for row in run.hops] == [(1, 2, 0, 0, 0), (2, 0, 1, 1, 1)]
    first, second = run.steps.rows
    assert (first.name, second.name) == ("first", "second")
    assert (first.latency, second.latency) == (200, 400)
    assert second.repeated == pytest.approx(2 / 4)
    assert "although hop 1 was found" in str(run)


def test_every_form_shows_the_steps(tmp_path):
    run = karat.evaluate(TWO_HOPS, "recall@2")
    for shown in (str(run), run.to_markdown(), run._repr_html_()):
        assert "merged: concat" in shown
        assert "recall after" in shown
    values = run.to_dict()
    assert values["steps"]["rows"][1]["recall_after"] == 0.75
    assert values["hops"][1]["missed_after"] == 1
    json.dumps(values)
    run.report(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text("utf-8")
    assert 'id="steps"' in page


def test_saved_merged_and_taken(tmp_path):
    run = karat.evaluate(TWO_HOPS, METRICS)
    run.save(tmp_path / "run.parquet")
    loaded = karat.load(tmp_path / "run.parquet")
    assert loaded.to_dict() == run.to_dict()
    assert str(loaded.steps) == str(run.steps)
    together = karat.merge([run.take([0]), run.take([1])])
    assert str(together.steps) == str(run.steps)
    assert [tuple(row) for row in together.hops] == [tuple(row) for row in run.hops]
    assert run.take([1]).steps.rows[0].queries == 1
    assert list(run.by("topic")) == ["rivers", "towns"]
    compared = karat.compare(run, karat.evaluate(TWO_HOPS, METRICS, merge="interleave"))
    assert {row.measure for row in compared.measures} >= {"steps", "full_rank"}


@pytest.mark.parametrize("how", ["concat", "interleave", "rrf(60)", "union"])
def test_in_pieces_and_in_processes(tmp_path, how):
    rows = [sample | {"id": f"{sample['id']}-{n}"} for n in range(20) for sample in TWO_HOPS]
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = "recall steps_to_all" if how == "union" else METRICS
    whole = karat.evaluate(path, metrics, merge=how)
    tiny = MemoryLimits(3000, fewest_rows=7, item_bytes=0)
    for other in (
        karat.evaluate(path, metrics, merge=how, memory=tiny),
        karat.evaluate(path, metrics, merge=how, jobs=2, judge="text"),
    ):
        assert other.table.equals(whole.table)
        assert str(other.steps) == str(whole.steps)


def test_at_step():
    run = karat.evaluate(TWO_HOPS, "recall@2 recall", at="step")
    assert run.ids == ["q1#1", "q1#2", "q2#1", "q2#2"]
    assert run.scores["recall"].tolist() == [0.5, 0.5, 0.5, 0]
    assert run.query[:2] == ["birthplace of Kafka", "river in Prague"]
    assert run.by("step")["2"].mean["recall"] == 0.25
    assert list(run.by("step_name")) == ["first", "second"]
    assert list(run.by("sample")) == ["q1", "q2"]
    with pytest.raises(karat.KaratError, match='at="step" needs samples with steps'):
        karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}], "recall", at="step")


@pytest.mark.parametrize("numbers", [True, False])
def test_a_long_table_with_steps(numbers, tmp_path):
    rows = [
        {"query_id": row["id"], "step": at + 1 if numbers else f"s{at}", "doc_id": item, "score": 9.0 - rank}
        for row in TWO_HOPS
        for at, step in enumerate(row["steps"])
        for rank, item in enumerate(step["retrieved"])
    ]
    frame = pl.DataFrame(rows)
    gold = {row["id"]: [item["id"] for item in row["gold"]] for row in TWO_HOPS}
    wanted = karat.evaluate(TWO_HOPS, METRICS)
    given = [frame, frame.sort("doc_id"), frame.to_pandas()] if numbers else [frame]
    frame.write_csv(tmp_path / "run.csv")
    frame.write_parquet(tmp_path / "run.parquet")
    tiny = MemoryLimits(300, fewest_rows=2, item_bytes=0)
    for retrieved in [*given, str(tmp_path / "run.csv"), str(tmp_path / "run.parquet")]:
        run = karat.evaluate(retrieved=retrieved, gold=gold, metrics=METRICS)
        for name, values in wanted.columns.items():
            np.testing.assert_array_equal(run.columns[name], values, err_msg=name)
    large = karat.evaluate(retrieved=str(tmp_path / "run.parquet"), gold=gold, metrics=METRICS, memory=tiny)
    assert large.table.equals(run.table)


def test_records_ranges_texts_and_scores():
    steps = [
        [{"text": "alpha beta", "score": 0.5}, {"text": "gamma", "score": 0.9}],
        [{"text": "delta", "score": 0.7}],
    ]
    rows = [{"steps": [{"retrieved": own} for own in steps], "gold": ["delta"]}]
    best = karat.evaluate(rows, "rr recall@1", judge="text", merge="max")
    assert best.mean["rr"] == 1 / 2
    assert [item.text for item in best.items("1").retrieved] == ["gamma", "delta", "alpha beta"]
    assert karat.evaluate(rows, "rr", judge="text").mean["rr"] == 1 / 3
    assert karat.evaluate(rows, "rr", judge="text", order="score", merge="interleave").mean["rr"] == 1 / 2
    ranges = [
        [{"doc": "d", "start": 0, "end": 5}],
        [{"doc": "d", "start": 0, "end": 5}, {"doc": "d", "start": 9, "end": 12}],
    ]
    spans = [{"steps": ranges, "gold": [{"doc": "d", "start": 9, "end": 12}]}]
    assert karat.evaluate(spans, "recall rr", judge="spans").mean == {"recall": 1.0, "rr": 0.5}
    numbers = [{"steps": [[1, 2], ["2", 3]], "gold": ["3"]}]
    assert karat.evaluate(numbers, "full_rank recall").measured["full_rank"].tolist() == [3]
    scored = [{"steps": [{"retrieved": {"a": 1.0, "b": 2.0}}, {"retrieved": {"c": 5.0}}], "gold": ["c"]}]
    assert karat.evaluate(scored, "rr", merge="max").mean["rr"] == 1.0
    assert karat.evaluate(scored, "rr").mean["rr"] == 1 / 3


def test_recall_per_tokens():
    given = [{"steps": [{"retrieved": ["a"], "tokens": 300}, {"retrieved": ["b"], "tokens": 200}], "gold": ["a", "c"]}]
    run = karat.evaluate(given, "recall recall_per_1000_tokens")
    assert run.measured["recall_per_1000_tokens"].tolist() == [1.0]
    texts = [{"steps": [["one two three"], ["four", "one two three"]], "gold": ["four"]}]
    run = karat.evaluate(texts, "recall recall_per_1000_tokens", judge="text")
    assert run.measured["recall_per_1000_tokens"].tolist() == [pytest.approx(1000 / 7)], "each text that was returned"


def test_notes_on_empty_steps_and_hops():
    rows = [
        {"id": "q1", "steps": [[], ["a"]], "gold": [{"id": "a", "hop": 2}]},
        {"id": "q2", "steps": [], "gold": [{"id": "b", "hop": 1}, {"id": "c"}]},
    ]
    shown = str(karat.evaluate(rows, "recall"))
    assert "1 of 2 steps returned nothing." in shown
    assert "1 query has no step (q2): nothing was retrieved." in shown
    assert "1 of 3 gold items have no hop" in shown
    assert "1 query has gold of a hop without gold of the hop before it (q1)." in shown


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        ({"retrieved": ["a"], "steps": [["a"]]}, 'has "retrieved" and "steps"; expected one of them'),
        ({"steps": "a"}, 'field "steps" is a str; expected a list of steps'),
        ({"steps": {"retrieved": ["a"]}}, 'field "steps" is a dict; expected a list of steps'),
        ({"steps": ["a"]}, "step 1: a step is a dict, not a str"),
        ({"steps": [{"retrieved": ["a"]}, {"query": "x"}]}, 'step 2: no "retrieved"'),
        ({"steps": [{"retreived": ["a"]}]}, '"retreived" looks like it'),
        ({"steps": [{"retrieved": ["a", 1.5]}]}, "step 1: item 2 of retrieved is a float"),
        ({"steps": [{"retrieved": ["a"], "latency": -1}]}, '"latency" is not a number from 0 on'),
        ({"steps": [{"retrieved": ["a"], "tokens": "x"}]}, '"tokens" is not a number from 0 on'),
        ({"steps": [{"retrieved": ["a"], "name": 3}]}, '"name" is not a text'),
    ],
)
def test_bad_steps(sample, message):
    with pytest.raises(karat.KaratError) as error:
        karat.evaluate([sample | {"gold": ["a"]}], "recall")
    assert message in str(error.value)


def test_bad_mixtures():
    with pytest.raises(karat.KaratError, match='has "retrieved", others have "steps"'):
        karat.evaluate([{"steps": [["a"]], "gold": ["a"]}, {"retrieved": ["a"], "gold": ["a"]}], "recall")
    with pytest.raises(karat.KaratError, match='"hop" of a gold record is not a whole number from 1 on'):
        karat.evaluate([{"steps": [["a"]], "gold": [{"id": "a", "hop": 0}]}], "recall")
    with pytest.raises(karat.KaratError, match="needs samples with steps"):
        karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}], "recall steps")
    with pytest.raises(karat.KaratError, match="the steps have none"):
        karat.evaluate([{"steps": [["a"]], "gold": ["a"]}], "recall", merge="max")
    with pytest.raises(karat.KaratError, match="a step is a whole number from 1 on"):
        karat.evaluate([{"steps": [["a"]], "gold": ["a"]}], "recall_after(step=0)")
    with pytest.raises(karat.KaratError, match="needs an order"):
        karat.evaluate([{"steps": [["a"]], "gold": ["a"]}], "recall@5", merge="union")
    with pytest.raises(karat.KaratError, match="needs an order"):
        karat.evaluate([{"steps": [["a"]], "gold": ["a"]}], "recall rr", merge="union")


@pytest.mark.parametrize("given", ["concatenate", "rrf(x)", "rrf(-1)", "concat(5)", "rrf(60, 70)", "", 5])
def test_unknown_merges(given):
    with pytest.raises(karat.KaratError):
        karat.evaluate([{"steps": [["a"]], "gold": ["a"]}], "recall", merge=given)


def test_merges_are_written_as_they_are_read():
    for name in MERGES:
        assert Merge.of(str(Merge.of(name))) == Merge.of(name)
    assert str(Merge.of("rrf")) == "rrf(60)"
    assert Merge.of("rrf(k=10)") == Merge.of("rrf(10)")
