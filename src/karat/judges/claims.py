"""The judge `claims`: the claims of an answer are the gold items; a context that supports a claim finds it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from karat._internal.arrays import starts
from karat._internal.progress import track
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, unknown
from karat.hits import Gold, Hits
from karat.hits.combine import unite
from karat.judges.attribution import Attribution, Task, attribution, attribution_of, joint_attribution
from karat.judges.lexical import THRESHOLD, Words
from karat.judges.matches import as_texts
from karat.judges.model_judge import LEXICAL, ModelJudge, agreement_note
from karat.judges.protocol import judge, share_of_one
from karat.judges.support import Support, build_hits, read_rankings, support_rows, used_shares
from karat.judges.tokens import sentences
from karat.judges.trajectories import with_aspects
from karat.llm import Failure, Steps
from karat.samples import Samples
from karat.samples.notes import Note

Of = Literal["auto", "answer", "gold", "response"]
Split = Literal["model", "sentences"]


class _Found(NamedTuple):
    """The claims of each query, their support, and the queries that could not be judged."""

    claims: Sequence[Sequence[str]]
    supports: Sequence[Sequence[Support]]
    failed: dict[int, str]
    notes: tuple[Note, ...]


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
        partial: bool = False,
        joint: bool = False,
        **settings: Any,
    ) -> None:
        for setting, value, allowed in (("of", of, get_args(Of)), ("split", split, get_args(Split))):
            if value not in allowed:
                raise unknown(f"choice for {setting}", str(value), allowed, f"{setting}: one of {', '.join(allowed)}")
        self.of, self.split, self.partial, self.joint = of, split, partial, joint
        self.threshold = share_of_one("threshold", threshold)
        lexical = model == LEXICAL
        if partial not in (True, False) or (partial and lexical):
            problem = "claims(lexical) knows no partial support" if lexical else "partial must be true or false"
            raise BadArgument(problem, got=partial, hint="claims(gpt-4o-mini, of=gold, partial=true)")
        named: dict[str, Any] = {"of": of} if of != "auto" else {}
        named |= {"split": split} if split != "model" and not lexical else {}
        named |= {"threshold": threshold} if threshold != THRESHOLD and lexical else {}
        asked = ({"partial": True} if partial else {}) | ({"joint": True} if joint else {})
        named, own = named | asked, {"of": of, "split": split, "threshold": self.threshold, **asked}
        super().__init__(model, settings, own=own, named=named)
        if joint not in (True, False) or (joint and (lexical or partial or split != "model" or self.calls.repeats > 1)):
            problem = "joint is true or false; if true, a model splits and judges once, and knows no partial support"
            raise BadArgument(problem, got=self.name, hint="claims(gpt-4o-mini, joint=true)")
        if lexical and self.settings != {"model": LEXICAL, **own}:
            raise BadArgument("claims(lexical) calls no model: it has no repeats and no address", got=self.name)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Find the claims of every query, and the contexts that support each."""
        source = self._source(samples)
        rankings = read_rankings(samples, convention, self.name, by_sentence=source == "response")
        passages = [ranking.passages for ranking in rankings]
        if self.model is None:
            claims, supports, failed, notes = self._by_words(samples, source, passages)
        else:
            found, moved = self.once(samples, rankings, lambda: self._by_model(samples, source, passages))
            claims, supports, failed, notes = found
            supports = [[one.moved(to) for one in own] for own, to in zip(supports, moved, strict=True)]
        notes = (*notes, self._note(samples, source, claims, failed))
        labels = list(chain.from_iterable(claims))
        start = starts(np.fromiter(map(len, claims), np.int64, len(claims)))
        grade = samples.gold.grade if source == "gold" else np.ones(len(labels))
        gold = Gold(labels, start, grade)
        rows = list(support_rows(rankings, supports, gold))
        used = list(used_shares(rankings, supports)) if source == "response" else None
        hits = build_hits(rows, rankings, gold, notes=notes, failed=failed, used=used)
        if source != "gold":
            return hits
        units = samples.gold.units(labels)
        return with_aspects(hits if units is None else unite(hits, units), samples)

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

    def _by_words(self, samples: Samples, source: str, passages: Sequence[Sequence[str]]) -> _Found:
        """Sentences, or gold texts, as claims, each compared with the passages by its words."""
        claims = _gold_texts(samples) if source == "gold" else list(map(_distinct, self._texts(samples, source)))
        pairs = zip(claims, passages, strict=True)
        supports = []
        for own, texts in track(pairs, len(claims), self.name):
            words = Words(texts, self.threshold)
            supports.append([words.support(claim) for claim in own])
        return _Found(claims, supports, {}, (Note("lexical_judge"),))

    def _by_model(self, samples: Samples, source: str, passages: Sequence[Sequence[str]]) -> _Found:
        """Claims that the model extracts, if they are not given, and attributes to the passages."""
        queries = samples.query or [None] * len(samples)
        extracted = source != "gold" and self.split == "model"
        given: Sequence[Any] = _gold_texts(samples) if source == "gold" else self._texts(samples, source)

        def steps(row: int) -> Steps[Attribution]:
            task = Task(queries[row], (), passages[row], self.partial)
            if extracted and given[row].strip() and row not in samples.failed:
                return (joint_attribution if self.joint else attribution)(self, given[row], task)
            claims = given[row] if source == "gold" else _distinct(given[row])
            return attribution_of(self, task._replace(claims=claims))

        found, refused, notes = self.run(samples.ids, map(steps, range(len(samples))))
        failed = {row: one.supports.cause for row, one in enumerate(found) if isinstance(one.supports, Failure)}
        supports = [[] if isinstance(one.supports, Failure) else one.supports for one in found]
        agreement = agreement_note([votes for one in found for votes in one.votes], self.calls.repeats)
        return _Found([one.claims for one in found], supports, failed | refused, (*notes, *agreement))

    def _texts(self, samples: Samples, source: str) -> list[str]:
        """The texts with the claims."""
        return [text or "" for text in (samples.answer if source == "answer" else samples.response) or ()]

    def _note(self, samples: Samples, source: str, claims: Sequence[Sequence[str]], failed: dict[int, str]) -> Note:
        """The source of the claims, and the number of queries without any."""
        none = sum(not own and row not in failed for row, own in enumerate(claims))
        split = "sentences" if self.model is None else self.split
        unused = source == "answer" and len(samples.gold.grade) > 0
        return Note("claims", none, details={"source": source, "split": split, "gold_unused": unused})


def _gold_texts(samples: Samples) -> list[list[str]]:
    flat, start = as_texts(samples.gold.columns["text"]), samples.gold.start.tolist()
    return [flat[start[row] : start[row + 1]] for row in range(len(samples))]


def _distinct(text: str) -> list[str]:
    """The sentences of a text, each once."""
    return list(dict.fromkeys(sentences(text)))
