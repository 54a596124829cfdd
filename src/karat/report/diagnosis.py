"""A diagnosis as a table for the terminal, as Markdown and as CSV; one query in full."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from karat._internal.display import number, plural, sanitize, text_table, valid_utf8
from karat._internal.overlap import passages
from karat.analysis.diagnose import Diagnosis
from karat.analysis.diagnose.miss import Miss
from karat.report.forms import code, escape, table
from karat.run.stored_items import GoldItem, Hit, Retrieved

_ON, _OFF = "\x1b[1m", "\x1b[0m"
_LONGEST = 4_000


def side_by_side(left: str, right: str, *, width: int, bold: bool) -> list[str]:
    """Lines of two columns; what of the left text stands in the right one is bold, or between « and »."""
    a, b = sanitize(left, _LONGEST), sanitize(right, _LONGEST)
    shared = passages(*_comparable(a, b))
    in_a, in_b = set[int](), set[int]()
    for start, other, size in shared:
        in_a |= set(range(start, start + size))
        in_b |= set(range(other, other + size))
    half = max((width - 3) // 2, 20)
    columns = list(_lines(a, in_a, half, bold=bold)), list(_lines(b, in_b, half, bold=bold))
    tall = max(map(len, columns))
    padded = [[*column, *[("", 0)] * (tall - len(column))] for column in columns]
    return [f"{one}{' ' * (half - size)} │ {two}".rstrip() for (one, size), (two, _) in zip(*padded, strict=True)]


def _comparable(a: str, b: str) -> tuple[str, str]:
    """Both in lower case, where that moves no character."""
    lower = a.lower(), b.lower()
    return lower if (len(lower[0]), len(lower[1])) == (len(a), len(b)) else (a, b)


def _lines(text: str, inside: set[int], width: int, *, bold: bool) -> Iterator[tuple[str, int]]:
    """The text in lines, each with the columns that it takes; marks are closed at the end of a line."""
    on, off = (_ON, _OFF) if bold else ("«", "»")
    room = width if bold else width - 4
    start = 0
    while start < len(text):
        stop = _break(text, start, room)
        line, size, open_now = "", 0, False
        for i in range(start, stop):
            if (i in inside) != open_now:
                open_now = not open_now
                line += on if open_now else off
                size += 0 if bold else 1
            line += text[i]
            size += _columns(text[i])
        yield line + (off if open_now else ""), size + (1 if open_now and not bold else 0)
        start = stop + (stop < len(text) and text[stop] == " ")


def _break(text: str, start: int, room: int) -> int:
    """Where a line that begins here ends: at the last space that fits, else where it is full."""
    stop, used, space = start, 0, -1
    while stop < len(text) and (used := used + _columns(text[stop])) <= room:
        space = stop if text[stop] == " " else space
        stop += 1
    if stop == len(text) or text[stop] == " ":
        return stop
    return space if space > start else max(stop, start + 1)


def _columns(char: str) -> int:
    """How many columns of a terminal a character takes."""
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1


_SAME = 1e-9
_SHOWN = 3
_QUERY, _GOLD, _EXCERPT, _WIDTH = 40, 40, 60, 100


def show(found: Diagnosis, *, width: int = _WIDTH, bold: bool = False, program: str = "karat") -> str:
    """What a terminal shows; matches in bold, or between « and »."""
    if found.query_id is not None:
        return _one_query(found, width=width, bold=bold)
    lines = [_heading(found), ""]
    for cause, count in found.causes.items():
        some = [miss for miss in found.misses if miss.cause == cause]
        lines.append(f"  {cause} · {count:,} of {len(found.misses):,}")
        rows = [[sanitize(m.query_id, 20), _asked(m), sanitize(m.gold, _GOLD), sanitize(m.text)] for m in some[:_SHOWN]]
        lines += [f"  {line}" for line in text_table(rows).splitlines()]
    lines += _section("What follows", found.advice) + _section("What cannot be told", found.notes)
    if found.misses:
        lines += ["", f"Next  {program} diagnose RUN {sanitize(found.misses[0].query_id, 20)}    one query in full"]
    return "\n".join(lines)


def _heading(found: Diagnosis) -> str:
    p = found.run.provenance
    missed = f"{len(found.misses):,} of {plural(found.gold_items, 'gold item', 'gold items')}"
    said = f"{missed} not in the top {found.k}" if found.misses else f"the top {found.k} hold all gold"
    own = found.run.mean.get(f"recall@{found.k}", found.recall)
    same = abs(own - found.recall) < _SAME or own != own
    recall = f"{f'recall@{found.k}' if same else f'share of the gold in the top {found.k}'} {number(found.recall)}"
    return f"{sanitize(p.source)} · {plural(len(found.run), 'query', 'queries')} · judge: {p.judge} · {recall} · {said}"


def _asked(miss: Miss) -> str:
    return "" if miss.query is None else f'"{sanitize(miss.query, _QUERY)}"'


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", title, *(f"  {sanitize(line)}" for line in lines)] if lines else []


def _one_query(found: Diagnosis, *, width: int, bold: bool) -> str:
    """The query, each gold item, each retrieved item, and the texts beside each other."""
    run, query_id = found.run, str(found.query_id)
    gold, hits, items = run.gold(query_id), run.hits(query_id), run.items(query_id)
    retrieved = [] if items is None else items.retrieved
    query = None if run.query is None else run.query[run.row(query_id)]
    asked = "" if query is None else f' "{sanitize(query)}"'
    lines = [f"{sanitize(query_id)}{asked} · judge: {run.provenance.judge} · top {found.k}", "", "Gold"]
    lines.append(
        text_table([[sanitize(g.gold, _GOLD), f"grade {g.grade:g}", _where(g, i, found)] for i, g in enumerate(gold)])
    )
    depth = int(run.all_hits.depth[run.row(query_id)])
    shown = "" if not retrieved or len(retrieved) == depth else f", the top {len(retrieved)} of {depth:,}"
    lines += ["", f"Retrieved{shown}"]
    lines += _ranking(retrieved, hits, found.k) or ["  nothing" if depth == 0 else f"  {depth:,} items, not kept"]
    for place, item in enumerate(gold):
        texts = [g.text for g in items.gold if g.item == place and g.text] if items is not None else []
        for other in retrieved:
            if texts and other.text and other.rank in _beside(item, place, found):
                lines += ["", f"{sanitize(item.gold, _GOLD)}, beside rank {other.rank}"]
                lines += [f"  {line}" for line in side_by_side(texts[0], other.text, width=width - 2, bold=bold)]
    return "\n".join([*lines, *_section("What cannot be told", found.notes)])


def _where(gold: GoldItem, item: int, found: Diagnosis) -> str:
    """Where a gold item was found, or why not."""
    miss = next((miss for miss in found.misses if miss.item == item), None)
    if miss is not None:
        return f"missed: {sanitize(miss.text)}"
    return "not relevant" if gold.grade <= 0 and gold.rank is None else f"at rank {gold.rank}"


def _beside(gold: GoldItem, item: int, found: Diagnosis) -> Sequence[int]:
    """The ranks of the retrieved items that a gold item is best compared with."""
    if gold.rank is not None:
        return (gold.rank,)
    return next((miss.ranks[:_SHOWN] for miss in found.misses if miss.item == item), ())


def _ranking(items: Sequence[Retrieved], hits: Sequence[Hit], k: int) -> list[str]:
    rows = []
    for item in items:
        matches = "; ".join(f"{hit.why}: {sanitize(hit.gold, _GOLD)}" for hit in hits if hit.rank == item.rank)
        score = "" if item.score is None else f"{item.score:.4g}"
        name = sanitize(item.id or item.doc or "", _GOLD)
        excerpt = "" if item.text is None else f'"{sanitize(item.text, _EXCERPT)}"'
        rows.append([str(item.rank), score, name, excerpt, f"← {sanitize(matches)}" if matches else ""])
    if not rows:
        return []
    lines = text_table(rows, right=(0, 1)).splitlines()
    return lines if len(lines) <= k else [*lines[:k], f"  {'─' * 8} below k = {k}", *lines[k:]]


def markdown(found: Diagnosis) -> str:
    """The same as Markdown."""
    rows = [
        [code(miss.query_id), escape(miss.query or "", 80), code(miss.gold, 80), escape(miss.cause), escape(miss.text)]
        for miss in found.misses
    ]
    counts = [[escape(cause), f"{count:,}"] for cause, count in found.causes.items()]
    parts: list[str] = [escape(_heading(found))]
    if counts:
        parts += [table(("cause", "gold items"), counts, right=(1,))]
    parts += ["\n".join(f"- {escape(line)}" for line in lines) for lines in (found.advice, found.notes) if lines]
    if rows:
        parts.append(table(("query", "", "gold item", "cause", "why"), rows))
    return "\n\n".join(parts)


def csv(found: Diagnosis) -> str:
    """One line for each missed gold item."""
    import polars as pl

    names = ("query_id", "query", "gold", "grade", "rank", "cause", "text")
    columns = {name: [getattr(miss, name) for miss in found.misses] for name in names}
    kinds = {"grade": pl.Float64, "rank": pl.Int64}
    for name in names:
        if name not in kinds:
            columns[name] = valid_utf8([sanitize(text or "") for text in columns[name]])
    return pl.DataFrame(columns, schema={name: kinds.get(name, pl.String) for name in names}).write_csv()
