"""The answer cache: an SQLite file that several processes may share, so that no answer is paid for twice."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from karat._internal.model_settings import DEFAULT_CACHE
from karat._internal.writers import escape_json
from karat.errors import BadArgument
from karat.llm.budget import MOST_TOKENS, is_count
from karat.llm.model import Reply
from karat.llm.secrets import Secrets

T = TypeVar("T")
log = logging.getLogger("karat.llm")

_APPLICATION = 0x6B617261  # "kara": distinguishes a cache from other databases
_FORMAT = 1
_LOCK_TIMEOUT = 30.0
_FIELDS = ("key", "model", "version", "answer", "prompt_tokens", "completion_tokens", "created")
_ANOTHER = "--cache FILE or --cache none; in Python cache=FILE or cache=None"
_COLUMNS = f"SELECT {', '.join(_FIELDS)} FROM answers LIMIT 1"  # noqa: S608
# A damaged file may hold anything in any column.
_SANE_SUM = "sum(CASE WHEN typeof({0}) = 'integer' AND {0} BETWEEN 0 AND {1} THEN {0} ELSE 0 END)"
_SANE_TIME = "CASE WHEN typeof(created) IN ('real', 'integer') AND created BETWEEN 0 AND 1e11 THEN created END"
_TABLE = """CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, version TEXT NOT NULL, answer TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, created REAL NOT NULL
) WITHOUT ROWID"""


class CachedModel(NamedTuple):
    """The answers of one model in a cache."""

    model: str
    answers: int
    prompt_tokens: int
    completion_tokens: int
    oldest: float
    newest: float


def default_path() -> Path:
    """The cache file of the user."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        folder = Path(given)
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA", Path.home()))
    else:
        folder = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return folder / "karat" / "answers.sqlite"


def cache_path(name: str | os.PathLike[str]) -> Path:
    """The path of a cache; "default" is the cache file of the user."""
    return default_path() if name == DEFAULT_CACHE else Path(name).expanduser()


class Cache:
    """A file of answers. Each is written as it arrives, so a killed process loses only the calls in flight."""

    def __init__(self, path: str | os.PathLike[str] = DEFAULT_CACHE) -> None:
        self.path = cache_path(path)
        self.read_only = False
        self._lock = RLock()
        self._connections: dict[int, sqlite3.Connection] = {}
        """By process: SQLite forbids to use a connection after a fork."""
        self._execute("SELECT 1")

    def get(self, key: str) -> Reply | None:
        """The answer with this key; None if there is none. A damaged one is deleted: the next call replaces it."""
        rows = self._execute("SELECT answer, prompt_tokens, completion_tokens FROM answers WHERE key = ?", key)
        if not rows:
            return None
        text, *counts = rows[0]
        try:
            answer = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            self.delete(key)
            return None
        return Reply(answer, *(one if is_count(one) else 0 for one in counts))

    def put(self, key: str, model: str, version: str, reply: Reply) -> None:
        """Store an answer, unless another process was first: then all processes agree on that one."""
        if not self.read_only:
            row = (key, model, version, json.dumps(reply.answer), *reply[1:], time.time())
            self._execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

    def delete(self, key: str) -> None:
        """Delete an answer that no longer passes its check."""
        if not self.read_only:
            self._execute("DELETE FROM answers WHERE key = ?", key)

    def check(self) -> None:
        """Read the whole file: a damaged page would be noticed only after calls were paid."""
        if self._execute("PRAGMA quick_check(1)") != [("ok",)]:
            raise BadArgument(f"the cache {self.path} is damaged", hint=_ANOTHER)

    def models(self) -> list[CachedModel]:
        """The models that have answers here."""
        sums = ", ".join(_SANE_SUM.format(name, MOST_TOKENS) for name in ("prompt_tokens", "completion_tokens"))
        days = ", ".join(f"coalesce({end}({_SANE_TIME}), 0)" for end in ("min", "max"))
        select = f"SELECT CAST(model AS TEXT), count(*), {sums}, {days} FROM answers GROUP BY 1 ORDER BY 1"  # noqa: S608
        rows = self._execute(select)
        return [CachedModel(*row) for row in rows]

    def size(self) -> int:
        """The size on disk in bytes, with SQLite's journal."""
        files = [self.path.with_name(self.path.name + end) for end in ("", "-wal", "-shm")]
        return sum(file.stat().st_size for file in files if file.exists())

    def clear(self, model: str | None = None) -> int:
        """Delete all answers, or those of a model, and shrink the file; return their number."""
        if self.read_only:
            raise BadArgument(f"cannot clear {self.path}: it is read-only")
        where, given = ("", ()) if model is None else (" WHERE model = ?", (model,))
        count = int(self._execute(f"SELECT count(*) FROM answers{where}", *given)[0][0])  # noqa: S608
        self._execute(f"DELETE FROM answers{where}", *given)  # noqa: S608
        self._execute("VACUUM")
        self._execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return count

    def export(self) -> Iterator[str]:
        """Every answer as a line of JSON, ordered by key."""
        secrets = Secrets()
        for row in self._rows(f"SELECT {', '.join(_FIELDS)} FROM answers ORDER BY key"):  # noqa: S608
            values = dict(zip(_FIELDS, row, strict=True))
            with suppress(ValueError, TypeError, RecursionError):
                values["answer"] = json.loads(values["answer"])
            yield escape_json(json.dumps(secrets.clean(values), default=repr))

    def __del__(self) -> None:
        with suppress(AttributeError, KeyError, sqlite3.Error):  # never opened, or closed by now
            self._connections[os.getpid()].close()

    def _execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._access() as connection:
            return connection.execute(statement, values).fetchall()

    def _rows(self, statement: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a statement, some hundred at a time in memory."""
        with self._access() as connection:
            cursor = connection.execute(statement)
        while True:
            with self._access():
                rows = cursor.fetchmany(500)
            if not rows:
                return
            yield from rows

    @contextmanager
    def _access(self) -> Iterator[sqlite3.Connection]:
        """The connection of this process, for one thread at a time."""
        with self._lock:
            try:
                if os.getpid() not in self._connections:
                    self._connections[os.getpid()] = self._open()
                yield self._connections[os.getpid()]
            except (sqlite3.Error, OSError) as error:
                raise BadArgument(
                    f"cannot use the cache {self.path}: {getattr(error, 'strerror', None) or error}",
                    hint=_ANOTHER,
                ) from error

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.path.exists():  # only for its owner; SQLite gives its journals the same mode
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        connection = self._connect("rw")
        try:
            self._prepare(connection)
        except sqlite3.OperationalError:
            connection.close()
            if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
                raise
            connection = self._connect("ro&immutable=1")
            connection.execute(_COLUMNS)
            self.read_only = True
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        opened = sqlite3.connect(
            address, timeout=_LOCK_TIMEOUT, isolation_level=None, check_same_thread=False, uri=True
        )
        opened.text_factory = partial(str, encoding="utf-8", errors="replace")
        return opened

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Create the table, or make sure that the file is a cache."""
        # The tables first: another process may create them, with both numbers, between two of these statements.
        tables, mark, form = (
            connection.execute(statement).fetchone()[0]
            for statement in ("SELECT count(*) FROM sqlite_master", "PRAGMA application_id", "PRAGMA user_version")
        )
        if tables and (mark, form) != (_APPLICATION, _FORMAT):
            connection.close()
            raise BadArgument(f"{self.path} is not a cache of this karat version", hint=_ANOTHER)
        _when_unlocked(connection, "PRAGMA journal_mode = WAL")
        # A power cut may lose the last answers, a kill does not; otherwise each answer would wait for the disk.
        connection.execute("PRAGMA synchronous = NORMAL")
        _when_unlocked(connection, "BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
        connection.execute(_TABLE)
        connection.execute("COMMIT")
        connection.execute(_COLUMNS)


def _when_unlocked(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement for which SQLite does not always wait itself while another process starts."""
    end = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


class OptionalCache:
    """A cache or none; a cache that fails during a run is reported once and then not used."""

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._calls = False
        """True if calls are made: from then on a failure of the cache must not lose an answer."""
        self.warning: str | None = None
        if cache is not None and cache.read_only:
            self._warn(f"the cache {cache.path} is read-only: new answers are not stored")

    def __bool__(self) -> bool:
        return self._cache is not None

    def before_calls(self) -> None:
        """Check the file before the first call; an answer that cannot be found or stored would be paid in every run."""
        if self._cache is not None and not self._calls:
            self._cache.check()
        self._calls = True

    def attempt(self, work: Callable[[Cache], T]) -> T | None:
        """Do something with the cache; None if there is none, or if it fails."""
        if self._cache is None:
            return None
        try:
            return work(self._cache)
        except BadArgument as error:
            if not self._calls:
                raise
            self._cache = None
            self._warn(f"{error.problem}; answers are no longer stored")
            return None

    def get(self, key: str) -> Reply | None:
        """The answer with this key, if there is one."""
        return self.attempt(lambda cache: cache.get(key))

    def _warn(self, warning: str) -> None:
        self.warning = warning
        log.warning("%s", warning)
