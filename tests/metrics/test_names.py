"""Metric names: parsing, aliases, error messages, and custom metrics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.metrics import METRICS, parse, parse_all
from karat.metrics.registry import _ALIASES

names = st.sampled_from([n for n, d in METRICS.items() if d.cutoff and not d.at_recall and not d.words])
cutoffs = st.lists(st.integers(1, 10_000), max_size=4, unique=True)
numbers = st.one_of(st.integers(1, 9), st.floats(0.01, 0.99).map(lambda x: round(x, 3)))


@given(names, cutoffs, numbers)
def test_names_round_trip(name, ks, value):
    first = next(iter(METRICS[name].settings), None)
    text = f"{name}({first}={value})" if first else name
    text += f"@{','.join(map(str, ks))}" if ks else ""
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("mrr", "rr"),
        ("map@10", "ap@10"),
        ("hit_rate@5", "hit@5"),
        ("success@5", "hit@5"),
        ("recall_at_k@5", "recall@5"),
        ("recall_at_5", "recall@5"),
        ("precision_at_k@3", "precision@3"),
        ("ndcg_at_10", "ndcg@10"),
        ("MRR@10", "rr@10"),
        ("P@10", "precision@10"),
        ("P_10", "precision@10"),
        ("recall_100", "recall@100"),
        ("ndcg_cut_10", "ndcg@10"),
        ("map_cut_5", "ap@5"),
        (" ndcg @ 5 , 10 ", "ndcg@5,10"),
        ("f( beta = 2 )@5", "f(beta=2)@5"),
        ("rbp(p=0.80)", "rbp(p=0.8)"),
        ("recall@5,5,1", "recall@5,1"),
    ],
)
def test_aliases_and_other_spellings(written, read):
    assert [str(m) for m in parse_all(written)] == [read]


@pytest.mark.parametrize(
    "text",
    [
        "recall@1,5 precision@5 ndcg@10",
        "recall@1,5, precision@5, ndcg@10",
        "recall@1,5,precision@5,ndcg@10",
        "recall@1,5; precision@5\nndcg@10",
        ["recall@1,5", "precision@5", "ndcg@10"],
        ["recall@1,5 precision@5", parse("ndcg@10")],
    ],
)
def test_several_metrics_in_one_text(text):
    assert [str(m) for m in parse_all(text)] == ["recall@1,5", "precision@5", "ndcg@10"]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("ndgc@10", "Did you mean ndcg?"),
        ("recal@5", "Did you mean recall?"),
        ("recall@0", "at least 1"),
        ("recall@-3", "at least 1"),
        ("recall@2.5", "whole number"),
        ("recall@five", "whole number"),
        ("recall@", "whole number"),
        ("bpref@10", "takes no cutoff"),
        ("rbp(q=0.5)", 'no setting "q"'),
        ("rbp(0.5)", "has no name"),
        ("rbp(p=high)", "must be a number"),
        ("rbp(p=1.5)", "between 0 and 1"),
        ("f(beta=0)@5", "greater than 0"),
        ("err(max_grade=0)", "between 0 and 60"),
        ("", "no metric was requested"),
        ([], "no metric was requested"),
        ([5], "expected a metric name"),
        ("?!", "expected name or name(setting=value)"),
    ],
)
def test_error_messages(written, message):
    with pytest.raises(karat.KaratError) as error:
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics=written)
    assert message in str(error.value)


def test_errors_are_also_builtin_errors():
    with pytest.raises(LookupError):
        parse("nothing@5")
    with pytest.raises(ValueError, match="cutoff"):
        parse("recall@0")


@pytest.fixture
def custom_metric():
    """Define metrics for one test only."""
    registries: list[dict] = [METRICS, _ALIASES]
    before = list(map(dict, registries))
    yield karat.metric
    for registry, old in zip(registries, before, strict=True):
        registry.clear()
        registry.update(old)


def test_custom_metric(custom_metric):
    @custom_metric(symbol="2+", aliases=("two",))
    def at_least(hits, k, c, *, n=2.0):
        """1 if the top k hold at least n gold items."""
        return (hits.found(k, c) >= n).astype(float)

    run = karat.evaluate(
        retrieved=[["a", "x", "b"], ["a"]],
        gold=[["a", "b"], ["a"]],
        metrics="at_least@2,3 at_least(n=1)@1 two@3",
    )
    assert run.table["at_least@3"].to_list() == [1, 0]
    assert run.mean == {"at_least@2": 0, "at_least@3": 0.5, "at_least(n=1)@1": 1}
    assert METRICS["at_least"].help == "1 if the top k hold at least n gold items."


def test_metric_without_cutoff_may_return_one_row(custom_metric):
    @custom_metric(cutoff=False, needs_gold=False)
    def tenths(hits, k, c):
        """The number of retrieved items, divided by ten."""
        return hits.depth / 10

    assert karat.score("tenths", ["a", "b"], []) == 0.2


def test_metric_of_the_wrong_shape_is_refused(custom_metric):
    @custom_metric
    def wrong(hits, k, c):
        return np.zeros(7)

    with pytest.raises(karat.BadArgument, match="shape"):
        karat.score("wrong@5", ["a"], ["a"])


def test_error_in_a_custom_metric_names_the_metric(custom_metric):
    @custom_metric
    def broken(hits, k, c):
        raise RuntimeError("oh no")

    with pytest.raises(karat.BadArgument, match="broken failed: RuntimeError: oh no"):
        karat.score("broken", ["a"], ["a"])


def test_invalid_custom_metrics_are_refused(custom_metric):
    with pytest.raises(karat.BadArgument, match="default"):

        @custom_metric
        def needs(hits, k, c, *, x):
            return hits.depth

    for name, aliases in (("query_id", ()), ("mine", ("recall",))):
        with pytest.raises(karat.BadArgument, match="already"):
            exec(f"@m(aliases={aliases})\ndef {name}(hits, k, c): ...", {"m": custom_metric})


@pytest.mark.parametrize("ks", [(0,), (-1,), (2.5,), 5])
def test_invalid_cutoffs_of_metric_objects_are_refused(ks):
    with pytest.raises(karat.BadArgument, match="cutoffs"):
        karat.Metric("recall", ks)


def test_name_takes_precedence_over_alias(custom_metric):
    @custom_metric(aliases=("other",), needs_gold=False)
    def first(hits, k, c):
        return np.zeros(hits.queries)

    assert karat.score("other", ["a"], ["a"]) == 0

    @custom_metric(needs_gold=False)
    def other(hits, k, c):
        return np.ones(hits.queries)

    assert karat.score("other", ["a"], ["a"]) == 1


def test_metric_objects_are_parsed_like_texts():
    one, two = karat.Metric("f", (5,), {"beta": 2.0, "rel": 1.0}), karat.Metric("f", (5,), {"rel": 1.0, "beta": 2.0})
    assert one == two
    assert hash(one) == hash(two)
    assert list(karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics=karat.Metric("mrr", (5,))).mean) == ["rr@5"]
    with pytest.raises(karat.BadArgument, match="takes no cutoff"):
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics=karat.Metric("r_precision", (5,)))


def test_built_in_metrics_cannot_be_replaced(custom_metric):
    with pytest.raises(karat.BadArgument, match="already"):

        @custom_metric
        def recall(hits, k, c):
            return np.zeros(hits.queries)
