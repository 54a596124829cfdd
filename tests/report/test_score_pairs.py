"""The scatter of the scores of two runs: every query is in one circle, and large runs need no more circles."""

from __future__ import annotations

import re

import numpy as np
import pytest

import karat
from karat.report.html.markup import write
from karat.report.html.score_pairs import Bins, ScorePairs, score_pairs
from support import example

NAN = float("nan")
FEW = [0.0, 0.5, 1.0, 1.0, NAN, 0.5, 0.0]
NEW = [1.0, 0.5, 0.0, 1.0, 1.0, 0.5, NAN]


def pairs(before=FEW, after=NEW, metric="recall@5"):
    return ScorePairs(metric, np.array(before), np.array(after))


def written(found, link=lambda before, after: f"/x?{before},{after}"):
    return "".join(map(write, score_pairs(found, ("main", "branch"), link)))


def by_label(found):
    labels = found.bins.labels
    return {(labels[cell.before], labels[cell.after]): cell.queries for cell in found.cells}


def test_equal_pairs_are_one_circle_and_undefined_ones_are_left_out():
    assert by_label(pairs()) == {("0", "1"): 1, ("0.5", "0.5"): 2, ("1", "0"): 1, ("1", "1"): 1}
    assert pairs().counts == {"won": 1, "tied": 3, "lost": 1}


def test_less_is_better_turns_the_diagonal():
    found = pairs(metric="false_alarm@5")
    assert found.counts == {"won": 1, "tied": 3, "lost": 1}
    assert [int(way) for way in found.way] == [-1, 0, 1, 0, 0]
    assert "Those below the diagonal" in written(found)


def test_each_circle_is_a_named_link_to_its_queries():
    page = written(pairs())
    assert '<a href="/x?0.5,0.5" aria-label="recall@5 0.5 → 0.5: 2 queries">' in page
    assert 'aria-label="recall@5 1 → 0: 1 query"' in page
    svg = page[page.index("<svg") : page.index("</figure>")]
    assert 'role="group"' in svg
    assert svg.count("<a ") == 4
    table = page[page.index("<table") :]
    assert re.findall(r'<td class="n"><a [^>]*>([^<]*)</a>', table) == ["1", "1", "2", "1"]


def test_without_links_it_is_an_image():
    page = written(pairs(), None)
    assert "<a " not in page
    assert 'role="img" aria-label="recall@5 of each query: main across, branch upwards. 1 won, 3 tied, 1 lost."' in page


def test_the_area_of_a_circle_is_the_number_of_its_queries():
    before = [0.0] * 16 + [1.0] * 4 + [0.5]
    found = pairs(before, [1.0] * 16 + [0.5] * 4 + [0.0])
    circles = re.findall(r"<circle [^>]* r=\"([\d.]+)\"[^>]*><title>[^:]*: (\d+)", written(found))
    size = {int(count): float(radius) for radius, count in circles}
    assert size[16] == 2 * size[4] == 4 * size[1]


def test_many_ties_do_not_make_the_others_invisible():
    found = pairs([1.0] * 10_000 + [0.0], [1.0] * 10_000 + [1.0])
    sizes = sorted(float(radius) for radius in re.findall(r"<circle [^>]* r=\"([\d.]+)\"", written(found)))
    assert sizes[-1] == 2 * sizes[0]
    assert "Circles on the diagonal are larger than drawn." in written(found)


@pytest.mark.parametrize("size", [1_000, 300_000])
def test_many_values_are_ranges(size):
    rng = np.random.default_rng(1)
    before, after = (np.clip(rng.normal(0.5, 0.4, size), 0, 1) for _ in "ab")
    found = pairs(before, after, "ndcg@10")
    assert not found.bins.exact
    assert sum(cell.queries for cell in found.cells) == size
    assert sum(cell.won for cell in found.cells) == (after > before).sum()
    assert written(found).count("<") / 2 < 1_200
    assert by_label(found)["0", "1"] == ((before == 0) & (after == 1)).sum()
    inside = found.inside("0.2 to 0.3", "0.9 to 1")
    assert inside.sum() == by_label(found)["0.2 to 0.3", "0.9 to 1"]
    assert before[inside].min() >= 0.2
    assert before[inside].max() < 0.3
    assert after[inside].min() >= 0.9
    assert "ndcg@10 0.2 to 0.3 → 0.2 to 0.3: " in written(found)


def test_every_circle_finds_its_queries():
    rng = np.random.default_rng(2)
    for before, after in (
        (rng.integers(0, 4, 500) / 3, rng.integers(0, 4, 500) / 3),
        (rng.random(500), rng.random(500)),
        (rng.normal(3, 2, 500), rng.normal(3, 2, 500)),
    ):
        found = pairs(before, after)
        for (first, second), queries in by_label(found).items():
            assert found.inside(first, second).sum() == queries
        assert found.inside("nothing", "0") is None


def test_bins_that_would_look_alike_have_more_digits():
    assert Bins.of(np.array([0.1, 0.10001])).labels == ["0.1", "0.10001"]


def test_large_numbers_have_no_powers_of_ten():
    assert Bins.of(np.array([8296.3, 9530.9, 12_000.0])).labels == ["8,296", "9,531", "12,000"]
    assert Bins.of(np.array([12_000.1, 12_000.2])).labels == ["12000.1", "12000.2"]
    many = Bins.of(np.linspace(12_000.0, 12_001.0, 100)).labels
    assert len(set(many)) == len(many)
    assert many[0] == "12000 to 12000.1"


def test_scores_that_are_not_from_0_to_1_fill_the_axis():
    assert Bins.of(np.array([8000.0, 9000.0, 12_000.0])).places == [0.0, 0.25, 1.0]
    assert Bins.of(np.array([7.0])).places == [0.5]
    assert Bins.of(np.array([0.25, 0.5])).places == [0.25, 0.5]


def test_no_query_in_both_runs():
    assert written(pairs([NAN], [1.0])) == "<p>No query has a recall@5 in both runs.</p>"


def test_names_stay_text():
    page = "".join(map(write, score_pairs(pairs(), ("<b>", '"><i>'), lambda *_: "#")))
    assert "<b>" not in page
    assert "<i>" not in page


def test_the_report_with_a_baseline_has_the_scatter(tmp_path):
    run, baseline = example.run(), example.run("first-words")
    run.report(tmp_path / "page.html", baseline=baseline)
    page = (tmp_path / "page.html").read_text("utf-8")
    section = page[page.index('id="pairs"') :].partition("</section>")[0]
    name, count = re.findall(r'aria-label="recall@5 ([^:"]*): (\d+) quer', section)[0]
    before, _, after = name.partition(" → ")
    both = zip(*(each["recall@5"] for each in karat.compare(baseline, run).scores), strict=True)
    matching = [(f"{old:.3g}", f"{new:.3g}") == (before, after) for old, new in both]
    assert sum(matching) == int(count)
    run.report(tmp_path / "alone.html")
    assert 'id="pairs"' not in (tmp_path / "alone.html").read_text("utf-8")
