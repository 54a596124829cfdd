"""Damage to files, and what a process may not do because of it: take much memory, or print traces of native code."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryFile

from fuzz.frame import Fault

MORE = 2**31
"""The address space that a case may take beyond what the process has."""


def damaged(random: Random, content: bytes) -> bytes:
    """The bytes of a file with some of them flipped, overwritten, moved or cut off."""
    data = bytearray(content)
    way = random.choice(("flip", "flip", "cut", "overwrite", "end", "end", "begin", "move", "insert"))
    if way == "flip":
        for _ in range(random.choice((1, 1, 2, 8, 40))):
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    elif way == "cut":
        del data[random.randrange(len(data)) :]
    elif way == "overwrite":
        first, size = random.randrange(len(data)), random.choice((1, 2, 4, 8, 64, 512))
        data[first : first + size] = random.choice((b"\xff", b"\0", b"\x7f", random.randbytes(1))) * size
    elif way in {"end", "begin"}:
        size = min(len(data), random.choice((8, 100, 2000)))
        for _ in range(random.choice((1, 1, 3))):
            place = random.randrange(size)
            data[-1 - place if way == "end" else place] = random.choice((0, 127, 128, 255, random.randrange(256)))
    elif way == "move":
        first, size, other = random.randrange(len(data)), random.randrange(1, 100), random.randrange(len(data))
        data[first : first + size] = data[other : other + size]
    else:
        place = random.randrange(len(data))
        data[place:place] = random.randbytes(random.choice((1, 4, 100)))
    return bytes(data)


@contextmanager
def bounded_memory(more: int = MORE) -> Iterator[None]:
    """Refuse the process much more memory than it has: an absurd allocation is a MemoryError, or ends the process."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGE_SIZE") + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextmanager
def no_traces() -> Iterator[None]:
    """A fault if native code prints the trace of a panic to standard error."""
    real = os.dup(2)
    with TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(real, 2)
            os.close(real)
        file.seek(0)
        printed = file.read().decode(errors="replace")
    if "panicked" in printed or "stack backtrace" in printed:
        raise Fault(f"native code printed:\n{printed[:500]}")
