"""Stages of a pipeline: their means and ceilings, the differences, what the last one moved, and a conclusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat._internal.display import (
    bold,
    cell_width,
    cut_label,
    cut_name,
    heading,
    number,
    p_value,
    paragraph,
    percent,
    plural,
    sanitize,
    signed,
    span,
    style,
    text_table,
)
from karat._internal.writers import html_table, html_text, plain, to_csv
from karat.analysis.pairs import Row
from karat.analysis.stages import StageChange, StageMove, Stages, without_ideal
from karat.report import measures
from karat.report.forms import bullets, code, escape, table
from karat.report.notes import remarks as run_remarks
from karat.run import Run
from karat.samples.notes import Note

_NAME, _QUERY, _LABEL = 24, 30, 30
_SHOWN = 5
"""Queries whose moved gold is listed."""
_VERDICT = {"better": "good", "worse": "bad", "cannot tell": "unsure", "same": "plain"}
_MOVED = ("query", "text", "gold", "ranks")


def terminal(stages: Stages, shown: int = _SHOWN) -> str:
    """The means, the differences, the ideals, what was moved, and the conclusion."""
    means, best = _means(stages), _ideals(stages)
    lines = [heading(_heading(stages)), "", text_table([[*map(bold, means[0])], *means[1:]])]
    for change in stages.comparison:
        rows = [[row.metric, *_change(row)] for row in change.rows]
        for row, cells in zip(change.rows, rows, strict=True):
            cells[3] = style(cells[3], _VERDICT[row.verdict])
        lines += ["", heading(_compared(change)), text_table([["", *map(bold, _header(change))], *rows], right=(1, 4))]
    if best:
        title = heading("What an ideal reranking of the candidates would reach")
        lines += ["", title, text_table([[*map(bold, best[0])], *best[1:]], right=range(1, len(best[0])))]
    for verb, mark, moves in _moved(stages):
        if moves:
            rows = [_move(move, cell_width(_NAME)) for move in _of_queries(moves, shown)]
            more = _more(moves, shown)
            lines += ["", heading(f"{mark} {_title(stages, verb, moves)}"), text_table(rows)]
            lines += [paragraph(more)] if more else []
    lines += ["", *map(paragraph, remarks(stages)), "", paragraph(bold(conclusion(stages)), "", "")]
    return "\n".join(lines)


def markdown(stages: Stages, shown: int = _SHOWN) -> str:
    """The same as Markdown."""
    parts: list[str] = [escape(_heading(stages)), escape(conclusion(stages))]
    for header, *rows in filter(None, (_means(stages), _ideals(stages))):
        name = "ideal reranking of" if len(parts) > 2 else "stage"
        cells = [[code(stage), *own] for stage, *own in rows]
        parts.append(table([name, *map(code, header[1:])], cells, right=range(1, len(header))))
    for change in stages.comparison:
        rows = [[code(row.metric), *_change(row)] for row in change.rows]
        parts += [escape(_compared(change)), table(["metric", *_header(change)], rows, right=(1, 4))]
    for verb, _, moves in _moved(stages):
        if moves:
            rows = [[code(query), *cells] for query, *cells in map(_move, _of_queries(moves, shown))]
            parts += [escape(_title(stages, verb, moves)), table(_MOVED, rows), escape(_more(moves, shown))]
    return "\n\n".join(filter(None, [*parts, bullets(remarks(stages))]))


def html(stages: Stages) -> str:
    """The same as HTML tables, for notebooks."""
    head, *rows = _means(stages)
    shown = html_table(head, rows, f"{_heading(stages)} · {conclusion(stages)}")
    for change in stages.comparison:
        shown += html_table(
            ("", *_header(change)), [[row.metric, *_change(row)] for row in change.rows], _compared(change)
        )
    if best := _ideals(stages):
        shown += html_table(best[0], best[1:], "What an ideal reranking of the candidates would reach")
    for verb, _, moves in _moved(stages):
        if moves:
            shown += html_table(_MOVED, list(map(_move, _of_queries(moves, _SHOWN))), _title(stages, verb, moves))
    return shown + "".join(f"<p>{html_text(line)}</p>" for line in remarks(stages))


def csv(stages: Stages) -> str:
    """One row for each stage and metric."""
    return to_csv(stages.table)


def data(stages: Stages) -> dict[str, Any]:
    """Everything that is shown, as plain values; every gold item that was moved."""
    candidates = stages.candidates
    return dict(
        plain(
            {
                "queries": len(stages),
                "k": stages.k,
                "metrics": stages.metrics,
                "stages": {name: _stage_data(stages, name, run) for name, run in stages.runs.items()},
                "comparison": [change._asdict() | {"rows": list(map(_row_data, change.rows))}
                               for change in stages.comparison],
                "candidates": {
                    "legs": candidates.legs,
                    "ceiling": candidates.ceiling,
                    "ideal": candidates.ideal.mean,
                },
                "lifted": stages.lifted,
                "pushed_out": stages.pushed_out,
                "new_items": stages.new_items,
                "new_gold": stages.new_gold,
                "conclusion": conclusion(stages),
                "remarks": remarks(stages),
            }
        )
    )  # fmt: skip


def _stage_data(stages: Stages, name: str, run: Run) -> dict[str, Any]:
    return {
        "queries": len(run.queries),
        "mean": run.mean,
        "interval": {metric: list(ends) for metric, ends in run.interval().items()},
        "ceiling": stages.ceiling[name],
        "ideal": stages.ideal[name].mean,
    } | ({"measures": measures.data(run)} if run.measures else {})


def _row_data(row: Row) -> dict[str, Any]:
    values = {name: value for name, value in row._asdict().items() if name != "pairs"}
    return values | {"verdict": row.verdict}


def conclusion(stages: Stages) -> str:
    """One sentence: what the last stage lifts and pushes out, and what its candidates lack."""
    lifted, pushed = len(stages.lifted), len(stages.pushed_out)
    ceiling = stages.candidates.ceiling
    if not ceiling.gold:
        rest = "the queries have no gold"
    elif not ceiling.missing:
        rest = "all of the gold is among its candidates"
    else:
        items = f"{ceiling.missing:,} of {plural(ceiling.gold, 'item', 'items')}"
        rest = f"{percent(ceiling.missing / ceiling.gold)} of the gold ({items}) is not among its candidates"
    moved = f"lifts {plural(lifted, 'gold item', 'gold items')} into the top {stages.k} and pushes {pushed:,} out"
    return f"{_name(stages.last)} {moved}; {rest}."


def remarks(stages: Stages) -> list[str]:
    """Sentences on how the stages were read and what was left out, and the remarks on their runs."""
    last, legs = _name(stages.last), _listed(stages.candidates.legs)
    several = len(stages.candidates.legs) > 1
    lines = [
        f"{last} is taken as a reranking of {legs}{' together' * several}. A gold item is lifted if it is in the top "
        f"{stages.k} of {last} and of no stage before it, and pushed out if it is in the top {stages.k} of a stage "
        f"before it and not of {last}."
        if several
        else f"{last} is taken as a reranking of {legs}.",
        "Ceiling: the share of the gold that is anywhere among the items of a stage, the mean over the queries.",
    ]
    tests = sum(len(change.rows) for change in stages.comparison)
    if tests > 1:
        but = "; the intervals are not" * any(map(_has_interval, stages.comparison))
        lines.append(f"p is corrected for {tests} differences (Holm){but}.")
    if absent := [name for name in without_ideal(stages.runs[stages.last]) if name in stages.metrics]:
        lines.append(f"The ideal reranking puts gold first; it is not one for {', '.join(absent)}.")
    lines += [*_new_items(stages), *map(_missing, stages.notes), *_of_runs(stages.runs)]
    return [sanitize(line) for line in lines]


def _new_items(stages: Stages) -> list[str]:
    """A remark on the items that only the last stage has."""
    last, found = _name(stages.last), stages.new_items
    gold = f"; {plural(stages.new_gold, 'gold item is', 'gold items are')} found by it alone" * (stages.new_gold > 0)
    if found is None:
        return [f"The runs do not store every item: it is not known if {last} has items of its own{gold}."]
    if not found.new:
        return []
    items = f"{found.new:,} of its {plural(found.items, 'item', 'items')}"
    return [f"{last} does more than rerank: {items} ({_queries(found.queries)}) are in no stage before it{gold}."]


def _missing(note: Note) -> str:
    """The sentence on a stage that some queries lack, or on the queries that lack none."""
    if note.kind == "stage_missing":
        more = ", …" if note.count > len(note.examples) else ""
        which = ", ".join(cut_name(query, _NAME) for query in note.examples)
        return f"{_name(note.details['stage'])} is missing for {note.count:,} of {_queries(note.of)} ({which}{more})."
    return (
        "Differences are over the queries that have both stages. What was lifted, pushed out or is among the "
        f"candidates is over the {_queries(note.count)} with every stage."
    )


def _of_runs(runs: dict[str, Run]) -> list[str]:
    """The remarks on the runs; one that holds for every stage is given once."""
    own = {name: run_remarks(run) for name, run in runs.items()}
    every = [line for line in next(iter(own.values())) if all(line in lines for lines in own.values())]
    return [*every, *(f"{_name(name)}: {line}" for name, lines in own.items() for line in lines if line not in every)]


def _heading(stages: Stages) -> str:
    p = stages.runs[stages.last].provenance
    names = f"{', '.join(map(_name, stages.candidates.legs))} → {_name(stages.last)}"
    conventions = " and ".join(dict.fromkeys(run.convention.name for run in stages.runs.values()))
    return sanitize(
        f"{names} · {_queries(len(stages))} · judge: {p.judge} · convention: {conventions} · k = {stages.k}"
    )


def _means(stages: Stages) -> list[list[str]]:
    """A header, and a row per stage: the means with their intervals, and the ceiling."""
    sizes = len({len(run) for run in stages.runs.values()}) > 1
    rows = [["", *["queries"] * sizes, *stages.metrics, *_measures(stages), "ceiling"]]
    for name, run in stages.runs.items():
        ends = run.interval()
        cells = [f"{number(run.mean[metric])} {span(*ends[metric])}".rstrip() for metric in stages.metrics]
        cells += [*_medians(run), number(stages.ceiling[name].mean)]
        rows.append([_name(name), *[f"{len(run):,}"] * sizes, *cells])
    return rows


def _ideals(stages: Stages) -> list[list[str]]:
    """A header, and a row per stage, and one for the stages before the last together; nothing if all are ideal."""
    best = [(_name(name), run, stages.ceiling[name]) for name, run in stages.ideal.items()]
    legs, ceiling, run = stages.candidates
    if len(legs) > 1:
        best.insert(-1, (" + ".join(map(_name, legs)), run, ceiling))
    shown = [metric for metric in stages.metrics if metric not in without_ideal(stages.runs[stages.last])]
    rows = [
        [name, *(number(run.mean[metric]) for metric in shown), *_medians(run), number(own.mean)]
        for name, run, own in best
    ]
    found = [["", *shown, *_measures(stages), "ceiling"], *rows]
    return [] if found == _means(stages) else found


def _measures(stages: Stages) -> list[str]:
    return [f"{name} (median)" for name in stages.runs[stages.last].measured]


def _medians(run: Run) -> list[str]:
    return [measures.amount(summary.median) for summary in run.measure_summary.values()]


def _change(row: Row) -> list[str]:
    return [signed(row.difference), span(row.low, row.high, 3, "+"), row.verdict, p_value(row.p)]


def _has_interval(change: StageChange) -> bool:
    """True if a difference has an interval: with few queries none has."""
    return any(row.low == row.low for row in change.rows)


def _header(change: StageChange) -> list[str]:
    return ["difference", "95 % interval" * _has_interval(change), "verdict", "p (Holm)"]


def _compared(change: StageChange) -> str:
    return f"{_name(change.after)} compared with {_name(change.before)} · {_queries(change.queries)}"


def _moved(stages: Stages) -> list[tuple[str, str, list[StageMove]]]:
    return [("Lifted into", "▲", stages.lifted), ("Pushed out of", "▼", stages.pushed_out)]


def _title(stages: Stages, verb: str, moves: Sequence[StageMove]) -> str:
    queries = len({move.query_id for move in moves})
    items = plural(len(moves), "gold item", "gold items")
    return f"{verb} the top {stages.k} by {_name(stages.last)}: {items} ({_queries(queries)})"


def _of_queries(moves: Sequence[StageMove], shown: int) -> list[StageMove]:
    """The moves of the first queries."""
    queries = list(dict.fromkeys(move.query_id for move in moves))[:shown]
    return [move for move in moves if move.query_id in queries]


def _more(moves: Sequence[StageMove], shown: int) -> str:
    left = len({move.query_id for move in moves}) - shown
    return f"and {plural(left, 'more query', 'more queries')}" if left > 0 else ""


def _move(move: StageMove, width: int | None = None) -> list[str]:
    """A gold item that was moved: its query, its text or label, and its ranks."""
    before = ", ".join(f"{_name(name)} {_rank(rank)}" for name, rank in move.before.items())
    return [
        cut_name(move.query_id, width),
        sanitize(move.query or "", cell_width(_QUERY)),
        cut_label(move.text or move.gold, cell_width(_LABEL)),
        f"{before} → {_rank(move.after)}",
    ]


def _rank(rank: int | None) -> str:
    return "–" if rank is None else f"{rank:,}"


def _listed(names: Sequence[str]) -> str:
    *first, last = map(_name, names)
    return f"{', '.join(first)} and {last}" if first else last


def _name(name: str) -> str:
    return cut_name(name, _NAME)


def _queries(count: int) -> str:
    return plural(count, "query", "queries")
