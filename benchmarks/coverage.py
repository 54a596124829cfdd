"""Coverage of the intervals and false alarms of the tests, by enumeration and simulation: the tables of the docs.

    python -m benchmarks.coverage            # print the tables
    python -m benchmarks.coverage --write    # and write them into docs/statistics.md
    python -m benchmarks.coverage summaries --write    # only the table of this name

The shapes are per-query scores of a real run: BM25 over 472 questions about five documents that were cut into chunks
of 200 words, and the differences to chunks of 800 characters, and to other settings of BM25. Each table counts the
queries with a score; a population has these frequencies.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from math import comb, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats
from karat.stats import Interval, difference_intervals, intervals, paired_test, read_statistic, summarize
from karat.stats.paired import sign_flip
from karat.stats.paired_summary import paired_summary
from karat.stats.summary import FLOOR

PAGE = Path(__file__).parents[1] / "docs" / "statistics.md"
SIZES = (5, 10, 20, 30, 100)
SHARES = (0.5, 0.8, 0.9, 0.97)
_Z = 1.959964
_SEED, _TIMES, _SLOW_TIMES, _RESAMPLES = 14, 4_000, 1_000, 1_000
_SLACK = 1e-9

SCORES: dict[str, dict[float, int]] = {
    "recall@5, 2–5 gold items": {0: 14, 1 / 4: 3, 1 / 3: 4, 2 / 5: 1, 1 / 2: 9, 2 / 3: 8, 3 / 4: 1, 4 / 5: 1, 1: 147},
    "recall@1, 2–5 gold items": {0: 66, 1 / 4: 5, 1 / 3: 14, 2 / 5: 2, 1 / 2: 21, 2 / 3: 13, 3 / 4: 2, 4 / 5: 1, 1: 64},
    "rr": {
        0: 16, 1 / 10: 5, 1 / 9: 5, 1 / 8: 9, 1 / 7: 4, 1 / 6: 8, 1 / 5: 8, 1 / 4: 13, 1 / 3: 35, 1 / 2: 71, 1: 298,
    },
    "ndcg@10": {
        0: 16, 0.1: 1, 0.15: 1, 0.2: 3, 0.3: 17, 0.35: 9, 0.4: 6, 0.45: 17, 0.5: 17, 0.55: 11, 0.6: 15, 0.65: 43,
        0.7: 13, 0.75: 11, 0.8: 9, 0.85: 4, 0.9: 13, 0.95: 6, 1: 260,
    },
    "precision@5": {0: 47, 0.2: 366, 0.4: 55, 0.6: 4},
}  # fmt: skip
DIFFERENCES: dict[str, dict[float, int]] = {
    "0/1, 8 % won, 18 % lost": {-1: 18, 0: 74, 1: 8},
    "recall@5": {
        -1: 19, -2 / 3: 6, -0.6: 1, -0.5: 10, -1 / 3: 13, -0.25: 3, -0.2: 1, 0: 389, 0.25: 1, 1 / 3: 6, 0.5: 6,
        0.75: 1, 1: 16,
    },
    "ndcg@10": {
        -1: 2, -0.75: 1, -0.65: 1, -0.6: 2, -0.55: 4, -0.5: 3, -0.45: 5, -0.4: 3, -0.35: 21, -0.3: 13, -0.25: 5,
        -0.2: 13, -0.15: 19, -0.1: 15, -0.05: 15, 0: 256, 0.05: 15, 0.1: 14, 0.15: 6, 0.2: 9, 0.25: 6, 0.3: 5,
        0.35: 19, 0.4: 4, 0.45: 3, 0.5: 2, 0.55: 4, 0.6: 1, 0.65: 1, 0.7: 2, 1: 3,
    },
    "ndcg@10, most tied": {
        -0.35: 2, -0.3: 2, -0.25: 1, -0.15: 7, -0.1: 4, -0.05: 8, 0: 423, 0.05: 10, 0.1: 5, 0.15: 1, 0.2: 3, 0.25: 1,
        0.3: 1, 0.35: 2, 0.5: 2,
    },
    "skewed: 5 % lose 0.95": {-0.95: 5, 0.05: 95},
    "skewed: 3 % lose 1, 30 % gain 0.1": {-1: 3, 0.1: 30, 0: 67},
}  # fmt: skip


HARD: dict[str, dict[float, int]] = {
    "skewed: 5 % lose 0.8, 30 % lose 0.03, 65 % gain": {-0.8: 5, -0.03: 30, 0.049 / 0.65: 65},
}
"""Small losses hide that large ones are possible: only the bounded interval and test hold."""


class Population(NamedTuple):
    """Scores with their shares."""

    values: Floats
    shares: Floats

    @staticmethod
    def of(counts: Mapping[float, int]) -> Population:
        """The population with these frequencies."""
        shares = np.array(list(counts.values()), float)
        return Population(np.array(list(counts), float), shares / shares.sum())

    @property
    def mean(self) -> float:
        """The true mean."""
        return float(self.values @ self.shares)

    def mirrored(self) -> Population:
        """Every difference with either sign: gains and losses are alike."""
        return Population(np.concatenate([self.values, -self.values]), np.tile(self.shares / 2, 2))

    def samples(self, queries: int, times: int) -> Floats:
        """Random samples, one row each; seeded."""
        rng = np.random.default_rng([_SEED, queries])
        return self.values[rng.choice(len(self.values), (times, queries), p=self.shares)]


def covered(ends: list[Interval], truth: float) -> float:
    """The share of intervals that contain the truth."""
    return float(np.mean([low <= truth + _SLACK and truth - _SLACK <= high for low, high in ends]))


def width(ends: list[Interval]) -> float:
    return float(np.mean([high - low for low, high in ends]))


def mean_ends(rows: Floats) -> list[Interval]:
    return [intervals({"": row})[""] for row in rows]


def difference_ends(rows: Floats, *, bounded: bool = False) -> list[Interval]:
    return [difference_intervals({"": row}, bounded=bounded)[""] for row in rows]


def bootstrap_ends(rows: Floats) -> list[Interval]:
    """The percentile bootstrap."""
    rng, ends = np.random.default_rng(_SEED), []
    for row in rows:
        means = row[rng.integers(0, len(row), (_RESAMPLES, len(row)))].mean(axis=1)
        ends.append(Interval(*np.percentile(means, [2.5, 97.5])))
    return ends


# Scores of 0 and 1: every outcome is enumerated, so that nothing is left to chance.


def outcomes(queries: int, share: float) -> Floats:
    """The probability of each number of ones."""
    return np.array([comb(queries, k) * share**k * (1 - share) ** (queries - k) for k in range(queries + 1)])


def binary_ends(queries: int) -> list[Interval]:
    """The interval for each number of ones."""
    ones = [np.repeat([1.0, 0.0], [k, queries - k]) for k in range(queries + 1)]
    return [intervals({"": scores})[""] for scores in ones]


def wilson_ends(queries: int) -> list[Interval]:
    ends = []
    for k in range(queries + 1):
        share, spread = k / queries, _Z**2 / queries
        half = _Z * sqrt(share * (1 - share) / queries + (_Z / (2 * queries)) ** 2) / (1 + spread)
        middle = (share + spread / 2) / (1 + spread)
        ends.append(Interval(max(0.0, middle - half), min(1.0, middle + half)))
    return ends


def binary_bootstrap_ends(queries: int) -> list[Interval]:
    """The percentile bootstrap without sampling error: the number of ones in a resample is binomial."""
    ends = []
    for k in range(queries + 1):
        below = np.cumsum(outcomes(queries, k / queries))
        ends.append(Interval(*(float(np.searchsorted(below, tail)) / queries for tail in (0.025, 0.975))))
    return ends


def expected(queries: int, share: float, ends: list[Interval]) -> tuple[float, float]:
    """The coverage and the mean width of intervals, one for each number of ones."""
    chance = outcomes(queries, share)
    holds = np.array([low <= share + _SLACK and share - _SLACK <= high for low, high in ends])
    return float(chance @ holds), float(chance @ np.array([high - low for low, high in ends]))


def false_passes(queries: int, share: float, limit: float, ends: list[Interval]) -> float:
    """The probability that a rule `lower >= limit` passes."""
    passes: Bools = np.array([low >= limit - _SLACK for low, _ in ends])
    return float(outcomes(queries, share) @ passes)


# The tables


def binary_table() -> Iterator[list[str]]:
    yield ["n", "true mean", "karat", "Wilson", "percentile bootstrap", "width: karat / Wilson"]
    for n in SIZES:
        for share in SHARES:
            ours, wilson, boot = (
                expected(n, share, ends(n)) for ends in (binary_ends, wilson_ends, binary_bootstrap_ends)
            )
            yield [f"{n}", f"{share:g}", *map(_percent, (ours[0], wilson[0], boot[0])), f"{ours[1] / wilson[1]:.2f}"]


def score_table() -> Iterator[list[str]]:
    yield ["scores", "true mean", *(f"n = {n}" for n in SIZES)]
    for name, counts in SCORES.items():
        population, cells = Population.of(counts), []
        for n in SIZES:
            rows = population.samples(n, _TIMES)
            ours = covered(mean_ends(rows), population.mean)
            boot = covered(bootstrap_ends(rows[:_SLOW_TIMES]), population.mean)
            cells.append(f"{_percent(ours)} ({_percent(boot)})")
        yield [name, f"{population.mean:.3f}", *cells]


def difference_table() -> Iterator[list[str]]:
    yield [
        "differences",
        "n",
        "karat",
        "bounded",
        "bootstrap",
        "width: karat",
        "bounded",
        "bootstrap",
        "p < 0.05, yet 0 inside; reverse",
    ]
    for name, counts in (DIFFERENCES | HARD).items():
        population = Population.of(counts)
        for n in (10, 30, 100):
            rows = population.samples(n, _SLOW_TIMES)
            found = [difference_ends(rows), difference_ends(rows, bounded=True), bootstrap_ends(rows)]
            p = np.array([sign_flip(row, flips=2_000) for row in rows])
            clear = np.array([low > 0 or high < 0 for low, high in found[0]])
            widths = [f"{width(ends):.2f}" for ends in found]
            odds = f"{_percent(float(np.mean((p < 0.05) & ~clear)))}, {_percent(float(np.mean((p >= 0.05) & clear)))}"
            yield [name, f"{n}", *(_percent(covered(ends, population.mean)) for ends in found), *widths, odds]


def test_table() -> Iterator[list[str]]:
    yield ["differences, mean 0", "n", "sign-flip", "bounded", "studentised bootstrap"]
    for name, counts in (DIFFERENCES | HARD).items():
        skewed, population = name.startswith("skewed"), Population.of(counts)
        population = population if skewed else population.mirrored()
        for n in (10, 20, 30, 100):
            yield [
                name if skewed else f"{name}, mirrored",
                f"{n}",
                *(_percent(one) for one in rejected(population.samples(n, _SLOW_TIMES))),
            ]


def power_table() -> Iterator[list[str]]:
    yield ["differences", "mean", "n", "sign-flip", "bounded"]
    for name, shift in (("0/1, 8 % won, 18 % lost", 0.0), ("ndcg@10", 0.12), ("ndcg@10, most tied", 0.12)):
        population = Population.of(DIFFERENCES[name])
        population = population._replace(values=population.values + np.where(population.values == 0, 0, shift))
        for n in (30, 100, 300):
            flip, bounded, _ = rejected(population.samples(n, _SLOW_TIMES // 2))
            yield [name, f"{population.mean:+.3f}", f"{n}", _percent(flip), _percent(bounded)]


def rejected(rows: Floats) -> tuple[float, float, float]:
    """The share of samples in which each test finds a difference."""
    tests: tuple[Callable[[Floats], float], ...] = (
        lambda row: sign_flip(row, flips=2_000),
        lambda row: paired_test(np.zeros(len(row)), row, test="bounded").p,
        studentised,
    )
    flip, bounded, student = (float(np.mean([test(row) < 0.05 for row in rows])) for test in tests)
    return flip, bounded, student


def studentised(row: Floats) -> float:
    """The p-value of a studentised bootstrap."""
    mean, spread = row.mean(), row.std()
    if spread < _SLACK:
        return 1.0 if abs(mean) < _SLACK else 0.0
    drawn = row[np.random.default_rng(_SEED).integers(0, len(row), (_RESAMPLES, len(row)))]
    spreads = drawn.std(axis=1)
    usable = spreads > _SLACK
    far = np.abs(drawn[usable].mean(axis=1) - mean) / spreads[usable] >= abs(mean) / spread
    return float((far.sum() + 1) / (len(far) + 1))


def lower_table() -> Iterator[list[str]]:
    yield ["n", "true mean", "rule", "karat", "percentile bootstrap"]
    for n in SIZES:
        for share, limit in ((0.9, 0.95), (0.799, 0.8), (0.899, 0.9)):
            cells = [_percent(false_passes(n, share, limit, ends(n))) for ends in (binary_ends, binary_bootstrap_ends)]
            yield [f"{n}", f"{share:g}", f"lower >= {limit:g}", *cells]


def summary_table() -> Iterator[list[str]]:
    yield ["scores", "n", *_SUMMARIES, *(f"{name}, differences" for name in _SUMMARIES)]
    for name, counts in SCORES.items():
        population = Population.of(counts)
        for n in (6, 8, 12, 20, 40, 100):
            rows = population.samples(n, _SLOW_TIMES)
            pairs = rows[:_SUMMARY_PAIRS], correlated(population, rows[:_SUMMARY_PAIRS])
            cells = [*(_summary_cover(population, rows, one) for one in _SUMMARIES)]
            yield [name, f"{n}", *cells, *(_summary_alarms(*pairs, one) for one in _SUMMARIES)]


_SUMMARIES = ("p10", "median", "gm")
_SUMMARY_PAIRS = 200


def correlated(population: Population, rows: Floats) -> Floats:
    """Scores of a second run that differs by chance alone: three in five queries score the same."""
    rng = np.random.default_rng([_SEED, *rows.shape])
    other = population.values[rng.choice(len(population.values), rows.shape, p=population.shares)]
    return np.where(rng.random(rows.shape) < 0.6, rows, other)


def _summary_cover(population: Population, rows: Floats, name: str) -> str:
    """The share of the samples whose interval contains the true summary; an end that is lacking excludes nothing."""
    statistic = read_statistic(name)
    if name == "gm":
        truth = float(np.exp(np.log(np.maximum(population.values, FLOOR)) @ population.shares))
    else:
        order = population.values.argsort()
        below = np.cumsum(population.shares[order])
        truth = float(population.values[order][np.searchsorted(below, statistic.share - _SLACK)])
    ends = [summarize(row, statistic)[1:3] for row in rows]
    return _percent(float(np.mean([not (low > truth + _SLACK or high < truth - _SLACK) for low, high in ends])))


def _summary_alarms(first: Floats, second: Floats, name: str) -> str:
    """The share of pairs of equal runs that are called different; a dash if there are too few queries."""
    tests = [paired_summary(a, b, read_statistic(name)) for a, b in zip(first, second, strict=True)]
    return "–" if all(np.isnan(test.p) for test in tests) else _percent(float(np.mean([t.p < 0.05 for t in tests])))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


TABLES = {
    "binary": binary_table,
    "scores": score_table,
    "lower": lower_table,
    "differences": difference_table,
    "false alarms": test_table,
    "power": power_table,
    "summaries": summary_table,
}


def main(names: list[str], *, write: bool) -> None:
    page = PAGE.read_text("utf-8") if write else ""
    for name in names or TABLES:
        head, *body = TABLES[name]()
        lines = [head, ["---"] * len(head), *body]
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        print(f"{name}\n\n{text}\n", flush=True)
        block = re.compile(rf"(<!-- coverage: {name} -->\n).*?(<!-- /coverage -->)", re.DOTALL)
        page = block.sub(rf"\g<1>{text}\n\g<2>", page)
    if write:
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--write"], write="--write" in sys.argv)
