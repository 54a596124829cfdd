"""Ids that nearly match: the cause that is named, and that applying its remedy really makes them match."""

from __future__ import annotations

import re
import unicodedata
import urllib.parse
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import karat
from karat.samples import id_differences
from karat.samples.id_differences import FOLDS, IdDifference, find_difference

NAMES = {"re": re, "unicodedata": unicodedata, "urllib": urllib}
WORDS = ("Crème", "brûlée", "Guide-A", "faq-7", "x.md", "y_2")


def remedied(difference, side, name):
    """An id after the remedy that the message shows, run as Python."""
    for where, code in difference.steps:
        name = eval(code, NAMES, {"id": name}) if where in ("both", f"the {side}") else name
    return name


def matches(difference, groups):
    return sum(
        remedied(difference, "gold", name) in {remedied(difference, "results", item) for item in results}
        for results, gold in groups
        for name in gold
    )


CASES = {
    "case": (str.upper, "upper and lower case"),
    "slashes": (lambda name: f"a/{name}".replace("/", "\\"), r"\ and /"),
    "decomposed": (lambda name: unicodedata.normalize("NFD", name), "Unicode normalisation"),
    "white space": (lambda name: f" {name} ", "white space"),
    "prefix": (lambda name: f"docs/{name}", 'the prefix "docs/" of the results'),
    "suffix": (lambda name: f"{name}.0", 'the suffix ".0" of the results'),
    "encoded": (urllib.parse.quote, "percent-encoding"),
}


@pytest.mark.parametrize("cause", CASES)
def test_the_cause_is_named_with_a_remedy(cause):
    change, phrase = CASES[cause]
    gold = [f"a/{word}" if cause == "slashes" else word for word in WORDS]
    results = [change(word) for word in WORDS]
    changed = [(r, g) for r, g in zip(results, gold, strict=True) if r != g]
    groups = [([r], [g]) for r, g in changed]
    found = find_difference(groups)
    assert found.phrase == phrase
    assert (found.count, found.of) == (len(changed), len(changed))
    assert matches(found, groups) == len(changed)
    swapped = find_difference([(g, r) for r, g in groups])
    assert swapped.phrase == phrase.replace("of the results", "of the gold")


@pytest.mark.parametrize(
    ("results", "gold", "phrase"),
    [
        (["q007", "q010"], ["q7", "q10"], "leading zeros"),
        (["a.md", "b.txt"], ["a.html", "b"], "the file extension"),
        (["kb/2023/a", "kb/2024/b"], ["a", "b"], "the folder"),
        (["C:\\KB\\A.md", "C:\\KB\\B.md"], ["kb/a.md", "kb/b.md"],
         '\\ and /, upper and lower case, and the prefix "c:/" of the results'),
        (["docs/guide-1", "docs/guide-2", "docs/guide-3"], ["kb/guide-1", "kb/guide-2", "kb/guide-3"],
         'the prefix "docs" of the results and "kb" of the gold'),
        ([f"C:\\KB\\Doc{i}" for i in range(5)], [f"kb/doc{i}" for i in range(5)],
         '\\ and /, upper and lower case, and the prefix "c:/" of the results'),
        (["q10", "q11", "q12"], ["topic-10", "topic-11", "topic-12"],
         'the prefix "q" of the results and "topic-" of the gold'),
        (["\ufeffq1"], ["q1"], "white space"),
    ],
)  # fmt: skip
def test_other_causes(results, gold, phrase):
    found = find_difference([(results, gold)])
    assert found.phrase == phrase
    assert matches(found, [(results, gold)]) == found.count == len(gold)


@pytest.mark.parametrize(
    ("results", "gold"),
    [
        (["abc"], ["xyz"]),
        (["11", "12"], ["1", "2"]),  # all begin with 1, by chance
        (["faq-1", "faq-2"], ["ref-1", "ref-2"]),  # two ids may be equal by chance
        (["x/index.md"], ["y/index.md"]),
        (["x"], ["y"]),
        ([], ["a"]),
        (["a"], []),
        ([""], ["a"]),
        (["a"], [""]),
        (["a", "b"], ["a"]),  # equal: something else excludes them
    ],
)
def test_no_cause_is_claimed(results, gold):
    assert find_difference([(results, gold)]) is None


NAME = st.text(st.sampled_from("aAbBéÉe\u0301/\\._- 0127%ﬁ#"), min_size=1, max_size=6)
GROUPS = st.lists(st.tuples(st.lists(NAME, max_size=5), st.lists(NAME, max_size=3)), min_size=1, max_size=5)


@given(GROUPS, st.sampled_from(["", "docs/", "A-", "é/"]), st.sampled_from(["", ".md", "#1"]))
@example([(["É"], ["e\u0301"])], "", "")
@example([(["%2"], ["2"])], "", "")
@example([(["a"], ["a"])], "", "")
@example([([" "], [" "])], "", "")
def test_a_claimed_cause_makes_ids_match(groups, prefix, suffix):
    groups = [([f"{prefix}{item}{suffix}" for item in results], gold) for results, gold in groups]
    found = find_difference(groups)
    if found is not None:
        equal = sum(name in results for results, gold in groups for name in gold)
        assert matches(found, groups) == found.count > equal
        assert found.of == sum(len(gold) for _, gold in groups)
        assert len(found.folds) + bool(found.end) > 0


def test_long_prefixes_and_one_match_among_many():
    prefix = "".join(f"folder-{i}/" for i in range(25))
    results = [f"{prefix}{'x' * (i % 200)}{i}" for i in range(9_000)]
    for place in (17, 8_999):
        found = find_difference([(results, [results[place].removeprefix(prefix)])])
        assert (found.end, found.results, found.count) == ("prefix", prefix, 1)
    some = [results[i].removeprefix(prefix) for i in range(0, 1_000, 2)]  # of many lengths
    found = find_difference([(results, some)])
    assert (found.results, found.count) == (prefix, len(some))


def test_the_number_of_comparisons_is_limited(monkeypatch):
    monkeypatch.setattr(id_differences, "_TRIED", 100)
    results = [f"docs/{'x' * (i % 50)}-{i}" for i in range(2_000)]
    gold = [name.removeprefix("docs/") for name in results]
    found = find_difference([(results, gold)])
    assert (found.phrase, found.count, found.of) == ('the prefix "docs/" of the results', 2_000, 2_000)


@given(st.lists(NAME, min_size=1, max_size=8, unique=True), st.sampled_from(list(FOLDS)))
def test_a_difference_by_one_fold_is_never_missed(names, fold):
    apply = FOLDS[fold].apply
    folded = {name: apply(name) for name in names}
    pairs = [(name, other) for name, other in folded.items() if name != other and other and apply(other) == other]
    assume(pairs)
    assume(fold != "folder" or not any("/" in one or "\\" in one for _, one in pairs))
    found = find_difference([([name], [other]) for name, other in pairs])
    assert found is not None
    assert found.count == len(pairs)


def test_a_difference_survives_a_run_file():
    found = IdDifference(("case",), "prefix", "docs/", "", 1, 2)
    assert IdDifference.from_dict(found.to_dict()) == replace(found, count=0, of=0)


# ---- as users see it ------------------------------------------------------------------------------------------------


def test_items_of_a_run_where_nothing_was_found(tmp_path):
    rows = [
        {"retrieved": ["docs\\A.md", "docs\\B.md"], "gold": ["docs/A.md"]},
        {"retrieved": ["docs\\B.md"], "gold": ["docs/B.md", "docs/C.md"]},
    ]
    expected = (
        r"Nothing matched: the ids differ by \ and / (2 of 3 gold ids checked would match): "
        r'try id.replace("\\", "/") for both.'
    )
    run = karat.evaluate(rows, "recall@5")
    assert expected in run.remarks()
    run.save(tmp_path / "run.parquet")
    assert expected in karat.load(tmp_path / "run.parquet").remarks()
    one_side = [{"retrieved": [f"kb:{i}" for i in "abc"], "gold": ["b"]}]
    assert (
        'Nothing matched: the ids differ by the prefix "kb:" of the results (1 of 1 gold ids checked would match): '
        'try id.removeprefix("kb:") for the results.'
    ) in karat.evaluate(one_side, "rr").remarks()


def test_documents_that_differ():
    rows = [{"retrieved": [{"id": "a#1", "doc": "A.md"}], "gold": [{"doc": "a.md"}]}]
    assert "upper and lower case" in " ".join(karat.evaluate(rows, "rr", at="doc").remarks())


def test_dicts_and_tables():
    retrieved = {"q": {"A": 2.0, "B": 1.0}}
    assert "upper and lower case" in " ".join(karat.evaluate(retrieved=retrieved, gold={"q": ["a"]}).remarks())


@pytest.mark.parametrize("convention", ["beir", "standard(own_id=drop)"])
def test_ids_that_the_convention_excludes(convention):
    row = {"id": "d1", "retrieved": ["d1", "d2"], "gold": ["d1"]}
    run = karat.evaluate([row], "recall@5", convention=convention)
    assert run.mean["recall@5"] == 0
    assert (
        f"Nothing matched: 1 of 1 gold ids checked was retrieved, but the convention {convention} excludes it."
    ) in run.remarks()
    assert "would match" not in str(run)
    not_relevant = karat.evaluate(retrieved={"q": ["a"]}, gold={"q": {"a": 0, "b": 1}}, metrics="rr")
    assert "excludes" not in str(not_relevant)


def test_matches_of_another_query_are_no_cause():
    rows = [{"retrieved": ["A"], "gold": ["b"]}, {"retrieved": ["B"], "gold": ["a"]}]
    assert "differ by" not in " ".join(karat.evaluate(rows, "rr").remarks())


def test_query_ids():
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(retrieved={"Q1": ["a"], "Q2": ["a"]}, gold={"q1": ["a"], "q2": ["b"]})
    assert error.value.problem == (
        'the results and the gold share no query id: they differ by upper and lower case. Results: "Q1", "Q2"  '
        'Gold: "q1", "q2"'
    )
    assert error.value.hint == "id.casefold() for both"
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(retrieved={"q-1": ["a"]}, gold={"1": ["a"]})
    assert error.value.hint == 'id.removeprefix("q-") for the results'
