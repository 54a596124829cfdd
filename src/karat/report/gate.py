"""A gate: on the terminal, as a comment on a pull request, and as JUnit test results."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

from karat._internal.display import (
    bold,
    cell_width,
    heading,
    html_table,
    number,
    paragraph,
    plural,
    sanitize,
    style,
    text_table,
)
from karat._internal.output import plain
from karat.analysis.changes import QueryChange
from karat.analysis.gate import Gate
from karat.analysis.rules import Check
from karat.errors import KaratError
from karat.report.forms import Markdown, bullets, code, details, escape, table
from karat.report.remarks import gate_remarks as remarks

_SHOWN = 10
_MARKS = {"PASS": "✅ pass", "FAIL": "❌ fail", "SMALL": "⚠️ too small"}
_STYLES = {"PASS": "good", "FAIL": "bad", "SMALL": "unsure"}


class _Row(NamedTuple):
    state: str
    rule: str
    subject: str
    """The slice or the query, which come from the data."""
    text: str


def terminal(gate: Gate) -> str:
    """The heading, the checks, the summary and the exit code."""
    last = paragraph(style(f"{summary(gate)} · exit {gate.exit_code}", "good" if gate.passed else "bad"))
    lines = [heading(_heading(gate)), "", checks(gate), last]
    return "\n".join(lines)


def markdown(gate: Gate) -> str:
    """The summary, a table of the checks, the remarks, and the worst queries to unfold."""
    verdict = "passed" if gate.passed else "failed"
    mark = _MARKS["PASS" if gate.passed else "FAIL"].partition(" ")[0]
    rows = [
        [_MARKS[row.state], code(row.rule), code(row.subject, 80) if row.subject else "", row.text]
        for row in _rows(gate)
    ]
    parts = [
        f"### {mark} karat gate {verdict}: {summary(gate)}",
        table(("", "rule", "slice or query", "measured"), rows),
        bullets(remarks(gate)),
        _worst_details(gate),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def html(gate: Gate) -> str:
    """The checks as an HTML table, for notebooks."""
    caption = " · ".join([_heading(gate), summary(gate), *remarks(gate)])
    return html_table(["", "rule", "slice or query", "measured"], _rows(gate), caption)


def junit(gate: Gate) -> str:
    """One test case for each check; a check that is too small to tell counts as skipped."""
    cases = []
    for check in gate.checks:
        about = [check.rule, check.slice if check.query is None else check.query]
        case = ET.Element("testcase", classname="karat.gate", name=sanitize(", ".join(filter(None, about))))
        state = _state(check)
        if state == "PASS":
            ET.SubElement(case, "system-out").text = sanitize(check.text)
        else:
            ET.SubElement(case, "failure" if state == "FAIL" else "skipped", message=sanitize(check.text))
        cases.append(case)
    return _suite(cases)


def data(gate: Gate) -> dict[str, Any]:
    """Everything that is shown of a gate, as plain values."""
    values = {
        "passed": gate.passed,
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
    rows = [
        [
            style(row.state, _STYLES[row.state]),
            ", ".join(filter(None, (row.rule, sanitize(row.subject, cell_width(40))))),
            row.text,
        ]
        for row in _rows(gate)
    ]
    return "\n".join([text_table(rows), *map(paragraph, remarks(gate))])


def worst_queries(gate: Gate, count: int) -> str:
    """The worst queries with the ranks of their gold, for the terminal; empty if there are none."""
    rows = []
    for one in gate.worst(count):
        query = f'"{sanitize(one.query, cell_width(40))}"' if one.query else ""
        scores, ranks = f"{one.metric} {_scores(one)}", sanitize("; ".join(_moves(one)), 80)
        rows.append([sanitize(one.query_id, cell_width(30)), query, scores, ranks])
    return "\n".join([bold("Worst queries"), text_table(rows)]) if rows else ""


def summary(gate: Gate) -> str:
    """The number of checks that failed, or that are too small to tell."""
    failed, small = sum(not check.passed for check in gate.checks), sum(check.unsure for check in gate.checks)
    count = plural(len(gate.checks), "check", "checks")
    text = f"{failed} of {count} failed" if failed else f"{count} passed"
    return f"{text}, {small} too small to tell" if small else text


def _heading(gate: Gate) -> str:
    p, base = gate.run.provenance, gate.baseline
    compared = "" if base is None else f" · baseline: {base.name}"
    size = plural(len(gate.run), "query", "queries")
    return sanitize(f"{p.source} · {size} · judge: {p.judge} · convention: {gate.run.convention.name}{compared}")


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
    """The checks worth a line each, then the number of the others by state."""
    rows: list[_Row] = []
    for (rule, single), group in groupby(gate.checks, key=lambda c: (c.rule, c.slice is None and c.query is None)):
        same = list(group)
        if single:
            rows += [_row(check) for check in same]
            continue
        shown = sorted((check for check in same if not check.passed or _fell(check)), key=_severity)[:_SHOWN]
        rows += [_row(check) for check in shown]
        for state in _MARKS:
            count = sum(_state(check) == state for check in same) - sum(_state(check) == state for check in shown)
            if count:
                few = ": too few queries to tell" if state == "SMALL" else ""
                rows.append(_Row(state, rule, "", _others(count, same[0], gate) + few))
    return rows


def _row(check: Check) -> _Row:
    return _Row(_state(check), check.rule, check.query or check.slice or "", sanitize(check.text))


def _others(count: int, like: Check, gate: Gate) -> str:
    if like.query is not None:
        return plural(count, "query", "queries")
    return f"{plural(count, 'slice', 'slices')} by {sanitize(gate.by or '', 40)}"


def _state(check: Check) -> str:
    return "FAIL" if not check.passed else "SMALL" if check.unsure else "PASS"


def _fell(check: Check) -> bool:
    """True if a slice is too small to tell, but its mean fell."""
    return check.unsure and check.figures.get("difference", 0.0) < 0


def _severity(check: Check) -> tuple[bool, float]:
    return check.passed, check.figures.get("difference", 0.0)


def _worst_details(gate: Gate) -> Markdown | None:
    """The worst queries with the ranks of their gold, to unfold."""
    rows = []
    for one in gate.worst(_SHOWN):
        query = code(one.query, 100) if one.query else ""
        ranks = Markdown("<br>".join(code(move, 100) for move in _moves(one)))
        rows.append([code(one.query_id, 60), query, code(one.metric), _scores(one), ranks])
    if not rows:
        return None
    title = "The queries that lost most" if gate.baseline else "The queries with the lowest scores"
    return details(title, table(("query", "", "metric", "score", "ranks of its gold"), rows))


def _scores(one: QueryChange) -> str:
    return number(one.after) if one.before != one.before else f"{number(one.before)} → {number(one.after)}"


def _moves(one: QueryChange) -> list[str]:
    """The ranks of the first gold items, in the baseline and now."""
    moves = []
    for label, before, after in one.gold[:_SHOWN]:
        ranks = [rank or "not retrieved" for rank in ((after,) if one.before != one.before else (before, after))]
        moves.append(f"{sanitize(label, 60)}: {' → '.join(map(str, ranks))}")
    return moves if len(one.gold) <= _SHOWN else [*moves, f"{len(one.gold) - _SHOWN} more"]
