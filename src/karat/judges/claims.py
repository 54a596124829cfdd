"""The judge `claims`: the claims of an answer are the gold items; a context that supports a claim finds it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, get_args

import numpy as np

from karat._internal.arrays import starts
from karat._internal.progress import track
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, unknown
from karat.hits import Gold, Hits
from karat.hits.combine import unite
from karat.judges.attribution import Task, attribute_claims, extract_claims
from karat.judges.lexical import THRESHOLD, Words
from karat.judges.matches import as_texts
from karat.judges.model_judge import LEXICAL, ModelJudge, agreement_note
from karat.judges.protocol import judge, share_of_one
from karat.judges.support import Support, build_hits, read_rankings, support_rows, used_shares
from karat.judges.tokens import sentences
from karat.llm import Failure
from karat.samples import Samples
from karat.samples.notes import Note

Of = Literal["auto", "answer", "gold", "response"]
Split = Literal["model", "sentences"]


@judge("claims")
class Claims(ModelJudge):
    """Claims of the answer as gold, each found by the contexts that support it: by words, or by a language model."""

    def __init__(
        self,
        model: Any = LEXICAL,
        *,
        of: Of = "auto",
        split: Split = "model",
        threshold: float = THRESHOLD,
        **settings: Any,
    ) -> None:
        for setting, value, allowed in (("of", of, get_args(Of)), ("split", split, get_args(Split))):
            if value not in allowed:
                raise unknown(f"choice for {setting}", str(value), allowed, f"{setting}: one of {', '.join(allowed)}")
        self.of, self.split = of, split
        self.threshold = share_of_one("threshold", threshold)
        lexical = model == LEXICAL
        named: dict[str, Any] = {"of": of} if of != "auto" else {}
        named |= {"split": split} if split != "model" and not lexical else {}
        named |= {"threshold": threshold} if threshold != THRESHOLD and lexical else {}
        own = {"of": of, "split": split, "threshold": self.threshold}
        super().__init__(model, settings, own=own, named=named)
        if lexical and self.settings != {"model": LEXICAL, **own}:
            raise BadArgument("claims(lexical) calls no model: it has no repeats and no address", got=self.name)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Find the claims of every query, and the contexts that support each."""
        source = self._source(samples)
        rankings = read_rankings(samples, convention, self.name, by_sentence=source == "response")
        passages = [ranking.passages for ranking in rankings]
        claims, failed = self._claims(samples, source, passages)
        note = self._note(samples, source, claims, failed)
        tasks = [Task(*each) for each in zip(_queries(samples), claims, passages, strict=True)]
        supports, more = self._supports(tasks, failed)
        labels = list(chain.from_iterable(claims))
        start = starts(np.fromiter(map(len, claims), np.int64, len(claims)))
        grade = samples.gold.grade if source == "gold" else np.ones(len(labels))
        gold = Gold(labels, start, grade)
        rows = list(support_rows(rankings, supports, gold))
        used = list(used_shares(rankings, supports)) if source == "response" else None
        hits = build_hits(rows, rankings, gold, notes=(*more, note), failed=failed, used=used)
        units = samples.gold.units(labels) if source == "gold" else None
        return hits if units is None else unite(hits, units)

    def _source(self, samples: Samples) -> str:
        """The field with the claims; `auto` prefers the answer to the gold, which may be passages."""
        if self.of == "gold" or (self.of == "auto" and not any(samples.answer or ()) and len(samples.gold.grade)):
            if "text" not in samples.gold.all_fields or not len(samples.gold.grade):
                raise InputError(f'judge "{self.name}" uses the texts of gold items as claims, but they have no texts')
            return "gold"
        source = "answer" if self.of == "auto" else self.of
        texts = samples.answer if source == "answer" else samples.response
        if not any(text and text.strip() for text in texts or ()):
            raise InputError(
                f'judge "{self.name}" needs a field "{source}", but no query has one, such as "{samples.ids[0]}"',
                hint='{"query": …, "retrieved": […], "' + source + '": "…"}',
            )
        return source

    def _claims(
        self, samples: Samples, source: str, passages: Sequence[Sequence[str]]
    ) -> tuple[list[list[str]], dict[int, str]]:
        """The claims of each query, and the queries whose claims could not be extracted."""
        if source == "gold":
            flat, start = as_texts(samples.gold.columns["text"]), samples.gold.start.tolist()
            return [flat[start[row] : start[row + 1]] for row in range(len(samples))], {}
        texts = [text or "" for text in (samples.answer if source == "answer" else samples.response) or ()]
        if self.model is None or self.split == "sentences":
            return [list(dict.fromkeys(sentences(text))) for text in texts], {}
        queries = _queries(samples)
        rows = [row for row, text in enumerate(texts) if text.strip()]
        found = extract_claims(self, [(queries[row], texts[row]) for row in rows], [passages[row] for row in rows])
        claims: list[list[str]] = [[] for _ in texts]
        failed = {}
        for row, one in zip(rows, found, strict=True):
            if isinstance(one, Failure):
                failed[row] = f"its claims are not known: {one.cause}"
            else:
                claims[row] = one
        return claims, failed

    def _supports(self, tasks: Sequence[Task], failed: dict[int, str]) -> tuple[list[list[Support]], tuple[Note, ...]]:
        """The support of every claim; queries that the model could not judge are added to the failed ones."""
        if self.model is None:
            judged = track(((task, Words(task.passages, self.threshold)) for task in tasks), len(tasks), self.name)
            return [[words.support(claim) for claim in task.claims] for task, words in judged], (Note("lexical_judge"),)
        found, votes = attribute_claims(self, tasks)
        failed |= {row: one.cause for row, one in enumerate(found) if isinstance(one, Failure)}
        return [[] if isinstance(one, Failure) else one for one in found], agreement_note(votes, self.calls.repeats)

    def _note(self, samples: Samples, source: str, claims: Sequence[Sequence[str]], failed: dict[int, str]) -> Note:
        """The source of the claims, and the number of queries without any."""
        none = sum(not own and row not in failed for row, own in enumerate(claims))
        split = "sentences" if self.model is None else self.split
        unused = source == "answer" and len(samples.gold.grade) > 0
        return Note("claims", none, details={"source": source, "split": split, "gold_unused": unused})


def _queries(samples: Samples) -> Sequence[str | None]:
    return samples.query if samples.query is not None else [None] * len(samples)
