"""The same samples under every convention: the score of each library, and the choices that explain the differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isclose
from typing import Any, Literal, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, mean_defined
from karat._internal.display import plural
from karat._internal.result import Result
from karat.conventions import CONVENTIONS, STANDARD, Convention, find_convention
from karat.conventions.explain import differing, sentence
from karat.errors import BadArgument
from karat.judges import JudgeLike
from karat.metrics import METRICS, Metric
from karat.pipeline import sides_have_names
from karat.plan import Plan, needed_sizes
from karat.plan.judgements import Judgements
from karat.samples import read_samples

EXAMPLE: dict[str, list[list[str]]] = {"retrieved": [["A", "A", "X"]], "gold": [["A", "B", "C"]]}
"""Three chunks, one of them twice; two of three gold chunks are missing."""
METRICS_SHOWN = "precision@5 recall@5 ndcg@5 rr ap"
_CLOSE = 1e-12


class Dialect(NamedTuple):
    """The scores under one convention."""

    convention: str
    means: Mapping[str, float | None]
    """The mean of each metric; None if the library has no such metric."""
    differs: tuple[str, ...]
    """The metrics in which the score of a query differs from STANDARD."""
    above_one: Mapping[str, float]
    """The metrics that exceed 1 for a query, with the highest score."""
    same_mean: tuple[str, ...] = ()
    """The metrics in `differs` that have the mean of STANDARD nevertheless."""


class Difference(NamedTuple):
    """A choice that changes the scores of these samples."""

    text: str
    conventions: tuple[str, ...]
    metrics: tuple[str, ...]
    choice: str


@dataclass(frozen=True, repr=False)
class Rosetta(Result):
    """The result of `karat.rosetta`: the same samples under many conventions."""

    source: str
    queries: int
    judge: str
    metrics: tuple[str, ...]
    dialects: tuple[Dialect, ...]
    differences: tuple[Difference, ...]


@sides_have_names
def rosetta(
    samples: Any = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS_SHOWN,
    *,
    retrieved: Any = None,
    gold: Any = None,
    judge: JudgeLike = "auto",
    at: Literal["item", "doc"] = "item",
    conventions: Iterable[str | Convention] | None = None,
) -> Rosetta:
    """Evaluate the same samples under every convention, and explain why the scores differ.

    Args:
        samples: results and gold, as for `karat.evaluate`; default: an example with gold A, B, C and retrieved A, A, X.
        metrics: metric names.
        retrieved: the results alone, as for `karat.evaluate`.
        gold: the relevant items alone, as for `karat.evaluate`.
        judge: how items are matched, as for `karat.evaluate`.
        at: "item", or "doc" to compare documents.
        conventions: the conventions to compare with the standard one; default: all of them.

    Returns:
        A `Rosetta`: `dialects` (the means under each convention), `differences` (the choices that explain them),
        `to_dict()`, `to_markdown()`.

    Example:
        >>> rosetta = karat.rosetta(retrieved=[["A", "A", "X"]], gold=[["A", "B", "C"]], conventions=["haystack"])
        >>> rosetta.dialects[1].means["recall@5"]
        1.0
    """
    example = samples is None and retrieved is None and gold is None
    plan = Plan.of(metrics, judge, STANDARD, at=at, samples=samples)
    if measures := [metric.name for metric in plan.metrics if metric.unit]:
        raise BadArgument(f"{', '.join(measures)}: a measure is the same in every library", hint="recall@5")
    data = read_samples(samples, **(EXAMPLE if example else {"retrieved": retrieved, "gold": gold}))
    plan = plan.with_judge_for(data)
    plan.check_samples(data)
    judgements = Judgements(data, plan.judge, tokens=plan.tokens, sizes=needed_sizes(plan.metrics))
    translation = _Translation(judgements, plan.metrics)
    others = CONVENTIONS if conventions is None else conventions
    known = [STANDARD, *(c for c in map(find_convention, others) if c.name != STANDARD.name)]
    dialects = tuple(translation.dialect(c) for c in known)
    return Rosetta(
        source="gold A, B, C; retrieved A, A, X" if example else data.reading.source,
        queries=len(data),
        judge=plan.judge.name,
        metrics=tuple(name for metric in plan.metrics for name in metric.names),
        dialects=dialects,
        differences=tuple(translation.differences(known, dialects)),
    )


class _Translation:
    """Scores the same judgements under conventions, and with single choices replaced."""

    def __init__(self, judgements: Judgements, metrics: tuple[Metric, ...]) -> None:
        self.judgements = judgements
        self.columns = {
            name: (Metric(m.name, () if k is None else (k,), m.settings), k) for m in metrics for name, k in m.columns
        }
        repeated = judgements.hits(STANDARD).repeated.any()
        self.copy = "every copy of a relevant item" if repeated else "every further item on the same gold item"

    def scores(self, name: str, c: Convention) -> Floats:
        """One column of scores."""
        return self.judgements.scores(self.columns[name][0], c)[name]

    def effective(self, name: str, c: Convention) -> Convention:
        """The convention with its exceptions for the metric of a column."""
        metric, k = self.columns[name]
        return c.of(metric.name, cut=k is not None)

    def dialect(self, c: Convention) -> Dialect:
        """The scores under a convention."""
        means: dict[str, float | None] = {}
        differs, same, above = [], [], {}
        for name, (metric, k) in self.columns.items():
            if not c.has(metric.name, k):
                means[name] = None
                continue
            scores, places = self.scores(name, c), self.effective(name, c).rounding
            mean = mean_defined(scores)
            means[name] = mean if places is None else round(mean, places)
            usual = self.scores(name, STANDARD)
            if not _close(scores, usual).all():
                differs.append(name)
                same += [name] if isclose(mean, mean_defined(usual), rel_tol=0, abs_tol=_CLOSE) else []
            if (scores > 1 + _CLOSE).any():
                above[name] = float(np.nanmax(scores))
        return Dialect(c.name, means, tuple(differs), above, tuple(same))

    def differences(self, known: list[Convention], dialects: Iterable[Dialect]) -> list[Difference]:
        """The differences that occur, each with all conventions that share it."""
        found: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
        for c, dialect in zip(known, dialects, strict=True):
            own: dict[tuple[str, str], list[str]] = {}
            for choice, names in self._reasons(c, dialect).items():
                for text, name in self._sentences(choice, c, names):
                    own.setdefault((text, choice), []).append(name)
            for name, highest in dialect.above_one.items():
                text = f"{name} reaches {highest:.2f}, above 1, because {self.copy} counts each time"
                own[text, "above_one"] = [name]
            for key, names in own.items():
                conventions, metrics = found.setdefault(key, ([], []))
                conventions.append(c.name)
                metrics += [name for name in names if name not in metrics]
        return [Difference(text, tuple(who), tuple(what), choice) for (text, choice), (who, what) in found.items()]

    def _reasons(self, c: Convention, dialect: Dialect) -> dict[str, list[str]]:
        """The choices that matter, each with the columns that it changes."""
        reasons: dict[str, list[str]] = {}
        for name in dialect.differs:
            for choice in self._decisive(name, c):
                reasons.setdefault(choice, []).append(name)
        for name, mean in dialect.means.items():
            own = self.effective(name, c)
            if mean is not None and abs(mean - mean_defined(self.scores(name, c))) > _CLOSE:
                reasons.setdefault("rounding", []).append(name)
            for choice in own.refuses if mean is not None else ():
                if choice in _CONCERNED and self._concerned(choice, own) and name not in reasons.get(choice, ()):
                    reasons.setdefault(choice, []).append(name)
        return reasons

    def _decisive(self, name: str, c: Convention) -> list[str]:
        """The choices that change a column if replaced by STANDARD's; if none does, those that change STANDARD."""
        own = self.effective(name, c)
        choices = [*differing(own), *(["renames"] if self.columns[name][0].name in own.renames else [])]
        theirs, ours = self.scores(name, c), self.scores(name, STANDARD)
        differ = ~_close(theirs, ours)

        def changes(base: Convention, choice: str, other: Convention, scores: Floats) -> bool:
            """True if the other's answer changes any of the scores that differ."""
            one_choice = {choice: getattr(other, choice), "name": "one choice", "exceptions": {}}
            return not _close(self.scores(name, replace(base, **one_choice)), scores)[differ].all()

        alone = [choice for choice in choices if changes(own, choice, STANDARD, theirs)]
        return alone or [choice for choice in choices if changes(STANDARD, choice, own, ours)]

    def _sentences(self, choice: str, c: Convention, names: list[str]) -> Iterable[tuple[str, str]]:
        """A sentence for each column; with several cutoffs, one general sentence for all."""
        cutoffs = {self.columns[name][1] for name in names} - {None}
        for name in names:
            own = self.effective(name, c)
            if choice == "renames":
                metric = self.columns[name][0].name
                meant = METRICS[own.renames[metric]]
                meaning = (meant.help[:1].lower() + meant.help[1:]).removesuffix(".")
                yield f"what is called {metric} is {meant.name}: {meaning}", name
                continue
            words = {} if len(cutoffs) > 1 else self._numbers(next(iter(cutoffs), None))
            text = sentence(choice, own, words | {"metrics": ", ".join(names), "copy": self.copy})
            if choice in _CONCERNED and (count := self._concerned(choice, own)):
                text += f" ({plural(count, 'query', 'queries')})"
            yield text, name

    def _numbers(self, k: Any) -> dict[str, str]:
        """The numbers of these samples for a sentence."""
        hits = self.judgements.hits(replace(STANDARD, name="different items", precision_over="different"))
        cut = np.array([[float(k)]]) if isinstance(k, int) else np.array([[np.inf]])
        different = hits.totals.at("different", cut)[0]
        return {
            "k": "the length of the ranking" if k is None else f"k = {k}",
            "returned": _counted(
                hits.returned(cut)[0], "the {} retrieved item{}", "the retrieved items ({} on average)"
            ),
            "different": _counted(
                different, "the {} different retrieved item{}", "the different retrieved items ({} on average)"
            ),
            "gold": _counted(hits.gold_count(), "all {} gold item{}", "all gold items ({} on average)"),
        }

    def _concerned(self, choice: str, c: Convention) -> int:
        """The number of queries to which a choice about missing data applies, unless a more specific one does."""
        hits = self.judgements.hits(STANDARD)
        concerned = _CONCERNED[choice](hits)
        for name in _MORE_SPECIFIC.get(choice, ()):
            if getattr(c, name) is not None:
                concerned = concerned & ~_CONCERNED[name](hits)
        return int(np.count_nonzero(concerned))


_CONCERNED: dict[str, Any] = {
    "empty_gold": lambda hits: hits.gold_count() == 0,
    "nothing_judged": lambda hits: hits.judged_nothing(),
    "empty_retrieved": lambda hits: hits.depth == 0,
    "both_empty": lambda hits: (hits.depth == 0) & (hits.gold_count() == 0),
    "none_found": lambda hits: (hits.retrieved_count(STANDARD) == 0) & (hits.gold_count() > 0),
}
_MORE_SPECIFIC = {
    "empty_gold": ("nothing_judged", "both_empty"),
    "nothing_judged": ("both_empty",),
    "empty_retrieved": ("both_empty",),
}
"""The choices that take precedence over one."""


def _counted(counts: Floats, one: str, several: str) -> str:
    """A number, or the mean of several."""
    if len(counts) > 1 and counts.min() != counts.max():
        return several.format(f"{counts.mean():.1f}")
    return one.format(int(counts[0]), "" if counts[0] == 1 else "s")


def _close(a: Floats, b: Floats) -> Bools:
    return np.isclose(a, b, rtol=0, atol=_CLOSE, equal_nan=True)
