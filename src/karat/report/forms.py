"""Markdown and LaTeX writers: text from the data is shown as it is and does nothing else (no link, tag or mention)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from karat._internal.display import sanitize

# A parenthesis is special only after a bracket, where it makes a link; a dot only where it makes a web address.
_MARKDOWN = re.compile(r"(?i)[\\`*_<>#|~&@:$]|(?<=\])\(|(?<=www)\.")
# An @ or # mentions a person or an issue even if it is written as an entity, unless something follows it.
_MENTION = re.compile(r"(?<!\w)(&#64;|&#35;)")
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "–": "--",
    "…": r"\ldots{}",
    "\ufffd": "?",
    **{ch: f"\\{ch}" for ch in "{}$&#_%"},
}


class Markdown(str):
    """Text that is Markdown already; everything else is escaped."""

    __slots__ = ()


class Latex(str):
    """Text that is LaTeX already; everything else is escaped."""

    __slots__ = ()


def escape(text: str, width: int | None = None) -> Markdown:
    """The text as Markdown: every character that Markdown or HTML would act on is written as an entity."""
    return text if isinstance(text, Markdown) else Markdown(_MENTION.sub(r"\1&#8203;", _entities(text, width)))


def code(text: str, width: int | None = None) -> Markdown:
    """The text as code: it mentions nobody, and can be copied as it is."""
    return Markdown(f"<code>{_entities(text, width)}</code>")


def _entities(text: str, width: int | None) -> str:
    return _MARKDOWN.sub(lambda found: _NAMED.get(found[0], f"&#{ord(found[0])};"), sanitize(text, width))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Markdown:
    """A Markdown table; cells are escaped unless they are Markdown, columns in `right` are right-aligned."""
    rule = [Markdown("---:" if i in right else "---") for i in range(len(header))]
    lines = [f"| {' | '.join(map(escape, row))} |" for row in (header, rule, *rows)]
    return Markdown("\n".join(lines))


def bullets(lines: Iterable[str]) -> Markdown:
    """A Markdown list."""
    return Markdown("\n".join(f"- {escape(line)}" for line in lines))


def details(summary: str, inside: str) -> Markdown:
    """A part that is closed until the reader opens it."""
    return Markdown(f"<details><summary>{escape(summary)}</summary>\n\n{inside}\n\n</details>")


def latex_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A LaTeX table: the first `left` columns are left-aligned, the others right-aligned."""
    lines = [f"  {' & '.join(map(_escape_latex, row))} \\\\" for row in (header, *rows)]
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            rf"\begin{{tabular}}{{{'l' * left}{'r' * (len(header) - left)}}}",
            r"  \toprule",
            lines[0],
            r"  \midrule",
            *lines[1:],
            r"  \bottomrule",
            r"\end{tabular}",
        ]
    )


def _escape_latex(text: str) -> str:
    return text if isinstance(text, Latex) else "".join(_LATEX.get(ch, ch) for ch in sanitize(text))
