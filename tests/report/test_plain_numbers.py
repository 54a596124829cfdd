"""Numbers and names that a reader takes at their word: sizes of slices, the metric of the moves, titles, notes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import karat
from karat.report.html.curves import curves
from karat.report.html.excerpts import cut, opening, short_id
from karat.report.html.markup import plain, write
from karat.report.html.opened_query import Bodies
from karat.report.html.queries import Order, query_row, query_table
from karat.report.html.scores import means, slices
from karat.report.html.sections import against, misses
from karat.report.html.side_by_side import slice_table
from support import compared

METRICS = "recall@1,5 false_alarm@5"


def rows(found=0.5, seed=0):
    """Queries of which some have no answer."""
    made = [one | {"kind": "odd" if i % 2 else "even"} for i, one in enumerate(compared.rows(found, 20, seed))]
    none = [{"id": f"n{i}", "retrieved": ["x"], "answerable": False, "kind": "odd"} for i in range(2)]
    return [*made, *none]


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(rows(), METRICS, judge="ids")


def sizes(written):
    """The cells with the number of queries, by the name of the row."""
    found = re.findall(r'<th scope="row"[^>]*>(.*?)</th><td[^>]*>(.*?)</td>', written)
    return {re.sub(r"<[^>]*>", "", name): size for name, size in found}


def test_a_slice_has_all_its_queries_and_says_how_many_are_scored(run):
    shown = sizes(write(slices(run, link=lambda field, value: f"/{field}/{value}")))
    assert shown == {"even": "10", "odd": "12, 10 scored", "true": "20", "false": "2, 0 scored"}


def test_compared_slices_say_the_same(run):
    comparison = karat.compare(run, karat.evaluate(rows(0.7), METRICS, judge="ids"))
    found = {"true": 20, "false": 2}
    written = write(slice_table(["a", "b"], comparison.by("answerable"), "answerable", "recall@5", {}, found))
    assert sizes(written) == {"true": "20", "false": "2, 0 scored"}


def test_the_moves_are_in_the_headline_metric(run):
    comparison = karat.compare(run, karat.evaluate(rows(0.8), METRICS, judge="ids"))
    assert comparison.moved()[0].metric == "recall@1"
    written = write(against(comparison, {name: i for i, name in enumerate(run.ids)}))
    assert '<th scope="col">recall@5</th>' in written.partition("Queries that moved most")[2]


def test_moves_of_another_metric_are_shown_if_the_headline_metric_did_not_move():
    before, after = (compared.one(found, metrics="recall@1,5") for found in (["a", "x"], ["x", "a"]))
    written = write(against(karat.compare(before, after, allow_mismatch=True), {"q": 0}))
    assert '<th scope="col">recall@1</th>' in written.partition("Queries that moved most")[2]


def test_the_detectable_difference_has_a_column_only_if_there_is_one():
    places = {f"q{i}": i for i in range(60)}
    unclear = karat.compare(compared.run(0.5), compared.run(0.5, seed=1), allow_mismatch=True)
    assert "cannot tell" in {row.verdict for row in unclear.rows}
    assert ">detectable</th>" in write(against(unclear, places))
    clear = karat.compare(compared.run(0.1), compared.run(0.9))
    assert {row.verdict for row in clear.rows} == {"better"}
    written = write(against(clear, places))
    assert "detectable" not in written.lower()
    assert re.search(r'<td class="verdict"[^>]*><span class="up">', written)


def test_the_title_is_the_name_of_the_run_file(run, tmp_path):
    run.save(tmp_path / "reranked.parquet")
    karat.load(tmp_path / "reranked.parquet").report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<title>reranked · karat</title>" in page
    assert "<h1><bdi>reranked</bdi></h1>" in page


def test_less_is_better_is_said_with_the_scores(run):
    written = write(means(run))
    tile = written.partition("<article")[2].rpartition("</article>")[0]
    said = '<span class="small sense">less is better</span>'
    assert tile.count(said) == 1
    assert f"false_alarm@5 {said}" in tile
    assert f"false_alarm@5 {said}" in written.partition("Every metric")[2]


def test_less_is_better_is_said_above_the_queries_and_beside_other_metrics(run):
    written = write(query_table(["recall@5", "false_alarm@5"], [], order=Order("recall@5")))
    assert "Less is better: false_alarm@5." in written
    assert "Less is better" not in write(query_table(["recall@5"], [], order=Order("recall@5")))
    assert "false_alarm@5 less is better" in plain(slices(run))


@pytest.mark.parametrize(
    ("metric", "kinds"),
    [("recall@1", ["n worst", "n", "n best", "n none"]), ("false_alarm@5", ["n best", "n", "n worst", "n none"])],
)
def test_the_colour_of_a_score_knows_if_less_is_better(run, metric, kinds):
    few = run.take(range(4))
    scored = few.replace(scores={**few.scores, metric: np.array([0.0, 0.5, 1.0, np.nan])})
    cells = [write(query_row(scored, row, [metric], [], None)) for row in range(4)]
    assert [re.findall(r'<td class="([^"]*)"', cell)[0] for cell in cells] == kinds
    beyond = few.replace(scores={**few.scores, metric: np.array([-120.0, 40.0, 12_000.0, np.nan])})
    kinds_beyond = [
        re.findall(r'<td class="([^"]*)"', write(query_row(beyond, row, [metric], [], None)))[0] for row in range(3)
    ]
    assert kinds_beyond == ["n", "n", "n"]


def test_long_ids_do_not_fill_the_page():
    name = "the-same-start-" * 300 + "7"
    run = karat.evaluate([{"id": name, "retrieved": ["x" * 5000], "gold": ["a"]}], "recall@1", judge="ids")
    row = query_row(run, 0, ["recall@1"], [], None)
    assert '<span class="rest">' in write(row)
    assert len(plain(misses(karat.diagnose(run), {name: 0}))) < 1_000
    assert plain(short_id(name)).endswith("start-7")
    assert name[:350] not in plain(short_id(name))
    assert name[:340] in write(short_id(name))
    assert len(write(short_id(name))) < 1_000
    assert len(plain(Bodies(run, {}).of(0, run.gold(name)))) < 500


def test_the_heading_says_that_every_rank_counts():
    written = write(query_table(["recall@5"], [], order=Order("recall@5")))
    head = re.search(r'<th class="n" scope="col" title="([^"]+)">found at any rank', written)
    assert "any rank" in head[1]


def test_long_names_of_metrics_can_break():
    written = write(query_table(["false_alarm@5"], [], order=Order("false_alarm@5")))
    assert "false_<wbr>alarm<wbr>@5" in written


def test_metrics_that_a_narrow_screen_leaves_out_are_named():
    names = ["recall@5", "rr", "ndcg@5", "ap", "false_alarm@5"]
    assert "Only on a wider screen: ap, false_alarm@5." in write(query_table(names, [], order=Order("rr")))
    assert "wider screen" not in write(query_table(names[:3], [], order=Order("rr")))


def test_a_cut_text_ends_with_three_dots_and_no_comma():
    assert cut("Add a webhook. Then test it.", 16) == "Add a webhook…"
    assert plain(opening("Lost my card, what now?", 14)) == "Lost my card…, what now?"
    assert cut("..... and more", 6) == "…"


def test_the_note_below_a_chart_names_the_baseline(run):
    assert "Dashed: <bdi>dense</bdi>. " in write(curves(run, run, "dense"))
    assert "Dashed: <bdi>the baseline</bdi>. " in write(curves(run, run))
