"""The files of `karat label`, read and written in a process of its own: the server that follows loads no Polars.

Before: the pool, or the holes of a run, or a sample of its judgements; the opinions of a model; the order of the work.
After: gold, and qrels.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from karat import errors
from karat._internal.display import plural
from karat._internal.output import atomic_path
from karat.errors import BadArgument, KaratError
from karat.web.label.label_work import Work

if TYPE_CHECKING:
    from karat.gold.labels import Key, Label
    from karat.gold.pool import Pool

T = TypeVar("T")
Opinions = dict[tuple[str, str], float]
"""The grade that a model gave, by the id of the query and the key of the item."""


class Wanted(msgspec.Struct, frozen=True):
    """The files and settings of a command."""

    source: str
    """The pool, or the run whose holes or judgements are labelled."""
    out: str
    kind: str = "pool"
    """pool, holes or sample."""
    gold: str | None = None
    count: int = 0
    """The number of judgements of a sample."""
    metric: str | None = None
    highest: float = 3.0
    model: str | None = None
    depth: int = 10
    """The number of ranks of each query of holes or of a sample."""
    settings: dict[str, Any] = {}
    """The settings of the model, such as `max_cost`; see `ModelSettings`."""
    confirm: bool = True
    qrels: str | None = None

    @property
    def pool(self) -> Path:
        """The file of the pool; that of holes or of a sample is made next to the gold."""
        return Path(self.source) if self.kind == "pool" else beside(self.out, "pool.parquet")


class Prepared(msgspec.Struct, frozen=True):
    """All that the server needs."""

    work: Work
    remarks: list[str]
    opinions: int = 0


class Written(msgspec.Struct, frozen=True):
    """The result: the number of grades that people gave, and the size of the gold."""

    grades: int
    queries: int
    relevant: int
    irrelevant: int
    unjudged: int
    lines: list[str] = []
    """Sentences on the estimates, and on the agreement with the model."""


class _Failed(msgspec.Struct, frozen=True):
    kind: str
    problem: str
    got: str | None
    hint: str | None


def beside(gold: str | Path, ending: str) -> Path:
    """The path of a file that belongs to the gold: `gold.pool.parquet` for `gold.jsonl`."""
    return Path(gold).with_name(f"{Path(gold).stem}.{ending}")


def prepare(wanted: Wanted) -> Prepared:
    """Read or make the pool, ask the model, and put the work in order."""
    from karat.gold.pool_file import read_pool
    from karat.web.label.label_design import opinions_path, read_opinions, work_of

    if wanted.kind != "pool":
        _made(wanted).save(wanted.pool)
    pool = read_pool(wanted.pool)
    path = opinions_path(Path(wanted.out))
    opinions = read_opinions(path)
    remarks = pool.remarks()
    if wanted.model is not None:
        given, without = ask_model(pool, wanted, opinions)
        remarks += without
        found = opinions | given
        if found != opinions:
            _write_opinions(path, found)
            opinions = found
    return Prepared(work_of(pool, opinions, wanted.metric, wanted.highest), remarks, len(opinions))


def _made(wanted: Wanted) -> Pool:
    """The pool of the holes of a run, or of a sample of its judgements."""
    if wanted.kind == "holes":
        from karat.gold.pool import holes_of

        return holes_of(wanted.source, wanted.gold, depth=wanted.depth)
    from karat.gold.judged_sample import sample_of

    return sample_of(wanted.source, wanted.count, depth=wanted.depth)


def ask_model(pool: Pool, wanted: Wanted, known: Opinions) -> tuple[Opinions, list[str]]:
    """The grades that the judge `relevance` gives to items without a grade or an opinion, and what it left out."""
    from karat.gold.pool_sources import read_source
    from karat.judges.model_judge import judge_with_model
    from karat.pipeline import evaluate

    assert wanted.model is not None
    rows: list[dict[str, Any]] = []
    for query in pool.queries:
        items = [one for one in query.items if one.judged is None and one.text and (query.id, one.key) not in known]
        if query.text and items:
            texts = [{"id": one.key, "text": one.text} for one in items]
            rows.append({"id": query.id, "query": query.text, "retrieved": texts})
    if not rows:
        return {}, []
    settings = {} if wanted.model == "lexical" else {**wanted.settings, "confirm": wanted.confirm}
    judge = judge_with_model("relevance", model=wanted.model, **settings)
    deepest = max(len(row["retrieved"]) for row in rows)
    run = evaluate(rows, f"precision@{deepest}", judge=judge)
    source = read_source(run, "model", deepest)
    grades, keys, begin = source.model or (), source.columns["id"], source.start.tolist()
    opinions = {
        (query, str(keys[place])): float(grade)
        for query, first, last in zip(source.ids or (), begin, begin[1:], strict=False)
        for place in range(first, last)
        if (grade := grades[place]) is not None
    }
    failed = run.all_hits.failed
    without = f"the model has no opinion on {len(failed):,} of {plural(len(rows), 'query', 'queries')}: "
    return opinions, [without + next(iter(failed.values()))] if failed else []


def _write_opinions(path: Path, opinions: Opinions) -> None:
    from karat.web.label.label_design import Opinion

    lines = [msgspec.json.encode(Opinion(*key, model)) + b"\n" for key, model in opinions.items()]
    with atomic_path(path) as place, place.open("wb") as file:
        file.writelines(lines)


def finish(wanted: Wanted) -> Written:
    """Write gold from the labels, and qrels if they are wanted."""
    from karat.gold.labels import GRADED, check_pool, labels_path, read_labels
    from karat.gold.pool_file import read_pool
    from karat.gold.written_gold import write_gold, write_qrels
    from karat.web.label.label_design import digest

    path = labels_path(wanted.out)
    pool, content = read_pool(wanted.pool), read_labels(path)
    check_pool(path, content, digest(pool), {(one.id, item.key) for one in pool.queries for item in one.items})
    standing = content.standing()
    labels = standing.latest
    given = sum(one.answer == "grade" for one in labels.values())
    if not given:
        return Written(0, 0, 0, 0, pool.size - pool.judged)
    done = write_gold(pool, labels, wanted.out)
    if wanted.qrels is not None:
        write_qrels(pool, labels, wanted.qrels)
    lines = [] if wanted.metric is None else _estimates(pool, labels, wanted)
    if content.header.scale.values == GRADED.values:
        lines += _trust(standing.unswayed())
    return Written(given, done.queries, done.relevant, done.irrelevant, done.unjudged, lines)


def _trust(unswayed: Mapping[Key, Label]) -> list[str]:
    """A sentence on the agreement of each person with the model."""
    from karat.gold.agreement_of_labels import agreement_with_model

    return [
        f"{one.first} and the model: the same grade for {one.same:,} of {plural(one.items, 'item', 'items')} "
        "graded without its opinion" + ("" if isnan(one.kappa) else f", kappa {one.kappa:.2f}".replace("-", "−"))
        for one in agreement_with_model(unswayed)
    ]


def _estimates(pool: Pool, labels: Mapping[Key, Label], wanted: Wanted) -> list[str]:
    """A sentence on the difference of each run from the first."""
    from karat.web.label.label_design import design_of, estimated, opinions_path, read_opinions, work_of

    assert wanted.metric is not None
    opinions = read_opinions(opinions_path(Path(wanted.out)))
    given = work_of(pool, opinions, wanted.metric, wanted.highest).labelled(labels)
    found = estimated(design_of(pool, opinions, wanted.metric, wanted.highest), given)
    lines = [
        f"{wanted.metric}, {run} − {pool.runs[0]}: {_signed(one.difference)}, "
        f"95 % interval on these queries [{_signed(one.low)}, {_signed(one.high)}] "
        f"from {plural(one.labels + one.known, 'label', 'labels')}"
        + (f", {one.labels:,} of them drawn; " if one.known else "; ")
        + _SENTENCES.get(one.stop or "", "about {more} would decide it").format(
            more=plural(one.more, "more label", "more labels")
        )
        for run, one in zip(pool.runs[1:], found, strict=True)
    ]
    if found and (none := found[0].without_relevant):
        lines.append(
            f"{none:,} of {plural(len(pool), 'query', 'queries')} {'has' if none == 1 else 'have'} no relevant item so "
            "far: without one, a query counts as a difference of 0 here, and karat eval leaves it out"
        )
    return lines


_SENTENCES = {
    "decided": "decided: one run is better on these queries",
    "equal": "decided: equal within ±0.02",
    "precise": "known within ±0.02",
    "queries": "the queries themselves now vary more than the missing labels; "
    "{more} would still decide it on these queries",
    "all": "all that matters is labelled",
}
"""The reasons to stop."""


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


_STEPS: dict[str, Callable[[Wanted], Any]] = {"prepare": prepare, "finish": finish}


def elsewhere(step: str, wanted: Wanted, kind: type[T]) -> T:
    """The result of a step, done by another process; its error is raised here."""
    command = [sys.executable, "-m", "karat.web.label.label_files", step, msgspec.json.encode(wanted).decode()]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)  # noqa: S603 (it is this program)
    if done.returncode == 2:
        failed = msgspec.json.decode(done.stdout, type=_Failed)
        error: type[KaratError] = getattr(errors, failed.kind, BadArgument)
        raised = error(failed.problem, hint=failed.hint)
        raised.got = failed.got
        raise raised
    if done.returncode:
        raise BadArgument(f"the process that was to {step} the labels has ended with code {done.returncode}")
    return msgspec.json.decode(done.stdout, type=kind)


def main() -> None:
    """Do one step. Its result leaves as it is, through what was standard output: texts and ids must not change."""
    result = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # anything that prints must not write into the result
    step, wanted = sys.argv[1:]
    with result:
        try:
            result.write(msgspec.json.encode(_STEPS[step](msgspec.json.decode(wanted, type=Wanted))))
        except KaratError as error:
            result.write(msgspec.json.encode(_Failed(type(error).__name__, error.problem, error.got, error.hint)))
            raise SystemExit(2) from None


if __name__ == "__main__":
    main()
