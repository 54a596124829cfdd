"""What `karat demo` shows: two retrievers over the bundled example, and where the better one fails."""

from __future__ import annotations

from typing import Any, NamedTuple

from karat.demo import RETRIEVERS, corpus, queries
from karat.demo.retrievers import words
from karat.evaluation import evaluate
from karat.report.terminal import side_by_side
from karat.run import Run
from karat.tables import clean, text_table

_DEPTH, _K, _SHOWN = 10, 5, 3


class Miss(NamedTuple):
    """A gold item that is not in the top k, and why."""

    query: str
    text: str
    gold: str
    cause: str


def samples(retriever: str) -> list[dict[str, Any]]:
    """The queries with what a retriever returns for each, run now."""
    rows = []
    for query in queries():
        scores = RETRIEVERS[retriever](corpus(), query.query)
        best = dict(sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:_DEPTH])
        rows.append(
            {
                "id": query.id,
                "query": query.query,
                "retrieved": best,
                "gold": query.gold,
                "topic": query.topic,
            }
        )
    return rows


def runs() -> dict[str, Run]:
    """The run of each retriever."""
    return {name: evaluate(samples(name)) for name in RETRIEVERS}


def show(program: str = "karat") -> str:
    """The whole screen; the commands at its end begin with the program as it was called."""
    found = runs()
    name, best = next(iter(found.items()))
    p = best.provenance
    return "\n".join(
        [
            f"karat demo · {len(best)} queries over {len(corpus())} short documents · "  # noqa: ISC004
            f"two retrievers, run just now · judge: {p.judge} · convention: {p.convention}",
            "",
            side_by_side(found),
            "",
            f"Three misses of {name} at {_K}, and why",
            text_table([[m.query, f'"{clean(m.text, 46)}"', m.gold, m.cause] for m in misses(best)]),
            "",
            _next(program),
        ]
    )


def misses(run: Run) -> list[Miss]:
    """Some gold items that the top k lack, of different causes where there are any."""
    every = [
        Miss(query.id, query.query, item.gold, _cause(query.query, item.gold, item.rank))
        for query in queries()
        for item in run.gold(query.id)
        if item.rank is None or item.rank > _K
    ]
    by_cause: dict[str, list[Miss]] = {}
    for miss in every:
        by_cause.setdefault(miss.cause.partition(":")[0][:6], []).append(miss)
    turns = max(map(len, by_cause.values()), default=0)
    taken = [group[turn] for turn in range(turns) for group in by_cause.values() if turn < len(group)]
    return sorted(taken[:_SHOWN])


def _cause(query: str, gold: str, rank: int | None) -> str:
    if rank is not None:
        return f"at rank {rank}: below {_K}, recall@{_DEPTH} finds it"
    page = next(d for d in corpus() if d.id == gold)
    shared = set(words(query)) & set(words(f"{page.title} {page.text}"))
    if not shared:
        return "not retrieved: no word in common with the query"
    return f"below rank {_DEPTH}: shares only {', '.join(sorted(shared)[:3])}"


def _next(program: str) -> str:
    rows = [
        [f"{program} demo --samples demo.jsonl", "the samples behind this, to see the format"],
        [f'{program} eval demo.jsonl "recall@5 ndcg@10"', "evaluate a file; put yours in its place:"],
        ["", '{"query": …, "retrieved": […], "gold": […]} per line'],
        [f"{program} metrics", "every metric and what it says"],
    ]
    return f"Next\n{text_table(rows)}"
