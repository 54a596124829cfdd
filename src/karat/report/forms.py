"""Markdown that shows what the data hold and does nothing else: no link, no tag, no mention, no broken table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from karat._internal.display import number, plural, sanitize, span, valid_utf8
from karat.run.run import Run, Slices

# A parenthesis is special only after a bracket, where it makes a link; a dot only where it makes a web address.
_SPECIAL = re.compile(r"(?i)[\\`*_<>#|~&@:$]|(?<=\])\(|(?<=www)\.")
# An @ or # calls a person or an issue even if it is written as an entity, unless something stands behind it.
_CALL = re.compile(r"(?<!\w)(&#64;|&#35;)")
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


class Markdown(str):
    """Text that is Markdown already; everything else is escaped on its way into a table."""

    __slots__ = ()


def escape(text: str, width: int | None = None) -> Markdown:
    """The text as it is to be read: whatever Markdown or HTML would act on is written as an entity."""
    return text if isinstance(text, Markdown) else Markdown(_CALL.sub(r"\1&#8203;", _entities(text, width)))


def code(text: str, width: int | None = None) -> Markdown:
    """The text as code: there not even an @ calls anybody, and it can be copied as it is."""
    return Markdown(f"<code>{_entities(text, width)}</code>")


def _entities(text: str, width: int | None) -> str:
    return _SPECIAL.sub(lambda found: _NAMED.get(found[0], f"&#{ord(found[0])};"), sanitize(text, width))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> Markdown:
    """Rows as a table; cells are escaped unless they are Markdown, columns in `right` end at the right."""
    rule = [Markdown("---:" if i in right else "---") for i in range(len(header))]
    lines = [f"| {' | '.join(map(escape, row))} |" for row in (header, rule, *rows)]
    return Markdown("\n".join(lines))


def unfold(summary: str, inside: str) -> Markdown:
    """Something that is closed until the reader opens it."""
    return Markdown(f"<details><summary>{escape(summary)}</summary>\n\n{inside}\n\n</details>")


def evaluation(run: Run, slices: Slices | None = None) -> str:
    """One run: the means with their intervals, what stands behind them, and its slices."""
    p, ends = run.provenance, run.interval()
    about = f"{plural(len(run), 'query', 'queries')} · judge: {p.judge} · convention: {run.convention.name}"
    rows = [[code(name), number(value), span(*ends[name])] for name, value in run.mean.items()]
    parts = [
        f"{code(p.source, 80)} · {escape(about)}",
        table(("metric", "mean", "95 % interval"), rows, right=(1,)),
        *(escape(remark) for remark in run.remarks()),
    ]
    if slices is not None:
        parts.append(by(slices))
    return "\n\n".join(parts)


def by(slices: Slices) -> Markdown:
    """The means of each slice."""
    metrics = list(next(iter(slices.values())).mean)
    rows = [[code(v, 80), f"{len(run):,}", *map(number, run.mean.values())] for v, run in slices.items()]
    header = [code(slices.field, 80), "queries", *map(code, metrics)]
    return table(header, rows, right=range(1, len(header)))


_SPECIAL_latex = {
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


def escape_latex(text: str, width: int | None = None) -> Latex:
    """The text as it is to be read."""
    if isinstance(text, Latex):
        return text
    return Latex("".join(_SPECIAL_latex.get(ch, ch) for ch in sanitize(text, width)))


def table_latex(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows as a table; the first columns begin at the left, the others end at the right."""
    lines = [f"  {' & '.join(map(escape_latex, row))} \\\\" for row in (header, *rows)]
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


def json_text(value: Any) -> str:
    """Indented JSON; what a terminal would act on is escaped, and undefined numbers are null."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(_storable(value)), indent=2).decode()
    return text if text.isascii() else "".join(map(_visible, text))


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return valid_utf8([value])[0]
    if isinstance(value, Mapping):
        return {_storable(name): _storable(one) for name, one in value.items()}
    return [_storable(one) for one in value] if isinstance(value, list | tuple) else value


def _visible(char: str) -> str:
    """A character, or its escape if it cannot be seen."""
    if char.isprintable() or char == "\n":
        return char
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
