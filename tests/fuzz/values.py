"""Odd values in every place of a sample: Python objects for `karat.evaluate`, JSON and table cells for `karat eval`."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl

import karat
from fuzz.frame import Fault, command, fuzzer
from karat._internal.writers import to_json

JUDGES = ["auto", "ids", "exact", "text", "contains", "fuzzy", "spans", "claims(lexical)"]
METRICS = ["recall@1,2", "rr", "ndcg@2 ap", "precision@1", "recall@5t"]
FORMS = ["table", "json", "csv", "markdown"]


class Topic(Enum):
    """An enumeration, as a field may hold one."""

    BILLING = "billing"
    NUMBER = 1


class Level(IntEnum):
    """An enumeration of integers."""

    LOW = 0
    HIGH = 2


class Rude:
    """An object of which every representation fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no representation")

    __hash__ = None  # type: ignore[assignment]


def nested(depth: int, leaf: Any, kind: str = "list") -> Any:
    """A value inside many lists or dicts."""
    for _ in range(depth):
        leaf = [leaf] if kind == "list" else {"a": leaf}
    return leaf


PLAIN: list[Callable[[Random], Any]] = [
    lambda r: None,
    lambda r: r.choice([True, False]),
    lambda r: r.choice([0, 1, -1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 10**5000]),
    lambda r: r.choice([0.5, -0.0, 1.5, 1e308, 5e-324]),
    lambda r: float(r.choice(["nan", "inf", "-inf"])),
    lambda r: r.choice(["", " ", "a", "b", "1", "1.0", "true", "NaN", "null", "[]", '["a"]', '{"a": 1}', "a" * 5000]),
    lambda r: r.choice(["\ud800", "a\udfff", "\0", "\u202e", "=1+1", "::error::", "[[[[", "9" * 400, "1e999", "\r\n"]),
    lambda r: [value(r, PLAIN) for _ in range(r.randint(0, 3))],
    lambda r: {r.choice(["a", "", "\ud800", "id"]): value(r, PLAIN) for _ in range(r.randint(0, 3))},
    lambda r: {r.choice(["id", "text", "doc", "score", "start", "end", "grade"]): value(r, PLAIN) for _ in range(2)},
    lambda r: nested(r.choice([3, 20, 200, 900, 1100]), value(r, PLAIN[:5]), r.choice(["list", "dict"])),
    lambda r: "[" * (depth := r.choice([5, 500, 5000, 100_000])) + "]" * depth,
    lambda r: {"a": float("nan"), "b": nested(r.choice([5, 300, 1500]), None)},
]
"""Values that JSON has, and a little more."""
SHALLOW = [*PLAIN[:7], lambda r: {"a": value(r, PLAIN[:7])}, lambda r: [value(r, PLAIN[:7])]]
"""Those that Polars can store in a file: it takes exponential time for deep nesting."""
OBJECTS: list[Callable[[Random], Any]] = [
    lambda r: r.choice([b"", b"abc", b"\xff", bytearray(b"x"), memoryview(b"y")]),
    lambda r: r.choice([Decimal("1.5"), Decimal("NaN"), Decimal("1e400"), Fraction(1, 3), 1j, complex("nan")]),
    lambda r: r.choice([dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.date(1, 1, 1), dt.timedelta(1), UUID(int=5)]),
    lambda r: r.choice([Topic.BILLING, Topic.NUMBER, Level.LOW, Level.HIGH]),
    lambda r: r.choice([{1}, frozenset({"a"}), {"a", "b"}, range(2), (1, 2), ("a", 0.5), ()]),
    lambda r: r.choice([np.int64(1), np.float32(0.5), np.str_("a"), np.bool_(1), np.float64("nan")]),
    lambda r: r.choice([np.datetime64("NaT"), np.datetime64(1, "s"), np.void(b"x"), np.complex64(1)]),
    lambda r: r.choice([np.array(["a", "b"]), np.array(1), np.zeros((2, 2)), np.array([None, "a"], object)]),
    lambda r: r.choice([pl.Series(["a", "b"]), pl.DataFrame({"a": [1]}), pl.Series([{"a": 1}])]),
    lambda r: r.choice([Rude(), object(), len, str, SimpleNamespace(id="a"), Ellipsis, NotImplemented, Path("a")]),
    lambda r: (item for item in ["a", "b"]),
    lambda r: {r.choice([1, None, 0.5, ("a",), Topic.NUMBER, b"x", "\ud800"]): value(r, PLAIN)},
]
"""Values that only Python has."""


def value(random: Random, kinds: list[Callable[[Random], Any]]) -> Any:
    """A random value of these kinds."""
    return random.choice(kinds)(random)


def row(random: Random, number: int, kinds: list[Callable[[Random], Any]]) -> Any:
    """A sample with an odd value in one of its places, or in none."""
    item: Any = {"id": f"d{number}", "text": f"text {number}", "score": 0.5, "doc": "d", "start": 0, "end": 5}
    gold: Any = {"id": f"d{number}", "text": f"text {number}", "grade": 1, "doc": "d", "start": 0, "end": 5}
    sample: Any = {"id": f"q{number}", "query": f"query {number}", "answer": f"Text {number}.", "topic": "t"}
    odd = value(random, kinds) if kinds else None
    place = random.randrange(9) if kinds else -1
    if place in {0, 1}:
        chosen = item if place == 0 else gold
        chosen[random.choice([*chosen, "other"])] = odd
    kept: list[Any] = [item, {**item, "id": "other", "text": "other"}] if place != 2 else [item, odd]
    right: list[Any] = [gold] if place != 3 else [gold, odd]
    sample |= {"retrieved": kept if place != 4 else odd, "gold": right if place != 5 else odd}
    if place in {6, 8}:
        sample[random.choice(["id", "query", "answer", "topic", "field"])] = odd
    return odd if place == 7 else sample


def samples(random: Random, kinds: list[Callable[[Random], Any]]) -> list[Any]:
    """A few samples, one to all of them odd."""
    odd = [random.random() < 0.5 for _ in range(random.randint(1, 4))]
    return [row(random, number, kinds if is_odd else []) for number, is_odd in enumerate(odd)]


@fuzzer("values", "Any object in any place of a sample gives a result or an error of karat.", short=80, long=15_000)
def values(random: Random, folder: Path) -> str:
    """Evaluate samples with odd Python objects; print, group, save and load what was evaluated."""
    given: Any = samples(random, [*PLAIN, *OBJECTS])
    if random.random() < 0.1:
        given = value(random, [*PLAIN, *OBJECTS])
    settings = {"judge": random.choice(JUDGES), "metrics": random.choice(METRICS)}
    try:
        run = karat.evaluate(given, **settings)
    except karat.KaratError as error:
        return _refused(error)
    for form in (str, lambda run: to_json(run.to_dict()), karat.Run.to_markdown, karat.Run.remarks, len):
        form(run)
    try:
        for field in run.meta:
            str(run.by(field))
            run.by(field).table  # noqa: B018
        str(karat.diagnose(run))
    except karat.KaratError as error:
        _refused(error)
    try:
        run.save("run.parquet")
    except karat.KaratError as error:
        _refused(error)
        return "evaluated, not saved"
    if karat.load("run.parquet").mean != run.mean and not any(math.isnan(mean) for mean in run.mean.values()):
        raise Fault("a saved run has other means")
    return "evaluated"


def _refused(error: karat.KaratError) -> str:
    if not all(line.isprintable() for line in str(error).split("\n")):
        raise Fault(f"an error with invisible characters: {error!s:.500}") from error
    return "refused"


def cell(value: Any) -> Any:
    """A value as a cell of a CSV file."""
    try:
        return value if isinstance(value, str) else json.dumps(value)
    except (RecursionError, ValueError):
        return "[" * 3000 + "]" * 3000


def write(random: Random, rows: list[Any]) -> str:
    """Write samples to a file of a random format; the name of the file."""
    kind = random.choice(["jsonl", "json", "csv", "parquet", "long.jsonl"])
    path = Path(f"samples.{kind}")
    records = [one for one in rows if isinstance(one, dict)] or [{"retrieved": ["a"], "gold": ["a"]}]
    if kind == "csv":
        names = list(dict.fromkeys(name for one in records for name in one))
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([names, *([cell(one.get(name)) for name in names] for one in records)])
        return path.name
    if kind == "parquet":
        scores = [value(random, SHALLOW), value(random, SHALLOW)]
        try:
            columns = {"query_id": ["q"] * 2, "doc_id": ["a", "b"], "score": scores}
            records = [one for one in samples(random, SHALLOW) if isinstance(one, dict)]
            frame = pl.DataFrame(columns if random.random() < 0.5 else records, strict=False)
            frame.write_parquet(path)
        except BaseException:  # noqa: BLE001 (what Polars cannot store cannot be read from a file)
            pl.DataFrame({"query_id": ["q"], "doc_id": ["a"], "score": [{"a": 1}]}).write_parquet(path)
        return path.name
    if kind == "long.jsonl":
        names = ["query_id", "doc_id", random.choice(["score", "rank", "topic"])]
        records = [dict(zip(names, ["q", f"d{n}", value(random, PLAIN)], strict=True)) for n in range(3)]
    lines = [_dumped(one) for one in (records if kind == "long.jsonl" else rows)]
    path.write_bytes(
        ("[" + ",".join(lines) + "]" if kind == "json" else "\n".join(lines)).encode("utf-8", "surrogatepass")
    )
    return path.name


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=len(str(value)) % 2 == 0)
    except (RecursionError, ValueError):
        return '{"retrieved": ' + "[" * 5000 + "]" * 5000 + ', "gold": [NaN]}'


@fuzzer("cells", "Any value in any place of a file gives a result or a sentence.", short=40, long=5_000)
def cells(random: Random, folder: Path) -> str:
    """`karat eval` on a file with odd values."""
    name = write(random, samples(random, PLAIN))
    more = ["--gold", name] if "long" in name or name.endswith("parquet") else []
    more += ["--by", "topic"] if random.random() < 0.3 else []
    more += ["--skip-bad-rows"] if random.random() < 0.2 else []
    form = random.choice(FORMS)
    judge, metrics = random.choice(JUDGES), random.choice(METRICS)
    done = command("eval", name, metrics, "--judge", judge, *more, "--format", form, "-o", "run.parquet")
    if done.code == 0 and form == "json":
        json.loads(done.out)
    if done.code == 0:
        shown = command("show", "run.parquet", "--format", random.choice(FORMS))
        report = command("report", "run.parquet")
        if shown.code or report.code:
            raise Fault(f"karat refuses its own run file: {shown.err}{report.err}")
        command("diagnose", "run.parquet")
    command("lint", name)
    return {0: "evaluated", 2: "refused"}.get(done.code, str(done.code))
