"""ragas' cache of answers: a folder with one SQLite file; values are JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from hashlib import sha256
from inspect import iscoroutinefunction
from os import PathLike
from pathlib import Path
from typing import Any

from karat.errors import InputError
from karat.llm.cache import Cache
from karat.llm.model import Reply


class CacheInterface(ABC):
    """A store of values by key."""

    @abstractmethod
    def get(self, key: str) -> Any:
        """The value with this key."""

    @abstractmethod
    def set(self, key: str, value: Any) -> None:
        """Store a value."""

    @abstractmethod
    def has_key(self, key: str) -> bool:
        """True if there is a value with this key."""


class DiskCacheBackend(CacheInterface):
    """A cache in a folder. As `cache=` of a model it replaces the user's own cache of karat."""

    def __init__(self, cache_dir: str | PathLike[str] = ".cache") -> None:
        self.path = Path(cache_dir) / "answers.sqlite"
        self._file = Cache(self.path)

    def get(self, key: str) -> Any:
        """The value with this key; None if there is none."""
        found = self._file.get(key)
        return None if found is None else found.answer.get("value")

    def set(self, key: str, value: Any) -> None:
        """Store a value, which must be JSON."""
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise InputError("the cache stores JSON values only", got=value) from None
        self._file.delete(key)
        self._file.put(key, "ragas", "1", Reply({"value": value}, 0, 0))

    def has_key(self, key: str) -> bool:
        """True if there is a value with this key."""
        return self._file.get(key) is not None

    def __repr__(self) -> str:
        return f"DiskCacheBackend(cache_dir={self.path.parent})"


def cacher(cache_backend: CacheInterface | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that stores what a function, sync or async, returns for its arguments."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if cache_backend is None:
            return function
        backend = cache_backend

        def key_of(args: Any, named: Any) -> str:
            called = [function.__qualname__, args, {name: one for name, one in named.items() if name != "callbacks"}]
            return sha256(json.dumps(called, sort_keys=True, default=str).encode()).hexdigest()

        @wraps(function)
        async def awaited(*args: Any, **named: Any) -> Any:
            key = key_of(args, named)
            if not backend.has_key(key):
                backend.set(key, await function(*args, **named))
            return backend.get(key)

        @wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            key = key_of(args, named)
            if not backend.has_key(key):
                backend.set(key, function(*args, **named))
            return backend.get(key)

        return awaited if iscoroutinefunction(function) else called

    return decorate
