"""The documents that gold and chunks come from, and where in them a text stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from karat._internal.arrays import Ints
from karat._internal.display import plural
from karat.errors import BadArgument, InputError, first_line, nearest
from karat.judges.text import fold_space
from karat.samples.files import Rows, read_file
from karat.samples.keys import as_id

_WORD = re.compile(r"\S+")
_MOST_PLACES = 1000
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
"""What lies in the folder of a corpus but is no document of it, unless it is asked for by name."""
_DOCUMENTS = (".md", ".txt", ".rst", ".html", ".htm", ".pdf")
_IDS = ("id", "doc", "doc_id", "_id", "document_id", "docid", "docno")
_TEXTS = ("text", "content", "page_content", "contents", "body")

CorpusLike: TypeAlias = str | PathLike[str] | Mapping[Any, Any]
Place: TypeAlias = tuple[int, int]


class Document:
    """A text in which others are looked up; white space may differ."""

    def __init__(self, text: str) -> None:
        self.text = text

    def places(self, wanted: str) -> list[Place]:
        """The places at which a text stands, as its first character and the one after its last."""
        exact = [(start, start + len(wanted)) for start in _finds(self.text, wanted)] if wanted.strip() else []
        return exact or self._folded_places(wanted)

    def every_place(self, wanted: str) -> list[Place]:
        """The same, with the places where only the white space differs beside those where nothing does."""
        found = self.places(wanted)
        others = [place for place in self._folded_places(wanted) if not _among(place, found)]
        return sorted([*found, *others])

    def _folded_places(self, wanted: str) -> list[Place]:
        folded = fold_space(wanted)
        return [self.origin(at, at + len(folded)) for at in _finds(self._folded[0], folded)]

    def origin(self, start: int, end: int) -> Place:
        """Where a range of the folded text stands in the text itself."""
        origin = self._folded[1]
        return int(origin[start]), int(origin[end - 1]) + 1

    @cached_property
    def _folded(self) -> tuple[str, Ints]:
        """The text with its white space folded, and where each character of it stood."""
        words = [(word.start(), word.end()) for word in _WORD.finditer(self.text)]
        # The space after a word stands where the word ended.
        origin = [np.arange(start, end + 1) for start, end in words]
        return fold_space(self.text), np.concatenate(origin) if origin else np.zeros(0, np.int64)


class Corpus:
    """Documents by name, each read when it is first wanted."""

    def __init__(self, given: CorpusLike) -> None:
        self._read: dict[str, Callable[[], str]] = {}
        self._known: dict[str, Document] = {}
        self._names: list[str] = []
        self._short: dict[str, str] = {}
        if isinstance(given, Mapping):
            self.told = f"dict of {plural(len(given), 'document', 'documents')}"
            self._take(given.items(), "corpus")
        elif isinstance(given, str | PathLike):
            path = Path(given).expanduser()
            if not str(given) or not path.exists():
                raise InputError(f'there is no corpus "{given}"', hint="a folder of texts, a JSONL file, or a dict")
            self.told = path.name or str(given)  # the same corpus on another machine has the same name
            self._read_folder(path) if path.is_dir() else self._read_rows(path)
        else:
            hint = "a folder, a JSONL file, or a dict of texts"
            raise BadArgument("a corpus is given by its path, or as a dict of texts", got=given, hint=f"corpus={hint}")
        if not self._read:
            raise InputError(f"the corpus {self.told} holds no documents")

    def __contains__(self, name: str) -> bool:
        return name in self._read

    def names(self) -> list[str]:
        """Every document once."""
        return self._names

    def name(self, given: str) -> str:
        """The one name of a document that may be called by several."""
        return self._short.get(given, given)

    def __getitem__(self, name: str) -> Document:
        if name not in self._known:
            self._known[name] = Document(self._read[name]())
        return self._known[name]

    def lacks(self, name: str, where: str) -> InputError:
        """The error for a document that is not there."""
        close = nearest(name, [*self._read, *self._short][:10_000])
        some = ", ".join(self._names[:3])
        meant = f' Did you mean "{close}"?' if close else ""
        hint = None if close else f"one that it has: {some}{', …' if len(self._names) > 3 else ''}"
        return InputError(f'{where}: no document "{name}" in the corpus {self.told}.{meant}', hint=hint)

    def _take(self, documents: Any, source: str) -> None:
        for name, given in documents:
            text = _first(given, _TEXTS) if isinstance(given, Mapping) else given
            if not isinstance(text, str):
                raise InputError(f'{source}: document "{name}" is {type(text).__name__}; wanted its text', got=text)
            if as_id(name) in self._read:
                raise InputError(f'{source}: two documents are called "{as_id(name)}"')
            self._read[as_id(name)] = lambda text=text: text  # type: ignore[misc]
            self._names.append(as_id(name))

    def _read_folder(self, folder: Path) -> None:
        """A document is named by its path in the folder; the ending may be left out where that is clear."""
        short: dict[str, list[str]] = {}
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
            name = path.relative_to(folder).as_posix()
            self._read[name] = lambda path=path: _read_text(path)  # type: ignore[misc]
            if path.suffix.lower() not in _TABLES:
                self._names.append(name)
                short.setdefault(name.removesuffix(path.suffix), []).append(name)
        self._short = {name: names[0] for name, names in short.items() if len(names) == 1 and name not in self._read}

    def _read_rows(self, path: Path) -> None:
        if path.suffix.lower() in _DOCUMENTS:
            hint = f"corpus={path.parent}"
            raise InputError(f"{path} is a document; a corpus is a folder of them, or a JSONL file", hint=hint)
        loaded = read_file(path)
        rows: Any = loaded.rows if isinstance(loaded, Rows) else loaded
        if isinstance(rows, Mapping):
            return self._take(rows.items(), str(path))
        rows = rows.to_dicts() if hasattr(rows, "to_dicts") else rows
        for number, row in enumerate(rows, 1):
            name = _first(row, _IDS) if isinstance(row, Mapping) else None
            if name is None or _first(row, _TEXTS) is None:
                raise InputError(
                    f"{path}, document {number}: wanted an id and a text", got=row, hint='{"id": "a", "text": "…"}'
                )
            self._take([(name, row)], str(path))
        return None


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _read_text(path: Path) -> str:
    """The text as it stands: no line ending is changed, for that would move every place after it."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text in UTF-8: {first_line(error)}") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _among(place: Place, places: list[Place]) -> bool:
    return any(place[0] < end and start < place[1] for start, end in places)


def _finds(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted) if wanted else -1
    count = 0
    while at >= 0 and count < _MOST_PLACES:
        yield at
        count += 1
        at = text.find(wanted, at + 1)
