"""Collection: a retriever and a gold set → samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from math import nan
from os import PathLike, fspath
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from karat._internal.display import plural
from karat._internal.progress import Progress
from karat.collection.collected import Collected
from karat.errors import BadArgument, NotJudged, shorten
from karat.samples.field_map import Fields

if TYPE_CHECKING:
    from karat.collection.calls import Asked, Calls, Limits
    from karat.collection.gold_rows import GoldRow
    from karat.collection.journal import Done, Journal, Key
    from karat.collection.outcomes import Outcome

__all__ = ["collect"]
_ENOUGH = 25
"""Queries that fail for the same reason before any succeeded: no further query is called then."""


def collect(
    retriever: Any,
    gold: Any,
    *,
    k: int = 20,
    concurrency: int = 8,
    timeout: float | None = 30.0,
    retries: int = 0,
    repeats: int = 1,
    warm_up: int = 0,
    output: str | PathLike[str] | None = None,
    fresh: bool = False,
    progress: bool = True,
    fields: Fields = None,
    split: str | None = None,
) -> Collected:
    """Call a retriever for every query of a gold set, and return the samples.

    Args:
        retriever: a function of the query, or of the query and k; a coroutine function; a retriever, vector store or
            pipeline of LangChain, LlamaIndex or Haystack; or a name: "file.py:function", "package.module:object", or
            the URL of an endpoint.
        gold: the queries and their gold, in any form that karat reads as gold, with the texts of the queries.
        k: the number of items to retrieve; what is beyond is cut off.
        concurrency: the number of simultaneous calls.
        timeout: the seconds of each call; None for no limit. A call that takes longer fails.
        retries: how often a failed call is repeated, after a pause that doubles each time.
        repeats: how often each query is called, for retrievers that do not always return the same.
        warm_up: the number of calls before all others, which are not recorded: the first ones often take longer.
        output: a JSONL file for the samples. What is done is kept in a journal beside it; the same call continues.
        fresh: True to forget what the output and its journal have, and start again.
        progress: True to show a bar on the terminal.
        fields: the columns of the gold if they have other names, such as {"query": "question", "gold": "relevant"}.
        split: the split of a data set, such as "dev" of a BEIR folder.

    Returns:
        The samples, in the order of the gold: a list of dicts with `id`, `query`, `retrieved`, `latency` (milliseconds)
        and the fields of the gold, for `karat.evaluate`. A sample that failed has `error` instead of `retrieved`.

    Example:
        >>> gold = [{"query": "Closed when?", "gold": ["faq-2"]}]
        >>> samples = karat.collect(lambda query: ["faq-7", "faq-2"], gold, k=10)
        >>> karat.evaluate(samples, "recall@1,5").mean["recall@5"]
        1.0
    """
    from karat.collection.calls import Limits
    from karat.collection.gold_rows import read_gold
    from karat.collection.targets import find_retriever

    _check(1, k=k, concurrency=concurrency, repeats=repeats)
    _check(0, retries=retries, warm_up=warm_up)
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise BadArgument("timeout must be a number of seconds, or None", got=timeout)
    rows = read_gold(gold, fields, split)
    found = find_retriever(retriever, k, timeout=timeout)
    limits = Limits(concurrency, timeout, retries, warm_up)
    collection = _Collection(found, rows, k, repeats, output=None if output is None else fspath(output), fresh=fresh)
    return collection.run(limits, progress=progress)


def _check(least: int, **counts: Any) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadArgument(f"{name} must be a whole number from {least} on", got=value)


class _Job(NamedTuple):
    row: int
    repeat: int


class _Collection:
    """One collection: the queries, what is done of them, and the samples made of both."""

    def __init__(
        self, retriever: Asked, rows: Sequence[GoldRow], k: int, repeats: int, *, output: str | None, fresh: bool
    ) -> None:
        self._retriever, self._rows, self._k, self._repeats, self._output = retriever, rows, k, repeats, output
        self._done: dict[Key, Done] = {}
        self._journal: Journal | None = None
        self._cut = 0
        if output is not None:
            from karat.collection.journal import Journal

            settings = {"target": retriever.name, "k": k, "repeats": repeats, **getattr(retriever, "settings", {})}
            self._journal = Journal(output, settings, code=getattr(retriever, "code", ""), fresh=fresh)
            self._journal.check_queries(self._key(job) for job in self._jobs())
            self._done = self._journal.done

    def _jobs(self) -> Iterator[_Job]:
        """Every query, then every query again: the calls of a query are apart in time."""
        return (_Job(row, repeat) for repeat in range(1, self._repeats + 1) for row in range(len(self._rows)))

    def _key(self, job: _Job) -> Key:
        row = self._rows[job.row]
        return row.id, row.query, job.repeat

    def run(self, limits: Limits, *, progress: bool) -> Collected:
        """Call the retriever for what is not done, and return all samples."""
        left = [job for job in self._jobs() if (one := self._done.get(self._key(job))) is None or one.error is not None]
        if self._journal is None:
            return self._called(left, limits, progress=progress)
        if not left and self._journal.has(found := self._collected()):
            return found
        self._journal.open()
        try:
            found = self._called(left, limits, progress=progress)
            self._journal.finish(found)
        finally:
            self._journal.close()
        return found

    def _called(self, left: Sequence[_Job], limits: Limits, *, progress: bool) -> Collected:
        from karat.collection.calls import Calls

        calls = Calls(self._retriever, [self._rows[job.row].query for job in left], limits)
        good = len(self._done) - sum(one.error is not None for one in self._done.values())
        tally = _Tally(calls, len(left), good=good)
        with closing(calls.outcomes()) as outcomes, Progress(len(left), f"collecting {self._retriever.name}") as bar:
            try:
                for outcome in outcomes:
                    self._add(left[outcome.job], outcome)
                    tally.add(outcome)
                    if tally.hopeless(2 * limits.concurrency):
                        break
                    if progress:
                        bar.title = tally.title
                        bar.step()
            except BaseException:  # Ctrl-C: what is known by now is kept
                for outcome in calls.known():
                    self._add(left[outcome.job], outcome)
                raise
        if tally.nothing_good:
            raise tally.error([self._rows[job.row].query for job in left])
        return self._collected(
            calls=len(left), seconds=tally.seconds, cpu=tally.cpu, busy=calls.busy, concurrency=limits.concurrency,
            first=nan if limits.warm_up else tally.first,
        )  # fmt: skip

    def _add(self, job: _Job, outcome: Outcome) -> None:
        from karat.collection.journal import Done

        items = outcome.items
        if items is not None and len(items) > self._k:
            self._cut += 1
            items = items[: self._k]
        done = Done(items, None if items is None else outcome.latency, outcome.error)
        if self._journal is not None:
            self._journal.add(self._key(job), done)
        self._done[self._key(job)] = done

    def _collected(self, **speed: Any) -> Collected:

        pairs = ((row, repeat) for row in range(len(self._rows)) for repeat in range(1, self._repeats + 1))
        samples = [self._sample(_Job(*pair)) for pair in pairs]
        return Collected(
            samples, target=self._retriever.name, k=self._k, cut=self._cut, output=self._output,
            older=0 if self._journal is None else self._journal.older, **speed,
        )  # fmt: skip

    def _sample(self, job: _Job) -> dict[str, Any]:
        row, done = self._rows[job.row], self._done[self._key(job)]
        sample: dict[str, Any] = {"id": row.id, "query": row.query}
        if self._repeats > 1:
            sample["repeat"] = job.repeat
        if done.error is not None:
            return sample | {"error": done.error} | row.fields
        return sample | {"retrieved": done.retrieved} | row.fields | {"latency": done.latency}


class _Tally:
    """The number of outcomes and failures, and the speed, while a collection runs."""

    def __init__(self, calls: Calls, total: int, *, good: int) -> None:
        self._calls, self._total, self._good, self._failed, self._now = calls, total, good, 0, 0
        self._causes: dict[str, list[int]] = {}
        self.cpu, self.first = 0.0, nan
        """The milliseconds in which the processor worked for the calls, and the latency of the first call."""

    def add(self, outcome: Outcome) -> None:
        self._now += 1
        if outcome.error is None:
            self._good += 1
            self.cpu += outcome.cpu
            if outcome.job == 0:
                self.first = outcome.latency
        else:
            self._failed += 1
            self._causes.setdefault(outcome.error, []).append(outcome.job)

    @property
    def seconds(self) -> float:
        """The time since the first call began."""
        return perf_counter() - self._calls.began

    @property
    def title(self) -> str:
        """The speed and the failures, for the progress bar."""
        failed = f", {self._failed:,} failed" if self._failed else ""
        return f"{self._now / max(self.seconds, 1e-9):,.0f} queries/s{failed}"

    @property
    def nothing_good(self) -> bool:
        """True if all calls failed, now and before."""
        return self._failed > 0 and not self._good

    def hopeless(self, in_flight: int) -> bool:
        """True if many calls failed for one reason, and none succeeded."""
        return self.nothing_good and len(self._causes) == 1 and self._failed >= max(_ENOUGH, in_flight)

    def error(self, queries: Sequence[str]) -> NotJudged:
        """The error that says why nothing was collected, with an example of the queries that were called."""
        cause, jobs = max(self._causes.items(), key=lambda pair: len(pair[1]))
        tried = plural(self._failed, "query", "queries")
        rest = self._total - self._failed
        skipped = f"; the other {rest:,} were not tried" if rest else ""
        more = plural(len(self._causes) - 1, "other cause", "other causes")
        others = f" ({len(jobs):,} of them; {more})" if len(self._causes) > 1 else ""
        example = f"for example for {shorten(queries[min(jobs)])}"
        return NotJudged(f"the retriever failed for every query: {tried}{skipped}. {cause}{others}, {example}")
