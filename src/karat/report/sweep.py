"""A sweep: the settings from the best to the worst, the verdict, recall at equal tokens, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karat._internal.display import bold, heading, paragraph, plural, sanitize
from karat._internal.writers import html_text, plain, to_csv
from karat.analysis.sweep import Sweep
from karat.analysis.sweep.grid import label
from karat.report import standings as ranked
from karat.report.forms import bullets, escape
from karat.report.measures import finite

if TYPE_CHECKING:
    import polars as pl

_KIND, _NAMED = "setting", 4


def terminal(sweep: Sweep) -> str:
    """The table, recall at equal tokens, the verdict, and what failed."""
    blocks = ranked.terminal(sweep.standings)
    stopped = [paragraph(bold(line)) for line in _stopped(sweep)]
    told = [*stopped, *ranked.paragraphs(sweep.standings, _KIND), *map(paragraph, _facts(sweep))]
    return "\n".join([heading(_caption(sweep)), "", *blocks, *told])


def markdown(sweep: Sweep) -> str:
    """The same as Markdown."""
    parts = [
        escape(_caption(sweep)),
        *map(escape, _stopped(sweep)),
        *ranked.markdown(sweep.standings, _KIND),
        bullets(_facts(sweep)),
    ]
    return "\n\n".join(filter(None, parts))


def html(sweep: Sweep) -> str:
    """The same as HTML tables, for notebooks."""
    shown = ranked.html(sweep.standings, _caption(sweep), _KIND)
    return shown + "".join(f"<p>{html_text(line)}</p>" for line in (*_stopped(sweep), *_facts(sweep)))


def page(sweep: Sweep) -> str:
    """The same as a self-contained HTML page, with the chart of recall at equal tokens."""
    from karat.report.html.sweep_page import sweep_page

    files = [sweep.files[row.place] for row in sweep.standings.rows]
    return sweep_page(sweep.standings, _caption(sweep), remarks(sweep), files)


def csv(sweep: Sweep) -> str:
    """One row per setting, the best first."""
    return to_csv(frame(sweep))


def frame(sweep: Sweep) -> pl.DataFrame:
    """One row per setting, the best first: settings, means, medians, tokens, p and whether it may be the best."""
    import polars as pl

    rows = []
    for row in sweep.standings.rows:
        settings = {name: _cell(value) for name, value in row.settings.items()}
        numbers = {**row.means, **{name: finite(value) for name, value in row.measures.items()}}
        numbers = {f"median {name}" if name in settings else name: value for name, value in numbers.items()}
        told = {"tokens": finite(row.tokens), "failed": row.failed, "p": finite(row.p), "possibly_best": row.possible}
        rows.append({**settings, **numbers, **told})
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)


def _cell(value: Any) -> Any:
    return sanitize(value) if isinstance(value, str) else str(value) if isinstance(value, list) else value


def data(sweep: Sweep) -> dict[str, Any]:
    """Everything that is shown, as plain values."""
    failed = [{"settings": one.settings, "error": one.error} for one in sweep.failures]
    values = {
        "folder": sweep.folder,
        "queries": len(sweep.ids),
        **ranked.data(sweep.standings),
        "best": sweep.best,
        "failures": failed,
        "not_tried": sweep.missing,
        "remarks": remarks(sweep),
    }
    return dict(plain(values))


def remarks(sweep: Sweep) -> list[str]:
    """The verdict and the other sentences."""
    return [*_stopped(sweep), *ranked.sentences(sweep.standings, _KIND), *_facts(sweep)]


def _caption(sweep: Sweep) -> str:
    first, queries = sweep.runs[0], plural(len(sweep.ids), "query", "queries")
    return sanitize(
        f"{sweep.folder} · {plural(len(sweep), 'setting', 'settings')} · {queries} · "
        f"judge: {first.provenance.judge} · convention: {first.convention.name} · ranked by {sweep.metric}"
    )


def _facts(sweep: Sweep) -> list[str]:
    """The queries that do not count, and the settings that failed."""
    told = []
    if out := len(sweep.ids) - sweep.standings.queries:
        kept, verb = sweep.standings.queries, "is" if out == 1 else "are"
        told.append(f"Compared over {kept:,} of the queries: {out:,} failed or {verb} undefined in some setting.")
    flawed = [(name, run) for name, run in zip(sweep.names, sweep.runs, strict=True) if run.failures]
    for name, run in flawed[:_NAMED]:
        query, why = next(iter(run.failures.items()))
        what = ("query", "queries") if run.repeats is None else ("call", "calls")
        told.append(f"{name}: {len(run.failures):,} of {plural(len(run), *what)} failed, such as {query}: {why}")
    if len(flawed) > _NAMED:
        told.append(f"Queries failed in {len(flawed) - _NAMED} more settings: see the column failed.")
    return [sanitize(line) for line in [*told, *_failed(sweep)]]


def _stopped(sweep: Sweep) -> list[str]:
    """The settings that were not tried."""
    if not sweep.missing:
        return []
    tried = len(sweep) + len(sweep.failures)
    return [f"Stopped after {tried:,} of {tried + sweep.missing:,} settings; the same command continues."]


def _failed(sweep: Sweep) -> list[str]:
    """The settings that failed, by reason, with the values that they have in common."""
    told, reasons = [], dict.fromkeys(one.error for one in sweep.failures)
    tried = [*(run.provenance.settings for run in sweep.runs), *(one.settings for one in sweep.failures)]
    for error in reasons:
        own = [one.settings for one in sweep.failures if one.error == error]
        shared = [name for name in own[0] if _same(own, name) and not _same(tried, name)]
        which = f"{len(own)} settings" + (f" with {label(own[0], shared)}" if shared else "")
        told.append(f"{which if len(own) > 1 else label(own[0])} failed: {error}")
    return told


def _same(settings: Sequence[Mapping[str, Any]], name: str) -> bool:
    return len({repr(one.get(name)) for one in settings}) == 1
