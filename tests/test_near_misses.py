"""Errors that name what was meant: a misspelt field, a sample without results, a grade that is no number."""

import json

import pytest

import karat
from karat.errors import BadArgument, InputError, UnknownName
from karat.metrics.names import parse_stored
from karat.scale.memory import MemoryLimits

GOLD = {"id": "q1", "retrieved": ["a"], "gold": ["a"]}


def refused(samples, metrics="recall@1", **options):
    with pytest.raises(InputError) as error:
        karat.evaluate(samples, metrics, **options)
    return error.value


def test_a_misspelt_mark_of_queries_without_an_answer():
    error = refused([GOLD, {"id": "q2", "retrieved": ["a"], "answerabel": False}])
    assert error.problem == 'samples, sample 2: no field "gold"'
    assert error.hint == 'rename "answerabel" to "answerable"'
    alone = refused([{"id": "q2", "retrieved": ["a"], "answerabel": False}])
    assert alone.hint == error.hint


def test_missing_gold_may_be_a_query_without_an_answer():
    error = refused([GOLD, {"id": "q2", "retrieved": ["a"], "answers": "no"}])
    assert error.hint == '[] if there is nothing, "answerable": false if it has no answer'


def test_misspelt_aspects():
    error = refused([{"retrieved": ["a"], "gold": [{"id": "a", "aspcts": ["price"]}]}], "st_recall@3")
    assert error.hint.startswith('rename "aspcts" to "aspects", or "gold":')
    assert "rename" not in refused([{"retrieved": ["a"], "gold": [{"id": "a", "colour": "red"}]}], "st_recall@3").hint


@pytest.mark.parametrize("memory", ["1GiB", MemoryLimits(3000, fewest_rows=2, item_bytes=0)])
def test_contradictory_marks(tmp_path, memory):
    results, gold = tmp_path / "results.jsonl", tmp_path / "gold.jsonl"
    results.write_text(
        "\n".join(json.dumps({"id": f"q{i}", "retrieved": ["a"], "answerable": i != 1}) for i in range(3))
    )
    gold.write_text("\n".join(json.dumps({"id": f"q{i}", "gold": ["a"], "answerable": True}) for i in range(3)))
    error = refused(results, gold=gold, memory=memory)
    assert error.problem.startswith('query "q1" is marked "answerable" in different ways by results and gold: false in')


def test_marks_that_agree_or_are_on_one_side():
    results = [{"id": "q1", "retrieved": ["a"], "answerable": False}, {"id": "q2", "retrieved": ["a"]}]
    gold = [{"id": "q1", "answerable": False}, {"id": "q2", "gold": ["a"], "answerable": True}]
    assert karat.evaluate(results, "false_alarm@1 recall@1", gold=gold).mean == {"false_alarm@1": 1, "recall@1": 1}


def test_a_threshold_of_scores_in_steps():
    steps = [{"retrieved": [{"id": "a", "score": 0.5}]}, {"retrieved": [{"id": "b", "score": 0.9}]}]
    samples = [{"id": "q1", "steps": steps, "gold": ["a"]}, {"id": "q2", "steps": steps, "answerable": False}]
    error = refused(samples, "recall@3 false_alarm(threshold=0.3)@3")
    assert error.problem == "a threshold of 0.3 needs retrieval scores, and rankings merged from steps have none"
    assert error.hint == "false_alarm@5 without a threshold"


def test_the_decimal_places_of_a_recall_level():
    with pytest.raises(BadArgument, match="at most 9 decimal places"):
        karat.parse("iprec@0.123456789123")


@pytest.mark.parametrize("name", ["nERR_IA@10", "nERR-IA@10", "alpha_DCG@5", "alpha-DCG@5", "nNRBP"])
def test_no_other_measure_is_suggested_for_one_that_karat_lacks(name):
    with pytest.raises(UnknownName, match="is divided by another ideal") as error:
        karat.parse(name)
    assert "Did you mean" not in str(error.value)


def test_samples_without_results_are_not_compared():
    with pytest.raises(InputError, match='query "1" is a sample without "retrieved"'):
        karat.overlap([{"id": "a"}], [{"id": "a"}])


def test_an_unknown_query_of_two_rankings():
    results = {f"query {i}": ["a"] for i in range(9)}
    with pytest.raises(UnknownName) as error:
        karat.overlap(results, results).change("nope")
    assert error.value.hint == "one of: query 0, query 1, query 2, query 3, query 4, …"
    with pytest.raises(UnknownName, match="Did you mean query 8"):
        karat.overlap(results, results).change("query8")


def test_a_grade_that_is_no_number(tmp_path):
    (tmp_path / "a.run").write_text("q1 Q0 a 1 0.9 x\n")
    (tmp_path / "a.qrels").write_text("q1 0 a 1\nq1 0 b high\n")
    error = refused(str(tmp_path / "a.run"), gold=str(tmp_path / "a.qrels"))
    assert error.problem.endswith("line 2: the grade is not a number")
    (tmp_path / "a.qrels").write_text("q1 0 a 1\nq1 b\n")
    assert refused(str(tmp_path / "a.run"), gold=str(tmp_path / "a.qrels")).problem.endswith(
        'line 2: expected "query 0 doc grade"'
    )


def test_a_metric_in_code_without_a_module():
    code = "@karat.metric\ndef bare_metric(hits, k, c):\n    return hits.depth * 0.0\n"
    exec(code, {"karat": karat})
    assert karat.evaluate([GOLD], "bare_metric").mean == {"bare_metric": 0.0}


@pytest.mark.parametrize("name", ["level_share@0.5", "level_share@0,1", "level_share@0.1,1"])
def test_a_stored_metric_of_recall_levels_that_is_not_registered(name):
    assert str(parse_stored(name)) == name
    assert parse_stored(name).at_recall
    assert not parse_stored("top_share@1,10").at_recall
