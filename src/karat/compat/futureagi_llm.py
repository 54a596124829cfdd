"""Future AGI's evaluations of a response and its context: by a language model, or by words where none is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any, NamedTuple

from karat.compat.futureagi_inputs import decoded
from karat.conventions import STANDARD
from karat.errors import BadArgument, InputError
from karat.evaluation import evaluate
from karat.judges import Claims, Judge, Relevance
from karat.run import Run

_ALSO = {"input": ("input", "query", "question"), "output": ("output", "response"), "context": ("context", "contexts")}
"""Each key, and what else it may be called."""
_THEIRS = ("turing", "protect")
"""How the names of models begin that only their service has."""
_HOW = '{"input": "the question", "context": ["a chunk", "another"], "output": "the response"}'
_RETURNED = replace(STANDARD, name="of-what-came-back", precision_over="returned")
Sample = dict[str, Any]
Told = tuple[float | None, str]


class Judged(NamedTuple):
    """An evaluation by its name there, and what of karat it is."""

    name: str
    label: str
    metric: str
    needs: tuple[str, ...]
    description: str
    of_response: bool = True

    def results(self, inputs: Any, ks: Sequence[int] | None, judges: dict[object, Judge], model: Any) -> list[Told]:
        """For each row, and each k, the score and its reason; a row that cannot be read or judged fails alone."""
        rows = _rows(inputs, self.needs)
        judge = self._judge(judges, model)
        metrics = [f"{self.metric}@{k}" for k in ks] if ks else [self.metric]
        good = {number: row for number, row in enumerate(rows) if isinstance(row, dict)}
        run = evaluate(list(good.values()), metrics, judge=judge, convention=_RETURNED) if good else None
        place = {number: at for at, number in enumerate(good)}
        return [
            (None, row) if isinstance(row, str) else self._told(run, place[number], metric)
            for number, row in enumerate(rows)
            for metric in metrics
        ]

    def _judge(self, judges: dict[object, Judge], model: Any) -> Judge:
        """The judge for a model; kept, so that the answers of one evaluator share its engine."""
        named = None if isinstance(model, str) and model.startswith(_THEIRS) else model
        key = (self.of_response, named if isinstance(named, str | None) else id(named))
        if key not in judges:
            if not self.of_response and named is None:
                hint = 'Evaluator(model="gpt-4o-mini"), or model_name="gpt-4o-mini"'
                raise BadArgument(
                    f"{self.name} asks a language model; name one that can be asked", got=model, hint=hint
                )
            judges[key] = Claims(named or "lexical", of="response") if self.of_response else Relevance(named)
        return judges[key]

    def _told(self, run: Run | None, row: int, metric: str) -> Told:
        assert run is not None
        cut = metric.partition("@")[2]
        label = f"{self.label}@{cut}" if cut else self.label
        if row in run.all_hits.failed:
            return None, f"{label}: not judged, {run.all_hits.failed[row]}"
        score = float(run.scores[metric][row])
        if isnan(score):
            return None, f"{label}: undefined, the response holds no claim"
        ranks = len({hit.rank for hit in run.hits(row + 1) if hit.grade > 0})
        used = "are used" if self.of_response else "are relevant"
        by = (
            " (heuristic: words, no model)" if getattr(run.provenance, "judge", "").startswith("claims(lexical") else ""
        )
        return score, f"{label}: {round(score, 3)} ({ranks} of {run.all_hits.depth[row]} chunks {used}){by}"


BY_RESPONSE = {
    t.name: t
    for t in (
        Judged(
            "chunk_attribution", "Chunk Attribution", "chunk_attribution", ("context", "output"),
            "Share of the chunks that the response makes use of.",
        ),
        Judged(
            "chunk_utilization", "Chunk Utilization", "chunk_utilization", ("context", "output"),
            "How much of the chunks the response makes use of.",
        ),
        Judged(
            "context_relevance", "Context Relevance", "precision", ("context", "input"),
            "Share of the chunks that are relevant to the question.", of_response=False,
        ),
    )
}  # fmt: skip


def _rows(inputs: Any, needs: Sequence[str]) -> list[Sample | str]:
    """Each row as a sample, or why it cannot be read. A list of responses, or of questions, is a batch."""
    if not isinstance(inputs, Mapping):
        raise InputError("inputs are a dict", got=inputs, hint=_HOW)
    given = {key: next((inputs[n] for n in names if n in inputs), None) for key, names in _ALSO.items()}
    for key in needs:
        if given[key] is None:
            raise InputError(f'the inputs lack "{key}"', got=list(inputs), hint=_HOW)
    text = next(key for key in needs if key != "context")
    texts = given[text]
    if not isinstance(texts, list | tuple):
        return [_sample(given["context"], given["input"], given["output"], text)]
    size = len(texts)
    columns = []
    for key in ("context", "input", "output"):
        column = given[key] if given[key] is not None else [None] * size
        if not isinstance(column, list | tuple) or len(column) != size:
            raise InputError(f'"{key}" does not have as many rows as "{text}"', got=column, hint=_HOW)
        columns.append(column)
    return [_sample(context, query, response, text) for context, query, response in zip(*columns, strict=True)]


def _sample(context: Any, query: Any, response: Any, needed: str) -> Sample | str:
    chunks = decoded(context)
    chunks = [chunks] if isinstance(chunks, str) else chunks
    if not isinstance(chunks, list | tuple) or not all(isinstance(chunk, str) for chunk in chunks):
        return '"context" is neither a text nor a list of texts'
    for name, value in (("input", query), ("output", response)):
        if not isinstance(value, str | None):
            return f'"{name}" is a {type(value).__name__}; wanted a text'
        if name == needed and not (value or "").strip():
            return f'"{name}" is empty'
    return {"query": query, "retrieved": [{"text": chunk} for chunk in chunks], "response": response}
