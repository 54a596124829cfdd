"""Files larger than memory that are not as they should be: an error that names the file and the row, never a number."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import polars as pl
import pytest

import karat
from karat.samples.sources import find_source
from karat.scale.memory import MemoryLimits
from karat.scale.pieces import Pieces

RUN = pl.DataFrame(
    {
        "query_id": [f"q{i // 10}" for i in range(100)],
        "doc_id": [f"d{i % 10}" for i in range(100)],
        "score": [float(-i) for i in range(100)],
    }
)
GOLD = {f"q{i}": {"d1": 1, "d5": 1} for i in range(10)}
TREC = "".join(f"{q} Q0 {d} 0 {s} tag\n" for q, d, s in RUN.iter_rows())


def evaluate(path, tiny, **options):
    return karat.evaluate(path, "recall@5", gold=options.pop("gold", GOLD), memory=tiny, **options)


def refused(path, tiny, **options):
    with pytest.raises(karat.KaratError) as error:
        evaluate(path, tiny, **options)
    return str(error.value)


@pytest.mark.parametrize("name", ["run.parquet", "run.arrow", "run.jsonl.gz", "run.trec.zst"])
def test_a_file_that_ends_in_the_middle(tmp_path, tiny, name):
    import gzip

    import pyarrow as pa

    path = tmp_path / name
    if name.endswith(".parquet"):
        RUN.write_parquet(path)
    elif name.endswith(".arrow"):
        RUN.write_ipc(path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in RUN.to_dicts()).encode()))
    else:
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(TREC.encode())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert name in refused(path, tiny)


def test_a_text_that_ends_in_the_middle_of_a_line(tmp_path, tiny):
    path = tmp_path / "run.trec"
    path.write_text(TREC[:-12])
    assert "run.trec, line 100" in refused(path, tiny)
    path.write_text(TREC + "q9 Q0 d")
    assert "run.trec, line 101" in refused(path, tiny)


@pytest.mark.parametrize("line", ["q3 Q0 d1 0 high tag", "q3 Q0 d1 0 nan tag", "q3 Q0 d1"])
@pytest.mark.parametrize("at", [0, 1, 44, 99])
def test_the_line_that_cannot_be_read_is_named(tmp_path, tiny, line, at):
    lines = TREC.splitlines()
    if at:
        lines[at] = line
    else:
        lines.insert(1, line)
    path = tmp_path / "run.trec"
    path.write_text("\n".join(lines))
    said = refused(path, tiny)
    assert f"run.trec, line {(at or 1) + 1}" in said
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(path, "recall@5", gold=GOLD)
    assert str(error.value) == said


def test_a_file_that_is_regular_only_at_first(tmp_path, tiny):
    """Blank lines, wide gaps and a tag of two words in the middle: the same numbers."""
    lines = TREC.splitlines()
    lines[60] = lines[60].replace(" ", "   ")
    lines[70] += " two"
    lines.insert(80, "")
    path = tmp_path / "run.trec"
    path.write_text("\n".join(lines))
    run, whole = evaluate(path, tiny), karat.evaluate(RUN, "recall@5", gold=GOLD)
    assert run.table.equals(whole.table)
    assert run.all_hits.depth.tolist() == whole.all_hits.depth.tolist()


@pytest.mark.parametrize("value", [None, float("nan")])
def test_the_row_without_a_score_is_named(tmp_path, tiny, value):
    scores = RUN["score"].to_list()
    scores[76] = value
    RUN.with_columns(pl.Series("score", scores)).write_parquet(tmp_path / "run.parquet", row_group_size=10)
    assert 'run.parquet, row 77: "score" is not a number' in refused(tmp_path / "run.parquet", tiny)


def test_the_row_without_an_item_is_named(tmp_path, tiny):
    items = RUN["doc_id"].to_list()
    items[33] = None
    RUN.with_columns(pl.Series("doc_id", items)).write_parquet(tmp_path / "run.parquet")
    assert 'run.parquet, row 34: column "doc_id" is empty' in refused(tmp_path / "run.parquet", tiny)


def test_a_line_that_is_no_json(tmp_path, tiny):
    lines = [json.dumps({"id": f"q{i}", "retrieved": ["a"], "gold": ["a"]}) for i in range(50)]
    lines[40] = '{"id": '
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(lines))
    assert "samples.jsonl, line 41" in refused(path, tiny, gold=None)
    run = evaluate(path, tiny, gold=None, skip_bad_rows=True)
    assert run.provenance.skipped == 1
    assert len(run) == 49


def test_a_sample_that_is_none(tmp_path, tiny):
    rows = [{"id": f"q{i}", "retrieved": ["a"], "gold": ["a"]} for i in range(50)]
    rows[30]["retrieved"] = "a, b"
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "samples.jsonl, line 31" in refused(tmp_path / "samples.jsonl", tiny, gold=None)


def test_two_samples_of_one_id(tmp_path, tiny):
    rows = [{"id": f"q{i % 40}", "retrieved": ["a"], "gold": ["a"]} for i in range(50)]
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert '"q0"' in refused(tmp_path / "samples.jsonl", tiny, gold=None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda frame: frame.with_columns(pl.col("score").cast(pl.String)), "String, but Float64 in"),
        (lambda frame: frame.drop("doc_id"), "missing, but String in"),
    ],
)
@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
def test_a_partition_with_another_schema(tmp_path, tiny, change, said, few):
    RUN[:50].write_parquet(tmp_path / "part-1.parquet")
    change(RUN[50:]).write_parquet(tmp_path / "part-2.parquet")
    told = refused(tmp_path, "1GiB" if few else tiny)
    assert "part-2.parquet" in told
    assert said in told


def test_a_partition_with_one_more_column(tmp_path, tiny):
    RUN[:50].write_parquet(tmp_path / "part-1.parquet")
    RUN[50:].with_columns(day=pl.lit(1)).write_parquet(tmp_path / "part-2.parquet")
    assert evaluate(tmp_path, tiny).table.equals(karat.evaluate(RUN, "recall@5", gold=GOLD).table)


def test_files_of_two_kinds(tmp_path, tiny):
    RUN.write_parquet(tmp_path / "part-1.parquet")
    RUN.write_csv(tmp_path / "part-2.csv")
    assert "files of different formats" in refused(tmp_path, tiny)


@pytest.mark.parametrize("column", ["query_id", "doc_id", "score"])
def test_a_column_of_the_wrong_type(tmp_path, tiny, column):
    RUN.with_columns(pl.lit([1.5]).alias(column)).write_parquet(tmp_path / "run.parquet")
    assert column in refused(tmp_path / "run.parquet", tiny)


def test_a_query_whose_rows_are_spread_over_partitions(tmp_path, tiny):
    for number in range(10):
        RUN[number::10].write_parquet(tmp_path / f"part-{number}.parquet")
    run = evaluate(tmp_path, tiny)
    assert run.table.sort("query_id").equals(karat.evaluate(RUN, "recall@5", gold=GOLD).table.sort("query_id"))


def test_paths_that_cannot_be_opened(tmp_path, tiny):
    (tmp_path / "run.parquet").symlink_to(tmp_path / "run.parquet")
    assert "run.parquet" in refused(tmp_path / "run.parquet", tiny)
    assert "no file matches" in refused(f"{tmp_path}/*.csv", tiny)
    assert "cannot be opened" in refused(f"{tmp_path}/{'x' * 5000}.parquet", tiny)
    assert "no file" in refused(tmp_path / "nothing.parquet", tiny)


def test_a_path_without_rights(tmp_path):
    """As another user, for root may read everything."""
    path = tmp_path / "run.parquet"
    RUN.write_parquet(path)
    path.chmod(0)
    RUN.write_parquet(tmp_path / "other.parquet")
    code = f"""
import os, karat
karat.evaluate({str(tmp_path / "other.parquet")!r}, "recall@5", gold={{"q1": ["d1"]}})  # loads what it needs
if os.getuid() == 0: os.seteuid(65534)
try: karat.evaluate({str(path)!r}, "recall@5", gold={{"q1": ["d1"]}})
except karat.InputError as error: print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ": cannot be opened: " in done.stdout, done.stderr


def test_no_query_shared(tmp_path, tiny):
    RUN.write_parquet(tmp_path / "run.parquet")
    assert "share no query id" in refused(tmp_path / "run.parquet", tiny, gold={"Q1": ["d1"]})
    assert "upper and lower case" in refused(tmp_path / "run.parquet", tiny, gold={"Q1": ["d1"]})


def test_gold_larger_than_memory(tmp_path, tiny):
    RUN.write_parquet(tmp_path / "run.parquet")
    gold = pl.DataFrame([{"query_id": q, "doc_id": d, "grade": g} for q, own in GOLD.items() for d, g in own.items()])
    gold.write_parquet(tmp_path / "gold.parquet")
    said = refused(tmp_path / "run.parquet", tiny, gold=tmp_path / "gold.parquet")
    assert "the gold needs about" in said
    assert "karat merge" in said


def test_one_number_per_item_must_fit_into_memory(tmp_path, tiny):
    RUN.write_parquet(tmp_path / "run.parquet")
    message = refused(tmp_path / "run.parquet", tiny._replace(total=500), convention="sklearn")
    assert "do not fit into the memory allowed" in message


def test_one_json_text(tmp_path, tiny):
    (tmp_path / "run.json").write_text(json.dumps([{"retrieved": ["a"], "gold": ["a"]}] * 50))
    assert "JSONL" in refused(tmp_path / "run.json", tiny, gold=None)


def test_a_full_disk_while_rows_are_brought_together(tmp_path, tiny, monkeypatch):
    RUN.sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "run.parquet")

    def full(_, file, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_ipc", full)
    said = refused(tmp_path / "run.parquet", tiny)
    assert "No space left" in said
    assert "TMPDIR" in said


def test_a_full_disk_while_the_run_is_written(tmp_path):
    """The old result stays."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no rights to make a small disk")
    try:
        small = karat.evaluate(retrieved={"q": ["a"]}, gold={"q": ["a"]}, metrics="rr")
        small.save(folder / "run.parquet")
        before = (folder / "run.parquet").read_bytes()
        random = Random(1)
        many = {random.randbytes(20).hex(): [random.randbytes(20).hex()] for _ in range(5000)}
        large = karat.evaluate(retrieved=many, gold=many, metrics="rr")
        with pytest.raises(karat.RunFileError, match="No space left"):
            large.save(folder / "run.parquet")
        assert (folder / "run.parquet").read_bytes() == before
        assert [file.name for file in folder.iterdir()] == ["run.parquet"]
    finally:
        subprocess.run(["umount", str(folder)], check=False)


def test_temporary_files_are_gone(tmp_path, tiny, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    RUN.sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "run.parquet")
    evaluate(tmp_path / "run.parquet", tiny)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_long_file_that_is_regular_but_for_its_last_line(tmp_path):
    """Most of it has been read in strides when that line comes; what follows is read by lines, none twice."""
    path = tmp_path / "run.trec"
    lines = [f"q{i // 1000} Q0 d{i} 0 {i}.5 tag" for i in range(400_000)]
    path.write_text("\n".join([*lines, "q400  Q0 d400000 0 1.5 tag"]))
    read = pl.concat(Pieces(find_source(path), "retrieved", 1 << 20, MemoryLimits(1 << 24), skip_bad_rows=False))
    assert read["doc_id"].to_list() == [f"d{i}" for i in range(400_001)]


def test_pieces_have_the_requested_size_and_every_row_once(tmp_path, tiny):
    RUN.write_parquet(tmp_path / "run.parquet", row_group_size=100)
    source = find_source(tmp_path / "run.parquet")
    sizes = [len(piece) for piece in Pieces(source, "retrieved", 180, tiny, skip_bad_rows=False)]
    assert sum(sizes) == len(RUN)
    assert max(sizes) <= 7
