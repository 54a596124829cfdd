"""The sections of the Run screen: the components of the report, with links that choose queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import parse_qsl

from karat.report.html.curves import curves
from karat.report.html.markup import Child, Element, h
from karat.report.html.precision_recall import precision_recall
from karat.report.html.scores import baseline_name, means, slices
from karat.report.html.sections import against, aspects, misses
from karat.report.html.steps_section import steps
from karat.report.html.threshold_curve import threshold_curve
from karat.report.html.token_section import token_curve
from karat.run import Run
from karat.web.view.address import link, run_link
from karat.web.view.controls import late_section
from karat.web.view.opened import random_sample
from karat.web.view.query_address import query_href
from karat.web.view.run_address import (
    Condition,
    RunAddress,
    ScoreRange,
    cause_condition,
    field_condition,
    score_condition,
)
from karat.web.view.run_facts import PairFacts, RunFacts


class Shown(NamedTuple):
    """A run, and its baseline if one was chosen."""

    run: RunFacts
    pair: PairFacts | None

    def to_query(self, query_id: str) -> str:
        """The address of a query, with the ranking of the baseline beside it."""
        runs = [] if self.pair is None else [self.pair.baseline.file.id]
        return query_href([*runs, self.run.file.id], query_id)


class Part(NamedTuple):
    """A section that is fetched after the page."""

    heading: str
    make: Callable[[Shown], Element | None]
    expected: Callable[[Shown], bool]
    """False if it is known at once that the run has no such section."""
    sampled: bool = True
    """True if it is made from a sample of a large run."""
    before: bool = False
    """True if it is above the table of queries."""
    slow: bool = False
    """True if it is fetched after all others."""


def _baseline(shown: Shown) -> Element | None:
    return None if shown.pair is None else against(shown.pair.comparison, {}, shown.to_query)


def _slices(shown: Shown) -> Element | None:
    comparison = None if shown.pair is None else shown.pair.sliced
    found = slices(shown.run.scored, comparison, lambda field, value: choice(field_condition(field, value)))
    if found is None or shown.pair is None or comparison is not None:
        return found
    return _with_note(found, "Without differences: the queries or the gold of the baseline are others.")


def _misses(shown: Shown) -> Element | None:
    run = shown.run.detail
    place = {run.ids[row]: place for place, row in enumerate(run.worst_rows().tolist())}
    return misses(shown.run.diagnosis, place, lambda cause: choice(cause_condition(cause)), shown.to_query)


def _with_baseline(make: Callable[[Run, Run | None, str], Element | None]) -> Callable[[Shown], Element | None]:
    """A section that also draws the baseline."""

    def drawn(shown: Shown) -> Element | None:
        if shown.pair is None:
            return make(shown.run.detail, None, "")
        comparison = shown.pair.comparison
        return make(shown.run.detail, comparison.runs[0].with_repeats, baseline_name(comparison))

    return drawn


def _has_aspects(shown: Shown) -> bool:
    lazy = shown.run.lazy
    return len(lazy) > 0 and lazy.take([0]).all_hits.gold_items.aspects is not None


PARTS = {
    "baseline": Part("Compared with the baseline", _baseline, lambda shown: shown.pair is not None, before=True),
    "slices": Part("Slices", _slices, lambda shown: bool(shown.run.lazy.fields), sampled=False, before=True),
    "misses": Part("Missed gold", _misses, lambda shown: True, before=True, slow=True),
    "curves": Part("Recall and precision over k", _with_baseline(curves), lambda shown: True),
    "tokens": Part("Recall over tokens", _with_baseline(token_curve), lambda shown: True),
    "precision-recall": Part(
        "Precision over recall",
        _with_baseline(precision_recall),
        lambda shown: any(metric.name == "iprec" for metric in shown.run.lazy.metrics),
    ),
    "thresholds": Part(
        "Queries without an answer",
        lambda shown: threshold_curve(shown.run.detail),
        lambda shown: bool(shown.run.lazy.unanswerable.any()),
    ),
    "steps": Part("Steps", lambda shown: steps(shown.run.detail), lambda shown: bool(shown.run.lazy.provenance.merge)),
    "aspects": Part("Aspects", lambda shown: aspects(shown.run.detail), _has_aspects),
}
"""The sections that take time, by their ids, in the order in which they are shown."""


def section(name: str, shown: Shown, asked: RunAddress) -> Element | None:
    """A section; None if the run has nothing to show in it."""
    kept = (shown.run if shown.pair is None else shown.pair).sections
    if name not in kept:
        kept[name] = _noted(PARTS[name], shown)
    found: Element | None = kept[name]
    return None if found is None else placed(found, shown, asked)


def scores(shown: Shown, asked: RunAddress) -> Element:
    """The section on the scores, which is exact also for a large run."""
    kept = (shown.run if shown.pair is None else shown.pair).sections
    if "scores" not in kept:
        exact = None if shown.pair is None else shown.pair.exact
        kept["scores"] = means(shown.run.scored, exact, _score_link)
    return placed(kept["scores"], shown, asked)


def _noted(part: Part, shown: Shown) -> Element | None:
    """A section, with a sentence below its heading if it is made from a sample."""
    found = part.make(shown)
    if found is None or not part.sampled or not shown.run.sampled:
        return found
    return _with_note(found, f"From {random_sample(len(shown.run.detail.queries), shown.run.lazy.queries)}.")


def _with_note(found: Element, text: str) -> Element:
    """A section with a sentence below its heading."""
    heading, *rest = found.inside
    return Element(found.tag, found.attributes, (heading, h("p.note", text), *rest))


def placeholder(name: str, shown: Shown, asked: RunAddress) -> Element:
    """The place of a section until it is fetched."""
    path, part = run_link(shown.run.file.id), PARTS[name]
    address = asked._replace(show="").href(f"{path}/part/{name}")
    return late_section(name, part.heading, asked._replace(show=name).href(path, name), address, slow=part.slow)


def _score_link(name: str, low: float, high: float) -> str:
    return choice(score_condition(name, ScoreRange(low, high)))


def choice(condition: Condition) -> str:
    """The address of a link that adds a filter, without the state of the page: `placed` adds it."""
    return link("", [condition])


def placed(child: Element, shown: Shown, asked: RunAddress) -> Element:
    """A section whose links keep the state of the page.

    A link to "?name=value" adds a filter; its script adds it to the state that the table then has.
    """
    inside: tuple[Child, ...] = tuple(
        placed(one, shown, asked) if isinstance(one, Element) else one for one in child.inside
    )
    href = child.attributes.get("href", "")
    if not href.startswith("?"):
        return Element(child.tag, child.attributes, inside)
    [(key, value)] = parse_qsl(href[1:], keep_blank_values=True)
    to = asked.adding(Condition(key, value)).href(run_link(shown.run.file.id), "queries")
    return Element(child.tag, child.attributes | {"href": to, "data-adds": href[1:]}, inside)
