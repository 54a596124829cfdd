"""Bad samples and runs of stages."""

from __future__ import annotations

import json

import pytest

import karat
from karat.cli import main
from karat.scale.memory import MemoryLimits
from support.staged import SAMPLES


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"gold": ["a"], "retrieved": ["a"]}], {}, 'samples: no column "stages"'),
        ([{"gold": ["a"], "stages": {"one": ["a"]}}], {}, "one stage is nothing to compare with"),
        ([{"gold": ["a"], "stages": {"one": ["a"], "two": None}}], {}, 'no query has a ranking of stage "two"'),
        ([*SAMPLES, {"id": "q6", "gold": ["a"]}], {}, "samples, sample 6: the query has no stage"),
        ([*SAMPLES, {"id": "q6", "gold": ["a"], "stages": ["a"]}], {}, 'samples, sample 6: field "stages": expected'),
        ([{"gold": ["a"], "stages": {"one": ["a"], "two": [1.5]}}], {}, 'stage "two": samples, sample 1'),
        ([{"gold": ["a"], "stages": {"one": ["a"], " ": ["a"]}}], {}, "the name of a stage is a text"),
        ([{"stages": {"one": ["a"], "two": ["a"]}}], {}, 'no column "gold"'),
        (SAMPLES, {"names": ["bm25", "rerankd"]}, 'no stage "rerankd". Did you mean reranked?'),
        (SAMPLES, {"names": ["bm25", "bm25"]}, "a stage is named twice"),
        (SAMPLES, {"names": "bm25"}, "one stage is nothing to compare with"),
        (SAMPLES, {"k": 0}, "k is a whole number from 1"),
        (SAMPLES, {"judge": "relevance(gpt-4o-mini)", "metrics": "rr"}, "would have different gold"),
        (SAMPLES, {"metrics": "full_rank"}, "a run needs at least one metric"),
    ],
)  # fmt: skip
def test_bad_samples(rows, options, message):
    with pytest.raises(karat.KaratError) as error:
        karat.stages(rows, **({"metrics": "recall@2"} | options))
    assert message in str(error.value)


def test_stages_and_retrieved_exclude_each_other():
    rows = [row | {"retrieved": ["a"]} for row in SAMPLES]
    for call in (karat.stages, karat.evaluate):
        with pytest.raises(karat.InputError, match='both "stages" and "retrieved" are given') as error:
            call(rows, "rr")
        assert error.value.hint == 'drop "stages" to evaluate "retrieved", or drop "retrieved" to compare the stages'


def test_a_field_called_stages_is_only_a_field():
    rows = [{"retrieved": ["a"], "gold": ["a"], "stages": 3}]
    assert karat.evaluate(rows, "rr").meta == {"stages": [3]}


def test_evaluate_refers_to_stages(tmp_path, capsys):
    with pytest.raises(karat.InputError, match='samples have "stages", not one ranking each') as error:
        karat.evaluate(SAMPLES, "rr")
    assert error.value.hint == "karat.stages(samples)"
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, SAMPLES)))
    for memory in ("1GiB", MemoryLimits(1, fewest_rows=2, item_bytes=0)):
        with pytest.raises(karat.InputError) as error:
            karat.evaluate(path, "rr", memory=memory)
        assert error.value.hint == f"karat stages {path}"
    assert main(["eval", str(path), "rr"]) == 2
    assert f"try  karat stages {path}" in capsys.readouterr().err


def test_contradicting_orders():
    rows = [SAMPLES[0], SAMPLES[1] | {"stages": dict(reversed(SAMPLES[1]["stages"].items()))}]
    with pytest.raises(karat.InputError, match='"bm25" is before "dense" in samples, sample 1, and after it'):
        karat.stages(rows, "rr")
    assert list(karat.stages(rows, "rr", names=["bm25", "dense", "reranked"]).runs) == ["bm25", "dense", "reranked"]


def test_stages_of_different_kinds():
    rows = [{"gold": [{"id": "a", "text": "A text"}], "stages": {"one": [{"id": "a"}], "two": [{"text": "A text"}]}}]
    with pytest.raises(karat.InputError, match="items of different kinds"):
        karat.stages(rows, "rr")


def evaluated(ranking, gold="a", **options):
    return karat.evaluate(retrieved={"q": list(ranking)}, gold={"q": list(gold)}, **({"metrics": "rr"} | options))


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ([evaluated("a")], {}, "one run is one stage"),
        (evaluated("a"), {}, "one run is one stage"),
        ([evaluated("a"), evaluated("a", "b")], {}, "their gold differs"),
        ([evaluated("a"), evaluated("a", convention="llamaindex")], {}, "their conventions differ"),
        ([evaluated("a"), evaluated("a", metrics="ap")], {}, "the stages have no metric to compare"),
        ([evaluated("a"), evaluated("a")], {"judge": "ids"}, "runs are judged already: judge cannot be changed"),
        ([evaluated("a"), evaluated("a")], {"order": "score"}, "order cannot be changed"),
        ([evaluated("a"), evaluated("a")], {"names": ["one"]}, "expected 2 different names"),
        ([evaluated("a"), evaluated("a")], {"metrics": "recall@5"}, 'no metric in every stage "recall@5"'),
        ({"one": evaluated("a"), "two": evaluated("a")}, {"names": ["one", "to"]}, 'no stage "to". Did you mean two?'),
        (["none.parquet", "other.parquet"], {}, "no run file none.parquet"),
    ],
)  # fmt: skip
def test_bad_runs(runs, options, message):
    with pytest.raises(karat.KaratError) as error:
        karat.stages(runs, **options)
    assert message in str(error.value)
    assert "allow" not in str(error.value)


def test_runs_without_a_common_query():
    one, two = (karat.evaluate(retrieved={q: ["a"]}, gold={q: ["a"]}, metrics="rr") for q in ("q1", "x7"))
    with pytest.raises(karat.BadArgument, match="one and two share no query"):
        karat.stages({"one": one, "two": two})
