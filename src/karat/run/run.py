"""Run: the result of an evaluation. One row of scores per query, the hits, and the provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from os import PathLike
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from karat._internal.arrays import Floats, Ints
from karat._internal.commit import current_commit
from karat._internal.display import valid_utf8
from karat._internal.result import Result
from karat.conventions import Convention
from karat.errors import BadArgument, UnknownName, unknown
from karat.hits import Hits
from karat.hits.combine import take
from karat.metrics import Metric
from karat.run.aspect_summary import AspectSummary, aspect_cutoff, aspects_of_run
from karat.run.frame import frame_of, pandas_of
from karat.run.numbers import check_fields, read_fields
from karat.run.provenance import Provenance, gold_digest
from karat.run.repeats import averaged_run
from karat.run.scored import Scored
from karat.run.slices import Slices, group_rows
from karat.run.step_summary import HopRow, StepSummary, hops_of_run, shown_cutoff, steps_of_run
from karat.run.stored_items import GoldItem, Hit, Items, StoredItems
from karat.run.thresholds import Thresholds, naucs_of, thresholds_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Run(Scored, Result):
    """The result of an evaluation, as `karat.evaluate` returns it and `karat.load` loads it."""

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
        file: str | None = None,
    ) -> None:
        fields = dict(sorted((meta or {}).items()))  # the first row with a field may be in any part
        super().__init__(ids, hits, metrics, convention, scores, provenance, fields)
        self.query = query
        self.file = file
        self._items = items

    @cached_property
    def steps(self) -> StepSummary | None:
        """The steps with what each found, if the rankings were merged from steps."""
        return steps_of_run(self)

    @cached_property
    def hops(self) -> list[HopRow]:
        """The hops of the gold with what was found of each; empty if the gold has no hops."""
        return hops_of_run(self, shown_cutoff(self))

    @cached_property
    def aspects(self) -> AspectSummary | None:
        """The aspects of the gold with what was found of each; None if it has none."""
        return None if self._hits.gold_items.aspects is None else aspects_of_run(self, aspect_cutoff(self))

    def thresholds(self, k: int | None = None) -> Thresholds:
        """False alarms on the queries without an answer, and recall on the others, at each threshold of the scores.

        Args:
            k: the cutoff; default: that of the run's recall that is nearest to 5, as in the report, or 10.

        Returns:
            A `Thresholds`: `points` (the curve), `at(0.7)`, `keeping(0.95)`, `auroc` with `auroc_interval`, and
            `choice` (the recommended threshold, with its effect on held-out queries). It needs retrieval scores.
        """
        return thresholds_of(self, k)

    def nauc(self) -> dict[str, dict[str, float]]:
        """MTEB's nAUC of each metric: how well the scores of a ranking tell if it is good.

        Returns:
            For each metric, by confidence: "max" (the highest score), "std" (the standard deviation of the scores) and
            "diff1" (the highest score minus the second). 1 is as good as an oracle, 0 is no help; NaN if undefined.
        """
        return naucs_of(self)

    @property
    def name(self) -> str:
        """The name of the run in headings: the run file that it was loaded from, or the source of its samples."""
        return self.provenance.source if self.file is None else PurePath(self.file).name

    @property
    def commit(self) -> str:
        """The git commit of the file that it was loaded from, or else of the working directory; empty if not known."""
        return self.provenance.commit or ("" if self.file else current_commit())

    @cached_property
    def gold_hash(self) -> str:
        """A digest of the queries, their texts and their gold; runs with the same digest had the same test set."""
        return gold_digest(self.ids, self._hits.gold_items, self.query)

    @cached_property
    def table(self) -> pl.DataFrame:
        """One row per query, in input order: its id, then each metric and measure under its name; null if undefined."""
        return frame_of(self)

    def to_polars(self, *, fields: bool = False) -> pl.DataFrame:
        """The table of per-query scores as a Polars DataFrame.

        Args:
            fields: also the text of each query, if given, and the fields of the samples, before the scores. A field
                that has the name of another column is called `meta.<field>`.
        """
        return frame_of(self, fields=True) if fields else self.table

    def to_pandas(self, *, fields: bool = False) -> pd.DataFrame:
        """The table of per-query scores as a pandas DataFrame, with `fields=True` as in `to_polars`."""
        return pandas_of(self, fields=fields)

    def hits(self, query_id: str | int) -> list[Hit]:
        """The matches of one query, best rank first."""
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
        """The gold items of one query, each with the rank at which it was found, or None."""
        row, h, of = self.row(query_id), self._hits, self._hits.gold_items
        first, last = int(of.start[row]), int(of.start[row + 1])
        ranks: dict[int, int] = {}
        for i in self._hits_of(row):
            if h.part is None or not h.part[i]:
                ranks.setdefault(int(h.gold[i]), int(h.rank[i]))
        return [GoldItem(of.label[i], float(of.grade[i]), ranks.get(i)) for i in range(first, last)]

    def items(self, query_id: str | int) -> Items | None:
        """The retrieved items of one query and its gold, with texts; None if the run stores no items."""
        row = self.row(query_id)
        return None if self.stored_items is None else self.stored_items.items(row)

    @cached_property
    def stored_items(self) -> StoredItems | None:
        """The stored items of all queries, the same in memory as in a file."""
        return None if self._items is None else self._items()

    def also(self, fields: str | Sequence[str]) -> Run:
        """The run with the numbers of some fields of its samples beside the scores, as latency is without asking.

        Args:
            fields: the names of the fields, such as "cost,tokens" or ["cost", "tokens"]. Less is better, unless
                "(more)" follows, as in "clicks(more)". A record in a field has dotted names, as in "usage.total".

        Returns:
            The same run, in which `run.numbers["cost"]` and `run.summary("p95")["cost"]` exist.
        """
        wanted = {field.name: field for field in read_fields([*self.provenance.also, *map(str, read_fields(fields))])}
        check_fields(tuple(wanted.values()), self.ids, self.meta, self.columns)
        return self.replace(provenance=replace(self.provenance, also=tuple(map(str, wanted.values()))))

    def averaged(self) -> Run:
        """The run with one row per query: the mean of each score over its repeats; itself if there are none."""
        if self.repeats is None:
            return self
        run = averaged_run(self, self.repeats)
        run.averages = self
        return run

    @property
    def with_repeats(self) -> Run:
        """The run with one row per repeat, if this one has the means of its queries; else itself."""
        return self.averages if isinstance(self.averages, Run) else self

    def by(self, *fields: str) -> Slices:
        """One run per value of a field of the samples, each with the notes that hold for any part of the run.

        Args:
            fields: the name of a field of the input that is not one of karat's own, such as "topic". Several fields
                are crossed: one run for each combination of values.

        Returns:
            The runs by value, such as `run.by("topic")["billing"].mean` or `run.by("topic", "lang")["billing", "en"]`;
            `run.by("topic").table` has all means.
        """
        groups, provenance = group_rows(self.meta, *fields), self.provenance.of_any_part()
        return Slices(groups, [self.take(rows).replace(provenance=provenance) for rows in groups.rows.values()])

    def take(self, rows: Sequence[int]) -> Run:
        """The run of some of the queries, in this order, with the provenance of the whole run."""
        check_rows(rows, len(self))
        index = np.array(rows, np.int64)
        return Run(
            ids=[self.ids[row] for row in rows],
            hits=take(self._hits, index),
            metrics=self.requested,
            convention=self.convention,
            scores={name: values[index] for name, values in self.columns.items()},
            provenance=self.provenance,
            query=None if self.query is None else [self.query[row] for row in rows],
            meta={name: [column[row] for row in rows] for name, column in self.meta.items()},
            items=partial(_take_items, self, index),
            file=self.file,
        )

    def replace(self, **changes: Any) -> Run:
        """A copy of the run with some of the constructor's arguments changed."""
        own: dict[str, Any] = {
            "ids": self.ids, "hits": self._hits, "metrics": self.requested, "convention": self.convention,
            "scores": self.columns, "provenance": self.provenance, "query": self.query, "meta": self.meta,
            "items": self._items, "file": self.file,
        }  # fmt: skip
        return Run(**(own | changes))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the run to one Parquet file, with its provenance; `karat.load` reads it.

        Args:
            path: the file, such as "run.parquet"; a name that ends in .csv, .json or another format is refused.
                An existing file is replaced only after the new one is complete.
        """
        from karat.run.file import save

        save(self, path)

    def report(
        self,
        path: str | PathLike[str],
        baseline: Run | str | PathLike[str] | None = None,
        *,
        allow_mismatch: bool = False,
        summary: str | Sequence[str] = (),
    ) -> None:
        """Write the run as one HTML page.

        Args:
            path: the HTML file.
            baseline: a run, or the path of a run file, to compare with.
            allow_mismatch: compare even if the gold, the judge or the convention differ.
            summary: also show summaries of each metric, as in `run.summary`, such as "p10,median".
        """
        self._render("report", path=path, baseline=baseline, allow_mismatch=allow_mismatch, summary=summary)

    @cached_property
    def _rows(self) -> dict[str, int]:
        rows = {query: row for row, query in enumerate(self.ids)}
        if self.repeats is None:
            return rows
        first = self.repeats.first_judged(self._hits.failed).tolist()
        return dict(zip(self.queries, first, strict=True)) | rows

    def _hits_of(self, row: int) -> range:
        """The rows of the hits of a query."""
        first, last = np.searchsorted(self._hits.query, (row, row + 1)).tolist()
        return range(first, last)

    def row(self, query_id: str | int) -> int:
        """The row number of a query; of one with repeats that of its first repeat that was judged."""
        row = self._rows.get(valid_utf8([str(query_id)])[0])
        if row is None:
            raise unknown_query(str(query_id), self.queries[:10_000], len(self.queries))
        return row

    def remarks(self) -> list[str]:
        """Sentences that a reader of the means should know: what is excluded, and how the data was read."""
        return list(self._render("remarks"))


def check_rows(rows: Sequence[int], size: int) -> None:
    """Refuse numbers of rows that a run of this size does not have, or that are given twice."""
    if len(set(rows)) < len(rows) or not all(0 <= row < size for row in rows):
        raise BadArgument("rows must be distinct row numbers, from 0", got=rows)


def unknown_query(query_id: str, known: Sequence[str], size: int) -> UnknownName:
    """The error for an id that no query of a run has, given the first of its ids and the number of its queries."""
    more = f", … ({size:,} queries)" if size > 5 else ""
    return unknown("query", query_id, known[:10_000], f"one of: {', '.join(known[:5])}{more}")


def _take_items(run: Run, rows: Ints) -> StoredItems | None:
    return None if run.stored_items is None else run.stored_items.take(rows)
