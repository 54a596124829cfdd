"""The grid of a sweep: every combination of settings, their labels, and names of files for them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import product
from math import isfinite
from typing import Any

from karat._internal.display import sanitize, valid_utf8
from karat.errors import BadArgument, nearest

Setting = dict[str, Any]
"""The values of one combination, by name."""
LIMIT = 100
"""The largest number of settings, unless more are allowed."""
_EXAMPLE = '{"chunk": [200, 400], "k": [5, 10]}'
_LONGEST, _LARGEST = 100, 2**63
_SAFE = re.compile(r"[^A-Za-z0-9._+=,-]+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)")


def combinations(given: Mapping[str, Iterable[Any]] | Sequence[Mapping[str, Any]], limit: int = LIMIT) -> list[Setting]:
    """Every combination of the values, or the given combinations; copies once."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise BadArgument("limit is a number of settings from 1 on", got=limit, hint=f"limit={LIMIT}")
    settings = _product(given, limit) if isinstance(given, Mapping) else _listed(given)
    different = list({key(one): one for one in reversed(settings)}.values())[::-1]
    if not different:
        raise BadArgument("a sweep needs settings", got=given, hint=_EXAMPLE)
    if len(different) > limit:
        raise _too_many(len(different), limit)
    return different


def _product(given: Mapping[str, Iterable[Any]], limit: int) -> list[Setting]:
    values = {}
    for name, each in given.items():
        _check_name(name)
        if isinstance(each, str | bytes | Mapping) or not isinstance(each, Iterable):
            raise BadArgument(f'the values of "{name}" must be a list', got=each, hint=f'"{name}": [{each!r}]')
        values[name] = [_checked(name, value) for value in each]
        if not values[name]:
            raise BadArgument(f'"{name}" has no values', hint=_EXAMPLE)
    if not values:
        raise BadArgument("a sweep needs settings", got=given, hint=_EXAMPLE)
    unique = {name: list({key({name: value}): value for value in own}.values()) for name, own in values.items()}
    count = 1
    for own in unique.values():
        count *= len(own)
    if count > limit:
        raise _too_many(count, limit)
    return [dict(zip(unique, combination, strict=True)) for combination in product(*unique.values())]


def _listed(given: Any) -> list[Setting]:
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else None
    if listed is None or not all(isinstance(one, Mapping) for one in listed):
        hint = f"{_EXAMPLE}, or a list of dicts"
        raise BadArgument("settings must be a dict of lists, or a list of dicts", got=given, hint=hint)
    for one in listed:
        for name in one:
            _check_name(name)
    return [{name: _checked(name, value) for name, value in one.items()} for one in listed]


def _too_many(count: int, limit: int) -> BadArgument:
    hint = f"limit={count} (--limit {count}), or fewer values"
    return BadArgument(f"{count:,} settings are more than the limit of {limit:,}", hint=hint)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise BadArgument("the name of a setting is a parameter of make", got=name, hint='"chunk"')


def _checked(name: str, value: Any) -> Any:
    """A value that JSON can hold: it is stored with the run."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return valid_utf8([value])[0]
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a NumPy number
        value = value.item()
    if (isinstance(value, int) and abs(value) < _LARGEST) or (isinstance(value, float) and isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [_checked(name, one) for one in value]
    problem = f'a value of "{name}" must be a number, a string, True, False, None, or a list of these'
    raise BadArgument(problem, got=value, hint=f'"{name}": ["a", "b"], and make builds the object')


def key(setting: Mapping[str, Any]) -> str:
    """The setting as a text that is different for different settings."""
    return repr([(name, type(setting[name]).__name__, setting[name]) for name in sorted(setting)])


def value_text(value: Any) -> str:
    """A value as it is written on the command line: `none`, `true`, `200`, `0.5`, `x`."""
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return "+".join(map(value_text, value)) if isinstance(value, list) else str(value)


def label(setting: Mapping[str, Any], names: Iterable[str] | None = None) -> str:
    """A setting in one line: `chunk=200, k=5`."""
    shown = setting if names is None else [name for name in names if name in setting]
    return sanitize(", ".join(f"{name}={value_text(setting[name])}" for name in shown))


def file_stems(settings: Sequence[Mapping[str, Any]], taken: Iterable[str] = ()) -> list[str]:
    """A name for the file of each setting, such as `chunk=200,k=5`; a digest is added where it would be ambiguous."""
    used, stems = {name.casefold() for name in taken}, []
    for setting in settings:
        text = ",".join(f"{name}={value_text(value)}" for name, value in setting.items())
        stem = _SAFE.sub("-", text)[:_LONGEST].strip(" .") or "setting"
        digest = blake2b(key(setting).encode("utf-8", "backslashreplace"), digest_size=4).hexdigest()
        if stem != text or _RESERVED.match(stem) or stem.casefold() in used:
            stem = f"{stem}-{digest}"
        used.add(stem.casefold())
        stems.append(stem)
    return stems


def check_parameters(make: Callable[..., Any], settings: Sequence[Mapping[str, Any]]) -> bool:
    """Refuse settings that make does not take; False if it does not take k, which then is only the depth."""
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return True
    kinds = inspect.Parameter
    if any(one.kind is kinds.VAR_KEYWORD for one in parameters):
        return True
    named = {one.name for one in parameters if one.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)}
    given = dict.fromkeys(name for setting in settings for name in setting)
    for name in given:
        if name not in named and name != "k":
            close = nearest(name, sorted(named))
            hint = close or f"def make({', '.join(given)}): …"
            raise BadArgument(f'make has no parameter "{name}"', got=f"make({', '.join(sorted(named))})", hint=hint)
    return "k" in named
