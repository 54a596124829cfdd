"""The judge `text`: the same text but for what is folded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from karat.conventions import Convention
from karat.grammar import write_call
from karat.hits import Hits
from karat.judges.folding import ALL, FOLDS, SAID, fold_names, folder
from karat.judges.matches import Matches
from karat.judges.needs import texts_of
from karat.judges.protocol import judge
from karat.progress import over
from karat.samples import Samples


@judge("text")
class Text:
    """The same text but for Unicode form, case, white space and punctuation; `fold` says which of them."""

    def __init__(self, fold: Any = ALL) -> None:
        self.fold = fold_names(fold)
        self.same = folder(self.fold)
        self.name = "text" if self.fold == ALL else write_call("text", fold=self.fold)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Look every folded chunk up among the folded gold of its query."""
        fold = folder(self.fold)
        texts = texts_of(samples, self.name, convention, fold)
        matches = Matches(samples, texts, fold)
        rows = zip(texts.chunks, pairwise(texts.start), strict=True)
        for query, (chunks, (begin, end)) in enumerate(over(rows, len(samples), self.name)):
            wanted: dict[str, list[int]] = {}
            for gold in range(begin, end):
                wanted.setdefault(fold(texts.gold[gold]), []).append(gold)
            for rank, chunk in enumerate(chunks, 1):
                for gold in wanted.get(fold(chunk), ()):
                    matches.add(query, rank, gold, self._why(chunk, texts.gold[gold]))
        return matches.hits()

    def _why(self, chunk: str, gold: str) -> str:
        if chunk == gold:
            return "exact"
        tried = [name for name in ("space", "case", "unicode", "punctuation") if name in self.fold]
        one = next((name for name in tried if FOLDS[name](chunk) == FOLDS[name](gold)), None)
        return f"same but for {SAID[one]}" if one else "same when folded"
