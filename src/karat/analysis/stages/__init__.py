"""Stages of a pipeline: what each adds, what its candidates allow, and which gold the last one moves in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, mean_defined
from karat._internal.display import sanitize
from karat._internal.result import Result
from karat.analysis.changes import rows_of
from karat.analysis.compare import compare
from karat.analysis.diagnose.miss import default_cutoff
from karat.analysis.pairs import Row, paired_rows
from karat.analysis.stages.stage_runs import (
    Identities,
    evaluate_stages,
    given_runs,
    run_over,
    shared_runs,
    stored_identities,
    with_metrics,
)
from karat.conventions import STANDARD, Convention
from karat.errors import BadArgument, KaratError
from karat.hits import Hits
from karat.hits.reranking import gold_numbers, ideal, pool
from karat.judges import JudgeLike
from karat.metrics import DEFAULT, METRICS, Metric, parse
from karat.plan import Plan
from karat.run import Run
from karat.run.file import as_run
from karat.run.repeats import one_row_each
from karat.samples.field_map import Fields
from karat.samples.notes import Note

if TYPE_CHECKING:
    import polars as pl


class StageChange(NamedTuple):
    """A stage compared with the one before it, over the queries that have both."""

    before: str
    after: str
    queries: int
    rows: list[Row]
    """One per metric; p is corrected by Holm's method over all metrics and all pairs of stages."""


class Ceiling(NamedTuple):
    """The gold among the candidates of a stage, whatever their order."""

    mean: float
    """The mean over the queries of the share of their gold: recall without a cutoff."""
    found: int
    """The number of gold items of all queries that are among the candidates."""
    gold: int
    """The number of gold items of all queries."""
    queries: dict[str, float]
    """The share of each query; NaN without gold."""

    @property
    def missing(self) -> int:
        """The number of gold items that no reranking of these candidates can find."""
        return self.gold - self.found


class Candidates(NamedTuple):
    """The candidates of the last stage: all items of the stages before it."""

    legs: tuple[str, ...]
    ceiling: Ceiling
    ideal: Run
    """The run of an ideal reranking of these candidates."""


class StageMove(NamedTuple):
    """A gold item that the last stage moved into the top k, or out of it."""

    query_id: str
    query: str | None
    gold: str
    text: str | None
    """The text of the gold item, if the run stores it."""
    grade: float
    before: dict[str, int | None]
    """Its rank in each earlier stage; None if it was not retrieved."""
    after: int | None


class NewItems(NamedTuple):
    """Items of the last stage that no stage before it retrieved."""

    new: int
    items: int
    """The number of items of the last stage."""
    queries: int
    """The number of queries with such items."""


@dataclass(repr=False, eq=False, kw_only=True)
class Stages(Result):
    """The result of `karat.stages`."""

    runs: dict[str, Run]
    """The run of each stage, in the order of the pipeline; the last one reranks the items of the others."""
    metrics: list[str]
    k: int
    comparison: list[StageChange]
    """Each stage compared with the one before it."""
    ceiling: dict[str, Ceiling]
    ideal: dict[str, Run]
    """The run of an ideal reranking of the candidates of each stage."""
    candidates: Candidates
    new_items: NewItems | None
    """Items that only the last stage has; None if run files do not store all items."""
    notes: tuple[Note, ...]
    shared: dict[str, Run]
    """The runs over the queries that every stage has, and could be judged in each."""

    def __len__(self) -> int:
        return len({query for run in self.runs.values() for query in run.queries})

    @property
    def last(self) -> str:
        """The name of the last stage."""
        return list(self.runs)[-1]

    @cached_property
    def ranks(self) -> dict[str, Floats]:
        """The rank of every gold item in each stage, over the shared queries; infinite if it was not retrieved."""
        gold = self.shared[self.last].all_hits.gold_items
        ranks = {}
        for name, run in self.shared.items():
            hits = run.all_hits
            whole = hits.grade > 0 if hits.part is None else (hits.grade > 0) & ~hits.part
            number = gold_numbers(gold, hits.gold_items)[hits.gold[whole]]
            ranks[name] = np.full(len(gold.grade), np.inf)
            np.minimum.at(ranks[name], number[number >= 0], hits.rank[whole][number >= 0].astype(float))
        return ranks

    @cached_property
    def best_before(self) -> Floats:
        """The best rank of every gold item in the stages before the last."""
        best: Floats = np.min([ranks for name, ranks in self.ranks.items() if name != self.last], axis=0)
        return best

    @cached_property
    def lifted(self) -> list[StageMove]:
        """The gold items in the top k of the last stage that are in the top k of no stage before it."""
        return self._moves((self.ranks[self.last] <= self.k) & (self.best_before > self.k))

    @cached_property
    def pushed_out(self) -> list[StageMove]:
        """The gold items in the top k of a stage before the last that are not in the top k of the last."""
        return self._moves((self.ranks[self.last] > self.k) & (self.best_before <= self.k))

    @cached_property
    def new_gold(self) -> int:
        """The number of gold items that only the last stage found."""
        only = np.isfinite(self.ranks[self.last]) & ~np.isfinite(self.best_before)
        return int((only & self._relevant).sum())

    @property
    def _relevant(self) -> Bools:
        return self.shared[self.last].all_hits.gold_items.grade > 0

    def _moves(self, moved: Bools) -> list[StageMove]:
        run = self.shared[self.last]
        hits, moves = run.all_hits, []
        for number in np.flatnonzero(moved & self._relevant).tolist():
            row = int(hits.gold_query[number])
            ranks = {name: int(own[number]) if np.isfinite(own[number]) else None for name, own in self.ranks.items()}
            moves.append(
                StageMove(
                    run.ids[row],
                    None if run.query is None else run.query[row],
                    hits.gold_items.label[number],
                    _text(run, row, number - int(hits.gold_items.start[row])),
                    float(hits.gold_items.grade[number]),
                    {name: rank for name, rank in ranks.items() if name != self.last},
                    ranks[self.last],
                )
            )
        return moves

    def remarks(self) -> list[str]:
        """Sentences on how the stages were read and what was left out."""
        return list(self._render("remarks"))

    @property
    def conclusion(self) -> str:
        """One sentence: what the last stage lifts and pushes out, and what its candidates lack."""
        return str(self._render("conclusion"))

    @property
    def table(self) -> pl.DataFrame:
        """One row per stage and metric: the mean, the ceiling, the ideal, and the difference to the stage before."""
        import polars as pl

        changes = {(change.after, row.metric): row for change in self.comparison for row in change.rows}
        rows = []
        for name, run in self.runs.items():
            ends = run.interval()
            for metric in self.metrics:
                row = changes.get((name, metric))
                difference = dict.fromkeys(("difference", "difference_low", "difference_high", "p"))
                if row is not None:
                    difference = dict(zip(difference, (row.difference, row.low, row.high, row.p), strict=True))
                rows.append(
                    {
                        "stage": sanitize(name), "queries": len(run), "metric": metric, "mean": run.mean[metric],
                        "low": ends[metric].low, "high": ends[metric].high, "ceiling": self.ceiling[name].mean,
                        "ideal": self.ideal[name].mean[metric], **difference,
                    }
                )  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None).fill_nan(None)


def stages(
    samples: Any,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    *,
    names: Sequence[str] | None = None,
    judge: JudgeLike = "auto",
    at: Literal["item", "doc"] = "item",
    convention: str | Convention = "standard",
    order: Literal["listed", "score"] | None = None,
    k: int | None = None,
    fields: Fields = None,
) -> Stages:
    """Compare the stages of a retrieval pipeline: what each adds, and what the last one could still reach.

    Args:
        samples: a list of dicts with "stages" instead of "retrieved", `{"query": …, "gold": […], "stages": {"bm25":
            […], "dense": […], "reranked": […]}}`, in the order of the pipeline; a frame; or the path of such a file.
            Or the runs of the stages, or the paths of their files: a list, or a dict by name.
        metrics: metric names, such as "recall@5 ndcg@10"; default: those of `karat.evaluate`, or all that the runs
            have.
        names: the stages to compare and their order; for a list of runs, their names (default: those of the files).
        judge: how items are matched, as in `karat.evaluate`; every stage is judged alike.
        at: "item" compares items; "doc" counts each chunk as the document it is from.
        convention: the definition of the metrics, as in `karat.evaluate`.
        order: "score" sorts lists by their scores, as in `karat.evaluate`.
        k: the cutoff for what was lifted and pushed out; default: the cutoff of the recall that is nearest to 5.
        fields: your column names, by karat's, as for `karat.evaluate`.

    Returns:
        A `Stages`: `runs`, `comparison` (each stage with the one before it), `ceiling` (the gold among the candidates),
        `ideal` (the best that a reranking could reach), `candidates` (the same for all stages before the last
        together), `lifted` and `pushed_out`, `conclusion`, `table`, `remarks()`, `to_dict()`, `to_markdown()`.

    Example:
        >>> stages = karat.stages("stages.jsonl", "recall@5 ndcg@10")
        >>> stages.conclusion
        'reranked lifts 31 gold items into the top 5 …'
    """
    given = given_runs(samples, names)
    if given is None:
        plan = Plan.of(DEFAULT if metrics is None else metrics, judge, convention, at=at, order=order)
        found = evaluate_stages(samples, plan, names, fields)
        return _result(found.runs, None, k, found.items)
    usual = {"judge": "auto", "at": "item", "convention": "standard", "order": None}
    for setting, value in {"judge": judge, "at": at, "convention": convention, "order": order}.items():
        if value != usual[setting]:
            raise BadArgument(f"runs are judged already: {setting} cannot be changed", got=value, hint=f"no {setting}")
    return _result({name: one_row_each(as_run(run), "stages") for name, run in given.items()}, metrics, k, None)


def _result(runs: dict[str, Run], metrics: Any, k: int | None, items: Mapping[str, Identities] | None) -> Stages:
    """The result, from the runs of the stages."""
    runs, columns = with_metrics(runs, metrics)
    names = list(runs)
    cutoff = default_cutoff(runs[names[-1]], k)
    comparison = _comparison(runs, columns)
    sets = stored_identities(runs) if items is None else items
    shared = shared_runs(runs)
    rows = {name: rows_of(runs[name], run.ids).tolist() for name, run in shared.items()}
    united, new = None, None
    if sets is not None:
        *before, last = ([sets[name][row] for row in own] for name, own in rows.items())
        pooled = [frozenset().union(*own) for own in zip(*before, strict=True)]
        united = np.fromiter(map(len, pooled), np.int64, len(pooled))
        others = [len(own - known) for own, known in zip(last, pooled, strict=True)]
        new = NewItems(sum(others), sum(map(len, last)), sum(map(bool, others)))
    legs = pool([shared[name].all_hits for name in names[:-1]], united)
    first = shared[names[0]]
    return Stages(
        runs=runs,
        metrics=columns,
        k=cutoff,
        comparison=comparison,
        ceiling={name: _ceiling(run.ids, run.all_hits) for name, run in runs.items()},
        ideal={name: _ideal_run(run, ideal(run.all_hits)) for name, run in runs.items()},
        candidates=Candidates(tuple(names[:-1]), _ceiling(first.ids, legs), _ideal_run(first, legs)),
        new_items=new,
        notes=_notes(runs, shared),
        shared=shared,
    )


def _comparison(runs: Mapping[str, Run], columns: list[str]) -> list[StageChange]:
    """Each stage compared with the one before it; all p-values are corrected together."""
    compared = []
    for before, after in pairwise(runs):
        both = set(runs[after].ids)
        ids = [query for query in runs[before].ids if query in both]
        pair = [run_over(run, ids) if ids else run for run in (runs[before], runs[after])]
        try:
            compared.append(compare(pair[0], pair[1], metrics=columns, names=(before, after)))
        except BadArgument as error:
            hint = "the same gold, judge and convention for every stage" if ids else error.hint
            refused = BadArgument(error.problem, hint=hint)
            refused.got = error.got
            raise refused from error
    tests = paired_rows([one.scores for one in compared], "sign-flip")
    return [StageChange(one.names[0], one.names[1], len(one), rows) for one, rows in zip(compared, tests, strict=True)]


def _ceiling(ids: Sequence[str], hits: Hits) -> Ceiling:
    """The gold among the candidates, over the queries that could be judged."""
    judged = ~np.isin(np.arange(hits.queries), list(hits.failed))
    share = np.where(judged, parse("recall").scores(hits, STANDARD)["recall"], np.nan)
    found, gold = hits.retrieved_count(STANDARD)[judged].sum(), hits.gold_count()[judged].sum()
    return Ceiling(mean_defined(share), int(found), int(gold), dict(zip(ids, share.tolist(), strict=True)))


def without_ideal(run: Run) -> list[str]:
    """The names of the metrics for which no order, or another one, is ideal."""
    return [name for metric in run.metrics if _has_no_ideal(metric) for name in metric.names]


def _has_no_ideal(metric: Metric) -> bool:
    return metric.of_aspects or metric.of_unanswerable


def _ideal_run(run: Run, hits: Hits) -> Run:
    """The run with other hits; a metric that cannot be computed from them is undefined.

    So are the metrics of aspects, for which another order is ideal, and those of queries without an answer, whose
    candidates no order makes relevant.
    """
    failed = np.isin(np.arange(hits.queries), list(hits.failed))
    scores = {}
    for metric in run.requested:
        try:
            known = metric.unit or (metric.name in METRICS and not _has_no_ideal(metric))
            own = metric.scores(hits, run.convention) if known else {}
        except KaratError:
            own = {}
        for name in metric.names:
            scores[name] = np.where(failed, np.nan, own.get(name, np.full(hits.queries, np.nan)))
    return run.replace(hits=hits, scores={name: scores[name] for name in run.columns}, items=None)


def _text(run: Run, row: int, item: int) -> str | None:
    """The text of a gold item, if it is stored."""
    stored = run.stored_items
    if stored is None or "text" not in stored.gold:
        return None
    first, last = stored.gold_start[row : row + 2].tolist()
    texts, items = stored.gold["text"], stored.gold["item"]
    return next((texts[i] for i in range(first, last) if items[i] == item and texts[i] is not None), None)


def _notes(runs: Mapping[str, Run], shared: Mapping[str, Run]) -> tuple[Note, ...]:
    """Notes on the queries that lack a stage."""
    every = dict.fromkeys(query for run in runs.values() for query in run.ids)
    notes = []
    for name, run in runs.items():
        own = set(run.ids)
        if lacking := [query for query in every if query not in own]:
            notes.append(Note("stage_missing", len(lacking), len(every), tuple(lacking[:2]), {"stage": name}))
    if notes:
        notes.append(Note("stages_shared", len(shared[list(runs)[-1]]), len(every)))
    return tuple(notes)
