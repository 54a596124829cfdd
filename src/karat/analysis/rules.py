"""Gate rules, such as `recall@5 >= 0.80`, `recall@5 p10 lower >= 0.2`, `ndcg@10 no-drop 0.01`: parse and check them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from karat.errors import BadArgument, KaratError, nearest, unknown
from karat.metrics import MEASURES, parse
from karat.metrics.names import sign_of
from karat.run import Run
from karat.run.summaries import families
from karat.stats import read_statistic

NEVER = "never"
"""The share of the queries that never reach a measure, as a rule limits it."""
_LIMIT = re.compile(
    r"(?P<metric>.+?)(?:\s+(?P<statistic>p\d+|median|gm|mean|worst\s*(?:\((?:\x22[^\x22]*\x22|[^()])*\))?|never))?"
    r"(?:\s+(?P<end>lower|upper))?\s*(?P<sign>>=|<=|≥|≤|>|<)(?P<value>.*)",
    re.DOTALL | re.IGNORECASE,
)
_NO_DROP = re.compile(r"(?P<metric>.+?)\s+no[-_ ]?(?P<change>drop|rise)(?:\s+(?P<tolerance>\S+))?", re.DOTALL)
_SUMMARY = re.compile(
    r"(?P<metric>.+?)\s+(?P<statistic>p\d+|median|gm|mean|worst\s*(?:\((?:\x22[^\x22]*\x22|[^()])*\))?)"
    r"(?:\s+(?P<more>.+))?",
    re.IGNORECASE,
)
_NO_AT = re.compile(r"(?P<name>[A-Za-z][A-Za-z_-]*?)[\s_-]*(?P<k>\d+)")
_AMOUNT = re.compile(r"(?P<number>[-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(?P<unit>[^\W\d]*)")
_UNITS = {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4}
"""The units of a latency, in milliseconds."""
_LONG_UNITS = {
    "msec": "ms", "millisecond": "ms", "milliseconds": "ms", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "mins": "min", "minute": "min", "minutes": "min",
}  # fmt: skip
_THOUSANDS = {"k": 1e3, "m": 1e6}
_SIGNS = {"≥": ">=", "≤": "<="}
_HINT = '"recall@5 >= 0.80", "recall@5 lower >= 0.75", "recall@5 no-drop", "recall@5 no-drop 0.01"'

# The mean of 0.7, 0.8 and 0.9 is 0.7999999999999999, which must pass >= 0.8.
SLACK = 1e-9


class Limit(NamedTuple):
    """A rule that compares a mean or another summary, or an end of its interval, with a number."""

    metric: str
    statistic: str
    """mean, or another summary such as p10; for a measure also never, a share of the queries."""
    end: str
    """lower or upper, for an end of the interval; else empty."""
    sign: str
    value: float
    measure: bool = False
    """True for a measure, or for a numeric field of the samples."""
    unit: str = ""
    """The unit of a numeric field, such as ms."""

    def __str__(self) -> str:
        named = [self.statistic] if self.measure or self.statistic != "mean" else []
        value = f"{self.value:.10g}{self.unit}" if self.measure else digits(self.value)
        return " ".join([self.metric, *named, *([self.end] if self.end else []), self.sign, value])

    def holds(self, value: float) -> bool:
        """True if a value is within the limit."""
        above = value - self.value if self.sign.startswith(">") else self.value - value
        slack = SLACK * (abs(self.value) if self.measure else 1.0)
        return above >= -slack if self.sign.endswith("=") else above > slack


class NoDrop(NamedTuple):
    """A rule against a significant drop below the baseline; a drop larger than the tolerance always fails.

    Where less is better, the rule is against a rise, and is written `no-rise`.
    """

    metric: str
    tolerance: float | None

    def __str__(self) -> str:
        return f"{self.metric} no-{self.change}" + ("" if self.tolerance is None else f" {digits(self.tolerance)}")

    @property
    def change(self) -> str:
        """The change for the worse: a drop, or a rise where less is better."""
        return worse_change(self.metric)


class NoChange(NamedTuple):
    """A rule against a change for the worse of a numeric field, compared with the baseline, beyond a tolerance."""

    metric: str
    statistic: str
    change: str
    """rise, or drop if more is better."""
    tolerance: float
    share: bool
    """True if the tolerance is a share of the value of the baseline."""
    unit: str = ""

    def __str__(self) -> str:
        allowed = f"{100 * self.tolerance:.10g}%" if self.share else f"{self.tolerance:.10g}{self.unit}"
        return f"{self.metric} {self.statistic} no-{self.change} {allowed}"


Rule = Limit | NoDrop | NoChange


def worse_change(metric: str) -> str:
    """The change of a metric for the worse: a drop, or a rise where less is better."""
    return "drop" if sign_of(metric) > 0 else "rise"


def read_rules(texts: Collection[str], run: Run) -> list[Rule]:
    """Parse rules about the metrics and measures of a run; `recall@1,5 no-drop` is two rules."""
    if not texts:
        raise BadArgument("expected at least one rule", hint=_HINT)
    return list(dict.fromkeys(rule for text in texts for rule in _read(text, run)))


def with_fields(run: Run, texts: Collection[str]) -> Run:
    """The run with the numbers of the fields that rules name, if they are no metrics of the run."""
    given = [text.strip() for text in texts if isinstance(text, str)]
    found = [_NO_DROP.fullmatch(text) or _LIMIT.fullmatch(text) for text in given]
    names = dict.fromkeys(_field_of(one["metric"])[0] for one in found if one is not None)
    also = [name for name in names if name in run.meta and name not in run.all_columns and not _is_metric(name)]
    return run.also(also) if also else run


def _read(text: str, run: Run) -> list[Rule]:
    if not isinstance(text, str):
        raise BadArgument("a rule is a string", got=text, hint=_HINT)
    if "=>" in text or "=<" in text:
        meant = text.replace("=>", ">=").replace("=<", "<=")
        raise BadArgument("expected >=, <=, > or <", got=text, hint=f'"{meant}"')  # a shell takes ">" for a file
    if found := _NO_DROP.fullmatch(text.strip()):
        if _field_of(found["metric"])[0] in run.numbers:
            return [_no_change(*_field_of(found["metric"]), found["change"], found["tolerance"], text, run)]
        _check_drop(found["metric"], found["change"], text, run)
        tolerance = None if found["tolerance"] is None else read_tolerance(found["tolerance"])
        rules = [NoDrop(name, tolerance) for name in _names(found["metric"], run.scores)]
        if found["change"] == "rise" and (better := next((rule for rule in rules if rule.change == "drop"), None)):
            raise BadArgument(f"more is better in {better.metric}: a rise is no loss", got=text, hint=f'"{better}"')
        return list(rules)
    found = _LIMIT.fullmatch(text.strip())
    if found is None:
        _check_measure(text, run)
        problem = 'expected "METRIC >= NUMBER" (or >, <=, <) or "METRIC no-drop", in quotes'
        raise BadArgument(problem, got=text, hint=_HINT)
    sign, end = _SIGNS.get(found["sign"], found["sign"]), (found["end"] or "").lower()
    if found["metric"] not in run.scores:
        _check_end(text, text.strip()[: found.start("sign")].strip(), f"{sign} {found['value'].strip()}")
    if found["metric"] in run.numbers:
        return [_of_number(found["metric"], found["statistic"], end, sign, found["value"], text, run)]
    _check_summary(found["metric"], f"{sign} {found['value'].strip()}", text, run)
    if _is_measure(found["metric"]):
        return _of_measure(found["metric"], found["statistic"], end, sign, found["value"], text, run)
    names = _names(found["metric"], run.scores, [*run.measured, *run.numbers])
    statistic, value = _statistic(found["statistic"] or "mean", text, run), _number(found["value"], text)
    return [Limit(name, statistic, end, sign, value) for name in names]


def _of_measure(named: str, statistic: str | None, end: str, sign: str, limit: str, text: str, run: Run) -> list[Rule]:
    """The rules about a measure, one per cutoff."""
    names = parse(named).names
    for name in names:
        if name not in run.measured:
            known = f"one of: {', '.join(run.measured)}" if run.measured else f"karat eval … {name}"
            raise unknown("measure in this run", name, run.measured, known)
    if statistic is None:
        _check_measure(text, run)
    never = (statistic or "").lower() == NEVER
    if never and parse(named).definition.more_is_better:
        problem = f"{named} is never infinite, so that the share of never is always 0"
        raise BadArgument(problem, got=text, hint=f'"{named} median >= 1"')
    if never and end:
        raise BadArgument("the share of never has no interval", got=text, hint=f'"{named} never <= 0.1"')
    value = _float(limit)
    if value is None or value < 0 or (never and value > 1):
        expected = "a share from 0 to 1" if never else "a number from 0 on"
        raise BadArgument(f"the {statistic} of a measure must be compared with {expected}", got=text)
    chosen = NEVER if never else _statistic(statistic or "mean", text, run)
    return [Limit(name, chosen, end, sign, value, measure=True) for name in names]


def _of_number(named: str, statistic: str | None, end: str, sign: str, limit: str, text: str, run: Run) -> Rule:
    """The rule about a numeric field of the samples."""
    unit = next(field.unit for field in run.number_fields if field.name == named)
    if statistic is None or statistic.lower() == NEVER:
        problem = f"{named} is a number: a rule limits its p50, p95 or mean"
        raise BadArgument(problem, got=text, hint=f'"{named} p95 {sign} {limit.strip()}"')
    value = _amount(limit.strip(), named, unit, f"{named} {statistic} {sign}", text)
    return Limit(named, _of_quantity(statistic, text, run), end, sign, value, measure=True, unit=unit)


def _amount(limit: str, named: str, unit: str, rule: str, text: str) -> float:
    """A limit of a numeric field, in the unit of the field."""
    found = _AMOUNT.fullmatch(limit)
    value, given = (None, "") if found is None else (_float(found["number"]), found["unit"])
    if value is None:
        raise BadArgument(f"{named} must be compared with a number", got=text, hint=f'"{rule} 300{unit}"')
    given = _LONG_UNITS.get(given.lower(), given)
    if given not in _UNITS:
        value *= _THOUSANDS.get(given.lower(), 1.0)
    if given and not unit:
        raise BadArgument(f"{named} has no unit", got=text, hint=f'"{rule} {value:.10g}"')
    if given and given not in _UNITS:
        problem = f"{named} is in {unit}; its units are {', '.join(_UNITS)}"
        same, known = given.lower() in _UNITS, given.lower() in _THOUSANDS
        meant = f"{value:.10g}{given.lower() if same else unit}" if same or known else f"300{unit}"
        raise BadArgument(problem, got=text, hint=f'"{rule} {meant}"')
    return value * _UNITS[given] if given else value


def _field_of(text: str) -> tuple[str, str | None]:
    """The field and the summary that a rule names."""
    found = _SUMMARY.fullmatch(text)
    return (text, None) if found is None or found["more"] else (found["metric"], found["statistic"])


def _no_change(named: str, statistic: str | None, change: str, tolerance: str | None, text: str, run: Run) -> Rule:
    """The rule against a rise of a numeric field, or a drop if more is better."""
    field = next(field for field in run.number_fields if field.name == named)
    worse = "drop" if field.more_is_better else "rise"
    rule = f"{named} {statistic or 'p95'} no-{worse}"
    if change != worse:
        better = "more" if field.more_is_better else "less"
        raise BadArgument(f"{better} is better in {named}: a {change} is no loss", got=text, hint=f'"{rule} 10%"')
    if statistic is None or tolerance is None:
        lacking = "a summary" if statistic is None else "a tolerance"
        raise BadArgument(f"a rule against a {worse} of {named} needs {lacking}", got=text, hint=f'"{rule} 10%"')
    if read_statistic(statistic).name not in {"quantile", "mean"}:
        hint = f'"{named} p95 no-{worse} 10%"'
        raise BadArgument(f"the change of {statistic} is not compared; p1 to p99 and mean are", got=text, hint=hint)
    share = tolerance.endswith("%")
    value = _amount(tolerance.removesuffix("%"), named, "" if share else field.unit, rule, text)
    if value < 0:
        raise BadArgument("a tolerance must be a number from 0", got=text, hint=f'"{rule} 10%"')
    return NoChange(
        named, _of_quantity(statistic, text, run), worse, value / 100 if share else value, share, field.unit
    )


def _statistic(text: str, rule: str, run: Run) -> str:
    """The canonical spelling of a summary; its field must be one of the run."""
    if text.lower() == NEVER:
        hint = rule.replace(text, "p10")
        raise BadArgument("never is for measures: a score is 0 if nothing is found", got=rule, hint=f'"{hint}"')
    statistic = read_statistic(text)
    if statistic.by is not None:
        families(run.meta, statistic.by)
    return str(statistic)


def _of_quantity(text: str, rule: str, run: Run) -> str:
    """The spelling of a summary of a numeric field, whose tables have p50 and not median."""
    return text.lower() if text.lower() == "p50" else _statistic(text, rule, run)


def _check_drop(metric: str, change: str, text: str, run: Run) -> None:
    """Refuse a no-drop rule about a summary or a measure."""
    if found := _SUMMARY.fullmatch(metric):
        shown = f"karat compare --summary {found['statistic']}"
        problem = f"no-{change} compares means; {shown} compares this summary"
        raise BadArgument(problem, got=text, hint=f'"{found["metric"]} {found["statistic"]} >= 0.3"')
    _check_measure(text, run)


def _check_end(text: str, named: str, limit: str) -> None:
    """Refuse a word after the summary that is not an end of its interval."""
    found, ends = _SUMMARY.fullmatch(named), ("lower", "upper")
    if found and found["more"] and found["more"].lower() not in ends:
        problem = f"after {found['statistic']} only lower or upper may follow"
        end = nearest(found["more"], ends) or ends[0]
        raise BadArgument(problem, got=text, hint=f'"{found["metric"]} {found["statistic"]} {end} {limit}"')


def _check_summary(named: str, limit: str, text: str, run: Run) -> None:
    """Refuse a summary of a numeric field that does not exist."""
    field, _, last = named.rpartition(" ")
    if field in run.numbers:
        problem = f'no summary "{last}" of {field}; a rule limits its mean, its median, or one of p1 to p99'
        raise BadArgument(problem, got=text, hint=f'"{field} p99 {limit}"')


def _check_measure(text: str, run: Run) -> None:
    """Refuse a rule about a measure that does not say which of its figures it limits."""
    named = re.split(r"\s|[<>≤≥]|=(?![^()]*\))", text.strip(), maxsplit=1)[0]
    if _is_measure(named):
        problem = f"{named} is a measure: a rule limits its median, p90, mean, or the share of never"
        if parse(named).definition.more_is_better:
            raise BadArgument(problem, got=text, hint=f'"{named} median >= 0.5", "{named} p10 >= 0.1"')
        raise BadArgument(problem, got=text, hint=f'"{named} median <= 5", "{named} never <= 0.1"')


def _is_measure(text: str) -> bool:
    return _spelled(text).partition("(")[0].partition("@")[0] in MEASURES


def _is_metric(text: str) -> bool:
    try:
        return bool(parse(text))
    except KaratError:
        return False


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


def _names(text: str, metrics: Collection[str], measures: Collection[str] = ()) -> tuple[str, ...]:
    """The columns of the run for a metric, one per cutoff; the error for an unknown one lists the measures, too."""
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
            known = [*metrics, *measures]
            raise unknown("metric in this run", name, known, "one of: " + ", ".join(known))
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
