"""The judges `ids` and `exact`, the choice of `auto`, the judge protocol, and custom judges."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import karat
from karat.judges import all_judges, find_judge
from karat.samples import read_samples
from support.data import random_results_and_gold
from support.ranges import part


def judged(samples, **kwargs):
    run = karat.evaluate(samples, "rr", **kwargs)
    return run.provenance.judge, run.provenance.judge_reason, run.mean["rr"]


@pytest.mark.parametrize(
    ("sample", "wanted"),
    [
        ({"retrieved": ["b", "a"], "gold": ["a"]}, ("ids", "the items look like ids", 0.5)),
        ({"retrieved": ["a b", "b c"], "gold": ["b c"]}, ("exact", "the items look like texts", 0.5)),
        (
            {"retrieved": [{"text": "b"}, {"text": "a"}], "gold": [{"text": "a"}]},
            ("exact", "not both sides have ids", 0.5),
        ),
        ({"retrieved": [{"id": 2}, {"id": 1}], "gold": [{"id": 1}]}, ("ids", "both sides have ids", 0.5)),
        ({"retrieved": [{"id": 1, "text": "a b"}], "gold": ["a b"]}, ("exact", "the items look like texts", 1.0)),
        ({"retrieved": [{"id": "x", "text": "a b"}], "gold": ["x"]}, ("ids", "the items look like ids", 1.0)),
    ],
)
def test_auto_chooses_a_judge_with_a_reason(sample, wanted):
    assert judged([sample]) == wanted


def test_a_judge_given_by_name_has_no_reason():
    sample = {"retrieved": [{"id": 1, "text": "p"}, {"id": 2, "text": "q"}], "gold": [{"id": 1, "text": "q"}]}
    assert judged([sample], judge="ids") == ("ids", "", 1.0)
    assert judged([sample], judge="exact") == ("exact", "", 0.5)


def test_exact_compares_every_character():
    for other in ("A b", "a  b", "a b ", "a b\u200b"):
        assert karat.score("rr", [other], ["a b"], judge="exact") == 0
    assert karat.score("rr", ["a b"], ["a b"], judge="exact") == 1


@pytest.mark.parametrize("name", sorted(set(all_judges()) - {"relevance"}))  # which must be told its model
def test_judges_are_found_by_name(name):
    found = find_judge(name).name
    assert found.partition("(")[0] == name
    assert find_judge(f"{name}()").name == found == find_judge(found).name


class FirstLetter:
    """Items with the same first letter are equal."""

    name = "first-letter"

    def __call__(self, samples, convention):
        keys = samples.gold.keys("id")
        rows = [
            (query, rank, gold)
            for query, items in enumerate(samples.retrieved.each("id", convention))
            for rank, item in enumerate(items, 1)
            for gold in range(keys.start[query], keys.start[query + 1])
            if item[0] == keys.key[gold][0]
        ]
        query, rank, gold = np.array(rows).T
        return karat.Hits(
            query, rank, gold,
            depth=np.array([len(items) for items in samples.retrieved.each("id", convention)]),
            gold_items=karat.Gold(keys.key, keys.start, samples.gold.grade),
            repeated=np.zeros(len(rows), bool),
            why=[f"both begin with {keys.key[g][0]}" for g in gold],
        )  # fmt: skip


def test_a_custom_judge_of_samples():
    run = karat.evaluate(
        retrieved=[["x1", "a1", "a2"]], gold=[["a9", "b9"]], metrics="recall@3 precision@3 rr", judge=FirstLetter()
    )
    assert run.mean == {"recall@3": 0.5, "precision@3": pytest.approx(2 / 3), "rr": 0.5}
    assert run.provenance.judge == "first-letter"
    assert run.hits(1)[0] == (2, "a9", 1.0, "both begin with a")


@pytest.mark.parametrize("ties", ["id_descending", "id_ascending", "given"])
def test_every_layout_has_the_same_rankings(ties):
    c = karat.Convention(name="test", ties=ties, order="score")
    run, gold = random_results_and_gold(3, queries=20)
    run = {q: run.get(q, {}) for q in gold}
    rows = [(q, d, s) for q, r in run.items() for d, s in r.items()]
    layouts = [
        run,
        {q: [{"id": d, "score": s} for d, s in r.items()] for q, r in run.items()},
        pl.DataFrame(rows, schema=["query_id", "doc_id", "score"], orient="row"),
    ]
    each = [list(map(list, read_samples(one, gold=gold).retrieved.each("id", c))) for one in layouts]
    assert each[0] == each[1] == each[2]


def score(metric, retrieved, gold, judge="spans", **how):
    return karat.score(metric, retrieved, gold, judge=judge, **how)


def test_copies_are_removed_by_the_fields_the_judge_compares():
    c = karat.Convention(name="r", duplicates="remove")
    assert score("recall@2", ["A!", "a", "b"], ["a", "b"], "text", convention=c) == 1.0
    assert score("recall@2t", ["A!", "a", "b"], ["a", "b"], "text", convention=c) == 1.0
    ids = [{"id": 1, "text": "x"}, {"id": "1", "text": "x"}, {"id": 2, "text": "y"}]
    assert score("recall@2t", ids, ["2"], "ids", convention=c) == 1.0
    chunks = [{"doc": "d", "text": "one"}, {"doc": "d", "text": "two three four"}, {"doc": "e", "text": "five"}]
    assert score("recall@2t", chunks, ["e"], "ids", at="doc", convention=c) == 1.0


@pytest.mark.parametrize(
    ("judge", "retrieved", "gold", "why"),
    [
        ("contains", "xx a b", "a    b", "contains 100 %"),
        ("contains(chunk_in_gold)", "a b", "a b", "exact"),
        ("contains(chunk_in_gold)", "a  b", " a b", "exact"),
        ("spans", "xx a b", "a    b", "covers 100 % of the quote"),
        ("spans", " a  b", "a b ", "exact"),
    ],
)
def test_only_equal_texts_are_called_exact(judge, retrieved, gold, why):
    assert karat.evaluate(retrieved=[[retrieved]], gold=[[gold]], metrics="recall", judge=judge).hits(1)[0].why == why


QUOTE = "the quick brown fox jumps over the lazy dog"
QUOTE_DOCS = {"a": f"Intro. {QUOTE} Outro and more.", "b": "zzz"}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: score("recall", [{"id": "1"}], [{"doc": "a", "text": "x"}], karat.Spans(corpus={"a": "x y"})),
        lambda: score("recall", ["a"], ["a"], "fuzzy({[]})"),
        lambda: score("recall", ["a"], ["a"], "fuzzy(threshold=0.5, threshold=0.8)"),
        lambda: karat.Contains(strip=5),
        lambda: karat.Text(fold=[["x"]]),
        lambda: score("recall", [part("a", 10**400, 10**400 + 1)], [part("a", 0, 1)]),
        lambda: score("recall", [part("a", 0, 2**70)], [part("a", 0, 1)]),
        lambda: score(
            "span_recall", [part("a", 0, 3)], [part("a", 0, 3)], karat.Spans(corpus=QUOTE_DOCS, tokenizer=print)
        ),
        lambda: score("recall@5t", ["a b"], ["a b"], tokens=lambda text: float("inf")),
    ],
)
def test_bad_arguments_raise_karat_errors(wrong):
    with pytest.raises(karat.KaratError):
        wrong()
