"""A run: one row of scores per query, what matched what, and where it all came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from karat._internal.arrays import Floats, Ints, mean_defined
from karat._internal.display import html_table, number, plural, sanitize, span, text_table, valid_utf8
from karat.conventions import Convention
from karat.errors import BadArgument, KaratError, UnknownName, unknown
from karat.hits import Hits
from karat.hits.combine import take
from karat.metrics import METRICS, Metric, parse
from karat.run.provenance import Provenance, gold_digest
from karat.run.stored_items import GoldItem, Hit, Items, StoredItems
from karat.stats import Interval, intervals

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Means(dict[str, float]):
    """Values by the names of the metrics; another spelling, such as "mrr", finds them too."""

    def __missing__(self, name: str) -> float:
        try:
            canonical = str(parse(name))
        except KaratError:
            canonical = name
        if canonical in self:
            return self[canonical]
        raise unknown("metric in this run", name, self, "one of: " + ", ".join(self))


class Slices(Mapping[str, "Run"]):
    """Runs by the value of a field."""

    def __init__(self, field: str, runs: Mapping[str, Run]) -> None:
        self.field = field
        self._runs = runs

    def __getitem__(self, value: str) -> Run:
        try:
            return self._runs[value]
        except KeyError:
            raise UnknownName(f'no {self.field} "{value}"', hint=", ".join(self._runs)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per value: how many queries it has, and the mean of each metric."""
        import polars as pl

        columns = {"queries", *next(iter(self._runs.values())).mean}
        field = f"meta.{self.field}" if self.field in columns else self.field
        return pl.DataFrame([{field: value, "queries": len(run), **run.mean} for value, run in self._runs.items()])

    def _lines(self) -> list[list[str]]:
        return [[sanitize(v, 40), str(len(run)), *map(number, run.mean.values())] for v, run in self._runs.items()]

    def _header(self) -> list[str]:
        return [sanitize(self.field), "queries", *next(iter(self._runs.values())).mean]

    def __repr__(self) -> str:
        return text_table([self._header(), *self._lines()], right=range(1, len(self._header())))

    def _repr_html_(self) -> str:
        return html_table(self._header(), self._lines(), f"by {self.field}")


class Run:
    """The result of an evaluation."""

    def __init__(
        self,
        *,
        ids: Sequence[str],
        hits: Hits,
        metrics: tuple[Metric, ...],
        convention: Convention,
        scores: Mapping[str, Floats],
        provenance: Provenance,
        query: Sequence[str | None] | None = None,
        meta: Mapping[str, Sequence[Any]] | None = None,
        items: Callable[[], StoredItems | None] | None = None,
    ) -> None:
        self.ids = ids
        self.metrics = metrics
        self.convention = convention
        self.scores = scores
        self.provenance = provenance
        self.query = query
        self.meta = meta or {}
        self._hits = hits
        self._items = items
        self._intervals: dict[float, dict[str, Interval]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def mean(self) -> dict[str, float]:
        """The mean of each metric over the queries for which it is defined."""
        means = Means({name: mean_defined(values) for name, values in self.scores.items()})
        for metric in self.metrics:
            places = self.convention.of(metric.name, cut=bool(metric.ks)).rounding
            if places is not None:
                means.update({name: round(means[name], places) for name in metric.names})
        return means

    @property
    def failures(self) -> dict[str, str]:
        """The queries that could not be judged, and why; they are in no mean, and not 0."""
        return {self.ids[row]: why for row, why in self._hits.failed.items()}

    def bounds(self) -> dict[str, Interval]:
        """What each mean would be if every query that could not be judged scored 0, and if it scored 1."""
        failed, ends = len(self._hits.failed), {}
        for name, values in self.scores.items():
            defined = values[~np.isnan(values)]
            count, total = len(defined) + failed, float(defined.sum())
            ends[name] = Interval(total / count, (total + failed) / count) if count else Interval(np.nan, np.nan)
        return ends

    @cached_property
    def undefined(self) -> dict[str, int]:
        """For how many queries each metric is undefined, and so not in its mean."""
        return {name: int(np.isnan(values).sum()) for name, values in self.scores.items()}

    @cached_property
    def pooled(self) -> dict[str, float]:
        """Micro averages: every gold item (or rank) counts the same, whichever query it belongs to.

        Only metrics that are a share of something have one.
        """
        found: dict[str, float] = {}
        for metric in self.metrics:
            if metric.name not in METRICS:
                continue
            for name, weights in metric.weights(self._hits, self.convention).items():
                defined = ~np.isnan(self.scores[name])
                total = float(weights[defined].sum())
                top = float(np.dot(self.scores[name][defined], weights[defined]))
                found[name] = top / total if total else float("nan")
        return found

    @property
    def gold_size(self) -> float:
        """How many relevant gold items a query has, on average over those that have any."""
        counts = self._hits.gold_count()
        return mean_defined(np.where(counts > 0, counts, np.nan))

    @property
    def gold_hash(self) -> str:
        """A digest of the queries and their gold; two runs with the same one had the same task."""
        return gold_digest(self.ids, self._hits.gold_items)

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per query, in the order given: its id, then each metric under its name."""
        import polars as pl

        return pl.DataFrame({"query_id": valid_utf8(self.ids), **self.scores})

    def to_polars(self) -> pl.DataFrame:
        """The table of per-query scores."""
        return self.table

    def to_pandas(self) -> pd.DataFrame:
        """The table of per-query scores, for pandas."""
        import pandas as pd

        return pd.DataFrame({"query_id": list(self.ids), **self.scores})

    def to_dict(self) -> dict[str, Any]:
        """Everything that is shown of a run, as plain values."""
        return {
            "mean": self.mean,
            "interval": {name: list(ends) for name, ends in self.interval().items()},
            "undefined": self.undefined,
            "failures": self.failures,
            "bounds": {name: list(ends) for name, ends in self.bounds().items()} if self._hits.failed else {},
            "pooled": self.pooled,
            "queries": len(self),
            "gold_size": self.gold_size,
            "provenance": self.provenance.to_dict(),
        }

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """The confidence interval of each mean, by a seeded bootstrap over the queries."""
        if level not in self._intervals:
            self._intervals[level] = intervals(self.scores, level)
        return dict(self._intervals[level])

    def hits(self, query_id: str | int) -> list[Hit]:
        """What matched what in one query, best rank first."""
        row, h = self.row(query_id), self._hits
        found = self._hits_of(row)
        why = h.why
        return [
            Hit(
                int(h.rank[i]),
                h.gold_items.label[int(h.gold[i])],
                float(h.grade[i]),
                why if isinstance(why, str) else why[i],
            )
            for i in found
        ]

    def gold(self, query_id: str | int) -> list[GoldItem]:
        """The gold items of one query, each with the rank at which it was found."""
        row, h, of = self.row(query_id), self._hits, self._hits.gold_items
        first, last = int(of.start[row]), int(of.start[row + 1])
        ranks: dict[int, int] = {}
        for i in self._hits_of(row):
            if h.part is None or not h.part[i]:
                ranks.setdefault(int(h.gold[i]), int(h.rank[i]))
        return [GoldItem(of.label[i], float(of.grade[i]), ranks.get(i)) for i in range(first, last)]

    def items(self, query_id: str | int) -> Items | None:
        """What came back for one query and its gold, with their texts; None in files of runs that kept no items."""
        row = self.row(query_id)
        return None if self.stored_items is None else self.stored_items.items(row)

    @cached_property
    def stored_items(self) -> StoredItems | None:
        """The stored items of all queries, the same in memory as in a file."""
        return None if self._items is None else self._items()

    def by(self, field: str) -> Slices:
        """A run for each value of a field of the samples."""
        if not isinstance(field, str) or field not in self.meta:
            fields = ", ".join(self.meta)
            raise unknown("field", str(field), self.meta, f"one of: {fields}" if fields else None)
        rows: dict[str, list[int]] = {}
        for row, value in enumerate(self.meta[field]):
            rows.setdefault("(none)" if value is None else str(value), []).append(row)
        return Slices(field, {value: self.take(rows[value]) for value in sorted(rows)})

    def take(self, rows: Sequence[int]) -> Run:
        """The run of some of its queries, in this order; its provenance is that of the whole."""
        if len(set(rows)) < len(rows) or not all(0 <= row < len(self) for row in rows):
            raise BadArgument("rows are different numbers, from 0 to the number of queries", got=rows)
        index = np.array(rows, np.int64)
        return Run(
            ids=[self.ids[row] for row in rows],
            hits=take(self._hits, index),
            metrics=self.metrics,
            convention=self.convention,
            scores={name: values[index] for name, values in self.scores.items()},
            provenance=self.provenance,
            query=None if self.query is None else [self.query[row] for row in rows],
            meta={name: [column[row] for row in rows] for name, column in self.meta.items()},
            items=partial(_take_items, self, index),
        )

    def replace(self, **changes: Any) -> Run:
        """A copy of the run with some of the constructor's arguments changed."""
        own: dict[str, Any] = {
            "ids": self.ids, "hits": self._hits, "metrics": self.metrics, "convention": self.convention,
            "scores": self.scores, "provenance": self.provenance, "query": self.query, "meta": self.meta,
            "items": self._items,
        }  # fmt: skip
        return Run(**(own | changes))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the run as one Parquet file, its provenance inside."""
        from karat.run.file import save

        save(self, path)

    def report(
        self,
        path: str | PathLike[str],
        baseline: Run | str | PathLike[str] | None = None,
        *,
        allow_mismatch: bool = False,
    ) -> None:
        """Write the run as one HTML page, compared with a baseline if there is one."""
        from karat.report.html import report

        report(self, path, baseline=baseline, allow_mismatch=allow_mismatch)

    @property
    def all_hits(self) -> Hits:
        """The hits of every query, as columns."""
        return self._hits

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {query: row for row, query in enumerate(self.ids)}

    def _hits_of(self, row: int) -> range:
        """The rows of a query's hits, which stand in order."""
        first, last = np.searchsorted(self._hits.query, (row, row + 1)).tolist()
        return range(first, last)

    def row(self, query_id: str | int) -> int:
        """The place of a query among the ids."""
        row = self._rows.get(str(query_id))
        if row is None:
            raise unknown("query", str(query_id), self.ids[:10_000], "run.table lists the queries")
        return row

    def remarks(self) -> list[str]:
        """What a reader of the means should know: what is not in them, and how the data were read."""
        from karat.report.notes import remarks

        return remarks(self)

    def _lines(self) -> list[list[str]]:
        ends = self.interval()
        return [[name, number(value), span(*ends[name])] for name, value in self.mean.items()]

    def __repr__(self) -> str:
        remarks = [f"  {remark}" for remark in self.remarks()]
        return "\n".join([self._caption(), text_table(self._lines(), right=(1,)), *remarks])

    def _repr_html_(self) -> str:
        caption = " · ".join([self._caption(), *self.remarks()])
        return html_table(("metric", "mean", "95 % interval"), self._lines(), caption)

    def _caption(self) -> str:
        p = self.provenance
        size = "–" if self.gold_size != self.gold_size else f"{self.gold_size:.1f}"
        return (
            f"Run · {plural(len(self), 'query', 'queries')} · {size} gold items per query · "
            f"judge: {p.judge} · convention: {self.convention.name}"
        )


def _take_items(run: Run, rows: Ints) -> StoredItems | None:
    return None if run.stored_items is None else run.stored_items.take(rows)
