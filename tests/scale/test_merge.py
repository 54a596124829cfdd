"""Merging: what parts give together is what one call gives, to the byte."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import karat
from karat.errors import BadArgument, RunFileError
from karat.samples.notes import Note
from support.scripted import Scripted
from support.split_samples import made, saved

METRICS = "recall@1,5 precision@5 ndcg@10 rr ap recall@50t"
CUTS = ((0, 41), (0, 1, 41), (0, 7, 8, 30, 41), tuple(range(42)))


def parts_of(samples, cuts, **options):
    return [karat.evaluate(samples[a:b], METRICS, **options) for a, b in pairwise(cuts)]


@pytest.mark.parametrize("cuts", CUTS, ids=lambda cuts: f"{len(cuts) - 1} parts")
@pytest.mark.parametrize(
    "options",
    [
        {"judge": "ids"},
        {"judge": "fuzzy(0.3)"},
        {"judge": "text"},
        {"judge": "ids", "convention": "llamaindex"},
        {"judge": "contains", "convention": "trec_eval"},
    ],
    ids=str,
)
def test_parts_are_the_whole_to_the_byte(options, cuts, tmp_path):
    samples = made()
    whole = karat.evaluate(samples, METRICS, **options)
    parts = parts_of(samples, cuts, **options)
    files = []
    for number, part in enumerate(parts):
        files.append(tmp_path / f"part-{number}.parquet")
        part.save(files[-1])
    expected, interval = saved(whole, tmp_path / "whole.parquet"), whole.interval()
    for given in (parts, parts[::-1], files, [*files[1:], *files[:1]]):
        merged = karat.merge(given)
        assert saved(merged, tmp_path / "merged.parquet") == expected
        assert merged.interval() == interval
        assert merged.undefined == whole.undefined
        assert merged.gold_hash == whole.gold_hash
        assert merged.remarks() == whole.remarks()
        assert merged.items("q3") == whole.items("q3")
        assert merged.hits("q3") == whole.hits("q3")


def test_comparisons_are_those_of_whole_runs():
    samples, others = made(), made()
    for sample in others:
        sample["retrieved"] = sample["retrieved"][::-1]
        for item in sample["retrieved"]:
            item.pop("score")
    whole = karat.compare(karat.evaluate(samples, METRICS), karat.evaluate(others, METRICS))
    merged = karat.compare(karat.merge(parts_of(samples, CUTS[2])), karat.merge(parts_of(others, CUTS[2])[::-1]))
    assert merged.to_dict() == whole.to_dict()


def test_order_is_counted_and_may_be_given():
    samples = made(12)
    parts = [karat.evaluate([sample], METRICS, judge="ids") for sample in samples]
    assert karat.merge(parts[::-1]).ids == [f"q{n}" for n in range(12)]  # q10 stands behind q9
    wanted = [f"q{n}" for n in (5, 11, 0, 1, 2, 3, 4, 6, 7, 8, 9, 10)]
    assert karat.merge(parts, order=wanted).ids == wanted
    with pytest.raises(BadArgument, match="each of the 12 queries once"):
        karat.merge(parts, order=wanted[1:])


def test_files_are_named_together_and_rows_summed(tmp_path):
    for number in (1, 2, 10):
        rows = [f'{{"id": "{number}-{q}", "question": "?", "retrieved": ["a"], "gold": ["a"]}}' for q in range(2)]
        (tmp_path / f"log-{number}.jsonl").write_text("\n".join([*rows, "broken"]))
    parts = [karat.evaluate(tmp_path / f"log-{n}.jsonl", "recall@5", skip_bad_rows=True) for n in (10, 1, 2)]
    merged = karat.merge(parts)
    assert merged.ids == ["1-0", "1-1", "2-0", "2-1", "10-0", "10-1"]
    assert merged.provenance.source == str(tmp_path / "log-*.jsonl")
    assert merged.provenance.skipped == 3


def test_a_run_against_parts_of_the_gold(tmp_path):
    """What is extra in one part is gold in another; the rest is extra in the whole."""
    run = {f"q{n}": {"a": 1.0} for n in range(5)}
    gold = {f"q{n}": {"a": 1} for n in range(4)}
    (tmp_path / "run.trec").write_text("".join(f"{q} Q0 a 1 1.0 x\n" for q in run))
    for name, queries in (("all", (0, 1, 2, 3)), ("g1", (0, 1)), ("g2", (2, 3))):
        (tmp_path / f"{name}.qrels").write_text("".join(f"q{n} 0 a 1\n" for n in queries))
    files = {
        name: karat.evaluate(tmp_path / "run.trec", "rr", gold=tmp_path / f"{name}.qrels")
        for name in ("all", "g1", "g2")
    }
    merged = karat.merge([files["g2"], files["g1"]])
    assert merged.provenance.extra == files["all"].provenance.extra == 1
    assert merged.ids == list(gold)
    assert merged.remarks() == [remark.replace("all.qrels", "g*.qrels") for remark in files["all"].remarks()]


def test_counts_in_notes_are_summed():
    """Ties that rounding makes are counted over all parts, and said once."""

    def one(n):
        return {f"q{n}": {"a": 0.1, "b": 0.1 + 1e-12}}, {f"q{n}": {"a": 1}}

    parts = [karat.evaluate(retrieved=one(n)[0], gold=one(n)[1], metrics="rr") for n in range(3)]
    run = {query: docs for n in range(3) for query, docs in one(n)[0].items()}
    gold = {query: docs for n in range(3) for query, docs in one(n)[1].items()}
    whole = karat.evaluate(retrieved=run, gold=gold, metrics="rr")
    assert whole.provenance.notes == (Note("single_precision_ties", 3),)
    assert karat.merge(parts).provenance.notes == whole.provenance.notes


def sampled(name, queries, budget, *, cache=False):
    """A run of which a budget of calls allows a sample, two calls per query."""
    rows = [{"id": f"{name}{n}", "retrieved": [f"rain {n}"], "answer": f"rain {n}."} for n in range(queries)]
    return karat.evaluate(rows, "recall@5", judge=karat.Claims(Scripted(), cache=cache, max_calls=budget))


@pytest.mark.parametrize(
    ("parts", "fair"),
    [
        (((40, 20), (40, 20)), True),
        (((40, 20), (20, 10)), True),
        (((40, 20), (41, 20)), True),  # the shares differ by less than one query
        (((40, None), (40, 8)), False),
        (((40, 60), (40, 8)), False),
        (((40, 20), (40, 0)), False),
        (((40, 0), (40, 20)), False),
    ],
)
def test_samples_are_a_sample_of_all_if_their_shares_are_equal(parts, fair):
    merged = karat.merge([sampled("ab"[number], *part) for number, part in enumerate(parts)])
    assert [note.kind for note in merged.provenance.notes].count("sample_judged") == fair
    assert ("The judged queries are a random sample of all" in str(merged)) == fair


def test_parts_with_cached_queries_are_no_sample_of_all(tmp_path):
    sampled("a", 10, 20, cache=tmp_path / "c")
    parts = [sampled("a", 40, 20, cache=tmp_path / "c"), sampled("b", 40, 40)]
    assert "of them no call was needed" in str(parts[0])
    assert "sample of all" not in " ".join(karat.merge(parts).remarks())


def test_counts_of_located_quotes_and_chunks_are_summed(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"The {name} of gold. The {name} of silver. The {name} of gold.")
    samples = [
        {
            "id": f"q{n}",
            "retrieved": [
                {"text": f"The {name} of gold.", "doc": f"{name}.txt"},
                {"text": "Not there.", "doc": "a.txt"},
            ],
            "gold": [{"text": f"The {name} of silver."}, {"text": f"The {name} of gold."}, {"text": f"Nowhere {n}."}][
                n % 2 :
            ][: 3 - n % 3],
        }
        for n, name in enumerate("ababab")
    ]
    judge = karat.Spans(corpus=str(tmp_path))
    whole = karat.evaluate(samples, "recall@5", judge=judge)
    assert sum("of 11 gold quotes" in remark or "chunk" in remark for remark in whole.remarks()) >= 3
    for size in (1, 2, 4):
        parts = [karat.evaluate(samples[a : a + size], "recall@5", judge=judge) for a in range(0, 6, size)]
        assert karat.merge(parts).provenance == whole.provenance


def test_the_hint_of_a_part_without_hits_is_dropped():
    found = {"id": "1", "retrieved": ["gold mine"], "gold": ["gold mine"]}
    quoted = {"id": "2", "retrieved": ["a gold mine here"], "gold": ["gold mine"]}
    parts = [karat.evaluate([sample], "recall", judge="exact") for sample in (found, quoted)]
    assert parts[1].provenance.notes
    assert (
        karat.merge(parts).provenance.notes
        == karat.evaluate([found, quoted], "recall", judge="exact").provenance.notes
        == ()
    )


def test_failed_queries_stay_failed(tmp_path):
    """A judgement that failed in a part is missing in the whole, with its cause."""
    import numpy as np

    parts = parts_of(made(), CUTS[1], judge="ids")
    parts[0].all_hits.failed[0] = "no answer"
    parts[0].scores = {name: np.full(1, np.nan) for name in parts[0].scores}
    parts[0].save(tmp_path / "part.parquet")
    merged = karat.merge([tmp_path / "part.parquet", parts[1]])
    assert merged.failures == {"q0": "no answer"}


def test_deep_rankings_say_nothing_of_what_was_seen_elsewhere():
    """A part keeps twenty places; what stands deeper in it nobody can look through any more."""
    deep = [{"id": f"q{n}", "retrieved": [f"d{i}" for i in range(30)], "gold": ["d29", "x"]} for n in range(2)]
    merged = karat.merge([karat.evaluate([sample], "recall@5", judge="ids") for sample in deep])
    whole = karat.evaluate(deep, "recall@5", judge="ids")
    assert [item.seen for item in whole.items("q0").gold] == [True, False]
    assert [item.seen for item in merged.items("q0").gold] == [None, None]


def test_of_many_queries_fewer_places_are_kept(tmp_path):
    """As few as of the whole, though each part alone would keep more."""
    many = [{"id": f"q{n}", "retrieved": [f"d{i}" for i in range(18)], "gold": ["d3"]} for n in range(6000)]
    whole = karat.evaluate(many, "recall@5", judge="ids")
    parts = [karat.evaluate(many[a : a + 3000], "recall@5", judge="ids") for a in (3000, 0)]
    assert [len(run.items("q1").retrieved) for run in (whole, parts[1])] == [16, 18]
    assert saved(karat.merge(parts), tmp_path / "merged.parquet") == saved(whole, tmp_path / "whole.parquet")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"metrics": "recall@5"}, "metrics: recall@1,5"),
        ({"judge": "exact"}, "judge: ids / exact"),
        ({"convention": "ranx"}, "convention: standard / ranx"),
        ({"tokens": str.split}, "tokens counted by: words / str.split"),
    ],
    ids=str,
)
def test_parts_that_were_asked_differently_are_refused(other, said):
    samples = made(6)
    options = {"metrics": METRICS, "judge": "ids"}
    first = karat.evaluate(samples[:3], **options)
    second = karat.evaluate(samples[3:], **(options | other))
    with pytest.raises(BadArgument, match="not parts of one run") as caught:
        karat.merge([first, second])
    assert said in str(caught.value)


def test_parts_of_another_version_are_refused():
    first, second = parts_of(made(6), (0, 3, 6), judge="ids")
    second.provenance = replace(second.provenance, karat="0.0.0")
    with pytest.raises(BadArgument, match=r"karat's version: .* / 0\.0\.0"):
        karat.merge([first, second])


def test_a_query_in_two_parts_is_refused(tmp_path):
    first, second = parts_of(made(6), (0, 3, 6), judge="ids")
    first.save(tmp_path / "a.parquet")
    with pytest.raises(BadArgument, match=r'"q0" is in a\.parquet and part 3'):
        karat.merge([tmp_path / "a.parquet", second, first])


@pytest.mark.parametrize("given", [[], "a.parquet", [3]], ids=str)
def test_what_is_no_list_of_runs_is_refused(given):
    with pytest.raises(BadArgument):
        karat.merge(given)


def test_a_file_that_is_no_run_is_told(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(RunFileError, match=r"a\.parquet"):
        karat.merge([tmp_path / "a.parquet"])


def test_the_command(tmp_path, capsys):
    from karat.cli import main

    samples = made()
    whole = saved(karat.evaluate(samples, METRICS, judge="ids"), tmp_path / "whole.parquet")
    files = []
    for number, part in enumerate(parts_of(samples, CUTS[2], judge="ids")):
        files.append(str(tmp_path / f"part-{number}.parquet"))
        part.save(files[-1])
    assert main(["merge", *files[::-1], "-o", str(tmp_path / "run.parquet")]) == 0
    assert (tmp_path / "run.parquet").read_bytes() == whole
    assert "Saved to" in capsys.readouterr().out
    assert main(["merge", files[0], files[0], "-o", str(tmp_path / "run.parquet")]) == 2
    assert '"q0" is in' in capsys.readouterr().err
    assert (tmp_path / "run.parquet").read_bytes() == whole
