"""Merge: runs of some queries each → the run of all of them. Batches, processes, Spark and `karat merge` use it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise, takewhile
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Ints, starts
from karat._internal.display import cut_name, sanitize
from karat.errors import BadArgument, InputError
from karat.hits.combine import concat
from karat.hits.totals import RAW_SCORE
from karat.run.file import load
from karat.run.provenance import Provenance
from karat.run.run import Run
from karat.run.stored_items import (
    GOLD_FIELDS,
    LIMITS,
    RETRIEVED_FIELDS,
    Extent,
    StoredItems,
    cut_texts,
    seen,
    stored_ranks,
)
from karat.samples.notes import Note, merge_notes

_SHOWN = 60
_DIGITS = re.compile(r"(\d+)")


def merge(runs: Iterable[Run | str | PathLike[str]], *, order: Sequence[str] | None = None) -> Run:
    """Merge runs of different queries into one run.

    Args:
        runs: the parts, as runs or as paths of run files. They must have been evaluated with the same settings.
            The order does not matter: parts are sorted by the name of their source, `part-2` before `part-10`,
            then by the id of their first query.
        order: the ids of all queries, if the merged run should have another order.

    Returns:
        The run that one evaluation of all queries would have returned.

    Example:
        >>> karat.merge(["part-1.parquet", "part-2.parquet"]).save("run.parquet")
    """
    parts = _parts(runs)
    for first, second in pairwise(parts):
        _check_alike(first, second)
    _check_distinct(parts)
    parts.sort(key=lambda part: (_natural(part.run.provenance.source), _natural(next(iter(part.run.ids), ""))))
    each = [part.run for part in parts]
    merged = merge_parts(each).replace(provenance=_provenance(each))
    return merged if order is None else merged.take(_rows(merged, order))


def merge_parts(parts: Sequence[Run]) -> Run:
    """The run of all parts, one part after the other; whatever was counted is summed."""
    if not parts:
        raise InputError("the data set is empty: there is nothing to merge")
    if len(parts) == 1:
        return parts[0]
    first, each = parts[0], [part.provenance for part in parts]
    meta = dict.fromkeys(name for part in parts for name in part.meta)
    ids = list(chain.from_iterable(part.ids for part in parts))
    if len(set(ids)) < len(ids):
        repeated = Counter(ids).most_common(1)[0][0]
        raise InputError(f'two parts have the same query "{repeated}"; expected each query in one part only')
    return Run(
        ids=ids,
        hits=concat([part.all_hits for part in parts]),
        metrics=first.requested,
        convention=first.convention,
        scores={name: np.concatenate([part.columns[name] for part in parts]) for name in first.columns},
        provenance=replace(
            first.provenance,
            merge=next((p.merge for p in each if p.merge), ""),
            notes=_merge_notes([p.notes for p in each], parts),
            missing=sum(p.missing for p in each),
            extra=sum(p.extra for p in each),
            skipped=sum(p.skipped for p in each),
        ),
        query=_column([part.query for part in parts], parts),
        meta={name: _column([part.meta.get(name) for part in parts], parts) or [] for name in meta},
        items=partial(_merge_items, list(parts)),
    )


def _merge_notes(each: Sequence[Sequence[Note]], parts: Sequence[Run]) -> tuple[Note, ...]:
    """The notes of all parts, except those that are true of a part but not of the whole."""
    untrue = {"nothing_matched"} if any(len(part.all_hits) for part in parts) else set()
    if len(parts) > 1 and not _is_sample(each):
        untrue.add("sample_judged")
    return tuple(note for note in merge_notes(each) if note.kind not in untrue)


def _is_sample(each: Sequence[Sequence[Note]]) -> bool:
    """True if every part is a random sample of its queries, and their shares are equal to within one query."""
    samples = [note for notes in each for note in notes if note.kind == "sample_judged"]
    share = sum(note.count for note in samples) / max(sum(note.of for note in samples), 1)
    fair = (not note.details["free"] and abs(note.count - share * note.of) < 1 for note in samples)
    return len(samples) == len(each) and all(fair)


def _column(columns: Sequence[Sequence[Any] | None], parts: Sequence[Run]) -> list[Any] | None:
    """A column of all parts, with None where a part lacks it; None if all parts do."""
    if all(column is None for column in columns):
        return None
    pairs = zip(columns, parts, strict=True)
    return [value for column, part in pairs for value in ([None] * len(part) if column is None else column)]


def _merge_items(parts: Sequence[Run]) -> StoredItems | None:
    """The stored items of all parts, with no more ranks than a run of this many queries stores.

    It is known which gold items were retrieved for any query if they all were, or if the parts stored whole rankings.
    """
    stored = [part.stored_items for part in parts if part.stored_items is not None]
    if len(stored) < len(parts):
        return None
    ranks = stored_ranks(parts[0].requested, sum(map(len, parts)))
    depth = np.concatenate([part.all_hits.depth for part in parts])
    merged = concat_items([_top(items, ranks) for items in stored])
    retrieved, gold = _select(merged.retrieved, RETRIEVED_FIELDS), _select(merged.gold, GOLD_FIELDS)
    searched = all(items.extent.whole for items in stored) and int(depth.sum()) <= LIMITS.searched
    if searched:
        field: Any = "doc" if parts[0].provenance.compares == "doc" else "id"
        elsewhere = seen(gold, field, [items.retrieved.get(field, ()) for items in stored])
        own = chain.from_iterable(items.gold["seen"] for items in stored)
        gold["seen"] = [here or there for here, there in zip(own, elsewhere, strict=True)]
        sizes = np.concatenate([np.diff(items.start) for items in stored])
        searched = all(gold["seen"]) or bool((sizes == depth).all())
    if not searched:
        gold.pop("seen", None)
    return StoredItems(retrieved, merged.start, _select(gold, GOLD_FIELDS), merged.gold_start, Extent(ranks, searched))


def concat_items(parts: Sequence[StoredItems]) -> StoredItems:
    """The stored items of all parts, one part after the other; `seen` is unknown, unless there is only one part."""
    if len(parts) == 1:
        return parts[0]
    retrieved = _concat_columns([part.retrieved for part in parts])
    gold = _concat_columns([part.gold for part in parts])
    gold.pop("seen", None)
    cut_texts([retrieved, gold])
    ranks = min(part.extent.places for part in parts)
    return StoredItems(
        retrieved, _concat_starts([part.start for part in parts]),
        gold, _concat_starts([part.gold_start for part in parts]), Extent(ranks, whole=False),
    )  # fmt: skip


def _concat_starts(each: Sequence[Ints]) -> Ints:
    return starts(np.concatenate([np.diff(start) for start in each]))


def _concat_columns(parts: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Columns one after the other, with None where a part lacks one."""
    names = dict.fromkeys(name for part in parts for name in part)
    size = [len(next(iter(part.values()), ())) for part in parts]
    return {
        name: list(chain.from_iterable(part.get(name, [None] * n) for part, n in zip(parts, size, strict=True)))
        for name in names
    }


def _top(items: StoredItems, ranks: int) -> StoredItems:
    """The stored items with fewer ranks of each ranking: the more queries, the fewer ranks are stored of each."""
    size = np.minimum(np.diff(items.start), ranks)
    start = starts(size)
    flat = (np.arange(int(start[-1])) + np.repeat(items.start[:-1] - start[:-1], size)).tolist()
    retrieved = {name: [column[i] for i in flat] for name, column in items.retrieved.items()}
    return StoredItems(retrieved, start, items.gold, items.gold_start, items.extent)


def _select(columns: Mapping[str, Sequence[Any]], names: Sequence[str]) -> dict[str, Any]:
    return {name: columns[name] for name in names if name in columns}


class _Part(NamedTuple):
    """A run, and what to call it where it does not fit."""

    name: str
    run: Run


def _parts(runs: Any) -> list[_Part]:
    if isinstance(runs, Run | str | PathLike):
        raise BadArgument(
            "merge takes several runs", got=runs, hint='karat.merge(["part-1.parquet", "part-2.parquet"])'
        )
    parts = []
    for number, run in enumerate(runs, 1):
        if isinstance(run, str | PathLike):
            parts.append(_Part(cut_name(Path(run).name, _SHOWN), load(run)))
        elif isinstance(run, Run):
            parts.append(_Part(f"part {number}", run))
        else:
            raise BadArgument("a part is a run, or the path of its file", got=run)
    if not parts:
        raise BadArgument("there is nothing to merge", hint="karat merge part-*.parquet -o run.parquet")
    return [part for part in parts if len(part.run)] or parts[:1]


def _check_alike(a: _Part, b: _Part) -> None:
    """Refuse parts that were evaluated with different settings, and name every difference."""
    ours, theirs = _asked(a.run), _asked(b.run)
    different = [name for name in ours if ours[name] != theirs[name]]
    if not different:
        return
    values = [f"{name}: {sanitize(ours[name]) or 'none'} / {sanitize(theirs[name]) or 'none'}" for name in different]
    hint = 'judge="ids" for every part, not "auto"' if "judge" in different else None
    raise BadArgument(f"{a.name} and {b.name} are not parts of one run: {'; '.join(values)}", hint=hint)


def _asked(run: Run) -> dict[str, str]:
    p = run.provenance
    choices = {f"convention, {name}": str(value) for name, value in sorted(run.convention.choices().items())}
    return {
        "karat's version": p.karat,
        "metrics": " ".join(p.metrics),
        "judge": p.judge,
        "convention": run.convention.name,
        **choices,
        "tokens counted by": p.tokens,
        "steps merged by": p.merge,
        "settings of the retriever": ", ".join(f"{name}={value}" for name, value in sorted(p.settings.items())),
        "totals": ", ".join(sorted({*run.all_hits.totals.at_rank, *run.all_hits.totals.sizes} - {RAW_SCORE})),
    }


def _check_distinct(parts: Sequence[_Part]) -> None:
    seen: dict[str, str] = {}
    for part in parts:
        for query in part.run.ids:
            if query in seen:
                where = f"{seen[query]} and {part.name}" if seen[query] != part.name else f"{part.name} twice"
                raise BadArgument(f'the query "{cut_name(query, _SHOWN)}" is in {where}; each must be in one part only')
            seen[query] = part.name


def _natural(text: str) -> list[tuple[int, str]]:
    """The sort key of natural order: 2 before 10."""
    return [(int(piece), piece) if piece.isdecimal() else (-1, piece) for piece in _DIGITS.split(text)]


def _rows(run: Run, order: Sequence[str]) -> list[int]:
    if len(order) != len(run) or len(set(order)) != len(order):
        raise BadArgument(
            f"order must list each of the {len(run)} queries once", got=f"{len(set(order))} different ids"
        )
    return [run.row(query) for query in order]


def _provenance(runs: Sequence[Run]) -> Provenance:
    """The provenance of all parts: one name for all sources, and sums of whatever was counted."""
    each = [run.provenance for run in runs]
    width = 2 if all(p.source.count(", ") == 1 for p in each) else 1  # two files if the gold has its own
    sources = [p.source.split(", ") if width == 2 else [p.source] for p in each]
    merged = [_pattern(names) for names in zip(*sources, strict=True)]
    notes = [[_renamed(note, own, merged) for note in p.notes] for p, own in zip(each, sources, strict=True)]
    return replace(
        each[0],
        source=", ".join(merged),
        commit=each[0].commit if len({p.commit for p in each}) == 1 else "",
        notes=_merge_notes(notes, runs),
        missing=sum(p.missing for p in each),
        extra=_extra(runs, sources),
        skipped=sum(p.skipped for p in each),
        also=tuple(dict.fromkeys(name for p in each for name in p.also)),
    )


def _extra(runs: Sequence[Run], sources: Sequence[Sequence[str]]) -> int:
    """Queries without gold; where all parts have one and the same run, what is extra in one is gold in another."""
    matched = [len(run) - run.provenance.missing for run in runs]
    sizes = {run.provenance.extra + own for run, own in zip(runs, matched, strict=True)}
    one_file = len(runs) > 1 and len(sources[0]) == 2 and len({own[0] for own in sources}) == 1
    if one_file and len(sizes) == 1:
        return sizes.pop() - sum(matched)
    return sum(run.provenance.extra for run in runs)


def _pattern(names: Sequence[str]) -> str:
    """One name for several: what they have in common, and a star for the rest."""
    if len(set(names)) == 1:
        return names[0]
    begin = _shared(names)
    end = _shared([name[len(begin) :][::-1] for name in names])[::-1]
    return f"{begin.rstrip('0123456789')}*{end.lstrip('0123456789')}"


def _shared(names: Sequence[str]) -> str:
    """The beginning that all names share."""
    letters = takewhile(lambda own: len(set(own)) == 1, zip(*names, strict=False))
    return "".join(own[0] for own in letters)


def _renamed(note: Note, old: Sequence[str], new: Sequence[str]) -> Note:
    """A note on how a file was read, under the name of all files."""
    names = dict(zip(old, new, strict=True))
    source = note.details.get("source")
    return replace(note, details={**note.details, "source": names[source]}) if source in names else note
