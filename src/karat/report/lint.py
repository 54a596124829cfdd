"""The problems of a test set, the most serious first."""

from __future__ import annotations

from typing import Any

from karat._internal.display import heading, paragraph, plural, sanitize, style, valid_utf8
from karat._internal.writers import html_table, plain, to_csv
from karat.analysis.lint import Lint
from karat.analysis.lint.test_set import Problem
from karat.report.forms import Markdown, bullets, code, escape, table
from karat.report.remarks import skipped_checks as notes

_MARGIN = " " * 11


def terminal(found: Lint) -> str:
    """Each problem with a few examples, and what was not checked."""
    lines = [heading(_heading(found)), ""]
    for problem in found.problems:
        mark = style(f"{_severity(problem):<7}", "bad" if problem.serious else "unsure")
        lines.append(paragraph(sanitize(problem.text), _MARGIN, f"  {mark}  "))
        lines += [paragraph(sanitize(example), f"{_MARGIN}    ", f"{_MARGIN}  ") for example in problem.examples]
        if problem.count > len(problem.examples) > 0:
            lines.append(f"{_MARGIN}  … {problem.count - len(problem.examples):,} more")
    if not found.problems:
        lines.append(paragraph(style("no problems", "good")))
    return "\n".join([*lines, *(paragraph(sanitize(note)) for note in _notes(found))])


def markdown(found: Lint) -> str:
    """The same as a Markdown table."""
    parts: list[str] = [escape(_heading(found))]
    rows = []
    for problem in found.problems:
        examples = Markdown("<br>".join(map(code, problem.examples)))
        rows.append([_severity(problem).lower(), problem.kind, f"{problem.count:,}", problem.text, examples])
    if rows:
        parts.append(table(("", "kind", "count", "problem", "examples"), rows, right=(2,)))
    return "\n\n".join([*parts, bullets(_notes(found))])


def html(found: Lint) -> str:
    """The same as an HTML table, for notebooks."""
    rows = [
        [_severity(problem).lower(), problem.kind, f"{problem.count:,}", problem.text, " · ".join(problem.examples)]
        for problem in found.problems
    ]
    return html_table(["", "kind", "count", "problem", "examples"], rows, " · ".join([_heading(found), *_notes(found)]))


def csv(found: Lint) -> str:
    """One row for each problem."""
    import polars as pl

    rows = [(p.kind, p.serious, p.count, *valid_utf8([p.text, " | ".join(p.examples)])) for p in found.problems]
    columns = {"kind": pl.String, "serious": pl.Boolean, "count": pl.Int64, "text": pl.String, "examples": pl.String}
    return to_csv(pl.DataFrame(rows, schema=columns, orient="row"))


def data(found: Lint) -> dict[str, Any]:
    """Everything that is shown of a test set, as plain values."""
    names = ("source", "sound", "queries", "gold_items", "problems", "strength", "notes")
    return {name: plain(getattr(found, name)) for name in names}


def _severity(problem: Problem) -> str:
    return "PROBLEM" if problem.serious else "remark"


def _heading(found: Lint) -> str:
    serious = sum(problem.serious for problem in found.problems)
    verdict = "sound" if found.sound else plural(serious, "serious problem", "serious problems")
    sizes = f"{plural(found.queries, 'query', 'queries')} · {plural(found.gold_items, 'gold item', 'gold items')}"
    return f"{sanitize(found.source)} · {sizes} · {verdict}"


def _notes(found: Lint) -> list[str]:
    """The power of the test set, unless it is among the problems, and what was not checked."""
    small = found.strength is None or any(problem.kind == "small" for problem in found.problems)
    return notes(found) if small or found.strength is None else [found.strength.text(), *notes(found)]
