"""The size of chunks: the share of gold in the relevant ones, and the gold that half a chunk would hold whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from karat.analysis.diagnose.miss import Missed
from karat.hits import Hits
from karat.run import Run
from karat.run.stored_items import GoldText, Retrieved, StoredItems
from karat.samples.notes import Note
from karat.stats import intervals

_LOW_DENSITY = 0.3
"""The share of gold in relevant chunks below which chunks are called long."""


class _Sizes(NamedTuple):
    """Characters in the top k of one query, and its gold items in their chunks."""

    gold: int
    """Of the gold in relevant chunks."""
    relevant: int
    """Of the relevant chunks."""
    total: int
    whole: float
    """The share of the gold items, of those whose place in a chunk is known, that are within one half of it."""


def chunk_advice(stored: StoredItems, run: Run, missed: Missed) -> Iterator[Note]:
    """The share of gold in the relevant texts, if gold items are passages of them and the share is low."""
    if run.provenance.compares not in {"quote", "span"}:
        return
    hits, k = run.all_hits, missed.k
    rows = np.unique(hits.query[(hits.rank <= k) & (hits.grade > 0)])
    sizes = [_sizes(stored, hits, row, k) for row in rows.tolist()]
    gold, relevant, total = (sum(own[i] for own in sizes) for i in range(3))
    if gold and gold / relevant < _LOW_DENSITY:
        whole = np.full(len(run), np.nan)
        whole[rows] = [own.whole for own in sizes]
        whole = run.per_query(whole)
        low, high = intervals({"whole": whole})["whole"]
        share = float(np.nanmean(whole)) if np.isfinite(whole).any() else None
        yield Note(
            "long_chunks", int(gold), int(relevant), details={"k": k, "total": total, "whole": (share, low, high)}
        )


def _sizes(stored: StoredItems, hits: Hits, row: int, k: int) -> _Sizes:
    """The sizes of one query."""
    items = stored.items(row)
    own, chunks = items.by_item(), items.retrieved[:k]
    texts = [item.text or "" for item in chunks]
    first, last = np.searchsorted(hits.query, (row, row + 1)).tolist()
    gold_at: dict[int, int] = {}
    inside: dict[int, bool] = {}
    for i in range(first, last):
        rank, number = int(hits.rank[i]), int(hits.gold[i] - hits.gold_items.start[row])
        if rank > len(texts) or hits.grade[i] <= 0:
            continue
        passages = own.get(number, ())
        sizes = [len(gold.text) if gold.text else (gold.end or 0) - (gold.start or 0) for gold in passages]
        gold_at[rank] = gold_at.get(rank, 0) + max(sizes, default=0)
        if (known := _in_a_half(passages, chunks[rank - 1])) is not None:
            inside[number] = inside.get(number, False) or known
    return _Sizes(
        sum(min(size, len(texts[rank - 1])) for rank, size in gold_at.items()),
        sum(len(texts[rank - 1]) for rank in gold_at),
        sum(map(len, texts)),
        sum(inside.values()) / len(inside) if inside else np.nan,
    )


def _in_a_half(passages: Sequence[GoldText], chunk: Retrieved) -> bool | None:
    """True if one of the passages is within one half of the chunk; None if its place is not known."""
    places = [place for gold in passages if (place := _place(gold, chunk)) is not None]
    if not places:
        return None
    size = chunk.length or len(chunk.text or "") or (chunk.end or 0) - (chunk.start or 0)
    return any(end <= size / 2 or start >= size / 2 for start, end in places)


def _place(gold: GoldText, chunk: Retrieved) -> tuple[int, int] | None:
    """The place of a passage in a chunk that contains all of it."""
    if None not in (gold.start, gold.end, chunk.start, chunk.end) and gold.doc == chunk.doc:
        assert gold.start is not None
        assert gold.end is not None
        assert chunk.start is not None
        assert chunk.end is not None
        inside = chunk.start <= gold.start and gold.end <= chunk.end
        return (gold.start - chunk.start, gold.end - chunk.start) if inside else None
    if not gold.text or gold.length is not None or not chunk.text or (at := chunk.text.find(gold.text)) < 0:
        return None
    return at, at + len(gold.text)
