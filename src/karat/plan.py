"""What a judge says of samples, under one convention or several; it is asked again only where rankings differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.display import many
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Hits
from karat.judges import Auto, Exact, Ids, Judge
from karat.judges.auto import nothing_matched
from karat.judges.tokens import Counter, count
from karat.metrics import METRICS, Metric, parse_all
from karat.metrics.registry import PARSED, Definition
from karat.run.stored_items import Kept, keep
from karat.samples import Field, Reading, Samples
from karat.samples.keys import as_text, without_copies
from karat.samples.rankings.lists import Lists
from karat.samples.rankings.score_order import AS_GIVEN, precision_of


def costs(samples: Samples, hits: Hits, judge: Judge, counter: Counter, c: Convention) -> Floats:
    """The tokens of every retrieved item, best first, one query after the other."""
    if not callable(counter):
        raise BadArgument("tokens are counted by a function of a text", got=counter, hint="lambda text: len(…)")
    names_only = samples.retrieved.plain and isinstance(judge, Ids) and bool(hits.depth.any())
    if "text" not in samples.retrieved.fields or names_only:
        raise InputError(
            "a budget of tokens needs the texts of what was retrieved, and not every item has one",
            hint='a "text" in each record of retrieved, or a cutoff in ranks, such as recall@5',
        )
    known: dict[str, int] = {}
    amounts: list[int] = []
    for texts in _kept(samples, hits, judge, samples.retrieved.each("text", c), c):
        for item in texts:
            text = as_text(item)
            if text not in known:
                known[text] = count(counter, text)
            amounts.append(known[text])
    return np.array(amounts, float)


def novelty(samples: Samples, hits: Hits, judge: Judge, c: Convention) -> Floats:
    """For every retrieved item, best first, 1 if it is not a copy of one above, else 0."""
    firsts: list[bool] = []
    for names in _kept(samples, hits, judge, identities(samples, judge, c), c):
        seen: set[object] = set()
        firsts += [not (name in seen or seen.add(name)) for name in names]  # type: ignore[func-returns-value]
    return np.array(firsts, float)


def identities(samples: Samples, judge: Judge, c: Convention) -> Iterator[list[object]]:
    """What tells the items of each query from one another: what the judge compares them by."""
    fields: tuple[Field, ...] = getattr(judge, "fields", ("text",))
    same: Callable[[str], str] = getattr(judge, "same", str)
    keys = [samples.retrieved.each(field, c) for field in fields if field in samples.retrieved.some]
    for columns in zip(*keys, strict=True):
        yield [tuple(None if v is None else same(as_text(v)) for v in item) for item in zip(*columns, strict=True)]


def _kept(
    samples: Samples, hits: Hits, judge: Judge, columns: Iterable[Sequence[Any]], c: Convention
) -> Iterator[Sequence[Any]]:
    """A column of every ranking without the copies that the convention removes."""
    names = identities(samples, judge, c) if c.duplicates != "once" else repeat(None)
    for depth, column, own in zip(hits.depth.tolist(), columns, names, strict=False):
        pairs: list[tuple[object, Any]] = list(zip(range(len(column)) if own is None else own, column, strict=True))
        kept = [value for _, value in without_copies(pairs, lambda pair: pair[0], c.duplicates)]
        if len(kept) != depth:
            raise BadArgument(f'the judge "{judge.name}" counts other items than were retrieved; none can be counted')
        yield kept


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


class Partial(NamedTuple):
    """What came of one batch: columns that may be put after those of another (`karat.run.parts.join`)."""

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
    of that many places of each ranking are kept (`places_kept` of all queries, not of the batch).
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


class Order(NamedTuple):
    """What is asked of a batch, whoever carries it out."""

    metrics: tuple[str, ...]
    judge: Judge
    convention: Convention
    tokens: Counter | None = None
    places: int | None = None
    """How many places of each ranking are kept, if the items are."""
    definitions: Mapping[str, Definition] = {}
    """Metrics of the user's own, which another process does not know."""

    @property
    def wanted(self) -> tuple[Metric, ...]:
        """The metrics; those of the user's own are made known first."""
        if any(METRICS.get(name) is not own for name, own in self.definitions.items()):
            METRICS.update(self.definitions)
            PARSED.clear()
        return parse_all(self.metrics)

    def carry_out(self, samples: Samples) -> Partial:
        """Judge and measure a batch."""
        return evaluate_batch(samples, self.wanted, self.judge, self.convention, tokens=self.tokens, places=self.places)


def order_of(
    metrics: Iterable[Metric],
    judge: Judge,
    convention: Convention,
    *,
    tokens: Counter | None = None,
    places: int | None = None,
) -> Order:
    """An order that can be carried out elsewhere; refuses judges that look at all queries together."""
    # One budget for all questions; and of all quotes at least one must stand in the corpus.
    if hasattr(judge, "asking") or getattr(judge, "corpus", None) is not None:
        raise BadArgument(
            f'the judge "{judge.name}" looks at all queries together: it is not split over processes or machines',
            hint="jobs=1; a model is asked many questions at a time in any case",
        )
    wanted = tuple(metrics)
    own = {m.name: m.definition for m in wanted if not _is_ours(m.definition)}
    return Order(tuple(map(str, wanted)), judge, convention, tokens, places, own)


def _is_ours(definition: Definition) -> bool:
    return str(definition.formula.__module__).startswith("karat.")
