"""Future AGI's inputs: rankings and contexts, as lists or JSON strings, one or many, and the cutoffs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from karat.errors import BadArgument, InputError

Sample = dict[str, Any]
_RANKINGS = 'one ranking: ["a", "b"]; a batch: [["a", "b"], ["c"]], or a JSON list in each string'
_INPUTS = '{"hypothesis": ["retrieved", "texts"], "reference": ["relevant", "texts"]}'
_CONTEXTS = '{"input": "the question", "context": ["a chunk", "another"], "output": "the response"}'
_ALIASES = {
    "hypothesis": ("output", "response"),
    "reference": ("expected_output", "expected_response", "ground_truth"),
    "context": ("contexts",),
    "output": ("response", "answer", "generated"),
    "input": ("query", "question", "prompt_input"),
}
"""Other names of a key, in the order in which they are tried."""


class _Side(NamedTuple):
    """The rows of a batch, or the one row of a single input."""

    name: str
    rows: list[Any]
    batch: bool
    mixed: bool
    """True if single items are among the rows of a batch."""

    def as_batch(self) -> _Side:
        """The same rows as a batch."""
        return self._replace(batch=True)

    def __str__(self) -> str:
        return f"{f'a batch of {len(self.rows)}' if self.batch else 'one ranking'} as {self.name}"


def read_rankings(inputs: Mapping[str, Any]) -> list[Sample | str]:
    """The samples of a batch, or the one sample of a single input; a string says why a row cannot be read.

    A list of lists is a batch, and so is a list of strings that are JSON lists; a list of other strings is one ranking.
    """
    given = _named(inputs, ("hypothesis", "reference"), _INPUTS)
    left, right = (_side(given[name], name) for name in ("hypothesis", "reference"))
    if left.batch != right.batch and len(left.rows) == len(right.rows) == 1:
        left, right = left.as_batch(), right.as_batch()
    same = left.batch == right.batch and len(left.rows) == len(right.rows)
    if mixed := [side for side in (left, right) if side.mixed]:
        # If the other side is clearly a batch, single items are rows that fail alone.
        if len(mixed) == 2 or not same:
            raise InputError(f'"{mixed[0].name}" mixes rankings with single items', got=mixed[0].rows, hint=_RANKINGS)
    elif not same:
        got = f"{left}, {right}"
        raise InputError("hypothesis and reference do not have the same number of rows", got=got, hint=_RANKINGS)
    return [_ranking(*pair) for pair in zip(left.rows, right.rows, strict=True)]


def read_contexts(inputs: Any, needs: Sequence[str]) -> list[Sample | str]:
    """The samples, or why a row cannot be read. A list of responses, or of questions, is a batch.

    A list of one response beside several chunks is one row: some clients put every text into a list.
    """
    given = _named(inputs, needs, _CONTEXTS)
    text = next(key for key in needs if key != "context")
    keys = ("context", "input", "output")
    context, size = given["context"], len(given[text]) if isinstance(given[text], list | tuple) else None
    if size == 1 and isinstance(context, list | tuple) and len(context) != 1:
        given |= {key: _only(given[key]) for key in keys if key != "context" and key in given}
        size = None
    if size is None:
        return [_contexts(text, *map(given.get, keys))]
    columns = []
    for key in keys:
        column = given.get(key, [None] * size)
        if not isinstance(column, list | tuple) or len(column) != size:
            problem = f'"{key}" and "{text}" do not have the same number of rows'
            raise InputError(problem, got=column, hint=_CONTEXTS)
        columns.append(column)
    return [_contexts(text, *row) for row in zip(*columns, strict=True)]


def _only(value: Any) -> Any:
    """The item of a list of one; anything else unchanged."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else value


def _named(inputs: Any, needs: Sequence[str], hint: str) -> dict[str, Any]:
    """The inputs under their own names: a key that is missing is taken from one of its other names."""
    if not isinstance(inputs, Mapping):
        raise InputError(f"inputs must be a dict with {' and '.join(needs)}", got=inputs, hint=hint)
    given = dict(inputs)
    for key, others in _ALIASES.items():
        if given.get(key) is None:
            found = next((given[name] for name in others if given.get(name) is not None), None)
            given |= {} if found is None else {key: found}
    if missing := [name for name in needs if name not in given]:
        raise InputError(f'the inputs have no "{missing[0]}"', got=list(inputs), hint=hint)
    return given


def _side(value: Any, name: str) -> _Side:
    items = _decoded(value)
    if not isinstance(items, list | tuple):
        raise InputError(f'"{name}" is {_not_a_list(value)}', got=value, hint=_RANKINGS)
    batch = any(isinstance(_decoded(item), list | tuple) for item in items)
    return _Side(name, list(items) if batch else [items], batch, batch and any(map(_is_single, items)))


def _is_single(item: Any) -> bool:
    """True for an item, False for a row, also one that cannot be read."""
    if isinstance(item, str):
        return not item.lstrip().startswith("[")
    return isinstance(item, int | float) and not isinstance(item, bool)


def _ranking(hypothesis: Any, reference: Any) -> Sample | str:
    try:
        return {"retrieved": _texts(hypothesis, "hypothesis"), "gold": _texts(reference, "reference")}
    except InputError as error:
        return error.problem if error.got is None else f"{error.problem}; got {error.got}"


def _texts(value: Any, name: str) -> list[dict[str, str]]:
    """The items of a row as texts; numbers are written out."""
    items = _decoded(value)
    if not isinstance(items, list | tuple):
        raise InputError(f'"{name}" is {_not_a_list(value)}', got=value)
    texts = []
    for number, item in enumerate(items, 1):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise InputError(f'item {number} of "{name}" is {_kind(item)}; expected a string', got=item)
        try:
            texts.append({"text": str(item)})
        except ValueError as error:
            raise InputError(f'item {number} of "{name}" is a number with too many digits', got=item) from error
    return texts


def _contexts(needed: str, context: Any, query: Any, response: Any) -> Sample | str:
    chunks = _decoded(context)
    chunks = [chunks] if isinstance(chunks, str) else chunks
    if not isinstance(chunks, list | tuple) or not all(isinstance(chunk, str) for chunk in chunks):
        return '"context" is neither a text nor a list of texts'
    for name, value in (("input", query), ("output", response)):
        if not isinstance(value, str | None):
            return f'"{name}" is {_kind(value)}; expected a text'
        if name == needed and not (value or "").strip():
            return f'"{name}" is empty'
    return {"query": query, "retrieved": [{"text": chunk} for chunk in chunks], "response": response}


def _not_a_list(value: Any) -> str:
    return "a string, but not a JSON list" if isinstance(value, str) else f"{_kind(value)}; expected a list"


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _decoded(value: Any) -> Any:
    """The JSON value of a string; any other value, and a string that is no JSON, unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def read_cutoffs(config: Mapping[str, Any] | None) -> list[int] | None:
    """The k of the configuration, one or several; None if there is none."""
    given = _params(config, "eval_config")
    given |= _params(given.pop("params", None), "params")
    if others := [name for name in given if name != "k"]:
        raise BadArgument(f"Unknown function params: {', '.join(map(str, others))}", hint='{"k": 5}')
    if given.get("k") is None:
        return None
    ks = list(given["k"]) if isinstance(given["k"], list | tuple) else [given["k"]]
    for k in ks or [None]:
        if isinstance(k, bool) or not isinstance(k, int):
            raise BadArgument("k must be an integer", got=given["k"])
        if k < 1:
            raise BadArgument("k must be >= 1", got=k)
    return list(dict.fromkeys(ks))


def _params(given: Any, name: str) -> dict[Any, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise BadArgument(f"{name} must be a dict", got=given, hint='{"k": 5}')
    return dict(given or {})
