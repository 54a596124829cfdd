"""`karat eval --memory`: the same output, whether a file is read whole or in pieces."""

from __future__ import annotations

import polars as pl

from karat.cli import main
from karat.scale.memory import MemoryLimits

RUN = pl.DataFrame({"query_id": [f"q{i % 20}" for i in range(400)], "doc_id": [f"d{i}" for i in range(400)]})
RUN = RUN.with_columns(score=pl.int_range(pl.len(), dtype=pl.Int64) % 7)
GOLD = RUN.filter(pl.int_range(pl.len()) % 9 == 0).select("query_id", "doc_id")


def test_the_command(tmp_path, capsys, monkeypatch, tiny):
    of = MemoryLimits.of
    monkeypatch.setattr(
        MemoryLimits, "of", lambda memory: tiny._replace(total=30_000) if memory == "256MiB" else of(memory)
    )
    RUN.write_parquet(tmp_path / "run.parquet")
    GOLD.write_parquet(tmp_path / "gold.parquet")
    command = ["eval", str(tmp_path / "run.parquet"), "recall@5 rr", "--gold", str(tmp_path / "gold.parquet")]
    said, runs = [], []
    for memory in ("1GiB", "256MiB"):
        assert main([*command, "--memory", memory, "-o", str(tmp_path / f"{memory}.parquet")]) == 0
        said.append(capsys.readouterr().out.replace(memory, "…"))
        runs.append(pl.read_parquet(tmp_path / f"{memory}.parquet"))
    assert said[0] == said[1]
    same = [name for name in runs[0].columns if name != "gold_items"]  # which say in small files what was seen anywhere
    assert runs[0].select(same).equals(runs[1].select(same))


def test_memory_must_be_a_number_of_bytes(tmp_path, capsys):
    RUN.write_parquet(tmp_path / "run.parquet")
    assert main(["eval", str(tmp_path / "run.parquet"), "--gold", "gold.parquet", "--memory", "much"]) == 2
    assert "memory must be a number of bytes" in capsys.readouterr().err
