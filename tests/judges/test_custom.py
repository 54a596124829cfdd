"""Custom judges: pairwise functions, objects with a name, classes; registered by name or passed directly."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from functools import partial
from operator import eq

import numpy as np
import pytest

import karat
from karat.judges import all_judges, find_judge
from karat.judges.protocol import JUDGES

REMOVE = karat.Convention(name="remove", duplicates="remove")


def same_initial(gold, item):
    """The same first letter."""
    return gold[0] == item[0]


def word_overlap(gold, item):
    """The share of the words of the gold that are in the item."""
    return len(set(gold.split()) & set(item.split())) / len(set(gold.split()))


@pytest.fixture
def registry(monkeypatch):
    """A registry in which judges may be registered for one test."""
    all_judges()  # so that none is imported, and registers, while the registry is replaced
    monkeypatch.setattr("karat.judges.protocol.JUDGES", dict(JUDGES))


def evaluate(metrics, retrieved, gold, judge, **how):
    return karat.evaluate(retrieved=[retrieved], gold=[gold], metrics=metrics, judge=judge, **how)


def test_a_pairwise_function_decides_pair_by_pair():
    run = evaluate("recall@3 precision@3 rr", ["x1", "a1", "a2"], ["a9", "b9"], lambda gold, item: gold[0] == item[0])
    assert run.mean == {"recall@3": 0.5, "precision@3": pytest.approx(2 / 3), "rr": 0.5}
    assert run.provenance.judge == "lambda"
    assert run.hits(1)[0] == (2, "a9", 1.0, "matched by lambda")
    assert evaluate("rr", ["x1", "a1"], ["a9"], same_initial).provenance.judge == "same_initial"


@pytest.mark.parametrize("judge", [eq, partial(lambda case, gold, item: gold == item, "x")])
def test_any_callable_of_two_arguments_is_a_pairwise_judge(judge):
    assert evaluate("rr", ["a", "b"], ["b"], judge).mean["rr"] == 0.5


def test_pairwise_equality_agrees_with_the_judge_exact():
    retrieved, gold = [["a b", "c", "a b"], ["c d"], []], [["c", "a b"], ["x"], ["y"]]
    for c in (karat.STANDARD, REMOVE):
        ours, exact = (
            karat.evaluate(
                retrieved=retrieved, gold=gold, metrics="recall@1,2 precision@2 ap ndcg", judge=j, convention=c
            )
            for j in (lambda gold, item: gold == item, "exact")
        )
        assert ours.mean == exact.mean


def test_a_similarity_multiplies_the_grade():
    gold = [{"text": "one two", "grade": 2}, {"text": "five", "grade": 1}]

    def similarity(gold, item):
        return word_overlap(gold["text"], item)

    run = evaluate("recall precision@2 ndcg", ["two three", "five", "no"], gold, similarity)
    assert [hit[2:] for hit in run.hits(1)] == [(1.0, "similarity 0.50"), (1.0, "matched by similarity")]
    assert (run.mean["recall"], run.mean["precision@2"]) == (1.0, 1.0)
    fuzzy = evaluate("ndcg", ["abcdefghij"], ["abcdefghix"], "fuzzy(0.5, graded=True)").mean["ndcg"]
    assert evaluate("ndcg", ["abcdefghij"], ["abcdefghix"], lambda gold, item: 0.9).mean["ndcg"] == pytest.approx(fuzzy)


@pytest.mark.parametrize("yes", [True, 1, 1.0, np.True_, np.float32(1), np.int64(1)])
@pytest.mark.parametrize("no", [False, 0, 0.0, np.False_, np.float64(0)])
def test_booleans_and_numbers_of_numpy_are_fine(yes, no):
    assert evaluate("rr", ["a", "b"], ["b"], lambda gold, item: yes if gold == item else no).mean["rr"] == 0.5


@pytest.mark.parametrize("result", [None, "x", "0.5", 1.5, -0.1, float("nan"), float("inf"), [1, 0], 10**400])
def test_other_results_are_refused_with_query_and_pair(result):
    with pytest.raises(karat.BadArgument) as error:
        karat.evaluate([{"id": "q7", "retrieved": ["b1"], "gold": ["b9"]}], "rr", judge=lambda gold, item: result)
    for words in ("must return True, False or a similarity from 0 to 1", 'query "q7"', "gold 'b9'", "item 'b1'"):
        assert words in str(error.value)


def test_an_exception_is_reported_with_query_and_pair():
    with pytest.raises(
        karat.BadArgument, match=r"raised ZeroDivisionError: .*query \"q7\", gold 'b9', item 'b1'"
    ) as error:
        karat.evaluate([{"id": "q7", "retrieved": ["b1"], "gold": ["b9"]}], "rr", judge=lambda gold, item: 1 / 0)
    assert isinstance(error.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("judge", [len, lambda gold: True, lambda a, b, c: True, lambda gold, item, *, size: True])
def test_a_function_must_take_two_arguments(judge):
    with pytest.raises(karat.BadArgument, match="takes a gold item and a retrieved item"):
        evaluate("rr", ["a"], ["a"], judge)


@pytest.mark.parametrize("judge", [5, None, karat.Ids, ["ids"]])
def test_other_objects_are_no_judges(judge):
    with pytest.raises(karat.BadArgument, match="expected a judge"):
        evaluate("rr", ["a"], ["a"], judge)


def test_records_have_the_fields_that_were_given():
    seen = []

    def see(gold, item):
        seen.append((gold, item))
        return False

    retrieved = [{"id": 7, "text": "t", "score": 0.5}, {"id": 8, "doc": "d", "start": 1, "end": 4, "score": 0.9}]
    evaluate("rr", retrieved, [{"id": "g", "grade": 2, "group": "x"}, {"id": "h", "doc": "d"}], see)
    high, low = {"id": "8", "doc": "d", "start": 1, "end": 4, "score": 0.9}, {"id": "7", "text": "t", "score": 0.5}
    first, second = {"id": "g", "group": "x", "grade": 2.0}, {"id": "h", "doc": "d", "grade": 1.0}
    assert seen == [(first, low), (first, high), (second, low), (second, high)]
    seen.clear()
    evaluate("rr", [{"id": 1, "text": "a"}], [1], see)
    assert seen == [("1", {"id": "1", "text": "a"})]
    seen.clear()
    karat.evaluate(retrieved={"q": {3: 1.0}}, gold={"q": {4: 1}}, metrics="rr", judge=see)
    assert seen == [("4", "3")]


def test_copies_and_groups_of_a_pairwise_judge():
    chunks = [{"id": "a", "text": "x"}, {"id": "a", "text": "x"}, {"id": "b", "text": "x"}]
    judge = find_judge(lambda gold, item: gold == item["text"])
    assert evaluate("precision@3", chunks, ["x"], judge).mean["precision@3"] == pytest.approx(2 / 3)
    assert evaluate("precision@2", chunks, ["x"], judge, convention=REMOVE).mean["precision@2"] == 1.0
    gold = [{"id": "a", "group": 1}, {"id": "b", "group": 1}, {"id": "c"}]
    run = evaluate("recall rr", ["x", "b"], gold, lambda gold, item: gold["id"] == item)
    assert run.mean == {"recall": 0.5, "rr": 0.5}
    assert evaluate("recall", ["b"], ["b", "b", "c"], eq).mean["recall"] == 0.5


@pytest.mark.parametrize("convention", [karat.STANDARD, REMOVE])
def test_token_budgets_work_with_custom_judges(convention):
    run = evaluate("recall@2t", ["a x", "a x", "b"], ["b"], eq, convention=convention)
    assert run.mean["recall@2t"] == 0.0
    assert evaluate("recall@3t", ["a x", "a x", "b"], ["b"], eq, convention=REMOVE).mean["recall@3t"] == 1.0


@pytest.mark.parametrize(("items", "field"), [(["one", "two"], "id"), (["a b", "c d"], "text")])
@pytest.mark.parametrize("kind", ["pairwise", "object"])
def test_bare_strings_are_stored_as_ids_or_texts_as_auto_would(items, field, kind):
    class Bare:
        name = "bare"

        def __call__(self, samples, convention):
            return karat.judges.Exact()(samples, convention)

    run = evaluate("rr", items, items[1:], eq if kind == "pairwise" else Bare())
    assert run.provenance.compares == field
    assert [getattr(item, field) for item in run.items(1).retrieved] == items


def test_worker_processes_judge_with_a_pairwise_function():
    samples = [{"id": f"q{i}", "retrieved": [f"b{i}", f"a{i}"], "gold": ["a0"]} for i in range(6)]
    one, two = (karat.evaluate(samples, "rr recall@1", judge=same_initial, jobs=jobs) for jobs in (1, 2))
    assert one.mean == two.mean == {"rr": 0.5, "recall@1": 0.0}
    with pytest.raises(karat.BadArgument, match="cannot be sent to a worker process"):
        karat.evaluate(samples, "rr", judge=lambda gold, item: True, jobs=2)


def test_a_registered_function_has_settings(registry):
    @karat.judge("first-letters")
    def first_letters(gold, item, *, size=3):
        """The same first letters."""
        return gold[:size] == item[:size]

    assert first_letters("abc", "abd", size=2)
    assert evaluate("rr", ["abd"], ["abc"], "first-letters").mean["rr"] == 0
    run = evaluate("rr", ["abd"], ["abc"], "first-letters(size=2)")
    assert run.mean["rr"] == 1
    assert run.provenance.judge == "first-letters(size=2)"
    assert run.provenance.judge_settings == {"size": 2}
    with pytest.raises(karat.BadArgument, match=r'no setting "sise"\. Did you mean size\?'):
        find_judge("first-letters(sise=2)")

    @karat.judge  # type: ignore[no-redef]
    def first_letters(gold, item):
        return True

    assert find_judge("first_letters").name == "first_letters"


def test_a_registered_class(registry):
    @karat.judge("shouting")
    class Shouting(karat.Judge):
        """Everything in upper case."""

        needs_gold = False

        def __init__(self, marks=1):
            self.name = f"shouting({marks})"

        def __call__(self, samples, convention):
            return karat.judges.Exact()(samples, convention)

    judge = find_judge("shouting(2)")
    assert isinstance(judge, Shouting)
    assert (judge.name, judge.needs_gold, judge.parallel) == ("shouting(2)", False, True)

    @karat.judge("nameless")
    class Nameless:
        def __call__(self, samples, convention):
            return None

    with pytest.raises(karat.BadArgument, match='judge "nameless" needs an attribute `name`'):
        find_judge("nameless")


@pytest.mark.parametrize("name", ["ids", "auto", "text", "claims", "spans"])
def test_the_names_of_built_in_judges_are_refused(registry, name):
    with pytest.raises(karat.BadArgument, match=f'karat has a judge "{name}"'):
        karat.judge(name)(same_initial)
    assert find_judge(name).name.startswith(name)


def test_a_name_can_be_registered_again(registry):
    karat.judge("mine")(lambda gold, item: False)
    karat.judge("mine")(lambda gold, item: True)
    assert evaluate("rr", ["a"], ["b"], "mine").mean["rr"] == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: karat.judge("two words")(same_initial),
        lambda: karat.judge("f(x)")(same_initial),
        lambda: karat.judge("mine")(5),
        lambda: karat.judge(5),  # type: ignore[call-overload]
        lambda: karat.judge(lambda gold, item: True),
        lambda: karat.judge("mine")(lambda gold: True),
        lambda: karat.judge("mine")(lambda gold, item, *, size: True),
    ],
)
def test_what_cannot_be_registered_is_refused(registry, wrong):
    with pytest.raises(karat.BadArgument):
        wrong()


def test_judges_of_a_file_on_the_command_line(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import karat\n\n@karat.judge('initial')\ndef initial(gold, item, *, size=1):\n"
        "    '''The same first letters.'''\n    return gold[:size] == item[:size]\n"
    )
    (tmp_path / "samples.jsonl").write_text('{"retrieved": ["b1", "a1"], "gold": ["a9"]}\n' * 2)
    command = [sys.executable, "-m", "karat", "eval", "samples.jsonl", "rr", "--import", "mine.py", "--format", "json"]
    for judge, jobs, expected in (("initial", "1", 0.5), ("initial", "2", 0.5), ("initial(size=2)", "1", 0.0)):
        done = subprocess.run(
            [*command, "--judge", judge, "--jobs", jobs], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert json.loads(done.stdout)["mean"] == {"rr": expected}


@pytest.mark.parametrize(
    "judge",
    [
        "ids", "ids(at=doc)", "exact", "auto", "text", "text(fold=(case,))", "contains", "spans", "spans(0.7)",
        "contains(chunk_in_gold, strip=(date, speaker, json), fold=())", "fuzzy", "fuzzy(0.5, rouge_l, graded=True)",
        karat.Spans(corpus={"d": "a text"}), same_initial,
    ],
)  # fmt: skip
def test_judges_can_be_pickled_and_have_plain_settings(judge):
    judge = find_judge(judge)
    again = pickle.loads(pickle.dumps(judge))
    assert (again.name, again.compares, again.fields) == (judge.name, judge.compares, judge.fields)
    assert json.loads(json.dumps(judge.settings)) == judge.settings == again.settings


def test_too_many_matches_of_one_query_are_refused(monkeypatch):
    monkeypatch.setattr("karat.judges.matches._MOST", 9)
    numbers = list(map(str, range(4)))
    many = [{"retrieved": numbers[:3], "gold": numbers[:3]}] * 4
    assert karat.evaluate(many, "recall", judge=lambda gold, item: True).mean["recall"] == 1
    with pytest.raises(karat.InputError, match='query "2": more than 9 pairs of a gold'):
        karat.evaluate([many[0], {"retrieved": numbers, "gold": numbers}], "recall", judge=lambda gold, item: True)
