"""Future AGI's inputs: one ranking or many, rows that fail alone, k, and arbitrary values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.compat import futureagi
from karat.compat.futureagi import Evaluator
from karat.errors import BadArgument

TEMPLATES = tuple(futureagi.TEMPLATES)
EVALUATORS = (Evaluator(), Evaluator(convention="futureagi-server"))


def results(template, hypothesis, reference, k=None, evaluator=EVALUATORS[0]):
    config = None if k is None else {"k": k}
    inputs = {"hypothesis": hypothesis, "reference": reference}
    return evaluator.evaluate(template, inputs, eval_config=config).eval_results


def outputs(*arguments):
    return [result.output for result in results(*arguments)]


# ---- one ranking or many --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hypothesis", "reference", "scores"),
    [
        (["1", "2"], ["2"], [1.0]),
        ([1, 2], [2], [1.0]),
        ([1, 2], ["2", "3"], [0.5]),
        (["[1", "2"], ["2"], [1.0]),  # no JSON, so it is a text
        (['{"a": 1}'], ['{"a": 1}'], [1.0]),
        (["(1)", "(2)"], ["(1)", "(9)"], [0.5]),  # parentheses are text
        (["(1, 2)", "b"], ["(1, 2)"], [1.0]),
        ("(1)", ["(1)"], [1.0]),
        ("(1, 2)", ["1", "3"], [0.5]),
        (["[1, 2]", "[3]"], ["[2]", "[4]"], [1.0, 0.0]),
        ([[]], [["a"]], [0.0]),
        (["[]", "[1]"], [["1"], [1]], [0.0, 1.0]),
        (["a"], [["a"]], [1.0]),  # one ranking beside a batch of one
        ("[1, 2]", ["[2]"], [1.0]),
        ("[]", '["a"]', [0.0]),
        ([], ["a"], [0.0]),
        ('["\\ud800"]', ["\ud800"], [1.0]),
    ],
)
def test_one_ranking_or_a_batch(hypothesis, reference, scores):
    assert outputs("recall_at_k", hypothesis, reference) == scores


@pytest.mark.parametrize(
    ("hypothesis", "reference", "said"),
    [
        ([["a"], ["b"]], ["a"], "a batch of 2 as hypothesis, one ranking as reference"),
        ([["a"], ["b"]], [["a"]], "a batch of 2 as hypothesis, a batch of 1 as reference"),
        (["[1]", "2"], ["2"], '"hypothesis" mixes rankings with single items'),
        (["a"], [["a"], "b"], '"reference" mixes rankings with single items'),
        ([["a"], "b"], [["a"], "b"], "mixes"),
        ([["a"], 5], [["a"], ["b"], ["c"]], "mixes"),
    ],
)
def test_ambiguous_inputs_are_refused(hypothesis, reference, said):
    with pytest.raises(karat.InputError, match=said) as error:
        results("recall_at_k", hypothesis, reference)
    assert 'one ranking: ["a", "b"]; a batch: [["a", "b"], ["c"]]' in str(error.value)


@pytest.mark.parametrize("bad", ["[1", "[" * 100_000, None, 5, {"a": 1}, '{"a": 1}', {"a"}, b"[]"])
def test_values_that_are_no_list(bad):
    for sides in ((bad, ["a"]), (["a"], bad)):
        with pytest.raises(karat.InputError, match="a JSON list in each string"):
            results("recall_at_k", *sides)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "scores"),
    [
        ("['a', 'b']", "('b',)", [1.0]),  # as Python prints lists
        (["['a']", "['b', 'c']"], ["['a']", "['d']"], [1.0, 0.0]),
        ("a text", '["a text", "b"]', [0.5]),  # a plain text is one item
        ("null", ["null"], [1.0]),
        ("{a: 1}", ["{a: 1}"], [1.0]),
        ("(see below)", ["(see below)"], [1.0]),
        ([["a", "b"], ["c"]], ["b", "d"], [1.0, 0.0]),  # one relevant item per query
        (["a", "b"], ["['a']", "['b']"], [1.0, 1.0]),
        (["['a']", "b"], [["a"], ["b"]], [1.0, 1.0]),
        ("", ["a"], [0.0]),
        ("  ", ["a"], [0.0]),
        (["a"], "", [None]),
    ],
)
def test_texts_and_python_lists(hypothesis, reference, scores):
    assert outputs("recall_at_k", hypothesis, reference) == scores


@pytest.mark.parametrize("left", ["hypothesis", "output", "response"])
@pytest.mark.parametrize("right", ["reference", "expected_output", "expected_response", "ground_truth"])
def test_other_names_of_the_inputs(left, right):
    for template in ("recall_at_k", "non_llm_context_recall"):
        (row,) = Evaluator().evaluate(template, {left: ["a"], right: ["a", "b"]}).eval_results
        assert row.output == 0.5
    own = {"hypothesis": ["a"], "reference": ["a"], left: ["a"], right: ["a"], "output": ["x"], "ground_truth": ["x"]}
    assert Evaluator().evaluate("mrr", own).eval_results[0].output == 1.0


@pytest.mark.parametrize("inputs", [None, [], {"hypothesis": ["a"]}, {"reference": ["a"]}, [{"hypothesis": ["a"]}]])
def test_inputs_without_a_side(inputs):
    with pytest.raises(karat.InputError, match="hypothesis"):
        Evaluator().evaluate("mrr", inputs)


# ---- rows that fail alone -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["a", None], 'item 2 of "hypothesis" is null'),
        ([True], 'item 1 of "hypothesis" is a bool; expected a string; got True'),
        ([["a"]], 'item 1 of "hypothesis" is a list'),
        ([10**5000], "too many digits"),
        (None, '"hypothesis" is null; expected a list'),
        ({"a": 1}, '"hypothesis" is a dict; expected a list'),
        ('["a", ', '"hypothesis" is a string that begins like a list, but is none; got \'["a", \''),
        (7, '"hypothesis" is a int; expected a list'),
    ],
)
def test_a_bad_row_fails_alone(row, said):
    good, bad, last = results("recall_at_k", [["a"], row, ["b"]], [["a"], ["a"], ["a"]], 1)
    assert (good.output, bad.output, last.output) == (1.0, None, 0.0)
    assert said in bad.reason
    assert "\n" not in bad.reason
    assert bad.name == "recall_at_k"


def test_a_bad_row_of_the_reference_fails_alone():
    assert outputs("mrr", [["a"], ["a"]], [["a"], None]) == [1.0, None]
    assert outputs("mrr", ['["a"]', '["a"]'], ['["a"]', "[a"], [1, 2]) == [1.0, 1.0, None, None]


# ---- k --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"k": "3.0"}, "k must be an integer"),
        ({"k": "x"}, "k must be an integer"),
        ({"k": 2.0}, "k must be an integer"),
        ({"k": True}, "k must be an integer"),
        ({"k": []}, "k must be an integer"),
        ({"k": [1, None]}, "k must be an integer"),
        ({"k": "0"}, "k must be >= 1"),
        ({"k": 0}, "k must be >= 1"),
        ({"k": [1, -1]}, "k must be >= 1"),
        ({"params": 3}, "params must be a dict"),
        (5, "eval_config must be a dict"),
        ("k", "eval_config must be a dict"),
    ],
)
def test_invalid_k(template, config, said):
    with pytest.raises(BadArgument, match=said) as error:
        Evaluator().evaluate(template, {"hypothesis": ["a"], "reference": ["a"]}, eval_config=config)
    assert error.value.problem.startswith(said)


UNKNOWN = [{"n": 3}, {"k": 1, "n": 3, "m": 4}, {"params": {"n": 3}}, {"params": {"k": 3}, "n": 3}]


def test_a_k_beyond_all_ranks():
    with pytest.raises(BadArgument, match="a cutoff is at least 1 and at most"):
        results("recall_at_k", ["a"], ["a"], 10**30)


@pytest.mark.parametrize("config", UNKNOWN)
def test_unknown_parameters_are_ignored_where_there_are_none(config):
    inputs = {"hypothesis": ["a"], "reference": ["a"]}
    for template in ("recall_at_k", "precision_at_k", "ndcg_at_k"):
        with pytest.raises(BadArgument, match=r"Unknown function params: (m, )?n\n"):
            Evaluator().evaluate(template, inputs, eval_config=config)
    for template in set(TEMPLATES) - {"recall_at_k", "precision_at_k", "ndcg_at_k"}:
        assert Evaluator().evaluate(template, inputs, eval_config=config).eval_results[0].output == 1.0


@pytest.mark.parametrize(
    ("k", "reason"), [("3", "Recall@3"), ("+5", "Recall@5"), (" 1 ", "Recall@1"), (["2"], "Recall@2")]
)
def test_k_as_text(k, reason):
    assert results("recall_at_k", ["a"], ["a"], k)[0].reason == f"{reason}: 1.0"


@pytest.mark.parametrize("config", [None, {}, {"k": None}, {"k": ""}, {"k": " "}, {"params": None}, {"params": {}}])
def test_no_k(config):
    inputs = {"hypothesis": ["a", "b"], "reference": ["b"]}
    assert Evaluator().evaluate("recall_at_k", inputs, eval_config=config).eval_results[0].reason == "Recall@2: 1.0"


def test_k_in_params():
    inputs = {"hypothesis": ["a", "b"], "reference": ["b"]}
    reported = Evaluator().evaluate("mrr", inputs, eval_config={"params": {"k": 1}})
    assert reported.eval_results[0].reason == "MRR@1: 0.0"


# ---- anything at all ------------------------------------------------------------------------------------------------

TEXTS = st.one_of(st.text(max_size=4), st.sampled_from(["a", "b", "[1]", '["a"]', "[", "null", "1", "NaN"]))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=12
)
ROWS = st.lists(TEXTS | st.integers(0, 3), max_size=4)
RANKINGS = st.one_of(ROWS, st.lists(ROWS, max_size=3), st.lists(ROWS | SCALARS, max_size=3))
ANYTHING = VALUES | VALUES.map(json.dumps) | RANKINGS | RANKINGS.map(json.dumps)
KS = st.sampled_from([None, 1, 3, [1, 2], 0, "x", [], 10**9])


FAILURES = (": undefined", "expected", "begins like a list")


@settings(deadline=None, max_examples=500)
@given(st.sampled_from(TEMPLATES), ANYTHING, ANYTHING, KS, st.sampled_from(EVALUATORS))
def test_any_inputs_give_a_score_or_a_reason(template, hypothesis, reference, k, evaluator):
    try:
        reported = results(template, hypothesis, reference, k, evaluator)
    except karat.KaratError:
        return
    assert reported
    for result in reported:
        assert result.output is None or 0.0 <= result.output <= 1.0
        assert (result.output is None) == any(words in result.reason for words in FAILURES)


@settings(deadline=None, max_examples=200)
@given(ANYTHING, ANYTHING)
def test_any_arguments_give_results_or_an_error(template, config):
    inputs = {"hypothesis": ["a"], "reference": ["a"]}
    for arguments in ((template, inputs, {}), ("mrr", template, {}), ("mrr", inputs, {"eval_config": config})):
        *positional, named = arguments
        try:
            reported = Evaluator().evaluate(*positional, **named)
        except karat.KaratError:
            continue
        assert reported.eval_results


@settings(deadline=None)
@given(
    st.sampled_from(TEMPLATES), st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=5), KS, st.sampled_from(EVALUATORS)
)
def test_a_batch_is_its_rows_one_by_one(template, rows, k, evaluator):
    if k in (0, "x", []):
        k = None
    together = results(template, [row for row, _ in rows], [row for _, row in rows], k, evaluator)
    alone = [result for row in rows for result in results(template, [row[0]], [row[1]], k, evaluator)]
    assert [(one.output, one.reason) for one in together] == [(one.output, one.reason) for one in alone]


@settings(deadline=None)
@given(ROWS, ROWS, KS.filter(lambda k: k not in (0, "x", [])))
def test_average_precision_stays_within_one(hypothesis, reference, k):
    for result in results("mean_average_precision", [hypothesis], [reference], k):
        assert result.output is None or 0.0 <= result.output <= 1.0
