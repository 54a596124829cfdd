"""One input, everybody's numbers: what each library would say, and which of its choices makes the difference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats
from karat._internal.display import plural
from karat._internal.result import Result
from karat.conventions import CONVENTIONS, STANDARD, Convention, find_convention
from karat.conventions.explain import differing, sentence
from karat.judges import JudgeLike
from karat.metrics import METRICS, Metric
from karat.plan import Judgements, Plan
from karat.samples import read_samples

EXAMPLE: dict[str, list[list[str]]] = {"retrieved": [["A", "A", "X"]], "gold": [["A", "B", "C"]]}
"""Three chunks came back, one of them twice; two of three gold chunks are missing."""
METRICS_SHOWN = "precision@5 recall@5 ndcg@5 rr ap"
_CLOSE = 1e-12


class Dialect(NamedTuple):
    """One convention's numbers."""

    convention: str
    means: Mapping[str, float | None]
    """The mean of each metric; None where the library has no such metric."""
    differs: tuple[str, ...]
    """The metrics in which some query scores otherwise than under STANDARD."""
    above_one: Mapping[str, float]
    """The metrics that exceed 1 for some query, with the highest score."""


class Difference(NamedTuple):
    """Why numbers differ: a choice that does so on these very data."""

    text: str
    conventions: tuple[str, ...]
    metrics: tuple[str, ...]
    choice: str


@dataclass(frozen=True, repr=False)
class Rosetta(Result):
    """The same samples under many conventions."""

    source: str
    queries: int
    judge: str
    metrics: tuple[str, ...]
    dialects: tuple[Dialect, ...]
    differences: tuple[Difference, ...]


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
    """Measure the same samples under every convention, and say why the numbers differ.

    Without samples it shows an example: gold A, B, C; retrieved A, A, X.
    """
    example = samples is None and retrieved is None and gold is None
    data = read_samples(samples, **(EXAMPLE if example else {"retrieved": retrieved, "gold": gold}))
    plan = Plan.of(metrics, judge, STANDARD, at=at).with_judge_for(data)
    teller = _Teller(Judgements(data, plan.judge, tokens=plan.tokens), plan.metrics)
    others = CONVENTIONS if conventions is None else conventions
    known = [STANDARD, *(c for c in map(find_convention, others) if c.name != STANDARD.name)]
    dialects = tuple(teller.dialect(c) for c in known)
    return Rosetta(
        source="gold A, B, C; retrieved A, A, X" if example else data.reading.source,
        queries=len(data),
        judge=plan.judge.name,
        metrics=tuple(name for metric in plan.metrics for name in metric.names),
        dialects=dialects,
        differences=tuple(teller.differences(known, dialects)),
    )


class _Teller:
    """Measures under conventions, and with single choices of theirs taken back."""

    def __init__(self, verdicts: Judgements, metrics: tuple[Metric, ...]) -> None:
        self.verdicts = verdicts
        self.columns = {name: (Metric(m.name, () if k is None else (k,), m.settings), k)
                        for m in metrics for name, k in m.columns}  # fmt: skip

    def scores(self, name: str, c: Convention) -> Floats:
        """One column of scores."""
        metric, _ = self.columns[name]
        return self.verdicts.scores(metric, c)[name]

    def seen_by(self, name: str, c: Convention) -> Convention:
        """The convention as a column's metric sees it."""
        metric, k = self.columns[name]
        return c.of(metric.name, cut=k is not None)

    def dialect(self, c: Convention) -> Dialect:
        """What a convention says."""
        means: dict[str, float | None] = {}
        differs, above = [], {}
        for name, (metric, k) in self.columns.items():
            if not c.has(metric.name, k):
                means[name] = None
                continue
            scores = self.scores(name, c)
            defined = scores[~np.isnan(scores)]
            means[name] = _mean(defined, self.seen_by(name, c).rounding)
            if not _close(scores, self.scores(name, STANDARD)).all():
                differs.append(name)
            if (defined > 1 + _CLOSE).any():
                above[name] = float(defined.max())
        return Dialect(c.name, means, tuple(differs), above)

    def differences(self, known: list[Convention], dialects: Iterable[Dialect]) -> list[Difference]:
        """One sentence for each difference that occurs, with all who share it."""
        found: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
        for c, dialect in zip(known, dialects, strict=True):
            for choice, names in self._reasons(c, dialect).items():
                names_by_text: dict[str, list[str]] = {}
                for text, name in self._sentences(choice, c, names):
                    names_by_text.setdefault(text, []).append(name)
                for text, own in names_by_text.items():
                    who, what = found.setdefault((text, choice), ([], []))
                    who.append(c.name)
                    what += [name for name in own if name not in what]
            for name, highest in dialect.above_one.items():
                text = f"{name} reaches {highest:.2f}, above 1, for {self._copy()} counts each time"
                found.setdefault((text, "above_one"), ([], [name]))[0].append(c.name)
        return [Difference(text, tuple(who), tuple(what), choice) for (text, choice), (who, what) in found.items()]

    def _reasons(self, c: Convention, dialect: Dialect) -> dict[str, list[str]]:
        """The choices that matter, each with the columns that it changes."""
        reasons: dict[str, list[str]] = {}
        for name in dialect.differs:
            for choice in self._matter(name, c):
                reasons.setdefault(choice, []).append(name)
        for name, mean in dialect.means.items():
            for choice in self.seen_by(name, c).refuses if mean is not None else ():
                if (
                    choice in _CONCERNED
                    and self._concerned(choice, self.seen_by(name, c))
                    and name not in reasons.get(choice, ())
                ):
                    reasons.setdefault(choice, []).append(name)
        return reasons

    def _matter(self, name: str, c: Convention) -> list[str]:
        """The choices without which a column would be another; if none is so alone, those that change STANDARD."""
        own = self.seen_by(name, c)
        metric, _ = self.columns[name]
        choices = [*differing(own), *(["renames"] if metric.name in own.renames else [])]
        theirs, ours = self.scores(name, c), self.scores(name, STANDARD)
        here = ~_close(theirs, ours)

        def changes(start: Convention, choice: str, other: Convention, scores: Floats) -> bool:
            """Whether another answer changes any of the scores that differ."""
            changed = self.scores(name, replace(start, **_of(choice, other)))
            return not _close(changed, scores)[here].all()

        alone = [choice for choice in choices if changes(own, choice, STANDARD, theirs)]
        return alone or [choice for choice in choices if changes(STANDARD, choice, own, ours)]

    def _sentences(self, choice: str, c: Convention, names: list[str]) -> list[tuple[str, str]]:
        """A sentence for each column; where several cutoffs are concerned, one in general words for all."""
        cutoffs = {self.columns[name][1] for name in names} - {None}
        told = []
        for name in names:
            own = self.seen_by(name, c)
            if choice == "renames":
                metric = self.columns[name][0].name
                meant = METRICS[own.renames[metric]]
                told.append((f"what is called {metric} is {meant.name}: {_lower(meant.help)}", name))
                continue
            words = {} if len(cutoffs) > 1 else self._numbers(next(iter(cutoffs), None))
            text = sentence(choice, own, words | {"metrics": ", ".join(names), "copy": self._copy()})
            if choice in _CONCERNED and (count := self._concerned(choice, own)):
                text += f" ({plural(count, 'query', 'queries')})"
            told.append((text, name))
        return told

    def _copy(self) -> str:
        """What is counted again: a copy, or another item that satisfies the same gold item."""
        hits = self.verdicts.hits(STANDARD)
        return "every copy of a relevant item" if hits.repeated.any() else "every further item on the same gold item"

    def _numbers(self, k: Any) -> dict[str, str]:
        """The numbers of these data that stand in a sentence."""
        hits = self.verdicts.hits(replace(STANDARD, name="apart", precision_over="different"))
        cut = np.array([[float(k)]]) if isinstance(k, int) else np.array([[np.inf]])
        returned = hits.returned(cut)[0]
        different = hits.totals.at("different", cut)[0]
        gold = hits.gold_count()
        return {
            "k": "the length of the ranking" if k is None else f"k = {k}",
            "returned": _counted(returned, "the {} item{} that came back", "the items returned ({} on average)"),
            "different": _counted(
                different,
                "the {} different item{} that came back",
                "the different items returned ({} on average)",
            ),
            "gold": _counted(gold, "all {} gold item{}", "all the gold ({} items on average)"),
        }

    def _concerned(self, choice: str, c: Convention) -> int:
        """How many queries a choice about missing things is about, other choices of the convention not being nearer."""
        hits = self.verdicts.hits(STANDARD)
        about = _CONCERNED[choice](hits)
        nearer = [name for name in _NEARER.get(choice, ()) if getattr(c, name) is not None]
        for name in nearer:
            about = about & ~_CONCERNED[name](hits)
        return int(np.count_nonzero(about))


_CONCERNED: dict[str, Any] = {
    "empty_gold": lambda hits: hits.gold_count() == 0,
    "nothing_judged": lambda hits: hits.judged_nothing(),
    "empty_retrieved": lambda hits: hits.depth == 0,
    "both_empty": lambda hits: (hits.depth == 0) & (hits.gold_count() == 0),
    "none_found": lambda hits: (hits.retrieved_count(STANDARD) == 0) & (hits.gold_count() > 0),
}


_NEARER = {
    "empty_gold": ("nothing_judged", "both_empty"),
    "nothing_judged": ("both_empty",),
    "empty_retrieved": ("both_empty",),
}
"""The choices that come before one, where both are about the same query."""


def _of(choice: str, c: Convention) -> dict[str, Any]:
    """One choice of a convention, under a name that is nobody's."""
    return {choice: getattr(c, choice), "name": "one choice", "exceptions": {}}


def _mean(defined: Floats, places: int | None) -> float:
    mean = float(defined.mean()) if len(defined) else float("nan")
    return mean if places is None else round(mean, places)


def _counted(counts: Floats, one: str, several: str) -> str:
    """A number, or the mean of several."""
    if len(counts) > 1 and counts.min() != counts.max():
        return several.format(f"{counts.mean():.1f}")
    return one.format(int(counts[0]), "" if counts[0] == 1 else "s")


def _lower(text: str) -> str:
    return (text[:1].lower() + text[1:]).removesuffix(".")


def _close(a: Floats, b: Floats) -> Bools:
    return np.isclose(a, b, rtol=0, atol=_CLOSE, equal_nan=True)
