"""The aspects of a run: a table of those that are found least, and sentences on what is never found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karat._internal.display import cut_name, percent, plural
from karat.run import Run
from karat.run.aspect_summary import AspectSummary, aspects_of_run
from karat.samples.notes import Note

_SHOWN, _NAMED = 10, 3
_LENGTH = 30


def header(found: AspectSummary) -> list[str]:
    """The names of the columns."""
    return ["aspect", "queries", "found" if found.k is None else f"in the top {found.k}", "below it", "not retrieved"]


def rows(found: AspectSummary) -> list[list[str]]:
    """One row per aspect, those found least first, the first ten."""
    return [
        [cut_name(row.name, _LENGTH), f"{row.queries:,}", percent(row.found / row.queries), f"{row.below:,}",
         f"{row.missed:,}"]
        for row in found.rows[:_SHOWN]
    ]  # fmt: skip


def remarks(run: Run) -> list[str]:
    """Sentences on the aspects that are found least, and on queries without aspects."""
    found = run.aspects
    if found is None:
        names = ", ".join(metric.name for metric in run.metrics if metric.of_aspects)
        return [f"The gold that was judged has no aspects: {names} is undefined."] if names else []
    lines = []
    least = [row for row in found.rows if row.found < row.queries][:_NAMED]
    if least and found.repeated:
        each = ", ".join(f'"{cut_name(row.name, _LENGTH)}" {row.found:,} of {row.queries:,}' for row in least)
        lines.append(f"Aspects that the fewest queries find{_within(found.k)}: {each}.")
    if found.without:
        few = ", ".join(cut_name(query, _LENGTH) for query in found.without[:2])
        queries = plural(len(found.without), "query has", "queries have")
        lines.append(f"{queries} gold without aspects ({few}): metrics of aspects are undefined there.")
    return lines


def lost_aspects(run: Run, k: int) -> list[str]:
    """A sentence on the aspects of all queries: served in the top k, below it, or by nothing retrieved."""
    found = aspects_of_run(run, k)
    if found is None or not found.rows:
        return []
    whole, top, below, missed = (
        sum(own) for own in zip(*((row.queries, row.found, row.below, row.missed) for row in found.rows), strict=True)
    )
    example = ""
    if found.missed is not None:
        name, query = (cut_name(text, _LENGTH) for text in found.missed)
        example = f', such as "{name}" of {query}'
    of = plural(whole, "aspect", "aspects")
    return [
        f"Aspects: of {of} of queries {top:,} in the top {k}, {below:,} below it, {missed:,} not retrieved{example}."
    ]


def data(run: Run) -> dict[str, Any]:
    """The aspects as plain values."""
    found = run.aspects
    if found is None:
        return {}
    each = [row._asdict() | {"missed": row.missed} for row in found.rows]
    return {"aspects": {"k": found.k, "rows": each, "without": len(found.without)}}


def _within(k: int | None) -> str:
    return "" if k is None else f" in the top {k}"


def _aspects_read(note: Note, run: Run) -> str:
    source, column = note.details["source"], note.details["column"]
    if column == "iteration":
        return f"{source}: the second column (iteration) differs within queries: it is read as the aspects of the gold."
    return f'{source}: column "{column}" has the aspects of the gold.'


ASPECT_SENTENCES: dict[str, Callable[[Note, Run], str]] = {"aspects_read": _aspects_read}
"""The sentences for the notes on aspects."""
