"""Endpoints that fail in random ways: an evaluation with a model judge, twice, against a real HTTP server."""

from __future__ import annotations

import io
import json
import math
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import quote

import polars as pl

import karat
from fuzz.frame import Fault, command, fuzzer
from fuzz.hostile_text import strings
from karat.errors import KaratError
from karat.judges.model_judge import ModelJudge
from karat.llm import Cache, Spent
from support import scripted
from support.server import Act, Call, Server

WORDS = ("red", "blue", "grey", "tall", "small", "old", "new")
RETRY_AFTER = ("0", "0.01", "1e9", "-5", "nan", "inf", "soon", "Wed, 21 Oct 2999 07:28:00 GMT", "9" * 400, "\xff")
COUNTS = (None, 10**25, True, -1, 1.5, "7", math.nan, [], {}, 0, 50, 2_000)
ELSEWHERE = "/elsewhere"


def _good(call: Call) -> Act:
    return replace(scripted.script(call), usage=(len(call.text) // 4 + 100, 60))


def _key_of(call: Call) -> str:
    return call.headers["authorization"].removeprefix("Bearer ")


def _said(random: Random, call: Call) -> str:
    """The key in some spelling, alone or at some place of a text; at the edge of what is shown, it would be cut."""
    before = random.choice(("", "no, ", "Bearer ", "é\u202e ", "x" * random.randrange(160, 300)))
    return f"{before}{random.choice(_spellings(_key_of(call)))}{random.choice(('', ' !', 'x' * 5000))}"


def _status(random: Random, call: Call) -> Act:
    status = random.choice((400, 408, 409, 413, 422, 429, 429, 500, 502, 503, 504, 529, 599))
    headers = {"retry-after": random.choice((*RETRY_AFTER, quote(_said(random, call)[:900])))}
    body = _said(random, call).encode() if random.random() < 0.2 else None  # as it is, not JSON
    return Act(status=status, content=_said(random, call), headers=headers if random.random() < 0.5 else {}, body=body)


def _halt(random: Random, call: Call) -> Act:
    status, code = random.choice(((401, ""), (402, ""), (403, ""), (404, ""), (429, "insufficient_quota")))
    return Act(status=status, content=_said(random, call), finish=code, refusal=_said(random, call))


def _broken_body(random: Random, call: Call) -> Act:
    good = _good(call)
    whole = good.bytes()
    body = random.choice(
        (
            b"", b"null", b"[]", b"7", b'"text"', b"<html>gateway</html>", b"\xff\xfe\x00", b"[" * 100_000,
            b'{"a":' * 50_000, b'{"choices": NaN}', whole[: len(whole) // 2], whole + b"}", b"\0" * 100,
            b'{"choices": [{"message": {"content": "\\ud800"}}]}', b'{"choices": [{"message": "\xed\xa0\x80"}]}',
            _said(random, call).encode(), json.dumps({"error": {"message": _said(random, call)}}).encode(),
            json.dumps({_said(random, call): [_said(random, call)]}).encode(),
        )
    )  # fmt: skip
    kind = random.choice(("application/json", "text/html", "text/event-stream", "", "application/json; charset=utf-99"))
    return Act(body=body, headers={"content-type": kind})


def _empty(random: Random, call: Call) -> Act:
    said = json.loads(_good(call).bytes())
    said["choices"] = random.choice(
        (
            [],
            None,
            {},
            [None],
            [{}],
            [{"message": None}],
            [{"message": {"content": 7}}],
            _said(random, call),
            [{"message": {"refusal": _said(random, call)}}],
        )
    )
    return Act(body=json.dumps(said).encode())


def _wrong_answer(random: Random, call: Call) -> Act:
    good = json.loads(_good(call).content)
    name, each = next(iter(good.items()))
    content = random.choice(
        (
            "", "{}", "Sure!", "{" * 50_000, json.dumps({name: each + each}), json.dumps({name: {}}),
            json.dumps({name: [{**one, "reason": 7} if isinstance(one, dict) else 7 for one in each or [7]]}),
            json.dumps({name: None, "more": _said(random, call)}), json.dumps({_said(random, call): each}),
            _said(random, call), json.dumps({name: [{"x": math.nan}]}), '{"\ud800": 1}',
            json.dumps(good)[:-2], json.dumps(good) * 2,
        )
    )  # fmt: skip
    return Act(content=content, usage=(300, 40), finish=random.choice(("stop", "stop", "length", "content_filter")))


def _odd_wrapping(random: Random, call: Call) -> Act:
    good = _good(call)
    return replace(good, content=random.choice((f"```json\n{good.content}\n```", f"\n\n {good.content}\t\n")))


def _echo(random: Random, call: Call) -> Act:
    """A valid answer whose reasons hold the key in some spelling."""
    good = json.loads(_good(call).content)
    for one in next(iter(good.values())):
        if isinstance(one, dict):
            one["reason"] = f"{_said(random, call)} {'x' * random.choice((0, 290, 9000))}"
    headers = {"x-request-id": quote(_key_of(call))}
    return replace(_good(call), content=json.dumps(good), headers=headers, refusal=random.choice((None, "")))


def _wrong_usage(random: Random, call: Call) -> Act:
    return replace(_good(call), usage=(random.choice(COUNTS), random.choice(COUNTS)))


def _lost(random: Random, call: Call) -> Act:
    return random.choice((Act(cut="before"), replace(_good(call), cut="amid"), Act(delay=30), Act(pace=30)))


def _redirect(random: Random, call: Call) -> Act:
    target = random.choice(
        (
            f"http://localhost:{call.port}{ELSEWHERE}",
            f"https://127.0.0.1:{call.port}{ELSEWHERE}",
            "//[",
            call.path,
            f"http://{quote(_key_of(call), safe='')}@localhost:1/",
            f"/?key={quote(_key_of(call), safe='')}",
        )
    )
    return Act(status=random.choice((301, 302, 303, 307, 308)), headers={"location": target})


def _huge(random: Random, call: Call) -> Act:
    return Act(body=b"x" * 8_100_000)


Trouble = Callable[[Random, Call], Act]
USUAL: tuple[Trouble, ...] = (
    _status, _status, _broken_body, _empty, _wrong_answer, _wrong_answer, _odd_wrapping, _echo, _echo, _wrong_usage,
)  # fmt: skip
RARE: tuple[Trouble, ...] = (_halt, _lost, _redirect, _huge)


class Plan(NamedTuple):
    """How an endpoint fails: which share of calls, in which ways, and from which call on always."""

    seed: str
    share: float
    troubles: tuple[Trouble, ...]
    always_from: int

    def __call__(self, call: Call) -> Act:
        random = Random(f"{self.seed} {call.text} {call.before}")
        if call.number < self.always_from and random.random() >= self.share:
            return _good(call)
        return random.choice(self.troubles)(random, call)


def _plan(random: Random) -> Plan:
    troubles = random.choices(USUAL, k=random.randrange(1, 5)) + random.choices(RARE, k=random.random() < 0.4)
    always = random.randrange(12) if random.random() < 0.3 else 10**9
    return Plan(str(random.random()), random.choice((0.1, 0.4, 0.8, 1.0)), tuple(troubles), always)


def _samples(random: Random) -> list[dict[str, Any]]:
    def text() -> str:
        return " ".join(random.choices(WORDS, k=random.randrange(1, 4)))

    return [
        {
            "query": f"{text()} {number}",
            "answer": ". ".join(text() for _ in range(random.randrange(1, 4))),
            "retrieved": [
                {"id": str(rank), "text": text(), "score": random.randrange(3)}
                for rank in range(random.randrange(1, 5))
            ],
        }
        for number in range(random.randrange(2, 8))
    ]


def _judge(random: Random, model: str, folder: Path, **settings: Any) -> ModelJudge:
    kinds: tuple[Callable[..., ModelJudge], ...] = (karat.Relevance, karat.Claims)
    return random.choice(kinds)(model, cache=folder / "cache", progress=False, **settings)


def _spellings(key: str) -> list[str]:
    plain, escaped = b64encode(key.encode()).decode(), json.dumps(key)[1:-1]
    return [
        key, key.upper(), quote(key, safe=""), quote(quote(key, safe="")), plain, escaped,
        json.dumps(escaped)[1:-1], escape(key), key.encode().hex(), "".join(f"\\u{ord(char):04x}" for char in key),
        "".join(f"&#{ord(char)};" for char in key), "".join(f"&#x{ord(char):X};" for char in key),
        b64encode(f"a:{key}".encode()).decode(), b64encode(f"ab{key}c".encode(), b"-_").decode(),
    ]  # fmt: skip


@contextmanager
def _environment(key: str, folder: Path) -> Iterator[io.StringIO]:
    """The key, no waiting, and everything that is printed."""
    printed = io.StringIO()
    with (
        patch.dict(os.environ, {"OPENAI_API_KEY": key, "XDG_CACHE_HOME": str(folder / "xdg")}),
        patch("karat.llm.batch._LONGEST_BACKOFF", 0.0),
        patch("karat.llm.faults.MAX_WAIT", 0.01),
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        yield printed


def _check_budget(server: Server, before: int, spent: Spent | None, limits: dict[str, int], concurrency: int) -> None:
    """What the endpoint charged is counted, and within the limits."""
    calls = server.acts[before:]
    charged = [act.usage for act in calls if act.charged]
    known = [[n for n in usage if type(n) is int and 0 < n <= 10_000_000] for usage in charged if usage]
    if spent is None:
        return
    if spent.calls > limits.get("max_calls", spent.calls):
        raise Fault(f"{spent.calls} calls, {limits}")
    if spent.prompt_tokens + spent.completion_tokens < sum(map(sum, known)):
        raise Fault(f"{spent} counts less than was charged: {known}")
    largest = max(map(sum, known), default=0)
    most = limits.get("max_tokens")
    if most is not None and sum(map(sum, known)) > most + concurrency * largest:
        raise Fault(f"{known} exceeds {limits} by more than the calls in flight")


def _check_scores(run: karat.Run, healthy: karat.Run) -> None:
    """A query without an answer has no score; every other has its own."""
    for name, scores in run.scores.items():
        for query, (value, expected) in enumerate(zip(scores.tolist(), healthy.scores[name].tolist(), strict=True)):
            failed = query in run.all_hits.failed
            if failed != math.isnan(value) and not math.isnan(expected):
                raise Fault(f"query {query} failed: {failed}, but its {name} is {value}")
            if not failed and value != expected and not (math.isnan(value) and math.isnan(expected)):
                raise Fault(f"the {name} of query {query} is {value} instead of {expected}")


def _strings(path: Path) -> Iterator[str]:
    """Every string of a run file: the names and values of its columns, nested or not, and of its metadata."""
    metadata = pl.read_parquet_metadata(path)
    yield from strings(metadata)
    yield from strings(json.loads(metadata["karat"]))
    yield from strings(pl.read_parquet(path).to_dict(as_series=False))


def _check_secret(key: str, folder: Path, printed: str) -> None:
    """The key is in no file and on no screen; reasons are short."""
    seen = {"the screen": printed}
    seen |= {path.name: path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()}
    for path in folder.glob("*.html"):
        seen[f"the text of {path.name}"] = unescape(path.read_text("utf-8"))
    for path in folder.glob("*.parquet"):
        seen[f"the values of {path.name}"] = "\n".join(_strings(path))
        for name in ("show", "diagnose"):
            seen[f"{name} {path.name}"] = command(name, path, "--format", "json").out
    seen["the export"] = command("cache", "export", "--cache", folder / "cache").out
    for place, text in seen.items():
        folded = text.lower()
        parts = [key[at : at + 12] for at in range(len(key) - 11)]
        if found := [one for one in (*_spellings(key), *parts) if one.lower() in folded]:
            raise Fault(f"the key is in {place} as {found[0]!r}")
        if "x" * 301 in text:
            raise Fault(f"a long reason is in {place}")


@fuzzer(
    "endpoints",
    "Whatever an endpoint answers: no failure counts as 0, the budget holds, no key is stored, nothing is paid twice.",
    short=10,
    long=1_000,
)
def endpoints(random: Random, folder: Path) -> str:
    samples, seed, judged = _samples(random), random.random(), 0
    key = "k-" + "".join(random.choices("abcXYZ019-_./+=~%'\"\\&<", k=random.randrange(14, 60)))
    metrics, convention = "precision@2 rr@3 ndcg@3", random.choice(("standard", "mteb"))
    calls, tokens = random.randrange(30), random.randrange(9_000)
    limits: dict[str, int] = random.choice(({}, {"max_calls": calls}, {"max_tokens": tokens}))
    concurrency = random.choice((1, 2, 8))
    settings = {"retries": random.randrange(4), "concurrency": concurrency}

    def evaluate(place: Path, **more: Any) -> tuple[karat.Run | None, Spent | None]:
        judge = _judge(Random(seed), server.model(), place, **settings, **more)
        try:
            run = karat.evaluate(samples, metrics, judge=judge, convention=convention, order="score")
        except KaratError as error:
            sys.stdout.write(str(error))
            return None, judge.spent
        sys.stdout.write(f"{run} {judge.usage()}")
        return run, judge.spent

    with Server(_good) as server, _environment(key, folder) as printed:
        (folder / "reference").mkdir()
        healthy, _ = evaluate(folder / "reference")
        needed, table = server.count, str(healthy)
        for number in range(random.randrange(1, 3)):
            server.script, before = _plan(random), len(server.acts)
            run, spent = evaluate(folder, timeout=0.15, deadline=1.0, **limits)
            _check_budget(server, before, spent, limits, concurrency)
            if run is not None:
                _check_scores(run, healthy)
                run.save(folder / f"{number}.parquet")
                judged = run.judged
                command("report", folder / f"{number}.parquet", "-o", folder / f"{number}.html")
        known = sum(one.answers for one in Cache(folder / "cache").models())
        if run is not None and run.judged == len(samples) and known != needed:
            raise Fault(f"all queries are judged, but only {known} of {needed} answers are cached")
        server.script, before = _good, server.count
        last, _ = evaluate(folder)
        if server.count - before != needed - known:
            raise Fault(f"{needed} answers, {known} cached, but {server.count - before} calls")
        if str(last) != table:
            raise Fault(f"after the faults:\n{last}\nwithout:\n{table}")
    if any(call.path == ELSEWHERE for call in server.calls):
        raise Fault("a redirect to another address was followed")
    _check_secret(key, folder, printed.getvalue())
    if run is None:
        return "stopped"
    return {0: "nothing judged", len(samples): "all judged"}.get(judged, "partly judged")
