"""Long work split over processes: batches of queries, each judged and measured by itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from karat.arrays import Floats
from karat.conventions import Convention
from karat.errors import BadArgument
from karat.hits import Hits
from karat.judges import Exact, Ids, Judge
from karat.metrics import Metric
from karat.progress import Progress
from karat.samples import GoldItems, Samples
from karat.samples.background import cores
from karat.scale.batch import Partial, evaluate_batch
from karat.scale.joining import join_hits
from karat.scale.notes import join_notes
from karat.scale.orders import order_of
from karat.scale.workers import Workers
from karat.tokens import Counter
from karat.verdicts import Verdicts

_EACH = 8
"""How many batches each process gets: several, since some take longer than others."""


def split_verdicts(
    samples: Samples, judge: Judge, metrics: Sequence[Metric], jobs: int, *, tokens: Counter | None = None
) -> Verdicts:
    """Verdicts of several processes; of this one where handing items over takes longer than comparing them."""
    jobs = check_jobs(jobs)
    if isinstance(judge, Ids | Exact) and tokens is None:
        return Verdicts(samples, judge)
    return SplitVerdicts(samples, judge, metrics=metrics, jobs=jobs, tokens=tokens)


def each_part(
    batches: Iterable[Samples],
    metrics: Sequence[Metric],
    judge: Judge,
    convention: Convention,
    tokens: Counter | None,
    jobs: int,
) -> Iterator[Partial]:
    """What comes of each batch, in their order; judged by this process, or by several."""
    if check_jobs(jobs) == 1 or (isinstance(judge, Ids | Exact) and tokens is None):
        for samples in batches:
            yield evaluate_batch(samples, metrics, judge, convention, tokens=tokens)
        return
    with Workers(order_of(metrics, judge, convention, tokens=tokens), jobs) as workers:
        yield from workers.each(batches)


class SplitVerdicts(Verdicts):
    """The same verdicts, of several processes."""

    def __init__(
        self,
        samples: Samples,
        judge: Judge,
        *,
        metrics: Sequence[Metric],
        jobs: int,
        tokens: Counter | None = None,
        batch: int | None = None,
    ) -> None:
        """`batch` is how many queries are handed over at a time."""
        super().__init__(samples, judge, tokens=tokens)
        self._metrics = tuple(metrics)
        self._jobs = jobs
        self._batch = batch or -(-len(samples) // (self._jobs * _EACH))
        self._scores: dict[str, Floats] = {}

    def hits(self, c: Convention) -> Hits:
        """The hits under a convention; the scores are measured on the way."""
        if not self._scores:
            parts = self._parts(c)
            joined = join_hits([part.hits for part in parts])
            gold, found = len(self.samples.gold.grade), len(joined)
            joined.notes = join_notes([part.hits.notes for part in parts], gold=gold, hits=found)
            self._known[self._key(c)] = joined
            self._scores = {name: np.concatenate([part.scores[name] for part in parts]) for name in parts[0].scores}
        return self._known[self._key(c)]

    def all_scores(self, metrics: Sequence[Metric], c: Convention) -> dict[str, Floats]:
        """Every metric at every cutoff, as the processes measured them."""
        self.hits(c)
        return {name: self._scores[name] for metric in metrics for name in metric.names}

    def _parts(self, c: Convention) -> list[Partial]:
        order = order_of(self._metrics, self.judge, c, tokens=self._tokens)
        jobs = min(self._jobs, -(-len(self.samples) // self._batch))
        with Workers(order, jobs) as workers, Progress(len(self.samples), self.judge.name) as bar:
            return list(workers.each(batches(self.samples, self._batch), bar))

    @staticmethod
    def _key(c: Convention) -> tuple[object, ...]:
        return ("split", *c.before)


def check_jobs(jobs: Any) -> int:
    """A number of processes."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise BadArgument("jobs is a number of processes, at least 1", got=jobs, hint=str(cores()))
    return jobs


def batches(samples: Samples, size: int) -> Iterator[Samples]:
    """The samples in pieces of so many queries."""
    for first in range(0, len(samples), size):
        yield some(samples, first, min(first + size, len(samples)))


def some(samples: Samples, first: int, last: int) -> Samples:
    """Samples that follow each other."""
    rows = slice(first, last)

    def cut(column: Sequence[Any] | None) -> Sequence[Any] | None:
        return None if column is None else column[rows]

    meta: Mapping[str, Sequence[Any]] = {name: column[rows] for name, column in samples.meta.items()}
    return replace(
        samples,
        ids=samples.ids[rows],
        retrieved=samples.retrieved.take(range(first, last)),
        gold=_some_gold(samples.gold, first, last),
        query=cut(samples.query),
        answer=cut(samples.answer),
        response=cut(samples.response),
        meta=meta,
        missing=None if samples.missing is None else samples.missing[rows],
    )


def _some_gold(gold: GoldItems, first: int, last: int) -> GoldItems:
    begin, end = int(gold.start[first]), int(gold.start[last])
    return gold._replace(
        columns={field: column[begin:end] for field, column in gold.columns.items()},
        grade=gold.grade[begin:end],
        start=gold.start[first : last + 1] - begin,
    )
