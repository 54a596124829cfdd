"""The judge `spans`: gold ranges or quotes, found when enough of them is covered, for any chunking."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

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
        each = list(track(queries, len(samples), self.name))
        grade = np.where(queries.not_found, -1.0, samples.gold.grade)  # a quote without a place cannot be judged
        if (samples.gold.grade > 0).any() and not (grade > 0).any():
            raise InputError(
                "no gold quote occurs in its document; expected quotes word for word (only white space may differ)",
                got=queries.labels[0],
                hint='judge="fuzzy"',
            )
        details = queries.details if any(queries.details) else None
        gold = Gold(queries.labels, samples.gold.start, grade, detail=details)
        hits = _hits(each, gold, queries.notes(), graded=self.graded)
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


def _hits(queries: Sequence[QueryCoverage], gold_items: Gold, notes: tuple[Note, ...], *, graded: bool) -> Hits:
    """The hits of all queries, with the text read and the gold covered at each rank."""
    depth = np.array([len(own.read) for own in queries], np.int64)
    pairs = list(zip((starts(depth) - 1).tolist(), queries, strict=False))  # ranks count from 1
    covered, gold_read = np.zeros((2, int(depth.sum())))
    amounts = [(at + rank, *own) for at, query in pairs for rank, *own in query.covered.amounts]
    alone = [(at + rank, own) for at, query in pairs for rank, own in query.alone.items()]
    np.add.at(covered, [row[0] for row in amounts], [row[1] for row in amounts])
    np.add.at(gold_read, [row[0] for row in amounts], [row[2] for row in amounts])
    gold_read[[row[0] for row in alone]] = [row[1] for row in alone]
    read = np.array([size for own in queries for size in own.read])
    totals = Totals(depth, {}, {"gold": np.array([own.covered.size for own in queries])})
    for name, values in (("covered", covered), ("gold_read", gold_read), ("read", read)):
        totals = totals.with_amounts(name, values)
    matches = [(query, own, match) for query, own in enumerate(queries) for match in sorted(own.covered.matches)]
    again = list(map(_copies, queries))
    copies = [match.rank in again[query] for query, _, match in matches]
    gold = np.array([match.item for _, _, match in matches], np.int64)
    grade = gold_items.grade[gold]
    share = np.array([min(match.share, 1.0) for _, _, match in matches])
    return Hits(
        np.array([query for query, _, _ in matches], np.int64),
        np.array([match.rank for _, _, match in matches], np.int64),
        gold,
        depth=depth,
        gold_items=gold_items,
        grade=np.where(grade > 0, grade * share, grade) if graded else grade,
        repeated=np.array(copies, bool),
        part=np.array([match.part for _, _, match in matches], bool),
        why=[match.why for _, _, match in matches],
        totals=totals,
        notes=notes,
    )


def _copies(query: QueryCoverage) -> set[int]:
    """The ranks of chunks that occur above, too."""
    if len(set(query.chunks)) == len(query.chunks):
        return set()
    first: dict[Hashable, int] = {}
    return {rank for rank, chunk in enumerate(query.chunks, 1) if first.setdefault(chunk, rank) < rank}
