"""The judge `spans`: gold ranges or quotes, found when enough of them is covered, for any chunking."""

from __future__ import annotations

import numpy as np

from karat._internal.arrays import starts
from karat._internal.grammar import write_call
from karat._internal.progress import track
from karat.conventions import Convention
from karat.errors import BadArgument, InputError
from karat.hits import Gold, Hits
from karat.hits.combine import unite
from karat.hits.totals import Totals
from karat.judges.corpus import Corpus, CorpusLike
from karat.judges.matches import need
from karat.judges.protocol import JudgeBase, check_bool, judge, share_of_one
from karat.judges.spans.by_range import FIELDS, CoverageByRange
from karat.judges.spans.by_text import CoverageByText
from karat.judges.spans.cover import Lengths, QueryCoverage
from karat.judges.tokens import Tokenizer
from karat.samples import Samples
from karat.samples.notes import Note

_RANGE = {"doc", "start", "end"}


@judge("spans")
class Spans(JudgeBase):
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
        columns = _HitColumns()
        for query, own in enumerate(track(queries, len(samples), self.name)):
            columns.add(query, own)
        grade = np.where(queries.not_found, -1.0, samples.gold.grade)  # a quote without a place cannot be judged
        if (samples.gold.grade > 0).any() and not (grade > 0).any():
            raise InputError(
                "no gold quote occurs in its document (only white space may differ)",
                got=queries.labels[0],
                hint="another corpus, or the quotes word for word",
            )
        hits = columns.hits(Gold(queries.labels, samples.gold.start, grade), queries.notes(), graded=self.graded)
        return hits if queries.units is None else unite(hits, queries.units)

    def _coverage(self, samples: Samples, c: Convention) -> CoverageByRange | CoverageByText:
        """By range if ranges are given or can be found, else by text."""
        ranges = samples.retrieved.fields >= _RANGE and samples.gold.fields >= _RANGE
        if self.corpus is None and not ranges:
            need(samples, "text", self.name)
            return CoverageByText(samples, c, self.tokenizer, self.coverage)
        return CoverageByRange(samples, c, self.corpus, Lengths(self.tokenizer, self._text_of), self.coverage)

    def _text_of(self, doc: str) -> str:
        if self.corpus is None or doc not in self.corpus:
            raise InputError(f'to count the tokens of document "{doc}" its text is needed', hint="corpus=…")
        return self.corpus[doc].text


class _HitColumns:
    """The hits of all queries so far, as columns."""

    def __init__(self) -> None:
        self.matches: list[tuple[int, int, int, bool, bool]] = []
        """Query, rank, gold item, copy, part."""
        self.share: list[float] = []
        self.why: list[str] = []
        self.depth: list[int] = []
        self.read: list[float] = []
        self.amounts: list[tuple[int, float, float]] = []
        self.alone: list[tuple[int, float]] = []
        self.sizes: list[float] = []

    def add(self, query: int, own: QueryCoverage) -> None:
        """Add the next query."""
        begin = len(self.read) - 1  # ranks count from 1
        for rank, item, share, part, why in own.covered.matches:
            copy = own.chunks.index(own.chunks[rank - 1]) < rank - 1
            self.matches.append((query, rank, item, copy, part))
            self.share.append(min(share, 1.0))
            self.why.append(why)
        self.depth.append(len(own.read))
        self.read += own.read
        self.amounts += [(begin + rank, covered, gold) for rank, covered, gold in own.covered.amounts]
        self.alone += [(begin + rank, amount) for rank, amount in own.alone.items()]
        self.sizes.append(own.covered.size)

    def hits(self, gold_items: Gold, notes: tuple[Note, ...], *, graded: bool) -> Hits:
        """The hits, with the text read and the gold covered at each rank."""
        depth = np.array(self.depth, np.int64)
        covered, gold_read = np.zeros((2, int(starts(depth)[-1])))
        ranks = [rank for rank, _, _ in self.amounts]
        np.add.at(covered, ranks, [amount for _, amount, _ in self.amounts])
        np.add.at(gold_read, ranks, [amount for _, _, amount in self.amounts])
        gold_read[[rank for rank, _ in self.alone]] = [amount for _, amount in self.alone]
        totals = Totals(depth, {}, {"gold": np.array(self.sizes)})
        for name, amounts in (("covered", covered), ("gold_read", gold_read), ("read", np.array(self.read))):
            totals = totals.with_amounts(name, amounts)
        query, rank, gold, copy, part = np.array(self.matches, np.int64).reshape(-1, 5).T
        grade = gold_items.grade[gold]
        return Hits(
            query,
            rank,
            gold,
            depth=depth,
            gold_items=gold_items,
            grade=np.where(grade > 0, grade * np.array(self.share), grade) if graded else grade,
            repeated=copy.astype(bool),
            part=part.astype(bool),
            why=self.why,
            totals=totals,
            notes=notes,
        )
