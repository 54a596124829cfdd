"""Markdown and LaTeX writers: text from the data is shown as it is and does nothing else (no link, tag or mention)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape as escape_html

from karat._internal.display import cut_label, sanitize

_PUNCTUATION = re.compile(
    r"""[\\`*$|] | ~(?=\S) | (?<=\S)~ | <(?=[a-z/!?])  # code, emphasis, strikethrough, math, tags, columns of tables
    | (?<![^\W_])_ | _(?![^\W_])  # emphasis; not the one in first_words
    | &(?=\#?\w+;)          # entities
    | (?<=\])[(:\[]         # links and their definitions
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Punctuation that Markdown acts on, unless a backslash precedes it."""
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$)))?(?=[.)>#]|::|[-+=](?![\w.])|\[[ xX]\])")
"""The place at the start of a line where a backslash prevents a list, heading, quotation, rule or CI command."""
_LIVE = re.compile(
    r"""(?ix) (?<!\w) [@\#] (?=\w)        # a person, an issue
    | \w@[\w-]+\. | : [/\w+-]+ [:/] | \b (?: https? | ftp | mailto | xmpp ): | www\.      # addresses, :emoji:
    | \bgh-\d | \w\#\d | \b[0-9a-f]{7,40}\b  # issues and commits
    """
)
"""Text that sites such as GitHub turn into a link, a mention or a picture even after a backslash, but not in code."""
_WORD = re.compile(r"[^\s\"'(),;]+")
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
    """Markdown that shows the text as it is: with backslashes, and as code what would become a link or mention."""
    if isinstance(text, Markdown):
        return text
    parts, done, line = [], 0, sanitize(text, width)
    for word in _WORD.finditer(line):
        text = word[0].rstrip(".")  # the full stop of a sentence
        if _LIVE.search(text):
            parts += [_backslashes(line[done : word.start()]), code(text)]
            done = word.start() + len(text)
    return Markdown(_BLOCK.sub(r"\g<0>\\", "".join([*parts, _backslashes(line[done:])])))


def _backslashes(text: str) -> str:
    return _PUNCTUATION.sub(r"\\\g<0>", text)


def code(text: str, width: int | None = None) -> Markdown:
    """The text as code: it links and mentions nothing, and can be copied as it is."""
    line = sanitize(text) if width is None else cut_label(text, width)
    # No way is left to write a backslash before a | as code in a table, so the | is between two pieces of code.
    return Markdown(r"\|".join(map(_code, re.split(r"(?<=\\)\|", line))))


def _code(text: str) -> str:
    """A code span; it begins and ends with more backticks than it has in a row."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}" if text else ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Markdown:
    """A Markdown table; cells are escaped unless they are Markdown, columns in `right` are right-aligned."""
    rule = [Markdown("---:" if i in right else "---") for i in range(len(header))]
    lines = [f"| {' | '.join(map(_cell, row))} |" for row in (header, rule, *rows)]
    return Markdown("\n".join(lines))


def _cell(text: str) -> str:
    """A cell: a | would end it even within code."""
    return re.sub(r"(?<!\\)\|", r"\|", escape(text))


def bullets(lines: Iterable[str]) -> Markdown:
    """A Markdown list."""
    return Markdown("\n".join(f"- {escape(line)}" for line in lines))


def details(summary: str, inside: str) -> Markdown:
    """A part that is closed until the reader opens it."""
    return Markdown(f"<details><summary>{escape_html(summary)}</summary>\n\n{inside}\n\n</details>")


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
