"""A scripted local server for OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Event, Thread
from typing import Any


@dataclass(frozen=True)
class Act:
    """The reaction of the server to a call."""

    status: int = 200
    content: str = "{}"
    usage: tuple[Any, Any] | None = (20, 5)
    finish: str = "stop"
    refusal: str | None = None
    delay: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent as it is, instead of a completion."""
    cut: str = ""
    """Where the connection is cut: before the answer, or in the middle of it."""
    pace: float = 0.0
    """Seconds between the halves of the answer."""

    @property
    def charged(self) -> bool:
        """True for a completion that reports its usage and is sent whole, at once."""
        return self.status == 200 and self.body is None and not (self.cut or self.delay or self.pace)

    def bytes(self) -> bytes:
        if self.body is not None:
            return self.body
        if self.status != 200:
            return json.dumps({"error": {"message": self.content, "code": self.finish, "param": self.refusal}}).encode()
        message = {"role": "assistant", "content": self.content, "refusal": self.refusal}
        said: dict[str, Any] = {
            "id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": self.finish, "message": message}],
        }  # fmt: skip
        if self.usage is not None:
            said["usage"] = dict(zip(("prompt_tokens", "completion_tokens"), self.usage, strict=True))
        return json.dumps(said).encode()


@dataclass(frozen=True)
class Call:
    """A received call."""

    number: int
    path: str
    port: int
    headers: dict[str, str]
    body: dict[str, Any]
    before: int
    """The number of earlier calls with the same messages."""

    @property
    def text(self) -> str:
        return self.body["messages"][-1]["content"]


Script = Callable[[Call], Act]


def echo(call: Call) -> Act:
    """An answer that repeats the question."""
    return Act(content=json.dumps({"said": call.text}))


class Server:
    """Runs in a thread inside a `with` block; records every call and the number of simultaneous ones."""

    def __init__(self, script: Script = echo, *, remember: bool = True) -> None:
        self.script = script
        self.calls: list[Call] = []
        self.acts: list[Act] = []
        self.count = 0
        self.under_way = 0
        self.most_at_once = 0
        self._remember = remember
        self._times: dict[str, int] = {}
        self._ready = Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def model(self, **settings: object) -> str:
        reported = "".join(f", {name}={value}" for name, value in settings.items())
        return f"openai(m, base_url={self.url}{reported})"

    def __enter__(self):
        self._thread = Thread(target=asyncio.run, args=(self.serve(),), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def serve(self, *, tell: bool = False) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        self._handlers: set[asyncio.Task[Any]] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        if tell:
            sys.stdout.write(f"{self.port}\n")
            sys.stdout.flush()
        await self._over.wait()
        server.close()
        for handler in self._handlers:
            handler.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _connection(self, reader, writer):
        task = asyncio.current_task()
        self._handlers.add(task)
        try:
            while await self._call(reader, writer):
                pass
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _call(self, reader, writer) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        method, path, _ = head[0].split(" ")
        if method == "GET":  # how many calls there were
            await self._answer(writer, Act(body=str(self.count).encode()))
            return True
        body = json.loads(data)
        key = json.dumps(body["messages"])
        if len(key) > 64:
            key = sha256(key.encode()).hexdigest()
        call = Call(self.count, path, self.port, headers, body, self._times.get(key, 0))
        self._times[key] = call.before + 1
        self.count += 1
        if self._remember:
            self.calls.append(call)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            act = self.script(call)
            if self._remember:
                self.acts.append(act)
            if act.delay:
                await asyncio.sleep(act.delay)
            if act.cut == "before":
                return False
            await self._answer(writer, act)
            return act.cut != "amid"
        finally:
            self.under_way -= 1

    async def _answer(self, writer, act: Act) -> None:
        sent = _sent(act)
        half = len(sent) // 2 if act.pace else len(sent)
        for part in (sent[:half], sent[half:]):
            writer.write(part)
            await writer.drain()
            if act.pace:
                await asyncio.sleep(act.pace)


def _sent(act: Act) -> bytes:
    body = act.bytes()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **act.headers}
    reported = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    sent = f"HTTP/1.1 {act.status} X\r\n{reported}\r\n".encode("latin-1") + body
    return sent[: len(sent) // 2 + 40] if act.cut == "amid" else sent


def faulty(share: float, latency: float) -> Script:
    """A script in which this share of calls fails in various ways, determined by the call."""

    def script(call: Call) -> Act:
        drawn = int(sha256(f"{call.text[:64]} {call.before}".encode()).hexdigest(), 16)
        if drawn % 10_000 >= share * 10_000:
            return Act(content=json.dumps({"said": call.text[:64]}), delay=latency)
        troubles = [
            Act(status=429, content="slow down", headers={"retry-after": "0.05"}),
            Act(status=429, content="slow down"),
            Act(status=500, content="broken"),
            Act(status=503, content="busy"),
            Act(cut="before", delay=latency),
            Act(cut="amid", delay=latency),
            Act(content="I think that", delay=latency),
            Act(content='{"said": "x', delay=latency),
            Act(content='{"other": 1}', delay=latency),
            Act(body=b"<html>gateway</html>", delay=latency),
        ]
        return troubles[drawn // 10_000 % len(troubles)]

    return script


if __name__ == "__main__":  # the latency in seconds, and the share of faults
    latency, share = float(sys.argv[1]), float(sys.argv[2])
    asyncio.run(Server(faulty(share, latency), remember=False).serve(tell=True))
