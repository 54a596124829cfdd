"""The judge `spans`: gold ranges or quotes, found when enough of them is covered, for any chunking."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from karat._internal.arrays import Floats
from karat._internal.grammar import write_call
from karat._internal.progress import track
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Gold, Hits
from karat.hits.combine import unite
from karat.hits.totals import Totals
from karat.judges.corpus import Corpus, CorpusLike
from karat.judges.matches import need
from karat.judges.protocol import Judge, check_bool, judge, share_of_one
from karat.judges.spans.by_range import FIELDS, CoverageByRange
from karat.judges.spans.by_text import CoverageByText
from karat.judges.spans.cover import Lengths, QueryCoverage
from karat.judges.tokens import Tokenizer
from karat.samples import Samples
from karat.samples.notes import Note

_RANGE = {"doc", "start", "end"}


@judge("spans")
class Spans(Judge):
    """A gold range or quote is found when the top k together cover enough of it; `corpus` has the documents."""

    compares = "span"
    fields = FIELDS

    def __init__(
        self,
        coverage: float = 0.5,
        *,
        corpus: CorpusLike | None = None,
        tokenizer: Tokenizer | None = None,
        graded: bool = False,
    ) -> None:
        self.coverage = share_of_one("coverage", coverage)
        if self.coverage == 0:
            raise BadArgument("coverage must be greater than 0", got=coverage)
        if tokenizer is not None and not callable(tokenizer):
            raise BadArgument("a tokenizer is a function of a text", got=tokenizer)
        self.corpus = None if corpus is None else Corpus(corpus)
        self.tokenizer = tokenizer
        self.graded = check_bool("graded", graded)
        self.settings = {
            "coverage": coverage,
            "corpus": None if self.corpus is None else self.corpus.label,
            "tokenizer": None if tokenizer is None else getattr(tokenizer, "__name__", "function"),
            "graded": graded,
        }
        given = {name: value for name, value in self.settings.items() if value is not None and value is not False}
        self.name = write_call("spans", **given)
        self.parallel = corpus is None  # at least one of all quotes must be in the corpus

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Find the places of gold and chunks, then go down each ranking."""
        queries = self._coverage(samples, convention)
        collected = _Collected(track(queries, len(samples), self.name))
        grade = np.where(queries.not_found, -1.0, samples.gold.grade)  # a quote without a place cannot be judged
        if (samples.gold.grade > 0).any() and not (grade > 0).any():
            raise InputError(
                "no gold quote occurs in its document; expected quotes word for word (only white space may differ)",
                got=queries.labels[0],
                hint='judge="fuzzy"',
            )
        details = queries.details if any(queries.details) else None
        gold = Gold(queries.labels, samples.gold.start, grade, detail=details)
        hits = collected.hits(gold, queries.notes(), graded=self.graded)
        return hits if queries.units is None else unite(hits, queries.units)

    def _coverage(self, samples: Samples, c: Convention) -> CoverageByRange | CoverageByText:
        """By range if ranges are given or can be found, else by text."""
        ranges = samples.retrieved.all_fields >= _RANGE and samples.gold.all_fields >= _RANGE
        if self.corpus is None and not ranges:
            need(samples, "text", self.name)
            return CoverageByText(samples, c, self.tokenizer, self.coverage)
        return CoverageByRange(samples, c, self.corpus, Lengths(self.tokenizer, self._text_of), self.coverage)

    def _text_of(self, doc: str) -> str:
        if self.corpus is None or doc not in self.corpus:
            raise InputError(f'to count the tokens of document "{doc}" its text is needed', hint="corpus=…")
        return self.corpus[doc].text


class _Collected:
    """The coverage of all queries, in columns: Python's garbage collector would visit objects of each query often."""

    def __init__(self, queries: Iterable[QueryCoverage]) -> None:
        self._depth: list[int] = []
        self._size: list[float] = []
        self._read: list[float] = []
        self._covered = _Cells()
        self._gold_read = _Cells()
        self._alone = _Cells()
        self._matches: tuple[list[Any], ...] = [], [], [], [], [], [], []
        for number, query in enumerate(queries):
            self._add(number, query)

    def _add(self, number: int, query: QueryCoverage) -> None:
        before = len(self._read) - 1  # ranks count from 1
        self._depth.append(len(query.read))
        self._size.append(query.covered.size)
        self._read.extend(query.read)
        for rank, covered, gold in query.covered.amounts:
            self._covered.add(before + rank, covered)
            self._gold_read.add(before + rank, gold)
        for rank, gold in query.alone.items():
            self._alone.add(before + rank, gold)
        copies = _copies(query)
        for match in sorted(query.covered.matches):
            row = number, match.rank, match.item, min(match.share, 1.0), match.part, match.rank in copies, match.why
            for column, value in zip(self._matches, row, strict=True):
                column.append(value)

    def hits(self, gold_items: Gold, notes: tuple[Note, ...], *, graded: bool) -> Hits:
        """The hits of all queries, with the text read and the gold covered at each rank."""
        query, rank, gold = (np.array(column, np.int64) for column in self._matches[:3])
        share, part, repeated = (np.array(column) for column in self._matches[3:6])
        covered, gold_read = np.zeros((2, len(self._read)))
        self._covered.add_to(covered)
        self._gold_read.add_to(gold_read)
        gold_read[self._alone.at] = self._alone.value
        totals = Totals(np.array(self._depth, np.int64), {}, {"gold": np.array(self._size)})
        for name, values in (("covered", covered), ("gold_read", gold_read), ("read", np.array(self._read))):
            totals = totals.with_amounts(name, values)
        grade = gold_items.grade[gold]
        return Hits(
            query,
            rank,
            gold,
            depth=totals.depth,
            gold_items=gold_items,
            grade=np.where(grade > 0, grade * share, grade) if graded else grade,
            repeated=repeated.astype(bool),
            part=part.astype(bool),
            why=self._matches[6],
            totals=totals,
            notes=notes,
        )


class _Cells:
    """Values at places of a column."""

    def __init__(self) -> None:
        self.at: list[int] = []
        self.value: list[float] = []

    def add(self, at: int, value: float) -> None:
        """Add a value at a place, which may have others."""
        self.at.append(at)
        self.value.append(value)

    def add_to(self, column: Floats) -> None:
        """Add all values to those of a column."""
        np.add.at(column, self.at, self.value)


def _copies(query: QueryCoverage) -> set[int]:
    """The ranks of chunks that occur above, too."""
    if len(set(query.chunks)) == len(query.chunks):
        return set()
    first: dict[Hashable, int] = {}
    return {rank for rank, chunk in enumerate(query.chunks, 1) if first.setdefault(chunk, rank) < rank}
