"""A calibration: the judge compared with human labels, and its mean corrected by them."""

from __future__ import annotations

from typing import Any

from karat._internal.display import heading, number, paragraph, plural, sanitize, span, text_table
from karat._internal.writers import html_table, plain
from karat.analysis.calibrate import Calibration
from karat.report.forms import escape, table
from karat.report.remarks import calibration_remarks as remarks
from karat.stats.agreement import Estimate


def terminal(found: Calibration) -> str:
    """The confusion matrix, the agreement, the corrected mean, and the remarks."""
    lines = [heading(_heading(found))]
    if confusion := _confusion(found):
        lines += ["", text_table(confusion, right=(1, 2), gap="   ")]
    if rows := [*_agreement(found), *_means(found)]:
        lines += ["", text_table([_header(found), *rows], right=(1,))]
    return "\n".join([*lines, "", *map(paragraph, remarks(found))])


def html(found: Calibration) -> str:
    """The same as an HTML table, for notebooks."""
    caption = " · ".join([_heading(found), *remarks(found)])
    counts = [[*row, ""] for row in _confusion(found)]
    return html_table(_header(found), [*_agreement(found), *_means(found), *counts], caption)


def markdown(found: Calibration) -> str:
    """The same as Markdown."""
    parts: list[str] = [escape(_heading(found))]
    if confusion := _confusion(found):
        parts.append(table(confusion[0], confusion[1:], right=(1, 2)))
    if rows := [*_agreement(found), *_means(found)]:
        parts.append(table(_header(found), rows, right=(1,)))
    return "\n\n".join([*parts, *map(escape, remarks(found))])


def data(found: Calibration) -> dict[str, Any]:
    """Everything that is shown of a calibration, as plain values."""
    p = found.run.provenance
    values = {
        "run": p.source,
        "judge": p.judge,
        "metric": found.metric,
        "level": found.level,
        "queries": len(found.run),
        "judged": len(found.run) - len(found.run.failures),
        "labels": {"source": found.labels.source, "of": found.labels.kind, "columns": found.labels.columns},
        "agreement": found.agreement,
        "corrected": found.corrected,
        "remarks": remarks(found),
    }
    return dict(plain(values))


def _heading(found: Calibration) -> str:
    p, failed = found.run.provenance, len(found.run.failures)
    judged = f", {len(found.run) - failed:,} judged" if failed else ""
    used = found.agreement.judgements if found.agreement is not None else found.corrected and found.corrected.labelled
    return sanitize(
        f"{found.run.name} · {plural(len(found.run), 'query', 'queries')}{judged} · judge: {p.judge} · "
        f"{found.labels.source}: {plural(used or 0, 'label', 'labels')} used"
    )


def _header(found: Calibration) -> list[str]:
    return ["", "", f"{100 * found.level:g} % interval", ""]


def _confusion(found: Calibration) -> list[list[str]]:
    a = found.agreement
    if a is None:
        return []
    return [
        ["", "people: yes", "people: no"],
        ["judge: yes", f"{a.tp:,}", f"{a.fp:,}"],
        ["judge: no", f"{a.fn:,}", f"{a.tn:,}"],
    ]


def _agreement(found: Calibration) -> list[list[str]]:
    a = found.agreement
    if a is None:
        return []
    all_of = f"{plural(a.judgements, 'judgement', 'judgements')} in {plural(a.queries, 'query', 'queries')}"
    return [
        _line("agreement", a.agreement, f"{a.tp + a.tn:,} of {all_of}"),
        _line("Cohen's kappa", a.kappa, "agreement beyond chance"),
        _line("sensitivity", a.sensitivity, "share of people's yes that the judge finds"),
        _line("specificity", a.specificity, "share of people's no that the judge finds"),
        _line("bias", a.bias, "judge − people, share of yes", signed=True),
    ]


def _means(found: Calibration) -> list[list[str]]:
    c, name = found.corrected, sanitize(found.metric)
    if c is None:
        return []
    all_of, labelled = plural(c.queries, "query", "queries"), plural(c.labelled, "query", "queries")
    weight = "" if c.weight != c.weight else f"; weight of the judge: {c.weight:.2f}"
    return [
        _line(f"{name}, judge", c.judge, f"{all_of}; the interval ignores its errors"),
        _line(f"{name}, people", c.human, labelled),
        _line(f"{name}, bias", c.bias, f"judge − people, {labelled}", signed=True),
        _line(f"{name}, corrected", c.mean, f"{all_of}, {c.labelled:,} of them labelled{weight}"),
    ]


def _line(name: str, estimate: Estimate, about: str, *, signed: bool = False) -> list[str]:
    sign = "+" if signed else ""
    value = number(estimate.value, sign=sign)
    return [name, value, span(estimate.low, estimate.high, sign=sign), about]
