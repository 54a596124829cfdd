"""Corpus: the documents that gold and chunks come from, and the places at which a text occurs in them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from karat._internal.arrays import Ints
from karat._internal.display import plural
from karat._internal.grams import Grams
from karat.errors import BadArgument, InputError, nearest
from karat.judges.text import fold_space, fold_space_with_origins
from karat.samples.datasets import corpus_of
from karat.samples.files import read_file
from karat.samples.json_rows import Rows
from karat.samples.keys import as_id

_MAX_PLACES = 1000
_TABLES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
"""Files in a corpus folder that are not documents, unless an item names them."""
_DOCUMENTS = (".md", ".txt", ".rst", ".html", ".htm", ".pdf")
_IDS = ("id", "doc", "doc_id", "_id", "document_id", "docid", "docno")
_TEXTS = ("text", "content", "page_content", "contents", "body")

CorpusLike: TypeAlias = str | PathLike[str] | Mapping[Any, Any]
Place: TypeAlias = tuple[int, int]


class Document:
    """A text that can be searched for other texts; white space may differ."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._plain = Grams([text])

    def places(self, wanted: str) -> list[Place]:
        """The places at which a text occurs, as start and end; only if there are none, those with other white space."""
        return self._plain_places(wanted) or self._folded_places(wanted)

    def every_place(self, wanted: str) -> list[Place]:
        """The places at which a text occurs, with the same or with other white space."""
        found = self._plain_places(wanted)
        ends = [end for _, end in found]  # ascending, since all have the same length
        others = [
            (start, end)
            for start, end in self._folded_places(wanted)
            if (at := bisect_right(ends, start)) == len(found) or found[at][0] >= end
        ]
        return sorted([*found, *others])

    def contains(self, wanted: str) -> bool:
        """True if a text occurs; white space may differ."""
        return next(self._folded.places(fold_space(wanted)), None) is not None

    def _plain_places(self, wanted: str) -> list[Place]:
        found = islice(self._plain.places(wanted), _MAX_PLACES) if wanted.strip() else ()
        return [(start, start + len(wanted)) for start in found]

    def _folded_places(self, wanted: str) -> list[Place]:
        folded = fold_space(wanted)
        return [self.origin(at, at + len(folded)) for at in islice(self._folded.places(folded), _MAX_PLACES)]

    def origin(self, start: int, end: int) -> Place:
        """The range of the text that is this range of the folded text."""
        origins = self._origins
        return int(origins[start]), int(origins[end - 1]) + 1

    @cached_property
    def _origins(self) -> Ints:
        return fold_space_with_origins(self.text)[1]

    @cached_property
    def _folded(self) -> Grams:
        folded = fold_space(self.text)
        return self._plain if folded == self.text else Grams([folded])


class Corpus:
    """Documents by name; files are read when they are first used."""

    def __init__(self, given: CorpusLike) -> None:
        self._source: dict[str, str | Path] = {}
        self._read: dict[str, Document] = {}
        self._names: list[str] = []
        self._short: dict[str, str] = {}
        if isinstance(given, Mapping):
            self.label = f"dict of {plural(len(given), 'document', 'documents')}"
            self._add(given.items(), "corpus")
        elif isinstance(given, str | PathLike):
            path = Path(given).expanduser()
            if not str(given) or not path.exists():
                raise InputError(f'there is no corpus "{given}"', hint='corpus="folder/", or corpus="documents.jsonl"')
            path = corpus_of(path) or path
            self.label = path.name or str(given)  # the same on other machines
            self._add_folder(path) if path.is_dir() else self._add_rows(path)
        else:
            hint = 'corpus="folder/", or corpus={"name": "text"}'
            raise BadArgument("a corpus is given by its path, or as a dict of texts", got=given, hint=hint)
        if not self._source:
            raise InputError(f"the corpus {self.label} has no documents")

    def __contains__(self, name: str) -> bool:
        return name in self._source

    def __getitem__(self, name: str) -> Document:
        if name not in self._read:
            source = self._source[name]
            self._read[name] = Document(_read_text(source) if isinstance(source, Path) else source)
        return self._read[name]

    def names(self) -> list[str]:
        """The name of every document."""
        return self._names

    def name(self, given: str) -> str:
        """The full name of a document that may be given without its file extension."""
        return self._short.get(given, given)

    def missing(self, name: str, where: str) -> InputError:
        """The error for a document that the corpus does not have."""
        close = nearest(name, [*self._source, *self._short][:10_000])
        meant = f' Did you mean "{close}"?' if close else ""
        some = ", ".join(self._names[:3]) + (", …" if len(self._names) > 3 else "")
        hint = None if close else f"one of: {some}"
        return InputError(f'{where}: no document "{name}" in the corpus {self.label}.{meant}', hint=hint)

    def _add(self, documents: Iterable[tuple[Any, Any]], source: str) -> None:
        for name, given in documents:
            text = _first(given, _TEXTS) if isinstance(given, Mapping) else given
            if not isinstance(text, str):
                raise InputError(f'{source}: document "{name}" is {type(text).__name__}; expected its text', got=text)
            if as_id(name) in self._source:
                raise InputError(f'{source}: two documents are called "{as_id(name)}"')
            self._source[as_id(name)] = text
            self._names.append(as_id(name))

    def _add_folder(self, folder: Path) -> None:
        """A document is named by its path in the folder; its extension is optional if that is unambiguous."""
        short: dict[str, list[str]] = {}
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
            name = path.relative_to(folder).as_posix()
            self._source[name] = path
            if path.suffix.lower() not in _TABLES:
                self._names.append(name)
                short.setdefault(name.removesuffix(path.suffix), []).append(name)
        self._short = {name: names[0] for name, names in short.items() if len(names) == 1 and name not in self._source}

    def _add_rows(self, path: Path) -> None:
        if path.suffix.lower() in _DOCUMENTS:
            hint = f"corpus={path.parent}"
            raise InputError(f"{path} is a document; a corpus is a folder of documents, or a JSONL file", hint=hint)
        loaded = read_file(path)
        rows: Any = loaded.rows if isinstance(loaded, Rows) else loaded
        if isinstance(rows, Mapping):
            return self._add(rows.items(), str(path))
        rows = rows.to_dicts() if hasattr(rows, "to_dicts") else rows
        for number, row in enumerate(rows, 1):
            name = _first(row, _IDS) if isinstance(row, Mapping) else None
            if name is None or _first(row, _TEXTS) is None:
                example = '{"id": "a", "text": "…"}'
                raise InputError(f"{path}, document {number}: expected an id and a text", got=row, hint=example)
            self._add([(name, row)], str(path))
        return None


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _read_text(path: Path) -> str:
    """The text with its original line endings: to change them would move every offset after them."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        from karat.samples.encoding import encoding_error

        raise (encoding_error(str(path), str(path)) or InputError(f"{path} is not UTF-8 text")) from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
