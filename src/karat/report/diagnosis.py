"""A diagnosis: the missed gold items by cause, or one query in full with its texts side by side."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from shlex import quote
from typing import Any

from karat._internal.display import (
    cell_width,
    columns,
    commands,
    cut_label,
    cut_name,
    heading,
    line_end,
    number,
    paragraph,
    plural,
    sanitize,
    terminal_width,
    text_table,
    valid_utf8,
)
from karat._internal.overlap import passages
from karat._internal.writers import html_table, plain, to_csv
from karat.analysis.diagnose import Diagnosis
from karat.analysis.diagnose.miss import Miss, default_cutoff
from karat.report import repeats
from karat.report.advice import sentences
from karat.report.aspect_table import lost_aspects
from karat.report.forms import bullets, code, escape, table
from karat.report.marks import known_overlap, stored_text
from karat.report.step_table import lost_hops
from karat.run.stored_items import GoldItem, GoldText, Hit, Range, Retrieved

_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_LONGEST = 4_000
_SAME = 1e-9
_SHOWN = 3
"""Misses listed for each cause, and ranks compared with a gold item."""
_ID, _QUERY, _GOLD, _EXCERPT = 20, 40, 40, 60
_UNKNOWN = "Unknown"
_INTERVAL = re.compile(r"\[[-+]?\d")
NOT_MEASURED = "Not measured: what to check next"


def terminal(found: Diagnosis, *, bold: bool = False, program: str = "karat", shown: int | None = _SHOWN) -> str:
    """The misses by cause and the advice, or one query in full; matching text is bold, or in « ».

    Of each cause the first misses are listed; all of them if `shown` is None.
    """
    if found.query_id is not None:
        return _one_query(found, bold=bold)
    lines = [heading(_heading(found)), ""]
    for cause, count in found.causes.items():
        some = [miss for miss in found.misses if miss.cause == cause][:shown]
        lines.append(f"  {cause} · {count:,} of {len(found.misses):,}")
        lines += [text_table([_cells(miss) for miss in some])] if some else []
        lines += [f"    … {count - len(some):,} more"] if count > len(some) > 0 else []
    lines += (
        _section(advice_title(found), advice(found))
        + _section(NOT_MEASURED, not_measured(found))
        + _section("Hops and aspects", _lost(found))
    )
    lines += _section(_UNKNOWN, sentences(found.limits))
    more = shown is not None and any(count > shown for count in found.causes.values())
    return "\n".join([*lines, *_next(found, program, more=more)])


def _sections(found: Diagnosis) -> list[tuple[str, list[str]]]:
    """The sentences of a diagnosis under their headings."""
    return [
        (advice_title(found), advice(found)),
        (NOT_MEASURED, not_measured(found)),
        ("Hops and aspects", _lost(found)),
        (_UNKNOWN, sentences(found.limits)),
    ]


def _next(found: Diagnosis, program: str, *, more: bool) -> list[str]:
    """The commands that show one query in full, and all misses; in Python, the call."""
    if not found.misses:
        return []
    query, file = found.misses[0].query_id, found.run.file
    if file is None:
        steps = [(f"karat.diagnose(run, {query!r}{_other_cutoff(found, ', k=')})", "one query in full")]
        steps += [("diagnosis.misses", "every miss")] if more else []
    else:
        call = f"{program} diagnose {quote(file)}"
        steps = [(f"{call} {quote(query)}{_other_cutoff(found, ' --k ')}", "one query in full")]
        steps += [(f"{call}{_other_cutoff(found, ' --k ')} --all", "every miss")] if more else []
    steps = [(sanitize(step), what) for step, what in steps]
    return ["", heading("Next"), commands(steps) if file is not None else _calls(steps)]


def _calls(steps: Sequence[tuple[str, str]]) -> str:
    """Calls with explanations beside them, or below them if the terminal is narrow; no call is broken."""
    size = max(columns(step) for step, _ in steps)
    if 4 + size + max(len(what) for _, what in steps) <= terminal_width(80):
        return "\n".join(f"  {step}{' ' * (size - columns(step))}  {what}" for step, what in steps)
    return "\n".join(f"  {step}\n      {what}" for step, what in steps)


def _other_cutoff(found: Diagnosis, option: str) -> str:
    return "" if found.k == default_cutoff(found.run, None) else f"{option}{found.k}"


def markdown(found: Diagnosis) -> str:
    """The causes, the advice and every miss, as Markdown."""
    rows = [
        [code(miss.query_id), escape(miss.query or "", 80), code(miss.gold, 80), miss.cause, miss.text]
        for miss in found.misses
    ]
    parts: list[str] = [escape(_heading(found))]
    if rows:
        counts = [[cause, f"{count:,}"] for cause, count in found.causes.items()]
        parts.append(table(("cause", "gold items"), counts, right=(1,)))
    for title, lines in _sections(found):
        parts += [f"### {title}", bullets(lines)] if lines else []
    if rows:
        parts += ["### Missed gold", table(("query", "", "gold item", "cause", "why"), rows)]
    return "\n\n".join(parts)


def html(found: Diagnosis) -> str:
    """Every miss as an HTML table, for notebooks."""
    rows = [[miss.query_id, miss.query or "", miss.gold, miss.cause, miss.text] for miss in found.misses]
    checks = [f"{NOT_MEASURED}: {line}" for line in not_measured(found)]
    caption = " · ".join([_heading(found), *advice(found), *checks, *notes(found)])
    return html_table(["query", "", "gold item", "cause", "why"], rows, caption)


def csv(found: Diagnosis) -> str:
    """One row for each missed gold item."""
    import polars as pl

    names = ("query_id", "query", "gold", "grade", "rank", "cause", "text")
    kinds = {"grade": pl.Float64, "rank": pl.Int64}
    values: dict[str, list[Any]] = {name: [getattr(miss, name) for miss in found.misses] for name in names}
    for name in names:
        if name not in kinds:
            values[name] = valid_utf8([text or "" for text in values[name]])
    return to_csv(pl.DataFrame(values, schema={name: kinds.get(name, pl.String) for name in names}))


def data(found: Diagnosis) -> dict[str, Any]:
    """Everything that is shown of a diagnosis, as plain values."""
    values: dict[str, Any] = {
        "k": found.k,
        "query_id": found.query_id,
        "queries": len(found.run.queries),
        "judged": found.run.judged,
        "recall": found.recall,
        "gold_items": found.gold_items,
        "missed": len(found.misses),
        "causes": found.causes,
        "advice": advice(found),
        "not_measured": not_measured(found),
        "notes": notes(found),
        "misses": found.misses,
    }
    if found.query_id is not None:
        items = found.run.items(found.query_id)
        values |= {"hits": found.run.hits(found.query_id), "retrieved": None if items is None else items.retrieved}
    return dict(plain(values))


def advice(found: Diagnosis) -> list[str]:
    """Ways to raise recall or precision, one sentence each."""
    return sentences(found.advice_notes)


def advice_title(found: Diagnosis) -> str:
    """The heading of the advice, which names the level of its intervals, if there are any."""
    return "Advice, with 95 % intervals" if any(_INTERVAL.search(line) for line in advice(found)) else "Advice"


def not_measured(found: Diagnosis) -> list[str]:
    """Checks outside the run, one sentence each: the run cannot show their gain."""
    return sentences(found.check_notes)


def notes(found: Diagnosis) -> list[str]:
    """The hops and aspects that were lost, and the checks that were not possible, one sentence each."""
    return [*_lost(found), *sentences(found.limits)]


def _lost(found: Diagnosis) -> list[str]:
    if found.query_id is not None:
        return []
    return [*lost_hops(found.run, found.k), *lost_aspects(found.run, found.k)]


def _heading(found: Diagnosis) -> str:
    run, judged = found.run, found.run.judged
    queries = repeats.count(run)
    if judged < len(run.queries):
        queries = f"{judged:,} of {queries} {'was' if judged == 1 else 'were'} judged"
    start = f"{run.name} · {queries} · judge: {run.provenance.judge}"
    if not judged:
        return sanitize(start)
    if not found.misses and not found.gold_items:
        return sanitize(f"{start} · {nothing_missed(found)}")
    missed = f"{len(found.misses):,} of {plural(found.gold_items, 'gold item', 'gold items')} not in the top {found.k}"
    own = run.mean.get(f"recall@{found.k}", found.recall)
    same = abs(own - found.recall) < _SAME or own != own
    recall = f"{f'recall@{found.k}' if same else f'share of the gold in the top {found.k}'} {number(found.recall)}"
    return sanitize(f"{start} · {recall} · {missed if found.misses else nothing_missed(found)}")


def nothing_missed(found: Diagnosis) -> str:
    """The reason why there are no misses."""
    if not found.run.judged:
        return f"0 of {plural(len(found.run.queries), 'query was', 'queries were')} judged"
    whose = "" if found.run.judged == len(found.run.queries) else " of the judged queries"
    return f"all gold{whose} is in the top {found.k}" if found.gold_items else f"there is no relevant gold{whose}"


def _cells(miss: Miss) -> list[str]:
    query = "" if miss.query is None else f'"{sanitize(miss.query, cell_width(_QUERY))}"'
    return [f"  {cut_name(miss.query_id, _ID)}", query, cut_label(miss.gold, cell_width(_GOLD)), sanitize(miss.text)]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", heading(title), *(paragraph(sanitize(line)) for line in lines)] if lines else []


def _one_query(found: Diagnosis, *, bold: bool) -> str:
    """The query, each gold item, each retrieved item, and their texts side by side."""
    run, query_id = found.run, str(found.query_id)
    gold, hits, items = run.gold(query_id), run.hits(query_id), run.items(query_id)
    retrieved = [] if items is None else items.retrieved
    query = None if run.query is None else run.query[run.row(query_id)]
    quoted = "" if query is None else f' "{sanitize(query)}"'
    if run.repeats is not None:
        quoted += f" · one of {run.repeats.sizes[run.repeats.query[run.row(query_id)]]} repeats"
    about = f"{sanitize(query_id)}{quoted} · judge: {run.provenance.judge} · top {found.k}"
    misses = {miss.item: miss for miss in found.misses}
    places = [[cut_label(g.gold, _GOLD), f"grade {g.grade:g}", _where(g, misses.get(i))] for i, g in enumerate(gold)]
    depth = int(run.all_hits.depth[run.row(query_id)])
    shown = "" if not retrieved or len(retrieved) == depth else f", the top {len(retrieved)} of {depth:,}"
    lines = [heading(about), *_not_judged(found), "", heading("Gold"), text_table(places)]
    lines += ["", heading(f"Retrieved{shown}")]
    lines.append(_ranking(retrieved, hits, found.k) or ("  nothing" if not depth else f"  {depth:,} items, not stored"))
    width = min(max(terminal_width(100), 60), 160)
    stored = reversed(items.gold) if items is not None else ()
    texts = {g.item: g for g in stored if g.text or g.start is not None}  # the first of each item
    by_rank = {other.rank: other for other in retrieved if other.text}
    for place, item in enumerate(gold):
        for rank in sorted(_compared(item, misses.get(place))) if place in texts else ():
            if rank in by_rank:
                lines += ["", heading(f"{cut_label(item.gold, _GOLD)}, compared with rank {rank}")]
                both = side_by_side(texts[place], by_rank[rank], width=width - 2, bold=bold)
                lines += [f"  {line}" for line in both]
    return "\n".join([*lines, *_section(_UNKNOWN, notes(found))])


def _where(gold: GoldItem, miss: Miss | None) -> str:
    """The rank of a gold item, or why it was missed."""
    if miss is not None:
        return f"missed: {sanitize(miss.text)}"
    if gold.rank is not None:
        return f"at rank {gold.rank}"
    return "not relevant" if gold.grade <= 0 else "not judged"


def _compared(gold: GoldItem, miss: Miss | None) -> Sequence[int]:
    """The ranks of the retrieved items with which a gold item is compared."""
    about = () if miss is None else miss.ranks[:_SHOWN]
    return about if about or gold.rank is None else (gold.rank,)


def _ranking(items: Sequence[Retrieved], hits: Sequence[Hit], k: int) -> str:
    rows, matched = [], defaultdict(list)
    for hit in hits:
        matched[hit.rank].append(f"{hit.why}: {cut_label(hit.gold, _GOLD)}")
    for item in items:
        matches = "; ".join(matched[item.rank])
        score = "" if item.score is None else f"{item.score:.4g}"
        name = cut_name(item.id or item.doc or "", cell_width(_GOLD))
        excerpt = "" if item.text is None else f'"{sanitize(item.text, cell_width(_EXCERPT, 3))}"'
        rows.append([str(item.rank), score, name, excerpt, f"← {sanitize(matches)}" if matches else ""])
    if len(rows) > k:
        rows.insert(k, ["──", "", f"below k = {k}", "", ""])
    return text_table(rows, right=(0, 1)) if rows else ""


def _not_judged(found: Diagnosis) -> list[str]:
    why = found.run.failures.get(str(found.query_id))
    return [] if why is None else ["", paragraph(f"Not judged: {sanitize(why)}")]


def side_by_side(gold: GoldText, chunk: Retrieved, *, width: int, bold: bool) -> list[str]:
    """A gold item and a chunk as lines of two columns; the range that they share is bold, or in « ».

    If their ranges are unknown, it is the passages that both texts contain.
    """
    left, right = stored_text(gold) or gold.label, stored_text(chunk)
    a, b = sanitize(left, _LONGEST), sanitize(right, _LONGEST)
    known = known_overlap(gold, chunk)
    if known is None:
        in_a, in_b = _shared(a, b)
    else:
        in_a, in_b = (set(range(*_sanitized(text, own))) for text, own in zip((left, right), known, strict=True))
    half = max((width - 3) // 2, 20)
    sides = [list(_marked_lines(text, inside, half, bold=bold)) for text, inside in ((a, in_a), (b, in_b))]
    tall = max(map(len, sides))
    padded = [[*side, *[("", 0)] * (tall - len(side))] for side in sides]
    return [f"{one}{' ' * (half - size)} │ {two}".rstrip() for (one, size), (two, _) in zip(*padded, strict=True)]


def _shared(a: str, b: str) -> tuple[set[int], set[int]]:
    """The characters of each text that are in passages of both, whatever their case."""
    lower = a.lower(), b.lower()
    same_size = (len(lower[0]), len(lower[1])) == (len(a), len(b))  # else a place in one is not that in the other
    in_a, in_b = set[int](), set[int]()
    for start, other, size in passages(*(lower if same_size else (a, b))):
        in_a |= set(range(start, start + size))
        in_b |= set(range(other, other + size))
    return in_a, in_b


def _sanitized(text: str, place: Range) -> Range:
    """A range of a text, in the text on one line."""
    if place.start == place.end:
        return Range(0, 0)
    before = sanitize(text[: place.start])
    space = bool(before) and (text[place.start - 1].isspace() or text[place.start].isspace())
    return Range(len(before) + space, len(sanitize(text[: place.end])))


def _marked_lines(text: str, inside: set[int], width: int, *, bold: bool) -> Iterator[tuple[str, int]]:
    """The text in lines, each with its number of columns; a mark is closed at the end of its line."""
    on, off = (_BOLD, _PLAIN) if bold else ("«", "»")
    start = 0
    while start < len(text):
        stop = line_end(text, start, width if bold else width - 4)
        line, marks, is_open = "", 0, False
        for i in range(start, stop):
            if (i in inside) != is_open:
                is_open = not is_open
                line += on if is_open else off
                marks += 1
            line += text[i]
        yield line + (off if is_open else ""), columns(text[start:stop]) + (0 if bold else marks + is_open)
        start = stop + (stop < len(text) and text[stop] == " ")
