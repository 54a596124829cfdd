"""Single judgements, by the judge and by people: how often they agree, and in which way they do not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from karat.arrays import Bools, Floats, Ints
from karat.calibration.figures import Figure, balance_figure, share_figure
from karat.stats import SEED, resamples
from karat.stats.draws import Draws

_AT_ONCE = 640_000


class Agreement(NamedTuple):
    """Judge against people, judgement by judgement."""

    tp: int
    """Both say yes."""
    fp: int
    """Only the judge says yes."""
    fn: int
    """Only people say yes."""
    tn: int
    """Both say no."""
    queries: int
    """How many queries the judgements are of."""
    agreement: Figure
    """The share on which both say the same."""
    kappa: Figure
    """Cohen's kappa: agreement beyond what chance would give; NaN if both always say the same one thing."""
    sensitivity: Figure
    """The share of people's yes that the judge says too; NaN if there is none."""
    specificity: Figure
    """The share of people's no that the judge says too."""
    bias: Figure
    """How much more of all judgements are yes to the judge than to people."""

    @property
    def judgements(self) -> int:
        """How many were compared."""
        return self.tp + self.fp + self.fn + self.tn


def agree(query: Ints, judge: Bools, human: Bools, level: float) -> Agreement:
    """Compare judgements; those of one query are drawn together, for they resemble each other."""
    of = np.unique(query, return_inverse=True)[1]
    cells = (judge & human, judge & ~human, ~judge & human, ~judge & ~human)
    counts = np.column_stack([np.bincount(of[cell], minlength=int(of.max()) + 1) for cell in cells]).astype(float)
    tp, fp, fn, tn = counts.T
    agreement = share_figure(tp + tn, tp + fp + fn + tn, level)
    return Agreement(
        int(tp.sum()),
        int(fp.sum()),
        int(fn.sum()),
        int(tn.sum()),
        len(counts),
        agreement,
        _kappa_figure(counts, agreement, level),
        share_figure(tp, tp + fn, level),
        share_figure(tn, tn + fp, level),
        balance_figure(fp, fn, tp + fp + fn + tn, level),
    )


def _kappa_figure(counts: Floats, agreement: Figure, level: float) -> Figure:
    """Cohen's kappa with a percentile bootstrap over the queries; seeded."""
    total = counts.sum(axis=0, keepdims=True)
    value = float(_kappa(total)[0])
    if value != value or len(counts) < 2:
        return Figure(value, np.nan, np.nan)
    if agreement.value == 1:  # no resample could differ: what chance has is kept, and less agreement put in
        chance = _chance(total)[0]
        return Figure(value, float((agreement.low - chance) / (1 - chance)), 1.0)
    draws, step = Draws(len(counts), SEED), max(1, _AT_ONCE // len(counts))
    times, found = resamples(len(counts)), []
    while times > 0:
        found.append(_kappa(draws.weights(min(step, times)) @ counts))
        times -= step
    tail = 100 * (1 - level) / 2
    drawn = np.concatenate(found)
    low, high = np.percentile(drawn[~np.isnan(drawn)], [tail, 100 - tail])
    return Figure(value, float(low), float(high))


def _kappa(counts: Floats) -> Floats:
    size, chance = counts.sum(axis=1), _chance(counts)
    same = (counts[:, 0] + counts[:, 3]) / size
    kappa: Floats = (same - chance) / np.where(chance < 1, 1 - chance, np.nan)
    return kappa


def _chance(counts: Floats) -> Floats:
    """How often both would say the same if neither looked."""
    tp, fp, fn, tn = counts.T
    chance: Floats = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / counts.sum(axis=1) ** 2
    return chance
