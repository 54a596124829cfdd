"""The parts of the judge `spans`: unions of ranges, shared texts, alternatives, lengths; each edge from both sides."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat._internal.overlap import longest_end
from karat.judges.spans import cover, matching
from karat.judges.spans.cover import RangeUnion
from karat.judges.spans.matching import GoldInterval, Matcher, Overlap, lie_apart
from karat.judges.spans.quotes import Quote
from support.ranges import part, sample

LONG = "".join(f"word{i:03d} " for i in range(40)).strip()  # 319 characters, no word twice


def score(metric, retrieved, gold, judge="spans", **how):
    return karat.score(metric, retrieved, gold, judge=judge, **how)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=12))
def test_a_union_is_a_set(ranges):
    union, seen = RangeUnion(), set()
    for start, size in ranges:
        new = {i for a, b in union.add(start, start + size) for i in range(a, b)}
        assert new == set(range(start, start + size)) - seen
        seen |= new
        assert {i for a, b in union.within(5, 25) for i in range(a, b)} == seen & set(range(5, 25))


PLACES = st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 12))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(PLACES, st.integers(0, 3)), min_size=1, max_size=15),
    st.lists(st.tuples(PLACES, st.integers(0, 9)), max_size=10),
    st.sampled_from([0.3, 0.5, 1.0]),
)
def test_many_intervals_have_the_same_matches(gold, chunks, coverage):
    intervals = [GoldInterval(item, item, doc, at, at + size, True) for (doc, at, size), item in gold]
    docs = {one.doc: RangeUnion() for one in intervals}
    overlaps = [Overlap(n // 2, d, at, at + size, size + more) for n, ((d, at, size), more) in enumerate(chunks)]
    known = [(one, docs[one.doc].add(one.start, one.end)) for one in overlaps if one.doc in docs]
    found = []
    for many in (50, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(matching, "_MANY", many)
            matcher = Matcher(intervals, coverage)
            for overlap, new in known:
                matcher.add(overlap, new)
            found.append(matcher.matches())
    assert found[0] == found[1]


GAPS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 12), st.booleans()), min_size=1, max_size=4)


def tokens(doc, start, end):
    return sum(i % 3 == 0 for i in range(start, end))


@settings(max_examples=300, deadline=None)
@given(
    st.fixed_dictionaries({"a": GAPS}, optional={"b": GAPS}),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(0, 15), st.integers(0, 9)), max_size=10),
    st.sampled_from([0.3, 0.5, 1.0]),
    st.sampled_from([tokens, lambda doc, start, end: end - start]),
)
def test_gold_that_lies_apart_has_the_same_coverage(gold, chunks, coverage, measure):
    intervals = []
    for doc, own in gold.items():
        at = 0
        for gap, size, relevant in own:
            item = len(intervals)
            intervals.append(GoldInterval(item, item, doc, at + gap, at + gap + size, relevant))
            at += gap + size
    overlaps = [Overlap(n // 2, d, at, at + size, size + more) for n, (d, at, size, more) in enumerate(chunks)]
    overlaps = [one for one in overlaps if one.doc in gold]
    assert lie_apart(intervals)
    fast = cover.cover(intervals, overlaps, measure, coverage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cover, "lie_apart", lambda gold: False)
        slow = cover.cover(intervals, overlaps, measure, coverage)
    assert (fast.matches, fast.size) == (slow.matches, slow.size)
    assert by_rank(fast.amounts) == by_rank(slow.amounts)


def by_rank(amounts):
    sums = Counter()
    for rank, covered, gold in amounts:
        sums += Counter({(rank, "covered"): covered, (rank, "gold"): gold})
    return sums


@pytest.mark.parametrize(
    ("doc", "start", "end", "apart"), [("a", 11, 20, True), ("a", 10, 20, False), ("a", 5, 7, False), ("b", 5, 7, True)]
)
def test_intervals_that_touch_do_not_lie_apart(doc, start, end, apart):
    one, two = GoldInterval(0, 0, "a", 0, 10, True), GoldInterval(1, 1, doc, start, end, True)
    assert lie_apart([one, two]) == lie_apart([two, one]) == apart
    assert not lie_apart([one, two._replace(unit=0)])


@pytest.mark.parametrize(("size", "found"), [(39, False), (40, True), (41, True)])
def test_shared_text_counts_from_40_characters_on(size, found):
    assert bool(Quote(LONG).shared("xx " + LONG[:size])) == found
    assert bool(Quote(LONG).shared(LONG[-size:] + " xx")) == found
    assert bool(Quote(LONG).shared(LONG[100 : 100 + size])) == found


@pytest.mark.parametrize(("size", "found"), [(9, False), (10, True)])
def test_shared_text_counts_from_a_quarter_of_a_short_quote_on(size, found):
    quote = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"
    assert bool(Quote(quote).shared("__" + quote[:size])) == found
    assert bool(Quote(quote).shared(quote[-size:] + "__")) == found


def test_the_longest_shared_text_is_found():
    quote = "ab ab ab ab ab cd"
    (head,) = Quote(quote).shared("xx ab ab ab ab")
    assert (head.start, head.end) == (0, 11)
    assert Quote(quote).shared("ab ab cd yy")[-1][:2] == (9, 17)
    assert Quote("x" * 50 + "y").shared("x" * 50) == [(0, 50, 0)]


def test_a_chunk_inside_a_quote_may_have_more_white_space():
    assert score("span_recall", [LONG[80:159].replace(" ", "   ")], [LONG]) == pytest.approx(79 / 319)


def slow(chunks, gold):
    """Span recall of texts alone: what chunks have of each quote, character by character."""
    fold = " ".join
    total = covered = 0
    for quote in dict.fromkeys(fold(g.split()) for g in gold):
        least, got = min(40, -(-len(quote) // 4)), set()
        for chunk in (fold(c.split()) for c in chunks):
            if quote in chunk:
                got |= set(range(len(quote)))
            elif len(chunk) >= least and chunk in quote:
                got |= set(range(quote.index(chunk), quote.index(chunk) + len(chunk)))
            elif len(chunk) >= least:
                heads = [n for n in range(least, len(chunk) + 1) if quote.startswith(chunk[-n:])]
                tails = [n for n in range(least, len(chunk) + 1) if quote.endswith(chunk[:n])]
                got |= set(range(max(heads, default=0))) | set(range(len(quote) - max(tails, default=0), len(quote)))
        total, covered = total + len(quote), covered + len(got)
    return covered / total


words = st.sampled_from(["a", "bb", "ccc", "dd", "e"])
texts = st.lists(words, min_size=1, max_size=9).map(" ".join)


@settings(max_examples=200, deadline=None)
@given(chunks=st.lists(texts, max_size=4), gold=st.lists(texts, min_size=1, max_size=3))
def test_coverage_by_text_equals_a_slow_definition(chunks, gold):
    run = karat.evaluate(sample(chunks, gold), "span_recall span_precision span_iou recall", judge="spans")
    assert run.mean["span_recall"] == pytest.approx(slow(chunks, gold))
    assert all(0 <= value <= 1 for value in run.mean.values())


def test_a_group_has_the_length_of_its_first_member():
    gold = [part("a", 0, 10, group=1), part("b", 0, 100, group=1), part("c", 0, 10)]
    assert score("span_recall", [part("b", 0, 50)], gold) == 5 / 20


def test_the_better_of_two_places_in_one_chunk_is_the_reason():
    docs = {"d": "one two three. one two three."}
    for chunk in (part("d", 0, 20), part("d", 9, 29)):
        run = karat.evaluate(
            sample([chunk], [{"doc": "d", "text": "one two three."}]), "recall", judge=karat.Spans(1.0, corpus=docs)
        )
        assert [hit.why for hit in run.hits(1)] == ["covers 100 % of the quote"]


@pytest.mark.parametrize("coverage", [0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
def test_the_coverage_threshold_is_exact_to_the_character(coverage):
    size = round(coverage * 10)
    assert score("recall", [part("a", 0, size)], [part("a", 0, 10)], karat.Spans(coverage)) == 1.0
    assert score("recall", [part("a", 0, size - 1)], [part("a", 0, 10)], karat.Spans(coverage)) == 0.0


def test_gold_that_is_not_relevant_has_no_size():
    located = [part("a", 0, 10), part("a", 50, 90, grade=0)]
    assert score("span_recall", [part("a", 0, 10)], located) == 1.0
    assert score("span_precision", [part("a", 0, 100)], located) == 0.1
    alone = [{"text": LONG[:100]}, {"text": LONG[150:], "grade": 0}]
    assert score("span_recall", [LONG[:120]], alone) == 1.0
    assert score("span_precision", [LONG], alone) == pytest.approx(100 / 319, abs=0.01)
    assert np.isnan(score("recall", [part("a", 0, 10)], [part("a", 0, 10, grade=0)]))


def test_99_9_percent_is_not_shown_as_100():
    (hit,) = karat.evaluate(sample([part("a", 0, 999)], [part("a", 0, 1000)]), "recall", judge="spans").hits(1)
    assert hit.why == "covers 99 % of the quote"
    near = "a" * 499 + "b"
    (hit,) = karat.evaluate(retrieved=[["a" * 500]], gold=[[near]], metrics="recall", judge="fuzzy").hits(1)
    assert hit.why == "similar 0.99"


def test_text_retrieved_twice_is_read_once():
    chunks = [{"text": LONG}, {"text": LONG}, {"text": "x" * 81}]
    assert score("span_precision@2", chunks, [LONG[:100]]) == pytest.approx(100 / 319, abs=0.01)
    assert score("span_precision@3", chunks, [LONG[:100]]) == pytest.approx(0.25, abs=0.01)


def test_a_chunk_is_searched_in_its_own_document():
    docs = {"a": "same words here", "b": "same words here"}
    judge = karat.Spans(corpus=docs)
    assert score("recall", [{"doc": "b", "text": "same words"}], [part("a", 0, 10)], judge) == 0.0
    assert score("recall", [{"text": "same words"}], [part("a", 0, 10)], judge) == 1.0
    assert score("recall", [{"text": "same words"}], [{"doc": "a", "text": "same words"}]) == 1.0


def test_a_whole_match_of_a_lesser_member_finds_the_group():
    gold = [part("a", 0, 10, group=1, grade=1), part("a", 0, 100, group=1, grade=3)]
    run = karat.evaluate(sample([part("a", 0, 10)], gold), "recall", judge="spans")
    assert run.mean["recall"] == 1.0


def test_batches_do_not_change_fractions():
    gold = [part("a", 0, 7, group=1), part("b", 0, 3, group=1)]
    chunks = [part("b", 0, 1), part("b", 0, 2), part("a", 0, 5)]
    alone = karat.evaluate(sample(chunks, gold), "span_recall@1,2,3", judge="spans").scores
    many = karat.evaluate(sample(chunks, gold) * 7, "span_recall@1,2,3", judge="spans").scores
    for name in alone:
        assert set(many[name]) == set(alone[name])


def test_alternatives_that_are_both_read_count_once():
    gold = [part("a", 0, 10, group=1), part("b", 0, 10, group=1)]
    both = [part("a", 0, 10), part("b", 0, 10)]
    run = karat.evaluate(sample(both, gold), "span_iou span_f1 span_precision span_recall", judge="spans")
    assert run.mean == pytest.approx({"span_iou": 0.5, "span_f1": 2 / 3, "span_precision": 1.0, "span_recall": 1.0})


def test_tokens_are_found_one_after_the_other_and_gold_within_one_is_undefined():
    judge = karat.Spans(corpus={"d": "aaaa bb"}, tokenizer=lambda text: ["aa", "aa", "bb"])
    assert score("span_recall", [part("d", 0, 2)], [part("d", 0, 4)], judge) == 0.5
    assert np.isnan(score("span_recall", [part("d", 0, 2)], [part("d", 1, 2)], judge))


def test_empty_texts_are_not_passed_to_a_scorer():
    assert score("recall", ["a"], [""], karat.Fuzzy(0.5, lambda a, b: 1.0)) == 0.0
    assert score("recall", ["a b"], ["a c"], "fuzzy(0.6666666666666666, token_sort)") == 1.0


def test_field_names_of_karat_have_priority_and_ids_before_ranges():
    assert score("recall", [{"text": "x", "content": "y"}], ["x"], "exact") == 1.0
    both = [part("a", 0, 9, id="p")]
    run = karat.evaluate(sample(both, both), "recall")
    assert run.provenance.judge == "ids"


def test_unicode_is_folded_again_after_case():
    assert score("recall", ["ͅα"], ["ͅΑ"], "text") == 1.0
    from karat.judges.text import FOLDS, folder

    fold = folder(FOLDS)
    for code in range(0x250, 0x2000):
        assert fold(fold(chr(code))) == fold(chr(code))


QUOTE = "the quick brown fox jumps over the lazy dog"
QUOTE_DOCS = {"a": f"Intro. {QUOTE} Outro and more.", "b": "zzz"}


def test_overlaps_by_text_and_by_range_are_united_in_either_order():
    x, y = {"doc": "a", "text": f"Heading: {QUOTE}"}, {"doc": "a", "text": QUOTE}
    judge = karat.Spans(corpus=QUOTE_DOCS)
    values = [score("span_precision", order, [{"doc": "a", "text": QUOTE}], judge) for order in ([x, y], [y, x])]
    assert values[0] == values[1] == pytest.approx(43 / 52)
    assert score("span_precision", [x, x], [{"doc": "a", "text": QUOTE}], judge) == pytest.approx(43 / 52)
    assert score("recall", [{"doc": "b", "text": f"H: {QUOTE}"}], [{"doc": "a", "text": QUOTE}], judge) == 0.0


def test_the_longest_end_that_is_a_begin_equals_a_plain_search():
    random = Random(3)
    for _ in range(3_000):
        letters = random.choice(("a", "ab", "aab"))
        left, right = ("".join(random.choices(letters, k=random.randint(1, 300))) for _ in range(2))
        least = random.choice((1, 3))
        ends = [size for size in range(least, min(len(left), len(right)) + 1) if right.startswith(left[-size:])]
        assert longest_end(left, right, least) == max(ends, default=0)
    left, right = "b" + "a" * 300_000 + "c", "a" * 300_000 + "b"
    assert longest_end(right, left, 40) == 0
    assert longest_end(f"{'a' * 300_000}ba", f"{'a' * 150_000}b{'a' * 150_000}", 1) == 150_002
