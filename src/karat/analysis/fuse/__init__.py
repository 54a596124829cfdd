"""Fuse the rankings of several retrievers, and measure what that adds to the best of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.output import write_text
from karat._internal.result import Result
from karat.analysis.compare import LETTERS, Comparison, compare, run_names
from karat.analysis.fuse.fused_run import Evaluator
from karat.analysis.fuse.fusion_sweep import FOLDS, FusionSweep, sweep_of
from karat.analysis.fuse.legs import Aligned, LegLike, align, check_scores, read_legs, unscored_legs
from karat.errors import BadArgument
from karat.fusion import Fuser, parse_fuser
from karat.metrics import Metric
from karat.run import Run
from karat.samples.field_map import Fields
from karat.samples.notes import Note

FUSED = "fused"
"""The name of the fused run in comparisons."""


@dataclass(repr=False, eq=False)
class Fusion(Result):
    """The result of `karat.fuse`."""

    fuser: Fuser
    names: list[str]
    """The names of the legs."""
    ids: list[str]
    """The query ids."""
    depth: int | None
    legs: list[Run]
    """The runs of the legs; empty if some leg is not a run."""
    run: Run | None
    """The fused run, with the metrics of the legs; None if some leg is not a run, or cannot be evaluated again."""
    ceiling: float
    """The share of the gold that any leg found, which no order of the candidates can exceed; NaN without a run."""
    within_depth: float
    """The share of the gold that any leg found within `depth`; NaN without a depth. Items further down may rise."""
    sweep: FusionSweep | None
    """The sweep that chose the method, if there was one."""
    notes: tuple[Note, ...]
    sizes: list[int]
    """The number of items of each leg."""
    _aligned: Aligned
    _scores: Floats

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def method(self) -> str:
        """The method with its settings, such as `rrf(k=60)`."""
        return str(self.fuser)

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weights of the legs, if the method has any."""
        return self.fuser.weights

    @cached_property
    def retrieved(self) -> dict[str, dict[str, float]]:
        """The fused scores by query and item, the best first, as `karat.evaluate(retrieved=…)` takes them."""
        candidates = self._aligned.candidates
        single = self._aligned.convention.scores == "single"
        with np.errstate(over="ignore"):
            compared = self._scores.astype(np.float32).astype(float) if single else self._scores
        order, start = candidates.ranking(compared, self.depth)
        keys, scores, bounds = (
            [candidates.keys[i] for i in order.tolist()],
            self._scores[order].tolist(),
            start.tolist(),
        )
        return {
            query: dict(zip(keys[bounds[row] : bounds[row + 1]], scores[bounds[row] : bounds[row + 1]], strict=True))
            for row, query in enumerate(self.ids)
        }

    @cached_property
    def best_leg(self) -> int | None:
        """The number of the leg with the highest mean, in the metric of the sweep or the first one."""
        if self.run is None:
            return None
        metric = next(iter(self.run.scores)) if self.sweep is None else self.sweep.metric
        means = [leg.mean[metric] for leg in self.legs]
        return None if np.isnan(means).all() else int(np.nanargmax(means))

    @cached_property
    def comparison(self) -> Comparison | None:
        """The fused run compared with the best single leg; None if there is no fused run."""
        if self.run is None or self.best_leg is None:
            return None
        fused = FUSED if FUSED not in self.names else f"{FUSED} ({self.method})"
        names, leg = [self.names[self.best_leg], fused], self.legs[self.best_leg]
        metrics = None if leg.scores.keys() == self.run.scores.keys() else list(self.run.scores)
        return compare(leg, self.run, metrics=metrics, names=names, allow_mismatch=True)

    def remarks(self) -> list[str]:
        """One sentence per note: what is missing in a leg, and what was left out."""
        return list(self._render("remarks"))

    def to_trec(self, path: str | os.PathLike[str], tag: str = "karat") -> None:
        """Write the fused rankings as a TREC run: `query Q0 item rank score tag`.

        Args:
            path: the file; an existing one is replaced.
            tag: the last field of every line.
        """
        lines = []
        for query, items in self.retrieved.items():
            for rank, (item, score) in enumerate(items.items(), 1):
                if bad := next((name for name in (query, item, tag) if not name or len(name.split()) != 1), None):
                    raise BadArgument("a TREC file cannot hold an id with white space", got=bad, hint="-o run.parquet")
                lines.append(f"{query} Q0 {item} {rank} {score!r} {tag}\n")
        write_text(path, "".join(lines))


def fuse(
    a: LegLike,
    b: LegLike,
    *more: LegLike,
    method: str = "rrf(60)",
    weights: Sequence[float] | str | None = None,
    depth: int | None = None,
    names: Sequence[str] | None = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    sweep: bool = False,
    metric: str | None = None,
    folds: int = FOLDS,
    allow_mismatch: bool = False,
    fields: Fields = None,
) -> Fusion:
    """Fuse the rankings of several retrievers into one.

    Args:
        a: the first leg: a run, the path of a run file, of a TREC run or of samples, or results by query, such as
            `{"q1": {"doc-4": 12.5}}` or `{"q1": ["doc-4"]}`.
        b: the second leg.
        more: further legs.
        method: "rrf(60)", "wsum(norm=min-max)", "combmnz(norm=zmuv)", "isr", "rbc(0.8)", "borda", ….
        weights: one weight per leg, for rrf and wsum, such as [0.7, 0.3].
        depth: the number of items of a fused ranking; default: all of them.
        names: one name per leg; default: the names of the files, or A, B, ….
        metrics: metrics that all legs have; default: all of them.
        sweep: choose the method and the weights by cross-validation over the queries; the legs must be runs.
        metric: the metric that a sweep maximises; default: the first.
        folds: the number of folds of a sweep.
        allow_mismatch: fuse runs of different gold, judges or conventions, over the queries in all of them. By
            default these are refused.
        fields: your column names, by karat's, as for `karat.evaluate`.

    Returns:
        A `Fusion`: `retrieved` (the fused scores by query and item, as `karat.evaluate` takes them) and, if every leg
        is a run, `run` (the fused run), `comparison` (it against the best single leg), `ceiling` and `sweep`.

    Example:
        >>> bm25, dense = {"q1": ["a", "b"]}, {"q1": ["b", "c"]}
        >>> list(karat.fuse(bm25, dense, method="rrf(60)").retrieved["q1"])
        ['b', 'a', 'c']
    """
    given = (a, b, *more)
    if len(given) > len(LETTERS):
        raise BadArgument(f"fuse takes at most {len(LETTERS)} legs", got=len(given))
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int) or depth < 1):
        raise BadArgument("depth must be a whole number from 1 on", got=depth, hint="depth=10")
    fuser = parse_fuser(method, weights, len(given))
    labels = run_names(given, names)
    aligned = align(read_legs(given, labels, fields), allow_mismatch=allow_mismatch)
    evaluator, notes = _evaluator(aligned, metrics, needed=sweep)
    found = None
    if sweep:
        if weights is not None:
            raise BadArgument("a sweep chooses the weights itself", got=weights, hint="sweep=True without weights")
        assert evaluator is not None
        found = sweep_of(evaluator, labels, metric, depth, folds)
        fuser = found.winner.fuser
        if unscored := unscored_legs(aligned):
            notes = (*notes, Note("sweep_without_scores", details={"legs": ", ".join(unscored)}))
    check_scores(aligned, fuser)
    scores = fuser(aligned.candidates)
    source = f"{fuser.described()} of {', '.join(Path(label).name for label in labels)}"
    return Fusion(
        fuser=fuser,
        names=labels,
        ids=aligned.ids,
        depth=depth,
        legs=[] if evaluator is None else evaluator.runs,
        run=None if evaluator is None else evaluator.run(scores, source, depth, notes),
        ceiling=nan if evaluator is None else evaluator.share_found(None),
        within_depth=nan if evaluator is None or depth is None else evaluator.share_found(depth),
        sweep=found,
        notes=notes,
        sizes=[len(rows) for rows in aligned.candidates.rows],
        _aligned=aligned,
        _scores=scores,
    )


def _evaluator(aligned: Aligned, metrics: Any, *, needed: bool) -> tuple[Evaluator | None, tuple[Note, ...]]:
    """The evaluator of the fused rankings, if every leg is a run that can be evaluated again; and the notes."""
    others = [leg.name for leg in aligned.legs if leg.run is None]
    runs = [leg.run for leg in aligned.legs if leg.run is not None]
    together = any(run.all_hits.part is not None or run.provenance.compares == "span" for run in runs)
    if not others and not together:
        evaluator = Evaluator(aligned, metrics)
        return evaluator, evaluator.notes
    for option, wanted in (("sweep", needed), ("metrics", metrics is not None)):
        if wanted and others:
            hint = "karat eval FILE -o run.parquet"
            raise BadArgument(f"{option} needs runs as legs, which have gold", got=", ".join(others), hint=hint)
    if others:
        return None, aligned.notes
    judge = runs[0].provenance.judge
    note = Note("fused_not_evaluated", details={"judge": judge})
    if needed:
        problem = f'no sweep for the judge "{judge}": several items can find a gold item together'
        raise BadArgument(problem, hint="a judge of single items, such as contains")
    return None, (*aligned.notes, note)
