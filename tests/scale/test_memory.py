"""The memory limit holds for compressed files, for one huge line, and for one huge query."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import karat
from karat.samples.sources import find_source
from karat.scale import memory
from karat.scale.memory import MemoryLimits, larger_than, text_size
from karat.scale.pieces import Pieces

pa = pytest.importorskip("pyarrow")

MEMORY = 256 * 2**20
HUGE = MEMORY // 8 + 1
"""The bytes of a line whose objects need more than the least limit."""


def write(path, content):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content, 1))
    elif path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(content)
    else:
        path.write_bytes(content)
    return path


def line(query, text="x"):
    return json.dumps({"id": query, "query": text, "retrieved": ["a"], "gold": ["a"]}).encode() + b"\n"


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
@pytest.mark.parametrize("content", [b"", b"x", b"abc\n" * 1_000_000, random.Random(1).randbytes(300_000)])
def test_the_size_of_an_unpacked_file(tmp_path, ending, content):
    size = text_size(find_source(write(tmp_path / f"a.jsonl{ending}", content or b"\n")))
    blocks = 1 << 17 if ending == ".zst" else 0  # from block headers, of which the last one may be shorter
    assert len(content) <= size <= max(len(content), 1) + blocks


def test_frames_without_data_and_several_frames(tmp_path):
    one = write(tmp_path / "one.zst", b"x" * 500_000).read_bytes()
    two = tmp_path / "two.jsonl.zst"
    two.write_bytes(one + b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello" + one)
    assert 1_000_000 <= text_size(find_source(two)) <= 1_000_000 + (1 << 18)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_small_file_that_unpacks_to_a_large_one_is_read_in_pieces(tmp_path, ending):
    path = write(tmp_path / f"samples.jsonl{ending}", b"".join(line(f"q{i}", "x" * 5_000) for i in range(8_000)))
    assert path.stat().st_size < 1_000_000
    assert larger_than(path, MEMORY) is not None
    assert larger_than(path, 4 * MEMORY) is None
    assert larger_than(write(tmp_path / f"few.jsonl{ending}", line("q")), MEMORY) is None
    run = karat.evaluate(path, "rr", memory=MEMORY)
    assert len(run) == 8_000
    assert run.mean["rr"] == 1.0


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_one_huge_line_is_refused_with_the_figure(tmp_path, ending):
    path = write(tmp_path / f"samples.jsonl{ending}", line("q1") + line("q2", "x" * HUGE) + line("q3"))
    with pytest.raises(karat.InputError, match=r"line 2: about 0\.3 GiB of memory are needed at once, 0\.2") as error:
        karat.evaluate(path, "rr", memory=MEMORY)
    assert error.value.hint == "--memory 1GiB"
    assert len(karat.evaluate(path, "rr", memory=2 * MEMORY)) == 3


@pytest.mark.parametrize(("ending", "packed"), [(".jsonl", ".gz"), (".jsonl.zst", ".gz"), (".jsonl.gz", "")])
def test_compression_is_recognized_by_the_first_bytes(tmp_path, ending, packed):
    content = b"".join(line(f"q{i}", "x" * 5_000) for i in range(8_000))
    path = write(tmp_path / f"packed{packed}", content).rename(tmp_path / f"samples{ending}")
    assert text_size(find_source(path)) == len(content)
    assert len(karat.evaluate(path, "rr", memory=MEMORY)) == 8_000


def test_a_compressed_file_is_unpacked_once_to_measure_it(tmp_path, monkeypatch):
    read = []
    real = memory._gzip_blocks
    monkeypatch.setattr(memory, "_gzip_blocks", lambda file: read.append(file) or real(file))
    path = write(tmp_path / "samples.jsonl.gz", b"".join(line(f"q{i}", "x" * 5_000) for i in range(8_000)))
    karat.evaluate(path, "rr", memory=MEMORY)
    assert read == [str(path)]


PEAK = """
import karat, polars, re, sys
from pathlib import Path
for path in sys.argv[1:]:
    gold = None if ".jsonl" in path else {"q1": ["d"]}
    try: karat.evaluate(path, "rr", gold=gold, memory="256MiB")
    except karat.InputError as error: print(error)
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak memory is read from /proc")
def test_the_peak_memory_of_huge_lines(tmp_path):
    text = "x" * 70_000_000
    contents = {
        "one.jsonl": line("q", text),
        "two.jsonl.gz": line("q", text),
        "three.jsonl.zst": line("q", text),
        "four.csv.zst": b"query,item,score\nq1,%s,1\n" % (2 * text).encode(),
    }
    paths = [str(write(tmp_path / name, content)) for name, content in contents.items()]
    done = subprocess.run([sys.executable, "-c", PEAK, *paths], capture_output=True, text=True, check=True)
    *errors, peak = done.stdout.splitlines()
    refused = re.findall(r"(\w+)\.[\w.]+, line (\d): about (\d\.\d) GiB of memory are needed", "\n".join(errors))
    assert refused == [("one", "1", "0.5"), ("two", "1", "0.5"), ("three", "1", "0.5"), ("four", "2", "1.0")]
    assert int(peak) < 190_000


@pytest.mark.parametrize("scattered", [False, True])
def test_one_huge_query_is_refused_with_the_figure(tmp_path, scattered):
    rows = 1_500_000
    names = pl.Series("doc_id", [f"a document with a long name, {i}" for i in range(rows)])
    frame = pl.DataFrame({"query_id": ["q1", *["q2"] * (rows - 2), "q3"], "doc_id": names, "score": 1.0})
    if scattered:
        frame = pl.concat([frame[5:], frame[:5]])
        frame = pl.concat([frame[:1], frame[-1:], frame[1:-1]])
    frame.write_parquet(tmp_path / "run.parquet", row_group_size=100_000)
    with pytest.raises(karat.InputError, match=r'query "q2" has 1,499,99\d rows: about 0\.3 GiB of memory'):
        karat.evaluate(tmp_path / "run.parquet", "rr", gold={"q1": ["x"], "q2": ["x"], "q3": ["x"]}, memory=MEMORY)


def test_rows_that_grow_are_read_in_smaller_pieces(tmp_path):
    """The first rows are short, so their width says nothing about the others."""
    content = b"".join(line(f"q{i}") for i in range(3_000)) + b"".join(line(f"r{i}", "x" * 400_000) for i in range(120))
    path = write(tmp_path / "samples.jsonl", content)
    run = karat.evaluate(path, "rr", memory=MEMORY)
    assert len(run) == 3_120
    limits = MemoryLimits.of(MEMORY)
    pieces = list(Pieces(find_source(path), None, MEMORY // 16, limits, skip_bad_rows=False))
    assert max(sum(len(row["query"]) for row in piece.rows) for piece in pieces) < 2 * MEMORY // 16 // 8 + 400_000
    assert [number for piece in pieces for number in piece.lines] == list(range(1, 3_121))


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_gold_that_unpacks_to_more_than_the_limit_is_refused(tmp_path, ending):
    run = write(tmp_path / "run.jsonl", b"".join(line(f"q{i}", "x" * 5_000) for i in range(8_000)))
    gold = write(tmp_path / f"gold.jsonl{ending}", b"".join(line(f"q{i}", "x" * 5_000) for i in range(8_000)))
    with pytest.raises(karat.InputError, match=r"the gold needs more than [\d.]+ GiB of memory, 0\.2 are allowed"):
        karat.evaluate(run, "rr", gold=gold, memory=MEMORY)


def test_a_damaged_gzip_file_read_in_pieces(tmp_path, tiny):
    path = write(tmp_path / "samples.jsonl.gz", b"".join(line(f"q{i}", os.urandom(50).hex()) for i in range(500)))
    path.write_bytes(path.read_bytes()[:-3_000])
    with pytest.raises(karat.InputError, match=r"samples\.jsonl\.gz: cannot be read"):
        karat.evaluate(path, "rr", memory=tiny)
