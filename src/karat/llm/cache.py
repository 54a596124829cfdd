"""Answers on disk, so that none is paid for twice: SQLite, JSON values, for several processes at once."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from karat.errors import BadArgument
from karat.llm.model import Request

DEFAULT = "default"
"""Stands for the file in the user's own cache directory."""

_MARK = 0x6B617261  # "kara": tells a cache from any other database
_FORM = 1
_PATIENCE = 30.0
_TABLE = """CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, version TEXT NOT NULL, answer TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, created REAL NOT NULL
) WITHOUT ROWID"""
_LEFT_ALONE: list[sqlite3.Connection] = []
"""Connections of the process that this one was forked from: using or closing them here would spoil them there."""
_FIELDS = ("key", "model", "version", "answer", "prompt_tokens", "completion_tokens", "created")


class Kept(NamedTuple):
    """An answer out of the cache."""

    answer: dict[str, Any]
    prompt_tokens: int
    completion_tokens: int


class Held(NamedTuple):
    """What a cache holds of one model."""

    model: str
    answers: int
    prompt_tokens: int
    completion_tokens: int
    oldest: float
    newest: float


def default_path() -> Path:
    """Where answers are kept unless another file is named."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "karat" / "answers.sqlite"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "karat" / "answers.sqlite"
    folder = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path.home() / folder / "karat" / "answers.sqlite"


def path_of(named: str | os.PathLike[str]) -> Path:
    """The file that is meant."""
    return default_path() if named == DEFAULT else Path(named).expanduser()


def existing(named: str | os.PathLike[str]) -> Cache | None:
    """The cache in this file, or None where there is no file: looking makes none."""
    return Cache(named) if path_of(named).exists() else None


def key_of(model: str, request: Request) -> str:
    """The digest of all that an answer depends on: the model with its settings, the prompt's version, schema, input."""
    whole = json.dumps([model, request.version, request.schema, request.messages], sort_keys=True)
    return sha256(whole.encode()).hexdigest()


class Cache:
    """A file of answers. Each is written as it arrives, so a process that is killed loses none that it had."""

    def __init__(self, path: str | os.PathLike[str] = DEFAULT) -> None:
        self.path = path_of(path)
        self.read_only = False
        self._lock = RLock()
        self._process = os.getpid()
        self._at = self._open()

    def get(self, key: str) -> Kept | None:
        """The answer under this key, if there is one."""
        rows = self._do("SELECT answer, prompt_tokens, completion_tokens FROM answers WHERE key = ?", key)
        try:
            return Kept(json.loads(rows[0][0]), rows[0][1], rows[0][2]) if rows else None
        except ValueError:  # a damaged value is as good as none
            return None

    def put(self, key: str, model: str, version: str, kept: Kept) -> None:
        """Keep an answer; whoever was first stays, so that all processes agree."""
        if not self.read_only:
            row = (
                key,
                model,
                version,
                json.dumps(kept.answer),
                kept.prompt_tokens,
                kept.completion_tokens,
                time.time(),
            )
            self._do("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?)", *row)

    def drop(self, key: str) -> None:
        """Forget an answer that no longer passes its check."""
        if not self.read_only:
            self._do("DELETE FROM answers WHERE key = ?", key)

    def held(self) -> list[Held]:
        """What there is of each model."""
        rows = self._do(
            "SELECT model, count(*), sum(prompt_tokens), sum(completion_tokens), min(created), max(created) "
            "FROM answers GROUP BY model ORDER BY model"
        )
        return [Held(*row) for row in rows]

    def size(self) -> int:
        """The bytes on disk, with those not yet folded into the main file."""
        files = [self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))]
        return sum(file.stat().st_size for file in files if file.exists())

    def clear(self, model: str | None = None) -> int:
        """Forget all answers, or those of a model, and give the space back; how many they were."""
        if self.read_only:
            raise BadArgument(f"cannot clear {self.path}: it is read-only")
        where, given = ("", ()) if model is None else (" WHERE model = ?", (model,))
        count = int(self._do(f"SELECT count(*) FROM answers{where}", *given)[0][0])  # noqa: S608
        self._do(f"DELETE FROM answers{where}", *given)  # noqa: S608
        self._do("VACUUM")
        self._do("PRAGMA wal_checkpoint(TRUNCATE)")
        return count

    def export(self) -> Iterator[str]:
        """Every answer as a line of JSON, in the order of the keys."""
        after = ""
        while rows := self._do(f"SELECT {', '.join(_FIELDS)} FROM answers WHERE key > ? ORDER BY key LIMIT 500", after):  # noqa: S608
            for row in rows:
                told = dict(zip(_FIELDS, row, strict=True))
                with suppress(ValueError):
                    told["answer"] = json.loads(told["answer"])
                yield json.dumps(told)
            after = rows[-1][0]

    def __del__(self) -> None:
        with suppress(AttributeError, sqlite3.Error):  # never opened, or closed by now
            if self._process == os.getpid():
                self._at.close()
            else:
                _LEFT_ALONE.append(self._at)

    def _do(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            if self._process != os.getpid():
                _LEFT_ALONE.append(self._at)
                self._process, self._at = os.getpid(), self._open()
            try:
                return self._at.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise self._trouble(error) from error

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = self._connect("rwc")
            try:
                self._prepare(connection)
            except sqlite3.OperationalError:
                connection.close()
                if os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK):
                    raise
                connection = self._connect("ro&immutable=1")  # nobody writes what cannot be written
                connection.execute("SELECT count(*) FROM answers").fetchone()
                self.read_only = True
        except (sqlite3.Error, OSError) as error:
            raise self._trouble(error) from error
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"{self.path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(address, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=True)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Make the table, or make sure that it is one of ours."""
        mark = connection.execute("PRAGMA application_id").fetchone()[0]
        form = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and (mark, form) != (_MARK, _FORM):
            connection.close()
            raise BadArgument(
                f"{self.path} is not a cache that this karat can use", hint="name another file, or cache=None"
            )
        _until_free(connection, "PRAGMA journal_mode = WAL")
        # A power cut may take the last answers, a kill does not; without it each answer would wait for the disk.
        connection.execute("PRAGMA synchronous = NORMAL")
        _until_free(connection, "BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {_MARK}")
        connection.execute(f"PRAGMA user_version = {_FORM}")
        connection.execute(_TABLE)
        connection.execute("COMMIT")

    def _trouble(self, error: Exception) -> BadArgument:
        why = getattr(error, "strerror", None) or str(error)
        return BadArgument(
            f"cannot use the cache {self.path}: {why}",
            hint="name another file, or cache=None; a damaged one may be deleted, its answers can be asked for again",
        )


def _until_free(connection: sqlite3.Connection, statement: str) -> None:
    """Run a statement for which SQLite does not always wait by itself while another process begins."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            connection.execute(statement)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return


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
