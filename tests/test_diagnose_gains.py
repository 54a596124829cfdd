"""Measured gains in karat.diagnose: each piece of advice has values checked by hand, and is absent without support."""

from __future__ import annotations

import numpy as np
import pytest

import karat
from karat.analysis.diagnose.miss import Gain
from karat.report.advice import sentences
from karat.samples.notes import Note
from karat.stats.interval import difference_intervals, mean_interval

QUOTE = "The museum is closed on Mondays and on public holidays. Tickets are sold at the door until five."


def run_of(*rankings, gold="g", k=2, **options):
    rows = [{"id": f"q{i:02}", "retrieved": list(own), "gold": list(gold)} for i, own in enumerate(rankings)]
    return karat.evaluate(rows, f"recall@{k} precision@{k}", **options)


def told(found, start):
    """The details of the first note of a kind; None if there is none."""
    return next((note.details for note in (*found.advice_notes, *found.check_notes) if note.kind == start), None)


def test_a_gain_is_a_paired_difference_with_its_interval():
    before, after = np.array([0.0, 0.5, 1.0, 0.0, 0.0, np.nan]), np.array([1.0, 0.5, 1.0, 0.0, 0.5, 1.0])
    gain = Gain.of(before, after)
    assert gain[:2] == pytest.approx((0.3, 0.6))
    assert gain[2:] == difference_intervals({"": (after - before)[:5]})[""]
    sure = Gain.of(before, after, can_lose=False)
    assert sure[2:] == mean_interval((after - before)[:5], 0.95)
    assert sure.low > 0 > gain.low
    assert np.isnan(Gain.of(before[:4], after[:4]).low)  # too few queries


def test_a_higher_k():
    """Six queries: the gold is at rank 1, 3, 3, 4, 5 and nowhere."""
    run = run_of("gab", "abg", "abg", "abcg", "abcdg", "abc")
    found = karat.diagnose(run)
    d = told(found, "higher_k")
    assert (d["k"], d["higher"], d["median"]) == (2, 4, 3)
    assert d["recall"][:2] == pytest.approx((1 / 6, 4 / 6))
    assert d["precision"][:2] == pytest.approx((1 / 12, 4 / 24))
    again = karat.evaluate(run_rows(run), "recall@4 precision@4").mean
    assert d["recall"].after == again["recall@4"]
    assert d["precision"].after == again["precision@4"]
    assert found.advice[0].startswith(
        "4 missed gold items are below rank 2, half of them by rank 3. k = 4 raises recall from 0.167 to 0.667 "
        "(+0.500 [+"
    )
    assert told(karat.diagnose(run_of("gab", "abc")), "higher_k") is None
    far = told(karat.diagnose(run_of("abcdefg", "gab")), "higher_k")
    assert far["higher"] == 7  # there is nothing within 2k


def test_a_precision_that_does_not_change_or_is_undefined():
    half = karat.diagnose(run_of("gagb", gold="gb"))  # one of two, two of four: copies of g do not count
    assert half.advice[0].endswith("k = 4 raises recall from 0.500 to 1.000 and leaves precision at 0.500.")
    undefined, recall = Gain(np.nan, np.nan, np.nan, np.nan), Gain(0.5, 1.0, np.nan, np.nan)
    details = {"k": 2, "higher": 4, "lower": 1, "median": 3, "recall": recall, "precision": undefined}
    higher, lower = sentences([Note("higher_k", 1, details=details), Note("lower_k", 2, 2, details=details)])
    assert higher.endswith("k = 4 raises recall from 0.500 to 1.000.")
    assert lower.endswith("nearly recall@2, 0.500.")


def run_rows(run):
    return [
        {"id": query, "retrieved": [item.id for item in run.items(query).retrieved], "gold": ["g"]} for query in run.ids
    ]


def test_a_perfect_reranker_cannot_put_three_items_into_two_ranks():
    run = run_of("abxyz", "xyzab", gold="xyz")
    d = told(karat.diagnose(run), "reranker")
    assert d["candidates"] == 5
    assert d["recall"][:2] == pytest.approx((1 / 3, 2 / 3))  # recall@5 is 1
    assert d["precision"][:2] == pytest.approx((0.5, 1.0))
    stages = karat.stages([run, run], "recall@2 precision@2", names=["a", "b"])
    ideal = stages.ideal["a"].mean
    assert (d["recall"].after, d["precision"].after) == (ideal["recall@2"], ideal["precision@2"])


def test_a_reranker_reads_as_few_candidates_as_have_the_gold():
    deep = "".join(chr(200 + i) for i in range(150))
    rankings = [deep[:20] + "g" + deep[20:], deep[:130] + "g" + deep[130:], "g" + deep]
    d = told(karat.diagnose(run_of(*rankings)), "reranker")
    assert d["candidates"] == 21  # the gold at rank 131 is not within the top 100
    assert d["recall"].after == pytest.approx(2 / 3)
    assert told(karat.diagnose(run_of(*rankings[1:])), "reranker") is None
    assert told(karat.diagnose(run_of("gab", "ab")), "reranker") is None


def test_a_lower_k_names_the_precision():
    run = run_of(*["gabc"] * 6, k=4)
    found = karat.diagnose(run)
    d = told(found, "lower_k")
    assert d["lower"] == 1
    assert d["precision"][:2] == (0.25, 1.0)
    assert found.advice[0].startswith(
        "k = 1 would be enough: recall@1 is the same as recall@4, 1.000, and precision rises from 0.250 to 1.000 "
        "(+0.750 ["
    )
    assert told(karat.diagnose(run_of(*["abgc"] * 6, k=4)), "lower_k") is None


def test_a_better_order_of_the_top_k():
    found = karat.diagnose(run_of(*["abgc"] * 6, k=4))
    d = told(found, "better_order")
    assert (d["lower"], d["precision"][:2]) == (1, (0.25, 1.0))
    assert 0 < d["precision"].low < 0.75 <= d["precision"].high  # no query can lose by it
    assert (
        "with a perfect reranker k = 1 would be enough, which raises precision from 0.250 to 1.000" in found.advice[0]
    )
    assert told(found, "another_model") is not None
    two = told(karat.diagnose(run_of("agbhcd", gold="gh", k=6)), "better_order")
    assert (two["lower"], two["precision"].after) == (2, 1.0)
    for ranking, k in (("gabc", 4), ("ghij", 4), ("abcdg", 4)):
        gold = ranking if ranking == "ghij" else "g"
        assert told(karat.diagnose(run_of(*[ranking] * 6, gold=gold, k=k)), "better_order") is None


def scored(signal, queries=40, seed=7):
    """Rankings of which a third is relevant; the scores of relevant items are higher by a number."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(queries):
        relevant = rng.random(5) < 1 / 3
        score = rng.normal(size=5) + signal * relevant
        retrieved = [{"id": f"d{j}", "score": float(score[j])} for j in np.argsort(-score)]
        rows.append({"id": f"q{i:02}", "retrieved": retrieved, "gold": [f"d{j}" for j in np.flatnonzero(relevant)]})
    return [row for row in rows if row["gold"]]


def test_a_score_threshold_is_tested_on_held_out_queries():
    rows = scored(6.0)
    found = karat.diagnose(karat.evaluate(rows, "recall@5"))
    d = told(found, "score_threshold")
    limit = float(d["threshold"])
    kept = [(item["id"] in row["gold"]) for row in rows for item in row["retrieved"] if item["score"] >= limit]
    every = [(item["id"] in row["gold"]) for row in rows for item in row["retrieved"]]
    assert d["precision"] == pytest.approx([np.mean(every), np.mean(kept)])
    gain, low, high = d["held_out"]
    assert low < gain < high
    assert gain == pytest.approx(np.mean(kept) - np.mean(every), abs=0.05)
    assert "On held-out queries: precision +0." in " ".join(found.advice)
    assert told(karat.diagnose(karat.evaluate(scored(0.0), "recall@5")), "score_threshold") is None


def test_the_interval_covers_the_gain_on_new_queries():
    new = [(item["score"], item["id"] in row["gold"]) for row in scored(3.0, 4_000, 99) for item in row["retrieved"]]
    score, relevant = np.array(new).T
    covered = []
    for seed in range(60):
        d = told(karat.diagnose(karat.evaluate(scored(3.0, seed=seed), "recall@5")), "score_threshold")
        if d is not None:
            gain = relevant[score >= float(d["threshold"])].mean() - relevant.mean()
            covered.append(d["held_out"][1] <= gain <= d["held_out"][2])
    assert len(covered) > 40
    assert np.mean(covered) >= 0.95


def test_the_interval_of_a_pooled_precision_by_hand():
    """Every query keeps its one relevant item and drops one: 1/2 becomes 1, and no query differs from another."""
    pair = [{"id": "g", "score": 0.9}, {"id": "a", "score": 0.1}]
    rows = [{"id": f"q{i}", "retrieved": pair, "gold": ["g"]} for i in range(8)]
    d = told(karat.diagnose(karat.evaluate(rows, "recall@2")), "score_threshold")
    assert d["held_out"][0] == 0.5
    assert tuple(d["held_out"][1:]) == difference_intervals({"": np.full(8, 0.5)})[""]
    assert d["loss"] == [0.0]


def test_a_threshold_that_depends_on_one_query_is_not_advised():
    """The one query whose noise has low scores decides the threshold; for the others it does nothing."""
    odd = [{"id": "g", "score": 0.9}, *({"id": f"a{i}", "score": 0.1} for i in range(4))]
    rest = [{"id": "g", "score": 0.5}, {"id": "a", "score": 0.6}]
    rows = [{"id": f"q{i}", "retrieved": rest, "gold": ["g"]} for i in range(9)]
    assert told(karat.diagnose(karat.evaluate(rows, "recall@5")), "score_threshold") is None
    rows.append({"id": "q9", "retrieved": odd, "gold": ["g"]})
    assert told(karat.diagnose(karat.evaluate(rows, "recall@5")), "score_threshold") is None


@pytest.mark.parametrize(("at", "whole"), [(0, "100 %"), (430, "0 %"), (600, "100 %")])
def test_gold_that_half_a_chunk_would_hold(at, whole):
    chunk = "~" * at + QUOTE + "~" * (960 - at - len(QUOTE))
    run = karat.evaluate([{"retrieved": [chunk], "gold": [QUOTE]}] * 6, "recall@1", judge="contains")
    (said,) = [said for said in karat.diagnose(run).advice if "characters" in said]
    assert f"Cut in half, the chunks would still hold {whole} [" in said
    place = {"doc": "d", "start": 5_000, "end": 5_960, "text": chunk}
    gold = {"doc": "d", "start": 5_000 + at, "end": 5_000 + at + len(QUOTE)}
    spans = karat.evaluate([{"retrieved": [place], "gold": [gold]}] * 6, "recall@1", judge="spans")
    assert said in karat.diagnose(spans).advice


def test_split_gold_has_a_measured_gain():
    parts = [QUOTE[:50] + "~" * 60, "-" * 60 + QUOTE[50:]]
    rows = [{"retrieved": parts if i < 4 else [QUOTE], "gold": [QUOTE]} for i in range(8)]
    found = karat.diagnose(karat.evaluate(rows, "recall@2", judge="contains"))
    d = told(found, "another_way")
    assert d["causes"] == ["split over chunks"]
    assert d["gain"][:2] == (0.5, 1.0)
    assert d["gain"][2:] == mean_interval(np.array([1.0] * 4 + [0.0] * 4), 0.95)
    assert (
        "split over chunks. Larger chunks or more overlap keep a passage in one chunk: recall@2 is 1.000 if the "
        in (" ".join(found.advice))
    )
    whole = [{"retrieved": [QUOTE], "gold": [QUOTE]}]
    assert told(karat.diagnose(karat.evaluate(whole, "recall@2", judge="contains")), "another_way") is None


def test_copies_that_cost_nothing_visible_are_not_advised():
    rankings = [["a", "a", "g"], *[["g", "a"]] * 2_999]
    assert told(karat.diagnose(run_of(*rankings)), "copies") is None
    assert told(karat.diagnose(run_of(*rankings[:9])), "copies") is not None


def test_what_to_check_next():
    found = karat.diagnose(run_of("ab", "ag", "bg", k=2))
    assert found.not_measured == [
        (
            "1 missed gold item was not retrieved. Try rewritten queries or a second retriever: --other RUN (in "
            "Python, other=run) measures a hybrid with it."
        ),
        (
            "Embeddings: are queries and documents embedded by the same model, each with the prefix that it expects? 1 "
            "of 3 queries retrieved no gold at any rank; a mismatch would affect nearly all."
        ),
        (
            "Embeddings: would another model rank the gold higher? Evaluate both on the same queries: karat compare "
            "shows the difference."
        ),
    ]
    two = [{"retrieved": ["a", "b"], "gold": ["a", "c"]}, {"retrieved": ["c"], "gold": ["c"]}]
    some = karat.diagnose(karat.evaluate(two, "recall@2"))
    assert told(some, "same_model") is None  # every query retrieved some gold: nothing points to a mismatch
    assert told(some, "another_model") is not None
    assert karat.diagnose(run_of("g", "g", k=1)).not_measured == []
    assert karat.diagnose(run_of("ab", "ag"), "q00").not_measured == []


def test_the_title_of_each_output():
    title = "Not measured: what to check next"
    found, none = karat.diagnose(run_of("ab", "ag")), karat.diagnose(run_of("g", "g"))
    assert f"\n{title}\n  1 missed gold item was not retrieved." in repr(found)
    assert f"### {title}\n\n- 1 missed" in found.to_markdown()
    assert f"{title}: 1 missed" in found._repr_html_()
    assert found.to_dict()["not_measured"] == found.not_measured
    for text in (repr(none), none.to_markdown(), none._repr_html_()):
        assert title not in text
    assert none.to_dict()["not_measured"] == []


def test_the_level_of_the_intervals_is_named(tmp_path):
    few, many = run_of("abg", "gab"), run_of(*["abg", "gab"] * 3)
    assert "\nAdvice\n" in repr(karat.diagnose(few))
    assert "\nAdvice, with 95 % intervals\n" in repr(karat.diagnose(many))
    assert "### Advice, with 95 % intervals" in karat.diagnose(many).to_markdown()
    many.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<h3>Advice, with 95 % intervals</h3>" in page
    assert "<h3>Not measured: what to check next</h3>" in page
    run_of(*["gabc"] * 6, k=4).report(tmp_path / "all found.html")
    page = (tmp_path / "all found.html").read_text("utf-8")
    assert "None: all gold is in the top 4." in page
    assert "k = 1 would be enough" in page
    assert "Not measured" not in page


def test_saved_runs_have_the_same_advice(tmp_path):
    run = run_of(*["abg", "gab", "abc"] * 4)
    run.save(tmp_path / "run.parquet")
    again = karat.diagnose(tmp_path / "run.parquet")
    assert again.advice == karat.diagnose(run).advice
    assert again.not_measured == karat.diagnose(run).not_measured


def mean_at(rows, k, measure):
    """The mean over the queries of the share of the gold, or of the top k, that is gold in the top k."""
    shares = []
    for row in rows:
        inside = len(set(row["gold"]) & set(row["retrieved"][:k]))
        shares.append(inside / (len(row["gold"]) if measure == "recall" else k))
    return float(np.mean(shares))


@pytest.mark.parametrize("seed", range(25))
def test_cutoffs_and_rerankers_as_a_slow_twin_counts_them(seed):
    rng = np.random.default_rng(seed)
    rows, k = [], int(rng.integers(1, 5))
    for i in range(int(rng.integers(5, 12))):
        ranking = [f"d{j}" for j in rng.permutation(12)[: int(rng.integers(1, 11))]]
        rows.append({"id": f"q{i}", "retrieved": ranking, "gold": [f"d{j}" for j in rng.permutation(12)[:3]]})
    found = karat.diagnose(karat.evaluate(rows, f"recall@{k}"))
    for kind, name in (("higher_k", "higher"), ("lower_k", "lower")):
        if (d := told(found, kind)) is not None:
            for measure in ("recall", "precision"):
                assert d[measure][:2] == pytest.approx([mean_at(rows, at, measure) for at in (k, d[name])])
    if (d := told(found, "reranker")) is not None:
        ideal = [
            {**row, "retrieved": sorted(row["retrieved"][: d["candidates"]], key=lambda item: item not in row["gold"])}
            for row in rows
        ]
        for measure in ("recall", "precision"):
            assert d[measure][:2] == pytest.approx([mean_at(own, k, measure) for own in (rows, ideal)])
    below = any(set(row["gold"]) & set(row["retrieved"][k:]) for row in rows)
    assert (told(found, "higher_k") is not None) == (told(found, "reranker") is not None) == below
