"""A retriever to sweep: words in common with chunks of the demo's documents, of which the size is a setting."""

from __future__ import annotations

from karat.cli.demo.example import corpus, words


def make(chunk=40, step=None):
    chunks = []
    for page in corpus():
        text = page.text.split()
        starts = range(0, len(text), step or chunk)
        chunks += [{"id": page.id, "text": " ".join(text[start : start + chunk])} for start in starts]

    def retrieve(query, k):
        wanted = set(words(query))
        scores = [len(wanted & set(words(one["text"]))) / (20 + chunk) for one in chunks]
        best = sorted(range(len(chunks)), key=lambda i: -scores[i])[:k]
        return [chunks[i] | {"score": scores[i]} for i in best]

    return retrieve
