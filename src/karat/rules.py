"""Rules of a gate: `recall@5 >= 0.80`, `recall@5 lower >= 0.75`, `ndcg@10 no-drop 0.01`."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from karat.errors import BadArgument, KaratError, unknown
from karat.metrics import parse

_LIMIT = re.compile(r"(?P<metric>.+?)(?P<lower>\s+lower)?\s*(?P<sign>>=|<=|≥|≤|>|<)(?P<value>.*)", re.DOTALL)
_NO_DROP = re.compile(r"(?P<metric>.+?)\s+no[-_ ]?drop(?:\s+(?P<tolerance>\S+))?", re.DOTALL)
_SIGNS = {"≥": ">=", "≤": "<="}
_HINT = '"recall@5 >= 0.80", "recall@5 lower >= 0.75", "recall@5 no-drop", "recall@5 no-drop 0.01"'

# The mean of 0.7, 0.8 and 0.9 is 0.7999999999999999; nobody who asks for 0.8 means to fail it.
SLACK = 1e-9


class Limit(NamedTuple):
    """A mean, or the lower end of its interval, set against a number."""

    metric: str
    lower: bool
    sign: str
    value: float

    def __str__(self) -> str:
        return f"{self.metric}{' lower' if self.lower else ''} {self.sign} {_digits(self.value)}"

    def holds(self, value: float) -> bool:
        """Whether a value keeps to the limit."""
        above = value - self.value if self.sign.startswith(">") else self.value - value
        return above >= -SLACK if self.sign.endswith("=") else above > SLACK


class NoDrop(NamedTuple):
    """A metric that must not fall below the baseline; a drop larger than the tolerance fails in any case."""

    metric: str
    tolerance: float | None

    def __str__(self) -> str:
        return f"{self.metric} no-drop" + ("" if self.tolerance is None else f" {_digits(self.tolerance)}")


Rule = Limit | NoDrop


def read_rules(texts: Collection[str], metrics: Collection[str]) -> list[Rule]:
    """The rules, each about one metric that the run has; `recall@1,5 no-drop` is two."""
    if not texts:
        raise BadArgument("no rule was given", hint=_HINT)
    return list(dict.fromkeys(rule for text in texts for rule in _read(text, metrics)))


def _read(text: str, metrics: Collection[str]) -> list[Rule]:
    if not isinstance(text, str):
        raise BadArgument("a rule is a text", got=text, hint=_HINT)
    if "=>" in text or "=<" in text:
        raise BadArgument("not a comparison", got=text, hint=text.replace("=>", ">=").replace("=<", "<="))
    if found := _NO_DROP.fullmatch(text.strip()):
        tolerance = None if found["tolerance"] is None else read_tolerance(found["tolerance"])
        return [NoDrop(name, tolerance) for name in _names(found["metric"], metrics)]
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        problem = "not a rule: a metric, then a comparison with a number, or no-drop, all in quotes"
        raise BadArgument(problem, got=text, hint=_HINT)
    sign = _SIGNS.get(found["sign"], found["sign"])
    names = _names(found["metric"], metrics)
    return [Limit(name, bool(found["lower"]), sign, _number(found["value"], text)) for name in names]


def read_tolerance(given: str | float) -> float:
    """How large a drop may be: a number from 0 to 1."""
    tolerance = _float(given)
    if tolerance is None or not 0 <= tolerance <= 1:
        raise BadArgument("a tolerance is a number from 0 to 1", got=given, hint="0.02")
    return tolerance


def _names(text: str, metrics: Collection[str]) -> tuple[str, ...]:
    """The metric as the run calls it; one name for each cutoff."""
    if text in metrics:  # also a metric of the user's own, which is not defined here
        return (text,)
    try:
        names = parse(text).names
    except KaratError:
        names = (text,)
    for name in names:
        if name not in metrics:
            raise unknown("metric in this run", name, metrics, "one of: " + ", ".join(metrics))
    return names


def _number(text: str, rule: str) -> float:
    value = _float(text)
    if value is None:
        percent = _float(text.strip().removesuffix("%"))
        hint = _HINT if percent is None else rule.replace(text.strip(), _digits(percent / 100))
        raise BadArgument("a metric is compared with a number", got=rule, hint=hint)
    if not 0 <= value <= 1:
        hint = rule.replace(text.strip(), _digits(value / 100)) if 0 <= value <= 100 else _HINT
        raise BadArgument("a metric lies between 0 and 1", got=rule, hint=hint)
    return value


def _float(given: object) -> float | None:
    """The number, if it is one; what is infinite or not a number is none."""
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if abs(value) < float("inf") else None


def _digits(value: float) -> str:
    """A number as people write limits: two decimal places, more where it has more."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.10g}"
