"""Messages between the server and its workers: a header and a body, each with its length in front."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from struct import Struct as Layout
from typing import BinaryIO

import msgspec

from karat.web.settings import Limits

Progress = Callable[[int, int], None]
"""Called with the work done and the work in all."""
_LENGTHS = Layout(">IQ")


class Call(msgspec.Struct, frozen=True):
    """A request as a worker sees it; the body follows. It has no path of a file and no key."""

    task: str
    """A name in `tasks.TASKS`."""
    request: str = ""
    """The id of the request."""
    content_type: str = ""
    accept: str = ""
    arguments: dict[str, str] = {}
    """Parameters of the address."""
    store: str | None = None
    """The folder of the stored runs."""
    models: tuple[str, ...] = ()
    limits: Limits = Limits()

    @property
    def lists(self) -> bool:
        """True if the answer has a list of all runs, of which one worker keeps the overviews."""
        return self.task == "view_runs" or (self.task == "view_run_part" and self.arguments.get("part") == "chooser")


class Reply(msgspec.Struct, frozen=True):
    """An answer; the body follows. `progress` tells how far a job is, and more replies follow."""

    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = {}
    progress: tuple[int, int] | None = None
    """Of the work: done, in all."""
    fault: str | None = None
    """For the log: the error that karat did not expect, without its message, which may quote the data."""


_CALLS, _REPLIES = msgspec.msgpack.Decoder(Call), msgspec.msgpack.Decoder(Reply)
_ENCODER = msgspec.msgpack.Encoder()


def packed(message: Call | Reply, body: bytes) -> tuple[bytes, bytes]:
    """A message as it is sent: the lengths with the header, and the body, which is not copied."""
    header = _ENCODER.encode(message)
    return _LENGTHS.pack(len(header), len(body)) + header, body


class Unsent(Exception):
    """A call that did not reach its worker, which has ended."""


async def send(worker: StreamWriter, call: Call, body: bytes) -> None:
    """Send a call to a worker."""
    try:
        if worker.is_closing():
            raise ConnectionError
        worker.writelines(packed(call, body))
        await worker.drain()
    except (ConnectionError, RuntimeError) as error:  # a transport that is closed raises the latter
        raise Unsent from error


async def receive(stream: StreamReader) -> tuple[Reply, bytes]:
    """The next reply of a worker; IncompleteReadError if the worker has ended."""
    header, body = _LENGTHS.unpack(await stream.readexactly(_LENGTHS.size))
    return _REPLIES.decode(await stream.readexactly(header)), await stream.readexactly(body)


def write_reply(file: BinaryIO, reply: Reply, body: bytes) -> None:
    """Send a reply to the server."""
    file.writelines(packed(reply, body))
    file.flush()


def read_call(file: BinaryIO) -> tuple[Call, bytes] | None:
    """The next call of the server, None if the server has ended."""
    lengths = file.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header, size = _LENGTHS.unpack(lengths)
    call, body = _CALLS.decode(file.read(header)), file.read(size)
    return (call, body) if len(body) == size else None
