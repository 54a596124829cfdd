"""A sweep of fusions: the method and the weights chosen by cross-validation, and their gain on held-out queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats, Ints, mean_defined
from karat.analysis.compare import chosen_metrics
from karat.analysis.fuse.fused_run import Evaluator
from karat.errors import BadArgument
from karat.fusion import Candidates, Fuser, parse_fuser
from karat.metrics.names import sign_of
from karat.stats import SEED, Paired, paired_test

FOLDS = 5
MIN_PER_FOLD = 2
"""The least number of queries in a fold."""
FEW = 50
"""With fewer queries than this, the choice is mostly chance."""
_NORMS = ("min-max", "max", "sum", "zmuv")
_BY_RANK = ("rrf(10)", "rrf(30)", "rrf(60)", "rrf(100)", "isr", "rbc(0.8)", "rbc(0.95)", "borda", "wsum(norm=rank)")
_BY_SCORE = tuple(
    f"{name}(norm={norm})"
    for name, norms in (
        ("combsum", _NORMS), ("combmnz", _NORMS), ("combanz", _NORMS[:1]), ("combmax", _NORMS[::3]),
        ("combmin", _NORMS[:1]), ("combmed", _NORMS[:1]),
    )
    for norm in norms
)  # fmt: skip
_WEIGHTED = ("rrf(60)", "wsum(norm=min-max)", "wsum(norm=zmuv)", "wsum(norm=max)")


class FusionSetting(NamedTuple):
    """A method with weights, and its mean over all queries."""

    fuser: Fuser
    mean: float
    chosen: int
    """The number of folds in which it was the best on the training queries."""


@dataclass(frozen=True, eq=False)
class FusionSweep:
    """The result of a sweep."""

    metric: str
    folds: int
    queries: int
    """The number of queries for which the metric is defined."""
    settings: list[FusionSetting]
    """All settings, the best over all queries first."""
    legs: dict[str, float]
    """The mean of each leg over all queries."""
    held_out: Paired
    """The fused rankings compared with the best single leg on the held-out queries, both chosen on the others."""
    held_out_leg: float
    """The mean of the best single leg on the held-out queries."""
    held_out_fused: float

    @property
    def winner(self) -> FusionSetting:
        """The best setting over all queries."""
        return self.settings[0]


def sweep_settings(candidates: Candidates) -> list[Fuser]:
    """The settings that are tried: methods of ranks, and methods of scores if every leg has finite ones."""
    scored = all(candidates.scored) and not np.isinf(candidates.score).any()
    tried = [parse_fuser(text) for text in (*_BY_RANK, *(_BY_SCORE if scored else ()))]
    for text in _WEIGHTED if scored else _WEIGHTED[:1]:
        tried += [parse_fuser(text, weights, candidates.legs) for weights in weight_grid(candidates.legs)]
    below = scored and bool((candidates.greatest < 0).any())  # which `max` cannot divide by
    return [fuser for fuser in tried if not (below and fuser.settings.get("norm") == "max")]


def weight_grid(legs: int) -> list[tuple[float, ...]]:
    """Weights that sum to 1: steps of 0.1 for two legs, of 1/6 for three; for more, one leg that is emphasised."""
    if legs == 2:
        return [(i / 10, (10 - i) / 10) for i in range(1, 10)]
    if legs == 3:
        bars = combinations(range(1, 6), 2)
        return [(round(a / 6, 4), round((b - a) / 6, 4), round((6 - b) / 6, 4)) for a, b in bars]
    grid = [tuple([round(1 / legs, 4)] * legs)]
    for share in (0.4, 0.6):
        rest = round((1 - share) / (legs - 1), 4)
        grid += [tuple(share if leg == own else rest for leg in range(legs)) for own in range(legs)]
    return grid


def sweep_of(
    evaluator: Evaluator, names: Sequence[str], metric: str | None, depth: int | None, folds: int
) -> FusionSweep:
    """Try every setting on all queries, and choose one in each fold by the queries of the others."""
    known = [name for one in evaluator.metrics for name in one.names]
    first = next((name for name in known if sign_of(name) > 0), known[0])
    name = first if metric is None else chosen_metrics(metric, known, "metric in every leg")[0]
    if sign_of(name) < 0:
        raise BadArgument("a sweep looks for the highest mean, and of this metric less is better", got=name)
    chosen = next(one for one in evaluator.metrics if name in one.names)
    fusers = sweep_settings(evaluator.candidates)
    fused = np.array(
        [
            evaluator.scores(evaluator.hits(fuser(evaluator.candidates), depth), [chosen])[name]
            for fuser in fusers
        ]
    )  # fmt: skip
    legs = np.array([scores[name] for scores in evaluator.leg_scores()])
    defined = ~np.isnan(legs).any(axis=0) & ~np.isnan(fused).any(axis=0)
    count = int(np.count_nonzero(defined))
    _check_folds(folds, count, name)
    fused, legs = fused[:, defined], legs[:, defined]
    picks, best_leg, best_fused = _held_out(legs, fused, folds)
    times = Counter(picks)
    means = fused.mean(axis=1)
    order = np.argsort(-means.round(12), kind="stable").tolist()
    return FusionSweep(
        metric=name,
        folds=folds,
        queries=count,
        settings=[FusionSetting(fusers[i], float(means[i]), times[i]) for i in order],
        legs={leg: mean_defined(own) for leg, own in zip(names, legs, strict=True)},
        held_out=paired_test(best_leg, best_fused),
        held_out_leg=float(best_leg.mean()),
        held_out_fused=float(best_fused.mean()),
    )


def _check_folds(folds: object, count: int, metric: str) -> None:
    if not isinstance(folds, int) or isinstance(folds, bool) or folds < 2:
        raise BadArgument("folds must be a whole number from 2 on", got=folds, hint="folds=5")
    if count < folds * MIN_PER_FOLD:
        raise BadArgument(
            f"a sweep with {folds} folds needs at least {folds * MIN_PER_FOLD} queries with a defined {metric}",
            got=count,
            hint="more queries, or a fixed method without a sweep",
        )


def fold_of(count: int, folds: int) -> Ints:
    """The fold of each query: random, seeded, of equal size to within one query."""
    fold = np.empty(count, np.int64)
    fold[np.random.default_rng(SEED).permutation(count)] = np.arange(count) % folds
    return fold


def _held_out(legs: Floats, fused: Floats, folds: int) -> tuple[list[int], Floats, Floats]:
    """The setting that each fold chooses on the other queries, and the scores of the held-out queries.

    Of settings with equal means, the first that was tried is chosen: the simpler ones come first.
    """
    fold = fold_of(legs.shape[1], folds)
    best_leg, best_fused = np.empty(legs.shape[1]), np.empty(legs.shape[1])
    picks = []
    for number in range(folds):
        test = fold == number
        leg = int(legs[:, ~test].mean(axis=1).round(12).argmax())
        pick = int(fused[:, ~test].mean(axis=1).round(12).argmax())
        picks.append(pick)
        best_leg[test], best_fused[test] = legs[leg, test], fused[pick, test]
    return picks, best_leg, best_fused
