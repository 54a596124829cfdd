"""Everybody's numbers, side by side: on the terminal, as Markdown, as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from html import escape

from karat._internal.display import html_table, number, plural, sanitize, text_table
from karat.analysis.rosetta import Dialect, Rosetta
from karat.conventions import CONVENTIONS, STANDARD, Convention
from karat.conventions.explain import WORDS, differing, sentence
from karat.metrics import METRICS

_WIDTH = 116
_LEGEND = (
    "* differs from standard   ! above 1 for some query   – the library has no such metric, or its mean is undefined"
)
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "table{border-collapse:collapse}th,td{padding:.25rem .8rem;text-align:right;border-bottom:1px solid #8884}"
    "th:first-child,td:first-child{text-align:left}caption{text-align:left;padding:.5rem 0}li{margin:.3rem 0}"
)


def text(told: Rosetta) -> str:
    """The table, and below it one sentence for each difference."""
    return "\n".join([_heading(told), "", text_table(_rows(told)), "", f"  {_LEGEND}", "", *_wrapped(told)]).rstrip()


def markdown(told: Rosetta) -> str:
    """The same for a page of Markdown."""
    head, *rows = _rows(told)
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    # A lone asterisk would begin emphasis, and a bar would end a cell.
    table = "\n".join(lines).replace("*", r"\*")
    reasons = [f"- {', '.join(d.conventions)}: {d.text}" for d in told.differences]
    return "\n".join([escape(_heading(told), quote=False), "", table, "", _LEGEND.replace("*", r"\*"), "", *reasons])


def html(told: Rosetta) -> str:
    """The same as an HTML table and a list."""
    head, *rows = _rows(told)
    reasons = "".join(f"<li><b>{escape(', '.join(d.conventions))}</b>: {escape(d.text)}</li>" for d in told.differences)
    return f"{html_table(head, rows, _heading(told))}<p>{escape(_LEGEND)}</p><ul>{reasons}</ul>"


def page(told: Rosetta) -> str:
    """The same as a page that needs nothing else."""
    top = f"<meta charset='utf-8'><title>karat rosetta</title><style>{_STYLE}</style>"
    body = f"<h1>One input, everybody's numbers</h1>{html(told)}"
    return f"<!doctype html><html lang='en'><head>{top}</head><body>{body}</body></html>\n"


def convention_list() -> str:
    """Every convention, with the choices that it makes otherwise than standard."""
    rows = []
    for c in CONVENTIONS.values():
        said = ", ".join(_short(choice, c) for choice in differing(c))
        more = [f"{name} means {other}" for name, other in c.renames.items()]
        more += [f"for {names} {', '.join(_value(k, v) for k, v in s.items())}" for names, s in _alike(c).items()]
        rows += [[c.name if i == 0 else "", line] for i, line in enumerate(_fold("; ".join([said or "–", *more])))]
    return text_table(rows)


def convention(c: Convention) -> str:
    """One convention in words."""
    has = ", ".join(c.metrics) if c.metrics else "every metric of karat's"
    at = f", at k = {', '.join(map(str, c.cutoffs))} alone" if c.cutoffs else ""
    lines = [f"{c.name}: {c.about}.", "", *_fold(f"It has {has}{at}.", 0), ""]
    own = [sentence(choice, c, {"metrics": ", ".join(c.per_rank)}) for choice in differing(c)]
    own += [f"what it calls {name} is {other}: {METRICS[other].help}" for name, other in c.renames.items()]
    for choice in c.refuses:
        if choice in {"empty_gold", "empty_retrieved"} and choice not in differing(c):
            own.append(sentence(choice, c))
    for names, special in _alike(c).items():
        metric, _, cut = names.partition(",")[0].partition(" ")[0].partition("@")
        seen = c.of(metric, cut=bool(cut))
        own += [f"for {names}: {sentence(choice, seen)}" for choice in special]
    if c.name == STANDARD.name:
        lines += ["Its choices:"]
        own = [sentence(choice, c) for choice in WORDS if choice not in {"per_rank", "nothing_judged", "both_empty"}]
    else:
        lines += ["Otherwise than standard:"]
    lines += [part for line in own for part in _bullet(line)]
    return "\n".join(lines)


def _alike(c: Convention) -> dict[str, Mapping[str, object]]:
    """The exceptions of a convention, with all the metrics that share one."""
    names: dict[str, list[str]] = {}
    for name, special in c.exceptions.items():
        names.setdefault(str(special), []).append(name)
    told = {name: f"{name} without k" if f"{name}@k" in c.exceptions else name for name in c.exceptions}
    return {", ".join(map(told.__getitem__, own)): c.exceptions[own[0]] for own in names.values()}


def _heading(told: Rosetta) -> str:
    return f"{sanitize(told.source)} · {plural(told.queries, 'query', 'queries')} · judge: {told.judge}"


def _rows(told: Rosetta) -> list[list[str]]:
    """A row for each convention that has any of the metrics."""
    standard = told.dialects[0]
    some = [d for d in told.dialects if any(mean is not None for mean in d.means.values())]
    return [["", *told.metrics], *([d.convention, *(_cell(d, name, standard) for name in told.metrics)] for d in some)]


def _cell(dialect: Dialect, name: str, standard: Dialect) -> str:
    mean, usual = dialect.means[name], standard.means[name]
    mark = "!" if name in dialect.above_one else "*" if name in dialect.differs else ""
    shown = number(float("nan") if mean is None else mean)
    if mark and mean is not None and usual is not None and mean != usual and shown == number(usual):
        shown = f"{mean:.6f}"  # the difference is small, and still one
    return f"{shown} {mark}".rstrip()


def _wrapped(told: Rosetta) -> list[str]:
    return [part for d in told.differences for part in _bullet(f"{', '.join(d.conventions)}: {d.text}")]


def _bullet(line: str) -> Sequence[str]:
    first, *rest = textwrap.wrap(line, _WIDTH - 4, break_on_hyphens=False) or [""]
    return [f"  - {first}", *(f"    {part}" for part in rest)]


def _fold(line: str, indent: int = 18) -> list[str]:
    return textwrap.wrap(line, _WIDTH - indent, break_on_hyphens=False)


def _short(choice: str, c: Convention) -> str:
    return _value(choice, getattr(c, choice))


def _value(choice: str, value: object) -> str:
    if isinstance(value, tuple):
        return f"{choice}={'+'.join(value)}"
    return f"{choice}={'undefined' if value != value else value}"
