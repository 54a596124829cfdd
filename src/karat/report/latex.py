"""LaTeX that shows what the data hold and does nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from karat.tables import clean

_SPECIAL = {
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


class Latex(str):
    """Text that is LaTeX already; everything else is escaped on its way into a table."""

    __slots__ = ()


def escape(text: str, width: int | None = None) -> Latex:
    """The text as it is to be read."""
    if isinstance(text, Latex):
        return text
    return Latex("".join(_SPECIAL.get(ch, ch) for ch in clean(text, width)))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows as a table; the first columns begin at the left, the others end at the right."""
    lines = [f"  {' & '.join(map(escape, row))} \\\\" for row in (header, *rows)]
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
