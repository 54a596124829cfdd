"""Merging: partial runs, evaluated anywhere, as the run that one machine would have given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise, takewhile
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from karat._internal.display import clean
from karat.errors import BadArgument
from karat.run.file import load
from karat.run.parts import join_hits, join_notes, merge_kept
from karat.run.provenance import Provenance
from karat.run.run import Run
from karat.run.stored_items import places_kept

_SHOWN = 40
_DIGITS = re.compile(r"(\d+)")


class _Part(NamedTuple):
    """A run, and what to call it where it does not fit."""

    name: str
    run: Run


def merge(runs: Iterable[Run | str | PathLike[str]], *, order: Sequence[str] | None = None) -> Run:
    """The run of all queries, from runs of some of them each; a run may be given as the path of its file.

    The order in which the parts are given does not matter: they stand in the order of what they were read from,
    `part-2` before `part-10`, and then of their first query's id. `order` gives the ids of all queries in another.
    """
    parts = _parts(runs)
    for first, second in pairwise(parts):
        _check_alike(first, second)
    _check_once(parts)
    parts.sort(key=lambda part: (_natural(part.run.provenance.source), _natural(part.run.ids[0])))
    merged = _merged([part.run for part in parts])
    return merged if order is None else merged.take(_rows(merged, order))


def _parts(runs: Any) -> list[_Part]:
    if isinstance(runs, Run | str | PathLike):
        raise BadArgument(
            "merge takes several runs", got=runs, hint='karat.merge(["part-1.parquet", "part-2.parquet"])'
        )
    parts = []
    for number, run in enumerate(runs, 1):
        if isinstance(run, str | PathLike):
            parts.append(_Part(clean(Path(run).name, _SHOWN), load(run)))
        elif isinstance(run, Run):
            parts.append(_Part(f"part {number}", run))
        else:
            raise BadArgument("a part is a run, or the path of its file", got=run)
    if not parts:
        raise BadArgument("there is nothing to merge", hint="karat merge part-*.parquet -o run.parquet")
    return [part for part in parts if len(part.run)] or parts[:1]


def _check_alike(a: _Part, b: _Part) -> None:
    """Refuse parts that were asked differently, and name every difference."""
    ours, theirs = _asked(a.run), _asked(b.run)
    differences = [
        f"{what}: {clean(ours[what]) or 'none'} / {clean(theirs[what]) or 'none'}"
        for what in ours
        if ours[what] != theirs[what]
    ]
    if differences:
        raise BadArgument(
            f"{a.name} and {b.name} are not parts of one run: {'; '.join(differences)}",
            hint=_hint(differences),
        )


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
    }


def _hint(differences: Sequence[str]) -> str:
    if any(text.startswith("judge:") for text in differences):
        return "name the judge when the parts are evaluated, since auto looks at each of them alone"
    return "evaluate every part with the same settings"


def _check_once(parts: Sequence[_Part]) -> None:
    seen: dict[str, str] = {}
    for part in parts:
        for query in part.run.ids:
            if query in seen:
                where = f"{seen[query]} and {part.name}" if seen[query] != part.name else f"{part.name} twice"
                raise BadArgument(
                    f'the query "{clean(query, _SHOWN)}" is in {where}',
                    hint="each part has queries of its own, with the gold of these alone",
                )
            seen[query] = part.name


def _natural(text: str) -> list[tuple[int, str]]:
    """A text in the order in which people count: 2 stands before 10."""
    return [(int(piece), piece) if piece.isdecimal() else (-1, piece) for piece in _DIGITS.split(text)]


def _rows(run: Run, order: Sequence[str]) -> list[int]:
    if len(order) != len(run) or len(set(order)) != len(order):
        raise BadArgument(
            f"the order names each of the {len(run)} queries once", got=f"{len(set(order))} different ids"
        )
    return [run.row(query) for query in order]


def _merged(runs: Sequence[Run]) -> Run:
    first = runs[0]
    kept = [run.kept for run in runs]
    hits = join_hits([run.all_hits for run in runs])
    places = places_kept(first.metrics, sum(map(len, runs)))
    items = (
        None
        if None in kept
        else merge_kept([k for k in kept if k is not None], hits.depth, places, first.provenance.judge)
    )
    return Run(
        ids=list(chain.from_iterable(run.ids for run in runs)),
        hits=hits,
        metrics=first.metrics,
        convention=first.convention,
        scores={name: np.concatenate([run.scores[name] for run in runs]) for name in first.scores},
        provenance=_provenance(runs, len(hits)),
        query=_column([run.query for run in runs], runs),
        meta=_meta(runs),
        kept=lambda: items,
    )


def _meta(runs: Sequence[Run]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for run in runs for name in run.meta)
    return {name: _column([run.meta.get(name) for run in runs], runs) or [] for name in names}


def _column(columns: Sequence[Sequence[Any] | None], runs: Sequence[Run]) -> list[Any] | None:
    """A column of all parts, None where one lacks it; None if all of them do."""
    if all(column is None for column in columns):
        return None
    pairs = zip(columns, runs, strict=True)
    return [value for column, run in pairs for value in ([None] * len(run) if column is None else column)]


def _provenance(runs: Sequence[Run], hits: int) -> Provenance:
    """Where all parts came from; what was counted is summed."""
    each = [run.provenance for run in runs]
    sources = [_sources(p, _width(each)) for p in each]
    merged = [_pattern(names) for names in zip(*sources, strict=True)]
    notes = [[_renamed(note, own, merged) for note in p.notes] for p, own in zip(each, sources, strict=True)]
    gold = sum(len(run.all_hits.of.grade) if run.kept is None else len(run.kept.gold["grade"]) for run in runs)
    return each[0]._replace(
        source=", ".join(merged),
        notes=join_notes(notes, gold=gold, hits=hits),
        missing=sum(p.missing for p in each),
        extra=_extra(runs, sources),
        skipped=sum(p.skipped for p in each),
    )


def _extra(runs: Sequence[Run], sources: Sequence[Sequence[str]]) -> int:
    """Queries without gold; where all parts have one and the same run, what is extra in one is gold in another."""
    matched = [len(run) - run.provenance.missing for run in runs]
    sizes = {run.provenance.extra + own for run, own in zip(runs, matched, strict=True)}
    one_file = len(runs) > 1 and len(sources[0]) == 2 and len({own[0] for own in sources}) == 1
    if one_file and len(sizes) == 1:
        return sizes.pop() - sum(matched)
    return sum(run.provenance.extra for run in runs)


def _width(each: Sequence[Provenance]) -> int:
    """Of how many files every part was read: of two if the gold had its own."""
    return 2 if all(p.source.count(", ") == 1 for p in each) else 1


def _sources(p: Provenance, width: int) -> list[str]:
    return p.source.split(", ") if width == 2 else [p.source]


def _pattern(names: Sequence[str]) -> str:
    """One name for several: what they have in common, and a star for the rest."""
    if len(set(names)) == 1:
        return names[0]
    begin = _shared(names)
    end = _shared([name[len(begin) :][::-1] for name in names])[::-1]
    return f"{begin.rstrip('0123456789')}*{end.lstrip('0123456789')}"


def _shared(names: Sequence[str]) -> str:
    """What all names begin with."""
    letters = takewhile(lambda own: len(set(own)) == 1, zip(*names, strict=False))
    return "".join(own[0] for own in letters)


def _renamed(note: str, old: Sequence[str], new: Sequence[str]) -> str:
    """A note on how a file was read, under the name of all files."""
    for theirs, ours in zip(old, new, strict=True):
        if note.startswith(f"{theirs}: "):
            return ours + note[len(theirs) :]
    return note
