"""Numbers of a run beside its scores: fields of the samples such as latency, cost or tokens, one number per row."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from karat._internal.arrays import Floats
from karat.errors import BadArgument, InputError, shorten, unknown
from karat.samples.keys import short_id

if TYPE_CHECKING:
    from karat.run.scored import Scored

LATENCY = "latency"
"""The field with the time that a retriever took for a query, in milliseconds: it is taken without being named."""
MILLISECONDS = "ms"
_NAMED = re.compile(r"(?P<name>.*?)\s*(?:\(\s*(?P<better>\w*)\s*\))?", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_HINT = '"cost,tokens", or "clicks(more)" if more is better'


class NumberField(NamedTuple):
    """A field of the samples with a number; its text form is read by `read_fields`."""

    name: str
    more_is_better: bool = False

    @property
    def unit(self) -> str:
        """The unit of the numbers: ms for latency, else empty."""
        return MILLISECONDS if self.name == LATENCY else ""

    @property
    def sign(self) -> float:
        """-1 if less is better, else 1: times a difference, it is a gain."""
        return 1.0 if self.more_is_better else -1.0

    def __str__(self) -> str:
        return f"{self.name}(more)" if self.more_is_better else self.name


def read_fields(given: str | Sequence[str]) -> tuple[NumberField, ...]:
    """Parse the names of fields, from a list or from one text with commas between them."""
    texts = given.split(",") if isinstance(given, str) else list(given)
    fields: dict[str, NumberField] = {}
    for text in texts:
        if not isinstance(text, str):
            raise BadArgument("the name of a field is a string", got=text, hint=_HINT)
        found = _NAMED.fullmatch(text.strip())
        better = (found and found["better"]) or ""
        if not found or not found["name"] or better.lower() not in {"", "more", "less"}:
            raise BadArgument('expected the name of a field, and "(more)" if more is better', got=text, hint=_HINT)
        fields[found["name"]] = NumberField(found["name"], better.lower() == "more")
    return tuple(fields.values())


def fields_of(run: Scored) -> tuple[NumberField, ...]:
    """The fields whose numbers are shown beside the scores: latency if it is a number, and those that were named."""
    named = read_fields(run.provenance.also)
    taken = {field.name for field in named} | run.columns.keys()
    column = run.meta.get(LATENCY)
    if column is None or LATENCY in taken or not _is_latency(column):
        return named
    return (NumberField(LATENCY), *named)


def _is_latency(column: Sequence[Any]) -> bool:
    """True if all values are missing or numbers from 0, and not all are missing."""
    numbers = [_number(value) for value in column]
    return all(map(_from_zero, numbers)) and any(one == one for one in numbers)


def _from_zero(number: float | None) -> bool:
    return number is not None and not number < 0


def no_latency(run: Scored) -> tuple[int, Any]:
    """The number of latencies that are not numbers from 0, so that none is shown, and the first of them."""
    column = () if LATENCY in run.all_columns else run.meta.get(LATENCY, ())
    bad = [value for value in column if not _from_zero(_number(value))]
    return len(bad), bad[0] if bad else None


def numbers_of(run: Scored) -> dict[str, Floats]:
    """One number per row for each of these fields; NaN if it is missing, or if the query could not be judged."""
    failed = list(run.all_hits.failed)
    found = {field.name: _column(field.name, run.ids, run.meta[field.name]) for field in run.number_fields}
    for numbers in found.values():
        numbers[failed] = nan
    return found


def check_fields(
    fields: Sequence[NumberField], ids: Sequence[str], meta: Mapping[str, Sequence[Any]], columns: Collection[str]
) -> None:
    """Refuse a field that the samples lack, that has a value which is not a number, or that is named like a metric."""
    for field in fields:
        if field.name in columns:
            raise BadArgument(f"{field.name} is a metric of this run, not a field of its samples")
        if field.name not in meta:
            known = [name for name, column in meta.items() if any(_number(value) is not None for value in column)]
            hint = f"one of: {', '.join(known)}" if known else '"cost": 0.002 in the samples'
            raise unknown("field", field.name, meta, hint)
        _column(field.name, ids, meta[field.name])


def _column(name: str, ids: Sequence[str], values: Sequence[Any]) -> Floats:
    numbers = np.full(len(values), nan)
    for row, value in enumerate(values):
        number = _number(value)
        if number is None:
            problem = f'query "{short_id(ids[row])}": field "{name}" is {shorten(value)}; expected a finite number'
            raise InputError(problem, hint=f'"{name}": 12.5, or null if it is not known')
        if name == LATENCY and number < 0:
            problem = f'query "{short_id(ids[row])}": latency is {number:g}; expected milliseconds, from 0'
            raise InputError(problem, hint='"latency": 12.5')
        numbers[row] = number
    return numbers


def _number(value: Any) -> float | None:
    """The value as a number, NaN if it is missing; None if it is not a finite number. CSV files have texts."""
    if value is None:
        return nan
    if isinstance(value, str):
        text = value.strip()
        value = nan if text.lower() in {"", "nan", "null", "none"} else float(text) if _NUMBER.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if isfinite(value) or value != value else None
