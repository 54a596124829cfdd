"""Scores of one query by the sizes of its sets, separate because the scores of each size are remembered."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from karat.conventions import Convention
from karat.hits import Gold, Hits
from karat.metrics.names import Metric, parse_all

_KNOWN = 4096
"""The number of scores that are remembered. None of them says anything of the ids."""


def score_sets(metric: str, retrieved: Iterable[str], gold: Iterable[str], c: Convention) -> float | None:
    """The score of one query, as the judge `ids` finds it; None if it depends on more than the sizes of the sets.

    Args:
        metric: one metric, such as "recall".
        retrieved: the retrieved ids; the score is None if the order or copies count.
        gold: the ids of the gold.
        c: the definition of the metric.
    """
    metrics = parse_all(metric)
    if len(metrics) != 1 or not metrics[0].definition.built_in:
        return None
    here, wanted = set(retrieved), set(gold)
    return _score(metrics[0], c, len(here & wanted), len(here), len(wanted))


@lru_cache(maxsize=_KNOWN)
def _score(metric: Metric, c: Convention, found: int, retrieved: int, gold: int) -> float | None:
    """The score of any sets of these sizes."""
    if not _needs_sizes_only(metric, c.of(metric.name, cut=False)):
        return None
    ranks = np.arange(found)
    items = Gold([""] * gold, np.array([0, gold]), np.ones(gold))
    hits = Hits(np.zeros(found, np.int64), ranks + 1, ranks, depth=np.array([retrieved]), gold_items=items)
    return float(metric.scores(hits, c)[metric.names[0]][0])


def _needs_sizes_only(metric: Metric, c: Convention) -> bool:
    """True if neither the order nor copies nor anything but ids can change the score."""
    known = metric.definition
    more = metric.ks or metric.settings or known.sizes or known.of_aspects or known.unit
    plain = known.of_sets and known.needs_gold and not more
    once = c.precision_over == "different" and {"recall", "precision"}.isdisjoint(c.per_rank)
    return plain and once and not c.renames and (c.duplicates, c.unjudged, c.own_id) == ("once", "irrelevant", "keep")
