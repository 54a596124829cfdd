"""Files larger than memory: evaluated a batch of queries at a time, with the result of one call.

The gold, and what the run says of each query, are held; the rankings pass by. Where the rows of a query stand
together one pass over the file is enough; where not, they are brought together in temporary files first.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from karat.conventions import Convention
from karat.errors import InputError
from karat.hits.combine import take
from karat.judges import Judge, choose
from karat.judges.tokens import Counter
from karat.metrics import Metric
from karat.pipeline import choose_judge
from karat.plan import Partial, Verdicts
from karat.run import Run
from karat.run.parts import Asked, join, join_kept
from karat.run.stored_items import Kept, keep, places_kept
from karat.samples import Samples
from karat.samples.read import read_side
from karat.samples.sources import find_source
from karat.scale.batches import Batches, Data, Joined, Whole
from karat.scale.pieces import Scattered, check_gold, larger_than, parse_memory
from karat.scale.processes import each_part

_KEPT = 150
"""About how many bytes an item takes that is kept."""


class Question(NamedTuple):
    """What is asked of the files."""

    metrics: tuple[Metric, ...]
    judge: Judge
    convention: Convention
    at: str = "item"
    tokens: Counter | None = None
    counted_by: str = ""
    jobs: int = 1


def evaluate_large(
    run: str | PathLike[str],
    gold: Any,
    question: Question,
    memory: str | int,
    *,
    skip_bad_rows: bool = False,
    need_gold: bool = True,
) -> Run | None:
    """The run of files that would take more than so much memory; None if they fit, or cannot be read in pieces."""
    most = parse_memory(memory)
    source = larger_than(run, most)
    if source is None or (skip_bad_rows and gold is not None):
        return None
    if isinstance(gold, str | PathLike):
        check_gold(find_source(gold), most)
    side = None if gold is None else read_side(gold, "gold")
    return evaluate_files(Data(source, side, most, skip_bad_rows, need_gold), question)


def evaluate_files(data: Data, question: Question) -> Run:
    """The run of files that do not fit into memory."""
    batches: Batches = Whole(data) if data.gold is None else Joined(data, data.gold)
    try:
        parts, judge, reason = _evaluate(batches, question, data.memory)
    except Scattered:
        assert data.gold is not None
        batches = Joined(data, data.gold, scattered=True)
        parts, judge, reason = _evaluate(batches, question, data.memory)
    state = data.state()
    runs: list[Run] = []

    def kept() -> Kept | None:
        if data.state() != state:
            raise InputError(f"{data.source.name} has changed since it was evaluated", hint="evaluate it again")
        return _keep(batches, runs[0], judge, data.memory)

    asked = Asked(question.metrics, judge, question.convention, batches.reading(), reason, question.counted_by)
    runs.append(join(parts, asked, order=batches.order, kept=kept))
    return runs[0]


def _evaluate(batches: Batches, question: Question, memory: int) -> tuple[list[Partial], Judge, str]:
    """Every batch, by the judge that the first one tells to take."""
    coming = iter(batches)
    first = next(coming, None)
    if first is None:
        return [], question.judge, ""
    judge, reason = choose_judge(question.judge, question.at, batches.for_choice(first))

    def checked() -> Iterator[Samples]:
        yield first
        for samples in coming:
            if reason:
                _check_choice(judge, batches.for_choice(samples))
            yield samples

    parts, held = [], 0
    for part in each_part(checked(), question.metrics, judge, question.convention, question.tokens, question.jobs):
        parts.append(part)
        held += sum(total.nbytes for total in part.hits.along.totals.values())
        if held > memory:
            raise _too_much(question)
    return parts, judge, reason


def _too_much(question: Question) -> InputError:
    """The error for what keeps a number for each retrieved item, however few the hits are."""
    return InputError(
        "a budget of tokens, the judge spans, and conventions that average over ties or count different items keep "
        "a number for each retrieved item, and these take more than the memory that is allowed",
        got=f"judge {question.judge.name}, convention {question.convention.name}",
        hint="more memory, other metrics, or the run in parts: karat merge",
    )


def _check_choice(judge: Judge, samples: Samples) -> None:
    """Refuse a judge that was chosen by the first batch if a later one has not what it compares."""
    other = choose(samples).judge
    if other.name != judge.name and not (samples.retrieved.plain and samples.gold.plain):
        raise InputError(
            f'the first samples were judged by "{judge.name}", but later ones have other fields',
            hint=f'name the judge: judge="{other.name}"',
        )


def _keep(batches: Batches, run: Run, judge: Judge, memory: int) -> Kept | None:
    """What the run keeps of the items, for which the files are read once more; nothing if it would not fit."""
    places = places_kept(run.metrics, len(run))
    if places * len(run) * _KEPT > memory:
        return None
    parts: list[Kept] = []
    rows: list[int] = []
    for samples in batches:
        own = [run.row(query) for query in samples.ids]
        seen = Verdicts(samples, judge).samples_of(run.convention)
        parts.append(keep(seen, take(run.all_hits, np.array(own)), run.convention, judge.name, places))
        rows += own
    return join_kept(parts).take(np.argsort(rows))
