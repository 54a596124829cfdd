"""The choice of the next label: an order of the work in which every beginning is a sample with known probabilities.

Labels matter unequally. The weight of an item in one run minus that in another says by how much its label can move the
difference of the runs: in precision@10, an item that both top 10 contain cannot move it at all. The drawing size of an
item is its weight times the uncertainty of its label. For a metric that is no sum over items, queries are drawn
instead, and their size is the spread of their difference, divided by the root of the number of labels they cost.

The order is that of *priority sampling*: each unit (an item of a query, or a query) gets a permanent random number u,
and the units are asked for in the order of u / size. After n units, with t the u / size of the next one, each unit
was drawn with probability min(1, size · t). The estimate takes the model's opinion f for every unit, and adds
(label − f) / probability for every answer: it is unbiased for every n and for any f, the errors of two units are
uncorrelated, and once all is labelled it is the full value. `gold/label_estimate.py` computes it.

Labels that were there before this order began (`known`) have no probability. They
are facts, and the rest is sampled. The choice must not depend on the labels that the order would ask for next: each
order has random numbers of its own, so that labels drawn for another metric, or with other opinions, are such facts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat.errors import BadArgument, InputError
from karat.gold.label_effects import LabelEffects

SEED = 21
HIGHEST = 3.0
"""The highest grade of the usual scale, 0 to 3."""
_SURE = 0.1
"""No label counts as surer than this: a model that is wrong where it is sure would cost too much."""
_STEEP = 1.5
"""The logit of being relevant that one grade of the model's opinion adds."""
_DRAWS, _MOST_ROWS = 64, 2_000_000
_LEAST_SPREAD = 0.5
"""The least spread of a query whose difference is not certain, as a share of the typical one."""
_EASE = 1.5
"""The standard deviation of the ease of a query in logits: in some queries, all items are worse than assumed."""
_STEPS, _TINY = 128, 1e-12


@dataclass(frozen=True, eq=False)
class Design:
    """Pairs of a query and an item, with all that decides the order in which their labels are asked for.

    Made by `design`. A *unit* is what is drawn: a pair, or a whole query.
    """

    effects: LabelEffects
    """The metric."""
    ranks: Ints
    """The rank of each pair in each run, one row per run; 0 if the run does not hold it."""
    query: Ints
    """The number of the query of each pair, in ascending order."""
    queries: int
    chance: Floats
    """The assumed probability that each pair is relevant."""
    guess: Floats
    """The grade of each pair if it is relevant, as assumed."""
    known: Floats
    """The grades that are known without being drawn; NaN for the others."""
    highest: float
    """The highest grade."""
    seed: int
    """The seed of the permanent random numbers."""
    first_size: Floats | None = None
    """The drawing size of each pair's unit before more labels became known: it stays while labels are drawn."""

    @property
    def comparisons(self) -> int:
        """The number of runs that are compared with the first."""
        return len(self.ranks) - 1

    @cached_property
    def weights(self) -> Floats:
        """The weight of each pair in each run minus that in the first, for a sum over items; one row per comparison."""
        own = np.array([self.effects.weight(rank) for rank in self.ranks])
        return np.asarray(own[1:] - own[0])

    @cached_property
    def prior(self) -> Floats:
        """The expected value of each pair's label, for a sum over items."""
        return self.chance * self.effects.value(self.guess)

    @cached_property
    def most(self) -> float:
        """The largest value of a label, for a sum over items."""
        return float(self.effects.value(np.array([max(self.highest, self.guess.max(initial=1.0))]))[0])

    @cached_property
    def matters(self) -> Bools:
        """Flags of the pairs whose labels can change a difference."""
        if self.effects.sums:
            return np.asarray((self.weights != 0).any(axis=0))
        pairs = [self.effects.matters(self.ranks[0], rank, self.query, self.queries) for rank in self.ranks[1:]]
        return np.asarray(self.effects.needed(self.ranks) & np.any(pairs, axis=0)[self.query])

    @cached_property
    def unit(self) -> Ints:
        """The unit of each pair; -1 if its label is known or cannot matter."""
        asked: Bools = np.isnan(self.known) & self.matters
        if self.effects.sums:
            return np.where(asked, np.cumsum(asked) - 1, -1)
        some = np.bincount(self.query, asked, self.queries) > 0
        return np.where(asked, (np.cumsum(some) - 1)[self.query], -1)

    @cached_property
    def cost(self) -> Ints:
        """The number of labels that each unit needs."""
        return np.bincount(self.unit[self.unit >= 0])

    @cached_property
    def unit_query(self) -> Ints:
        """The query of each unit."""
        asked = self.unit >= 0
        query = np.zeros(len(self.cost), np.int64)
        query[self.unit[asked]] = self.query[asked]
        return query

    @cached_property
    def expected(self) -> Floats:
        """The expected contribution of each unit to the difference of each comparison."""
        return self._spread_of_units[0]

    @cached_property
    def spread(self) -> Floats:
        """The assumed standard deviation of the contribution of each unit."""
        return self._spread_of_units[1]

    @cached_property
    def size(self) -> Floats:
        """The drawing size of each unit: the largest spread over the comparisons, per root of its cost."""
        if self.first_size is None:
            return np.asarray(self.spread.max(axis=0, initial=0.0) / np.sqrt(self.cost))
        asked, size = self.unit >= 0, np.zeros(len(self.cost))
        size[self.unit[asked]] = self.first_size[asked]
        return size

    @cached_property
    def _size_of_pairs(self) -> Floats:
        """The drawing size of each pair's unit before more labels became known; 0 if it was not drawn."""
        if self.first_size is not None:
            return self.first_size
        return np.where(self.unit >= 0, np.append(self.size, 0.0)[self.unit], 0.0)

    @cached_property
    def order_id(self) -> str:
        """The digest of all that decides the order. Orders with different ones have independent random numbers."""
        about = f"{self.effects.metric} {self.effects.sums} {self.seed}".encode()
        return blake2b(about + self._size_of_pairs.tobytes(), digest_size=8).hexdigest()

    @cached_property
    def key(self) -> Floats:
        """The permanent random number of each unit divided by its size: units are asked for in ascending order."""
        rng = np.random.default_rng([self.seed, 1, int(self.order_id, 16)])
        drawn = rng.random(self.queries if not self.effects.sums else len(self.query))
        first = self.unit_query if not self.effects.sums else (self.unit >= 0).nonzero()[0]
        key: Floats = drawn[first] / self.size
        return key

    @cached_property
    def ascending(self) -> Floats:
        """The keys in the order of the units, and infinity after the last."""
        return np.append(np.sort(self.key), np.inf)

    @cached_property
    def fixed(self) -> Floats:
        """The contribution of the known labels to each query that is not drawn: comparisons × queries."""
        fixed = self.contributions(np.where(np.isnan(self.known), 0.0, self.known))
        if not self.effects.sums:
            fixed[:, self.unit_query] = 0.0
        return fixed

    @cached_property
    def probability(self) -> Floats:
        """The drawing probability of each pair's unit: its size as a share of all sizes; NaN if it is not drawn."""
        share = self.size / self.size.sum() if len(self.size) else self.size
        return np.where(self.unit >= 0, np.append(share, np.nan)[self.unit], np.nan)

    def order(self) -> Ints:
        """The pairs in the order in which their labels are asked for; those of one query in random order."""
        asked = (self.unit >= 0).nonzero()[0]
        within = np.random.default_rng([self.seed, 2]).random(len(self.query))[asked]
        found: Ints = asked[np.lexsort((within, self.key[self.unit[asked]]))]
        return found

    def assumed_variance(self, chance: Floats) -> Floats:
        """The variance of the estimate of each comparison, by the assumed spread, if units have these probabilities."""
        each = (1 - chance) / np.maximum(chance, _TINY)
        found: Floats = (self.spread / self.queries) ** 2 @ each
        return found

    @cached_property
    def curve(self) -> tuple[Floats, Floats]:
        """Numbers of labels from few to all, and the assumed variance of each comparison at each number."""
        if not len(self.size):
            return np.zeros(1), np.zeros((self.comparisons, 1))
        size, group = np.unique(self.size, return_inverse=True)
        squares = [np.bincount(group, row, len(size)) for row in (self.spread / self.queries) ** 2]
        thresholds = np.geomspace(1 / self.size.sum(), (1 + 1e-9) / size[0], _STEPS)
        chance = np.minimum(1.0, thresholds[:, None] * size)
        labels: Floats = chance @ np.bincount(group, self.cost, len(size))
        return labels, np.array(squares) @ ((1 - chance) / np.maximum(chance, _TINY)).T

    @cached_property
    def _largest_first(self) -> tuple[Floats, Floats]:
        """The sizes from the largest on, and for each the sum of it and all smaller ones."""
        size = np.sort(self.size)[::-1]
        return size, np.cumsum(size[::-1])[::-1]

    def mean_probability(self, count: int) -> Floats:
        """The probability of each unit to be among the first ones, proportional to size, with this sum."""
        size, rest = self._largest_first
        if count >= len(size):
            return np.ones(len(size))
        certain = int((size * (count - np.arange(len(size))) <= rest).argmax())
        return np.asarray(np.minimum(1.0, self.size * (count - certain) / rest[certain]))

    def with_known(self, pairs: Ints, grades: Floats) -> Design:
        """The same design with more labels that are known without being drawn; the order of the others stays."""
        known = self.known.copy()
        known[pairs] = grades
        return replace(self, known=known, first_size=self._size_of_pairs)

    def contributions(self, grade: Floats) -> Floats:
        """The sum of the differences of each query, for one labelling of all pairs: comparisons × queries."""
        if self.effects.sums:
            worth = self.weights * self.effects.value(grade)
            return np.array([np.bincount(self.query, row, self.queries) for row in worth], float)
        return self.differences(grade[None])[:, 0]

    def drawn_grades(self) -> Floats:
        """Labellings drawn from what is assumed, one per row, with the known grades."""
        rows = int(np.clip(_MOST_ROWS // max(len(self.query), 1), 4, _DRAWS))
        rng = np.random.default_rng([self.seed, 3])
        ease = _EASE * rng.standard_normal((rows, self.queries))[:, self.query]
        chance = 1 / (1 + (1 / self.chance - 1) * np.exp(-ease))
        relevant = rng.random((rows, len(self.query))) < chance
        return np.where(np.isnan(self.known), np.where(relevant, self.guess, 0.0), self.known)

    def differences(self, grade: Floats) -> Floats:
        """The differences of whole queries for several labellings: comparisons × labellings × queries."""
        own = [self.effects.scores(rank, self.query, self.queries, grade) for rank in self.ranks]
        return np.asarray(np.array(own[1:]) - own[0])

    @cached_property
    def _spread_of_units(self) -> tuple[Floats, Floats]:
        if self.effects.sums:
            asked, worth = self.unit >= 0, self.effects.value(self.guess)
            uncertain = np.sqrt(np.clip(self.chance * (1 - self.chance), _SURE * (1 - _SURE), None)) * worth
            return self.weights[:, asked] * self.prior[asked], np.abs(self.weights[:, asked]) * uncertain[asked]
        drawn = self.differences(self.drawn_grades())[:, :, self.unit_query]
        spread = drawn.std(axis=1)
        typical = np.median(spread[spread > 0]) if (spread > 0).any() else 1.0
        pairs = [self.effects.matters(self.ranks[0], rank, self.query, self.queries) for rank in self.ranks[1:]]
        return drawn.mean(axis=1), np.where(
            np.array(pairs)[:, self.unit_query], np.maximum(spread, _LEAST_SPREAD * typical), 0.0
        )


def design(
    metric: str,
    *ranks: Ints,
    query: Ints,
    queries: int | None = None,
    opinion: Floats | None = None,
    known: Floats | None = None,
    highest: float = HIGHEST,
    seed: int = SEED,
) -> Design:
    """The design of the labels that tell how runs differ from the first one.

    Args:
        metric: the metric whose difference is wanted, such as `recall@5`; see `gold/label_effects.py`.
        ranks: for each run, the rank of each pair from 1; 0 if the run does not hold it.
        query: the number of the query of each pair, from 0, in ascending order.
        queries: the number of queries; by default, the highest number plus 1.
        opinion: the model's grade of each pair, on the same scale as the labels; NaN if it has none.
        known: the grades that are known already; NaN for the others.
        highest: the highest grade.
        seed: the seed of the order.

    Example:
        >>> made = design("precision@2", np.array([1, 2, 0]), np.array([1, 0, 2]), query=np.zeros(3, int))
        >>> sorted(made.order().tolist())
        [1, 2]
    """
    effects, query = LabelEffects(metric), np.asarray(query, np.int64)
    table = np.array([np.asarray(rank, np.int64) for rank in ranks]).reshape(len(ranks), -1)
    if len(table) < 2:
        raise BadArgument("labels are chosen by how runs differ: two or more are needed", got=len(table))
    if table.shape[1] != len(query) or (np.diff(query) < 0).any():
        raise InputError("every run needs a rank for each pair, and pairs must be in the order of their queries")
    none = np.full(len(query), np.nan)
    opinion, known = (none if given is None else np.asarray(given, float) for given in (opinion, known))
    least = 1.0 if effects.metric.rel is None else effects.metric.rel
    chance = np.where(np.isnan(opinion), _chance_by_rank(table), _chance_by_opinion(opinion, least))
    guess = np.clip(np.where(np.isnan(opinion), (least + highest) / 2, opinion), least, max(highest, least))
    count = int(query.max(initial=-1)) + 1 if queries is None else queries
    if not 0 <= query.max(initial=0) < count or query.min(initial=0) < 0:
        raise InputError("the pairs need queries with numbers from 0 to the number of queries", got=count)
    return Design(effects, table, query, count, np.clip(chance, _SURE / 2, 1 - _SURE / 2), guess, known, highest, seed)


def _chance_by_rank(ranks: Ints) -> Floats:
    """The probability of being relevant without a model: higher near the top, and if more runs hold the item."""
    near = np.where(ranks > 0, 1 / (1 + (ranks - 1) / 3), 0.0)
    chance: Floats = 0.15 + 0.5 * near.mean(axis=0)
    return chance


def _chance_by_opinion(opinion: Floats, least: float) -> Floats:
    """The probability of being relevant by the model's grade; 0.5 is half a grade below the least relevant one."""
    chance: Floats = 1 / (1 + np.exp(-_STEEP * (opinion - least + 0.5)))
    return chance
