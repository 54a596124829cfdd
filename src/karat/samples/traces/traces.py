"""Read traces: spans of Phoenix, LangSmith, Langfuse, MLflow or OpenTelemetry, from files or tables, as samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from karat.errors import InputError
from karat.samples.columns import Side
from karat.samples.files import form_of, read_errors, read_files, scan
from karat.samples.frames import as_polars, is_frame
from karat.samples.json_rows import Rows
from karat.samples.notes import Note
from karat.samples.sources import Source, find_source, first_text, open_unpacked
from karat.samples.traces import MARKERS, Traces, is_table_of_traces, may_be_traces, may_hold_traces
from karat.samples.traces.span_filter import SpanFilter
from karat.samples.traces.span_set import SpanSet
from karat.samples.traces.trace_formats import add_row, find_format, rows_in
from karat.samples.traces.trace_gold import with_gold
from karat.samples.traces.trace_samples import samples_of_spans

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_A_TIME = 1000
"""The number of rows of a table that are read at a time."""


def spans_of_lines(lines: Iterable[bytes]) -> SpanSet | None:
    """The spans of lines of JSON; None if the first line that is JSON is no trace.

    A line that cannot be read is counted.
    """
    spans, known = SpanSet(), False
    decoder = msgspec.json.Decoder()
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            row = decoder.decode(line.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            spans.add(None)
            if not known and spans.counts.unreadable > ROWS_AT_A_TIME:
                return None
            continue
        if known:
            add_row(row, spans, number)
            continue
        first = list(rows_in(row))  # a whole document may be one line
        if not first or find_format(first[0]) is None:
            return None
        known = True
        for one in first:
            add_row(one, spans, number)
    return spans if known else None


def spans_of_frames(frames: Iterable[pl.DataFrame]) -> SpanSet | None:
    """The spans of a table in pieces; None if its first row is no trace."""
    spans, number = SpanSet(), 0
    for frame in frames:
        for row in frame.iter_rows(named=True):
            number += 1
            if number == 1 and find_format(row) is None:
                return None
            add_row(row, spans, number)
    return spans if number else None


def spans_of_value(value: Any) -> SpanSet | None:
    """The spans of a JSON document, or of rows; None if the first is no trace."""
    spans, known = SpanSet(), False
    for number, row in enumerate(map(plain, rows_in(value)), 1):
        if not known and find_format(row) is None:
            return None
        known = True
        add_row(row, spans, number)
    return spans if known else None


def plain(row: Any) -> Any:
    """An object of MLflow or LangSmith as the dict that it writes of itself."""
    if isinstance(row, Mapping):
        return row
    for name, options in (("to_dict", {}), ("model_dump", {"mode": "json"})):
        if callable(write := getattr(row, name, None)):
            return write(**options)
    return row


def spans_of_loaded(loaded: Any) -> SpanSet | None:
    """The spans in the contents of a file; None if it has no traces."""
    if isinstance(loaded, SpanSet):
        return loaded
    if not may_hold_traces(loaded):
        return None
    if is_frame(loaded):
        return spans_of_frames([as_polars(loaded)])
    return spans_of_value(loaded.rows if isinstance(loaded, Rows) else loaded)


def is_source_of_traces(source: Source) -> bool:
    """True if the first row of a local file, or of the first of several, is a trace."""
    one = source.each()[0]
    if source.remote or not Path(one.files[0]).is_file():
        return False
    if one.kind == ".csv":
        with read_errors(one):
            header = first_text(one, one.files[0])
        if not any(name in header for name in MARKERS):  # a scan would unpack the whole file
            return False
    if one.is_table or one.kind == ".csv":
        head = scan(one).head(1)
        with read_errors(one):
            return is_table_of_traces(head.collect_schema().names()) and spans_of_frames([head.collect()]) is not None
    if not may_be_traces(form_of(one, one.files[0])[1]) or (stream := open_unpacked(one.files[0])) is None:
        return False
    with read_errors(one), stream as file:
        return spans_of_lines(line for line in [next((line for line in file if line.strip()), b"")]) is not None


def spans_of_parts(parts: Iterable[Any]) -> SpanSet | None:
    """The spans of several files; None if one has no traces."""
    spans = SpanSet()
    for part in parts:
        own = spans_of_loaded(part)
        if own is None:
            return None
        spans.merge(own)
    return spans


def rows_of_traces(traces: Traces, *, stages: bool = False) -> Rows:
    """Traces as rows: of samples with stages the last ranking, or with `stages` only those samples, in full."""
    kept = [number for number, row in enumerate(traces) if not stages or "stages" in row]
    rows = [traces[number] for number in kept] if stages else list(map(_last_stage, traces))
    notes = tuple(map(_without_stages, traces.notes)) if stages else traces.notes
    lines = traces.lines if len(traces.lines) == len(traces) else range(1, len(traces) + 1)
    return Rows(rows or [*traces], [lines[number] for number in kept] or [*lines], notes=notes, traced=True)


def _without_stages(note: Note) -> Note:
    """A note that does not count the samples with stages."""
    return replace(note, sums={name: value for name, value in note.sums.items() if name != "stages"})


def _last_stage(sample: dict[str, Any]) -> dict[str, Any]:
    if "stages" not in sample:
        return sample
    *_, last = sample["stages"].values()
    return {**{name: value for name, value in sample.items() if name != "stages"}, "retrieved": last}


def traces_of(spans: SpanSet, source: str, choice: SpanFilter | None = None, *, steps: bool = True) -> Traces:
    """The samples of spans; an error if there is none."""
    choice = choice or SpanFilter()
    spans.choose(choice)
    rows, lines, notes = samples_of_spans(spans, steps=steps)
    if not rows:
        raise _no_sample(spans, source, choice)
    return Traces(rows, lines, notes, source)


def _no_sample(spans: SpanSet, source: str, choice: SpanFilter) -> InputError:
    counts = spans.counts
    what = ", ".join(spans.formats) or "traces"
    if counts.filtered:
        return choice.nothing_left(source, counts.filtered)
    if counts.without_documents:
        problem = f"{source}: {what}, but no span of a retriever has documents"
        return InputError(problem, got=f"{counts.without_documents:,} spans of retrievers without documents")
    return InputError(f"{source}: {what}, but no span of a retriever", got=f"{counts.spans:,} spans")


def read_traces(
    traces: Any,
    *,
    gold: Any = None,
    where: str | Iterable[str] = (),
    since: Any = None,
    until: Any = None,
    steps: bool = True,
) -> Traces:
    """Read what was retrieved from traces, as samples for `karat.evaluate` and `karat.stages`.

    Traces are recognized by their content: OpenTelemetry spans with the attributes of OpenInference or of GenAI
    (OTLP-JSON, tables of Phoenix), runs of LangSmith, observations of Langfuse, traces of MLflow.

    Args:
        traces: a path, a frame such as `client.spans.get_spans_dataframe()` of Phoenix, or a list of dicts, of runs of
            LangSmith, or of traces of MLflow.
        gold: the gold, in any form that `karat.evaluate` accepts; it is found by the text of the query. Or pass it to
            `karat.evaluate`.
        where: conditions on the attributes of spans, such as 'session.id == "abc" and latency > 500'; of several all
            must hold.
        since: only spans that started at this time or later: "2026-11-01", a datetime, or "7d" for seven days ago.
        until: only spans that started before this time.
        steps: False makes a sample of each span; otherwise several retrievers of a trace are the steps of one sample.

    Returns:
        A list of samples as dicts, with `notes` on what was recognized and what was dropped.

    Example:
        >>> samples = karat.read_traces("traces.jsonl", since="7d")
        >>> karat.evaluate(samples, "recall@5", gold="gold.jsonl").mean["recall@5"]
        0.8
    """
    from karat.samples.read import read_side

    choice = SpanFilter(where, since, until)
    spans, source = _spans(traces)
    if spans is None:
        kinds = "OTLP-JSON, or an export of Phoenix, LangSmith, Langfuse or MLflow"
        raise InputError(f"{source}: no traces that karat knows", hint=kinds)
    found = traces_of(spans, source, choice, steps=steps)
    return found if gold is None else _with_gold(found, read_side(gold, "gold"))


def _spans(traces: Any) -> tuple[SpanSet | None, str]:
    """The spans of any source, and its name."""
    if isinstance(traces, str | PathLike):
        source = find_source(traces)
        return spans_of_loaded(read_files(source)), source.name
    if is_frame(traces):
        named = [name for name in getattr(getattr(traces, "index", None), "names", ()) if name is not None]
        lost = [name for name in named if name not in traces.columns]
        return spans_of_loaded(as_polars(traces.reset_index(lost) if lost else traces)), "traces"
    return spans_of_value(traces if isinstance(traces, Mapping) else list(traces)), "traces"


def _with_gold(traces: Traces, gold: Side) -> Traces:
    joined = with_gold(traces, gold)
    notes = (*traces.notes, *joined.notes, *gold.all_notes)
    return Traces(joined.rows, [traces.lines[row] for row in joined.kept], notes, traces.source)
