"""A run as one HTML page: curves, slices, causes, and every query with its texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePath

from karat._internal.display import cut_name, plural
from karat._internal.writers import content_hash
from karat.analysis.compare import Comparison
from karat.analysis.diagnose import Diagnosis
from karat.analysis.sweep.grid import label
from karat.errors import BadArgument
from karat.report.html.curves import curves
from karat.report.html.filters import Filters
from karat.report.html.markup import Element, block, data, h, plain, write
from karat.report.html.precision_recall import precision_recall
from karat.report.html.queries import Queries
from karat.report.html.score_pairs import compared_scores
from karat.report.html.scores import baseline_name, headline, means, slices
from karat.report.html.sections import against, aspects, misses, summary_section
from karat.report.html.steps_section import steps
from karat.report.html.threshold_curve import threshold_curve
from karat.report.html.token_section import token_curve
from karat.report.repeats import count
from karat.run import Run
from karat.run.lazy_run import LazyRun

_STYLES = ("theme.css", "style.css", "opened_query.css", "comparison.css")
_FIRST = "theme.js"
"""The script in the head: it runs before anything is drawn, so that no other theme is seen first."""
_SCRIPTS = ("charts.js", "queries.js")


def report(
    run: Run,
    path: str | os.PathLike[str],
    *,
    baseline: Run | str | os.PathLike[str] | None = None,
    allow_mismatch: bool = False,
    summary: str | Sequence[str] = (),
) -> None:
    """Write the page.

    A baseline with other queries, gold or settings is refused; `allow_mismatch` compares the shared queries.
    """
    from karat._internal.output import check_outputs, write_text
    from karat.analysis.compare import compare
    from karat.analysis.diagnose import diagnose

    if Path(path).suffix == ".parquet":
        raise BadArgument("a report is an HTML page; this file would replace a run", got=str(path), hint="report.html")
    check_outputs({"": path}, [run.file, None if isinstance(baseline, Run) else baseline])
    comparison = None
    if baseline is not None:
        file = baseline.file if isinstance(baseline, Run) else baseline
        name = "baseline" if file is None else Path(file).stem
        comparison = compare(baseline, run, names=(name, "this run"), allow_mismatch=allow_mismatch)
    write_text(path, page(run, diagnose(run), comparison, summary))


def page(
    run: Run, diagnosis: Diagnosis, comparison: Comparison | None = None, summary: str | Sequence[str] = ()
) -> str:
    """The page of a run, with what it missed, the requested summaries and, if there is a baseline, the comparison."""
    causes = {(miss.query_id, miss.item): miss.text for miss in diagnosis.misses}
    baseline = None if comparison is None else comparison.runs[0].with_repeats
    filters = Filters(run, headline(run), diagnosis)
    before = "" if comparison is None else baseline_name(comparison)
    queries = Queries(run, causes, baseline, filters, before=before)
    sections = [
        means(run, comparison, filters.score),
        against(comparison, queries.place) if comparison is not None else None,
        compared_scores(comparison, headline(run), filters.rows) if comparison is not None else None,
        summary_section(run, summary, comparison),
        steps(run),
        aspects(run),
        curves(run, baseline, before),
        token_curve(run, baseline, before),
        precision_recall(run, baseline, before),
        threshold_curve(run),
        slices(run, comparison, filters.slice),
        misses(diagnosis, queries.place, filters.cause),
    ]
    every, for_script = queries.section()  # after the others, which name the filters
    sections += [every, provenance(run)]
    there = [section for section in sections if section is not None]
    return whole_page(
        _title(run), h("body", _top(run, there, comparison), h("main", *there)), block(for_script, "data")
    )


def whole_page(title: str, body: Element, more: str = "") -> str:
    """The text of a page, with karat's own style and script; `more` is for the script."""
    rest = f"{more}<script>{_script()}</script></body></html>\n"
    return f'<!DOCTYPE html>\n<html lang="en">{_head(title)}{write(body).removesuffix("</body>")}{rest}'


def brand() -> Element:
    """The first line of a page, with the button for the theme."""
    button = h("button", "◐", type="button", id="theme", hidden="", aria_label="Dark or light theme")
    return h("p.brand", "karat", button)


def _head(title: str) -> str:
    """The head of a page: the security policy, and karat's own style."""
    style, first, script = map(content_hash, (_style(), _own(_FIRST), _script()))
    allowed = f"default-src 'none'; img-src data:; style-src {style}; script-src {first} {script}"
    about = [
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=f"{allowed}; base-uri 'none'; form-action 'none'"),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="color-scheme", content="light dark"),
        h("link", rel="icon", href="data:,"),
        h("title", f"{cut_name(title, 80)} · karat"),
    ]
    return f"<head>{''.join(map(write, about))}<style>{_style()}</style><script>{_own(_FIRST)}</script></head>"


def _top(run: Run, sections: list[Element], comparison: Comparison | None) -> Element:
    p = run.provenance
    why = f" ({p.judge_reason})" if p.judge_reason else ""
    size = "" if run.gold_size != run.gold_size else f" · {run.gold_size:.1f} gold items per query"
    links = [h("a", _heading(section), href=f"#{section.attributes['id']}") for section in sections]
    return h(
        "header",
        brand(),
        h("h1", data(_title(run))),
        h(
            "p",
            f"{count(run)}{size} · judge: ",
            data(p.judge),
            why,
            f" · convention: {p.convention}",
        ),
        None if comparison is None else _compared(comparison),
        *(h("p.note", data(remark)) for remark in run.remarks()),
        h("nav", *links, aria_label="Sections"),
    )


def _compared(comparison: Comparison) -> Element:
    """The name of the baseline, and the number of metrics in which either run is better."""
    verdicts = [row.verdict for row in comparison.rows]
    better, worse = verdicts.count("better"), verdicts.count("worse")
    unclear = f", no clear difference in {len(verdicts) - better - worse}"
    counts = (
        f"this run is better in {better} of {plural(len(verdicts), 'metric', 'metrics')}, worse in {worse}{unclear}"
    )
    if comparison.names[0] == "baseline":
        return h("p", f"compared with the baseline: {counts}")
    return h("p", "baseline: ", h("b", data(comparison.names[0])), f" · {counts}")


def _heading(section: Element) -> str:
    return plain(section.inside[0])


def provenance(run: Run | LazyRun) -> Element:
    """The settings of the run: enough to repeat it."""
    p = run.provenance
    facts = {
        "source": p.source,
        "metrics": " ".join(p.metrics),
        "judge": p.judge,
        "convention": p.convention,
        "tokens counted by": p.tokens,
        "settings of the retriever": label(p.settings),
        "digest of queries and gold": run.gold_hash,
        "commit": run.commit,
        "karat": p.karat,
    }
    pairs = [h("div", h("dt", name), h("dd", data(value))) for name, value in facts.items() if value]
    sure = "Intervals: Gaffke's bound, computed without random draws, so the same run gives the same page."
    return h("section", h("h2", "Provenance"), h("dl", *pairs), h("p.note", sure), id="provenance")


def _title(run: Run) -> str:
    """The name of the run file, or of the source of its samples."""
    if run.file is not None:
        return PurePath(run.file).stem
    return PurePath(run.provenance.source).name or run.provenance.source


@cache
def _style() -> str:
    return "".join(map(_own, _STYLES))


@cache
def _script() -> str:
    return "".join(map(_own, _SCRIPTS))


@cache
def _own(name: str) -> str:
    """A file of this folder, which needs no escaping."""
    return (files("karat.report.html") / name).read_text("utf-8")
