"""Run files are input: whatever is in one, it is a valid run or a sentence, and no number in it allocates memory."""

from __future__ import annotations

import json
from io import BytesIO
from random import Random

import numpy as np
import polars as pl
import pytest

import karat
from fuzz.frame import command
from karat._internal.arrow import check_arrow
from karat._internal.parquet import Damaged, check_parquet, footer_start
from karat.metrics import METRICS
from support.damage import bounded_memory

SAMPLES = [
    {"id": f"q{n}", "retrieved": ["a", "b", "c", "d"], "gold": {"a": 1, "d": 2, "x": 1}, "topic": "t"} for n in range(6)
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.parquet"
    karat.evaluate(SAMPLES, "recall@5 ndcg@10").save(path)
    return path


@pytest.fixture
def rewrite(saved, tmp_path):
    """Write the run with other columns or metadata, as another program could."""

    def write(*columns, drop=(), **about):
        frame = pl.read_parquet(saved).with_columns(*columns).drop(drop)
        given = json.loads(pl.read_parquet_metadata(saved)["karat"])
        for path, value in about.items():
            *parents, last = path.split("__")
            place = given
            for name in parents:
                place = place[name]
            place[last] = value
        path = tmp_path / "other.parquet"
        frame.write_parquet(path, metadata={"karat": json.dumps(given)})
        return path

    return write


def first(name, value):
    """The column with another value in its first row."""
    return pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)


def first_hit(**changes):
    return _first_record("hits", **changes)


def _first_record(name, **changes):
    kinds = {int: pl.Int64, float: pl.Float64}
    fields = [pl.lit(value, kinds[type(value)]).alias(field) for field, value in changes.items()]
    changed = pl.col(name).list.eval(pl.element().struct.with_fields(*fields))
    return pl.when(pl.int_range(pl.len()) == 0).then(changed).otherwise(pl.col(name)).alias(name)


REFUSED = {
    "a score above 1": ([first("recall@5", 5.0)], 'recall@5 of query "q0" is 5.0; expected 0 to 1'),
    "an absurd score": ([first("recall@5", 1e300)], "recall@5"),
    "an infinite score": ([first("recall@5", float("inf"))], "recall@5"),
    "a negative score": ([first("ndcg@10", -5.0)], 'ndcg@10 of query "q0" is -5.0'),
    "scores as text": ([pl.col("recall@5").cast(pl.String)], "recall@5"),
    "equal ids": ([pl.lit("q1").alias("query_id")], 'two queries have the id "q1"'),
    "no id": ([first("query_id", None)], "query_id"),
    "a negative depth": ([first("depth", -1)], 'depth of query "q0" is -1'),
    "an absurd depth": ([first("depth", 2**40)], "depth"),
    "rank 0": ([first_hit(rank=0)], "rank must be between 1 and the depth"),
    "a rank above the depth": ([first_hit(rank=10**9)], "rank must be between 1 and the depth"),
    "the largest rank": ([first_hit(rank=2**63 - 1)], "a hit has the rank"),
    "no such gold item": ([first_hit(gold=3)], "gold item that does not exist"),
    "a gold item of a billion": ([first_hit(gold=10**9)], "gold item that does not exist"),
    "a grade above that of the gold": ([first_hit(grade=9.0)], "higher grade"),
    "a grade that is no number": ([_first_record("gold", grade=float("nan"))], "grade of nan"),
    "a hit twice": (
        [pl.col("hits").list.concat(pl.col("hits").list.head(1)).alias("hits")],
        "the same hit twice",
    ),
    "a negative grade of a hit": ([first_hit(grade=-1.0)], "negative grade"),
    "fewer ranks than stored items": (
        [first("depth", 2), pl.col("hits").list.head(1)],
        "more stored items than the depth",
    ),
    "null lists": ([first("gold", None)], 'column "gold" has no value in row 1'),
    "lists of other values": ([pl.lit([1.0]).alias("hits")], "expected lists of records"),
    "a failed query with a score": ([pl.lit("timed out").alias("failed")], "could not be judged"),
    "totals of other lengths": ([pl.lit([1.0]).alias("along.tokens")], "expected the depth of the ranking"),
    "a negative size": ([pl.lit(-1.0).alias("size.gold")], "size.gold"),
    "nested fields": ([pl.lit([1]).alias("meta.topic")], "meta.topic"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_run_with_other_values_is_refused(name, rewrite):
    columns, message = REFUSED[name]
    path = rewrite(*columns)
    with pytest.raises(karat.RunFileError) as caught:
        karat.load(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("column", ["query_id", "recall@5", "depth", "gold", "hits", "retrieved"])
def test_a_run_without_a_column_is_refused(column, rewrite):
    with pytest.raises(karat.RunFileError, match=f'no column "{column}"'):
        karat.load(rewrite(drop=[column]))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("provenance", None), ("provenance__metrics", "recall@5"), ("provenance__metrics", ["recall@0"]),
        ("provenance__metrics", ["f(beta=-1,x=2)@5"]), ("provenance__missing", -1), ("provenance__extra", 10**30),
        ("provenance__judge", 5), ("provenance__notes", [{"count": 1}]),
        ("provenance__notes", [{"kind": "x", "of": -1}]),
        ("provenance__notes", [[[]]]), ("convention__ties", "random"), ("convention__no_such_choice", 1),
        ("convention__empty_gold", "x"), ("convention__rounding", 10**12), ("convention__per_rank", [[]]),
        ("convention__exceptions", {"rr": {"ties": "random"}}), ("convention__exceptions", {"rr": {"no_such": 1}}),
        ("convention__calls", [1]), ("items__places", -1), ("items__label", "x"), ("items", []), ("open", "no"),
        ("format", "1"), ("format", 2),
    ],
)  # fmt: skip
def test_other_metadata_are_refused(place, value, rewrite):
    with pytest.raises(karat.RunFileError, match=r"other\.parquet (is a damaged run file|was written by a newer)"):
        karat.load(rewrite(**{place: value}))


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '{"a":' * 20_000])
def test_metadata_that_are_no_record_are_refused(text, saved, tmp_path):
    pl.read_parquet(saved).write_parquet(tmp_path / "x.parquet", metadata={"karat": text})
    with pytest.raises(karat.RunFileError, match="is a damaged run file"):
        karat.load(tmp_path / "x.parquet")


def test_negative_grades_of_gold_are_those_of_hits(tmp_path):
    run = karat.evaluate(retrieved={"q": ["a", "b"]}, gold={"q": {"a": -1, "b": 1}}, metrics="recall@2")
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").all_hits.grade.tolist() == [-1, 1]


def test_undefined_scores_and_unknown_metrics_judges_and_notes_are_loaded(rewrite):
    for undefined in (float("nan"), None):
        assert karat.load(rewrite(first("recall@5", undefined))).undefined["recall@5"] == 1
    own = {"provenance__metrics": ["seconds"], "provenance__judge": "mine(x=1)", "provenance__notes": [{"kind": "y"}]}
    loaded = karat.load(rewrite(pl.lit(250.0).alias("seconds"), **own))
    assert loaded.mean == {"seconds": 250.0}
    assert "y." in str(loaded)
    note = {"kind": "order_kept", "count": 1}  # without the details that its sentence needs
    assert "order kept: 1." in str(karat.load(rewrite(provenance__notes=[note])))


@pytest.mark.parametrize("column", ["retrieved", "gold_items"])
def test_a_field_of_the_items_that_karat_does_not_write_is_ignored(column, saved, rewrite):
    more = pl.col(column).list.eval(
        pl.element().struct.with_fields(pl.lit(True).alias("mine"), pl.lit(True).alias("seen"))
    )
    loaded, before = karat.load(rewrite(more)), karat.load(saved)
    assert loaded.items("q0").retrieved == before.items("q0").retrieved
    assert str(karat.diagnose(loaded))


def test_conventions_decide_how_high_scores_may_be(tmp_path):
    path = tmp_path / "copies.parquet"
    run = karat.evaluate([{"retrieved": ["a", "a", "a"], "gold": ["a"]}], "ap ndcg", convention="llamaindex")
    run.save(path)
    assert karat.load(path).mean["ap"] == run.mean["ap"] > 1
    frame, about = pl.read_parquet(path), pl.read_parquet_metadata(path)["karat"]
    frame.with_columns(ap=pl.lit(3.5)).write_parquet(path, metadata={"karat": about})
    with pytest.raises(karat.RunFileError, match="expected 0 to 3"):
        karat.load(path)


def test_no_number_in_a_file_allocates_memory(rewrite, tmp_path):
    """A rank of a billion, which would need gigabytes as an index of a table."""
    deep = [pl.lit(2**31 - 1, pl.Int64).alias("depth"), first_hit(rank=10**9)]
    for convention in ("standard", "sklearn"):
        options = {"convention__unretrieved": "last", "convention__ideal": "all"} if convention == "sklearn" else {}
        path = rewrite(*deep, **options)
        with bounded_memory(2**29):
            assert karat.load(path).all_hits.rank.max() == 10**9
            for arguments in (["report", path, "-o", tmp_path / "page.html"], ["diagnose", path], ["show", path]):
                assert command(*arguments).code == 0


def test_a_small_file_with_gigabytes_of_text_is_refused(tmp_path):
    path = tmp_path / "run.parquet"
    karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}] * 400, "rr").save(path)
    about = {"karat": pl.read_parquet_metadata(path)["karat"]}
    frame = pl.read_parquet(path).with_columns(pl.lit("x" * 1_000_000).alias("meta.topic"))  # stored once
    frame.write_parquet(path, metadata=about)
    assert path.stat().st_size < 100_000
    with bounded_memory(2**28), pytest.raises(karat.RunFileError, match=r"it claims 400,\d{3},\d{3} bytes of texts"):
        karat.load(path)


def test_every_changed_byte_is_noticed(saved, tmp_path):
    content, random, path = saved.read_bytes(), Random(3), tmp_path / "changed.parquet"
    for place in (*random.sample(range(4, len(content) - 8), 100), *range(len(content) - 9, len(content))):
        changed = bytearray(content)
        changed[place] ^= 1 << random.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(karat.RunFileError):
            karat.load(path)


def test_other_programs_read_run_files_and_write_them(saved, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(saved)
    assert table["recall@5"].to_pylist() == pl.read_parquet(saved)["recall@5"].to_list()
    assert pl.scan_parquet(saved).select("query_id").collect().height == len(SAMPLES)
    about = {"karat": pl.read_parquet_metadata(saved)["karat"]}
    parquet.write_table(table.replace_schema_metadata(about), tmp_path / "again.parquet")
    assert karat.load(tmp_path / "again.parquet").mean == karat.load(saved).mean


def test_a_gate_on_a_damaged_file_replaces_what_an_earlier_one_wrote(saved, tmp_path):
    page, run = tmp_path / "gate.md", tmp_path / "run.parquet"
    run.write_bytes(saved.read_bytes())
    assert command("gate", run, "recall@5 >= 0.1", "--markdown", page).code == 0
    assert "passed" in page.read_text("utf-8")
    content = bytearray(saved.read_bytes())
    content[footer_start(bytes(content)) + 5] ^= 255
    run.write_bytes(content)
    result = command("gate", run, "recall@5 >= 0.1", "--markdown", page)
    assert result.code == 2
    assert "damaged run file" in " ".join(result.err.split())
    assert "passed" not in page.read_text("utf-8")


@pytest.fixture(scope="module")
def parquet():
    file = BytesIO()
    pl.DataFrame({"a": [f"x{n}" for n in range(300)], "b": [[n] * (n % 3) for n in range(300)]}).write_parquet(file)
    return file.getvalue()


def test_parquet_that_claims_more_than_it_holds_is_refused(parquet):
    check_parquet(parquet)
    begin = footer_start(parquet)
    footer = parquet[begin:-8]
    refused = 0
    for place in range(len(footer)):  # a list with 2^31 elements, or a number of 2^62
        for claim in (b"\xfc\xff\xff\xff\xff\x07", b"\xfe" + b"\xff" * 7 + b"\x7f"):
            changed = footer[:place] + claim + footer[place + 1 :]
            try:
                check_parquet(parquet[:begin] + changed + len(changed).to_bytes(4, "little") + b"PAR1")
            except Damaged:
                refused += 1
    assert refused > len(footer)


@pytest.mark.parametrize("compression", ["uncompressed", "zstd"])
def test_arrow_that_claims_more_than_it_holds_is_refused(compression):
    file = BytesIO()
    frame = pl.DataFrame({"a": [f"a longer text {n}" for n in range(300)], "b": [[n] * (n % 3) for n in range(300)]})
    frame.write_ipc(file, compression=compression)
    content, refused = file.getvalue(), 0
    check_arrow(content)
    for place in range(0, len(content) - 8, 8):
        try:
            check_arrow(content[:place] + (2**59).to_bytes(8, "little") + content[place + 8 :])
        except Damaged:
            refused += 1
    assert refused >= 20  # lengths of batches, columns and buffers, and their places


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_nested_too_deeply_are_refused(ending, tmp_path):
    """Thousands of levels overflow the stack of native code."""
    value: object = "a"
    for _ in range(70):
        value = [value]
    frame = pl.DataFrame({"query": ["q"], "retrieved": [["a"]], "gold": [["a"]], "deep": [value]})
    path = tmp_path / f"deep.{ending}"
    frame.write_parquet(path) if ending == "parquet" else frame.write_ipc(path)
    result = command("eval", path, "rr")
    assert result.code == 2
    assert "nested more than 64 levels deep" in " ".join(result.err.split())
    frame.drop("deep").write_parquet(path) if ending == "parquet" else frame.drop("deep").write_ipc(path)
    assert command("eval", path, "rr").code == 0


def test_panics_of_polars_are_sentences_without_traces(tmp_path, capfd):
    """Polars panics on damaged values in some encodings, which no check of the structure finds."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"query_id": [f"q{n // 5}" for n in range(100)], "doc_id": [f"d{n}" for n in range(100)]})
    path, panics = tmp_path / "results.parquet", 0
    encodings = dict.fromkeys(table.column_names, "DELTA_BYTE_ARRAY")
    parquet.write_table(table, path, use_dictionary=False, column_encoding=encodings, compression="none")
    (tmp_path / "gold.jsonl").write_text('{"id": "q0", "gold": ["d0"]}\n', "utf-8")
    content = path.read_bytes()
    for place in range(30, 230, 4):
        path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
        result = command("eval", path, "rr", "--gold", tmp_path / "gold.jsonl")
        assert result.code in (0, 2)
        panics += "Polars failed" in result.err
    assert panics
    assert capfd.readouterr().err == ""


def test_what_is_printed_while_files_are_read_is_printed_afterwards(capfd):
    from os import write

    from karat._internal.panics import panics_as_errors

    with panics_as_errors():
        write(2, b"first\n")
    write(2, b"second\n")
    assert capfd.readouterr().err == "first\nsecond\n"


def test_an_infinite_score_of_a_custom_metric_is_refused(monkeypatch):
    monkeypatch.setattr("karat.metrics.registry.METRICS", dict(METRICS))

    @karat.metric
    def infinite(hits, k, c):
        return np.full((len(k), hits.queries), np.inf)

    with pytest.raises(karat.BadArgument, match="infinite score"):
        karat.evaluate(SAMPLES, "infinite@5")


def test_lists_nested_too_deeply_in_a_footer_are_refused():
    footer = b"\x19" * 5000
    content = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(Damaged, match="nested too deeply"):
        check_parquet(content)


def test_a_footer_that_is_too_large_to_check_is_refused():
    footer = bytes(5_000_000)
    with pytest.raises(Damaged, match="5,000,008 bytes"):
        check_parquet(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1", 100)
