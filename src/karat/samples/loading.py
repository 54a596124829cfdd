"""Loading: the contents of files, data sets and objects, under karat's names, and what the caller chose of them."""

from __future__ import annotations

from os import PathLike
from typing import Any

from karat.errors import BadArgument
from karat.samples.datasets import converted, is_dataset, read_dataset
from karat.samples.field_map import FieldMap, Fields
from karat.samples.files import read_bytes, read_errors, read_files
from karat.samples.notes import Note
from karat.samples.separators import reading_notes
from karat.samples.sources import Source, find_source
from karat.samples.traces import Traces, may_hold_traces


class Selection:
    """The part of the data that is read: the columns that the caller names, and a split; with notes on the reading."""

    def __init__(self, fields: Fields | FieldMap = None, split: str | None = None) -> None:
        self.fields = FieldMap.of(fields)
        self.split = split
        self._splits = False
        """True if some of the data has splits."""
        self._notes: tuple[Note, ...] = ()

    def source(self, value: str | PathLike[str]) -> Source:
        """The files of a path, under karat's names."""
        found = find_source(value)
        with read_errors(found):
            self._notes += reading_notes(found)
        return found if self.fields is None else found._replace(fields=self.fields)

    def convert(self, value: Any, side: str) -> Any:
        """Objects and documents of other tools in karat's form."""
        found, splits = converted(value, side, self.split)
        self._splits = self._splits or splits
        return found

    def dataset(self, value: str | PathLike[str]) -> tuple[Any, str]:
        """The gold of a data set."""
        self._splits = True
        return read_dataset(value, self.split)

    def check(self, where: str = "") -> None:
        """Refuse what was chosen, but is in none of the data."""
        if self.fields is not None:
            self.fields.check(where)
        if self.split is not None and not self._splits:
            hint = "--gold scifact/ --split dev"
            raise BadArgument(
                "split chooses among the splits of a data set, and none is given", got=self.split, hint=hint
            )

    def notes(self) -> tuple[Note, ...]:
        """Notes on how the data was read."""
        return self._notes if self.fields is None else (*self._notes, *self.fields.notes())


def load(
    value: Any,
    name: str,
    *,
    skip_bad_rows: bool = False,
    selection: Selection | None = None,
    stages: bool = False,
) -> tuple[Any, str]:
    """The contents of a file or data set, or the value itself, and its name for messages.

    Of traces with several rankings each the last is read, or with `stages` all.
    """
    selection = selection or Selection()
    if isinstance(value, Traces):
        return _of_traces(value, name, stages=stages)
    if type(value) is dict or not isinstance(value, str | PathLike):
        value = value if isinstance(value, list) else selection.convert(value, name)
        return (value if selection.fields is None else selection.fields.apply(value, name)), name
    if name != "retrieved" and is_dataset(value):
        return selection.dataset(value)
    source = selection.source(value)
    loaded = read_files(source, name, skip_bad_rows=skip_bad_rows)
    if may_hold_traces(loaded):
        return _of_traces(selection.convert(loaded, name), source.name, stages=stages)
    return selection.convert(loaded, name), source.name


def load_bytes(name: str, content: bytes, kind: str, side: str, *, skip_bad_rows: bool = False) -> Any:
    """The contents of a file that is not on the disk, by the ending that it would have; `name` is for messages."""
    loaded = read_bytes(name, content, kind, skip_bad_rows=skip_bad_rows)
    if may_hold_traces(loaded):
        return _of_traces(Selection().convert(loaded, side), name, stages=False)[0]
    return loaded


def _of_traces(value: Any, source: str, *, stages: bool) -> tuple[Any, str]:
    """The samples of traces as rows, and the name of their source; other values as they are."""
    from karat.samples.traces.traces import rows_of_traces, spans_of_loaded, traces_of

    if isinstance(value, Traces):
        return rows_of_traces(value, stages=stages), value.source
    spans = spans_of_loaded(value)
    return (value, source) if spans is None else (rows_of_traces(traces_of(spans, source), stages=stages), source)
