"""Summaries of a run: a quantile, the geometric mean or the worst of each family, for each metric and measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from karat._internal.arrays import Ints
from karat.errors import BadArgument, KaratError, unknown
from karat.metrics import parse
from karat.run.slices import group_rows
from karat.stats import Statistic, Summary, read_statistic, summarize
from karat.stats.quantities import summarize_quantity
from karat.stats.summary import worst_of_each

if TYPE_CHECKING:
    from karat.run.scored import Scored


T = TypeVar("T")


class ByMetric(dict[str, T]):
    """Values by metric name; aliases such as "mrr" work too."""

    def __missing__(self, name: str) -> T:
        try:
            canonical = str(parse(name))
        except KaratError:
            canonical = name
        if canonical in self:
            return self[canonical]
        raise unknown("metric in this run", name, self, "one of: " + ", ".join(self))


def summary_of_run(run: Scored, statistic: Statistic, name: str, level: float = 0.95) -> Summary:
    """The summary of one metric or measure of a run."""
    if name in run.numbers and statistic.by is None:
        return summarize_quantity(
            run.numbers[name], statistic, level, None if run.repeats is None else run.repeats.query
        )
    score, values = name in run.scores, run.per_query(run.all_columns[name])
    if statistic.by is not None:
        family = families(run.meta, statistic.by)
        family = family if run.repeats is None else family[run.repeats.first(np.ones(len(run), bool))]
        values = worst_of_each(values, family, lowest=run.sign(name) > 0)
    found = summarize(values, statistic, level, score=score)
    # Some conventions round means.
    return found._replace(value=run.mean[name]) if score and statistic.name == "mean" else found


def families(meta: Mapping[str, Sequence[Any]], field: str) -> Ints:
    """The number of the family of each query, from 0; a query without one is a family of its own."""
    groups = group_rows(meta, field)
    number = np.zeros(sum(map(len, groups.rows.values())), np.int64)
    for family, rows in enumerate(groups.rows.values()):
        number[rows] = family
    alone = np.all([[value is None for value in meta[name]] for name in groups.fields], axis=0)
    number[alone] = len(groups.rows) + np.arange(int(alone.sum()))
    different: Ints = np.unique(number, return_inverse=True)[1]
    return different


def read_statistics(texts: str | Sequence[str]) -> list[Statistic]:
    """Parse summaries, from a list or from one text with commas or spaces between them."""
    given = [texts] if isinstance(texts, str) else list(texts)
    return list(dict.fromkeys(read_statistic(part) for text in given for part in _parts(text)))


def read_one(text: str) -> Statistic:
    """Parse the one summary that a comparison takes."""
    if isinstance(text, str) and len(parts := _parts(text)) > 1:
        raise BadArgument("compare takes one summary", got=text, hint=f'"{parts[0]}"')
    return read_statistic(text)


def _parts(text: str) -> list[str]:
    """The parts of a text between commas and spaces outside parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth <= 0 and (char == "," or char.isspace()):
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part]
