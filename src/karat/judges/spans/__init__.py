"""The judge `spans`: gold as ranges or quotes, found as soon as enough of it is covered, however it was cut."""

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
from karat.judges.protocol import JudgeBase, judge, share_of_one, truth
from karat.judges.spans.by_range import FIELDS, Located
from karat.judges.spans.by_text import Unlocated
from karat.judges.spans.cover import Row
from karat.judges.spans.quotes import Measures, Seen
from karat.judges.tokens import Tokenizer
from karat.samples import Samples
from karat.samples.notes import Note

_RANGE = {"doc", "start", "end"}


@judge("spans")
class Spans(JudgeBase):
    """A gold range or quote is found when the top k together cover enough of it; `corpus` holds the documents."""

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
            raise BadArgument("coverage is greater than 0", got=coverage)
        if tokenizer is not None and not callable(tokenizer):
            raise BadArgument("a tokenizer is a function of a text", got=tokenizer)
        self.corpus = None if corpus is None else Corpus(corpus)
        self.tokenizer = tokenizer
        self.graded = truth("graded", graded)
        settings: dict[str, object] = {"coverage": coverage}
        settings |= {} if self.corpus is None else {"corpus": self.corpus.told}
        settings |= {} if tokenizer is None else {"tokenizer": getattr(tokenizer, "__name__", "function")}
        settings |= {"graded": True} if self.graded else {}
        self.name = write_call("spans", **settings)
        self.settings = {"coverage": self.coverage}
        self.parallel = corpus is None  # of all quotes at least one must be in the corpus

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Locate gold and chunks, then go down each ranking."""
        located = self._locate(samples, convention)
        gathered = _Gathered()
        for query, seen in enumerate(track(located, len(samples), self.name)):
            gathered.add(query, seen)
        grade = np.where(located.lost, -1.0, samples.gold.grade)  # a quote that is nowhere cannot be judged
        if (samples.gold.grade > 0).any() and not (grade > 0).any():
            raise InputError(
                "not one gold quote occurs in its document, of which only the white space may differ",
                got=located.labels[0],
                hint="another corpus, or the quotes word for word",
            )
        hits = gathered.hits(Gold(located.labels, samples.gold.start, grade), located.notes(), graded=self.graded)
        return hits if located.units is None else unite(hits, located.units)

    def _locate(self, samples: Samples, c: Convention) -> Located | Unlocated:
        """By ranges where they are given or can be found, else by the texts alone."""
        ranges = samples.retrieved.all_fields >= _RANGE and samples.gold.all_fields >= _RANGE
        if self.corpus is None and not ranges:
            need(samples, "text", self.name)
            return Unlocated(samples, c, self.tokenizer, self.coverage)
        return Located(samples, c, self.corpus, Measures(self.tokenizer, self._text_of), self.coverage)

    def _text_of(self, doc: str) -> str:
        if self.corpus is None or doc not in self.corpus:
            raise InputError(f'to count the tokens of document "{doc}" its text is needed', hint="corpus=…")
        return self.corpus[doc].text


class _Gathered:
    """What was found in all queries so far."""

    def __init__(self) -> None:
        self.query: list[int] = []
        self.rows: list[Row] = []
        self.repeated: list[bool] = []
        self.depth: list[int] = []
        self.read: list[float] = []
        self.amounts: list[tuple[int, float, float]] = []
        self.alone: list[tuple[int, float]] = []
        self.sizes: list[float] = []

    def add(self, query: int, seen: Seen) -> None:
        """The next query."""
        begin = len(self.read) - 1  # ranks count from 1
        covered = seen.covered
        self.query += [query] * len(covered.rows)
        self.rows += covered.rows
        self.repeated += [seen.chunks.index(seen.chunks[row.rank - 1]) < row.rank - 1 for row in covered.rows]
        self.depth.append(len(seen.read))
        self.read += seen.read
        self.amounts += [(begin + rank, gold, text) for rank, gold, text in covered.amounts]
        self.alone += [(begin + rank, amount) for rank, amount in seen.alone.items()]
        self.sizes.append(covered.size)

    def hits(self, of: Gold, notes: tuple[Note, ...], *, graded: bool) -> Hits:
        """All of it as hits, with what is read and what is covered on the way down."""
        depth = np.array(self.depth, np.int64)
        covered, gold_read = np.zeros((2, int(starts(depth)[-1])))
        ranks = [rank for rank, _, _ in self.amounts]
        np.add.at(covered, ranks, [amount for _, amount, _ in self.amounts])
        np.add.at(gold_read, ranks, [amount for _, _, amount in self.amounts])
        gold_read[[rank for rank, _ in self.alone]] = [amount for _, amount in self.alone]
        totals = Totals(depth, {}, {"gold": np.array(self.sizes)})
        for name, amounts in (("covered", covered), ("gold_read", gold_read), ("read", np.array(self.read))):
            totals = totals.with_amounts(name, amounts)
        gold = np.array([row.item for row in self.rows], np.int64)
        grade = of.grade[gold]
        share = np.array([min(row.share, 1.0) for row in self.rows])
        return Hits(
            np.array(self.query, np.int64),
            np.array([row.rank for row in self.rows], np.int64),
            gold,
            depth=depth,
            gold_items=of,
            grade=np.where(grade > 0, grade * share, grade) if graded else grade,
            repeated=np.array(self.repeated, bool),
            part=np.array([row.part for row in self.rows], bool),
            why=[row.why for row in self.rows],
            totals=totals,
            notes=notes,
        )
