"""Scoring of Future AGI's evaluations: a template and inputs in, one score with its reason per row out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

from karat.compat.futureagi.inputs import Sample, read_contexts, read_cutoffs, read_rankings
from karat.compat.futureagi.templates import CONTEXT_TEMPLATES, TEMPLATES, Template, find_template
from karat.conventions import Convention, find_convention
from karat.errors import BadArgument
from karat.judges import Claims, Judge, Relevance
from karat.pipeline import evaluate
from karat.run import Run

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
        return self._scores(found, inputs, read_cutoffs(config), model_name)

    def _scores(self, template: Template, inputs: Any, ks: Sequence[int] | None, asked: str | None) -> list[Scored]:
        """The scores of each row, one per k; rows with the same cutoffs are evaluated together."""
        ranking = template.name in TEMPLATES
        rows = read_rankings(inputs) if ranking else read_contexts(inputs, template.needs)
        judge = template.judge if ranking else self._judge(template, asked)
        groups: dict[tuple[int | None, ...], list[int]] = {}
        for number, row in enumerate(rows):
            whole = None if isinstance(row, str) or not ranking else len(row["retrieved"])
            groups.setdefault(tuple(ks or [whole]), []).append(number)
        scored: dict[int, list[Scored]] = {}
        for cutoffs, numbers in groups.items():
            unread = {n: Scored(None, str(rows[n]), template.output_type) for n in numbers}
            scored |= {n: [one] * len(cutoffs) for n, one in unread.items()}
            good: dict[int, Sample] = {n: row for n in numbers if not isinstance(row := rows[n], str)}
            metrics = [template.metric if k is None else f"{template.metric}@{max(k, 1)}" for k in cutoffs]
            if good:
                convention = template.convention or self.convention
                run = evaluate(list(good.values()), metrics, judge=judge, convention=convention)
                named = bool(ks) or not template.whole_list
                labels = [f"{template.label}@{k}" if named else template.label for k in cutoffs]
                for place, number in enumerate(good):
                    each = zip(metrics, labels, cutoffs, strict=True)
                    scored[number] = [self._explained(template, run, place, *one) for one in each]
        return [one for number in sorted(scored) for one in scored[number]]

    def _explained(self, template: Template, run: Run, place: int, metric: str, label: str, k: int | None) -> Scored:
        """A score and its reason."""
        kind = template.output_type
        if place in run.all_hits.failed:
            return Scored(None, f"{label}: not judged, {run.all_hits.failed[place]}", kind)
        score = float(run.scores[metric][place])
        contexts = template.name in CONTEXT_TEMPLATES
        if isnan(score):
            why = "the response has no claims" if contexts else "the reference is empty"
            return Scored(None, f"{label}: undefined, {why}", kind)
        more = ""
        if contexts:
            ranks = {hit.rank for hit in run.hits(place + 1) if hit.grade > 0}
            verb = "relevant" if template.judge == "relevance" else "used"
            more = f" ({len(ranks)} of {run.all_hits.depth[place]} chunks are {verb})"
            lexical = run.provenance.judge_settings["model"] == "lexical"
            more += " (heuristic: words, no model)" if lexical else ""
        elif self.convention.name == _SERVER and template.metric == "recall" and template.convention is None:
            gold = run.gold(place + 1)
            found = [item for item in gold if item.rank is not None and item.rank <= (k or 0)]
            more = f" ({len(found)}/{len(gold)} relevant items in top {k})"
        return Scored(score, f"{label}: {round(score, 3)}{more}", kind)

    def _judge(self, template: Template, asked: str | None) -> Judge:
        """The judge for a model; kept, so that all calls of a scorer share one budget."""
        model = self.model if self.model is not None else asked
        named = None if isinstance(model, str) and model.startswith(_THEIR_MODELS) else model
        key = (template.judge, named if isinstance(named, str | None) else id(named))
        if key not in self._judges:
            if template.judge == "claims":
                self._judges[key] = Claims(named or "lexical", of="response")
            elif named is None:
                hint = 'Evaluator(model="gpt-4o-mini"), or model_name="gpt-4o-mini"'
                raise BadArgument(f"{template.name} needs a language model", got=model, hint=hint)
            else:
                self._judges[key] = Relevance(named)
        return self._judges[key]
