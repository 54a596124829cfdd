"""karat.rosetta: the scores of every library, and the reasons for the differences."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields
from math import isnan, nan
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

import karat
from karat.conventions import CONVENTIONS, STANDARD, Convention, questions
from karat.conventions.explain import GENERAL, WORDS, differing, sentence
from karat.report import catalog
from support.forked import run_karat

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from choice_examples import EXAMPLES, same

GOLD = ["A", "B", "C"]
_ = None
FIELD = {
    # A: P, R, nDCG, RR, AP; B: P, nDCG; C: nDCG, as observed by running the libraries
    "trec_eval": (0.2, 0.333, 0.469, 1, 0.333, 0.2, 0.469, 1),
    "mlflow": (0.667, 0.333, 0.765, _, _, 1, 1, 1),
    "trulens": (0.667, 0.333, 0.469, 1, _, 1, 0.469, 1),
    "llamaindex": (0.5, 0.333, 0.765, 1, 0.667, 1, 0.469, 0.765),
    "haystack": (_, 1, 0.469, 1, 0.333, _, 0.469, 0.765),
    "autorag": (0.333, 0.333, 0.765, 0.333, 0.333, 1, 1, 1),
    "continuous-eval": (0.667, 0.333, 0.469, 1, 1, 1, 0.469, 0.765),
    "phoenix": (0.4, _, 1, 1, _, 0.2, 1, 1),
}
MIXED = {
    "retrieved": {
        "q1": ["A", "A", "X"], "q2": ["A"], "q3": ["A", "B"], "q4": ["X", "A"], "q5": [], "q6": ["A", "A"], "q7": ["Z"]
    },
    "gold": {
        "q1": GOLD, "q2": GOLD, "q3": GOLD, "q4": {"A": 2, "B": 1}, "q5": ["A"], "q6": ["A"], "q7": [], "q8": ["A"]
    },
}  # fmt: skip
EVERY = "precision@2,5 recall@2,5 ndcg@2,3,5 rr rr@2 ap hit@2 r_precision f1@2 recall_all@2 recall_capped@2"


def texts(told):
    return [f"{', '.join(d.conventions)}: {d.text}" for d in told.differences]


def means(told, name):
    return next(d for d in told.dialects if d.convention == name).means


@pytest.mark.parametrize("name", FIELD)
def test_scores_of_the_libraries(name):
    found = []
    for retrieved, metrics in (
        (["A", "A", "X"], "precision@5 recall@5 ndcg@5 rr ap"),
        (["A"], "precision@5 ndcg@5"),
        (["A", "B"], "ndcg@2"),
    ):
        told = karat.rosetta(retrieved=[retrieved], gold=[GOLD], metrics=metrics, conventions=[name])
        found += means(told, name).values()
    assert [None if value is None else round(value, 3) for value in found] == list(FIELD[name])


def test_the_example_names_every_difference_with_its_numbers():
    said = texts(karat.rosetta())
    assert "llamaindex, ragas, hotpotqa: precision is divided by the 2 different retrieved items, not by k = 5" in said
    assert "haystack: what is called recall is hit: 1 if the top k contain at least one gold item" in said
    assert "llamaindex: every copy of a relevant item counts again in ndcg@5, ap" in said
    assert any(line.startswith("mlflow, ") and "divided by the 3 retrieved items" in line for line in said)
    assert not any("grade" in line or "ties" in line or "equal score" in line for line in said)


def test_only_differences_that_occur_are_reported():
    told = karat.rosetta(retrieved=[["A", "B", "C", "X", "Y"]], gold=[["A", "B", "C"]], metrics="precision@5 recall@5")
    assert [d.convention for d in told.dialects if d.differs] == ["haystack"] * 0
    assert told.differences == ()


def test_every_number_that_differs_has_a_reason():
    told = karat.rosetta(**MIXED, metrics=EVERY)
    for dialect in told.dialects:
        for name in dialect.differs:
            reasons = [d for d in told.differences if dialect.convention in d.conventions and name in d.metrics]
            assert reasons, (dialect.convention, name)
            assert all("{" not in d.text for d in reasons)


def test_rosetta_equals_evaluate():
    told = karat.rosetta(**MIXED, metrics=EVERY)
    for c in CONVENTIONS.values():
        run = karat.evaluate(**MIXED, metrics=EVERY, convention=c)
        for name, mean in means(told, c.name).items():
            if mean is not None:
                assert mean == pytest.approx(run.mean[name], abs=1e-12, nan_ok=True), (c.name, name)


def test_above_one_is_marked():
    told = karat.rosetta(retrieved=[["A", "A"]], gold=[["A"]], metrics="ndcg@2")
    autorag = next(d for d in told.dialects if d.convention == "autorag")
    assert autorag.above_one["ndcg@2"] == pytest.approx(1.6309, abs=1e-4)
    assert re.search(r"autorag +1\.631 !", repr(told))
    assert (
        "llamaindex, autorag: ndcg@2 reaches 1.63, above 1, because every copy of a relevant item counts each time"
        in texts(told)
    )
    assert not any(d.above_one for d in told.dialects if d.convention in {"standard", "futureagi-server", "mlflow"})


def test_refused_and_dropped_queries_are_counted():
    said = texts(karat.rosetta(**MIXED, metrics="recall@5 precision@5 ndcg@5"))
    assert any(re.match(r"llamaindex.*: a query without relevant gold raises an error.*\(1 query\)", s) for s in said)
    assert any(
        re.match(r".*llamaindex.*: a query for which nothing was retrieved raises .*\(2 queries\)", s) for s in said
    )
    assert any(
        s.startswith("trec_eval, beir, mteb: a query that is missing from the results is excluded") for s in said
    )
    assert any(
        re.match(r"evidently: a query none of whose gold .*is undefined and excluded from the mean", s) for s in said
    )


def test_several_queries_are_described_by_their_mean():
    told = karat.rosetta(
        retrieved=[["A"], ["A", "B", "C"]], gold=[["A"], ["B"]], metrics="precision@5", conventions=["mlflow"]
    )
    assert texts(told) == ["mlflow: precision is divided by the retrieved items (2.0 on average), not by k = 5"]


def test_several_cutoffs_share_a_general_sentence():
    told = karat.rosetta(retrieved=[["A"]], gold=[["A"]], metrics="precision@2,5", conventions=["mlflow"])
    assert texts(told) == ["mlflow: precision is divided by the number of items retrieved, not by k"]


# ---- the words ------------------------------------------------------------------------------------------------------


def test_there_is_a_sentence_for_every_value():
    assert list(WORDS) == list(questions())
    hints = get_type_hints(Convention)
    for choice, known in WORDS.items():
        if get_origin(hints[choice]) is Literal:
            assert set(known) == set(get_args(hints[choice])), choice


@pytest.mark.parametrize("c", CONVENTIONS.values(), ids=str)
def test_every_convention_is_explained(c):
    said = catalog.convention(c)
    for choice in differing(c):
        assert sentence(choice, c, {"metrics": ", ".join(c.per_rank)})[:40] in said
    assert c.about
    assert "{" not in said
    assert all(word not in said for word in ("None", "nan"))
    assert set(c.metrics) <= set(karat.metrics.METRICS)
    assert set(c.renames.values()) <= set(karat.metrics.METRICS)


def test_general_words_are_for_every_sentence():
    for choice, known in WORDS.items():
        for text in known.values():
            assert text.format(**GENERAL, value=0, scores="scores 0"), choice


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_documented_examples_show_the_difference(name):
    choice, example = name.partition(",")[0], EXAMPLES[name]
    scores = [example.score(choice, value) for value in example.values]
    assert len({"undefined" if isnan(score) else round(score, 9) for score in scores}) > 1
    assert same(choice, STANDARD, example.values[0])


def test_every_choice_and_every_answer_is_documented():
    shown = {(name.partition(",")[0], str(v)) for name, e in EXAMPLES.items() for v in e.values}
    made = {
        (choice, str(getattr(c.of(metric), choice)))
        for c in CONVENTIONS.values()
        for metric in ("precision", *(name.partition("@")[0] for name in c.exceptions))
        for choice in questions()
        if choice not in {"per_rank", "empty_gold", "both_empty"}
    }
    assert made <= shown


def test_every_field_of_a_convention_is_a_choice_or_described():
    about = {"name", "about", "metrics", "cutoffs", "refuses", "renames", "exceptions"}
    assert set(questions()) == {f.name for f in fields(Convention)} - about


# ---- records and runs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("c", CONVENTIONS.values(), ids=str)
def test_a_run_names_its_convention_and_keeps_it(c, tmp_path):
    run = karat.evaluate(**MIXED, metrics="recall@5 precision@5 ndcg@3 rr", convention=c.name)
    assert run.provenance.convention == c.name
    run.save(tmp_path / "run.parquet")
    again = karat.load(tmp_path / "run.parquet")
    assert str(again.convention.choices()) == str(c.choices())
    assert again.mean == pytest.approx(run.mean, nan_ok=True)


def test_metrics_that_a_library_lacks_are_reported():
    run = karat.evaluate(retrieved=[["A"]], gold=[["A"]], metrics="rr precision@5", convention="mlflow")
    assert "mlflow has no rr: its choices are applied to karat's definition." in run.remarks()
    assert not karat.evaluate(retrieved=[["A"]], gold=[["A"]], metrics="rr").provenance.notes


def test_a_bad_exception_is_refused():
    with pytest.raises(karat.BadArgument, match="exceptions of a convention must be choices"):
        Convention(name="x", exceptions={"rr": {"tie": "given"}})
    with pytest.raises(karat.BadArgument, match="both_empty of a convention must be a number"):
        Convention(name="x", both_empty="zero")
    with pytest.raises(karat.BadArgument, match="none_found of a convention must be a number"):
        Convention(name="x", none_found=None)


def test_the_own_id_is_dropped_from_every_layout():
    import polars as pl

    gold, c = {"x": ["y"], "z": ["w"]}, Convention(name="own", own_id="drop")
    frame = pl.DataFrame(
        {"query_id": ["x", "x", "z", "z"], "doc_id": ["x", "y", "w", "z"], "score": [2.0, 1.0, 3.0, 1.0]}
    )
    for retrieved in (
        {"x": ["x", "y"], "z": ["w", "z"]},
        {"x": {"x": 2.0, "y": 1.0}, "z": {"w": 3.0, "z": 1.0}},
        {"x": [{"id": "x", "score": 2}, {"id": "y", "score": 1}], "z": [{"id": "w"}, {"id": "z"}]}
        | {"z": [{"id": "w", "score": 3}, {"id": "z", "score": 1}]},
        frame,
    ):
        run = karat.evaluate(retrieved=retrieved, gold=gold, metrics="rr precision@2", convention=c)
        assert run.scores["rr"].tolist() == [1.0, 1.0]
        assert run.all_hits.depth.tolist() == [1, 1]


def test_the_last_of_copies_is_the_last_that_was_given():
    import polars as pl

    rows = [("A", 1.0), ("B", 2.0), ("A", 3.0)]
    frame = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": [d for d, _ in rows], "score": [s for _, s in rows]})
    for retrieved in (frame, {"q": [{"id": d, "score": s} for d, s in rows]}):
        for name in ("ir-measures", "azure"):  # as these two do: a later row overwrites the score
            run = karat.evaluate(retrieved=retrieved, gold={"q": ["A"]}, metrics="rr", convention=name)
            assert run.mean["rr"] == 1.0


def test_copies_of_equal_score_have_ranks_of_their_own():
    import polars as pl

    frame = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["B", "A", "B"], "score": [1.0] * 3})
    records = {"q": [{"id": d, "score": 1.0} for d in "BAB"]}
    for name in CONVENTIONS:
        found = [
            karat.evaluate(
                retrieved=given,
                gold={"q": ["B", "C"]},
                metrics="precision@3 ndcg@3 ap",
                convention=name,
                order="score",
            ).mean
            for given in (frame, records)
        ]
        assert found[0] == pytest.approx(found[1], nan_ok=True), name


def test_counts_exclude_queries_decided_by_a_more_specific_choice():
    told = karat.rosetta(
        retrieved=[["a"]] * 3, gold=[{"a": 0}, {}, {"a": 1}], metrics="recall@5", conventions=["trec_eval"]
    )
    assert [d.text for d in told.differences] == [
        "a query without relevant gold scores 0.0, included in the mean (1 query)"
    ]


def test_of_copies_the_last_may_count():
    import polars as pl

    c = Convention(name="last", duplicates="last")
    frame = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["A", "X", "A"], "rank": [1, 2, 3]})
    for retrieved in ({"q": ["A", "X", "A"]}, frame):
        for judge in ("ids", "text"):
            if judge == "ids" or isinstance(retrieved, dict):
                run = karat.evaluate(
                    retrieved=retrieved, gold={"q": ["A"]}, metrics="rr precision", judge=judge, convention=c
                )
                assert run.mean == {"rr": 0.5, "precision": 0.5}


def test_undefined_edges():
    def mean(retrieved, gold, metric="recall@5", **choices):
        c = Convention(name="x", **choices)
        return karat.evaluate(retrieved={"q": retrieved}, gold={"q": gold}, metrics=metric, convention=c).mean[metric]

    assert isnan(mean([], ["A"], empty_retrieved=nan))
    assert mean([], [], empty_gold=0.0, both_empty=1.0) == 1.0
    assert mean(["A"], [], empty_gold=0.0, both_empty=1.0) == 0.0
    assert isnan(mean(["A"], {}, empty_gold=0.0, nothing_judged=nan))
    assert mean(["A"], {"A": 0}, empty_gold=0.0, nothing_judged=nan) == 0.0
    assert isnan(mean(["X"], ["A"], none_found=nan))
    assert mean(["X"] * 7 + ["A"], ["A"], none_found=nan) == 0.0


# ---- the command line -----------------------------------------------------------------------------------------------


def run(*arguments, code=0):
    done = run_karat(*arguments, text=True)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def test_the_example_on_the_command_line():
    out = run("rosetta")
    assert re.search(r"standard +0\.200 +0\.333 +0\.469 +1\.000 +0\.333\n", out)
    assert re.search(r"haystack +– +1\.000 \* +0\.469 +1\.000 +0\.333\n", out)
    assert "gold A, B, C; retrieved A, A, X" in out


def test_a_file_on_the_command_line(tmp_path):
    path = tmp_path / "<b>.jsonl"
    rows = [{"retrieved": ["A", "A"], "gold": ["A"]}, {"retrieved": ["X"], "gold": ["B"]}]
    path.write_text("\n".join(map(json.dumps, rows)))
    told = json.loads(run("rosetta", path, "--metrics", "precision@5", "--conventions", "mlflow", "--format", "json"))
    assert [d["convention"] for d in told["dialects"]] == ["standard", "mlflow"]
    assert told["dialects"][1]["means"] == {"precision@5": 0.5}
    page = run("rosetta", path, "--format", "html")
    assert page.startswith("<!doctype html>")
    assert "<b>.jsonl" not in page
    assert "&lt;b&gt;.jsonl" in page
    markdown = run("rosetta", path, "--format", "markdown")
    assert "| mlflow | 0.500 \\* |" in markdown
    assert r"\<b>.jsonl" in markdown


def test_conventions_on_the_command_line():
    out = run("conventions")
    assert all(re.search(rf"^  {re.escape(name)} ", out, re.MULTILINE) for name in CONVENTIONS)
    one = run("conventions", "llamaindex")
    assert "precision is divided by the number of distinct items retrieved, not by k" in one
    assert "a query without relevant gold raises an error" in one
    assert "llamaindex" in run("conventions", "lamaindex", code=2)
    told = json.loads(run("conventions", "haystack", "--format", "json"))
    assert told[0]["calls"] == {"recall": "hit"}


# ---- equal means, rounding and digits --------------------------------------------------------------------------------


def cells(told, metric):
    """The cells of one column, by convention."""
    head, *rows = [re.split(r" {2,}", line.strip()) for line in repr(told).split("\n\n")[1].splitlines()]
    return {row[0]: row[head.index(metric) + 1] for row in rows}


def test_equal_means_are_not_shown_as_different():
    c = Convention(name="other", empty_gold=0.5)
    told = karat.rosetta(
        retrieved=[["A"], ["B"], ["C"]], gold=[["A"], ["X"], []], metrics="recall@5 precision@5", conventions=[c]
    )
    other = told.dialects[1]
    assert other.means["recall@5"] == told.dialects[0].means["recall@5"] == 0.5
    assert other.differs == ("recall@5", "precision@5")
    assert other.same_mean == ("recall@5",)
    assert cells(told, "recall@5") == {"standard": "0.500", "other": "0.500 ~"}
    assert cells(told, "precision@5")["other"].endswith("*")
    assert "~ same mean, but other scores for some queries" in repr(told)
    assert "~ same mean" in told.to_markdown()
    assert "~ same mean" in told._repr_html_()
    assert "~ same mean" not in repr(karat.rosetta())


def test_rounding_is_a_named_difference():
    thirds = {"retrieved": [["A"], ["X"], ["X"]], "gold": [["A"], ["A"], ["A"]]}
    told = karat.rosetta(**thirds, metrics="recall@5 rr", conventions=["beir"])
    beir = told.dialects[1]
    assert beir.means["recall@5"] == 0.33333
    assert beir.differs == ()
    assert texts(told) == ["beir: means are rounded to 5 decimal places"]
    assert told.differences[0].metrics == ("recall@5", "rr")
    assert told.differences[0].choice == "rounding"
    assert cells(told, "recall@5") == {"standard": "0.333", "beir": "0.333"}
    halves = {"retrieved": [["A"], ["X"]], "gold": [["A"], ["A"]]}
    assert texts(karat.rosetta(**halves, metrics="recall@5", conventions=["beir"])) == []


def test_a_column_has_one_number_of_digits():
    queries = 3001
    rows = {"retrieved": [["X"]] * 1500 + [["A"]] * 1501, "gold": [["A"]] * (queries - 1) + [[]]}
    c = Convention(name="other", empty_gold=0.0)
    told = karat.rosetta(**rows, metrics="recall@5 precision@5", conventions=[c, "trec_eval"])
    column = cells(told, "recall@5")
    assert column == {"standard": "0.5000", "other": "0.4998 *", "trec_eval": "0.5000"}
    assert {len(cell.split()[0]) for cell in cells(told, "precision@5").values()} == {len("0.10000")}
    for line in (told.to_markdown(), told._repr_html_()):
        assert "0.5000" in line
        assert "0.500 " not in line


def test_the_demo_has_no_equal_means_that_differ():
    from karat.cli.demo.screen import samples

    told = karat.rosetta(samples("bm25"))
    for metric in told.metrics:
        shown = cells(told, metric)
        digits = {len(cell.split()[0]) for cell in shown.values() if not cell.startswith("–")}
        assert len(digits) == 1, metric
        assert not [name for name, cell in shown.items() if cell == f"{shown['standard']} *"], metric
