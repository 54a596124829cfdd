"""Gold that is not in the corpus: nobody can retrieve it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from karat.errors import nearest
from karat.judges.corpus import Corpus
from karat.judges.folding import fold_space
from karat.linting.problem import Found, Problem
from karat.linting.testset import Entry, TestSet
from karat.tables import clean, many

_SHOWN = 60
_NAMES = 10_000


class Documents:
    """A corpus in which gold is looked up."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    @cached_property
    def folded(self) -> dict[str, str]:
        """Every document with its white space folded."""
        return {name: fold_space(self.corpus[name].text) for name in self.corpus.names()}

    @cached_property
    def everything(self) -> str:
        """All documents in one text."""
        return "\n".join(self.folded.values())

    def lacks(self, entry: Entry) -> str | None:
        """Why a gold item cannot be found in the corpus, if it cannot."""
        given = entry.doc if entry.doc is not None else entry.id
        if given is None:
            return None if fold_space(entry.text or "") in self.everything else "this text is in no document"
        name = self.corpus.name(given)
        if name not in self.corpus:
            close = nearest(given, self.corpus.names()[:_NAMES])
            kind = "document" if entry.doc is not None else "id"
            return f'no {kind} "{clean(given, _SHOWN)}"' + (
                f', the nearest is "{clean(close, _SHOWN)}"' if close else ""
            )
        text = self.corpus[name].text
        if entry.text and fold_space(entry.text) not in fold_space(text):
            return f'its text is not in "{clean(name, _SHOWN)}"'
        if entry.end is not None and entry.end > len(text):
            return f'it ends at {entry.end:,}, "{clean(name, _SHOWN)}" at {len(text):,}'
        return None


def check_corpus(tests: TestSet, documents: Documents) -> Iterator[Problem]:
    """Every relevant gold item must be in the corpus."""
    found = Found()
    different = {(entry.row, entry.key): entry for entry in reversed(tests.gold)}
    for entry in reversed(different.values()):
        if entry.grade > 0 and (why := documents.lacks(entry)) is not None:
            found.add(f"{clean(entry.query_id, 20)}: {clean(entry.name, _SHOWN)}: {why}")
    items = many(found.count, "gold item is", "gold items are")
    yield from found.problem(
        "not in the corpus", f"{items} not in the corpus: no retriever can find what is not there.", serious=True
    )
