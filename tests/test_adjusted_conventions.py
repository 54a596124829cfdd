"""Conventions with settings: `standard(ties=given)`, `llamaindex(empty_gold=0)`."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import pytest

import karat
from karat.cli import main
from karat.conventions import CONVENTIONS, find_convention, questions

TIED = {"q": {"b": 1.0, "a": 1.0}}


def test_a_setting_changes_one_choice():
    assert karat.evaluate(retrieved=TIED, gold={"q": ["a"]}, metrics="rr").mean["rr"] == 0.5
    run = karat.evaluate(retrieved=TIED, gold={"q": ["a"]}, metrics="rr", convention="standard(ties=id_ascending)")
    assert run.mean["rr"] == 1.0
    c = find_convention("standard(ties=given)")
    assert c == replace(karat.STANDARD, name="standard(ties=given)", ties="given")


def test_a_score_that_the_library_refuses_can_be_set():
    assert isnan(karat.score("recall@5", ["a"], [], convention="llamaindex"))
    assert karat.score("recall@5", ["a"], [], convention="llamaindex(empty_gold=0)") == 0.0
    assert "empty_gold" not in find_convention("llamaindex(empty_gold=0)").refuses


def test_a_setting_applies_to_every_metric():
    for metric in ("ndcg@5", "ap", "rr", "recall@5"):
        assert karat.score(metric, ["a"], [], convention="continuous-eval(empty_gold=0.5)") == 0.5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("standard", "standard"),
        ("Trec-Eval( ties = given )", "trec_eval(ties=given)"),
        ("standard(ties=id_descending)", "standard"),
        ("standard(scores=double, ties=given)", "standard(ties=given, scores=double)"),
        ("standard(per_rank=precision)", "standard(per_rank=(precision,))"),
        ("standard(per_rank=(ap, ndcg))", "standard(per_rank=(ap, ndcg))"),
        ("trec_eval(empty_gold=undefined)", "trec_eval(empty_gold=undefined)"),
        ("trec_eval(empty_gold=nan, nothing_judged=none)", "trec_eval(empty_gold=undefined, nothing_judged=None)"),
        ("beir(rounding=none)", "beir(rounding=None)"),
        ("futureagi-server(clamped=false)", "futureagi-server(clamped=False)"),
        ("ir-measures(ties=id_descending)", "ir-measures(ties=id_descending)"),  # for rr@k it is another choice
        ("standard(empty_gold=0.0)", "standard(empty_gold=0)"),
    ],
)
def test_names_are_written_in_one_way(text, name):
    c = find_convention(text)
    assert c.name == name
    assert find_convention(c.name).choices().__str__() == str(c.choices())
    assert find_convention(c) is c


def test_adjusting_back_gives_the_convention_itself():
    run = karat.evaluate(retrieved=TIED, gold={"q": ["a"]}, convention="standard(order=score)", order="listed")
    assert run.convention is karat.STANDARD


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("standard(tie=given)", r'convention "standard" has no setting "tie". Did you mean ties\?'),
        ("standard(ties=random)", "ties of a convention must be one of id_descending, id_ascending, given, averaged"),
        ("standard(given)", 'convention "standard": a setting has no name'),
        ("standard(empty_gold=zero)", "empty_gold of a convention must be a number or undefined"),
        ("standard(empty_gold=true)", "empty_gold of a convention must be a number or undefined"),
        ("standard(both_empty=x)", "both_empty of a convention must be a number, undefined or None"),
        ("standard(clamped=1)", "clamped of a convention must be True or False"),
        ("standard(rounding=many)", "rounding of a convention must be 0 to 15 decimal places, or None"),
        ("standard(per_rank=hit)", "per_rank of a convention must be some of recall, precision, ap, ndcg"),
        ("standard(ties=given", "expected name or name"),
        ("standart(ties=given)", r'no convention "standart". Did you mean standard\?'),
    ],
)
def test_what_is_wrong_is_named(text, message):
    with pytest.raises(karat.KaratError, match=message):
        find_convention(text)


def test_an_unknown_setting_lists_all_of_them():
    with pytest.raises(karat.BadArgument) as error:
        find_convention("standard(tie=given)")
    assert all(name in error.value.hint for name in questions())


def test_a_record_with_the_name_of_an_adjusted_one_is_refused():
    with pytest.raises(karat.BadArgument, match="name of another convention"):
        find_convention(karat.Convention(name="standard(ties=given)", gain="binary"))


def test_a_custom_convention_keeps_its_name():
    mine = karat.Convention(name="my own", gain="binary")
    run = karat.evaluate(retrieved=TIED, gold={"q": ["a"]}, convention=mine, order="score")
    assert run.convention.name == "my own(order=score)"
    assert (run.convention.gain, run.convention.order) == ("binary", "score")


def runs(tmp_path, *conventions):
    samples = [{"id": f"q{n}", "retrieved": {"b": 1.0, "a": 1.0}, "gold": ["a"]} for n in range(4)]
    for number, convention in enumerate(conventions):
        run = karat.evaluate(samples, "rr", convention=convention)
        run.save(tmp_path / f"{number}.parquet")
        yield karat.load(tmp_path / f"{number}.parquet")


def test_the_run_file_keeps_it(tmp_path):
    (run,) = runs(tmp_path, "standard(ties=given, empty_gold=0)")
    assert run.convention == find_convention("standard(ties=given, empty_gold=0)")
    assert run.provenance.convention == "standard(ties=given, empty_gold=0)"
    assert "convention: standard(ties=given, empty_gold=0)" in str(run)


def test_runs_with_other_settings_are_not_compared(tmp_path):
    a, b = runs(tmp_path, "standard", "standard(ties=given)")
    message = r"standard, .* has standard\(ties=given\) \(ties: id_descending / given\)"
    with pytest.raises(karat.BadArgument, match=message):
        karat.compare(a, b)
    with pytest.raises(karat.BadArgument, match="convention, ties: id_descending / given"):
        karat.merge([a, b])


def test_an_adjusted_convention_is_explained(capsys):
    assert main(["conventions", "standard(ties=given)"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("standard(ties=given): ")
    assert "ties stay in the order given, not by id" in said
    assert main(["conventions"]) == 0
    listed = capsys.readouterr().out
    assert "per_rank=(precision, ndcg)" in listed  # as it is typed
    assert '"standard(ties=given)"' in listed


def test_rosetta_takes_adjusted_conventions():
    found = karat.rosetta(retrieved=TIED, gold={"q": ["a"]}, metrics="rr", conventions=["standard(ties=given)"])
    assert [dialect.convention for dialect in found.dialects] == ["standard", "standard(ties=given)"]


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_setting_of_every_convention_can_be_written(name):
    base = CONVENTIONS[name]
    for other in CONVENTIONS.values():
        for choice in questions():
            c = find_convention(_with(base, choice, getattr(other, choice)))
            assert str(getattr(c, choice)) == str(getattr(other, choice))


def _with(base, choice, value):
    from karat._internal.grammar import write

    return f"{base.name}({choice}={'undefined' if value != value else write(value)})"
