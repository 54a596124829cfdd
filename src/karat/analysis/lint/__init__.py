"""Lint a test set: find problems in queries and gold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, get_args

from karat._internal.result import Result
from karat.analysis.lint.checks import check_fields, check_queries
from karat.analysis.lint.documents import Documents, check_alternatives, check_corpus, check_leakage, check_ranges
from karat.analysis.lint.strength import Strength, check_strength, strength
from karat.analysis.lint.test_set import Kind, Problem, TestSet
from karat.errors import BadArgument
from karat.judges.corpus import Corpus, CorpusLike
from karat.run import Run
from karat.run.file import as_run
from karat.samples import read_samples, read_test_set
from karat.samples.field_map import Fields
from karat.samples.notes import Note


@dataclass(repr=False, eq=False, kw_only=True)
class Lint(Result):
    """The result of `karat.lint`: the problems of a test set, the worst first."""

    source: str
    queries: int
    gold_items: int
    """The number of gold items."""
    problems: list[Problem]
    strength: Strength | None
    """The statistical power; None if fewer than two queries have gold."""
    skipped: tuple[Note, ...]
    """The checks that were skipped."""

    @property
    def sound(self) -> bool:
        """True if no problem is serious."""
        return not any(problem.serious for problem in self.problems)

    @property
    def notes(self) -> list[str]:
        """The checks that were skipped, one sentence each."""
        return list(self._render("notes"))


def lint(
    samples: Any = None,
    *,
    retrieved: Any = None,
    gold: Any = None,
    corpus: CorpusLike | None = None,
    runs: Sequence[Run | str | PathLike[str]] = (),
    fields: Fields = None,
    split: str | None = None,
) -> Lint:
    """Find problems in a test set: queries with gold, with or without retrieved items.

    Args:
        samples: queries with gold, or samples as for `karat.evaluate`. Or pass `retrieved` and `gold`.
        retrieved: the results alone, as for `karat.evaluate`.
        gold: the relevant items alone, as for `karat.evaluate`.
        corpus: a folder of texts, a JSONL file or a dict. Gold must be in it, and near copies are searched in it.
        runs: runs over the test set, or paths of their files, to check whether it still distinguishes them.
        fields: your column names, by karat's, as for `karat.evaluate`.
        split: the split of a data set, as for `karat.evaluate`.

    Returns:
        A `Lint`: `problems` (the worst first), `sound` (True without serious problems), `strength` (the minimum
        detectable difference), `notes` (the checks that were skipped), `to_dict()`, `to_markdown()`.

    Example:
        >>> lint = karat.lint("tests.jsonl", corpus="docs/")
        >>> lint.sound
        True
    """
    if isinstance(runs, Run | str | PathLike):
        raise BadArgument("runs is a list of runs", got=runs, hint="runs=[…]")
    given = [as_run(run) for run in runs]
    whole = gold is not None or retrieved is not None
    if whole:
        data = read_samples(samples, retrieved=retrieved, gold=gold, fields=fields, split=split)
    else:
        data = read_test_set(samples, fields, split)
    tests = TestSet(data)
    documents = None if corpus is None else Documents(Corpus(corpus))
    power = strength(tests, given)
    problems = [
        *([] if documents is None else check_corpus(tests, documents)),
        *check_fields(tests),
        *check_queries(tests),
        *check_ranges(tests, documents),
        *check_alternatives(tests, documents),
        *check_leakage(tests, documents),
        *check_strength(given, power),
    ]
    order = get_args(Kind)
    problems.sort(key=lambda problem: (not problem.serious, order.index(problem.kind)))
    skipped = {
        "no_corpus": documents is None,
        "no_query_texts": data.query is None,
        "no_texts": documents is None and not any(tests.retrieved),
        "no_runs": not given,
    }
    return Lint(
        source=data.reading.source,
        queries=len(tests),
        gold_items=len(tests.gold),
        problems=problems,
        strength=power,
        skipped=tuple(Note(kind) for kind, applies in skipped.items() if applies),
    )
