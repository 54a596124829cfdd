"""Steps at the edges: damaged files, copies, parts, documents and empty values."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import polars as pl
import pytest

import karat
from karat.conventions import STANDARD
from karat.samples import Keys, read_samples
from karat.samples.rankings.steps import Merge
from support.two_hops import TWO_HOPS


def damaged(run, tmp_path, **changes):
    run.save(tmp_path / "run.parquet")
    frame, about = (
        pl.read_parquet(tmp_path / "run.parquet"),
        pl.read_parquet_metadata(tmp_path / "run.parquet")["karat"],
    )
    path = tmp_path / "other.parquet"
    for name, (field, value) in changes.items():
        each = pl.col(name).list.eval(pl.element().struct.with_fields(pl.lit(value).cast(pl.Int64).alias(field)))
        frame = frame.with_columns(each)
    frame.write_parquet(path, metadata={"karat": about})
    return path


@pytest.mark.parametrize(
    "change",
    [
        {"places": ("step", 7)},
        {"places": ("at", 0)},
        {"places": ("at", 10**9)},
        {"places": ("rank", 10**9)},
        {"places": ("rank", 3)},
        {"trajectory": ("depth", -1)},
        {"trajectory": ("depth", 0)},
        {"trajectory": ("repeated", 99)},
        {"gold": ("hop", -1)},
    ],
    ids=str,
)
def test_damaged_steps_are_refused(change, tmp_path):
    run = karat.evaluate(TWO_HOPS, "recall@2")
    with pytest.raises(karat.RunFileError):
        karat.load(damaged(run, tmp_path, **change))


def test_judges_that_read_chunks_together_have_no_steps_alone():
    rows = [{"steps": [[{"text": "The sky is"}], [{"text": "blue and wide."}]], "gold": ["The sky is blue and wide."]}]
    run = karat.evaluate(rows, "recall", judge="spans")
    assert run.steps is not None
    assert all(isnan(row.latency) for row in run.steps.rows)


def test_diagnose_names_the_lost_hops():
    shown = str(karat.diagnose(karat.evaluate(TWO_HOPS, "recall@2")))
    assert "Hop 2: of 2 gold items 0 in the top 2, 1 below it, 1 not returned (1 although hop 1 was found)." in shown
    deeper = str(karat.diagnose(karat.evaluate(TWO_HOPS, "recall@2"), k=4))
    assert "Hop 2: of 2 gold items 1 in the top 4, 0 below it" in deeper


def test_excluded_items_cited_items_and_sets():
    rows = [{"steps": [["a", "x"], ["x", "b"]], "gold": ["a", "b"], "exclude": ["x"], "cited": ["b", "q"]}]
    run = karat.evaluate(rows, "recall@2 set_em set_f1 citation_precision citation_recall")
    assert list(run.mean.values()) == [1.0, 1.0, 1.0, 0.5, 0.5]
    assert list(run.steps.rows[0].alone) == ["recall@2"], "what needs more than hits has no score of a step alone"
    assert [item.id for item in run.items("1").retrieved] == ["a", "b"]
    union = karat.evaluate(rows, "recall set_f1", merge="union", convention="browsecomp-plus")
    assert union.mean["recall"] == 1.0


def test_places_are_those_of_the_judge_that_found_the_items():
    """Another lookup before, such as that of a check, leaves no places behind."""
    rows = [{"steps": [["a", "b"], ["c", "a"]], "gold": ["c"]}]
    data = read_samples(rows)
    data.retrieved.find("id", Keys(["a"], np.array([0, 1])), STANDARD)
    run = karat.evaluate(data, "recall full_rank steps_to_all", judge="text")
    assert run.measured["steps_to_all"].tolist() == [2]
    assert run.measured["full_rank"].tolist() == [3]


def test_copies_are_removed_by_merging_under_every_convention():
    rows = [{"steps": [["x", "x", "g"], ["y"]], "gold": ["g"]}]
    for duplicates in ("once", "remove", "last"):
        run = karat.evaluate(rows, "rr steps_to_all", convention=f"standard(duplicates={duplicates})")
        assert run.mean["rr"] == 0.5, duplicates
        assert run.measured["steps_to_all"].tolist() == [1]


CHUNKS = [{"id": f"{doc}#{n}", "doc": doc} for doc, n in (("e", 1), ("e", 2), ("f", 1), ("d", 1), ("d", 2))]


@pytest.mark.parametrize("how", ["concat", "interleave", "rrf(60)"])
def test_documents(how):
    """Chunks of the same document in several steps; the measures of the trajectory do not depend on the merge."""
    e1, e2, f1, d1, d2 = CHUNKS
    gold = [{"id": "d", "doc": "d"}]
    metrics = "recall@1 rr recall_after(step=1) steps_to_all"
    for convention in ("standard", "standard(duplicates=remove)"):
        late = karat.evaluate(
            [{"steps": [[e1, e2, f1], [d1]], "gold": gold}], metrics, at="doc", merge=how, convention=convention
        )
        assert late.scores["recall_after(step=1)"].tolist() == [0]
        assert late.measured["steps_to_all"].tolist() == [2]
        both = karat.evaluate(
            [{"steps": [[e1, f1, d1], [d2]], "gold": gold}], metrics, at="doc", merge=how, convention=convention
        )
        assert both.scores["recall_after(step=1)"].tolist() == [1]
        assert both.measured["steps_to_all"].tolist() == [1]
        assert [row.alone["recall@1"] for row in both.steps.rows] == [0, 1]


def test_parts_that_do_not_belong_together_are_not_merged():
    rows = [{"id": f"q{i}", "steps": [["a"], ["b"]], "gold": ["b"]} for i in range(2)]
    one = karat.evaluate(rows[:1], "recall")
    with pytest.raises(karat.KaratError, match="steps merged by: concat / interleave"):
        karat.merge([one, karat.evaluate(rows[1:], "recall", merge="interleave")])
    with pytest.raises(karat.KaratError, match="steps merged by: concat / none"):
        karat.merge([one, karat.evaluate([{"id": "q1", "retrieved": ["b"], "gold": ["b"]}], "recall")])


def test_gold_given_twice_is_one_item_with_and_without_steps():
    rows = [{"steps": [], "gold": ["a", "a"]}, {"steps": [["b"]], "gold": ["b"]}]
    plain = [{"retrieved": [], "gold": ["a", "a"]}, {"retrieved": ["b"], "gold": ["b"]}]
    assert karat.evaluate(rows, "recall").gold_hash == karat.evaluate(plain, "recall").gold_hash


def test_copies_of_repeated_items_count():
    run = karat.evaluate([{"steps": [["a", "a"], ["a", "a"]], "gold": ["a"]}], "recall repeated")
    assert run.measured["repeated"].tolist() == [0.5]
    for how in ("interleave", "rrf"):
        again = karat.evaluate([{"steps": [["a", "a"], ["a", "a"]], "gold": ["a"]}], "recall repeated", merge=how)
        assert again.measured["repeated"].tolist() == [0.5]


def test_at_step_drops_the_item_of_the_sample_and_keeps_what_is_cited():
    rows = [{"id": "a", "steps": [["a", "g"]], "gold": ["g"], "cited": ["g"]}]
    run = karat.evaluate(rows, "rr citation_recall", at="step", convention="standard(own_id=drop)")
    assert run.mean == {"rr": 1.0, "citation_recall": 1.0}
    with pytest.raises(karat.KaratError, match="score takes one ranking"):
        karat.score("recall", ["a"], ["a"], at="step")


def test_tokens_of_parts():
    """A part without a returned item needs no tokens."""
    rows = [
        {"id": "q1", "steps": [{"retrieved": ["a"], "tokens": 500}], "gold": ["a"]},
        {"id": "q2", "steps": [{"retrieved": []}], "gold": ["b"]},
        {"id": "q3", "steps": [], "gold": ["b"]},
    ]
    whole = karat.evaluate(rows, "recall recall_per_1000_tokens")
    parts = karat.merge([karat.evaluate([row], "recall recall_per_1000_tokens", judge="ids") for row in rows])
    np.testing.assert_array_equal(whole.measured["recall_per_1000_tokens"], [2, nan, nan])
    np.testing.assert_array_equal(parts.measured["recall_per_1000_tokens"], [2, nan, nan])
    with pytest.raises(karat.KaratError, match="needs the tokens"):
        karat.evaluate([{"steps": [["a"]], "gold": ["a"]}], "recall recall_per_1000_tokens", judge="ids")


def test_documents_without_ids_large_hops_and_empty_scores():
    docs = [{"steps": [[{"doc": "d"}], [{"doc": "e"}]], "gold": [{"doc": "e"}]}]
    assert karat.evaluate(docs, "rr", at="doc").mean["rr"] == 0.5
    with pytest.raises(karat.KaratError, match='"hop" of a gold record'):
        karat.evaluate([{"steps": [["a"]], "gold": [{"id": "a", "hop": 2**40}]}], "recall")
    assert karat.evaluate([{"steps": [[], []], "gold": ["a"]}], "recall", merge="max").mean["recall"] == 0
    assert Merge.of(str(Merge.of("rrf(60.1234567)"))) == Merge.of("rrf(60.1234567)")


def test_rules_on_measures_with_settings():
    run = karat.evaluate(TWO_HOPS, "recall new_gold(step=2) steps")
    assert karat.gate(run, "new_gold(step=2) mean >= 0.5", "new_gold( step = 2 ) median <= 1").passed
    with pytest.raises(karat.KaratError, match="new_gold"):
        karat.gate(run, "new_gold(step=5) mean >= 1")
    with pytest.raises(karat.KaratError, match="is a measure"):
        karat.gate(run, "new_gold(step=2) >= 1")
