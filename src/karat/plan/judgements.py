"""Judgements: the hits of samples under each convention that the metrics need, with totals and notes."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np

from karat._internal.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Hits
from karat.hits.totals import RAW_SCORE
from karat.judges import Exact, Ids, Judge
from karat.judges.sizes import count_sizes, counted_items, first_occurrences
from karat.judges.tokens import Counter, count
from karat.judges.trajectories import with_facts
from karat.metrics import Metric
from karat.samples import Samples
from karat.samples.answerable import ANSWERABLE, unanswerable
from karat.samples.keys import as_text
from karat.samples.notes import Note
from karat.samples.rankings.lists import Lists
from karat.samples.rankings.score_order import precision_of


class Judgements:
    """The hits of samples under one convention or several; the judge is asked again only if the rankings differ."""

    def __init__(
        self,
        samples: Samples,
        judge: Judge,
        *,
        tokens: Counter | None = None,
        budget: bool = True,
        sizes: tuple[str, ...] = (),
        raw_scores: bool = False,
    ) -> None:
        """Without a `budget`, `tokens` counts only the tokens of steps; `raw_scores` are stored with the hits."""
        self.samples = samples
        self.judge = judge
        judge.start()
        self._tokens = tokens if budget else None
        self._step_tokens = tokens
        self._sizes = sizes
        self._raw_scores = raw_scores or ANSWERABLE in samples.meta
        self._known: dict[tuple[object, ...], Hits] = {}
        self._latest: tuple[Convention, Hits] | None = None
        self._everything = not samples.failed and samples.missing is None
        """True if no query is excluded, unless the judge fails."""

    def hits(self, c: Convention) -> Hits:
        """The hits under a convention as a metric sees it."""
        if self._latest is not None and self._latest[0] is c:  # as for most metrics
            return self._latest[1]
        key = (*c.ranking_choices, _needs_scores(c), c.precision_over == "different")
        if key not in self._known:
            self._known[key] = self._judge(c)
        self._latest = c, self._known[key]
        return self._known[key]

    def _judge(self, c: Convention) -> Hits:
        samples, judge = seen_under(self.samples, c), self.judge
        hits = judge(samples, c)
        if not isinstance(judge, Ids | Exact):
            _check(hits, judge, samples)
        if samples.failed:
            hits = hits.replace(failed={**hits.failed, **samples.failed})
        totals = hits.totals
        if self._tokens is not None:
            totals = totals.with_amounts("tokens", _token_counts(samples, hits, judge, self._tokens, c))
        if c.precision_over == "different":
            totals = totals.with_amounts("different", first_occurrences(samples, hits, judge, c))
        if _needs_scores(c) and (scores := _scores(samples, hits, c)) is not None:
            totals = totals.with_values("score", scores)
        if self._raw_scores and (given := samples.retrieved.sorted_scores(c)) is not None:
            own = given if c.duplicates == "once" else counted_items(samples, hits, judge, given, c)
            totals = totals.with_values(RAW_SCORE, np.fromiter(chain.from_iterable(own), float))
        infinite = samples.retrieved.infinite
        notes = (Note("infinite_scores", infinite),) if infinite else ()
        if self._sizes:
            sizes, about = count_sizes(self._sizes, samples, hits, judge, c)
            totals, notes = totals.with_sizes(sizes), (*notes, *about)
        if (without_answer := unanswerable(samples)) is not None:
            hits = hits.replace(gold_items=hits.gold_items._replace(unanswerable=without_answer))
        if totals is not hits.totals or notes:
            hits = hits.replace(totals=totals, notes=(*hits.notes, *notes))
        known = self._step_tokens is not None and not _lacks_texts(samples, hits, judge)
        counter = self._step_tokens if known else None
        return with_facts(hits, samples, c, makes_gold=judge.makes_gold, counter=counter)

    def scores(self, metric: Metric, c: Convention) -> dict[str, Floats]:
        """A metric at each of its cutoffs, one number per query."""
        own = c.of(metric.name, cut=bool(metric.ks)) if c.exceptions else c
        hits = self.hits(own)
        scores = metric.scores(hits, own)
        if self._everything and not hits.failed:
            return scores
        excluded = [*hits.failed]
        if own.missing == "drop" and self.samples.missing is not None:
            excluded += self.samples.missing.nonzero()[0].tolist()
        if not excluded:
            return scores
        out = np.bincount(excluded, minlength=hits.queries) > 0
        return {name: np.where(out, np.nan, values) for name, values in scores.items()}


def seen_under(samples: Samples, c: Convention) -> Samples:
    """The samples under a convention: some libraries ignore a retrieved item whose id is that of the query."""
    if c.own_id == "keep":
        return samples
    return replace(samples, retrieved=samples.retrieved.without([(query,) for query in samples.ids])[0])


def _needs_scores(c: Convention) -> bool:
    return c.above_zero or c.ties == "averaged"


def _scores(samples: Samples, hits: Hits, c: Convention) -> Floats | None:
    """The score at each rank, in the precision in which the convention compares scores; None if none is needed."""
    lists = samples.retrieved
    given = lists.sorted_scores(c)
    if given is None or (not c.above_zero and isinstance(lists, Lists) and lists.keeps_order(c)):
        return None  # a list has no ties
    flat = [score for own in given for score in own]
    if len(flat) != hits.depth.sum():
        raise BadArgument("averaging scores over ties needs rankings that keep their copies", got=c.duplicates)
    with np.errstate(over="ignore"):
        return np.array(flat, float).astype(precision_of(c)[1]).astype(float)


def _check(hits: object, judge: Judge, samples: Samples) -> None:
    """Refuse what a judge must not return."""
    if not isinstance(hits, Hits):
        raise BadArgument(f'judge "{judge.name}" returned {type(hits).__name__}; expected karat.Hits')
    if hits.queries != len(samples):
        raise BadArgument(f'judge "{judge.name}" returned hits of {hits.queries} queries for {len(samples)} samples')
    hits.check()


def _token_counts(samples: Samples, hits: Hits, judge: Judge, counter: Counter, c: Convention) -> Floats:
    """The tokens of every retrieved item, best first, one query after the other."""
    if not callable(counter):
        raise BadArgument("tokens= must be a function of a text", got=counter, hint="lambda text: len(…)")
    if _lacks_texts(samples, hits, judge):
        raise InputError(
            "a token budget needs the text of every retrieved item",
            hint='{"text": …} in each record of retrieved, or a cutoff in ranks, such as recall@5',
        )
    known: dict[str, int] = {}
    counts: list[int] = []
    for texts in counted_items(samples, hits, judge, samples.retrieved.each("text", c), c):
        for item in texts:
            text = as_text(item)
            if text not in known:
                known[text] = count(counter, text)
            counts.append(known[text])
    return np.array(counts, float)


def _lacks_texts(samples: Samples, hits: Hits, judge: Judge) -> bool:
    """True if items have no text, or are bare strings that are compared as ids."""
    only_ids = samples.retrieved.plain and isinstance(judge, Ids) and bool(hits.depth.any())
    return "text" not in samples.retrieved.all_fields or only_ids
