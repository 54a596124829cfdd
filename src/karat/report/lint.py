"""What lint found, as a table for the terminal, as Markdown and as CSV."""

from __future__ import annotations

from karat._internal.display import plural, sanitize, valid_utf8
from karat.analysis.lint import Lint
from karat.report.forms import Markdown, code, escape, table


def show(found: Lint) -> str:
    """What a terminal shows."""
    lines = [_heading(found), ""]
    for problem in found.problems:
        lines.append(f"  {'PROBLEM' if problem.serious else 'remark '}  {sanitize(problem.text)}")
        lines += [f"             {sanitize(example)}" for example in problem.examples]
        if problem.count > len(problem.examples) > 0:
            lines.append(f"             … {problem.count - len(problem.examples):,} more")
    if not found.problems:
        lines.append("  no problems")
    lines += [f"  {sanitize(note)}" for note in _notes(found)]
    return "\n".join(lines)


def _heading(found: Lint) -> str:
    serious = sum(problem.serious for problem in found.problems)
    verdict = "sound" if found.sound else plural(serious, "serious problem", "serious problems")
    sizes = f"{plural(found.queries, 'query', 'queries')} · {plural(found.gold_items, 'gold item', 'gold items')}"
    return f"{sanitize(found.source)} · {sizes} · {verdict}"


def _notes(found: Lint) -> list[str]:
    """What the test set can show, unless that is among the problems, and what was not looked at."""
    small = found.strength is None or any(problem.kind == "small" for problem in found.problems)
    return found.notes if small or found.strength is None else [found.strength.text(), *found.notes]


def markdown(found: Lint) -> str:
    """The same as Markdown."""
    parts: list[str] = [escape(_heading(found))]
    rows = [
        [
            escape("problem" if problem.serious else "remark"),
            escape(problem.kind),
            f"{problem.count:,}",
            escape(problem.text),
            Markdown("<br>".join(map(code, problem.examples))),
        ]
        for problem in found.problems
    ]
    if rows:
        parts.append(table(("", "kind", "count", "what", "for example"), rows, right=(2,)))
    return "\n\n".join([*parts, "\n".join(f"- {escape(note)}" for note in _notes(found))])


def csv(found: Lint) -> str:
    """One line for each problem."""
    import polars as pl

    problems = found.problems
    frame = pl.DataFrame(
        {
            "kind": [problem.kind for problem in problems],
            "serious": [problem.serious for problem in problems],
            "count": [problem.count for problem in problems],
            "text": valid_utf8([sanitize(problem.text) for problem in problems]),
            "examples": valid_utf8([sanitize(" | ".join(problem.examples)) for problem in problems]),
        },
        schema={"kind": pl.String, "serious": pl.Boolean, "count": pl.Int64, "text": pl.String, "examples": pl.String},
    )
    return frame.write_csv()
