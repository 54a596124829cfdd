"""The verb: from a test set to its problems."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, get_args

from karat._internal.result import Result
from karat.analysis.lint.checks import (
    Documents,
    Strength,
    check_alternatives,
    check_corpus,
    check_queries,
    check_strength,
    strength,
)
from karat.analysis.lint.test_set import Kind, Problem, TestSet
from karat.errors import BadArgument
from karat.judges.corpus import Corpus, CorpusLike
from karat.run import Run
from karat.run.file import load
from karat.samples import read_samples, read_test_set


class Lint(Result):
    """What is wrong with a test set, the worst first."""

    def __init__(
        self, source: str, queries: int, gold: int, problems: list[Problem], strength: Strength | None, notes: list[str]
    ) -> None:
        self.source = source
        self.queries = queries
        self.gold = gold
        """How many gold items there are."""
        self.problems = problems
        self.strength = strength
        """What so many queries can show; None if fewer than two have gold."""
        self.notes = notes
        """What was not looked at, and why."""

    @property
    def sound(self) -> bool:
        """Whether no problem is serious."""
        return not any(problem.serious for problem in self.problems)


def lint(
    samples: Any = None,
    *,
    retrieved: Any = None,
    gold: Any = None,
    corpus: CorpusLike | None = None,
    runs: Sequence[Run | str | PathLike[str]] = (),
) -> Lint:
    """Say what is wrong with a test set: samples, or queries with their gold alone.

    `corpus` is a folder of texts, a JSONL file or a dict: gold must be in it. `runs` over the test set tell
    whether it still sets them apart, and how large a difference it would show.
    """
    if isinstance(runs, Run | str | PathLike):
        raise BadArgument("runs is a list of runs", got=runs, hint="runs=[…]")
    given = [run if isinstance(run, Run) else load(run) for run in runs]
    whole = gold is not None or retrieved is not None
    data = read_samples(samples, retrieved=retrieved, gold=gold) if whole else read_test_set(samples)
    tests = TestSet(data)
    documents = None if corpus is None else Documents(Corpus(corpus))
    power = strength(tests, given)
    problems = [
        *([] if documents is None else check_corpus(tests, documents)),
        *check_queries(tests),
        *check_alternatives(tests, documents),
        *check_strength(given, power),
    ]
    order = get_args(Kind)
    problems.sort(key=lambda problem: (not problem.serious, order.index(problem.kind)))
    return Lint(data.reading.source, len(data), len(tests.gold), problems, power, _unseen(tests, documents, given))


def _unseen(tests: TestSet, documents: Documents | None, runs: Sequence[Run]) -> list[str]:
    """What was not looked at, for want of data."""
    notes = [] if documents is not None else ["No corpus was given: whether gold exists was not looked at."]
    if tests.samples.query is None:
        notes.append("The queries have no texts: whether one is asked twice was not looked at.")
    if documents is None and not any(tests.retrieved()):
        notes.append("There are no retrieved texts and no corpus: near copies of gold were not looked at.")
    if not runs:
        notes.append("No runs were given: whether they still differ was not looked at.")
    return notes
