"""Set metrics and citations by hand: exact match, F1, what an answer cites, and the counts that they need."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

import karat
from karat.metrics import METRICS, parse

SETS = "set_em set_f1"
CITATIONS = "citation_precision citation_recall"


def means(*arguments, **options):
    return karat.evaluate(*arguments, **options).mean


@pytest.mark.parametrize(
    ("retrieved", "gold", "em", "f1"),
    [
        (["b", "a"], ["a", "b"], 1.0, 1.0),
        (["a", "b", "a", "b"], ["a", "b"], 1.0, 1.0),  # copies count once
        (["a"], ["a", "b"], 0.0, 2 / 3),
        (["a", "b", "x", "x"], ["a", "b"], 0.0, 0.8),  # 2/3 and 1
        (["x"], ["a"], 0.0, 0.0),
        ([], ["a"], 0.0, 0.0),
        ([1, "1", 2.0], ["1", 2], 1.0, 1.0),  # one id in three spellings
    ],
)
def test_sets(retrieved, gold, em, f1):
    found = means(retrieved=[retrieved], gold=[gold], metrics=SETS, judge="ids")
    assert found["set_em"] == em
    assert found["set_f1"] == pytest.approx(f1)


def test_sets_in_every_layout():
    import polars as pl

    lists = {"q1": ["a", "x"], "q2": ["b", "a"]}
    gold = {"q1": ["a"], "q2": ["a", "b"]}
    dicts = {query: dict.fromkeys(items, 1.0) for query, items in lists.items()}
    long = pl.DataFrame({"query_id": ["q1", "q1", "q2", "q2"], "doc_id": ["a", "x", "b", "a"], "rank": [1, 2, 1, 2]})
    for given in (lists, dicts, long):
        run = karat.evaluate(retrieved=given, gold=gold, metrics=SETS)
        assert run.scores["set_em"].tolist() == [0.0, 1.0]
        assert run.scores["set_f1"] == pytest.approx([2 / 3, 1.0])


def test_a_set_without_gold_is_undefined():
    run = karat.evaluate(retrieved=[["a"], []], gold=[[], []], metrics=SETS)
    assert all(np.isnan(own).all() for own in run.scores.values())


@pytest.mark.parametrize(
    ("name", "em", "f1"), [("standard", None, None), ("musique", 1.0, 1.0), ("hotpotqa", 1.0, 0.0)]
)
def test_both_sets_empty(name, em, f1):
    found = means(retrieved=[[], ["a"]], gold=[[], ["a"]], metrics=SETS, convention=name)
    assert found["set_em"] == (1.0 if em is None else (em + 1) / 2)
    assert found["set_f1"] == (1.0 if f1 is None else (f1 + 1) / 2)


def test_documents_as_sets():
    """Two chunks of one document are one document."""
    chunks = [{"id": "c1", "doc": "d1"}, {"id": "c2", "doc": "d1"}]
    assert means([{"retrieved": chunks, "gold": ["d1"]}], "set_em", at="doc") == {"set_em": 1.0}


def test_texts_as_sets():
    """A chunk with both facts is a whole set; another chunk is not."""
    gold = ["the tide rose", "gulls left"]
    both = "the tide rose and gulls left"
    run = karat.evaluate(retrieved=[[both], [both, "no"]], gold=[gold, gold], metrics=SETS, judge="contains")
    assert run.scores["set_em"].tolist() == [1.0, 0.0]
    assert run.scores["set_f1"] == pytest.approx([1.0, 2 / 3])


def test_alternatives_are_one_gold_item():
    gold = [{"id": "a", "group": 1}, {"id": "b", "group": 1}]
    assert means([{"retrieved": [{"id": "b"}], "gold": gold}], SETS) == {"set_em": 1.0, "set_f1": 1.0}


def test_grades_and_a_threshold():
    graded = {"retrieved": [["a", "b"]], "gold": [{"a": 2, "b": 1, "c": 0}]}
    assert means(metrics="set_em set_em(rel=2)", **graded) == {"set_em": 1.0, "set_em(rel=2)": 0.0}


def test_the_names_of_hotpotqa():
    assert parse("sp_em") == parse("set_em")
    assert parse("sp_f1") == parse("set_f1")
    with pytest.raises(karat.BadArgument, match="takes no cutoff"):
        parse("set_f1@5")


def test_other_metrics_count_nothing_more():
    """The counts are made only for metrics that need them."""
    needing = {name for name, own in METRICS.items() if own.sizes}
    assert needing == {"set_em", "set_f1", "citation_precision", "citation_recall"}
    run = karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="recall ndcg@5 precision@5")
    assert not run.all_hits.totals.sizes


def test_hits_without_the_count_are_refused():
    run = karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="recall")
    with pytest.raises(karat.BadArgument, match='no count of "different" items'):
        parse("set_em").scores(run.all_hits, run.convention)


@pytest.fixture
def own_metrics():
    """Custom metrics of a test are forgotten after it."""
    before = dict(METRICS)
    yield
    METRICS.clear()
    METRICS.update(before)


@pytest.mark.usefixtures("own_metrics")
def test_a_custom_metric_may_need_a_count():
    @karat.metric(sizes=("different",), cutoff=False)
    def share_of_copies(hits, k, c):
        """Share of the results that are copies."""
        return 1 - hits.totals.sizes["different"] / hits.depth

    assert means(retrieved=[["a", "b", "a", "a"]], gold=[["a"]], metrics="share_of_copies") == {"share_of_copies": 0.5}

    @karat.metric(sizes=("colours",))
    def colourful(hits, k, c):
        """Never computed."""

    with pytest.raises(karat.BadArgument, match='unknown sizes "colours"'):
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="colourful")


ANSWERS = [
    {"id": "q1", "retrieved": ["a", "b", "x"], "gold": ["a", "b", "c"], "cited": ["a", "x", "a"]},
    {"id": "q2", "retrieved": ["a"], "gold": ["a"], "cited": []},
    {"id": "q3", "retrieved": ["a"], "gold": ["a"]},
    {"id": "q4", "retrieved": ["a"], "gold": ["a", "b"], "cited": ["b", "y"]},
    {"id": "q5", "retrieved": ["a"], "gold": [], "cited": ["a"]},
]


def test_citations():
    run = karat.evaluate(ANSWERS, CITATIONS)
    assert run.scores["citation_precision"].tolist()[:2] == [0.5, 0.0]
    assert run.scores["citation_recall"].tolist()[:2] == pytest.approx([1 / 3, 0.0])
    for values in run.scores.values():
        assert isnan(values[2])
        assert values[3] == 0.5
        assert isnan(values[4])
    assert run.pooled["citation_precision"] == pytest.approx(2 / 4)
    text = "\n".join(run.remarks())
    assert "2 queries are undefined: not in the mean." in text
    assert '2 of 5 cited ids not retrieved for the query ("b" in query "q4"; "y" in query "q4").' in text


def test_nothing_cited_is_a_choice():
    run = karat.evaluate(ANSWERS, CITATIONS, convention="standard(nothing_cited=undefined)")
    assert np.isnan(run.scores["citation_recall"][1])


def test_citations_are_in_run_files(tmp_path):
    run = karat.evaluate(ANSWERS, f"recall {CITATIONS} set_f1")
    run.save(tmp_path / "run.parquet")
    again = karat.load(tmp_path / "run.parquet")
    for name, values in run.scores.items():
        np.testing.assert_array_equal(again.scores[name], values)
        np.testing.assert_array_equal(parse(name).scores(again.all_hits, again.convention)[name], values)
    parts = [karat.evaluate(ANSWERS[:2], CITATIONS), karat.evaluate(ANSWERS[3:], CITATIONS)]
    merged = karat.merge(parts)
    np.testing.assert_array_equal(merged.scores["citation_recall"], run.scores["citation_recall"][[0, 1, 3, 4]])


def test_alternatives_that_are_cited():
    """Both alternatives are right, and are one gold item."""
    gold = [{"id": "a", "group": 1}, {"id": "b", "group": 1}, {"id": "c"}]
    sample = {"retrieved": [{"id": "a"}], "gold": gold, "cited": ["a", "b"]}
    assert means([sample], CITATIONS) == {"citation_precision": 1.0, "citation_recall": 0.5}


def test_cited_documents():
    sample = {"retrieved": [{"id": "c1", "doc": "d1"}], "gold": ["d1", "d2"], "cited": ["d1"]}
    assert means([sample], CITATIONS, at="doc") == {"citation_precision": 1.0, "citation_recall": 0.5}


def test_grade_zero_is_not_relevant():
    sample = {"retrieved": ["a"], "gold": {"a": 0, "b": 1}, "cited": ["a", "b"]}
    assert means([sample], CITATIONS) == {"citation_precision": 0.5, "citation_recall": 1.0}


def test_samples_may_be_karat_samples():
    sample = karat.Sample(retrieved=["a"], gold=["a", "b"], cited=["b", 7])
    assert means([sample], CITATIONS) == {"citation_precision": 0.5, "citation_recall": 0.5}


def test_results_with_citations_and_gold_apart():
    results = [{"id": "q1", "retrieved": ["a"], "cited": ["a", "b"]}, {"id": "q2", "retrieved": ["a"]}]
    run = karat.evaluate(retrieved=results, gold={"q2": ["a"], "q1": ["a"]}, metrics=CITATIONS)
    np.testing.assert_array_equal(run.scores["citation_precision"], [np.nan, 0.5])


NO_CITED = r'citation metrics need to know what the answers cite, but no sample has "cited"'


def test_no_sample_has_cited():
    with pytest.raises(karat.InputError, match=NO_CITED):
        karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}], CITATIONS)
    with pytest.raises(karat.InputError, match=NO_CITED):
        karat.score("citation_recall", ["a"], ["a"])
    with pytest.raises(karat.InputError, match=NO_CITED):
        karat.rosetta(retrieved=[["a"]], gold=[["a"]], metrics="citation_recall")


def test_gold_without_ids_cannot_be_cited():
    sample = {"retrieved": [{"text": "x y"}], "gold": [{"text": "x y"}], "cited": ["a"]}
    with pytest.raises(karat.InputError, match="citations are compared with the ids of gold items"):
        karat.evaluate([sample], CITATIONS, judge="exact")


@pytest.mark.parametrize(
    ("cited", "message"),
    [
        ("a, b", 'field "cited" is a string; expected a list'),
        ({"a": 1}, 'field "cited" is a dict; expected a list of ids'),
        (["a", None], "item 2 of cited is null; expected an id"),
        ([["a"]], "item 1 of cited is a list; expected an id"),
        (7, 'field "cited" is a int; expected a list'),
    ],
)
def test_bad_citations(cited, message):
    rows = [{"retrieved": ["a"], "gold": ["a"], "cited": cited}, {"retrieved": ["a"], "gold": ["a"], "cited": ["a"]}]
    with pytest.raises(karat.InputError, match=message):
        karat.evaluate(rows, CITATIONS)
    run = karat.evaluate(rows, CITATIONS, skip_bad_rows=True)
    assert (len(run), run.provenance.skipped) == (1, 1)
