"""Future AGI's inputs: rankings as JSON strings or lists, one or many, and k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from karat.errors import BadArgument, InputError

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
