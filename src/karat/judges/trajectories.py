"""Facts on judged samples that are not judged: the steps that returned the hits, the hops and aspects of the gold."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat._internal.display import valid_texts, valid_utf8
from karat.conventions import Convention
from karat.hits import Hits
from karat.hits.aspects import Aspects
from karat.hits.trajectory import Trajectory
from karat.judges.tokens import Counter, count
from karat.samples import GoldItems, Samples
from karat.samples.keys import as_text, short_id
from karat.samples.notes import EXAMPLES, Note
from karat.samples.rankings.steps import Steps


def with_facts(
    hits: Hits, samples: Samples, c: Convention, *, makes_gold: bool, counter: Counter | None = None
) -> Hits:
    """The hits with the steps, hops and aspects of their samples, as far as they have any; `counter` counts tokens."""
    if isinstance(samples.retrieved, Steps):
        steps = _trajectory(samples.retrieved, hits, c, counter)
        hits = hits.replace(steps=steps, notes=(*hits.notes, *_step_notes(steps, samples)))
    known = len(samples.gold.grade) == len(hits.gold_items.grade if (unit := hits.gold_items.unit) is None else unit)
    if "hop" in samples.gold.columns and not makes_gold and known:
        hop, notes = _hops(samples.gold, hits, samples.ids)
        hits = hits.replace(gold_items=hits.gold_items._replace(hop=hop), notes=(*hits.notes, *notes))
    if "aspects" in samples.gold.columns and not makes_gold and known:
        hits = with_aspects(hits, samples)
    return hits


def with_aspects(hits: Hits, samples: Samples) -> Hits:
    """The hits with the aspects of the gold, if it has any; alternatives serve the aspects of all of them.

    A gold item that is not relevant serves none.
    """
    gold = hits.gold_items
    if "aspects" not in samples.gold.columns:
        return hits
    given = zip(samples.gold.columns["aspects"], samples.gold.grade.tolist(), strict=True)
    each = [names if names and grade > 0 else () for names, grade in given]
    if gold.unit is not None:
        united: list[dict[str, None]] = [{} for _ in gold.grade]
        for item, names in zip(gold.unit.tolist(), each, strict=True):
            united[item].update(dict.fromkeys(names))
        each = [tuple(names) for names in united]
    if (aspects := Aspects.of(each)) is None:
        return hits
    aspects = aspects._replace(name=valid_utf8(aspects.name))
    return hits.replace(gold_items=gold._replace(aspects=aspects))


def _trajectory(given: Steps, hits: Hits, c: Convention, counter: Counter | None) -> Trajectory:
    places = given.places(hits.query, hits.rank, c)
    return Trajectory(
        merge=str(given.merge),
        start=given.start,
        depth=given.depth(c),
        repeated=given.repeated(c),
        name=valid_texts(list(given.about.name)),
        asked=valid_texts(list(given.about.query)),
        latency=_numbers(given.about.latency),
        tokens=_tokens(given, c, counter),
        query=places.query,
        merged=places.merged,
        step=places.step,
        rank=places.rank,
    )


def _tokens(given: Steps, c: Convention, counter: Counter | None) -> Floats:
    """The tokens that each step returned: as it says, else those of its texts; NaN if neither is known."""
    tokens = _numbers(given.about.tokens)
    unknown = np.isnan(tokens)
    if counter is not None and unknown.any():
        texts = list(given.own.each("text", c))
        for step in unknown.nonzero()[0].tolist():
            tokens[step] = sum(count(counter, as_text(text)) for text in texts[step])
    return tokens


def _numbers(column: Sequence[float | None]) -> Floats:
    return np.array([nan if value is None else value for value in column], float)


def _step_notes(steps: Trajectory, samples: Samples) -> list[Note]:
    """Notes on queries without a step although their retrieval did not fail, and on steps that returned nothing."""
    notes = []
    if empty := int((steps.depth == 0).sum()):
        notes.append(Note("empty_steps", empty, len(steps.depth)))
    if without := [row for row in np.flatnonzero(steps.count == 0).tolist() if row not in samples.failed]:
        few = tuple(short_id(samples.ids[row]) for row in without[:EXAMPLES])
        notes.append(Note("no_steps", len(without), len(samples), examples=few))
    return notes


def _hops(gold: GoldItems, hits: Hits, ids: Sequence[str]) -> tuple[Ints, list[Note]]:
    """The hop of each gold item: the first of alternatives; 0 if it has none."""
    given = np.array([0 if hop is None else hop for hop in gold.columns["hop"]], np.int64)
    unit = hits.gold_items.unit if hits.gold_items.unit is not None else np.arange(len(given))
    hop = np.full(len(hits.gold_items.grade), np.iinfo(np.int64).max)
    np.minimum.at(hop, unit, np.where(given > 0, given, np.iinfo(np.int64).max))
    hop[hop == np.iinfo(np.int64).max] = 0
    notes = []
    if partly := int(((hop == 0) & (hits.gold_items.grade > 0)).sum()):
        notes.append(Note("no_hop", partly, len(hop)))
    if gaps := [
        row for row in range(len(ids)) if _has_gap(hop[hits.gold_items.start[row] : hits.gold_items.start[row + 1]])
    ]:
        few = tuple(short_id(ids[row]) for row in gaps[:EXAMPLES])
        notes.append(Note("hop_gap", len(gaps), len(ids), examples=few))
    return hop, notes


def _has_gap(hops: Ints) -> bool:
    """True if a hop comes without the one before it."""
    there = set(hops[hops > 0].tolist())
    return bool(there) and len(there) < max(there)
