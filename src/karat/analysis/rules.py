"""Gate rules, such as `recall@5 >= 0.80`, `recall@5 lower >= 0.75`, `ndcg@10 no-drop 0.01`: parse and check them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from karat.analysis.measures import STATISTICS
from karat.errors import BadArgument, KaratError, unknown
from karat.metrics import MEASURES, parse
from karat.run import Run

_LIMIT = re.compile(r"(?P<metric>.+?)(?P<lower>\s+lower)?\s*(?P<sign>>=|<=|≥|≤|>|<)(?P<value>.*)", re.DOTALL)
_NO_DROP = re.compile(r"(?P<metric>.+?)\s+no[-_ ]?drop(?:\s+(?P<tolerance>\S+))?", re.DOTALL)
_BOUND = re.compile(
    rf"(?P<measure>.+?)\s+(?P<statistic>{'|'.join(STATISTICS)})\s*(?P<sign>>=|<=|≥|≤|>|<)(?P<value>.*)", re.DOTALL
)
_NO_AT = re.compile(r"(?P<name>[A-Za-z][A-Za-z_-]*?)[\s_-]*(?P<k>\d+)")
_SIGNS = {"≥": ">=", "≤": "<="}
_HINT = '"recall@5 >= 0.80", "recall@5 lower >= 0.75", "recall@5 no-drop", "recall@5 no-drop 0.01"'

# The mean of 0.7, 0.8 and 0.9 is 0.7999999999999999, which must pass >= 0.8.
SLACK = 1e-9


class Limit(NamedTuple):
    """A rule that compares a mean, or the lower end of its interval, with a number."""

    metric: str
    lower: bool
    sign: str
    value: float

    def __str__(self) -> str:
        return f"{self.metric}{' lower' if self.lower else ''} {self.sign} {digits(self.value)}"

    def holds(self, value: float) -> bool:
        """True if a value is within the limit."""
        above = value - self.value if self.sign.startswith(">") else self.value - value
        return above >= -SLACK if self.sign.endswith("=") else above > SLACK


class Bound(NamedTuple):
    """A rule that compares the median of a measure, or another statistic of it, with a number."""

    metric: str
    statistic: str
    sign: str
    value: float

    def __str__(self) -> str:
        return f"{self.metric} {self.statistic} {self.sign} {self.value:.10g}"


class NoDrop(NamedTuple):
    """A rule against a significant drop below the baseline; a drop larger than the tolerance always fails."""

    metric: str
    tolerance: float | None

    def __str__(self) -> str:
        return f"{self.metric} no-drop" + ("" if self.tolerance is None else f" {digits(self.tolerance)}")


Rule = Limit | Bound | NoDrop


def read_rules(texts: Collection[str], run: Run) -> list[Rule]:
    """Parse rules about the metrics and measures of a run; `recall@1,5 no-drop` is two rules."""
    if not texts:
        raise BadArgument("expected at least one rule", hint=_HINT)
    return list(dict.fromkeys(rule for text in texts for rule in _read(text, run.scores, run.measured)))


def _read(text: str, metrics: Collection[str], measures: Collection[str]) -> list[Rule]:
    if not isinstance(text, str):
        raise BadArgument("a rule is a string", got=text, hint=_HINT)
    if "=>" in text or "=<" in text:
        raise BadArgument("expected >=, <=, > or <", got=text, hint=text.replace("=>", ">=").replace("=<", "<="))
    if (bound := _read_bound(text, measures)) is not None:
        return [bound]
    if found := _NO_DROP.fullmatch(text.strip()):
        tolerance = None if found["tolerance"] is None else read_tolerance(found["tolerance"])
        return [NoDrop(name, tolerance) for name in _names(found["metric"], metrics)]
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        problem = 'expected "METRIC >= NUMBER" (or >, <=, <) or "METRIC no-drop", in quotes'
        raise BadArgument(problem, got=text, hint=_HINT)
    sign = _SIGNS.get(found["sign"], found["sign"])
    names = _names(found["metric"], metrics)
    return [Limit(name, bool(found["lower"]), sign, _number(found["value"], text)) for name in names]


def _read_bound(text: str, measures: Collection[str]) -> Bound | None:
    """A rule about a measure; None if the text names none."""
    found = _BOUND.fullmatch(text.strip())
    measure = "" if found is None else _spelled(found["measure"])
    if found is None or measure not in measures:
        if measure.partition("(")[0] in MEASURES:
            known = f"one of: {', '.join(measures)}" if measures else f"karat eval … {measure}"
            raise unknown("measure in this run", measure, measures, known)
        named = re.split(r"\s|[<>≤≥]|=(?![^()]*\))", text.strip(), maxsplit=1)[0]
        if _spelled(named).partition("(")[0] in MEASURES:
            problem = f"{named} is a measure: a rule limits its {', '.join(STATISTICS[:-1])}, or the share of never"
            raise BadArgument(problem, got=text, hint=f'"{named} median <= 5", "{named} never <= 0.1"')
        return None
    value, sign = _float(found["value"]), _SIGNS.get(found["sign"], found["sign"])
    if value is None or value < 0 or (found["statistic"] == "never" and value > 1):
        expected = "a share from 0 to 1" if found["statistic"] == "never" else "a number from 0 on"
        raise BadArgument(f"the {found['statistic']} of a measure must be compared with {expected}", got=text)
    return Bound(measure, found["statistic"], sign, value)


def _spelled(text: str) -> str:
    """The name of a measure as runs have it; other texts as they are."""
    try:
        return str(parse(text))
    except KaratError:
        return text


def read_tolerance(given: str | float) -> float:
    """The largest drop allowed, a number from 0 to 1."""
    tolerance = _float(given)
    if tolerance is None or not 0 <= tolerance <= 1:
        raise BadArgument("a tolerance must be a number from 0 to 1", got=given, hint="0.02")
    return tolerance


def _names(text: str, metrics: Collection[str]) -> tuple[str, ...]:
    """The columns of the run for a metric, one per cutoff."""
    if text in metrics:  # also a custom metric that is not defined here
        return (text,)
    try:
        names = parse(text).names
    except KaratError:
        close = _NO_AT.fullmatch(text)
        guess = f"{close['name']}@{close['k']}" if close else ""
        if guess in metrics:
            raise unknown("metric in this run", text, [guess], guess) from None
        names = (text,)
    for name in names:
        if name not in metrics:
            raise unknown("metric in this run", name, metrics, "one of: " + ", ".join(metrics))
    return names


def _number(text: str, rule: str) -> float:
    value = _float(text)
    if value is None:
        percent = _float(text.strip().removesuffix("%"))
        hint = _HINT if percent is None else rule.replace(text.strip(), digits(percent / 100))
        raise BadArgument("a metric must be compared with a number", got=rule, hint=hint)
    if not 0 <= value <= 1:
        hint = rule.replace(text.strip(), digits(value / 100)) if 0 <= value <= 100 else _HINT
        raise BadArgument("a metric is between 0 and 1", got=rule, hint=hint)
    return value


def _float(given: object) -> float | None:
    """The value as a finite number; None if it is not one."""
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return value if abs(value) < float("inf") else None


def digits(value: float) -> str:
    """A number with two decimal places, or more if it has more."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.10g}"
