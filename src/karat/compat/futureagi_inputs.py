"""Future AGI's inputs: rankings as JSON strings or lists, one or many, and k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from karat.errors import BadArgument, InputError

_HOW = 'one ranking: ["a", "b"]; a batch: [["a", "b"], ["c"]], or a JSON list in each string'


class Row(NamedTuple):
    """One query: what was retrieved, ranked, and the ground truth."""

    hypothesis: list[str]
    reference: list[str]


class Failed(NamedTuple):
    """A row that cannot be read, and why."""

    reason: str


def rows_of(inputs: Mapping[str, Any]) -> list[Row | Failed]:
    """The rows of a batch, or the one row of a single input."""
    if not isinstance(inputs, Mapping):
        raise InputError("inputs are a dict with hypothesis and reference", got=inputs)
    for name in ("hypothesis", "reference"):
        if name not in inputs:
            raise InputError(f'the inputs lack "{name}"', got=list(inputs))
    (many_h, hypotheses), (many_r, references) = (_side(inputs[name], name) for name in ("hypothesis", "reference"))
    if many_h != many_r or len(hypotheses) != len(references):
        got = f"{_told(many_h, hypotheses)} as hypothesis, {_told(many_r, references)} as reference"
        raise InputError("hypothesis and reference do not have as many rows", got=got, hint=_HOW)
    return [_row(*pair) for pair in zip(hypotheses, references, strict=True)]


def _side(value: Any, name: str) -> tuple[bool, list[Any]]:
    """Whether it is a batch, and its rows.

    A list of lists is a batch, and so is a list of strings that are JSON lists; a list of other strings is one ranking.
    """
    if isinstance(value, str):
        value = _decoded(value)
        if not isinstance(value, list):
            raise InputError(f'"{name}" is a string that is no JSON list', got=value, hint=_HOW)
    if not isinstance(value, list | tuple):
        raise InputError(f'"{name}" is {type(value).__name__}; wanted a list or the JSON of one', got=value, hint=_HOW)
    lists = [isinstance(item, list | tuple) or isinstance(_decoded(item), list) for item in value]
    if not any(lists):
        return False, [value]
    if not all(lists) and any(isinstance(item, str | int | float) for item in _where(value, lists, wanted=False)):
        raise InputError(f'"{name}" mixes rankings with single items', got=value, hint=_HOW)
    return True, list(value)


def _where(values: Sequence[Any], flags: Sequence[bool], *, wanted: bool) -> list[Any]:
    return [value for value, flag in zip(values, flags, strict=True) if flag is wanted]


def _row(hypothesis: Any, reference: Any) -> Row | Failed:
    try:
        return Row(_items(hypothesis, "hypothesis"), _items(reference, "reference"))
    except InputError as error:
        return Failed(str(error))


def _items(value: Any, name: str) -> list[str]:
    """The items of a row as texts; numbers are written out."""
    items = _decoded(value) if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise InputError(f'"{name}" is {type(items).__name__}; wanted a list', got=items)
    for number, item in enumerate(items, 1):
        if isinstance(item, bool) or not isinstance(item, str | int | float):
            raise InputError(f'item {number} of "{name}" is {type(item).__name__}; wanted a string', got=item)
    return [item if isinstance(item, str) else str(item) for item in items]


def _decoded(value: Any) -> Any:
    """What a string holds as JSON; the string itself if it holds none."""
    if not isinstance(value, str):
        return value
    import json

    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _told(many: bool, rows: Sequence[Any]) -> str:  # noqa: FBT001
    return f"a batch of {len(rows)}" if many else "one ranking"


def cutoffs(config: Mapping[str, Any] | None) -> list[int] | None:
    """The k of the configuration, one or several; None if it has none."""
    given = dict(config or {})
    given = dict(given.get("params", given))
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
