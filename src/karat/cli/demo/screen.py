"""The screen of `karat demo`: two retrievers over the bundled example, and where the better one fails."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from shutil import copyfile
from typing import Any

import msgspec

from karat._internal.display import (
    bold,
    cell_width,
    commands,
    cut_label,
    heading,
    p_equals,
    paragraph,
    sanitize,
    signed,
    span,
    text_table,
)
from karat._internal.output import atomic_path, temporary_folder, write_text
from karat.analysis.compare import compare
from karat.analysis.diagnose import diagnose
from karat.analysis.diagnose.miss import Miss
from karat.cli.demo.example import RETRIEVERS, corpus, queries
from karat.metrics import DEFAULT
from karat.pipeline import evaluate
from karat.report.run import footnotes, metric_comments
from karat.report.slices import side_by_side
from karat.run import Run

_DEPTH, _K, _SHOWN = 10, 5, 3
_TWO_HOPS = "How quickly does support answer on the cheapest plan that can connect Okta?"
_SEARCHES = {
    "connect Okta to a workspace": "single-sign-on",
    "support response times on Business": "support-response-times",
}
"""The two searches of that question, and the page that each must find: the second is known only after the first."""


def samples(retriever: str) -> list[dict[str, Any]]:
    """The queries with what a retriever returns for each, run now."""
    return [
        {
            "id": query.id,
            "query": query.query,
            "retrieved": _best(retriever, query.query, _DEPTH),
            "gold": [{"id": page, "grade": grade, "text": _text(page)} for page, grade in query.gold.items()],
            "topic": query.topic,
            **({} if query.answerable else {"answerable": False}),
        }
        for query in queries()
    ]


def two_hops(retriever: str) -> list[dict[str, Any]]:
    """A question that takes two searches, with what each returns."""
    steps = [{"query": asked, "retrieved": _best(retriever, asked, _K)} for asked in _SEARCHES]
    gold = [{"id": page, "hop": hop, "text": _text(page)} for hop, page in enumerate(_SEARCHES.values(), 1)]
    return [{"id": "two-hop", "query": _TWO_HOPS, "steps": steps, "gold": gold}]


def _best(retriever: str, asked: str, depth: int) -> list[dict[str, Any]]:
    scores = RETRIEVERS[retriever](corpus(), asked)
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:depth]
    return [{"id": page, "score": score, "text": _text(page)} for page, score in best]


def _text(page: str) -> str:
    return next(f"{one.title}. {one.text}" for one in corpus() if one.id == page)


def runs() -> dict[str, Run]:
    """The run of each retriever."""
    return {name: evaluate(samples(name), f"{DEFAULT} false_alarm@{_K}") for name in RETRIEVERS}


def show(program: str = "karat", folder: Path = Path("karat-demo")) -> str:
    """The whole screen; the commands at its end begin with `program`."""
    found = runs()
    name, best = next(iter(found.items()))
    p = best.provenance
    about = f"karat demo · {len(best)} queries over {len(corpus())} short documents · two retrievers, run just now"
    missed = [
        [m.query_id, f'"{sanitize(m.query or "", cell_width(46))}"', cut_label(m.gold, cell_width(40)), m.text]
        for m in misses(best)
    ]
    lines = [heading(f"{about} · judge: {p.judge} · convention: {p.convention}"), ""]
    lines += [side_by_side(found, metric_comments(best)), *footnotes(best), "", *map(paragraph, _verdict(found)), ""]
    lines += [bold(f"Three misses of {name} at {_K}, and why"), text_table(missed), "", _next(program, folder)]
    return "\n".join(lines)


def files(folder: Path) -> list[Path]:
    """The files of the demo in a folder: the samples, those with steps, a run of each retriever, and the report."""
    saved = (f"{name}.parquet" for name in RETRIEVERS)
    return [folder / name for name in ("samples.jsonl", "two-hop.jsonl", *saved, "report.html")]


def write(folder: Path, *, force: bool = False) -> list[Path]:
    """Write the files; return those that are kept, because the user changed them."""
    kept = []
    with temporary_folder() as place:
        _make(place)
        for new, old in zip(files(place), files(folder), strict=True):
            there = old.read_bytes() if old.exists() else b""
            if there and there != new.read_bytes() and not force:
                kept.append(old)
            elif there != new.read_bytes():
                with atomic_path(old) as path:
                    copyfile(new, path)
    return kept


def _make(folder: Path) -> None:
    """Write the files into an empty folder; the report compares the first run with the second."""
    found = runs()
    for name, run in found.items():
        run.save(folder / f"{name}.parquet")
    first, second = found
    for name, rows in (("samples.jsonl", samples(first)), ("two-hop.jsonl", two_hops(first))):
        write_text(folder / name, "".join(f"{msgspec.json.encode(row).decode()}\n" for row in rows))
    found[first].report(folder / "report.html", baseline=folder / f"{second}.parquet")


def misses(run: Run) -> list[Miss]:
    """A few gold items that are not in the top k, with different causes if there are several."""
    by_cause: dict[str, list[Miss]] = {}
    for miss in diagnose(run, k=_K).misses:
        by_cause.setdefault(miss.cause, []).append(miss)
    turns = max(map(len, by_cause.values()), default=0)
    taken = [group[turn] for turn in range(turns) for group in by_cause.values() if turn < len(group)]
    return sorted(taken[:_SHOWN])


def _verdict(found: dict[str, Run]) -> list[str]:
    """The better one of the two, and how sure that is."""
    (name, best), (other, worse) = found.items()
    row = next(row for row in compare(worse, best, names=(other, name)).rows if row.metric == f"recall@{_K}")
    sure = f"{signed(row.difference)} {span(row.low, row.high, sign='+')}, {p_equals(row.p)}"
    return [
        f"{name} compared with {other} on {row.metric}: {sure} · {row.won} won, {row.tied} tied, {row.lost} lost",
        "p: paired sign-flip test, corrected for the number of metrics (Holm).",
    ]


def _next(program: str, folder: Path) -> str:
    page, first, second, hops = (
        quote(str(folder / name)) for name in ("report.html", "first-words.parquet", "bm25.parquet", "two-hop.jsonl")
    )
    rows = [
        (f"open {page}", "the report: curves, slices, misses, and each query with its texts"),
        (f"{program} view {quote(str(folder))}", "the same in the browser, with the runs side by side"),
        (f"{program} compare {first} {second}", "which queries moved"),
        (f"{program} diagnose {second} q01", "one query in full"),
        (f"{program} eval {hops} recall@5", "a question that takes two searches"),
        (f'{program} eval your.jsonl "recall@5 ndcg@10"', '{"query": …, "retrieved": […], "gold": […]} per line'),
        (f"{program} init", "a commented starter and a workflow for CI"),
    ]
    return f"{bold('Next')}\n{commands(rows)}"
