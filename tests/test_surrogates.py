"""Lone surrogates, which no file can hold: a run is equal to its own file, and ids that become equal are refused."""

from __future__ import annotations

import pytest

import karat

LONE = "\ud800 lone"


def rows(**more):
    row = {"query": f"what {LONE}", "retrieved": ["x", LONE], "gold": [LONE, "\udfff"], "to\udc00pic": LONE}
    return [{"id": f"{LONE}{number}"} | row | more for number in range(6)]


@pytest.mark.parametrize("judge", ["ids", "exact", "text", "contains", "fuzzy", "spans"])
def test_a_run_is_equal_to_its_file(tmp_path, judge):
    more = {"gold": [{"doc": LONE, "text": LONE, "group": "g"}], "retrieved": [{"doc": LONE, "text": LONE}]}
    given = rows() if judge != "spans" else rows(**more)
    run = karat.evaluate(given, "recall@1,5 rr", judge=judge)
    run.save(tmp_path / "run.parquet")
    back = karat.load(tmp_path / "run.parquet")
    assert back.table.equals(run.table)
    assert back.to_polars(fields=True).equals(run.to_polars(fields=True))
    assert (back.ids, back.mean, back.gold_hash) == (run.ids, run.mean, run.gold_hash)
    assert (back.query, back.meta) == (run.query, run.meta)
    for query in run.ids:
        assert back.items(query) == run.items(query)
        assert (back.gold(query), back.hits(query)) == (run.gold(query), run.hits(query))
    assert back.provenance.notes == run.provenance.notes
    assert karat.compare(run, back).notes == ()
    assert back.gold(f"{LONE}3") == run.gold(f"{LONE}3")


def test_notes_on_foreign_names_are_saved(tmp_path):
    run = karat.evaluate([{"retrieved": [{"id": "a", "score\ud800": 1}], "gold": ["a"]}], "rr")
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").provenance.notes == run.provenance.notes != ()


def test_dicts_by_query_id(tmp_path):
    run = karat.evaluate(retrieved={LONE: {LONE: 0.5, "b": 0.7}}, gold={LONE: {LONE: 1}}, metrics="rr")
    run.save(tmp_path / "run.parquet")
    back = karat.load(tmp_path / "run.parquet")
    assert run.mean["rr"] == 0.5
    assert (back.ids, back.items(LONE)) == (run.ids, run.items(LONE))


def test_ids_that_would_be_equal_in_a_file_are_refused():
    with pytest.raises(karat.InputError, match="the same id"):
        karat.evaluate([{"id": query, "retrieved": ["a"], "gold": ["a"]} for query in ("\ud800", "\\ud800")], "rr")
    with pytest.raises(karat.InputError, match="the same id"):
        karat.evaluate(retrieved={"\ud800": ["a"], "\\ud800": ["a"]}, gold={"q": ["a"]}, metrics="rr")
