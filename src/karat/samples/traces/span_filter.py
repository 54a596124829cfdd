"""Filters of spans: conditions on their attributes, and the time when they started."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

from karat.errors import BadArgument, InputError, nearest
from karat.samples.traces.contents import decoded
from karat.samples.traces.span import Span, nanoseconds

_EXAMPLE = 'session.id == "abc" and latency > 500'
_CONDITION = re.compile(
    r"""\s*(?P<name>[\w.@/:-]+)\s*(?P<op>==|!=|<=|>=|=|<|>|\bcontains\b)\s*"""
    r"""(?P<value>"[^"]*"|'[^']*'|[^\s"'<>=!]+)\s*""",
)
_AND = re.compile(r"and\b")
_AGO = re.compile(r"(\d+)\s*([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_KNOWN_NAMES = 500
_SHOWN = 6
"""The number of names or values that an error shows."""


class Condition(NamedTuple):
    """A comparison of an attribute with a value."""

    name: str
    op: str
    value: str

    def holds(self, span: Span) -> bool:
        """True if the span has the attribute and it compares so; a missing attribute differs from every value."""
        given = value_of(span, self.name)
        if given is None:
            return self.op == "!="
        if self.op == "contains":
            return (
                any(_text(one) == self.value for one in given)
                if isinstance(given, list)
                else self.value in _text(given)
            )
        one, two = _number(given), _number(self.value)
        left, right = (one, two) if one is not None and two is not None else (_text(given), self.value)
        if self.op in ("==", "!="):
            return (left == right) == (self.op == "==")
        if type(left) is not type(right):
            return False
        less, equal = left < right, left == right  # type: ignore[operator]
        return {"<": less, "<=": less or equal, ">": not (less or equal), ">=": not less}[self.op]


class SpanFilter:
    """Chooses spans by conditions that all must hold, and by the time from `since` up to `until`."""

    def __init__(self, where: str | Iterable[str] = (), since: Any = None, until: Any = None) -> None:
        given = [where] if isinstance(where, str) else list(where)
        self.conditions = [condition for text in given for condition in read_conditions(text)]
        self.since, self.until = _time("since", since), _time("until", until)
        self.names: dict[str, None] = {}
        """Names of attributes that spans had."""
        self.values: dict[str, dict[str, None]] = {condition.name: {} for condition in self.conditions}
        """Some values of the attributes that are asked for."""

    @property
    def active(self) -> bool:
        """True if a span may be left out."""
        return bool(self.conditions) or self.since is not None or self.until is not None

    def keeps(self, span: Span) -> bool:
        """True if a span is chosen; a span without a time is not, if there are bounds of time."""
        if self.conditions and len(self.names) < _KNOWN_NAMES:
            self.names |= dict.fromkeys(span.attributes)
        for name, values in self.values.items():
            if len(values) < _SHOWN and (given := value_of(span, name)) is not None:
                values[_text(given)] = None
        if self.since is not None and (span.start is None or span.start < self.since):
            return False
        if self.until is not None and (span.start is None or span.start >= self.until):
            return False
        return all(condition.holds(span) for condition in self.conditions)

    def nothing_left(self, source: str, spans: int) -> InputError:
        """The error if no span is kept: an attribute that no span has, with the nearest ones, or some values."""
        missing = next((name for name, values in self.values.items() if not values), None)
        if missing is not None:
            close = get_close_matches(missing, sorted({*_OWN, *self.names}), n=_SHOWN, cutoff=0)
            hint = next((f"{name} == …" for name in close if nearest(missing, [name])), None)
            return InputError(f'{source}: no span of a retriever has "{missing}"', got=close, hint=hint)
        problem = f"{source}: no span of a retriever is left by where, since and until"
        got = "; ".join(f"{name}: {', '.join(values)}" for name, values in self.values.items())
        return InputError(problem, got=got or f"{spans:,} spans")


_OWN = ("name", "session", "trace_id", "span_id", "latency", "start_time", "kind", "query", "error")


def value_of(span: Span, name: str) -> Any:
    """The value of an attribute, of a field inside one (`metadata.user`), or of the span itself (`name`, `latency`)."""
    attributes = span.attributes
    if attributes.get(name) is not None:
        return attributes[name]
    if name in _OWN:
        return getattr(span, {"trace_id": "trace", "span_id": "id"}.get(name, name))
    if name == "session.id":
        return span.session
    outer, dot, inner = name.partition(".")
    while dot:
        held = decoded(attributes.get(outer))
        if isinstance(held, Mapping):
            return _inside(held, inner)
        more, dot, inner = inner.partition(".")
        outer = f"{outer}.{more}"
    return None


def _inside(held: Any, name: str) -> Any:
    """A field of a record, by a name with dots."""
    if isinstance(held, Mapping):
        if name in held:
            return held[name]
        outer, dot, inner = name.partition(".")
        return _inside(held.get(outer), inner) if dot else None
    return None


def read_conditions(text: str) -> list[Condition]:
    """The conditions of a text such as `session.id == "abc" and latency > 500`."""
    conditions: list[Condition] = []
    place = 0
    while True:
        match = _CONDITION.match(text, place)
        if match is None:
            raise BadArgument(
                "a condition is NAME OP VALUE, with ==, !=, <, <=, >, >= or contains", got=text, hint=_EXAMPLE
            )
        op = "==" if match["op"] == "=" else match["op"]
        value = match["value"]
        conditions.append(Condition(match["name"], op, value[1:-1] if value[0] in "\"'" else value))
        place = match.end()
        if place == len(text):
            return conditions
        if (joined := _AND.match(text, place)) is None:
            raise BadArgument('conditions are joined by "and"', got=text, hint=_EXAMPLE)
        place = joined.end()


def _time(name: str, value: Any) -> int | None:
    """A bound of time: a date, a date with a time, or how long ago (`7d`)."""
    if value is None or value == "":
        return None
    if isinstance(value, timedelta):
        return nanoseconds(datetime.now(UTC) - value)
    if isinstance(value, str) and (ago := _AGO.fullmatch(value.strip())):
        try:
            return nanoseconds(datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])}))
        except OverflowError:
            return 0
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    found = nanoseconds(value) if not (isinstance(value, str) and value.strip().isdigit()) else None
    if found is None:
        raise BadArgument(f"{name} is no time", got=value, hint="2026-11-01, 2026-11-01T09:30+00:00, 7d or 24h")
    return found


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
