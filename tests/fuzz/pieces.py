"""Files read in pieces: the same ids, scores and gold as in memory, or a refusal by both."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

import karat
from fuzz.frame import Fault, fuzzer
from karat.scale.memory import MemoryLimits

METRICS = "recall@1,3 rr ndcg@3"
DOCS = ("a", "b", "c", "文", "e\u0301", "1", "2", "10")
Row = dict[str, Any]


def _ids(random: Random, size: int) -> list[Any]:
    """Query ids, some of which look like row numbers, some given twice, some missing."""
    first = random.choice((1, 1, 2, 5001, 10**18))
    kinds: dict[str, list[Any]] = {
        "none": [None] * size,
        "numbers": [first + number for number in range(size)],
        "texts of numbers": [str(first + number) for number in range(size)],
        "numbers from 1 again": [number % random.randrange(2, 9) + 1 for number in range(size)],
        "later from 1": [*range(5001, 5001 + size // 2), *range(1, size - size // 2 + 1)],
        "floats": [float(first + number) for number in range(size)],
        "words": [f"q-{number}" for number in range(size)],
        "other letters": [f"文{number}é" for number in range(size)],
        "zeros": [f"{number:04d}" for number in range(1, size + 1)],
    }
    ids = kinds[random.choice(list(kinds))]
    if random.random() < 0.3:
        random.shuffle(ids)
    if random.random() < 0.15:
        ids[random.randrange(size)] = random.choice([None, *ids])
    if random.random() < 0.1:  # none from some row on, or before it
        at = random.randrange(size)
        ids[at:] = [None] * (size - at)
        ids = ids if random.random() < 0.5 else ids[::-1]
    return ids


def _ranking(random: Random, form: str) -> Any:
    items = random.choices(DOCS, k=random.randrange(5))
    if form == "dicts":
        return {item: random.choice((0.5, 1.0, 2.0)) for item in items}
    if form == "records":
        return [{"id": item} for item in items]
    if form == "scored records":
        return [{"id": item, "score": random.choice((0.5, 1.0))} for item in items]
    return items


def _samples(random: Random, size: int) -> list[Row]:
    forms = random.choice(
        (["strings"], ["strings"], ["dicts"], ["records"], ["scored records"], ["records", "strings"])
    )
    graded, texts = random.random() < 0.2, random.random() < 0.5
    rows: list[Row] = []
    for number, query in enumerate(_ids(random, size)):
        row: Row = {} if query is None else {random.choice(("id",)): query}
        if texts:
            row["query"] = f"text {number if random.random() < 0.95 else 0}"
        form = forms[0] if len(forms) == 1 or random.random() < 0.9 else forms[1]
        row["retrieved"] = _ranking(random, form)
        gold = random.sample(DOCS, random.randrange(1, 3))
        row["gold"] = {item: random.randrange(3) for item in gold} if graded else gold
        if random.random() < 0.5:
            row["topic"] = random.choice(("x", "y", 3))
        rows.append(row)
    if random.random() < 0.1:
        row = random.choice(rows)
        row["query_id" if random.random() < 0.5 else "reference_contexts"] = "1"
    if random.random() < 0.1:
        del random.choice(rows)[random.choice(("retrieved", "gold"))]
    return rows


def _write_rows(random: Random, folder: Path, rows: list[Row]) -> Path:
    """The rows as JSONL, or as Parquet if they fit into a table."""
    if random.random() < 0.4:
        try:
            frame = pl.DataFrame(rows, infer_schema_length=None, strict=True)
            frame.write_parquet(folder / "samples.parquet", row_group_size=random.randrange(1, 20))
        except (pl.exceptions.PolarsError, TypeError):  # also a column of empty dicts
            pass
        else:
            return folder / "samples.parquet"
    path = folder / "samples.jsonl"
    lines = [json.dumps(row, ensure_ascii=random.random() < 0.5) for row in rows]
    if random.random() < 0.1:
        lines.insert(random.randrange(len(lines)), random.choice(("", "{", "[]", "null")))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _long(random: Random, folder: Path, size: int) -> tuple[Path, Any]:
    """A long table of results, and gold by query id or as a table."""
    ids = [query for query in _ids(random, size) if query is not None] or ["q"]
    rows = [
        {"query_id": query, "doc_id": random.choice(DOCS), "score": random.choice((0.5, 1.0, 2.0))}
        for query in ids
        for _ in range(random.randrange(1, 4))
    ]
    if random.random() < 0.3:
        random.shuffle(rows)
    if random.random() < 0.1:
        del random.choice(rows)[random.choice(("query_id", "doc_id", "score"))]
    if random.random() < 0.15:
        random.choice(rows)["text"] = "words"
    kind = random.choice(("jsonl", "csv", "parquet"))
    path = folder / f"results.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
        frame.write_csv(path) if kind == "csv" else frame.write_parquet(path, row_group_size=random.randrange(1, 20))
    gold = {query: random.sample(DOCS, random.randrange(1, 3)) for query in random.sample(ids, max(len(ids) // 2, 1))}
    return path, gold | {"nowhere": ["a"]}


def _facts(run: karat.Run) -> dict[str, Any]:
    """What must not depend on the size of the pieces."""
    p = run.provenance
    stored = run.stored_items
    return {
        "ids": list(run.ids),
        "scores": run.table.to_dict(as_series=False),
        "gold": run.gold_hash,
        "query": run.query,
        "topic": any(run.meta.get("topic", [])) and run.meta["topic"],
        "counts": (p.missing, p.extra, p.skipped),
        "retrieved": stored
        and [[(item.id, item.text) for item in stored.items(row).retrieved] for row in range(len(run))],
    }


def _evaluated(source: Path, **options: Any) -> karat.Run | str:
    try:
        return karat.evaluate(source, METRICS, **options)
    except karat.KaratError as error:
        if not error.problem:
            raise Fault("no sentence") from error
        return error.problem


@fuzzer(
    "pieces",
    "A file read in pieces has the ids, scores and gold of the same file in memory, or both are refused.",
    short=60,
    long=3_000,
)
def pieces(random: Random, folder: Path) -> str:
    size = random.randrange(2, 40)
    options: dict[str, Any] = {"judge": random.choice(("ids", "ids", "text"))}
    late = None  # the refusal in pieces of a column that comes late, which is known in memory only
    if random.random() < 0.35:
        source, options["gold"] = _long(random, folder, size)
        late = "some rows have other columns than the first ones" if source.suffix == ".jsonl" else None
    else:
        rows = _samples(random, size)
        if random.random() < 0.3:
            gold = [{key: row[key] for key in ("id", "query", "gold") if key in row} for row in rows]
            options["gold"] = gold if random.random() < 0.7 else gold[::-1]
            rows = [{key: value for key, value in row.items() if key != "gold"} for row in rows]
        else:
            options["skip_bad_rows"] = random.random() < 0.3
            named = [bool({"id", "query_id"} & row.keys()) for row in rows]
            if options["skip_bad_rows"] and any(named) and not named[0]:
                late = 'the first samples have no "id", others have one'
                options["judge"] = "ids"  # another could refuse the first rows, which are skipped in memory, before
                # So could rows that mix two forms of items.
        source = _write_rows(random, folder, rows)
    whole = _evaluated(source, **options)
    limits = MemoryLimits(random.choice((1, 2_000, 20_000)), fewest_rows=random.randrange(1, 9), item_bytes=0)
    jobs = 2 if random.random() < 0.02 else 1
    split = _evaluated(source, memory=limits, jobs=jobs, **options)
    if isinstance(whole, str) or isinstance(split, str):
        mixed = late is not None and options.get("skip_bad_rows") and "retrieved mixes" in split
        if type(whole) is not type(split) and split != f"{source}: {late}" and not mixed:
            raise Fault(f"in memory {whole if isinstance(whole, str) else 'accepted'}, in pieces {split!s}\n{options}")
        return "refused"
    one, other = _facts(whole), _facts(split)
    for name, value in one.items():
        if str(value) != str(other[name]):
            raise Fault(f"{name}: {value} in memory, {other[name]} in pieces\n{options}")
    return "equal"
