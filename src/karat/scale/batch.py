"""A batch: some of the queries, evaluated by themselves. Whoever carries batches, the parts make the same run.

Nothing in a batch may depend on the other batches: the judge is chosen before, once, by looking at the data as a
whole (`evaluation.choose_judge`), and so is how many places of each ranking are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from karat.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Hits
from karat.items import Kept
from karat.judges import Auto, Judge
from karat.judges.hints import nothing_matched
from karat.keeping import keep
from karat.metrics import Metric
from karat.samples import Reading, Samples
from karat.tokens import Counter
from karat.verdicts import Verdicts


class Partial(NamedTuple):
    """What came of one batch: columns that may be put after those of another (`karat.scale.joining.join`)."""

    ids: Sequence[str]
    hits: Hits
    scores: Mapping[str, Floats]
    reading: Reading
    query: Sequence[str | None] | None = None
    meta: Mapping[str, Sequence[Any]] = {}
    kept: Kept | None = None
    hints: tuple[str, ...] = ()
    """What to say if no batch at all has a hit."""


def evaluate_batch(
    samples: Samples,
    metrics: Sequence[Metric],
    judge: Judge,
    convention: Convention,
    *,
    tokens: Counter | None = None,
    places: int | None = None,
) -> Partial:
    """Judge and measure some queries.

    `tokens` counts texts, and is needed only if a metric has a budget of them. With `places` the items
    of that many places of each ranking are kept (`karat.items.places_kept` of all queries, not of the batch).
    """
    if isinstance(judge, Auto):
        raise BadArgument("the judge of a batch is chosen before, by what all batches have", got=judge.name)
    verdicts = Verdicts(samples, judge, tokens=tokens if any(metric.has_budget for metric in metrics) else None)
    hits = verdicts.hits(convention)
    seen = verdicts.samples_of(convention)
    return Partial(
        ids=samples.ids,
        hits=hits,
        scores=verdicts.all_scores(metrics, convention),
        reading=samples.reading,
        query=samples.query,
        meta=samples.meta,
        kept=None if places is None else keep(seen, hits, convention, judge.name, places),
        hints=nothing_matched(samples, judge, convention) if len(hits) == 0 and hits.gold_count().any() else (),
    )
