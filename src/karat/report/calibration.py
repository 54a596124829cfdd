"""Calibrations to read: on a terminal, in a notebook, on a page."""

from __future__ import annotations

from karat._internal.display import html_table, number, plural, sanitize, span, text_table
from karat.analysis.calibrate import Calibration
from karat.report.forms import Markdown, escape, table
from karat.stats.agreement import Estimate


def terminal(found: Calibration) -> str:
    """What a terminal shows."""
    lines = [_heading(found)]
    if found.agreement is not None:
        lines += ["", text_table(_confusion(found), right=(1, 2), gap="   ")]
    if rows := [*_agreement(found), *_means(found)]:
        lines += ["", text_table([_header(found), *rows], right=(1,))]
    return "\n".join([*lines, "", *(f"  {remark}" for remark in found.remarks())])


def notebook(found: Calibration) -> str:
    """The same as HTML, everything escaped."""
    caption = " · ".join([_heading(found), *found.remarks()])
    counts = [[name, yes, no, ""] for name, yes, no in (_confusion(found) if found.agreement is not None else [])]
    return html_table(_header(found), [*_agreement(found), *_means(found), *counts], caption)


def markdown(found: Calibration) -> str:
    """The same as Markdown."""
    parts: list[str] = [escape(_heading(found))]
    if found.agreement is not None:
        header, *rows = _confusion(found)
        parts.append(table(header, rows, right=(1, 2)))
    if rows := [*_agreement(found), *_means(found)]:
        parts.append(table(_header(found), rows, right=(1,)))
    return Markdown("\n\n".join([*parts, *(escape(remark) for remark in found.remarks())]))


def _heading(found: Calibration) -> str:
    p, failed = found.run.provenance, len(found.run.failures)
    judged = f", judged {len(found.run) - failed:,}" if failed else ""
    used = found.agreement.judgements if found.agreement is not None else found.corrected and found.corrected.labelled
    return sanitize(
        f"{p.source} · {plural(len(found.run), 'query', 'queries')}{judged} · judge: {p.judge} · "
        f"{found.labels.source}: {plural(used or 0, 'label', 'labels')} used"
    )


def _header(found: Calibration) -> list[str]:
    return ["", "", f"{100 * found.level:g} % interval", ""]


def _confusion(found: Calibration) -> list[list[str]]:
    assert found.agreement is not None
    a = found.agreement
    return [
        ["", "people: yes", "people: no"],
        ["judge: yes", f"{a.tp:,}", f"{a.fp:,}"],
        ["judge: no", f"{a.fn:,}", f"{a.tn:,}"],
    ]


def _agreement(found: Calibration) -> list[list[str]]:
    a = found.agreement
    if a is None:
        return []
    of = f"{a.tp + a.tn:,} of {plural(a.judgements, 'judgement', 'judgements')} in {plural(a.queries, 'query', 'queries')}"
    return [
        _line("agreement", a.agreement, of),
        _line("Cohen's kappa", a.kappa, "agreement beyond chance"),
        _line("sensitivity", a.sensitivity, "of people's yes, the judge says too"),
        _line("specificity", a.specificity, "of people's no, the judge says too"),
        _line("bias", a.bias, "judge − people, share of yes", signed=True),
    ]


def _means(found: Calibration) -> list[list[str]]:
    c, name = found.corrected, sanitize(found.metric)
    if c is None:
        return []
    all_of, some = plural(c.queries, "query", "queries"), plural(c.labelled, "query", "queries")
    weight = "" if c.weight != c.weight else f"; the judge weighs {c.weight:.2f}"
    return [
        _line(f"{name}, judge", c.judge, f"{all_of}; its errors are not in the interval"),
        _line(f"{name}, people", c.human, some),
        _line(f"{name}, bias", c.bias, f"judge − people, {some}", signed=True),
        _line(f"{name}, corrected", c.mean, f"{all_of}, {c.labelled:,} of them labelled{weight}"),
    ]


def _line(name: str, estimate: Estimate, about: str, *, signed: bool = False) -> list[str]:
    if not signed or estimate.value != estimate.value:
        return [name, number(estimate.value), span(estimate.low, estimate.high), about]
    ends = "" if estimate.low != estimate.low else f"[{estimate.low:+.2f}, {estimate.high:+.2f}]"
    return [name, f"{estimate.value:+.3f}", ends, about]
