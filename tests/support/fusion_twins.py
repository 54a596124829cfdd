"""Methods of fusion written out for one query in plain Python, from their definitions, as twins of the fast ones."""

from __future__ import annotations

from statistics import fmean, median, pstdev


def normalised(legs, norm):
    """The scores of each leg after a normalisation; `legs` are dicts, the best item first."""
    everything = sorted({item for leg in legs for item in leg})
    return [_normalise(leg, norm, everything) for leg in legs]


def _normalise(leg, norm, everything):  # noqa: PLR0911
    ranks = {item: place for place, item in enumerate(leg, 1)}
    if norm == "borda":
        count = len(everything)
        rest = (count - len(leg) + 1) / 2
        return {item: (count - ranks[item] + 1 if item in leg else rest) / count for item in everything}
    if norm == "rank":
        return {item: 1 - (rank - 1) / len(leg) for item, rank in ranks.items()}
    if norm == "none" or not leg:
        return dict(leg)
    low, high = min(leg.values()), max(leg.values())
    if norm == "min-max":
        return {item: (score - low) / max(high - low, 1e-9) for item, score in leg.items()}
    if norm == "max":
        return {item: score / max(high, 1e-9) for item, score in leg.items()}
    if norm == "sum":
        total = sum(score - low for score in leg.values())
        return {item: (score - low) / max(total, 1e-9) for item, score in leg.items()}
    if low == high:
        return dict.fromkeys(leg, 0.0)
    mean, spread = fmean(leg.values()), pstdev(leg.values())
    return {item: (score - mean) / max(spread, 1e-9) for item, score in leg.items()}


COMBINE = {
    "combsum": sum,
    "combmnz": lambda scores: sum(scores) * len(scores),
    "combanz": lambda scores: sum(scores) / len(scores),
    "combmax": max,
    "combmin": min,
    "combmed": median,
}


def fused(legs, name, *, norm="min-max", k=60, phi=0.8, weights=None):
    """The fused score of every item."""
    everything = sorted({item for leg in legs for item in leg})
    ranks = [{item: place for place, item in enumerate(leg, 1)} for leg in legs]
    found = {}
    for item in everything:
        own = [rank[item] for rank in ranks if item in rank]
        if name == "rrf":
            each = zip(weights or [1] * len(legs), ranks, strict=True)
            found[item] = sum(weight / (k + rank[item]) for weight, rank in each if item in rank)
        elif name == "isr":
            found[item] = len(own) * sum(1 / rank**2 for rank in own)
        elif name == "rbc":
            found[item] = sum((1 - phi) * phi ** (rank - 1) for rank in own)
        elif name == "borda":
            found[item] = len(everything) * sum(leg[item] for leg in normalised(legs, "borda"))
        elif name == "wsum":
            each = zip(weights or [1 / len(legs)] * len(legs), normalised(legs, norm), strict=True)
            found[item] = sum(weight * leg.get(item, 0) for weight, leg in each)
        else:
            found[item] = COMBINE[name]([leg[item] for leg in normalised(legs, norm) if item in leg])
    return found
