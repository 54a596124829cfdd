"""`claims(joint=true)`: the claims of a short answer are extracted and attributed in one call."""

from __future__ import annotations

from itertools import count

import pytest

import karat
from karat.errors import BadArgument
from karat.judges import find_judge
from karat.judges.attribution import SHORT
from karat.judges.claims import Claims
from support.scripted import Scripted

A, B = "rain fell in Leeds", "the museum is closed"
ROW = {"id": "1", "query": "q", "answer": f"{A}. {B}. it snowed", "retrieved": [{"text": f"{A} today"}, {"text": B}]}


def run(model, rows=(ROW,), **settings):
    judge = Claims(model, joint=settings.pop("joint", True), **settings)
    return karat.evaluate(list(rows), "context_recall recall@1", judge=judge)


def test_one_call_gives_what_two_calls_give():
    one, two = Scripted(), Scripted()
    joint, apart = run(one, cache=False), run(two, joint=False, cache=False)
    assert (one.kinds(), two.kinds()) == (["joint"], ["extract", "attribute"])
    assert joint.mean == apart.mean == pytest.approx({"context_recall": 2 / 3, "recall@1": 1 / 3})
    assert list(joint.hits("1")) == list(apart.hits("1"))


def test_several_passages_may_be_needed_together():
    def change(kind, reported):
        claim, *_ = reported["claims"]
        return {"claims": [{**claim, "passages": [1, 2], "together": 1}]}

    assert run(Scripted(change), cache=False).mean == {"context_recall": 1.0, "recall@1": 0.0}


def test_blank_claims_are_left_out_and_the_first_of_two_equal_ones_counts():
    def change(kind, reported):
        first, second, third = reported["claims"]
        return {"claims": [first, {**third, "claim": "  "}, {**third, "claim": f" {A}\n"}, second]}

    found = run(Scripted(change), cache=False)
    assert [item.gold for item in found.gold("1")] == [A, B]
    assert found.mean["context_recall"] == 1


@pytest.mark.parametrize("wrong", [{"passages": [3]}, {"verdict": 0}, {"passages": []}, {"claim": 1}])
def test_an_answer_that_breaks_the_rules_is_requested_again(wrong):
    def change(kind, reported):
        if len(model.sent) == 1:
            return {"claims": [{**reported["claims"][0], **wrong}]}
        return reported

    model = Scripted(change)
    assert run(model, cache=False, backoff=0).mean["context_recall"] == pytest.approx(2 / 3)
    assert len(model.sent) == 2


def test_a_failure_is_missing():
    def change(kind, reported):
        return {"claims": 3} if "broken" in model.sent[-1][0][-1]["content"] else reported

    model = Scripted(change)
    found = run(model, [ROW, {**ROW, "id": "2", "query": "broken"}], cache=False, retries=0)
    assert found.all_hits.failed == {1: "answer.claims is not of type array (1 call)"}
    assert found.undefined["context_recall"] == 1
    assert found.mean["context_recall"] == pytest.approx(2 / 3)


def test_a_later_run_has_the_same_claims(tmp_path):
    """The claims are those of the first run, in one call for other passages, and in none for the same."""
    model = Scripted()
    other = {**ROW, "retrieved": [{"text": f"{B} it snowed"}]}
    first = run(model, cache=tmp_path / "c")
    second = run(model, [other], cache=tmp_path / "c")
    assert model.kinds() == ["joint", "attribute"]
    assert [[item.gold for item in one.gold("1")] for one in (first, second)] == [[A, B, "it snowed"]] * 2
    again = run(model, cache=tmp_path / "c"), run(model, [other], cache=tmp_path / "c")
    assert len(model.sent) == 2
    assert [one.mean for one in again] == [first.mean, second.mean]


def changing():
    """A model with other claims in every answer."""
    numbers = count()

    def change(kind, reported):
        number = next(numbers)
        if kind == "extract":
            return {"claims": [f"{one} {number}" for one in reported["claims"]]}
        if kind == "attribute":
            return reported
        return {"claims": [{**one, "claim": f"{one['claim']} {number}"} for one in reported["claims"]]}

    return Scripted(change)


def test_claims_do_not_depend_on_what_was_asked_in_between(tmp_path):
    model = changing()
    other = {**ROW, "retrieved": [{"text": B}]}
    first = run(model, cache=tmp_path / "c")
    run(model, joint=False, cache=tmp_path / "c")
    second = run(model, [other], cache=tmp_path / "c")
    again = run(model, cache=tmp_path / "c")
    claims = [[item.gold for item in one.gold("1")] for one in (first, second, again)]
    assert claims[0] == claims[1] == claims[2]
    assert karat.compare(first, second)


def test_one_text_has_one_set_of_claims_in_a_batch(tmp_path):
    model = changing()
    rows = [ROW, {**ROW, "id": "2", "retrieved": [{"text": B}]}]
    found, again = (run(model, rows, cache=tmp_path / "c") for _ in range(2))
    assert sorted(model.kinds()) == ["attribute", "joint", "joint"]
    for one in (found, again):
        assert [item.gold for item in one.gold("1")] == [item.gold for item in one.gold("2")]


def test_claims_that_were_extracted_without_passages_are_used_and_not_mixed(tmp_path):
    model = Scripted()
    run(model, cache=tmp_path / "c")
    run(model, joint=False, cache=tmp_path / "c")
    assert model.kinds() == ["joint", "extract", "attribute"], "claims in sight of passages are not used for others"
    model = Scripted()
    run(model, joint=False, cache=tmp_path / "d")
    run(model, [{**ROW, "retrieved": [{"text": B}]}], cache=tmp_path / "d")
    assert model.kinds() == ["extract", "attribute", "attribute"]


def test_a_long_answer_or_many_passages_take_more_calls():
    model = Scripted()
    words = " ".join(f"word{n}" for n in range(SHORT))
    run(model, [{**ROW, "answer": words}], cache=False)
    assert model.kinds() == ["extract", "attribute"]
    model = Scripted()
    run(model, [{**ROW, "retrieved": [{"text": f"{n} " * 300} for n in range(3)]}], cache=False, per_call=500)
    assert model.kinds()[0] == "extract"
    model = Scripted()
    run(model, [{**ROW, "retrieved": []}, ROW | {"id": "2"}], cache=False)
    assert sorted(model.kinds()) == ["extract", "joint"]


@pytest.mark.parametrize(
    "settings", [{"repeats": 3}, {"partial": True, "of": "gold"}, {"split": "sentences"}, {"joint": "yes"}]
)
def test_settings_that_need_claims_first_are_refused(settings):
    with pytest.raises(BadArgument, match="joint"):
        Claims(Scripted(), **{"joint": True, **settings})
    with pytest.raises(BadArgument):
        Claims("lexical", joint=True)


def test_it_is_a_setting_on_the_command_line_too():
    judge = find_judge("claims(gpt-4o-mini, joint=true)")
    assert isinstance(judge, Claims)
    assert judge.name == "claims(gpt-4o-mini, joint=True)"
    assert judge.with_settings(max_calls=3).settings["joint"] is True
