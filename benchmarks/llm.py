"""LLM requests: the engine with the real client against a scripted server on localhost.

1,000 requests of 50 ms, 32 at a time; a second run, a killed run, 20 % faults, and memory.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

from benchmarks.outcome import Outcome, slowdown, write_outcomes

_SERVER = Path(__file__).parents[1] / "tests" / "support" / "server.py"
_SAMPLES, _LATENCY, _CONCURRENCY = 1_000, 0.05, 32
_REPETITIONS = 5
_TARGET = 1.2
_FAULTS = 0.2
_FEW, _MANY = 1_000, 5_000
_MEGABYTE = 1e6
_TEXT = "A context of typical length, so that a request that stays in memory too long is noticed. " * 200
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"said": {"type": "string"}},
    "required": ["said"],
    "additionalProperties": False,
}


def measure() -> list[Outcome]:
    """Measure speed, a cached second run, a killed run, a faulty server, and memory."""
    with TemporaryDirectory() as folder:
        return [*_speed(Path(folder)), _killed(Path(folder)), _faults(Path(folder)), _memory(Path(folder))]


def _speed(folder: Path) -> list[Outcome]:
    ideal = _SAMPLES * _LATENCY / _CONCURRENCY
    least = bare = busy = float("inf")
    with _server(_LATENCY, 0.0) as port:
        _ask(port, None, _CONCURRENCY)  # warm-up: imports the client and opens the connections
        for repetition in range(_REPETITIONS):
            cache = folder / f"speed{repetition}.sqlite"
            began, used = time.perf_counter(), time.process_time()
            failed = _ask(port, cache, _SAMPLES)["failed"]
            least, busy = min(least, time.perf_counter() - began), min(busy, time.process_time() - used)
            assert not failed, "a request failed without any fault"
            began = time.perf_counter()
            asyncio.run(_ask_bare(port))
            bare = min(bare, time.perf_counter() - began)
        before = _count(port)
        found = _ask(port, cache, _SAMPLES)
        again = _count(port) - before
    note = (
        f"{_SAMPLES:,} requests of {_LATENCY * 1e3:.0f} ms, {_CONCURRENCY} concurrent; ideal: no overhead; "
        f"karat's CPU time is {busy / _SAMPLES * 1e3:.2f} ms a request"
    )
    server = f"the same requests over bare sockets, {bare / ideal:.2f}× ideal: what server and event loop take"
    return [
        slowdown("llm", "ideal", ours=least, theirs=ideal, target=_TARGET, note=note),
        slowdown("llm", "bare sockets", ours=least, theirs=bare, target=_TARGET, note=server),
        Outcome(
            case="llm",
            peer="second run: calls",
            ratio=float(again),
            target="≤ 0",
            met=again == 0 and found["cached"] == _SAMPLES,
            note=f"the second run made {again} calls; {found['cached']:,} answers came from the cache",
        ),
    ]


async def _ask_bare(port: int) -> None:
    """Make the same requests with the least code: no client, no cache, no budget, no checks."""
    places = iter(range(_SAMPLES))

    async def ask_in_turn() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for place in places:
            messages = [{"role": "user", "content": f"question {place:06d} "}]
            body = json.dumps({"model": "bench", "messages": messages}).encode()
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            assert json.loads(await reader.readexactly(size))["choices"]
        writer.close()

    await asyncio.gather(*(ask_in_turn() for _ in range(_CONCURRENCY)))


def _killed(folder: Path) -> Outcome:
    """Kill a run half-way, run it again, and count the calls of both."""
    cache = folder / "killed.sqlite"
    with _server(_LATENCY, 0.0) as port:
        running = subprocess.Popen(_command("ask", port, cache, _SAMPLES), stdout=subprocess.DEVNULL)
        while _count(port) < _SAMPLES // 2:
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
        running.wait()
        time.sleep(4 * _LATENCY)
        answered = _count(port)
        rest = _ask(port, cache, _SAMPLES)
        calls = _count(port)
    lost = calls - _SAMPLES
    note = (
        f"killed after {answered} calls; the second run made {calls - answered}: {lost} calls were repeated, "
        f"at most {_CONCURRENCY} were in flight; {rest['failed']} failed"
    )
    share = lost / _CONCURRENCY
    return Outcome(
        case="llm",
        peer="kill -9: lost ÷ in flight",
        ratio=share,
        target="≤ 1",
        met=share <= 1 and not rest["failed"],
        note=note,
    )


def _faults(folder: Path) -> Outcome:
    with _server(_LATENCY / 10, _FAULTS) as port:
        done = _ask(port, folder / "faults.sqlite", _SAMPLES)
        calls = _count(port)
    lost = _SAMPLES - done["right"] - done["explained"]
    note = (
        f"{_FAULTS:.0%} of the calls met a fault: {calls:,} calls, {done['right']:,} of {_SAMPLES:,} correct, "
        f"{done['explained']} failed with a cause, {lost} lost"
    )
    return Outcome(case="llm", peer="20 % faults: lost", ratio=float(lost), target="≤ 0", met=lost == 0, note=note)


def _memory(folder: Path) -> Outcome:
    """Compare the peak memory of a long run with that of a short one; requests are created lazily."""
    with _server(0.0, 0.0) as port:
        peaks = {
            samples: json.loads(_printed("memory", port, folder / f"memory{samples}.sqlite", samples))
            for samples in (_FEW, _MANY)
        }
    grown = (peaks[_MANY] - peaks[_FEW]) / _MEGABYTE
    prompts = (_MANY - _FEW) * len(_TEXT) / _MEGABYTE
    share = grown / prompts
    note = (
        f"peak memory grew by {grown:.1f} MB from {_FEW:,} to {_MANY:,} requests of {len(_TEXT) / 1e3:.0f} kB, "
        f"{prompts:.0f} MB more prompts"
    )
    return Outcome(
        case="llm", peer="memory: growth ÷ prompts", ratio=share, target="≤ 0.05", met=share <= 0.05, note=note
    )


class _Requests(Sequence[Any]):
    """Requests that are created on access."""

    def __init__(self, count: int, text: str) -> None:
        self._count, self._text = count, text

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Any:
        from karat.llm import Request

        if place >= self._count:
            raise IndexError(place)
        messages = [{"role": "user", "content": f"question {place:06d} {self._text}"}]
        return Request(messages, _SCHEMA, lambda answer: answer["said"], "bench-1")


def _ask(port: int, cache: Path | None, samples: int, text: str = "") -> dict[str, int]:
    from karat.llm import Answer, Engine

    engine = Engine(
        f"openai(bench, base_url=http://127.0.0.1:{port}/v1)", cache=cache, concurrency=_CONCURRENCY, progress=False
    )
    results = engine.ask(_Requests(samples, text))
    answered = [
        isinstance(result, Answer) and result.value[:15] == f"question {place:06d}"
        for place, result in enumerate(results)
    ]
    failed = [result for result in results if not isinstance(result, Answer)]
    explained = sum(bool(result.cause) for result in failed)
    return {"right": sum(answered), "failed": len(failed), "explained": explained, "cached": engine.spent.cached}


@contextmanager
def _server(latency: float, faults: float) -> Iterator[int]:
    """Run the scripted server in another process; yields its port."""
    command = [sys.executable, str(_SERVER), str(latency), str(faults)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        yield int(running.stdout.readline())
    finally:
        running.kill()
        running.wait()


def _count(port: int) -> int:
    with urlopen(f"http://127.0.0.1:{port}/count") as answer:
        return int(answer.read())


def _command(what: str, port: int, cache: Path, samples: int) -> list[str]:
    return [sys.executable, "-m", "benchmarks.llm", what, str(port), str(cache), str(samples)]


def _printed(what: str, port: int, cache: Path, samples: int) -> str:
    done = subprocess.run(_command(what, port, cache, samples), check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def _peak(port: str, cache: str, samples: str) -> int:
    import resource

    assert not _ask(int(port), Path(cache), int(samples), _TEXT)["failed"]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    os.environ.pop("OPENAI_API_KEY", None)
    match sys.argv[1:]:
        case ["ask", port, cache, samples]:
            _ask(int(port), Path(cache), int(samples))
        case ["memory", port, cache, samples]:
            print(_peak(port, cache, samples))
        case _:
            write_outcomes(measure())
