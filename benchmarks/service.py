"""The service under load, next to a bare uvicorn application: `python -m benchmarks.service [SECONDS]`.

64 connections each send one `recall_at_k` request after the other; then one batch of 20,000 rows. Server and client are
on one machine.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_CONNECTIONS, _SECONDS, _ROWS = 64, 60.0, 20_000
_WARM_UP = 1 / 6
"""The share of the time after which memory is compared."""
_PATH = "/sdk/api/v1/new-eval/"
_TARGETS = {"requests/s": 500.0, "p99 ms": 100.0, "errors": 0.0, "memory growth %": 5.0, "batch s": 1.5}
_BARE = """
import asyncio, socket, uvicorn
async def app(scope, receive, send):
    if scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        body = b'{"status":true,"result":[]}'
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})
at = socket.create_server(("127.0.0.1", 0), backlog=512)
print(f"http://127.0.0.1:{at.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")).run([at])
"""


class Load(NamedTuple):
    """The answers to one connection after the other, and the memory of the server while they came."""

    times: list[float]
    errors: int
    seconds: float
    memory: tuple[int, int]
    """Bytes after the warm-up and at the end."""

    def figures(self) -> dict[str, float]:
        """The figures that the targets are about, and the median."""
        ordered, (early, late) = sorted(self.times), self.memory
        return {
            "requests/s": len(ordered) / self.seconds,
            "p50 ms": ordered[len(ordered) // 2] * 1e3,
            "p99 ms": ordered[int(len(ordered) * 0.99)] * 1e3,
            "errors": float(self.errors),
            "memory MB": late / 1e6,
            "memory growth %": (late / early - 1) * 100,
        }


def main(seconds: float = _SECONDS) -> int:
    """Measure, print, and return 1 if a target is missed."""
    with _server("-c", _BARE) as (url, pid):
        bare = asyncio.run(_load(url, pid, min(seconds, 10.0))).figures()
    with _server("-m", "karat", "serve", "--port", "0") as (url, pid):
        ours = asyncio.run(_load(url, pid, seconds)).figures()
        ours["batch s"] = min(asyncio.run(_batch(url)) for _ in range(3))
    missed = 0
    for name, value in ours.items():
        target = _TARGETS.get(name)
        bad = target is not None and (value < target if name == "requests/s" else value > target)
        missed += bad
        aim = "" if target is None else f"  target {target:g}{'  MISSED' if bad else ''}"
        print(f"{name:<18}{value:>12,.2f}{bare.get(name, float('nan')):>14,.2f} (bare uvicorn){aim}")
    return int(missed > 0)


@contextmanager
def _server(*arguments: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own: its address and process id."""
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait()


async def _load(url: str, pid: int, seconds: float) -> Load:
    """Requests over all connections at once, for so many seconds."""
    request, times, errors = _request(url, {"k": 3}, *_rankings(1)), [], 0
    await _answer(*await _connect(url), request)  # the first waits for the workers
    memory: list[int] = []
    end = time.perf_counter() + seconds

    async def connection() -> None:
        nonlocal errors
        reader, writer = await _connect(url)
        while time.perf_counter() < end:
            begin = time.perf_counter()
            status, _ = await _answer(reader, writer, request)
            times.append(time.perf_counter() - begin)
            errors += status != 200
        writer.close()

    async def watch() -> None:
        for share in (_WARM_UP, 1 - _WARM_UP):
            await asyncio.sleep(seconds * share)
            memory.append(_memory(pid))

    begin = time.perf_counter()
    await asyncio.gather(watch(), *(connection() for _ in range(_CONNECTIONS)))
    return Load(times, errors, time.perf_counter() - begin, (memory[0], memory[1]))


async def _batch(url: str) -> float:
    """The seconds of one request with many rows."""
    request = _request(url, {"k": 5}, *_rankings(_ROWS))
    begin = time.perf_counter()
    status, body = await _answer(*await _connect(url), request)
    taken = time.perf_counter() - begin
    assert status == 200
    assert len(json.loads(body)["result"]) in {1, _ROWS}
    return taken


def _rankings(rows: int) -> tuple[Any, Any]:
    """What was retrieved and what should have been, as the clients send it: a JSON list in each string."""
    retrieved = [json.dumps([f"Passage {row} {rank} of a text" for rank in range(10)]) for row in range(rows)]
    gold = [json.dumps([f"Passage {row} {rank} of a text" for rank in (0, 4, 11)]) for row in range(rows)]
    return (retrieved[0], gold[0]) if rows == 1 else (retrieved, gold)


def _request(url: str, params: dict[str, int], hypothesis: Any, reference: Any) -> bytes:
    inputs = {"hypothesis": hypothesis, "reference": reference}
    body = json.dumps({"eval_name": "recall_at_k", "inputs": inputs, "config": {"params": params}}).encode()
    head = f"POST {_PATH} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _connect(url: str) -> tuple[StreamReader, StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", urlsplit(url).port, limit=1 << 26)


async def _answer(reader: StreamReader, writer: StreamWriter, request: bytes) -> tuple[int, bytes]:
    writer.write(request)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.partition("content-length:")[2].partition("\r\n")[0])
    return int(head[9:12]), await reader.readexactly(length)


def _memory(pid: int) -> int:
    """The resident memory of a process and its children, in bytes."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    pages = sum(int(Path(f"/proc/{one}/statm").read_text(encoding="ascii").split()[1]) for one in (pid, *children))
    return pages * 4096


if __name__ == "__main__":
    sys.exit(main(*map(float, sys.argv[1:])))
