"""A fusion: the means of each leg and of the fused rankings, the best leg compared with them, and the sweep."""

from __future__ import annotations

from typing import Any

from karat._internal.display import (
    bold,
    cut_name,
    heading,
    number,
    p_equals,
    paragraph,
    percent,
    plural,
    sanitize,
    signed,
    span,
    style,
    text_table,
)
from karat._internal.grammar import write
from karat._internal.writers import html_table, plain, to_csv
from karat.analysis.fuse import FUSED, Fusion
from karat.analysis.fuse.fusion_sweep import FEW, FusionSweep
from karat.report import comparison as of_two
from karat.report.forms import code, escape, table
from karat.report.fusion_notes import FUSION_SENTENCES
from karat.stats import ALPHA

_NAME = 24
_SHOWN = 5
"""The number of settings of a sweep that are listed."""


def terminal(fusion: Fusion) -> str:
    """The means of the legs and of the fused rankings, the sweep, and the comparison with the best leg."""
    header, *rows = _means(fusion, _NAME)
    right = range(1, len(header))
    lines = [heading(_caption(fusion)), "", text_table([[*map(bold, header)], *rows], right=right)]
    lines += map(paragraph, _facts(fusion))
    if fusion.sweep is not None:
        lines += ["", heading(_sweep_caption(fusion.sweep)), "", *_sweep_lines(fusion.sweep)]
    if fusion.comparison is not None:
        lines += ["", of_two.terminal(fusion.comparison)]
    return "\n".join(lines)


def markdown(fusion: Fusion) -> str:
    """The same as Markdown."""
    header, *rows = _means(fusion)
    parts: list[str] = [escape(_caption(fusion))]
    parts.append(
        table(["", *map(code, header[1:])], [[code(name), *cells] for name, *cells in rows], range(1, len(header)))
    )
    parts += map(escape, _facts(fusion))
    if fusion.sweep is not None:
        head, *settings = _settings(fusion.sweep)
        shown = [[code(method), *cells] for method, *cells in settings]
        parts += [
            escape(_sweep_caption(fusion.sweep)),
            *map(escape, _verdict(fusion.sweep)),
            table(head, shown, (2, 3)),
        ]
    if fusion.comparison is not None:
        parts.append(of_two.markdown(fusion.comparison))
    return "\n\n".join(parts)


def html(fusion: Fusion) -> str:
    """The same as HTML tables, for notebooks."""
    header, *rows = _means(fusion)
    shown = html_table(header, rows, " · ".join([_caption(fusion), *_facts(fusion)]))
    if fusion.sweep is not None:
        head, *settings = _settings(fusion.sweep)
        shown += html_table(head, settings, " · ".join([_sweep_caption(fusion.sweep), *_verdict(fusion.sweep)]))
    return shown + ("" if fusion.comparison is None else of_two.html(fusion.comparison))


def csv(fusion: Fusion) -> str:
    """One row per query, item and rank of the fused rankings."""
    import polars as pl

    rows = [
        {"query_id": query, "rank": rank, "id": item, "score": score}
        for query, items in fusion.retrieved.items()
        for rank, (item, score) in enumerate(items.items(), 1)
    ]
    types = {"query_id": pl.String(), "rank": pl.Int64(), "id": pl.String(), "score": pl.Float64()}
    return to_csv(pl.DataFrame(rows, schema=types))


def data(fusion: Fusion) -> dict[str, Any]:
    """Everything that is shown of a fusion, as plain values."""
    run, sweep = fusion.run, fusion.sweep
    values: dict[str, Any] = {
        "method": fusion.method,
        "weights": fusion.weights,
        "legs": fusion.names,
        "queries": len(fusion),
        "depth": fusion.depth,
        "means": {} if run is None else {n: dict(leg.mean) for n, leg in zip(fusion.names, fusion.legs, strict=True)},
        "fused": {} if run is None else dict(run.mean),
        "ceiling": fusion.ceiling,
        "within_depth": fusion.within_depth,
        "remarks": remarks(fusion),
        "comparison": None if fusion.comparison is None else of_two.data(fusion.comparison),
        "sweep": None if sweep is None else _sweep_data(sweep),
    }
    return dict(plain(values))


def remarks(fusion: Fusion) -> list[str]:
    """One sentence per note."""
    return [sanitize(FUSION_SENTENCES[note.kind](note, None)) for note in fusion.notes]


def _caption(fusion: Fusion) -> str:
    legs = ", ".join(cut_name(name, _NAME) for name in fusion.names)
    depth = "" if fusion.depth is None else f" · top {fusion.depth:,}"
    return sanitize(f"{fusion.fuser.described()} of {legs} · {plural(len(fusion), 'query', 'queries')}{depth}")


def _means(fusion: Fusion, width: int | None = None) -> list[list[str]]:
    """A row per metric with the means of each leg and of the fused run; the number of items if there are no runs."""
    names = [cut_name(name, width) for name in fusion.names]
    if fusion.run is None:
        items = sum(map(len, fusion.retrieved.values()))
        return [["", *names, FUSED], ["items", *(f"{size:,}" for size in fusion.sizes), f"{items:,}"]]
    every = [*fusion.legs, fusion.run]
    return [["", *names, FUSED], *([name, *(number(run.mean[name]) for run in every)] for name in fusion.run.scores)]


def _facts(fusion: Fusion) -> list[str]:
    """The ceiling, and a sentence per note."""
    lines = []
    if fusion.ceiling == fusion.ceiling:
        top = "" if fusion.depth is None else f", {percent(fusion.within_depth)} within rank {fusion.depth:,}"
        lines.append(f"Ceiling: {percent(fusion.ceiling)} of the gold was found by any leg{top} (mean over queries).")
    return [*lines, *remarks(fusion)]


def _sweep_caption(sweep: FusionSweep) -> str:
    tried = plural(len(sweep.settings), "setting", "settings")
    return f"Sweep by {sweep.metric} · {tried} · {sweep.folds} folds · {plural(sweep.queries, 'query', 'queries')}"


def _verdict(sweep: FusionSweep) -> list[str]:
    """The gain on held-out queries, and how stable the choice is."""
    test, winner = sweep.held_out, sweep.winner
    ends = span(test.low, test.high, 3, "+")
    gain = f"{signed(test.difference)} {ends}".rstrip()
    means = f"fused {number(sweep.held_out_fused)}, best single leg {number(sweep.held_out_leg)}"
    chosen = f"chosen in {winner.chosen} of {sweep.folds} folds"
    lines = [
        f"On held-out queries: {means}, gain {gain}, {p_equals(test.p)}. Both were chosen on the other queries.",
        f"Best on all queries: {winner.fuser.described()}: {sweep.metric} {number(winner.mean)}, {chosen}.",
        "That mean, and the comparison below, are too favourable by the choice; the gain on held-out queries is not.",
    ]
    if sweep.queries < FEW:
        lines.append(f"{plural(sweep.queries, 'query is', 'queries are')} few: which setting wins is mostly chance.")
    return lines


def _settings(sweep: FusionSweep) -> list[list[str]]:
    """The best settings, and the others that a fold chose."""
    shown = [one for place, one in enumerate(sweep.settings) if place < _SHOWN or one.chosen]
    rows = [
        [str(one.fuser), _weights(one.fuser.weights), number(one.mean), f"{one.chosen} of {sweep.folds}"]
        for one in shown
    ]
    return [["setting", "weights", sweep.metric, "chosen in folds"], *rows]


def _weights(weights: tuple[float, ...] | None) -> str:
    return "" if weights is None else ", ".join(map(write, weights))


def _sweep_lines(sweep: FusionSweep) -> list[str]:
    header, *rows = _settings(sweep)
    first, *others = _verdict(sweep)
    better = sweep.held_out.p < ALPHA
    kind = "unsure" if not better else "good" if sweep.held_out.difference > 0 else "bad"
    facts = [paragraph(style(first, kind)), *map(paragraph, others)]
    return [*facts, "", text_table([[*map(bold, header)], *rows], right=(2, 3))]


def _sweep_data(sweep: FusionSweep) -> dict[str, Any]:
    return {
        "metric": sweep.metric,
        "folds": sweep.folds,
        "queries": sweep.queries,
        "held_out": {"leg": sweep.held_out_leg, "fused": sweep.held_out_fused, **sweep.held_out._asdict()},
        "legs": sweep.legs,
        "settings": [
            {"method": str(one.fuser), "weights": one.fuser.weights, "mean": one.mean, "chosen": one.chosen}
            for one in sweep.settings
        ],
    }
