"""A gate on the terminal, as a comment on a pull request, and as test results."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple
from xml.etree import ElementTree as ET

from karat._internal.display import number, plural, sanitize, text_table
from karat.analysis.changes import QueryChange
from karat.analysis.gate import Gate
from karat.analysis.rules import Check
from karat.errors import KaratError
from karat.report.forms import Markdown, code, escape, table, unfold

_SHOWN = 10
_MARKS = {"PASS": "✅ pass", "FAIL": "❌ fail", "SMALL": "⚠️ too small"}


class _Row(NamedTuple):
    state: str
    rule: str
    what: str
    """The slice or the query, which come from the data."""
    text: str


def terminal(gate: Gate) -> str:
    """The checks, and how many of them failed."""
    return f"{checks(gate)}\n  {summary(gate)}"


def checks(gate: Gate) -> str:
    """Each check on a line: what came of it, and what was measured; then what could not be seen."""
    rows = [[row.state, ", ".join(filter(None, (row.rule, sanitize(row.what, 40)))), row.text] for row in _rows(gate)]
    return "\n".join([text_table(rows), *(f"  {remark}" for remark in gate.remarks())])


def worst_queries(gate: Gate, count: int) -> str:
    """The worst queries for the terminal, each with where its gold items went; nothing if there are none."""
    rows = []
    for one in gate.worst(count):
        query = f'"{sanitize(one.query, 40)}"' if one.query else ""
        rows.append(
            [sanitize(one.query_id, 30), query, f"{one.metric} {_scores(one)}", sanitize("; ".join(_moves(one)), 80)]
        )
    return "\n".join(["Worst queries", text_table(rows)]) if rows else ""


def summary(gate: Gate) -> str:
    """How many checks failed, in a few words."""
    failed, small = sum(not check.passed for check in gate.checks), sum(check.unsure for check in gate.checks)
    count = plural(len(gate.checks), "check", "checks")
    said = f"{failed} of {count} failed" if failed else f"{count} passed"
    return f"{said}, {small} too small to tell" if small else said


def markdown(gate: Gate) -> str:
    """A line, a table, what could not be seen, and the worst queries to unfold."""
    verdict = "passed" if gate.passed else "failed"
    mark = _MARKS["PASS" if gate.passed else "FAIL"].partition(" ")[0]
    rows = [
        [_MARKS[row.state], code(row.rule), code(row.what, 80) if row.what else "", row.text] for row in _rows(gate)
    ]
    parts = [
        f"### {mark} karat gate {verdict}: {summary(gate)}",
        table(("", "rule", "slice or query", "measured"), rows),
        "\n".join(f"- {escape(remark)}" for remark in gate.remarks()),
        _unfolded(gate),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def undecided_markdown(error: KaratError) -> str:
    """The same place in a comment, where nothing could be decided."""
    told = " ".join(escape(line) for line in str(error).splitlines())
    return f"### ⚠️ karat gate could not decide\n\n{told}\n"


def junit(gate: Gate) -> str:
    """One case for each check; one that is too small to tell counts as skipped."""
    cases = []
    for check in gate.checks:
        about = [check.rule, check.slice if check.query is None else check.query]
        case = ET.Element("testcase", classname="karat.gate", name=sanitize(", ".join(filter(None, about))))
        if not check.passed:
            ET.SubElement(case, "failure", message=sanitize(check.text))
        elif check.unsure:
            ET.SubElement(case, "skipped", message=sanitize(check.text))
        else:
            ET.SubElement(case, "system-out").text = sanitize(check.text)
        cases.append(case)
    return _suite(cases)


def undecided_junit(error: KaratError) -> str:
    """One case, in error."""
    case = ET.Element("testcase", classname="karat.gate", name="karat gate")
    ET.SubElement(case, "error", message=sanitize(str(error)))
    return _suite([case])


def _suite(cases: list[ET.Element]) -> str:
    counts = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    suite = ET.Element("testsuite", name="karat gate")
    suite.extend(cases)
    for name, tag in counts.items():
        suite.set(name, str(len(list(suite.iter(tag)))))
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _rows(gate: Gate) -> list[_Row]:
    """What is worth a line each, then how many others there are of the kind."""
    rows: list[_Row] = []
    for (rule, single), group in groupby(gate.checks, key=lambda c: (c.rule, c.slice is None and c.query is None)):
        alike = list(group)
        if single:
            rows += [_row(check) for check in alike]
            continue
        loud = sorted((check for check in alike if not check.passed or _fell(check)), key=_loudness)[:_SHOWN]
        rows += [_row(check) for check in loud]
        for state in _MARKS:
            count = sum(_state(check) == state for check in alike) - sum(_state(check) == state for check in loud)
            if count:
                few = ": too few queries to tell" if state == "SMALL" else ""
                rows.append(_Row(state, rule, "", _others(count, alike[0], gate) + few))
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
    """Whether a slice that is too small to tell has at least fallen."""
    return check.unsure and check.figures.get("difference", 0.0) < 0


def _loudness(check: Check) -> tuple[bool, float]:
    return check.passed, check.figures.get("difference", 0.0)


def _unfolded(gate: Gate) -> Markdown | None:
    """The worst queries, with where their gold items stood and stand."""
    rows = [
        [code(one.query_id, 60), code(one.query, 100) if one.query else "", code(one.metric), _scores(one), _golds(one)]
        for one in gate.worst(_SHOWN)
    ]
    if not rows:
        return None
    title = "The queries that lost most" if gate.baseline else "The queries with the lowest scores"
    return unfold(title, table(("query", "", "metric", "score", "ranks of its gold"), rows))


def _scores(one: QueryChange) -> str:
    return number(one.after) if one.before != one.before else f"{number(one.before)} → {number(one.after)}"


def _golds(one: QueryChange) -> Markdown:
    return Markdown("<br>".join(code(move, 100) for move in _moves(one)))


def _moves(one: QueryChange) -> list[str]:
    """Where the first gold items went."""
    moves = []
    for label, before, after in one.gold[:_SHOWN]:
        ranks = [rank or "not retrieved" for rank in ((after,) if one.before != one.before else (before, after))]
        moves.append(f"{sanitize(label, 60)}: {' → '.join(map(str, ranks))}")
    return moves if len(one.gold) <= _SHOWN else [*moves, f"{len(one.gold) - _SHOWN} more"]
