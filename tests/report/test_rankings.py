"""The rankings of a query side by side say which items are the same, where the gold is, and what changed."""

from __future__ import annotations

import re

import pytest

import karat
from karat.report.html.markup import write
from karat.report.html.ranking_entries import Ranking
from karat.report.html.rankings import RankedRun, gold_ranks, query_scores, rankings, shared_fields
from support.hostile import PAYLOADS
from support.two_hops import TWO_HOPS


def ranked(*lists, gold="c", metrics="recall@2 rr", **fields):
    """One column per list of items; None is a run without the query."""
    runs = []
    for number, items in enumerate(lists):
        ranking, causes = None, {}
        if items is not None:
            own = {name: values[number] for name, values in fields.items()}
            sample = {"id": "q", "retrieved": list(items), "gold": list(gold), **own}
            run = karat.evaluate([sample], metrics)
            ranking = Ranking(run, 0)
            causes = {(miss.query_id, miss.item): miss.text for miss in karat.diagnose(run).misses}
        runs.append(RankedRun(f"run {number}", ranking, causes, f"/run/{number}"))
    return runs


def columns(written):
    return written.split('<div class="ranking">')[1:]


def plain(written):
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", written)).strip()


def test_same_items_have_the_same_number():
    first, second = columns(write(rankings(ranked("abc", "cad"))))
    numbers = [dict(re.findall(r'data-item="(\d+)">.*?class="id">(\w)<', column)) for column in (first, second)]
    ours, theirs = ({item: number for number, item in own.items()} for own in numbers)
    assert ours.keys() == set("abc")
    assert (ours["a"], ours["c"]) == (theirs["a"], theirs["c"])
    assert theirs["d"] not in ours.values()


def test_words_say_what_the_lines_show():
    first, second = columns(write(rankings(ranked("abc", "cad"))))
    words = re.findall(r'<p class="elsewhere">(.*?)</p>', first)
    assert [plain(one) for one in words] == ["rank 2 in run 1", "not retrieved in run 1", "rank 1 in run 1"]
    moves = re.findall(r'class="moved(?: \w+)?">([^<]+)<', second)
    assert moves == ["3 → 1", "1 → 2", "new"]
    assert 'class="moved' not in first


def test_line_at_k_and_gold():
    for column in columns(write(rankings(ranked("abc", "cad")))):
        assert re.findall(r'class="rank">(\d)|class="cutoff">([^<]+)', column) == [
            ("1", ""), ("2", ""), ("", "k = 2"), ("3", "")
        ]  # fmt: skip
        assert column.count('class="item hit"') == 1
        assert "same id" in column


def test_ranks_below_the_first_are_folded():
    items = [f"d{i}" for i in range(40)]
    for k, folded in ((5, False), (20, False), (30, True)):
        (column,) = columns(write(rankings(ranked(items, gold=["d3"], metrics=f"recall@{k} hit@20"))))
        first, _, deeper = column.partition('<details class="deeper">')
        assert first.count('class="item') == 20
        assert "Ranks 21 to 40" in deeper
        assert (f"k = {k}" in deeper) is folded
        assert column.count("cutoff") == 1


def test_run_without_the_query():
    runs = ranked("abc", None)
    assert "This run does not have the query." in columns(write(rankings(runs)))[1]
    assert "no such query" in write(gold_ranks(runs))
    assert "–" in write(query_scores(runs, [{"rr": 0.5}, {}]))


def test_run_without_retrieved_items():
    assert "Nothing was retrieved." in columns(write(rankings(ranked("ab", ""))))[1]


def test_gold_has_its_rank_in_each_run_and_the_cause():
    written = write(gold_ranks(ranked("abc", "cab", "abd", gold="cz")))
    rows = re.findall(r"<tr>(.*?)</tr>", written)[1:]
    cells = [[plain(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]
    assert cells[0][0].startswith("rank 3 at rank 3, below k = 2")
    assert cells[0][1] == "rank 1"
    assert cells[0][2].startswith("not retrieved not among the 3 retrieved items")
    assert all("not retrieved" in cell for cell in cells[1])
    assert plain(re.findall(r"<th scope=\"row\"[^>]*>(.*?)</th>", rows[1])[0]) == "z"


def test_rank_of_gold_points_at_its_item():
    runs = ranked("abc", "cab")
    number = re.search(r'class="found" data-item="(\d+)">rank 1', write(gold_ranks(runs)))[1]
    assert f'<li class="item hit" data-item="{number}">' in columns(write(rankings(runs)))[1]


def test_irrelevant_gold_is_not_listed():
    run = karat.evaluate(retrieved={"q": {"a": 2, "b": 1}}, gold={"q": {"a": 0, "b": 1}}, metrics="rr")
    written = write(gold_ranks([RankedRun("x", Ranking(run, 0), {})]))
    assert ">b<" in written
    assert ">a<" not in written


def test_query_without_gold():
    assert "The query has no gold." in write(gold_ranks(ranked("abc", gold="")))


def test_scores_with_differences_from_the_first_run():
    values = [{"rr": 0.5, "first_rank": 3.0}, {"rr": 1.0, "false_alarm@5": 1.0}, {"rr": 0.25}, {"rr": float("nan")}]
    written = write(query_scores(ranked("a", "a", "a", "a"), values))
    row = re.search(r"<th scope=\"row\"[^>]*>rr</th>(.*?)</tr>", written)[1]
    assert [plain(cell) for cell in re.findall("<td.*?</td>", row)] == ["0.500", "1.000 +0.500", "0.250 -0.250", "–"]
    assert 'class="change up">+0.500' in row
    assert 'class="change down">-0.250' in row


def test_less_is_better_for_some_metrics():
    written = write(query_scores(ranked("a", "a"), [{"false_alarm@5": 0.0}, {"false_alarm@5": 1.0}]))
    assert 'class="change down">+1.000' in written


def test_fields_that_differ_are_in_the_columns():
    runs = ranked("abc", "cab", topic=["billing", "billing"], latency=[12.0, 34.0])
    assert shared_fields(runs) == {"topic": "billing"}
    first, second = columns(write(rankings(runs)))
    assert "12 ms" in first
    assert "34 ms" in second
    assert "billing" not in first


def test_long_fields_can_be_expanded_and_are_compared_as_a_whole():
    text = "the same words at the start " * 20
    runs = ranked("abc", "cab", notes=[f"{text} first", f"{text} second"])
    assert shared_fields(runs) == {}
    first, second = columns(write(rankings(runs)))
    assert "…" in first
    assert "the start  first</bdi>" in first
    assert "the start  second</bdi>" in second


def test_steps_are_in_the_column():
    run = karat.evaluate(TWO_HOPS, "recall@5")
    written = write(rankings([RankedRun("hops", Ranking(run, 0), {})]))
    assert "river in Prague" in written
    assert ">step 2, rank 2<" in written


@pytest.mark.parametrize("bad", PAYLOADS)
def test_hostile_texts_stay_texts(bad):
    item = {"id": f"c {bad}", "text": f"Before. {bad} After.", "doc": bad}
    runs = ranked([item], [item], gold=[{"id": bad, "text": bad}], topic=[bad, bad], latency=[1, 2])
    runs = [run._replace(name=bad) for run in runs]
    parts = [rankings(runs), gold_ranks(runs), query_scores(runs, [{"rr": 1.0}] * 2)]
    tags = {tag for part in parts for tag in re.findall(r"<(\w+)", write(part))}
    assert tags <= {
        "section", "h2", "h3", "h4", "p", "div", "span", "a", "bdi", "ol", "li", "mark", "table", "caption", "thead",
        "tbody", "tr", "th", "td", "details", "summary", "dl", "dt", "dd", "b",
    }  # fmt: skip


def test_gold_of_a_query_that_could_not_be_judged_has_no_rank():
    good, bad = ranked("abc", "xyz")
    run = bad.ranking.run
    failed = run.replace(hits=run.all_hits.replace(failed={0: "timed out"}))
    text = plain(write(gold_ranks([good, RankedRun("bad", Ranking(failed, 0), {})])))
    assert text.endswith("would find it not judged")
