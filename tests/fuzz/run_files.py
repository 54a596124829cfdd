"""Run files that were damaged, or written by other programs with other columns, values and metadata."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import karat
from fuzz.frame import Fault, command, fuzzer
from support.damage import bounded_memory, damaged, no_traces

FIXTURES = Path(__file__).parents[1] / "fixtures"
NUMBERS = (0, 1, -1, 2, 5.0, 0.5, -5, 1e300, -1e300, float("inf"), float("-inf"), float("nan"), None, 10**9, 2**31)
VALUES = (
    None, True, False, 0, 1, -1, 7.5, 1e300, 10**30, 2**63, 10**9, "", "x", "nan", "standard", "ids", "recall@5",
    "a" * 500, "\x1b[31m::error::", "f(beta=-1)@5", "recall@99999999", [], {}, [None], ["x"], {"x": 1},
    {"kind": "order_kept"}, [[[]]], "score", "listed", {"kind": "nothing_matched", "count": -5}, "spans(coverage=0.5)",
)  # fmt: skip
TYPES = (pl.String, pl.Int8, pl.Int64, pl.Float32, pl.Float64, pl.Boolean, pl.Binary, pl.Date, pl.Categorical)
LABELS = "query_id,gold,label\n1,d3,1\n2,d4,0\n3,d5,1\n"


class Saved(NamedTuple):
    """A run file: its columns, metadata and bytes."""

    frame: pl.DataFrame
    about: str
    content: bytes


@cache
def saved_runs() -> list[Saved]:
    """Runs of several judges and conventions, and those that older versions saved."""
    random, samples = Random(1), list[dict[str, Any]]()
    for number in range(12):
        docs = random.sample(range(60), 8)
        items = [
            {"id": f"d{doc}", "text": f"document {doc} on topic {doc % 5}. It is short.", "score": 1 / rank}
            for rank, doc in enumerate(docs, 1)
        ]
        gold = [{"id": f"d{doc}", "text": f"document {doc} on topic {doc % 5}."} for doc in (*docs[2:4], 99)]
        own = {"query": f"what is {number}?", "answer": "Document 3 is short.", "topic": random.choice("ab")}
        samples.append({"retrieved": items, "gold": gold, **own})
    lists = [[item["id"] for item in one["retrieved"]] for one in samples]
    scored = [{item["id"]: item["score"] for item in one["retrieved"]} for one in samples]
    grades = [{item["id"]: n for n, item in enumerate(one["gold"], 1)} for one in samples]
    runs = [
        karat.evaluate(samples, "recall@1,5 ndcg@10 precision@5 rr", judge="ids"),
        karat.evaluate(samples, "recall@2,20t span_recall@3 ap", judge="spans"),
        karat.evaluate(samples, "recall@5 context_precision@5", judge="claims(lexical)"),
        karat.evaluate(retrieved=lists, gold=grades, metrics="recall@5 ap ndcg f1@3", convention="llamaindex"),
        karat.evaluate(retrieved=scored, gold=grades, metrics="ndcg@5 ndcg recall@5", convention="sklearn"),
    ]
    with TemporaryDirectory() as folder:
        for number, run in enumerate(runs):
            run.save(Path(folder) / f"{number}.parquet")
        files = [*sorted(Path(folder).iterdir()), *sorted(FIXTURES.glob("*.parquet"))]
        return [
            Saved(pl.read_parquet(file), pl.read_parquet_metadata(file)["karat"], file.read_bytes()) for file in files
        ]


@cache
def passed() -> dict[str, str]:
    """The files of a gate that passed."""
    with TemporaryDirectory() as folder:
        run, files = Path(folder) / "run.parquet", [Path(folder) / name for name in ("gate.md", "gate.xml")]
        run.write_bytes(saved_runs()[0].content)
        result = command("gate", run, "recall@5 >= 0.1", "--markdown", files[0], "--junit", files[1])
        assert result.code == 0
        return {file.name: file.read_text("utf-8") for file in files}


def written(frame: pl.DataFrame, about: str) -> bytes:
    """A run file as another program writes it."""
    file = BytesIO()
    frame.write_parquet(file, metadata={"karat": about})
    return file.getvalue()


def changed_value(random: Random, value: Any) -> Any:
    """A JSON value with one value somewhere in it replaced, removed or added."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        name, way = random.choice(list(value)), random.random()
        if way < 0.1:
            return {key: own for key, own in value.items() if key != name}
        added = {random.choice(("x", "count", "items", "open", "compares")): random.choice(VALUES)} if way < 0.2 else {}
        return {**value, name: changed_value(random, value[name]), **added}
    if isinstance(value, list) and value and random.random() < 0.7:
        place = random.randrange(len(value))
        return [*value[:place], changed_value(random, value[place]), *value[place + 1 :]]
    return random.choice(VALUES)


def changed_metadata(random: Random, about: str) -> str:
    way = random.random()
    if way < 0.1:
        return random.choice(("", "{}", "[]", "null", "[" * 100_000, '{"a":' * 5000, about[: len(about) // 2], "x"))
    try:
        value = json.loads(about)
    except (ValueError, RecursionError):  # changed before
        return about
    for _ in range(random.choice((1, 1, 2))):
        value = changed_value(random, value)
    return json.dumps(value).replace(f'"{10**30}"', str(10**30))


def changed_numbers(random: Random, values: list[Any]) -> list[Any]:
    """A column with a number somewhere in it, in a list or in a record of it, replaced by another."""
    if not values:
        return values
    place, value = random.randrange(len(values)), random.choice(NUMBERS)
    own = values[place]
    if isinstance(own, list) and own and random.random() < 0.8:
        own = [*own[:-1], own[-1], own[-1]] if random.random() < 0.2 else changed_numbers(random, own)
    elif isinstance(own, dict) and random.random() < 0.9:
        name = random.choice(list(own))
        own = {**own, name: value}
    elif isinstance(own, str):
        own = random.choice(("", "x", values[0] if isinstance(values[0], str) else "y", None))
    else:
        own = value
    return [*values[:place], own, *values[place + 1 :]]


def changed_column(random: Random, frame: pl.DataFrame) -> pl.DataFrame:
    name = random.choice(frame.columns)
    column = frame[name]
    way = random.random()
    if way < 0.6:
        values = changed_numbers(random, column.to_list())
        return frame.with_columns(pl.Series(name, values, dtype=column.dtype, strict=False))
    if way < 0.7:
        return frame.drop(name)
    if way < 0.8:
        return frame.with_columns(column.cast(random.choice(TYPES), strict=False))
    if way < 0.87:
        return frame.with_columns(pl.lit(random.choice((None, 1, "x", 0.5, True))).alias(name))
    if way < 0.94:
        return frame.with_columns(frame[random.choice(frame.columns)].alias(name))
    return frame.with_columns(pl.concat_list(name).alias(random.choice((name, "meta.x", "along.x", "size.x"))))


def changed_rows(random: Random, frame: pl.DataFrame) -> pl.DataFrame:
    ways: tuple[Callable[[], pl.DataFrame], ...] = (
        lambda: frame.head(0),
        lambda: pl.concat([frame, frame.head(1)]),
        lambda: frame.sample(len(frame), with_replacement=True, seed=random.randrange(9999)),
        lambda: frame.with_columns(frame[random.choice(frame.columns)].shuffle(random.randrange(9999))),
        lambda: frame.rename({random.choice(frame.columns): random.choice(("x", "meta.x", "along.tokens", "query"))}),
    )
    return random.choice(ways)()


def changed(random: Random, run: Saved) -> bytes:
    """A valid Parquet file with other columns, values or metadata."""
    frame, about = run.frame, run.about
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        way = random.random()
        try:
            if way < 0.4:
                about = changed_metadata(random, about)
            elif way < 0.85:
                frame = changed_column(random, frame)
            else:
                frame = changed_rows(random, frame)
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            pass  # a change that a Parquet file cannot have
    return written(frame, about)


def arguments(random: Random, bad: str, good: str) -> list[str]:
    """A command that reads the bad file."""
    pair = [bad, good] if random.random() < 0.7 else [good, bad]
    rule = random.choice(("recall@5 >= 0.1", "recall@5 no-drop", "rr >= 0.9", "ndcg@10 no-drop 0.01", "ap lower >= 0"))
    return random.choice(
        [
            ["gate", pair[0], rule, "--baseline", pair[1], "--markdown", "gate.md", "--junit", "gate.xml"],
            ["gate", bad, rule, "--markdown", "gate.md", "--junit", "gate.xml", "--by", "topic"],
            ["compare", *pair, *random.choice(([], ["--allow-mismatch"], ["--by", "topic"]))],
            ["report", bad, "-o", "page.html"],
            ["report", pair[0], "--baseline", pair[1], "--allow-mismatch", "-o", "page.html"],
            ["diagnose", bad, *random.choice(([], ["1"], ["--all"]))],
            ["diagnose", pair[0], "--other", pair[1]],
            ["merge", *pair, "-o", "merged.parquet"],
            ["merge", bad, "-o", "merged.parquet"],
            ["show", bad, "--format", random.choice(("table", "json", "csv", "markdown"))],
            ["calibrate", bad, "labels.csv"],
            ["lint", "samples.jsonl", "--runs", bad],
        ]
    )


@fuzzer("run files", "A run file is loaded and valid, or refused with a sentence.", short=60, long=6_000)
def run_files(random: Random, folder: Path) -> str:
    run = random.choice(saved_runs())
    if random.random() < 0.45:
        content = damaged(random, run.content if random.random() < 0.4 else written(run.frame, run.about))
    else:
        content = changed(random, run)
    (folder / "bad.parquet").write_bytes(content)
    (folder / "good.parquet").write_bytes(run.content)
    (folder / "labels.csv").write_text(LABELS, "utf-8")
    (folder / "samples.jsonl").write_text('{"id": "1", "query": "q", "retrieved": ["d3"], "gold": ["d3"]}\n', "utf-8")
    for name, text in passed().items():
        (folder / name).write_text(text, "utf-8")
    chosen = arguments(random, "bad.parquet", "good.parquet")
    with bounded_memory(), no_traces():
        loaded = _load(folder / "bad.parquet")
        result = command(*chosen)
    if loaded is None and result.code != 2:
        raise Fault(f"{chosen}: exit code {result.code}, but the file cannot be loaded\n{result.err}")
    if loaded is None and "bad.parquet" not in result.err.replace("\n       ", "") and "metric" not in result.err:
        raise Fault(f"{chosen}: the message does not name the file\n{result.err}")
    if result.code == 2 and not result.err.startswith("karat: ") and "undecided" not in result.out:
        raise Fault(f"{chosen}: exit code 2 without a sentence: {result.err}")
    if result.code == 2 and chosen[0] == "gate":
        for name, text in passed().items():
            if (folder / name).exists() and (folder / name).read_text("utf-8") == text:
                raise Fault(f"{chosen}: {name} still says that the gate passed")
    return "refused" if loaded is None else "loaded"


def _load(path: Path) -> karat.Run | None:
    """The run, if it can be loaded; what it contains is then true of every run."""
    try:
        run = karat.load(path)
    except karat.RunFileError:
        return None
    hits = run.all_hits
    hits.check()
    assert len(set(run.ids)) == len(run)
    assert all(len(values) == len(run) and not np.isinf(values).any() for values in run.scores.values())
    assert (hits.depth >= 0).all()
    if run.ids:
        run.items(run.ids[0])
    return run
