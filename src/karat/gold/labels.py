"""Labels on disk: a file to which every keystroke is appended, and stored before it is acknowledged.

The file is the truth, and gold is made from it. It is never rewritten: a process that is killed, or a full disk, can
only cut off its last line, which is moved to a file `….torn` at the next opening. Only one process writes it; several
people label in that one at once, and those who wait at the same moment share one `fsync`.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Condition
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from karat._internal.display import valid_utf8
from karat._internal.label_lines import (
    BINARY,
    FORMAT,
    GRADED,
    SETTLED,
    Answer,
    Grade,
    Header,
    Key,
    Label,
    LabelLines,
    Quote,
    Scale,
    StandingLabels,
    by_item,
    checked_label,
    checked_person,
    checked_scale,
    decide,
    is_labels_file,
    parse_labels,
    parse_scale,
    read_labels,
)
from karat._internal.output import Target, check_outputs, lock_file, new_name, sync_folder
from karat.errors import BadArgument

__all__ = [
    "BINARY", "FORMAT", "GRADED", "SETTLED", "Answer", "Grade", "Header", "Key", "Label", "LabelFile", "LabelLines",
    "Quote", "Scale", "StandingLabels", "by_item", "check_pool", "checked_person", "decide", "is_labels_file",
    "labels_path", "parse_scale", "read_labels",
]  # fmt: skip


_ENDING = ".labels.jsonl"


def labels_path(gold: Target) -> Path:
    """The path of the labels from which a file of gold is made: `gold.labels.jsonl` for `gold.jsonl`."""
    path = Path(gold)
    if not path.name or path.is_dir():
        raise BadArgument(f"{path} is a folder", hint=f"-o {path / 'gold.jsonl'}")
    if path.name.endswith(_ENDING):
        gold = path.with_name(path.name.replace(_ENDING, ".jsonl"))
        raise BadArgument(f"{path} is a name of labels; the gold has another one", hint=f"-o {gold}")
    return path.with_name(f"{path.stem}{_ENDING}")


def check_pool(path: Target, content: LabelLines, pool: str, pairs: Collection[tuple[str, str]] | None = None) -> None:
    """Refuse labels of another pool, unless all of them are of `pairs`, the query ids and item keys of this one."""
    if pool in ("", content.header.pool):
        return
    for one in content.lines:
        if pairs is None or (one.query, one.item) not in pairs:
            problem = f'{path} has labels of another pool, such as query "{one.query}", item "{one.item}"'
            raise BadArgument(problem, hint=_other_gold(path))


def _other_gold(labels: Target) -> str:
    """Another file of gold, to suggest: its labels are in another file, too."""
    other = new_name(labels)
    return f"-o {other.with_name(other.name.replace(_ENDING, '.jsonl'))}"


class LabelFile:
    """An open labels file. Its methods may be called from several threads."""

    def __init__(
        self,
        path: Target,
        *,
        pool: str = "",
        pairs: Collection[tuple[str, str]] | None = None,
        scale: Scale | None = None,
    ) -> None:
        """Open or create the file, lock it, and repair its last line.

        Args:
            path: the file, usually `labels_path("gold.jsonl")`.
            pool: the digest of the pool. Labels of another pool are refused, unless all of them are of `pairs`.
            pairs: every query id and item key of the pool; None accepts no other pool.
            scale: the grades; default: those of the file, or 0 to 3 for a new one. Another scale than that of the
                file is refused.
        """
        self.path = Path(path)
        self.torn = 0
        """The number of bytes of a last line that was cut off, and is in the file `….torn` now."""
        self._turn = Condition()
        self._waiting: list[bytes] = []
        self._queued = self._stored = self._lost = 0
        self._writing = self._is_cut = False
        self._error: BaseException | None = None
        check_outputs({"": path})
        is_new = not self.path.exists()
        self._file: BinaryIO | None = self.path.open("a+b", buffering=0)
        try:
            lock_file(self._file, self.path)
            content = self._load()
            self._repair(content)
            self._write_header(content, pool, pairs, scale)
        except BaseException:
            self._file.close()
            raise
        if is_new:
            sync_folder(self.path.parent)

    def _load(self) -> LabelLines:
        """Read the file from its begin, and fold its lines."""
        content = parse_labels(self.path.read_bytes(), str(self.path))
        self.header = content.header
        self._lines = content.lines
        self._labels = content.standing()
        self._number = max((line.number for line in content.lines), default=0)
        self._size = content.whole
        return content

    def _repair(self, content: LabelLines) -> None:
        """Move a torn last line to a file of its own; end a whole one."""
        assert self._file is not None
        if content.torn:
            with Path(f"{self.path}.torn").open("ab") as side:
                side.write(content.torn + b"\n")
                side.flush()
                os.fsync(side.fileno())
            self.torn = len(content.torn)
            os.ftruncate(self._file.fileno(), content.whole)
        elif content.whole and self._last_byte() != b"\n":
            self._store(b"\n")

    def _last_byte(self) -> bytes:
        assert self._file is not None
        self._file.seek(-1, os.SEEK_END)
        return self._file.read(1)

    def _write_header(
        self, content: LabelLines, pool: str, pairs: Collection[tuple[str, str]] | None, scale: Scale | None
    ) -> None:
        """Begin a new file; refuse another scale or pool; note a pool that has grown."""
        if not content.whole:
            header = Header(FORMAT, pool, checked_scale(scale or GRADED))
        else:
            header = self.header
            if scale is not None and scale.values != header.scale.values:
                problem = f"{self.path} has grades {list(header.scale.values)}, not {list(scale.values)}"
                raise BadArgument(problem, hint=_other_gold(self.path))
            if pool in ("", header.pool):
                return
            check_pool(self.path, content, pool, pairs)
            header = msgspec.structs.replace(header, pool=pool)
        self._store(msgspec.json.encode(header) + b"\n")
        self.header = header

    @property
    def scale(self) -> Scale:
        """The grades that people choose from."""
        return self.header.scale

    @property
    def lines(self) -> list[Label]:
        """Every line, in the order of the file."""
        with self._turn:
            return self._lines.copy()

    def latest(self) -> dict[Key, Label]:
        """The label that stands, by query, item and person."""
        with self._turn:
            return self._labels.latest.copy()

    def append(self, label: Label) -> Label:
        """Append a label, with its time and number. It is on the disk when this returns."""
        if label.answer == "undo":
            raise BadArgument("an undo is no label of its own", got=label.answer, hint="LabelFile.undo(by)")
        label = checked_label(_clean(label), self.scale)
        with self._turn:
            label = self._queue(label)
            self._wait()
        return label

    def undo(self, by: str) -> Label | None:
        """Take back the last line of a person that stands, also a skip; return it, or None if there is none."""
        with self._turn:
            last = self._labels.last(checked_person(by))
            if last is not None:
                self._queue(Label(last.query, last.item, "undo", by=last.by))
                self._wait()
            return last

    def _queue(self, label: Label) -> Label:
        """Give a label its number, fold it, and let it wait for the disk."""
        if self._file is None:
            raise BadArgument(f"{self.path} is closed")
        label = msgspec.structs.replace(label, number=self._number + 1, time=label.time or _now())
        self._waiting.append(msgspec.json.encode(label) + b"\n")
        self._number += 1
        self._queued += 1
        self._lines.append(label)
        self._labels.add(label)
        return label

    def _wait(self) -> None:
        """Wait until the last line queued is on the disk. The first who waits writes for all others."""
        mine = self._queued
        while self._stored < mine:
            if self._writing:
                self._turn.wait()
            else:
                with suppress(OSError):
                    self._write_all()
            if mine <= self._lost:
                raise BadArgument(f"cannot write {self.path}: {self._error}") from self._error

    def _write_all(self) -> None:
        """Write the lines that wait; the lock is released meanwhile, so that more lines can be queued."""
        lines, last = b"".join(self._waiting), self._queued
        self._waiting.clear()
        self._writing = True
        self._turn.release()
        failure: BaseException | None = None
        try:
            self._store(lines)
        except BaseException as error:  # also Ctrl-C: nobody may believe that these lines are stored
            failure = error
            raise
        finally:
            self._turn.acquire()
            self._writing = False
            self._turn.notify_all()
            if failure is None:
                self._stored = last
            else:
                self._forget(failure)

    def _forget(self, failure: BaseException) -> None:
        """Return to the state of the disk: no line that waits was written, and a part of one is removed."""
        self._error, self._is_cut = failure, True
        self._waiting.clear()
        self._lost = self._stored = self._queued
        with suppress(OSError):
            self._cut()
        self._load()

    def _cut(self) -> None:
        """Remove a part of a line after a failure."""
        assert self._file is not None
        os.ftruncate(self._file.fileno(), self._size)
        self._is_cut = False

    def _store(self, content: bytes) -> None:
        """Write bytes at the end of the file, down to the disk."""
        assert self._file is not None
        if self._is_cut:
            self._cut()
        written = 0
        while written < len(content):
            written += os.write(self._file.fileno(), content[written:])
        os.fsync(self._file.fileno())
        self._size += len(content)

    def close(self) -> None:
        """Write what waits, and let another process write the file."""
        with self._turn:
            self._wait()
            if self._file is not None:
                self._file.close()
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _clean(label: Label) -> Label:
    """The label with the name in its usual form, and texts that can be written as UTF-8."""
    query, item, note = valid_utf8([label.query, label.item, label.note])
    texts = valid_utf8([one.text for one in label.quotes])
    quotes = tuple(Quote(one.start, one.end, text) for one, text in zip(label.quotes, texts, strict=True))
    by = checked_person(label.by)
    return msgspec.structs.replace(label, query=query, item=item, note=note, quotes=quotes, by=by)
