"""Future AGI's inputs: rankings and contexts, as lists or in strings, one or many, and the cutoffs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from karat.compat.futureagi.templates import Template
from karat.errors import BadArgument, InputError
from karat.samples.cells import read_cell

Sample = dict[str, Any]
_RANKINGS = 'one ranking: ["a", "b"]; a batch: [["a", "b"], ["c"]], or a JSON list in each string'
_INPUTS = '{"hypothesis": ["retrieved", "texts"], "reference": ["relevant", "texts"]}'
_CONTEXTS = '{"input": "the question", "context": ["a chunk", "another"], "output": "the response"}'
_ALIASES = {
    "hypothesis": ("output", "response"),
    "reference": ("expected_output", "expected_response", "ground_truth"),
    "output": ("response", "answer", "generated", "hypothesis"),
    "expected": ("expected_output", "expected_response", "ground_truth", "reference"),
    "context": ("contexts",),
    "input": ("query", "question", "prompt_input"),
}
"""Other names of a key, in the order in which they are tried."""


class Ranking(NamedTuple):
    """The texts of one row."""

    retrieved: list[str]
    gold: list[str]


class _Side(NamedTuple):
    """The rows of a batch, or the one row of a single input."""

    name: str
    rows: list[Any]
    batch: bool
    mixed: bool
    """True if single items are among the rows of a batch."""

    def in_step_with(self, other: _Side) -> _Side:
        """The same, as a batch if the other side is one and has as many rows, or one row for one ranking."""
        if self.batch or not other.batch:
            return self
        if len(other.rows) == 1:
            return self._replace(batch=True)
        (items,) = self.rows
        if len(items) == len(other.rows) and all(isinstance(item, str) for item in items):
            return self._replace(rows=[[item] for item in items], batch=True)
        return self

    def __str__(self) -> str:
        return f"{f'a batch of {len(self.rows)}' if self.batch else 'one ranking'} as {self.name}"


def read_rankings(inputs: Mapping[str, Any], template: Template) -> list[Ranking | str]:
    """The rankings of a batch, or the one of a single input; a string says why a row cannot be read.

    A list of lists is a batch, and so is a list of strings that are lists; a list of other strings is one ranking.
    Beside a batch, a list of as many strings has one item per row.
    """
    given = _named(inputs, template.needs, _INPUTS)
    left, right = (_side(given[name], name, template) for name in template.needs)
    left, right = left.in_step_with(right), right.in_step_with(left)
    same = left.batch == right.batch and len(left.rows) == len(right.rows)
    if mixed := [side for side in (left, right) if side.mixed]:
        # If the other side is clearly a batch, single items are rows of their own.
        if len(mixed) == 2 or not same:
            raise InputError(f'"{mixed[0].name}" mixes rankings with single items', got=mixed[0].rows, hint=_RANKINGS)
    elif not same:
        got, names = f"{left}, {right}", " and ".join(template.needs)
        raise InputError(f"{names} do not have the same number of rows", got=got, hint=_RANKINGS)
    return [_ranking(pair, template) for pair in zip(left.rows, right.rows, strict=True)]


def read_contexts(inputs: Any, needs: Sequence[str]) -> list[Sample | str]:
    """The samples, or why a row cannot be read. A list of responses, or of questions, is a batch.

    A list of one response beside several chunks is one row: some clients put every text into a list.
    """
    given = _named(inputs, needs, _CONTEXTS)
    text = next(key for key in needs if key != "context")
    keys = ("context", "input", "output")
    context, size = given["context"], len(given[text]) if isinstance(given[text], list | tuple) else None
    if size == 1 and not (isinstance(context, list | tuple) and len(context) == 1):
        size = None
    if size == 0:
        raise InputError("the inputs have no rows", got=given[text], hint=_CONTEXTS)
    if size is None:
        return [_contexts(text, given["context"], *(_only(given.get(key)) for key in keys[1:]))]
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
    for key in ("context", "input", *needs):
        others = [name for name in _ALIASES[key] if name in inputs]
        if key not in given and others:
            given[key] = inputs[others[0]]
    if missing := [name for name in needs if name not in given]:
        raise InputError(f'the inputs have no "{missing[0]}"', got=list(inputs), hint=hint)
    return given


def _side(value: Any, name: str, template: Template) -> _Side:
    items = _listed(_decoded(value, tuples=True), template)
    if not isinstance(items, list | tuple):
        raise InputError(f'"{name}" is {_not_a_list(value)}', got=value, hint=_RANKINGS)
    if isinstance(value, str) and value.lstrip().startswith("{") and _is_object(value):
        raise InputError(f'"{name}" is {_not_a_list({})}', got=value, hint=_RANKINGS)
    rows = [_decoded(item) for item in items]
    if not any(isinstance(row, list | tuple) for row in rows):
        return _Side(name, [items], batch=False, mixed=False)
    return _Side(name, rows, batch=True, mixed=any(map(_is_single, rows)))


def _is_object(text: str) -> bool:
    """True for an object in JSON: some clients send a dict so."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_single(item: Any) -> bool:
    """True for an item, False for a row, also one that cannot be read."""
    if isinstance(item, str):
        return not item.lstrip().startswith("[")
    return isinstance(item, int | float) and not isinstance(item, bool)


def _ranking(pair: tuple[Any, Any], template: Template) -> Ranking | str:
    try:
        return Ranking(*(_texts(value, name, template) for value, name in zip(pair, template.needs, strict=True)))
    except InputError as error:
        return error.problem if error.got is None else f"{error.problem}; got {error.got}"


def _texts(value: Any, name: str, template: Template) -> list[str]:
    """The items of a row as texts; numbers are written out."""
    items = _listed(value, template)
    if not isinstance(items, list | tuple):
        raise InputError(f'"{name}" is {_not_a_list(value)}', got=value)
    texts: list[str] = list(items)
    if set(map(type, items)) - {str}:
        texts = [_text(item, number, name) for number, item in enumerate(items, 1)]
    return [text.lower().strip() for text in texts] if template.folded else texts


def _text(item: Any, number: int, name: str) -> str:
    if isinstance(item, bool) or not isinstance(item, str | int | float):
        raise InputError(f'item {number} of "{name}" is {_kind(item)}; expected a string', got=item)
    try:
        return str(item)
    except ValueError as error:
        raise InputError(f'item {number} of "{name}" is a number with too many digits', got=item) from error


def _contexts(needed: str, context: Any, query: Any, response: Any) -> Sample | str:
    chunks = _decoded(context)
    inner = _decoded(_only(chunks))  # some clients put every value into a list
    chunks = inner if isinstance(inner, list | tuple) else [chunks] if isinstance(chunks, str) else chunks
    if not isinstance(chunks, list | tuple) or not all(isinstance(chunk, str) for chunk in chunks):
        return '"context" is neither a text nor a list of texts'
    for name, value in (("input", query), ("output", response)):
        if not isinstance(value, str | None):
            return f'"{name}" is {_kind(value)}; expected a text'
        if name == needed and not (value or "").strip():
            return f'"{name}" is empty'
    return {"query": query, "retrieved": [{"text": chunk} for chunk in chunks], "response": response}


def _not_a_list(value: Any) -> str:
    return (
        "a string that begins like a list, but is none"
        if isinstance(value, str)
        else f"{_kind(value)}; expected a list"
    )


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _listed(value: Any, template: Template) -> Any:
    """The list in a string; a text as a list of one item, or of its lines; any other value unchanged."""
    value = _decoded(value)
    if not isinstance(value, str) or value.lstrip().startswith("["):
        return value
    lines = value.split("\n") if template.folded else [value]
    return [line for line in lines if line.strip()]


def _decoded(value: Any, *, tuples: bool = False) -> Any:
    """The list in a string, in JSON or as Python prints it, and the tuple, if asked; any other value unchanged."""
    if not isinstance(value, str):
        return value
    begin = value.lstrip()
    if not begin.startswith("[") and not (tuples and begin.startswith("(") and "," in begin):
        return value
    try:
        found = read_cell(value)
    except ValueError:
        return value
    return found if isinstance(found, list | tuple) else value


def read_cutoffs(config: Mapping[str, Any] | None, template: Template) -> list[int] | None:
    """The k of the configuration, one or several; None if there is none."""
    given = _params(config, "eval_config")
    given |= _params(given.pop("params", None), "params")
    others = sorted(str(name) for name in given if name != "k")
    if others and not template.whole_list:
        raise BadArgument(f"Unknown function params: {', '.join(others)}", hint='{"k": 5}')
    wanted = given.get("k")
    if wanted is None or (isinstance(wanted, str) and not wanted.strip()):
        return None
    ks = [_cutoff(k, wanted) for k in (wanted if isinstance(wanted, list | tuple) else [wanted]) or [None]]
    return list(dict.fromkeys(ks))


def _cutoff(given: Any, wanted: Any) -> int:
    """One k, also as the text of an integer."""
    try:
        k = int(given) if isinstance(given, str) else given
    except ValueError:
        k = None
    if isinstance(k, bool) or not isinstance(k, int):
        raise BadArgument("k must be an integer", got=wanted)
    if k < 1:
        raise BadArgument("k must be >= 1", got=k)
    return k


def _params(given: Any, name: str) -> dict[Any, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise BadArgument(f"{name} must be a dict", got=given, hint='{"k": 5}')
    return dict(given or {})
