"""Notes on traces as sentences: the spans that became samples, those that were dropped, and their gold."""

from __future__ import annotations

from collections.abc import Callable

from karat._internal.display import plural
from karat.run import Run
from karat.samples.notes import Note

_DROPPED = {
    "filtered": ("left out by where, since or until", "left out by where, since or until"),
    "nested": ("inside another retriever", "inside other retrievers"),
    "without_documents": ("without documents", "without documents"),
    "failed_steps": ("that failed in a trace where others did not", "that failed in traces where others did not"),
    "other": ("of another kind", "of other kinds"),
    "unreadable": ("that cannot be read", "that cannot be read"),
    "repeated": ("that is given again", "that are given again"),
}
"""Reasons to drop spans, as words for one and for several."""


def _traces(note: Note, run: Run | None = None) -> str:
    sums = {name: int(value) for name, value in note.sums.items()}
    kinds = [plural(sums.get("retrievers", 0), "retriever", "retrievers")]
    kinds += [plural(sums["rerankers"], "reranker", "rerankers")] if sums.get("rerankers") else []
    made = plural(note.count, "sample", "samples")
    parts = [
        f"{sums[name]:,} with {word}" for name, word in (("steps", "steps"), ("error", "an error")) if sums.get(name)
    ]
    dropped = [
        f"{sums[name]:,} {one if sums[name] == 1 else many}" for name, (one, many) in _DROPPED.items() if sums.get(name)
    ]
    where = ", ".join(note.details.get("formats", ())) or "traces"
    text = f"{where}: {plural(note.of, 'span', 'spans')} of {plural(sums.get('traces', 0), 'trace', 'traces')}, "
    text += f"{' and '.join(kinds)} → {made}"
    text += f" ({', '.join(parts)})." if parts else "."
    text += f" Dropped: {', '.join(dropped)}." if dropped else ""
    if staged := sums.get("stages"):
        text += f" {plural(staged, 'sample was', 'samples were')} reranked: the last ranking counts, "
        text += "karat stages shows each."
    return text


def _gold(note: Note, run: Run | None = None) -> str:
    sums = {name: int(value) for name, value in note.sums.items()}
    lines = []
    if note.count:
        some = "; ".join(f'"{text}"' for text in note.examples)
        have = "has" if note.count == 1 else "have"
        lines.append(
            f"{note.count:,} of {plural(note.of, 'sample', 'samples')} of traces {have} no gold: ignored ({some})."
        )
    if sums.get("unused"):
        verb = "occurs" if sums["unused"] == 1 else "occur"
        lines.append(f"{plural(sums['unused'], 'query', 'queries')} of the gold {verb} in no trace: not evaluated.")
    if sums.get("repeated"):
        queries = plural(sums["repeated"], "query occurs", "queries occur")
        once = "these are repeats, and a query counts once"
        lines.append(f"{queries} in several traces, {sums['in_repeats']:,} in all: {once}.")
    return " ".join(lines)


TRACE_SENTENCES: dict[str, Callable[[Note, Run | None], str]] = {"traces": _traces, "trace_gold": _gold}
