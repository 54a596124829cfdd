"""Recall of one run at token budgets: with the tokens that were counted, else with the words of its stored texts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from karat._internal.arrays import Floats, mean_defined, starts
from karat.analysis.token_curve import recall_within
from karat.judges.tokens import words
from karat.metrics.cutoffs import Budget
from karat.run import Run
from karat.stats import Interval, intervals

_STEPS = (10, 15, 20, 30, 50, 70)
_MOST = 12
"""Budgets between the size of one item and all that was retrieved, in addition to those of the metrics."""
_FEWEST = 2


class RecallOverTokens(NamedTuple):
    """Mean recall and its interval at each budget."""

    at: dict[int, tuple[float, Interval]]
    counted_by: str
    """The function that counted the tokens; "words" if the words of the stored texts were counted."""
    is_estimated: bool
    """True if some texts were cut when the run was stored: their words are estimated from their length."""
    is_partial: bool
    """True if the run stores fewer ranks than were retrieved: larger budgets are unknown."""


def recall_over_tokens(run: Run, budgets: list[int] | None = None) -> RecallOverTokens | None:
    """The recall of a run at its own budgets, or at those of another run; None if the tokens are not known."""
    counted = _with_tokens(run)
    if counted is None:
        return None
    known, is_estimated, limit = counted
    chosen = _budgets(known, limit) if budgets is None else [budget for budget in budgets if budget < limit]
    if len(chosen) < _FEWEST:
        return None
    scores = {str(budget): run.per_query(recall_within(known, budget)) for budget in chosen}
    ends = intervals(scores)
    at = {budget: (mean_defined(scores[str(budget)]), ends[str(budget)]) for budget in chosen}
    if all(value != value for value, _ in at.values()):
        return None
    return RecallOverTokens(at, run.provenance.tokens or words.__name__, is_estimated, bool(np.isfinite(limit)))


def _with_tokens(run: Run) -> tuple[Run, bool, float] | None:
    """The run with tokens at each rank, whether some are estimated, and the budget from which on ranks are missing."""
    hits = run.all_hits
    if "tokens" in hits.totals.at_rank:
        return run, False, np.inf
    stored = run.stored_items
    if stored is None or "text" not in stored.retrieved or hits.depth.sum() == 0:
        return None
    texts, lengths = stored.retrieved["text"], stored.retrieved.get("length")
    sizes = _word_counts(list(texts))
    if np.isnan(sizes).any():
        return None
    cut = np.array([] if lengths is None else [size or 0 for size in lengths], dtype=float)
    if cut.any():
        whole = np.fromiter(map(len, texts), float, len(texts))
        sizes = np.where(cut > 0, np.round(sizes * cut / np.maximum(whole, 1)), sizes)
    there = np.diff(stored.start)
    if (there > hits.depth).any():
        return None
    amounts = np.zeros(int(hits.depth.sum()))
    first = starts(hits.depth)[:-1]
    amounts[np.arange(len(sizes)) + np.repeat(first - stored.start[:-1], there)] = sizes
    short = there < hits.depth
    totals = np.add.reduceat(np.append(sizes, 0.0), np.minimum(stored.start[:-1], len(sizes))) * (there > 0)
    limit = float(totals[short].min(initial=np.inf))
    counted = hits.totals._replace(depth=hits.depth).with_amounts("tokens", amounts)
    return run.replace(hits=hits.replace(totals=counted)), bool(cut.any()), limit


def _word_counts(texts: list[str | None]) -> Floats:
    """The number of words of each text; NaN for items without a text."""
    known: dict[str | None, float] = {None: np.nan}
    for text in texts:
        if text not in known:
            known[text] = float(words(text or ""))
    return np.array([known[text] for text in texts])


def _budgets(run: Run, limit: float) -> list[int]:
    """Round numbers of tokens from the size of one item to all that was retrieved, and the budgets of the metrics."""
    totals = run.all_hits.totals
    sizes = totals.amounts("tokens")
    low = max(float(np.median(sizes[sizes > 0])) if sizes.any() else 1.0, 1.0)
    high = min(float(totals.at("tokens", totals.depth.astype(float)).max(initial=0.0)), limit)
    round_numbers = [step * 10**ten for ten in range(8) for step in _STEPS]
    inside = [number for number in round_numbers if low <= number < high]
    above = [number for number in round_numbers if high <= number < limit][:1]
    wanted = {k.tokens for metric in run.metrics for _, k in metric.columns if isinstance(k, Budget)}
    return sorted({*inside[-_MOST:], *above, *(budget for budget in wanted if budget < limit)})
