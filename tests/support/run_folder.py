"""A folder of run files in subfolders: with texts, steps, spans, repeats; hostile, damaged and foreign ones."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

import karat
from karat.cli.demo import screen
from karat.metrics.registry import METRICS
from karat.samples.notes import Note
from support import example, hostile
from support.two_hops import TWO_HOPS

HOSTILE = 'evil/"><img src=x onerror="window.__pwned=1">.parquet'
_FIRST = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def write(folder):
    """Write the runs, the hostile ones, and the files that are no runs; return their paths by name."""
    runs = {**_help_centre(), **_demo(), **_others(), **_own_metrics()}
    paths = _save(folder, {**runs, HOSTILE: hostile.run(), "evil/other.parquet": _hostile()})
    paths["broken/damaged.parquet"] = damaged = Path(folder, "broken", "damaged.parquet")
    damaged.parent.mkdir()
    whole = paths["help-centre/bm25.parquet"].read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2] + b"PAR1")
    paths["broken/foreign.parquet"] = damaged.with_name("foreign.parquet")
    pl.DataFrame({"town": ["Prague"], "river": ["Vltava"]}).write_parquet(paths["broken/foreign.parquet"])
    return paths


def write_history(folder):
    """Write only the runs of one test set, as a team that works on it would name them."""
    runs = {name.removeprefix("help-centre/"): run for name, run in _help_centre().items()}
    for run in runs.values():
        run.provenance = replace(run.provenance, source="help-centre.jsonl")
    return _save(folder, runs)


def _save(folder, runs):
    """Save runs a day after one another; return their paths by name."""
    paths = {}
    for number, (name, run) in enumerate(runs.items()):
        path = paths[name] = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        run.save(path)
        saved = (_FIRST + timedelta(hours=29 * number)).timestamp()
        os.utime(path, (saved, saved))
    return paths


def _help_centre():
    """The same questions and gold: a worse retriever, then better and better ones."""
    first, rows = example.help_centre("first-words"), example.help_centre()
    made = {"help-centre/first-words.parquet": first}
    for depth in (2, 3, 5):
        made[f"help-centre/nightly/depth-{depth}.parquet"] = [
            {**row, "retrieved": row["retrieved"][:depth]} for row in rows
        ]
    made["help-centre/bm25.parquet"] = rows
    made["help-centre/reranked.parquet"] = [{**row, "retrieved": _gold_up(row)} for row in rows]
    judge = "contains(gold_in_chunk)"
    return {name: karat.evaluate(given, example.METRICS, judge=judge) for name, given in made.items()}


def _gold_up(row):
    """The ranking of a reranker that mostly helps: a chunk with a gold quote moves up, for a few queries down."""
    quotes = [gold["text"] for gold in row["gold"]]
    step = -4 if int(row["id"][1:]) % 10 == 0 else 7
    places = [
        (rank - (step if any(quote in item["text"] for quote in quotes) else 0), rank)
        for rank, item in enumerate(row["retrieved"])
    ]
    return [row["retrieved"][rank] for _, rank in sorted(places)]


def _hostile():
    """The hostile queries with other rankings; what the provenance says is hostile as well."""
    rows = [{**row, "retrieved": row["retrieved"][::-1]} for row in hostile.samples()]
    run = karat.evaluate(rows, "recall@1,2 rr", judge="contains(gold_in_chunk)")
    bad = hostile.PAYLOADS[4]
    run.provenance = replace(
        run.provenance,
        source=bad,
        judge=bad,
        judge_reason=bad,
        karat=bad,
        settings={bad: bad},
        notes=(Note.of_text(bad),),
    )
    return run


def _demo():
    return {f"karat-demo/{name}.parquet": run for name, run in screen.runs().items()}


def _others():
    """Runs with steps, with spans, with repeats, and with queries that have no answer."""
    spans = [
        {
            "id": f"s{i}",
            "query": f"where is part {i}?",
            "retrieved": [
                {"doc": "guide", "start": 100 * j, "end": 100 * j + 80, "text": f"Part {j}. " * 8} for j in (i, 7, 9)
            ],
            "gold": [{"doc": "guide", "start": 100 * (i + i % 2) + 10, "end": 100 * (i + i % 2) + 60}],
            "language": ["cs", "de"][i % 2],
        }
        for i in range(12)
    ]
    repeats = [
        {
            "id": f"r{i}",
            "query": f"repeated {i}?",
            "repeat": n,
            "retrieved": ["a", "b"][:: 1 - 2 * (i * n % 2)],
            "gold": ["a"],
        }
        for i in range(10)
        for n in (1, 2, 3)
    ]
    gold = [{"id": "a", "grade": 2, "aspects": ["price"]}, {"id": "b", "aspects": ["terms", "price"]}]
    answers = [
        {
            "id": f"n{i}",
            "query": f"answered {i}?",
            "retrieved": [{"id": one, "score": 0.9 - 0.01 * i} for one in ["a", "x", "b", "y", "z"][i % 3 :]],
            **({"gold": gold} if i % 5 else {"answerable": False}),
        }
        for i in range(20)
    ]
    metrics = "recall@5 false_alarm(threshold=0.8)@5 iprec@0,0.25,0.5,0.75,1 st_recall@5"
    return {
        "steps/two-hops.parquet": karat.evaluate(TWO_HOPS, "recall@5 rr", merge="interleave"),
        "spans.parquet": karat.evaluate(spans, "recall@1,3 rr span_precision@3 span_recall@3", judge="spans"),
        "repeats.parquet": karat.evaluate(repeats, "recall@1 rr"),
        "no-answer.parquet": karat.evaluate(answers, metrics),
    }


def _own_metrics():
    """Two runs with metrics of their own, which are not from 0 to 1, as a process that does not know them sees them."""

    @karat.metric
    def gain_points(hits, k, c):
        return 250.0 * hits.found(k, c) - 40.0 * hits.gold_count()

    @karat.metric(more_is_better=False)
    def cost_in_cents(hits, k, c):
        return 12_000.0 - 1_234.5678 * hits.found(k, c)

    kinds = ["billing", "sharing", "a very long topic that has no end " * 4]
    rows = [
        {
            "id": f"p{i}",
            "query": f"which of {i}?",
            "retrieved": [f"d{(i * step + j) % 12}" for j in range(12)],
            "gold": ["d1", "d2", f"d{i % 12}"][: 1 + i % 3],
            "topic": kinds[i % 3],
            "latency": float(200 + 17 * i % 300),
        }
        for step in (5, 7)
        for i in range(30)
    ]
    try:
        return {
            f"own-metrics/{name}.parquet": karat.evaluate(own, "gain_points@5 cost_in_cents@5 recall@5 rr")
            for name, own in (("cheap", rows[:30]), ("dear", rows[30:]))
        }
    finally:
        for name in ("gain_points", "cost_in_cents"):
            del METRICS[name]
