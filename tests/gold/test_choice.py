"""The choice of the next label: weights by hand, a plain twin of the estimate, no bias, exact once all is labelled."""

from __future__ import annotations

from math import log2, sqrt

import numpy as np
import pytest
from benchmarks.label_choice import METRIC, PAGE, first_repetitions, judged, look, simulate, world

from karat.errors import BadArgument, InputError, UnknownName
from karat.gold.choice import design
from karat.gold.label_effects import SUMS, WHOLE, LabelEffects
from karat.gold.label_estimate import estimate, estimates
from karat.stats.interval import difference_intervals

RANKS = np.array([[1, 2, 0, 3, 1, 2, 0], [2, 0, 1, 3, 1, 0, 2]])
"""Two runs, two queries; the first query has the pairs 0 to 3."""
QUERY = np.array([0, 0, 0, 0, 1, 1, 1])
GRADE = np.array([0.0, 1.0, 3.0, 0.0, 2.0, 0.0, 1.0])


def small(metric="precision@2", **options):
    return design(metric, *RANKS, query=QUERY, **options)


def seen(queries=40, kappa=0.5, seed=1, **options):
    rng = np.random.default_rng(seed)
    made = world(rng, queries, **options)
    return made, judged(rng, made.relevant, kappa)


def test_only_pairs_in_one_top_k_have_a_weight():
    made = small()
    assert made.weights[0].tolist() == [0, -0.5, 0.5, 0, 0, -0.5, 0.5]
    assert sorted(made.order().tolist()) == [1, 2, 5, 6]
    assert np.isnan(made.probability[[0, 3, 4]]).all()
    assert np.nansum(made.probability) == pytest.approx(1)


def test_weights_of_dcg_and_rbp_by_hand():
    discount = np.array([0, 1, 1 / log2(3), 1 / 2])
    assert small("dcg@3").weights[0] == pytest.approx(discount[RANKS[1]] - discount[RANKS[0]])
    reader = np.array([0, 0.2, 0.2 * 0.8, 0.2 * 0.64])
    assert small("rbp@3").weights[0] == pytest.approx(reader[RANKS[1]] - reader[RANKS[0]])


def test_values_of_grades():
    grades = np.array([0.0, 1.0, 2.0, 3.0])
    assert LabelEffects("precision@10").value(grades).tolist() == [0, 1, 1, 1]
    assert LabelEffects("precision(rel=2)@10").value(grades).tolist() == [0, 0, 1, 1]
    assert LabelEffects("dcg@10").value(grades).tolist() == [0, 1, 2, 3]
    assert LabelEffects("dcg(gain=exp)@10").value(grades).tolist() == [0, 1, 3, 7]


def test_uncertain_pairs_have_larger_sizes():
    made = small(opinion=np.array([0, 0, 0.5, 0, 0, 3, 1]))
    size = dict(zip((1, 2, 5, 6), made.size.tolist(), strict=True))
    chance = 1 / (1 + np.exp(1.5 * 0.5))
    assert size[1] == pytest.approx(0.5 * sqrt(chance * (1 - chance)))
    assert size[2] == pytest.approx(0.5 * 0.5)
    assert size[5] == pytest.approx(0.5 * sqrt(0.1 * 0.9))  # no label is surer than that
    assert size[1] == pytest.approx(size[6])


@pytest.mark.parametrize("metric", ["precision@2", "dcg@3", "recall@2", "ndcg@3", "rr@3", "hit@1", "ap@3", "f1@2"])
def test_all_labels_give_the_full_difference(metric):
    made = small(metric)
    order = made.order()
    found = estimate(made, order, GRADE[order])
    full = made.contributions(GRADE)[0]
    assert found.difference == pytest.approx(full.mean())
    assert (found.low, found.high) == pytest.approx((full.mean(), full.mean()))
    assert (found.always_low, found.always_high) == pytest.approx((full.mean(), full.mean()))
    assert (found.left, found.more, found.stop, found.decided) == (0, 0, "all", True)


def test_the_differences_of_whole_queries_by_hand():
    recall = small("recall@2").contributions(GRADE)[0]
    assert recall.tolist() == pytest.approx([1 / 2 - 1 / 2, 2 / 2 - 1 / 2])
    reciprocal = small("rr@3").contributions(GRADE)[0]
    assert reciprocal.tolist() == pytest.approx([1 - 1 / 2, 0])
    assert small("recall@2").contributions(np.zeros(7))[0].tolist() == [0, 0]


def test_a_query_with_the_same_top_k_is_not_drawn():
    first = np.array([1, 2, 3, 1, 2])
    second = np.array([2, 1, 3, 1, 0])
    query = np.array([0, 0, 0, 1, 1])
    assert sorted(design("recall@2", first, second, query=query).order().tolist()) == [3, 4]
    assert sorted(design("rr@2", first, second, query=query).order().tolist()) == [0, 1, 3, 4]
    assert sorted(design("ndcg@2", first, second, query=query).order().tolist()) == [0, 1, 2, 3, 4]


def test_a_query_is_asked_for_as_a_whole():
    truth, opinion = seen()
    made = design("recall(rel=2)@5", *truth.ranks, query=truth.query, opinion=opinion)
    queries = truth.query[made.order()]
    changes = np.count_nonzero(np.diff(queries)) + 1
    assert changes == len(np.unique(queries))
    assert not (np.diff(queries) >= 0).all()


def test_twin():
    """The estimate in plain Python: opinions, corrected by answers to other folds, plus weighted errors."""
    truth, opinion = seen(queries=12)
    made = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion, seed=3)
    order, count = made.order().tolist(), 15
    asked = order[:count]
    key = {pair: made.key[made.unit[pair]] for pair in order}
    assert [key[pair] for pair in order] == sorted(key.values())
    threshold = key[order[count]]
    weight = made.weights[0]
    total = 0.0
    for pair in order:
        bin_, fold = int(made.chance[pair] * 10), truth.query[pair] % 5
        alike = [own for own in range(len(truth.query)) if int(made.chance[own] * 10) == bin_]
        typical = 4 * float(np.mean(made.prior[alike]))
        others = [own for own in alike if own in asked and truth.query[own] % 5 != fold]
        ratio = (sum(truth.relevant[others]) + typical) / (sum(made.prior[others]) + typical)
        opinion_now = min(made.prior[pair] * ratio, 1.0)
        error = (truth.relevant[pair] - opinion_now) / min(1.0, made.size[made.unit[pair]] * threshold)
        total += weight[pair] * (opinion_now + (error if pair in asked else 0.0))
    found = estimate(made, np.array(asked), truth.grade[asked])
    assert found.difference == pytest.approx(total / 12)


@pytest.mark.parametrize(
    ("metric", "count"),
    [(METRIC, 8), (METRIC, 40), ("dcg@10", 60), ("recall(rel=2)@5", 60), ("ndcg@10", 90), ("hit(rel=2)@5", 60)],
)
@pytest.mark.parametrize("kappa", [None, 0.3])
def test_no_bias(metric, count, kappa):
    """The mean over many orders is the truth, also with a judge that is wrong."""
    truth, opinion = seen(queries=25, kappa=kappa)
    wrong, errors = None if opinion is None else 3 - opinion, []
    for seed in range(150):
        made = design(metric, *truth.ranks, query=truth.query, opinion=wrong, seed=seed)
        order = made.order()[:count]
        full = float(made.contributions(truth.grade)[0].mean())
        errors.append(estimate(made, order, truth.grade[order]).difference - full)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / sqrt(len(errors))


def test_answers_out_of_order_are_unanswered_until_the_others_come():
    truth, _ = seen()
    made = design(METRIC, *truth.ranks, query=truth.query)
    order = made.order()
    gap = np.delete(order[:40], 10)
    found = estimate(made, gap, truth.grade[gap])
    skipped = truth.grade[order[:40]].copy()
    skipped[10] = np.nan
    same = estimate(made, order[:40], skipped)
    assert (found.difference, found.low) == (same.difference, same.low)
    assert (found.unanswered, same.unanswered) == (0, 1)


def test_missing_answers_are_not_zeros():
    """Relevant and irrelevant items are skipped alike: no bias, and the interval keeps a width."""
    truth, opinion = seen()
    rng, errors = np.random.default_rng(2), []
    for seed in range(150):
        made = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion, seed=seed)
        order = made.order()
        grades = np.where(rng.random(len(order)) < 0.3, np.nan, truth.grade[order])
        found = estimate(made, order, grades)
        errors.append(found.difference - made.contributions(truth.grade)[0].mean())
        assert found.low < found.high
        assert (found.stop, found.left) == ("all", 0)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / sqrt(len(errors))


@pytest.mark.parametrize("metric", ["recall(rel=2)@5", "ndcg@10"])
def test_missing_answers_in_whole_queries(metric):
    truth, opinion = seen()
    covered, rng = [], np.random.default_rng(2)
    for seed in range(40):
        made = design(metric, *truth.ranks, query=truth.query, opinion=opinion, seed=seed)
        order = made.order()
        grades = np.where(rng.random(len(order)) < 0.2, np.nan, truth.grade[order])
        found = estimate(made, order, grades)
        assert found.labels + found.unanswered == len(order)
        covered.append(found.low < made.contributions(truth.grade)[0].mean() < found.high)
    assert np.mean(covered) > 0.8


def test_known_labels_are_facts():
    """Labels without a probability are not drawn again, and leave no uncertainty."""
    truth, opinion = seen()
    known = np.where(np.arange(len(truth.query)) % 3 == 0, truth.grade, np.nan)
    errors = []
    for seed in range(150):
        made = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion, known=known, seed=seed)
        order = made.order()[:30]
        assert np.isnan(known[order]).all()
        full = made.contributions(truth.grade)[0].mean()
        errors.append(estimate(made, order, truth.grade[order]).difference - full)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / sqrt(len(errors))
    everything = design(METRIC, *truth.ranks, query=truth.query, known=truth.grade)
    none = estimate(everything, np.array([], int), np.array([]))
    assert len(everything.order()) == 0
    assert none.low == none.high == pytest.approx(full)


@pytest.mark.parametrize("before", ["precision(rel=2)@5", "opinions"])
def test_labels_of_another_order_leave_no_bias(before):
    """What another metric, or other opinions, asked for says nothing on the random numbers of this order."""
    truth, opinion = seen(queries=60, kappa=0.3)
    errors = []
    for seed in range(150):
        given = (METRIC, opinion) if before == "opinions" else (before, None)
        first = design(given[0], *truth.ranks, query=truth.query, opinion=given[1], seed=seed).order()[:60]
        made = design(METRIC, *truth.ranks, query=truth.query, seed=seed)
        order = np.array([pair for pair in made.order().tolist() if pair not in first][:30])
        after = made.with_known(first, truth.grade[first])
        assert after.order_id == made.order_id
        full = made.contributions(truth.grade)[0].mean()
        errors.append(estimate(after, order, truth.grade[order]).difference - full)
    assert abs(np.mean(errors)) < 4 * np.std(errors) / sqrt(len(errors))


@pytest.mark.parametrize("metric", [METRIC, "recall(rel=2)@5"])
def test_a_skip_before_its_turn_is_missing(metric):
    """It does not move the sample, and the work comes to its end without it."""
    truth, opinion = seen()
    made = design(metric, *truth.ranks, query=truth.query, opinion=opinion)
    order = made.order()
    some, early = order[: made.cost[made.unit[order[0]]]], (order[-1:], np.array([np.nan]))
    alone = estimate(made, some, truth.grade[some])
    found = estimate(made, some, truth.grade[some], early=early)
    assert (found.difference, found.low, found.high) == (alone.difference, alone.low, alone.high)
    assert (found.left, found.unanswered) == (alone.left - 1, 1)
    found = estimate(made, order[:-1], truth.grade[order[:-1]], early=early)
    assert (found.left, found.stop, found.unanswered) == (0, "all", 1)


@pytest.mark.parametrize("metric", [METRIC, "recall(rel=2)@5"])
def test_a_label_given_out_of_turn_keeps_the_order_of_the_others(metric):
    truth, opinion = seen()
    made = design(metric, *truth.ranks, query=truth.query, opinion=opinion)
    order = made.order()
    chosen = order[[-1, -40]]
    after = made.with_known(chosen, truth.grade[chosen]).order()
    assert after.tolist() == [pair for pair in order.tolist() if pair not in chosen]


def test_several_labels_of_a_pair_count_as_their_lower_median():
    made = small()
    order = made.order()
    pairs, grades = np.append(order, [order[0], order[0]]), np.append(GRADE[order], [3.0, np.nan])
    assert estimate(made, pairs, grades).difference == estimate(made, order, GRADE[order]).difference
    for own in ([0.0, 1.0], [1.0, 0.0, 0.0]):
        two = estimate(made, np.append(order[1:], [order[0]] * len(own)), np.append(GRADE[order[1:]], own))
        assert two.difference == estimate(made, order, np.append(0.0, GRADE[order[1:]])).difference


def test_a_few_equal_answers_leave_uncertainty():
    truth, opinion = seen(kappa=None, shift=-9)
    made = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion)
    order = made.order()[:20]
    found = estimate(made, order, np.zeros(20))
    assert found.high - found.low > 0.02
    assert found.low <= 0 <= found.high


def test_the_interval_stays_within_the_possible():
    made = small()
    found = estimate(made, np.array([], int), np.array([]))
    assert (found.low, found.high) == (-0.5, 0.5)
    assert found.stop is None
    first = made.order()[:1]
    one = estimate(made, first, np.array([3.0]))
    assert (one.low, one.high) == ((-0.25, 0.5) if made.weights[0][first[0]] > 0 else (-0.5, 0.25))


def test_total_interval_is_that_of_a_comparison_once_all_is_labelled():
    truth, opinion = seen()
    made = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion)
    found = estimate(made, made.order(), truth.grade[made.order()])
    assert found.total == pytest.approx(difference_intervals({"": made.contributions(truth.grade)[0]})[""])
    assert found.queries_wanted is not None


def test_more_labels_are_foreseen():
    """The number of labels that are missing to ±0.02 is about right after 100 labels."""
    truth, opinion = seen(queries=200)
    made = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion)
    order = made.order()
    early = estimate(made, order[:100], truth.grade[order[:100]])
    assert early.stop is None
    assert early.more == min(early.more_to_decide, early.more_to_be_precise) > 0
    needed = next(n for n in range(100, 900, 5) if _half(estimate(made, order[:n], truth.grade[order[:n]])) <= 0.02)
    assert needed - 100 == pytest.approx(early.more_to_be_precise, rel=0.25)
    late = estimate(made, order[:needed], truth.grade[order[:needed]])
    assert late.stop in ("precise", "decided")
    assert late.more == 0


def _half(found):
    return (found.high - found.low) / 2


def test_more_queries_if_labels_no_longer_help():
    """Two queries that differ much: the labels say little more, the spread between the queries stays."""
    truth, opinion = seen(queries=30)
    made = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion)
    order = made.order()
    stops = {estimate(made, order[:n], truth.grade[order[:n]], tolerance=0.001).stop for n in range(20, len(order), 5)}
    assert "queries" in stops


def test_three_runs_share_the_labels():
    truth, opinion = seen()
    third = np.where(truth.ranks[1] > 0, truth.ranks[1] % 10 + 1, 0)
    made = design(METRIC, *truth.ranks, third, query=truth.query, opinion=opinion)
    order = made.order()
    full = made.contributions(truth.grade).mean(axis=1)
    assert [one.difference for one in estimates(made, order, truth.grade[order])] == pytest.approx(full.tolist())
    assert full[0] == pytest.approx(full[1])
    some = order[:60]
    both = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion)
    three, two = (estimate(one, some, truth.grade[some]) for one in (made, both))
    assert three.difference == pytest.approx(two.difference)
    assert three.high == pytest.approx(two.high)
    assert three.always_high > two.always_high  # two comparisons may err


def test_runs_with_the_same_top_k_need_no_labels():
    made = design("recall@5", np.array([1, 2]), np.array([2, 1]), query=np.array([0, 0]))
    found = estimate(made, np.array([], int), np.array([]))
    assert len(made.order()) == 0
    assert (found.difference, found.low, found.high, found.stop, found.decided) == (0, 0, 0, "all", True)


def test_the_assumed_variance_falls_to_nothing():
    """The curve by which missing labels are counted, against the variance of single thresholds."""
    truth, opinion = seen()
    made = design(METRIC, *truth.ranks, query=truth.query, opinion=opinion)
    labels, variance = made.curve
    threshold = (made.size.sum() * made.size.min()) ** -0.5
    chance = np.minimum(1.0, made.size * threshold)
    assert np.interp(chance.sum(), labels, variance[0]) == pytest.approx(made.assumed_variance(chance)[0], rel=0.01)
    assert (labels[-1], variance[0][-1]) == pytest.approx((len(made.order()), 0))


def test_refusals():
    with pytest.raises(UnknownName, match="bpref") as error:
        small("bpref")
    assert all(f"{name}@k" in error.value.hint for name in (*SUMS, *WHOLE))
    for name in ("precision", "recall@1,5", "recall@100t"):
        with pytest.raises(BadArgument):
            small(name)
    with pytest.raises(BadArgument, match="two or more"):
        design("recall@5", RANKS[0], query=QUERY)
    with pytest.raises(InputError):
        design("recall@5", *RANKS, query=QUERY[::-1])
    with pytest.raises(InputError, match="from 0"):
        design("recall@5", *RANKS, query=QUERY, queries=1)
    with pytest.raises(InputError, match="from 0"):
        design("recall@5", *RANKS[:, :0], query=QUERY[:0])
    with pytest.raises(InputError):
        estimate(small(), np.array([99]), np.array([1.0]))
    with pytest.raises(BadArgument):
        estimate(small(), np.array([1]), np.array([1.0]), run=2)
    with pytest.raises(BadArgument):
        estimate(small(), np.array([1]), np.array([1.0]), tolerance=0)


def test_half_the_labels_of_random_order():
    """A quick version of benchmarks/label_choice.py; 0.85 is four standard errors below 0.95."""
    chosen, by_chance = (simulate(200, 0.53, order, 40) for order in ("weight × uncertainty", "random"))
    assert chosen.labels <= by_chance.labels / 2
    assert min(chosen.covers, by_chance.covers, *chosen.at) > 0.85


def test_the_tables_are_of_this_code():
    assert first_repetitions() in PAGE.read_text("utf-8"), "python -m benchmarks.label_choice --write"


def test_looking_again_and_again():
    """The plain interval does not survive many looks; the one that always holds does."""
    found = look(METRIC, 50, 0.53, 0.0, 60)
    assert found.plain < 0.9
    assert found.always > 0.9
    assert found.wrong < 0.05
