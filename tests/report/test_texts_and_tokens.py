"""Texts that are cut, the curve over tokens, charts, and the table of queries as a server would write it."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

import karat
from karat.analysis.stored_tokens import recall_over_tokens
from karat.report.html.chart import Axis, Chart, legend, tone
from karat.report.html.excerpts import cut, excerpt, opening
from karat.report.html.markup import h, plain, write
from karat.report.html.queries import Order, query_rows, query_table
from karat.report.html.scores import table
from karat.report.html.token_section import token_curve
from support import example


@pytest.mark.parametrize(
    ("text", "longest", "shown"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 12, "one two…"),
        ("one two three", 7, "one two…"),
        ("one, two three", 6, "one…"),
        ("word" * 40, 20, "wordwordwordwordword…"),
        ("a " + "b" * 100, 60, "a " + "b" * 58 + "…"),
        ("東京都庁舎前広場", 4, "東京都庁…"),
        ("cafe\u0301 bar", 4, "caf…"),
    ],
)
def test_a_text_is_cut_at_the_end_of_a_word(text, longest, shown):
    assert cut(text, longest) == shown


def test_the_whole_text_is_there_and_stays_text():
    text = "<b>bold</b> words " * 20
    written = write(excerpt(text, 40))
    assert "<b>" not in written
    assert written.count("<details") == 1
    assert plain(excerpt(text, 40)).endswith(text)
    assert plain(opening(text, 40)).replace("…", "") == text
    assert write(excerpt("short", 40)) == "<bdi>short</bdi>"


def lasting(rows, metrics="recall@2"):
    return karat.evaluate(rows, metrics, judge="ids")


def sample(words, gold):
    found = [{"id": f"d{i}", "text": " ".join(["word"] * count)} for i, count in enumerate(words)]
    return {"retrieved": found, "gold": [{"id": gold, "text": "x"}]}


def test_words_of_the_stored_texts_are_the_tokens():
    """The same as a budget in the metrics, which counts words, too."""
    rows = [sample([10, 20, 40], "d1"), sample([15, 5, 5, 50], "d3"), sample([90, 1], "d0"), sample([3], "x")] * 5
    found = recall_over_tokens(lasting(rows))
    asked = lasting(rows, "recall@30t,50t,70t,100t")
    assert found.counted_by == "words"
    assert not found.is_estimated
    assert not found.is_partial
    for budget in (30, 50, 70, 100):
        assert found.at[budget][0] == asked.mean[f"recall@{budget}t"]
        assert found.at[budget][1] == asked.interval()[f"recall@{budget}t"]
    assert {30, 50, 70, 100} <= {*recall_over_tokens(asked).at}
    assert recall_over_tokens(asked).at[50] == found.at[50]


def test_no_curve_where_texts_are_missing():
    assert recall_over_tokens(lasting([{"retrieved": ["a", "b"], "gold": ["a"]}] * 3)) is None
    mixed = [{"retrieved": [{"id": "a", "text": "some words"}, {"id": "b"}], "gold": ["a"]}] * 3
    assert recall_over_tokens(lasting(mixed)) is None


def test_budgets_end_where_ranks_are_not_stored():
    """Of 200 ranks 20 are stored: a budget beyond their 200 words would take the others for not retrieved."""
    run = lasting([sample([10] * 200, "d150")] * 5)
    found = recall_over_tokens(run)
    assert found.is_partial
    assert "ranks that the run does not store" in write(token_curve(run))
    assert max(found.at) < 200
    assert all(value == 0 for value, _ in found.at.values())


def test_tokens_of_texts_that_were_cut_are_estimated():
    rows = [sample([5000, 100], "d1")] * 5
    found = recall_over_tokens(lasting(rows))
    assert found.is_estimated
    assert [value for budget, (value, _) in found.at.items() if budget <= 5000] == [0.0] * sum(
        b <= 5000 for b in found.at
    )
    assert found.at[max(found.at)][0] == 1


def test_a_chart_places_its_marks_by_value():
    chart = Chart(Axis(1, 100, [1, 10, 100], "k", is_log=True), Axis(0, 1), height=200)
    chart.line("recall", [(1, 0.0), (10, 0.5), (100, float("nan"))])
    chart.dot(tone(1), 10, 0.5, "half", link="/there")
    chart.stop(1, "first")
    chart.stop(100, "last")
    drawn = write(chart.drawing("a name"))
    assert 'points="0,200 500,100"' in drawn
    assert '<a href="/there" aria-label="half"><circle class="tone-1 dash-1" cx="50%" cy="100.0"' in drawn
    assert re.findall(r'class="stop" x="(\S+)" width="(\S+)"', drawn) == [("0%", "50%"), ("50%", "50%")]
    assert 'role="group" aria-label="a name"' in drawn
    kinds = {tone(i) for i in range(30)}
    assert len(kinds) == 30
    assert write(legend(["a", h("b", "c")])).count("<polyline") == 2


def test_labels_of_an_axis_do_not_overlap():
    axis = Axis(1, 100, range(1, 101), preferred={51})
    wide, narrow = axis.fitting(900), axis.fitting(270)
    assert {0, 50, 99} <= wide & narrow
    assert 5 < len(narrow) < len(wide) < 100
    for width, kept in ((900, wide), (270, narrow)):
        places = sorted(axis.place(axis.ticks[tick]) * width for tick in kept)
        assert min(after - before for before, after in pairwise(places)) > 14


@pytest.mark.parametrize(
    ("columns", "text", "cards"),
    [(5, (0,), False), (6, (0,), True), (3, (0, 2), False), (4, (0, 3), True), (2, (0, 1), True)],
)
def test_wide_tables_become_cards_with_headings(columns, text, cards):
    written = write(table("caption", [f"head {i}" for i in range(columns)], [["1"] * columns], text=text))
    assert ("cards" in written) is cards
    assert written.count("data-label") == (columns if cards else 0)


def test_tables_of_long_numbers_become_cards():
    heads = ["run", "gain_points@5", "cost_in_cents@5", "recall@5", "rr"]
    assert "cards" in write(table("caption", heads, [["main", "131.667", "10971.193", "0.411", "0.367"]]))
    assert "cards" not in write(table("caption", ["metric", "mean", "95 % interval", "undefined"], [["rr", *"123"]]))


def test_rows_of_a_part_of_a_run_for_a_server():
    part = example.run().take([5, 3])
    names = ["recall@5", "rr"]
    rows = query_rows(part, names, lambda row: h("a", "open", href=f"/opened/{row}"))
    written = write(
        query_table(names, rows, order=Order("rr", is_descending=True), sort_link=lambda column: f"?sort={column}")
    )
    assert re.findall(r'<bdi class="id">(\w+)', written) == list(part.ids)
    assert re.findall(r'href="(/opened/\d)"', written) == ["/opened/0", "/opened/1"]
    assert re.findall(r'href="\?sort=([^"]+)"', written) == ["query", "recall@5", "rr", "found at any rank"]
    assert re.search(r'aria-sort="descending"><a href="\?sort=rr"', written)
    assert "Sorted by rr, highest first." in written
