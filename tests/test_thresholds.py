"""Score thresholds: the curve against a twin, AUROC, nAUC, the recommended threshold, and the pages that show it."""

from __future__ import annotations

import re
from itertools import product
from math import inf, isnan, nan
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.errors import BadArgument
from karat.run.thresholds import Thresholds
from karat.stats.discrimination import auroc, auroc_interval, confidences, nauc

SCORES = st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.8])
rankings = st.lists(st.tuples(st.sampled_from("abcd"), SCORES), max_size=5, unique_by=lambda pair: pair[0])
queries = st.lists(st.tuples(rankings, st.sets(st.sampled_from("abcd"), max_size=3)), min_size=1, max_size=8)
few = settings(max_examples=60, deadline=None)


def samples(drawn):
    """Queries with gold are answerable; those without are marked."""
    rows = []
    for number, (ranking, gold) in enumerate(drawn):
        items = [{"id": item, "score": score} for item, score in ranking]
        rows.append(
            {"id": f"q{number}", "retrieved": items, **({"gold": sorted(gold)} if gold else {"answerable": False})}
        )
    return rows


def twin(drawn, k, threshold):
    """False alarms and recall, one query after the other."""
    alarms, recalls = [], []
    for ranking, gold in drawn:
        returned = {item for item, score in ranking[:k] if score >= threshold}
        if gold:
            recalls.append(len(returned & gold) / len(gold))
        else:
            alarms.append(float(bool(returned)))
    return sum(alarms) / len(alarms), sum(recalls) / len(recalls)


@few
@given(drawn=queries, k=st.integers(1, 5))
def test_the_curve_equals_its_twin(drawn, k):
    if not any(gold for _, gold in drawn) or all(gold for _, gold in drawn) or not any(own for own, _ in drawn):
        return
    found = karat.evaluate(samples(drawn), "recall@5").thresholds(k)
    for point in [*found.points, *map(found.at, (-inf, 0.15, 0.5, 2.0)), found.keeping(0.9), found.keeping(0.5)]:
        assert (point.false_alarm, point.recall) == pytest.approx(twin(drawn, k, point.threshold))
    whole = twin(drawn, k, -inf)[1]
    assert found.keeping(1.0).recall == pytest.approx(whole)
    gains = {t: twin(drawn, k, t)[1] / (whole or nan) - twin(drawn, k, t)[0] for t in (-inf, 0.1, 0.2, 0.3, 0.5, 0.8)}
    if whole and found.choice is not None:
        after = found.choice.after
        assert after.kept - after.false_alarm == pytest.approx(max(gains.values()))
        assert max(gains.values()) > gains[-inf]
    elif whole:
        assert max(gains.values()) == pytest.approx(gains[-inf])


numbers = st.lists(st.sampled_from([-inf, 0.0, 0.5, 1.0, 2.0]), max_size=6).map(np.array)


@few
@given(positive=numbers, negative=numbers)
def test_auroc_counts_pairs(positive, negative):
    pairs = [1.0 if p > n else 0.5 if p == n else 0.0 for p, n in product(positive, negative)]
    expected = sum(pairs) / len(pairs) if pairs else nan
    assert auroc(positive, negative) == pytest.approx(expected, nan_ok=True)


def test_interval_of_an_auroc():
    """Around the area, narrower with more queries, and with a width even at 1; none for fewer than five."""
    low, high = auroc_interval(0.8, 20, 20)
    assert 0.5 < low < 0.8 < high < 1
    wide, perfect = auroc_interval(0.8, 8, 8), auroc_interval(1.0, 20, 20)
    assert wide.high - wide.low > high - low
    assert perfect.low < 0.95
    assert perfect.high == 1
    assert isnan(auroc_interval(0.8, 4, 50).low)


def test_interval_of_an_auroc_covers():
    """Normal scores one standard deviation apart have an area of 0.760; 95 % intervals contain it about so often."""
    random, inside = np.random.default_rng(1), 0
    for _ in range(400):
        area = auroc(random.normal(1, 1, 12), random.normal(0, 1, 12))
        low, high = auroc_interval(area, 12, 12)
        inside += low <= 0.7602 <= high
    assert inside / 400 > 0.92


def test_nauc_by_hand():
    """Ten queries, and a confidence that is the score itself, its reverse, or the same for all."""
    scores = np.arange(10) / 10
    assert nauc(scores, scores) == pytest.approx(1)
    assert nauc(-scores, scores) == pytest.approx(-1)
    assert isnan(nauc(scores, np.ones(10)))
    assert isnan(nauc(np.zeros(0), np.zeros(0)))
    own = confidences(np.array([0.2, 0.8, 0.5, 0.4]), np.array([0, 3, 3, 4]))
    assert own["max"].tolist() == [0.8, 0, 0.4]
    assert own["diff1"] == pytest.approx([0.3, 0, 0])
    assert own["std"] == pytest.approx([np.std([0.2, 0.8, 0.5]), 0, 0])


def test_nauc_of_a_run_is_over_the_queries_that_are_defined(tmp_path):
    drawn = [([("a", 0.9)], {"a"}), ([("b", 0.4)], {"a"}), ([("b", 0.3)], {"a"}), ([("a", 0.99)], set())]
    run = karat.evaluate(samples(drawn), "recall@5 false_alarm@5")
    run.save(tmp_path / "run.parquet")
    expected = nauc(np.array([0.9, 0.4, 0.3]), np.array([1.0, 0.0, 0.0]))
    for one in (run, karat.load(tmp_path / "run.parquet")):
        assert one.nauc().keys() == {"recall@5"}
        assert one.nauc()["recall@5"]["max"] == expected == 1
    plain = karat.evaluate([{**row, "answerable": None, "gold": row.get("gold", [])} for row in samples(drawn)], "rr")
    assert plain.nauc()["rr"]["max"] == 1  # from the stored items
    with pytest.raises(BadArgument, match="nAUC needs the retrieval scores"):
        karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr").nauc()


def separable(answers=30, others=30, overlap=0):
    """Top scores from 0.6 for queries with an answer, below 0.5 for the others; some of these overlap."""
    rows = [([("a", 0.6 + i / 100)], {"a"}) for i in range(answers)]
    return rows + [([("b", 0.2 + i / 100 if i >= overlap else 0.7)], set()) for i in range(others)]


def test_the_recommended_threshold_separates():
    found = karat.evaluate(samples(separable()), "recall@5").thresholds()
    assert found.auroc == 1
    choice = found.choice
    assert 0.49 < choice.threshold <= 0.6
    assert (choice.after.false_alarm, choice.after.recall) == (0, 1)
    assert choice.false_alarm <= 0.1
    assert choice.loss <= 0.1
    assert choice.false_alarm_interval.high > choice.false_alarm
    assert choice.loss_interval.high > choice.loss


def test_held_out_figures_are_worse_than_those_of_the_choice():
    """Scores without any information: on the queries it was chosen on, a threshold looks good by chance."""
    random, chosen, held_out = np.random.default_rng(3), [], []
    for _ in range(20):
        top = random.random(24)
        drawn = [([("a", round(float(score), 6))], {"a"} if i % 2 else set()) for i, score in enumerate(top)]
        choice = karat.evaluate(samples(drawn), "recall@5").thresholds().choice
        if choice is not None:
            chosen.append(choice.after.kept - choice.after.false_alarm)
            held_out.append(1 - choice.loss - choice.false_alarm)
    assert np.mean(chosen) > 0.1
    assert np.mean(held_out) < np.mean(chosen) - 0.1
    assert abs(np.mean(held_out)) < 0.15


def test_the_intervals_of_a_chosen_threshold_cover():
    """Normal scores, of which the truth at every threshold is known; little separation makes the choice vary most."""
    normal, random, inside, count = NormalDist(), np.random.default_rng(7), [0, 0], 0
    for _ in range(150):
        tops, alarm = random.normal(0.5, 1, 60), random.normal(0, 1, 40)
        found = Thresholds(
            k=5, ids=[f"{i:03}" for i in range(100)], alarm=alarm, alarm_rows=np.arange(60, 100), tops=tops, score=tops,
            gold_row=np.arange(60), answerable_rows=np.arange(60), unknown=0,
        )  # fmt: skip
        if (choice := found.choice) is not None:
            truth = 1 - normal.cdf(choice.threshold), normal.cdf(choice.threshold - 0.5)
            ends = choice.false_alarm_interval, choice.loss_interval
            count += 1
            for i in range(2):
                inside[i] += ends[i].low <= truth[i] <= ends[i].high
    assert count > 100
    assert min(inside) >= 0.95 * count


def test_the_order_of_the_queries_does_not_matter():
    rows = samples(separable(12, 12, overlap=3))
    one, other = (karat.evaluate(own, "recall@5").thresholds() for own in (rows, rows[::-1]))
    assert one.choice == other.choice
    assert one.points == other.points


def test_bad_questions():
    run = karat.evaluate(samples(separable(3, 3)), "recall@5")
    for k in (0, -1, 2.5, True):
        with pytest.raises(BadArgument, match="k is a whole number"):
            run.thresholds(k)
    for threshold in (nan, "0.5", True):
        with pytest.raises(BadArgument, match="a threshold is a number"):
            run.thresholds().at(threshold)
    with pytest.raises(BadArgument, match="thresholds need queries without an answer"):
        run.take([0, 1]).thresholds()
    with pytest.raises(BadArgument, match="thresholds need queries with relevant gold"):
        run.take([3, 4]).thresholds()


def test_diagnose_recommends_it_with_its_cost():
    run = karat.evaluate(samples(separable(overlap=6)), "recall@5 false_alarm@5")
    (advice,) = [line for line in karat.diagnose(run).advice if "without an answer" in line]
    assert re.match(r"A score threshold of [\d.]+ would lower the false alarms on the 30 queries", advice)
    assert re.search(r"to \d\.\d+ \[\d\.\d+, \d\.\d+\] and cost \d\.\d+ \[", advice)
    assert re.search(r"On held-out queries it leaves \d\.\d+ false alarms and costs \d\.\d+ of", advice)
    useless = [([("a", 0.1 + i / 10)], {"a"}) for i in range(3)] + [([("b", 0.9)], set())] * 3
    (advice,) = [
        line for line in karat.diagnose(karat.evaluate(samples(useless), "recall@5")).advice if "helps" in line
    ]
    assert advice.startswith("No score threshold helps")
    bare = [{"retrieved": ["a"], "gold": ["a"]}, {"retrieved": ["a"], "answerable": False}]
    assert any("no retrieval scores" in line for line in karat.diagnose(karat.evaluate(bare, "recall@5")).notes)


def test_reports_show_the_curve(tmp_path):
    run = karat.evaluate(samples(separable(overlap=6)), "recall@5 false_alarm@5")
    run.report(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert 'id="thresholds"' in page
    assert "Recall kept against false alarms. AUROC of the top score 0." in page
    assert "On held-out queries it leaves" in page
    assert "AUROC of the top score: 0." in str(run)
    assert "recommended" in run.to_markdown()
    assert "nAUC, as in MTEB" in page
    assert isnan(run.to_dict()["nauc"]["recall@5"]["max"])  # all gold is found: there is nothing to tell apart
    found = run.to_dict()["thresholds"]
    assert found["points"][0].keys() == {"threshold", "false_alarm", "recall", "kept"}
    assert found["choice"]["held_out"]["loss_interval"][0] >= 0
    assert str(run.thresholds()).startswith("score thresholds · top 5 · 30 queries with an answer, 30 without")
    assert run.thresholds().to_markdown().count("\n| ") == 6
    plain = karat.evaluate(samples(separable()[:5]), "recall@5")
    plain.report(tmp_path / "plain.html")
    assert 'id="thresholds"' not in (tmp_path / "plain.html").read_text()
    assert "thresholds" not in plain.to_dict()
