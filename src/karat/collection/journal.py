"""The journal of a collection: `samples.jsonl.collect` has what is done, so that a stopped collection continues.

Its first line has the settings. Each other line has the outcome of one query, appended as soon as it is known. When all
queries are done, the samples are written to `samples.jsonl`, and the journal shrinks to its first line: the settings
with which the samples were collected. Digests of the retriever's code are kept, too: a later line has that of new code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, BinaryIO, NamedTuple

from karat._internal.display import valid_utf8
from karat._internal.output import Target, atomic_path, check_outputs, lock_file, new_name
from karat.errors import BadArgument

_FORMAT = 1
_ENDINGS = ("", ".jsonl", ".ndjson", ".json")
"""The endings of names that karat reads as JSONL."""
_SYNC = 1.0
"""Seconds between two moments at which the operating system is asked to store everything on the disk."""
Key = tuple[str, str, int]
"""A query: its id, its text, and the number of the repeat."""


class Done(NamedTuple):
    """The outcome of a query: what was retrieved and how long it took, or the error."""

    retrieved: list[Any] | None
    latency: float | None = None
    error: str | None = None


class Journal:
    """The journal of one output file."""

    def __init__(self, output: Target, settings: Mapping[str, Any], *, code: str = "", fresh: bool = False) -> None:
        """Open the journal, and read what is done.

        `settings` must be those of before, unless it begins afresh, or nothing was retrieved with them. `code` is a
        digest of the retriever's code, which may change.
        """
        check_outputs({"": output})
        self.output = Path(output)
        if self.output.suffix.lower() not in _ENDINGS:
            hint = f"-o {self.output.with_suffix('.jsonl')}"
            raise BadArgument("samples are collected as JSONL", got=str(output), hint=hint)
        self.path = Path(f"{os.fspath(output)}.collect")
        self.settings = dict(settings)
        self.code, self.older = code, 0
        """The digest of the code, and the number of results that were collected with other code."""
        self.done: dict[Key, Done] = {}
        self.finished = False
        """True if the output is complete: it has all queries of the journal."""
        self._synced = monotonic()
        self._file: BinaryIO | None = None
        self._fresh = fresh
        if not fresh:
            self._read()

    def _read(self) -> None:
        lines = _lines(self.path) if self.path.exists() else []
        if not lines:
            if self.output.exists():
                problem = f"{self.output} exists, and was not written by karat collect"
                raise BadArgument(problem, hint=f"-o {new_name(self.output)}, or --fresh (fresh=True)")
            return
        header, *added = lines
        self._check_format(header)
        before = _lines(self.output) if header.get("finished") and self.output.exists() else []
        self.finished = bool(before) and not added
        for line in (*before, *added):
            with suppress(KeyError, TypeError, ValueError):
                key = (str(line["id"]), str(line["query"]), int(line.get("repeat", 1)))
                self.done[key] = Done(line.get("retrieved"), line.get("latency"), line.get("error"))
        if before or any(one.error is None for one in self.done.values()):
            self._check(header)
            self._read_code([line for line in lines if "code" in line])
        else:
            self.done, self._fresh = {}, True

    def _read_code(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Count the results of other code than that of now."""
        last = lines[-1] if lines else {"code": self.code}
        if last["code"] == self.code:
            self.older = int(last.get("older", 0))
        else:
            self.older = sum(one.error is None for one in self.done.values())

    def _check_format(self, header: Mapping[str, Any]) -> None:
        if header.get("karat") != _FORMAT:
            problem = f"{self.path} is not a journal of karat collect"
            raise BadArgument(problem, hint=f"-o {new_name(self.output)}")

    def _check(self, header: Mapping[str, Any]) -> None:
        """Refuse other settings than those of before: results of two retrievers would be mixed."""
        before = header.get("settings", {})
        for name in {**self.settings, **before}:
            was, now = before.get(name), self.settings.get(name)
            if was != now:
                problem = f"{self.output} was collected with another {name}: {was}, not {now}"
                raise BadArgument(problem, hint=f"--fresh (fresh=True), or -o {new_name(self.output)}")

    def check_queries(self, known: Iterable[Key]) -> None:
        """Refuse a gold set that lacks queries which are done: they would be lost."""
        lost = {key for key, done in self.done.items() if done.error is None} - set(known)
        if lost:
            query = min(lost)[0]
            problem = f'{self.output} has {len(lost):,} queries that this gold set does not have, such as "{query}"'
            raise BadArgument(problem, hint=f"-o {new_name(self.output)}, or --fresh (fresh=True)")

    def open(self) -> None:
        """Begin to write; a last line that was cut off is removed."""
        if self._fresh and self.path.exists():
            with self.path.open("rb") as old:
                lock_file(old, self.path)
                self.path.unlink()
        self._file = file = self.path.open("a+b")
        lock_file(file, self.path)
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        os.ftruncate(file.fileno(), whole)
        os.write(file.fileno(), _json(self._code) if whole else self._header())

    @property
    def _code(self) -> dict[str, Any]:
        return {"code": self.code, "older": self.older}

    def _header(self, **more: Any) -> bytes:
        return _json({"karat": _FORMAT, **more, **self._code, "settings": self.settings})

    def add(self, key: Key, done: Done) -> None:
        """Append an outcome; it survives the end of this process, however it ends."""
        self.done[key] = done
        assert self._file is not None
        os.write(self._file.fileno(), _line(key, done))  # one call: a line is whole, or the last
        if monotonic() - self._synced > _SYNC:
            os.fsync(self._file.fileno())
            self._synced = monotonic()

    def close(self) -> None:
        """Stop writing; what is done stays for the next time."""
        if self._file is not None:
            with suppress(OSError):
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    def has(self, samples: Sequence[Mapping[str, Any]]) -> bool:
        """True if the output is complete and has these samples, with the same labels."""
        return self.finished and self.output.read_bytes() == json_lines(samples)

    def finish(self, samples: Sequence[Mapping[str, Any]]) -> None:
        """Write the samples to the output, and forget the outcomes."""
        for path, content in ((self.output, json_lines(samples)), (self.path, self._header(finished=True))):
            with atomic_path(path) as place, place.open("wb") as file:
                file.write(content)
        self.close()


def json_lines(samples: Iterable[Mapping[str, Any]]) -> bytes:
    """Samples as lines of JSON."""
    return b"".join(map(_json, samples))


def _line(key: Key, done: Done) -> bytes:
    fields = {"id": key[0], "query": key[1], "repeat": key[2], **done._asdict()}
    return _json({name: value for name, value in fields.items() if value is not None})


def _lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file as JSON objects; a line that was cut off when the process ended is left out."""
    import msgspec

    found = []
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadArgument(f"cannot read {path}: {error.strerror or error}") from error
    for line in content.split(b"\n")[:-1]:
        with suppress(msgspec.DecodeError, UnicodeError):
            if isinstance(one := msgspec.json.decode(line), dict):
                found.append(one)
    return found


def _json(value: Mapping[str, Any]) -> bytes:
    """A value as a line of JSON; what JSON has no form for is written as text."""
    import json

    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=_plain) + b"\n"
    except (UnicodeError, OverflowError):  # a lone surrogate, or an integer of more than 64 bits
        return json.dumps(_valid(value), default=_plain).encode() + b"\n"


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _valid(value: Any) -> Any:
    if isinstance(value, str):
        return valid_utf8([value])[0]
    if isinstance(value, dict):
        return {_valid(name): _valid(one) for name, one in value.items()}
    return [_valid(one) for one in value] if isinstance(value, list) else value
