"""Future AGI's inputs: rankings as JSON strings or lists, one or many, and k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import Any, NamedTuple

from karat.conventions import STANDARD
from karat.errors import BadArgument, InputError
from karat.judges import Claims, Judge, Relevance
from karat.pipeline import evaluate
from karat.run import Run

_HOW = 'one ranking: ["a", "b"]; a batch: [["a", "b"], ["c"]], or a JSON list in each string'
_INPUTS = '{"hypothesis": ["what", "came", "back"], "reference": ["what", "should"]}'


class Row(NamedTuple):
    """One query: what was retrieved, ranked, and the ground truth."""

    hypothesis: list[str]
    reference: list[str]


class Failed(NamedTuple):
    """A row that cannot be read, and why."""

    reason: str


class _Side(NamedTuple):
    """The rows of a batch, or the one row of a single input."""

    name: str
    rows: list[Any]
    many: bool
    mixed: bool
    """Whether single items stand among the rows of a batch."""


def rows_of(inputs: Mapping[str, Any]) -> list[Row | Failed]:
    """The rows of a batch, or the one row of a single input.

    A list of lists is a batch, and so is a list of strings that are JSON lists; a list of other strings is one ranking.
    """
    if not isinstance(inputs, Mapping):
        raise InputError("inputs are a dict with hypothesis and reference", got=inputs, hint=_INPUTS)
    for name in ("hypothesis", "reference"):
        if name not in inputs:
            raise InputError(f'the inputs lack "{name}"', got=list(inputs), hint=_INPUTS)
    left, right = (_side(inputs[name], name) for name in ("hypothesis", "reference"))
    same = left.many == right.many and len(left.rows) == len(right.rows)
    if mixed := [side for side in (left, right) if side.mixed]:
        # Beside a side that is a batch without doubt, the single items of the other are rows that fail alone.
        if len(mixed) == 2 or not same:
            raise InputError(f'"{mixed[0].name}" mixes rankings with single items', got=mixed[0].rows, hint=_HOW)
    elif not same:
        got = f"{_told(left)}, {_told(right)}"
        raise InputError("hypothesis and reference do not have as many rows", got=got, hint=_HOW)
    return [_row(*pair) for pair in zip(left.rows, right.rows, strict=True)]


def _side(value: Any, name: str) -> _Side:
    listed = decoded(value)
    if isinstance(listed, str) or (isinstance(value, str) and not isinstance(listed, list)):
        raise InputError(f'"{name}" is a string that is no JSON list', got=value, hint=_HOW)
    if not isinstance(listed, list | tuple):
        raise InputError(f'"{name}" is {_kind(listed)}; wanted a list or the JSON of one', got=listed, hint=_HOW)
    many = any(isinstance(decoded(item), list | tuple) for item in listed)
    return _Side(name, list(listed) if many else [listed], many, many and any(map(_is_single, listed)))


def _is_single(item: Any) -> bool:
    """Whether this is an item rather than a row, also one that cannot be read."""
    if isinstance(item, str):
        return not item.lstrip().startswith("[")
    return isinstance(item, int | float) and not isinstance(item, bool)


def _row(hypothesis: Any, reference: Any) -> Row | Failed:
    try:
        return Row(_items(hypothesis, "hypothesis"), _items(reference, "reference"))
    except InputError as error:
        return Failed(error.problem if error.got is None else f"{error.problem}; got {error.got}")


def _items(value: Any, name: str) -> list[str]:
    """The items of a row as texts; numbers are written out."""
    items = decoded(value)
    if not isinstance(items, list | tuple):
        problem = "a string that is no JSON list" if isinstance(value, str) else f"{_kind(items)}; wanted a list"
        raise InputError(f'"{name}" is {problem}', got=value)
    return [_text(item, f'item {number} of "{name}"') for number, item in enumerate(items, 1)]


def _text(item: Any, which: str) -> str:
    if isinstance(item, bool) or not isinstance(item, str | int | float):
        raise InputError(f"{which} is {_kind(item)}; wanted a string", got=item)
    try:
        return str(item)
    except ValueError as error:
        raise InputError(f"{which} is a number of too many digits", got=item) from error


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def decoded(value: Any) -> Any:
    """What a string holds as JSON; the string itself if it holds none."""
    if not isinstance(value, str):
        return value
    import json

    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _told(side: _Side) -> str:
    return f"{f'a batch of {len(side.rows)}' if side.many else 'one ranking'} as {side.name}"


def cutoffs(config: Mapping[str, Any] | None) -> list[int] | None:
    """The k of the configuration, one or several; None if it has none."""
    given = _params(config, "eval_config")
    given |= _params(given.pop("params", None), "params")
    if others := [name for name in given if name != "k"]:
        raise BadArgument(f"Unknown function params: {', '.join(map(str, others))}", hint='{"k": 5}')
    if given.get("k") is None:
        return None
    ks = list(given["k"]) if isinstance(given["k"], list | tuple) else [given["k"]]
    for k in ks:
        if isinstance(k, bool) or not isinstance(k, int):
            raise BadArgument("k must be an integer", got=k)
        if k < 1:
            raise BadArgument("k must be >= 1", got=k)
    if not ks:
        raise BadArgument("k must be an integer", got=given["k"])
    return list(dict.fromkeys(ks))


def _params(given: Any, name: str) -> dict[Any, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise BadArgument(f"{name} is a dict", got=given, hint='{"k": 5}')
    return dict(given or {})


_ALSO = {"input": ("input", "query", "question"), "output": ("output", "response"), "context": ("context", "contexts")}
"""Each key, and what else it may be called."""
_THEIRS = ("turing", "protect")
"""How the names of models begin that only their service has."""
_HOW_futureagi_llm = '{"input": "the question", "context": ["a chunk", "another"], "output": "the response"}'
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
        raise InputError("inputs are a dict", got=inputs, hint=_HOW_futureagi_llm)
    given = {key: next((inputs[n] for n in names if n in inputs), None) for key, names in _ALSO.items()}
    for key in needs:
        if given[key] is None:
            raise InputError(f'the inputs lack "{key}"', got=list(inputs), hint=_HOW_futureagi_llm)
    text = next(key for key in needs if key != "context")
    texts = given[text]
    if not isinstance(texts, list | tuple):
        return [_sample(given["context"], given["input"], given["output"], text)]
    size = len(texts)
    columns = []
    for key in ("context", "input", "output"):
        column = given[key] if given[key] is not None else [None] * size
        if not isinstance(column, list | tuple) or len(column) != size:
            raise InputError(f'"{key}" does not have as many rows as "{text}"', got=column, hint=_HOW_futureagi_llm)
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
