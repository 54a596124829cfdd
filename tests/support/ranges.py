"""Two short documents, and samples of ranges in them."""

from __future__ import annotations

DOCS = {
    "a": "The quick brown fox jumps over the lazy dog, and the dog does not care much about it at all.",
    "b": "Pack my box with five dozen liquor jugs. How vexingly quick daft zebras jump today!",
}


def part(doc, start, end, **more):
    return {"doc": doc, "start": start, "end": end, **more}


def cut(doc, size, step):
    """The chunks of a document."""
    text = DOCS[doc]
    return [part(doc, i, min(i + size, len(text)), text=text[i : i + size]) for i in range(0, len(text), step)]


def sample(retrieved, gold):
    return [{"retrieved": retrieved, "gold": gold}]


GOLD = [part("a", 4, 43, text=DOCS["a"][4:43]), part("b", 0, 40, text=DOCS["b"][0:40])]
