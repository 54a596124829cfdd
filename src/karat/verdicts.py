"""What a judge says of samples, under one convention or several; it is asked again only where rankings differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from karat.arrays import Floats
from karat.budgets import costs, novelty
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Hits
from karat.judges import Exact, Ids, Judge
from karat.metrics import Metric
from karat.samples import Samples
from karat.samples.lists import Lists
from karat.samples.scores import AS_GIVEN, precision_of
from karat.tables import many
from karat.tokens import Counter

_MOVED = ("list does not stand in the order", "lists do not stand in the order")
_TIED = ("list holds items", "lists hold items")


class Verdicts:
    """The hits of some samples, and what the metrics make of them."""

    def __init__(self, samples: Samples, judge: Judge, *, tokens: Counter | None = None) -> None:
        """Take the judge's word on samples; `tokens` counts texts where there is a budget of them."""
        self.samples = samples
        self.judge = judge
        self._tokens = tokens
        self._known: dict[tuple[object, ...], Hits] = {}

    def hits(self, c: Convention) -> Hits:
        """The hits under a convention as a metric sees it."""
        scored, apart = _needs_scores(c), c.precision_over == "different"
        key = (*c.before, scored, apart)
        if key not in self._known:
            samples = self.samples_of(c)
            hits = self.judge(samples, c)
            if not isinstance(self.judge, Ids | Exact):
                _check(hits, self.judge, samples)
            if self._tokens is not None:
                hits.along = hits.along.also("tokens", costs(samples, hits, self.judge, self._tokens, c))
            if apart:
                hits.along = hits.along.also("different", novelty(samples, hits, self.judge, c))
            if scored and (scores := _scores(samples, hits, c)) is not None:
                hits.along = hits.along.with_values("score", scores)
            hits.notes += _about_order(samples, c)
            self._known[key] = hits
        return self._known[key]

    def scores(self, metric: Metric, c: Convention) -> dict[str, Floats]:
        """A metric at each of its cutoffs, one number per query."""
        own = c.of(metric.name, cut=bool(metric.ks)) if c.exceptions else c
        hits = self.hits(own)
        scores = metric.scores(hits, own)
        left_out = [*hits.failed]
        if own.missing == "drop" and self.samples.missing is not None:
            left_out += self.samples.missing.nonzero()[0].tolist()
        if not left_out:
            return scores
        out = np.bincount(left_out, minlength=hits.queries) > 0
        return {name: np.where(out, np.nan, values) for name, values in scores.items()}

    def all_scores(self, metrics: Sequence[Metric], c: Convention) -> dict[str, Floats]:
        """Every metric at every cutoff."""
        return {name: values for metric in metrics for name, values in self.scores(metric, c).items()}

    def samples_of(self, c: Convention) -> Samples:
        """The samples as the convention sees them."""
        if c.own_id == "keep":
            return self.samples
        return replace(self.samples, retrieved=self.samples.retrieved.without(self.samples.ids))


def _about_order(samples: Samples, c: Convention) -> tuple[str, ...]:
    """What to know where lists have scores, too, and these decide."""
    if not isinstance(samples.retrieved, Lists):
        return ()
    said = []
    if moved := samples.retrieved.reordered:
        said.append(f"{many(moved, *_MOVED)} of the scores, which decide: the greatest comes first, also of distances")
    if c.ties not in AS_GIVEN and (tied := samples.retrieved.tied):
        said.append(f"{many(tied, *_TIED)} of equal score: by id, {c.ties.removeprefix('id_')}, not as listed")
    return tuple(said)


def _needs_scores(c: Convention) -> bool:
    return c.above_zero or c.ties == "averaged"


def _scores(samples: Samples, hits: Hits, c: Convention) -> Floats | None:
    """The score at each rank, as precise as the convention compares it."""
    given = samples.retrieved.sorted_scores(c)
    if given is None:
        return None
    flat = [score for own in given for score in own]
    if len(flat) != hits.depth.sum():
        raise BadArgument("scores that are averaged over ties need rankings whose copies are kept", got=c.duplicates)
    with np.errstate(over="ignore"):
        return np.array(flat, float).astype(precision_of(c)[1]).astype(float)


def _check(hits: object, judge: Judge, data: Samples) -> None:
    """Refuse what a judge that is not karat's own must not return."""
    if not isinstance(hits, Hits):
        raise BadArgument(f'the judge "{judge.name}" gave {type(hits).__name__}; wanted karat.Hits')
    if hits.queries != len(data):
        raise BadArgument(f'the judge "{judge.name}" gave hits of {hits.queries} queries for {len(data)} samples')
    hits.check()
