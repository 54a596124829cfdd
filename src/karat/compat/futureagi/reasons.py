"""Reasons of scores: as in Future AGI's documentation, as its server writes them, and for evaluations of contexts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from karat.compat.futureagi.inputs import Ranking
from karat.compat.futureagi.templates import Template
from karat.conventions import Convention
from karat.metrics.ranks import gained, ideal
from karat.run import Run


def documented(template: Template, scores: Sequence[float], rows: Sequence[Ranking], k: int | None) -> list[str]:
    """The reasons as the documentation shows them: `Recall@3: 0.667`."""
    if k is None and not template.whole_list:
        pairs = zip(scores, rows, strict=True)
        return [f"{template.label}@{len(row.retrieved)}: {round(score, 3)}" for score, row in pairs]
    label = template.named(k)
    return [f"{label}: {round(score, 3)}" for score in scores]


class ServerReasons:
    """The reasons of one run as the server writes them, with the counts behind each score."""

    def __init__(
        self,
        template: Template,
        run: Run,
        rows: Sequence[Ranking],
        convention: Convention,
        *,
        cut: int | None,
        k: int | None,
    ) -> None:
        """`cut` is the cutoff of the metric, `k` that of the label; they differ where the rows were cut before."""
        self._template, self._rows, self._k = template, rows, k
        self._scores = run.scores[template.metric_at(cut)].tolist()
        self._hits = run.all_hits
        self._cutoffs = np.array([[np.inf if cut is None else cut]])
        self._convention = convention.of(template.metric, cut=cut is not None)

    def each(self) -> list[str]:
        """One reason per row."""
        write = {
            "recall": self._recall, "precision": self._precision, "ndcg": self._ndcg, "rr": self._first,
            "hit": self._hit, "ap": self._average,
        }[self._template.metric]  # fmt: skip
        return self._contexts() if self._template.folded else write()

    def _labels(self) -> list[str]:
        label, k = self._template.label, self._k
        if self._template.whole_list:
            return [self._template.named(k)] * len(self._rows)
        return [f"{label}@{len(row.retrieved) if k is None else k}" for row in self._rows]

    def _counts(self, counts: np.ndarray) -> list[int]:
        return [int(count) for count in np.broadcast_to(counts, (1, len(self._rows)))[0].tolist()]

    def _recall(self) -> list[str]:
        found = self._counts(self._hits.found(self._cutoffs, self._convention))
        gold = self._counts(self._hits.gold_count()[None])
        return [
            f"{label}: {score:.3f} ({some}/{all_} relevant items in top {label.partition('@')[2]})"
            for label, score, some, all_ in zip(self._labels(), self._scores, found, gold, strict=True)
        ]

    def _of_returned(self) -> list[tuple[str, float, int, int]]:
        """Label, score, the number of relevant ranks and of all ranks, for each row."""
        relevant = self._counts(self._hits.relevant(self._cutoffs, self._convention))
        returned = self._counts(self._hits.returned(self._cutoffs))
        return list(zip(self._labels(), self._scores, relevant, returned, strict=True))

    def _precision(self) -> list[str]:
        none = "No retrieved items to evaluate"
        return [
            f"{label}: {score:.3f} ({some}/{all_} retrieved items are relevant)" if all_ else none
            for label, score, some, all_ in self._of_returned()
        ]

    def _contexts(self) -> list[str]:
        none = "No reference contexts" if self._template.swapped else "No retrieved contexts"
        return [
            f"{label}: {score:.4f} ({some}/{all_})" if all_ else none
            for label, score, some, all_ in self._of_returned()
        ]

    def _average(self) -> list[str]:
        return [
            f"{label}: {score:.4f} ({some} relevant in {all_} retrieved)"
            for label, score, some, all_ in self._of_returned()
        ]

    def _ndcg(self) -> list[str]:
        gains = gained(self._hits, self._cutoffs, self._convention)[0].tolist()
        ideals = ideal(self._hits, self._cutoffs, self._convention)[0].tolist()
        return [
            f"{label}: {score:.3f} (DCG={gain:.3f}, IDCG={best:.3f})"
            for label, score, gain, best in zip(self._labels(), self._scores, gains, ideals, strict=True)
        ]

    def _first(self) -> list[str]:
        ranks = self._hits.first_rank(self._cutoffs, self._convention)[0].tolist()
        empty, none = "MRR requires both reference and hypothesis", "no relevant item found in retrieved list"
        return [
            f"{label}: {score:.3f} ({f'first relevant item at rank {rank:.0f}' if score else none})"
            if row.retrieved
            else empty
            for label, score, rank, row in zip(self._labels(), self._scores, ranks, self._rows, strict=True)
        ]

    def _hit(self) -> list[str]:
        said = {True: "at least one relevant item was retrieved", False: "no relevant items found in retrieved list"}
        pairs = zip(self._labels(), self._scores, strict=True)
        return [f"{label.capitalize()}: {score:.1f} ({said[score > 0]})" for label, score in pairs]


def of_contexts(template: Template, run: Run, place: int, shown: str, k: int | None) -> str:
    """The reason of an evaluation of contexts: the number of chunks, and whether words or a model decided."""
    ranks = {hit.rank for hit in run.hits(place + 1) if hit.grade > 0 and (k is None or hit.rank <= k)}
    depth = int(run.all_hits.depth[place])
    verb = "relevant" if template.judge == "relevance" else "used"
    counted = f"{len(ranks)} of {depth if k is None else min(depth, k)} chunks are {verb}"
    lexical = " (heuristic: words, no model)" if run.provenance.judge_settings["model"] == "lexical" else ""
    return f"{template.named(k)}: {shown} ({counted}){lexical}"
