"""Lists of the stored runs, kept in the server: a page is read again only if a file of the folder has changed."""

from __future__ import annotations

from asyncio import to_thread
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from os import DirEntry, scandir
from pathlib import Path

from karat.web.messages import Reply

Answered = tuple[Reply, bytes]
_PAGES = 50
_BYTES = 20_000_000
"""The most that is kept: pages, and bytes of them."""


class Listed:
    """The pages of a folder, by the parameters of their address."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._state = b""
        """The state of the folder that the pages show."""
        self._pages: OrderedDict[str, Answered] = OrderedDict()

    async def page(self, asked: str, work: Callable[[], Awaitable[Answered]]) -> Answered:
        """The page as it was, or the answer of `work`."""
        if self._folder is None:
            return await work()
        before = await to_thread(state_of, self._folder)
        if before is not None and before == self._state and asked in self._pages:
            self._pages.move_to_end(asked)
            return self._pages[asked]
        found = await work()
        if found[0].status == 200 and before is not None and before == await to_thread(state_of, self._folder):
            self._keep(before, asked, found)
        return found

    def _keep(self, state: bytes, asked: str, found: Answered) -> None:
        if state != self._state:
            self._pages.clear()
            self._state = state
        self._pages[asked] = found
        while len(self._pages) > _PAGES or sum(len(content) for _, content in self._pages.values()) > _BYTES:
            self._pages.popitem(last=False)


def state_of(folder: Path) -> bytes | None:
    """A digest of the names, times and sizes of the files; None if the folder cannot be read."""
    try:
        with scandir(folder) as entries:
            found = [_state(entry) for entry in entries]
    except OSError:
        return None
    return blake2b("\n".join(sorted(found)).encode()).digest()


def _state(entry: DirEntry[str]) -> str:
    try:
        status = entry.stat()
    except OSError:  # a link to nothing
        return repr(entry.name)
    return f"{entry.name!r} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_size} {status.st_ino}"
