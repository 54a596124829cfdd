"""Sample files that were damaged: Parquet, Arrow, CSV, JSON and JSONL, compressed or not."""

from __future__ import annotations

import gzip
import json
from functools import cache
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from fuzz.frame import Fault, command, fuzzer
from support.damage import bounded_memory, damaged, no_traces

DEEP = (
    "[" * 50_000, '{"a":' * 20_000, '{"retrieved": ' + "[" * 3000 + "]" * 3000 + "}", "[" * 400 + "NaN" + "]" * 400,
    '{"query": "q", "retrieved": ["a"], "gold": ["a"], "x": ' + '{"y": ' * 5000 + "1" + "}" * 5000 + "}",
)  # fmt: skip
ODD = (
    None, True, -1, 1.5, 10**25, float("nan"), float("inf"), "", "x" * 5000, "\ud800", [], {}, [[]], [None],
    {"id": None}, {"id": "a", "score": "x"}, {"text": 5}, ["a", 1.5], [True], {"a": "x"}, "[" * 300, 9 * "9" * 400,
)  # fmt: skip


def samples() -> list[dict[str, Any]]:
    random = Random(2)
    return [
        {
            "id": f"q{number}", "query": f"question {number}", "topic": random.choice("ab"),
            "retrieved": [f"d{doc}" for doc in random.sample(range(50), 6)], "gold": [f"d{number}", f"d{number + 1}"],
        }
        for number in range(40)
    ]  # fmt: skip


@cache
def files() -> dict[str, bytes]:
    """The same samples in every format, by the name of the file."""
    rows = samples()
    frame = pl.DataFrame(rows)
    long = frame.select("id", "retrieved").explode("retrieved").rename({"id": "query_id", "retrieved": "doc_id"})
    long = long.with_columns(score=1.0 / (pl.int_range(pl.len()) % 6 + 1))
    cells = {name: pl.Series([json.dumps(row[name]) for row in rows]) for name in ("retrieved", "gold")}
    csv = frame.with_columns(**cells)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    found = {"rows.jsonl": lines.encode(), "rows.json": json.dumps(rows).encode(), "rows.csv": csv.write_csv().encode()}
    with TemporaryDirectory() as folder:
        path = Path(folder)
        frame.write_parquet(path / "rows.parquet")
        frame.write_parquet(path / "plain.parquet", compression="snappy", row_group_size=7, data_page_size=50)
        frame.write_ipc(path / "rows.arrow")
        frame.write_ipc(path / "packed.feather", compression="zstd")
        frame.write_ipc(path / "lz4.ipc", compression="lz4")
        long.write_parquet(path / "long.parquet")
        long.write_ipc(path / "long.arrow")
        long.write_csv(path / "long.csv")
        found |= {file.name: file.read_bytes() for file in path.iterdir()}
    trec = "".join(f"{q} Q0 {doc} 1 {score} tag\n" for q, doc, score in long.iter_rows())
    found["long.run"] = trec.encode()
    for name in ("rows.jsonl", "rows.csv", "long.csv", "long.run"):
        found[f"{name}.gz"] = gzip.compress(found[name])
        found[f"{name}.zst"] = _zstd(found[name])
    return found


def _zstd(content: bytes) -> bytes:
    """The content compressed with zstd, by Polars."""
    file = BytesIO()
    pl.LazyFrame({"text": [content.decode()]}).sink_csv(
        file, include_header=False, quote_style="never", compression="zstd"
    )
    return file.getvalue()


def odd_lines(random: Random) -> bytes:
    """JSON lines with a value that no sample has, or nested too deeply."""
    if random.random() < 0.3:
        return random.choice(DEEP).encode()
    rows: list[Any] = samples()
    for _ in range(random.choice((1, 1, 3))):
        row, name = random.choice(rows), random.choice(("id", "query", "retrieved", "gold", "topic", "answer"))
        value = random.choice(ODD)
        if isinstance(row.get(name), list) and random.random() < 0.5:
            value = [*row[name], value]
        row[name] = value
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@fuzzer("sample files", "A damaged sample file is evaluated or refused with a sentence.", short=60, long=5_000)
def sample_files(random: Random, folder: Path) -> str:
    if random.random() < 0.15:
        name, content = random.choice(("odd.jsonl", "odd.json")), odd_lines(random)
    else:
        name = random.choice(list(files()))
        content = damaged(random, files()[name])
        if random.random() < 0.3:
            content = damaged(random, content) if content else content
    (folder / name).write_bytes(content)
    (folder / "qrels.jsonl").write_bytes(files()["rows.jsonl"])
    gold = ["--gold", "qrels.jsonl"] if name.startswith("long") else []
    more = random.choice(([], [], [], ["--memory", "300MB"], [] if gold else ["--skip-bad-rows"]))
    with bounded_memory(), no_traces():
        result = command("eval", name, "recall@5", *gold, *more, "-o", "run.parquet")
    if result.code == 2 and not result.err.startswith("karat: "):
        raise Fault(f"{name}: exit code 2 without a sentence\n{result.err}")
    if result.code == 0 and not (folder / "run.parquet").exists():
        raise Fault(f"{name}: evaluated, but there is no run file")
    if result.code not in {0, 2}:
        raise Fault(f"{name}: exit code {result.code}\n{result.err}")
    return {0: "evaluated", 2: "refused"}[result.code]
