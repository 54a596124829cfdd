"""Scoring of Future AGI's evaluations: a template and inputs in, one output with its reason per row out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

from karat.compat.futureagi.inputs import Ranking, Sample, read_contexts, read_cutoffs, read_rankings
from karat.compat.futureagi.reasons import ServerReasons, documented, of_contexts
from karat.compat.futureagi.templates import TEMPLATES, Template, find_template
from karat.conventions import Convention, find_convention
from karat.judges import Claims, Judge, Relevance
from karat.pipeline import evaluate

_SERVER = "futureagi-server"
_THEIR_MODELS = ("turing", "protect")
"""Prefixes of models that only their service has."""


class Scored(NamedTuple):
    """The output of one row, None if there is none, with its reason."""

    output: float | str | None
    reason: str
    output_type: str = "score"


class Scorer:
    """Scores rows by the definitions of a convention; the judges of one scorer share their budget."""

    def __init__(self, convention: str | Convention = "futureagi", model: Any = None) -> None:
        self.convention = find_convention(convention)
        self.model = model
        """The language model to call; overrides `model_name`."""
        self._judges: dict[object, Judge] = {}

    def scored(
        self,
        template: Any,
        inputs: Mapping[str, Any],
        config: Mapping[str, Any] | None = None,
        model_name: str | None = None,
    ) -> list[Scored]:
        """Score each row, once per k; a row that cannot be read has no output, and its reason says why."""
        found = find_template(template)
        ks: Sequence[int | None] = read_cutoffs(config, found) or [None]
        rows: list[Ranking | str] | list[Sample | str]
        scores: Sequence[Sequence[Scored]]
        if found.name in TEMPLATES:
            rows = read_rankings(inputs, found)
            scores = self._of_rankings(found, [row for row in rows if isinstance(row, Ranking)], ks)
        else:
            rows = read_contexts(inputs, found.needs)
            good = [row for row in rows if isinstance(row, dict)]
            scores = self._of_contexts(found, good, ks, model_name) if good else []
        each = iter(scores)
        unread = [Scored(None, row, found.output_type) if isinstance(row, str) else None for row in rows]
        return [one for fault in unread for one in ([fault] * len(ks) if fault else next(each))]

    def _of_rankings(
        self, template: Template, rows: Sequence[Ranking], ks: Sequence[int | None]
    ) -> list[tuple[Scored, ...]]:
        """The outputs of rankings, one per k."""
        if not rows:
            return []
        if template.swapped:
            each = [self._at(template, [Ranking(row.gold, row.retrieved[:k]) for row in rows], [k]) for k in ks]
            columns = [column for one in each for column in one]
        else:
            columns = self._at(template, rows, ks)
        return list(zip(*columns, strict=True))

    def _at(self, template: Template, rows: Sequence[Ranking], ks: Sequence[int | None]) -> list[list[Scored]]:
        """A column of outputs for each k."""
        retrieved, gold = [row.retrieved for row in rows], [row.gold for row in rows]
        convention = template.convention or self.convention
        cuts = [None] if template.swapped else ks
        metrics = [template.metric_at(k) for k in cuts]
        run = evaluate(retrieved=retrieved, gold=gold, metrics=metrics, judge="exact", convention=convention)
        columns = []
        for k, cut, metric in zip(ks, cuts, metrics, strict=True):
            scores = run.scores[metric].tolist()
            server = self.convention.name == _SERVER
            reasons = (
                ServerReasons(template, run, rows, convention, cut=cut, k=k).each()
                if server
                else documented(template, scores, rows, k)
            )
            none = f"{template.named(k)}: undefined, the reference is empty"
            columns.append([
                Scored(None, none) if isnan(score) else Scored(score, reason)
                for score, reason in zip(scores, reasons, strict=True)
            ])  # fmt: skip
        return columns

    def _of_contexts(
        self, template: Template, rows: Sequence[Sample], ks: Sequence[int | None], asked: str | None
    ) -> list[list[Scored]]:
        """The outputs of contexts, one per k."""
        metrics = [template.metric_at(k) for k in ks]
        convention = template.convention or self.convention
        run = evaluate(list(rows), metrics, judge=self._judge(template, asked), convention=convention)
        results = []
        for place in range(len(rows)):
            own = []
            for k, metric in zip(ks, metrics, strict=True):
                score, label = float(run.scores[metric][place]), template.named(k)
                if place in run.all_hits.failed:
                    own.append(Scored(None, f"{label}: not judged, {run.all_hits.failed[place]}", template.output_type))
                elif isnan(score):
                    own.append(Scored(None, f"{label}: undefined, the response has no claims", template.output_type))
                else:
                    output = ("Passed" if score > 0 else "Failed") if template.passes else score
                    shown = output if isinstance(output, str) else str(round(output, 3))
                    own.append(Scored(output, of_contexts(template, run, place, shown, k), template.output_type))
            results.append(own)
        return results

    def _judge(self, template: Template, asked: str | None) -> Judge:
        """The judge for a model; kept, so that all calls of a scorer share one budget."""
        model = self.model if self.model is not None else asked
        named = "lexical" if isinstance(model, str) and model.startswith(_THEIR_MODELS) else model or "lexical"
        key = (template.judge, named if isinstance(named, str) else id(named))
        if key not in self._judges:
            self._judges[key] = Claims(named, of="response") if template.judge == "claims" else Relevance(named)
        return self._judges[key]
