"""The cache as a pass sees it: there or not, and never a reason to lose an answer that was paid for."""

from __future__ import annotations

import logging

from karat.errors import BadArgument
from karat.llm.cache import Cache, Kept

log = logging.getLogger("karat.llm")


class Keeper:
    """A cache or none; one that fails while calls are made is told of once, and done without."""

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self.remark: str | None = None
        if cache is not None and cache.read_only:
            self._tell(f"the cache {cache.path} is read-only: new answers are not kept")

    @property
    def on(self) -> bool:
        """Whether answers are kept."""
        return self._cache is not None

    def get(self, key: str) -> Kept | None:
        """The answer under this key, if there is one."""
        try:
            return None if self._cache is None else self._cache.get(key)
        except BadArgument as error:
            self._give_up(error)
            return None

    def put(self, key: str, model: str, version: str, kept: Kept) -> None:
        """Keep an answer."""
        try:
            if self._cache is not None:
                self._cache.put(key, model, version, kept)
        except BadArgument as error:
            self._give_up(error)

    def drop(self, key: str) -> None:
        """Forget an answer."""
        try:
            if self._cache is not None:
                self._cache.drop(key)
        except BadArgument as error:
            self._give_up(error)

    def _give_up(self, error: BadArgument) -> None:
        self._cache = None
        self._tell(f"{error.problem}; answers are no longer kept")

    def _tell(self, remark: str) -> None:
        self.remark = remark
        log.warning("%s", remark)
