"""Files that are not UTF-8: read if their first bytes name the encoding; else the error names it, with the remedy."""

from __future__ import annotations

import gzip
import json
import shlex
import shutil
import subprocess

import pytest

import karat
from karat.scale.memory import MemoryLimits
from support.forked import run_karat

ROWS = [{"id": f"q{i}", "query": "Crème brûlée?", "retrieved": ["a"], "gold": ["a"]} for i in range(3)]
PLAIN = [{"id": "q1", "retrieved": ["a"], "gold": ["a"]}]
TEXTS = {
    "samples.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS),
    "samples.json": json.dumps(ROWS, ensure_ascii=False, indent=1),
    "results.csv": "query_id,doc_id,score\nq1,Crème,1\n",
    "results.tsv": "query_id\tdoc_id\tscore\nq1\tCrème\t1\n",
    "results.run": "q1 Q0 Crème 1 2.0 x\n",
}
GOLD = {"q1": ["Crème"]}
ENCODINGS = {
    "latin-1": ("latin-1", "ISO-8859-1"),
    "cp1252": ("Windows-1252", "WINDOWS-1252"),
    "utf-16-le": ("UTF-16", "UTF-16LE"),
    "utf-16-be": ("UTF-16", "UTF-16BE"),
}
MARKED = ["utf-16", "utf-32"]
"""Encodings whose files begin with a mark."""


def refused(path, **how):
    gold = None if "samples" in path.name else GOLD
    with pytest.raises(karat.InputError) as error:
        karat.evaluate(path, "rr", gold=gold, **how)
    return error.value


IN_PIECES = MemoryLimits(3000, fewest_rows=7, item_bytes=0)


@pytest.mark.parametrize("memory", ["1GiB", IN_PIECES], ids=["at once", "in pieces"])
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", TEXTS)
def test_the_encoding_is_named(tmp_path, name, encoding, memory):
    text = TEXTS[name].replace("è", "è’" if encoding == "cp1252" else "è")
    path = tmp_path / name
    path.write_bytes((text + "\n" * 3000).encode(encoding))
    named, iconv = ENCODINGS[encoding]
    error = refused(path, memory="1GiB" if name == "samples.json" else memory)  # one document is not read in pieces
    assert f"the file looks like {named}" in str(error)
    assert error.hint.startswith(f"iconv -f {iconv} -t UTF-8 {shlex.quote(str(path))} > ")


@pytest.mark.parametrize("encoding", MARKED)
@pytest.mark.parametrize("name", TEXTS)
def test_a_marked_encoding_is_read(tmp_path, name, encoding):
    path = tmp_path / name
    path.write_bytes(TEXTS[name].encode(encoding))
    run = karat.evaluate(path, "rr", gold=None if "samples" in name else GOLD)
    assert run.mean["rr"] == 1
    assert f"{path}: read as {encoding.upper()}, by the mark at its beginning." in run.remarks()
    path.write_bytes(gzip.compress(TEXTS[name].encode(encoding)))
    assert karat.evaluate(path, "rr", gold=None if "samples" in name else GOLD).mean["rr"] == 1


@pytest.mark.parametrize("encoding", MARKED)
@pytest.mark.parametrize("name", [name for name in TEXTS if name != "samples.json"])
def test_a_marked_encoding_is_named_if_the_file_is_too_large(tmp_path, name, encoding):
    path = tmp_path / name
    path.write_bytes((TEXTS[name] + "\n" * 3000).encode(encoding))
    error = refused(path, memory=IN_PIECES)
    assert f"the file looks like {encoding.upper()}" in str(error)
    assert error.hint.startswith(f"iconv -f {encoding.upper()} -t UTF-8 {shlex.quote(str(path))} > ")


def test_several_marked_files(tmp_path):
    for number, row in enumerate(ROWS):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(row), "utf-16")
    assert karat.evaluate(tmp_path, "rr").query == ["Crème brûlée?"] * 3


@pytest.mark.skipif(shutil.which("iconv") is None, reason="iconv is part of every Linux and macOS")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_remedy_works(tmp_path, encoding):
    path = tmp_path / "my samples.jsonl"
    path.write_text(TEXTS["samples.jsonl"], encoding)
    subprocess.run(refused(path).hint, shell=True, check=True)
    assert karat.evaluate(tmp_path / "my samples.utf8.jsonl", "rr").query == ["Crème brûlée?"] * 3


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_plain_letters_in_two_bytes_each(tmp_path, encoding):
    for name, text in {"samples.jsonl": json.dumps(PLAIN[0]), "samples.json": json.dumps(PLAIN)}.items():
        (tmp_path / name).write_text(text, encoding)
        assert "looks like UTF-16" in str(refused(tmp_path / name))
    (tmp_path / "results.csv").write_text("query_id,doc_id,score\nq1,a,1\n", encoding)
    assert "looks like UTF-16" in str(refused(tmp_path / "results.csv"))
    (tmp_path / "results.run").write_text("q1 Q0 a 1 2.0 x\n", encoding)
    assert "looks like UTF-16" in str(refused(tmp_path / "results.run"))


def test_the_line_is_named(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_bytes(json.dumps(PLAIN[0]).encode() + b"\n" + TEXTS["samples.jsonl"].encode("latin-1"))
    assert refused(path).problem == f"{path}: line 2 is not UTF-8; the file looks like latin-1 (ISO-8859-1)"


def test_damaged_utf8_is_not_another_encoding(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_bytes(TEXTS["samples.jsonl"].encode().replace("brûlée".encode(), b"br\xfbl\xe9e", 1))
    error = refused(path)
    assert error.problem == f"{path}: line 1 is not UTF-8, other lines are"
    assert error.hint.startswith("iconv -c -f UTF-8 -t UTF-8 ")


def test_an_unknown_encoding(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_bytes(b'{"query": "\x83\x8f\x81\x5b", "retrieved": [], "gold": []}\n')
    assert refused(path).problem == f"{path}: line 1 is not UTF-8"
    assert refused(path).hint.startswith("iconv -f ENCODING -t UTF-8 ")


def test_compressed_files(tmp_path):
    path = tmp_path / "samples.jsonl.gz"
    path.write_bytes(gzip.compress(TEXTS["samples.jsonl"].encode("latin-1")))
    error = refused(path)
    assert "looks like latin-1" in str(error)
    assert error.hint == f"gzip -dc {path} | iconv -f ISO-8859-1 -t UTF-8 > {tmp_path}/samples.utf8.jsonl"


def test_one_of_several_files(tmp_path):
    (tmp_path / "samples-1.jsonl").write_text(json.dumps(PLAIN[0]))
    (tmp_path / "samples-2.jsonl").write_bytes(TEXTS["samples.jsonl"].encode("latin-1"))
    assert refused(tmp_path / "samples-*.jsonl").problem.startswith(f"{tmp_path}/samples-2.jsonl: line 1 is not UTF-8")


def test_standard_input():
    done = run_karat("eval", "-", input=TEXTS["samples.jsonl"].encode("utf-16"))
    assert done.returncode == 0
    done = run_karat("eval", "-", input=TEXTS["samples.jsonl"].encode("utf-16-le"))
    assert done.returncode == 2
    assert b"standard input: line 1 is not UTF-8; the file looks like UTF-16" in done.stderr
    assert b"iconv -f UTF-16LE -t UTF-8 FILE | karat eval -" in done.stderr


def test_documents_of_a_corpus(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_bytes("Crème brûlée".encode("latin-1"))
    sample = {"retrieved": [{"doc": "a", "text": "x"}], "gold": [{"doc": "a", "text": "brûlée"}]}
    with pytest.raises(karat.InputError, match=r"a\.txt: line 1 is not UTF-8; the file looks like latin-1"):
        karat.evaluate([sample], "rr", judge=karat.Spans(corpus=tmp_path / "docs"))
