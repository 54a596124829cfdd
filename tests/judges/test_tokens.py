"""Token counters and token budgets."""

from __future__ import annotations

import pytest

import karat
from support.ranges import part


def score(metric, retrieved, gold, judge="spans", **how):
    return karat.score(metric, retrieved, gold, judge=judge, **how)


def test_hugging_face_tokenizers_count_tokens():
    assert score("recall@3t", ["a b c"], ["a b c"], "exact", tokens=lambda text: {"input_ids": text.split()}) == 1.0
    assert score("recall@2t", ["a b c"], ["a b c"], "exact", tokens=lambda text: {"input_ids": text.split()}) == 0.0
    with pytest.raises(karat.BadArgument, match="token counter"):
        score("recall@3t", ["a b"], ["a b"], "exact", tokens=lambda text: {"a": 1})

    def marked(text):
        return [(0, 0), *((i, i + 1) for i in range(len(text))), (0, 0)]

    judge = karat.Spans(corpus={"d": "abcd"}, tokenizer=marked)
    assert score("span_recall", [part("d", 0, 2)], [part("d", 0, 4)], judge) == 0.5


def test_a_token_budget_records_the_counter():
    run = karat.evaluate(retrieved=[["a b"]], gold=[["a b"]], metrics="recall@5t", tokens=len)
    assert run.provenance.tokens == "len"
    assert karat.evaluate(retrieved=[["a b"]], gold=[["a b"]], metrics="recall@5").provenance.tokens == ""
    with pytest.raises(karat.InputError, match="needs the text of every"):
        karat.evaluate(retrieved=[["doc-1"]], gold=[["doc-1"]], metrics="recall@5t")
    with pytest.raises(karat.BadArgument, match="the token counter failed: ZeroDivisionError"):
        karat.score("recall@5t", ["a b"], ["a b"], tokens=lambda text: 1 // 0)
    with pytest.raises(karat.BadArgument, match="budget of tokens") as error:
        karat.parse("recall@300T")
    assert "recall@300t" in str(error.value)
