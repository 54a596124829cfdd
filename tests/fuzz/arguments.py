"""Random arguments on the command line."""

from __future__ import annotations

from pathlib import Path
from random import Random

from fuzz.frame import Fault, command, fuzzer

COMMANDS = (
    "eval",
    "compare",
    "gate",
    "diagnose",
    "report",
    "lint",
    "calibrate",
    "merge",
    "rosetta",
    "cache",
    "init",
    "",
)
OPTIONS = (
    "-o", "-k", "--gold", "--metrics", "--judge", "--convention", "--by", "--format", "--memory", "--jobs", "--order",
    "--markdown", "--rule", "--must-pass", "--baseline", "--test", "--help", "--version", "--no-such-option", "--",
)  # fmt: skip
VALUES = (
    "a.jsonl", "missing.parquet", "", "-", ".", "\0", "\udcff", "::error::x", "-1", "0", "1e999", "9" * 400, "nan",
    "recall@5", "recall@-5", "recall@" + "9" * 30, "ndcg@(", "ids", "text(", "standard(ties=", "\x1b[31m", "=1+1",
    "é" * 300,
)  # fmt: skip
SAMPLE = '{"query": "q", "retrieved": ["a", "b"], "gold": ["b"]}\n'


@fuzzer("arguments", "Any arguments give a result or a sentence, never a traceback.", short=150, long=5_000)
def arguments(random: Random, folder: Path) -> str:
    (folder / "a.jsonl").write_text(SAMPLE, "utf-8")
    chosen = [random.choice(COMMANDS), *random.choices(OPTIONS + VALUES, k=random.randrange(6))]
    result = command(*chosen)
    if result.code == 2 and not result.err.strip():
        raise Fault(f"exit code 2 without a word: {chosen}")
    return {0: "done", 1: "failed check"}.get(result.code, "refused")
