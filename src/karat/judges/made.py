"""Judges that make the gold themselves: of an answer, or of what came back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from karat.errors import BadArgument
from karat.hits import Hits
from karat.judges.protocol import Judge
from karat.samples import GoldItems, Samples


def check_measurable(judge: Judge, metrics: Iterable[str]) -> None:
    """Refuse metrics that need what the judge cannot know, before anything is asked or paid for."""
    cannot = [name for name in metrics if name in getattr(judge, "cannot_measure", ())]
    if cannot:
        problem = f'{", ".join(cannot)} asks how much of all gold was found; "{judge.name}" sees only what came back'
        raise BadArgument(problem, hint='precision, ndcg, rr, hit, err or rbp; or judge="claims(…)" with answers')


def with_gold_of(hits: Hits, samples: Samples, judge: Judge) -> Samples:
    """The samples with the gold that the judge made, so that a run shows it as any other."""
    if not getattr(judge, "makes_gold", False):
        return samples
    return replace(samples, gold=GoldItems({"text": list(hits.of.label)}, hits.of.grade, hits.of.start))
