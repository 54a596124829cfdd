"""Run files of the same samples, evaluated at once and in batches of any size."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import karat
from fuzz.frame import Fault, fuzzer
from karat.judges.tokens import words
from karat.plan import Plan
from karat.samples import read_samples
from karat.scale.processes import merge_batches

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta"]
JUDGES = ["text", "contains", "fuzzy(0.7)", "spans", "exact", "ids"]
METRICS = ["recall@1,3 ndcg@5 rr", "precision@2 ap", "recall@4t"]


def samples(random: Random) -> list[dict[str, Any]]:
    """Uneven samples: empty lists, fields that only some rows have, values of several types, a misspelt field."""
    rows, scored, named = [], random.random() < 0.5, random.random() < 0.7
    for number in range(random.choice([5, 20, 60])):
        texts = [" ".join(random.choices(WORDS, k=random.randint(1, 6))) for _ in range(random.randint(0, 6))]
        gold = [random.choice([*texts, " ".join(random.choices(WORDS, k=3))]) for _ in range(random.randint(0, 3))]
        row: dict[str, Any] = {
            "query": f"{random.choice(WORDS)} {number}",
            "retrieved": [{"id": f"c{n}", "text": text, "doc": f"d{n % 2}"} for n, text in enumerate(texts)],
            "gold": [{"id": f"c{n}", "text": text, "grade": random.choice([0, 1, 2])} for n, text in enumerate(gold)],
            "topic": random.choice(["a", "b", None, 1, 2.5, ["x"], True]),
        }
        if scored:
            row["retrieved"] = [{**item, "score": random.random()} for item in row["retrieved"]]
        row |= {"id": f"q{number}"} if named else {}
        row |= {name: random.choice(["e", 5, None]) for name in ("extra", "answr") if random.random() < 0.1}
        rows.append(row)
    return rows


@fuzzer(
    "run bytes", "A run file has the same bytes for any batches of queries, as of worker processes.", short=8, long=1500
)
def run_bytes(random: Random, folder: Path) -> str:
    """Evaluate a file at once, and in batches, as worker processes do."""
    Path("samples.jsonl").write_text("\n".join(map(json.dumps, samples(random))))
    judge, metrics = random.choice(JUDGES), random.choice(METRICS)
    data = read_samples("samples.jsonl")
    plan = Plan.of(metrics, judge, "standard", at="item", tokens=words, order=None, samples=None).with_judge_for(data)
    sizes = [len(data), *random.sample(range(1, len(data)), 2)]
    batches = [[data.slice(first, first + size) for first in range(0, len(data), size)] for size in sizes]
    whole = _bytes(plan.evaluate_all(data))
    if any(_bytes(merge_batches(plan, data, map(plan.evaluate, some))) != whole for some in batches):
        raise Fault(f"other bytes in batches, judge {judge}, metrics {metrics}")
    return f"equal, {judge}"


def _bytes(run: karat.Run) -> bytes:
    run.save("run.parquet")
    return Path("run.parquet").read_bytes()
