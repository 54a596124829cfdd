"""A gate: on the terminal, as a comment on a pull request, and as JUnit test results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby, product
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from karat._internal.display import (
    bold,
    cell_width,
    cut_label,
    cut_name,
    heading,
    number,
    paragraph,
    plural,
    sanitize,
    style,
    text_table,
)
from karat._internal.writers import html_table, plain
from karat.analysis.changes import QueryChange
from karat.analysis.checks import Check, Verdict, too_few
from karat.analysis.gate import Gate
from karat.errors import KaratError
from karat.metrics.names import sign_of
from karat.report.forms import Markdown, bullets, code, details, escape, table
from karat.report.remarks import gate_remarks as remarks

_SHOWN = 10
_STATES: dict[Verdict, str] = {"passed": "PASS", "failed": "FAIL", "undecided": "UNDECIDED"}
_MARKS: dict[Verdict, str] = {"passed": "✅ pass", "failed": "❌ fail", "undecided": "⚠️ undecided"}
_STYLES: dict[Verdict, str] = {"passed": "good", "failed": "bad", "undecided": "unsure"}


class _Row(NamedTuple):
    verdict: Verdict
    rule: str
    subject: str
    """The slice or the query, which come from the data."""
    text: str


def terminal(gate: Gate) -> str:
    """The heading, the checks, the summary and the exit code."""
    last = paragraph(style(f"{summary(gate)} · exit {gate.exit_code}", _STYLES[gate.verdict]))
    return "\n".join([heading(f"karat gate · {_heading(gate)}"), "", checks(gate), last])


def markdown(gate: Gate) -> str:
    """The summary, a table of the checks, the remarks, and the worst queries to unfold."""
    mark = _MARKS[gate.verdict].partition(" ")[0]
    rows = [
        [_MARKS[row.verdict], code(row.rule), code(row.subject, 80) if row.subject else "", row.text]
        for row in _rows(gate)
    ]
    parts = [
        f"### {mark} karat gate {gate.verdict}: {summary(gate)}",
        escape(_heading(gate)),
        table(("", "rule", "slice or query", "measured"), rows),
        bullets(remarks(gate)),
        _worst_details(gate),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def html(gate: Gate) -> str:
    """The checks as an HTML table, for notebooks."""
    caption = " · ".join([_heading(gate), summary(gate), *remarks(gate)])
    rows = [[_STATES[row.verdict], *row[1:]] for row in _rows(gate)]
    return html_table(["", "rule", "slice or query", "measured"], rows, caption)


def junit(gate: Gate) -> str:
    """One test case for each check; an undecided check counts as skipped."""
    cases = []
    for check in gate.checks:
        about = ", ".join(filter(None, (check.rule, subject(check))))
        case = ET.Element("testcase", classname="karat.gate", name=sanitize(about))
        if check.passed:
            ET.SubElement(case, "system-out").text = sanitize(check.text)
        else:
            ET.SubElement(case, "failure" if check.failed else "skipped", message=sanitize(check.text))
        cases.append(case)
    return _suite(cases)


def data(gate: Gate) -> dict[str, Any]:
    """Everything that is shown of a gate, as plain values."""
    values = {
        "passed": gate.passed,
        "verdict": gate.verdict,
        "counts": gate.counts,
        "run": gate.name,
        "judge": gate.run.provenance.judge,
        "queries": len(gate.run),
        "when": gate.when.isoformat(timespec="seconds"),
        "checks": [check._asdict() | {"figures": _defined(check.figures)} for check in gate.checks],
        "by": gate.by,
        "baseline": None if gate.baseline is None else gate.baseline.name,
        "alpha": gate.limits.alpha,
        "worst": [change._asdict() | _defined({"before": change.before}) for change in gate.worst()],
        "remarks": remarks(gate),
    }
    return dict(plain(values))


def _defined(values: Mapping[str, float]) -> dict[str, float | None]:
    """The values with None for NaN."""
    return {name: None if value != value else value for name, value in values.items()}


def undecided_markdown(error: KaratError) -> str:
    """The comment if the gate could not be decided."""
    return f"### ⚠️ karat gate could not decide\n\n{' '.join(map(escape, str(error).splitlines()))}\n"


def undecided_junit(error: KaratError) -> str:
    """The test results if the gate could not be decided: one case, in error."""
    case = ET.Element("testcase", classname="karat.gate", name="karat gate")
    ET.SubElement(case, "error", message=sanitize(str(error)))
    return _suite([case])


def checks(gate: Gate) -> str:
    """One line for each check, then the remarks."""
    rows = []
    for verdict, rule, subject, text in _rows(gate):
        about = ", ".join(filter(None, (rule, cut_label(subject, cell_width(40, 3)))))
        rows.append([style(_STATES[verdict], _STYLES[verdict]), about, text])
    return "\n".join([text_table(rows), *map(paragraph, remarks(gate))])


def worst_queries(gate: Gate, count: int) -> str:
    """The worst queries with the ranks of their gold, for the terminal; empty if there are none."""
    rows = []
    for one in gate.worst(count):
        query = f'"{sanitize(one.query, cell_width(40))}"' if one.query else ""
        scores, ranks = f"{one.metric} {_scores(one)}", sanitize("; ".join(_moves(one)), 80)
        rows.append([cut_name(one.query_id, cell_width(30)), query, scores, ranks])
    return "\n".join([bold("Worst queries"), text_table(rows)]) if rows else ""


def summary(gate: Gate) -> str:
    """The number of checks with each verdict, and how many of them are rules, slices and must-pass queries."""
    found = gate.counts
    counts = f"{found['passed']:,} passed, {found['undecided']:,} undecided, {found['failed']:,} failed"
    kinds = {
        plural(count, one, more): count
        for one, more, count in (
            ("rule", "rules", sum(check.by is None and check.query is None for check in gate.checks)),
            ("slice", "slices", sum(check.by is not None for check in gate.checks)),
            ("must-pass query", "must-pass queries", sum(check.query is not None for check in gate.checks)),
        )
    }
    each = ", ".join(text for text, count in kinds.items() if count)
    total = plural(len(gate.checks), "check", "checks")
    text = f"{counts} of {total}" + (f" ({each})" if sum(map(bool, kinds.values())) > 1 else "")
    return f"{text}; undecided checks fail" if gate.fail_undecided and found["undecided"] else text


def _heading(gate: Gate) -> str:
    """The run, the baseline, the judge, the number of queries, and the time."""
    baseline = "none" if gate.baseline is None else gate.baseline.source
    size = plural(len(gate.run), "query", "queries")
    return sanitize(
        f"run: {gate.name} · baseline: {baseline} · judge: {gate.run.provenance.judge} · {size} · "
        f"convention: {gate.run.convention.name} · {gate.when:%Y-%m-%d %H:%M} UTC"
    )


def _suite(cases: list[ET.Element]) -> str:
    counts = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", name="karat gate")
    suite.extend(cases)
    for name, tag in counts.items():
        suite.set(name, str(len(list(suite.iter(tag)))))
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _rows(gate: Gate) -> list[_Row]:
    """The checks worth a line each, then the number of the others by verdict."""
    rows: list[_Row] = []
    for (rule, by, many), group in groupby(gate.checks, key=lambda c: (c.rule, c.by, bool(c.by or c.query))):
        same = list(group)
        if not many:
            rows += [_row(check) for check in same]
            continue
        shown = sorted((check for check in same if check.failed or _fell(check)), key=_severity)[:_SHOWN]
        rows += [_row(check) for check in shown]
        rest = [check for check in same if check not in shown]
        for verdict, measured in product(_STATES, (True, False)):
            if others := [c for c in rest if c.verdict == verdict and bool(c.figures or c.query) == measured]:
                rows.append(_Row(verdict, rule, "", _others(others, by, some=bool(shown))))
    return rows


def _row(check: Check) -> _Row:
    return _Row(check.verdict, check.rule, subject(check), sanitize(check.text))


def subject(check: Check) -> str:
    """The slice or the query of a check."""
    return check.query or ("" if check.by is None else f"{check.by}: {check.slice}")


def _others(checks: Sequence[Check], by: str | None, *, some: bool) -> str:
    """The number of checks that have no line of their own, and why they are undecided."""
    other = "other " if some else ""
    noun = ("query", "queries") if by is None else ("slice", "slices")
    text = plural(len(checks), *(other + form for form in noun)) + ("" if by is None else f" by {cut_name(by, 40)}")
    if checks[0].verdict != "undecided":
        return text
    return f"{text}: {too_few(checks[0].metric or '') if checks[0].figures else checks[0].text}"


def _fell(check: Check) -> bool:
    """True if a slice is undecided, but its mean fell."""
    return check.verdict == "undecided" and _gain(check) < 0


def _severity(check: Check) -> tuple[bool, float]:
    return not check.failed, _gain(check)


def _gain(check: Check) -> float:
    """The change of the mean, negative if it became worse."""
    return sign_of(check.metric or "") * check.figures.get("difference", 0.0)


def _worst_details(gate: Gate) -> Markdown | None:
    """The worst queries with the ranks of their gold, to unfold."""
    rows = []
    for one in gate.worst(_SHOWN):
        query = code(one.query, 100) if one.query else ""
        ranks = Markdown("<br>".join(code(move, 100) for move in _moves(one)))
        rows.append([code(one.query_id, 60), query, code(one.metric), _scores(one), ranks])
    if not rows:
        return None
    title = "The queries that lost most" if gate.baseline else "The queries with the worst scores"
    return details(title, table(("query", "", "metric", "score", "ranks of its gold"), rows))


def _scores(one: QueryChange) -> str:
    return number(one.after) if one.before != one.before else f"{number(one.before)} → {number(one.after)}"


def _moves(one: QueryChange) -> list[str]:
    """The ranks of the first gold items, in the baseline and now."""
    moves = []
    for label, before, after in one.gold[:_SHOWN]:
        ranks = [rank or "not retrieved" for rank in ((after,) if one.before != one.before else (before, after))]
        moves.append(f"{cut_label(label, 60)}: {' → '.join(map(str, ranks))}")
    return moves if len(one.gold) <= _SHOWN else [*moves, f"{len(one.gold) - _SHOWN} more"]
