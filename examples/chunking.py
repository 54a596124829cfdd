"""Which way to cut documents is best? Three chunkers, measured with one gold set that no chunker has made.

    python examples/chunking.py FOLDER

The gold are quotes with their places in the documents, not ids of chunks. So it stays the same however the
documents are cut, and the judge `spans` says how much of each quote the retrieved chunks cover.

FOLDER holds documents, `finance.md` and so on, and `questions.csv` with the columns `question`, `references` (a
JSON list of `content`, `start_index`, `end_index`) and `corpus_id`, the name of a document. The data of the project
chunking_evaluation (Brandon Smith, 2024) look like this: its `corpora/*.md` and its `questions_df.csv`.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypedDict

import numpy as np

import karat

TOP = 10
METRICS = "recall@5 recall@400t span_recall@5 span_precision@5 span_iou@5"
TEXT_JUDGES = {"exact": "exact", "contains": "contains(direction=gold_in_chunk)"}
HOW_TO_READ = """
A quote is found when the top 5 cover half of it or more, in one chunk or in several: that is recall@5. How much else
one has to read for it says span_precision@5, the share of the text in the top 5 that is gold. recall@400t gives all
the same room: reading stops before the chunk that would make it more than 400 words.
The last two columns compare the same gold as text. `exact` finds a quote only where a chunk happens to be cut like it,
which tells nothing of the search; `contains` loses each quote that a cut goes through, and takes the same words
elsewhere for the quote."""

Range: TypeAlias = tuple[int, int]
Cut: TypeAlias = Callable[[str], Iterator[Range]]


class Chunk(TypedDict):
    """A piece of a document, and where it stands in it."""

    id: str
    doc: str
    start: int
    end: int
    text: str


class Quote(TypedDict):
    """A gold item: a piece of a document too, but cut by whoever asked the question."""

    doc: str
    start: int
    end: int
    text: str


class Question(NamedTuple):
    """A question and the quotes that answer it."""

    query: str
    gold: list[Quote]


class Data(NamedTuple):
    """The documents by name, and the questions about them."""

    documents: dict[str, str]
    questions: list[Question]


def load(folder: Path) -> Data:
    """Read the documents and the questions; what is not as it should be is a ValueError that says so."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    documents = {path.stem: _read(path) for path in sorted(folder.glob("*.md"))}
    table = folder / "questions.csv"
    if not documents or not table.is_file():
        raise ValueError(f"{folder} does not hold documents (*.md) and questions.csv")
    with table.open(encoding="utf-8", newline="") as file:
        rows = enumerate(csv.DictReader(file), 1)
        questions = [_question(row, documents, f"{table}, question {number}") for number, row in rows]
    if not questions:
        raise ValueError(f"{table} holds no questions")
    return Data(documents, questions)


def _read(path: Path) -> str:
    """The text with its line endings as they are: to change them would move every place after them."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _question(row: Mapping[str, str], documents: Mapping[str, str], where: str) -> Question:
    try:
        query, doc, references = row["question"], row["corpus_id"], json.loads(row["references"])
        gold = [Quote(doc=doc, start=r["start_index"], end=r["end_index"], text=r["content"]) for r in references]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{where}: wanted question, corpus_id and references, got {row}") from error
    if doc not in documents:
        raise ValueError(f"{where} is about {doc}, but there is no {doc}.md")
    for quote in gold:
        if documents[doc][quote["start"] : quote["end"]] != quote["text"]:
            raise ValueError(f"{where}: {doc}.md holds another text at {quote['start']}, wanted {quote['text']!r}")
    return Question(query, gold)


def by_words(text: str, size: int = 200) -> Iterator[Range]:
    """So many words, then the next so many."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    for first in range(0, len(words), size):
        some = words[first : first + size]
        yield some[0][0], some[-1][1]


def by_characters(text: str, size: int = 800, overlap: int = 200) -> Iterator[Range]:
    """So many characters, the first of which the chunk before has too."""
    for start in range(0, max(len(text) - overlap, 1), size - overlap):
        yield start, min(start + size, len(text))


def by_paragraphs(text: str) -> Iterator[Range]:
    """Every line that is not blank: these documents do not break lines inside a paragraph."""
    return (match.span() for match in re.finditer(r"\S.*", text))


chunkers: dict[str, Cut] = {
    "200 words": by_words,
    "800 characters, 200 shared": by_characters,
    "paragraphs": by_paragraphs,
}


def chunks_of(documents: Mapping[str, str], cut: Cut) -> list[Chunk]:
    """Every chunk of every document."""
    return [
        Chunk(id=f"{doc}-{number}", doc=doc, start=start, end=end, text=text[start:end])
        for doc, text in documents.items()
        for number, (start, end) in enumerate(cut(text))
    ]


class BM25:
    """Okapi BM25 over all chunks; of equals the one that stands first comes first."""

    def __init__(self, chunks: Sequence[Chunk], k1: float = 1.2, b: float = 0.75) -> None:
        self._chunks = chunks
        self._holding: dict[str, tuple[list[int], list[int]]] = {}
        lengths = np.zeros(len(chunks))
        for number, chunk in enumerate(chunks):
            bag = Counter(_words(chunk["text"]))
            lengths[number] = bag.total()
            for word, often in bag.items():
                numbers, counts = self._holding.setdefault(word, ([], []))
                numbers.append(number)
                counts.append(often)
        self._k1 = k1
        self._damping = k1 * (1 - b + b * lengths / lengths.mean())

    def top(self, query: str, depth: int) -> list[Chunk]:
        """The best chunks, best first; only such as share a word with the query."""
        scores = np.zeros(len(self._chunks))
        for word in dict.fromkeys(_words(query)):
            if word in self._holding:
                numbers, counts = map(np.array, self._holding[word])
                rarity = np.log(1 + (len(scores) - len(numbers) + 0.5) / (len(numbers) + 0.5))
                scores[numbers] += rarity * counts * (self._k1 + 1) / (counts + self._damping[numbers])
        best = np.argsort(-scores, kind="stable")[:depth]
        return [self._chunks[number] for number in best if scores[number] > 0]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def retrieve(chunks: Sequence[Chunk], questions: Sequence[Question]) -> list[list[Chunk]]:
    """The top chunks for each question; put your own retriever here."""
    index = BM25(chunks)
    return [index.top(question.query, TOP) for question in questions]


def samples(questions: Sequence[Question], rankings: Sequence[Sequence[Chunk]]) -> list[dict[str, Any]]:
    """What karat takes: for each question what came back, and what should have."""
    return [
        {"query": question.query, "retrieved": ranking, "gold": question.gold}
        for question, ranking in zip(questions, rankings, strict=True)
    ]


def measure(judged: Sequence[Mapping[str, Any]]) -> dict[str, karat.Run]:
    """The same samples by each judge: by places, and by texts alone."""
    runs = {"spans": karat.evaluate(judged, METRICS, judge="spans")}
    return runs | {name: karat.evaluate(judged, "recall@5", judge=judge) for name, judge in TEXT_JUDGES.items()}


def words_read(judged: Sequence[Mapping[str, Any]], depth: int = 5) -> float:
    """How many words the top chunks have, on average over the questions."""
    texts = (chunk["text"] for sample in judged for chunk in sample["retrieved"][:depth])
    return sum(len(text.split()) for text in texts) / len(judged)


def table(judged: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """One line for each chunker, given the samples that came of it."""
    names = [name.partition("@") for name in METRICS.split()]
    lines = [
        ["", "words in", *(metric for metric, _, _ in names), *("recall@5" for _ in TEXT_JUDGES)],
        ["chunker", "the top 5", *(f"@{k}" for _, _, k in names), *(f"by {judge}" for judge in TEXT_JUDGES)],
    ]
    for chunker, own in judged.items():
        means = [mean for run in measure(own).values() for mean in run.mean.values()]
        lines.append([chunker, f"{words_read(own):.0f}", *(f"{mean:.3f}" for mean in means)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = ([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines)
    return "\n".join("  " + "  ".join(line).rstrip() for line in cells)


def main(arguments: Sequence[str] | None = None) -> None:
    """Cut, retrieve, evaluate, print."""
    parser = argparse.ArgumentParser(description="Three ways to cut documents, measured with one gold set.")
    parser.add_argument("folder", type=Path, help="holds the documents (*.md) and questions.csv")
    try:
        data = load(parser.parse_args(arguments).folder)
    except ValueError as error:
        parser.error(str(error))
    judged = {}
    for name, cut in chunkers.items():
        judged[name] = samples(data.questions, retrieve(chunks_of(data.documents, cut), data.questions))
    quotes = sum(len(question.gold) for question in data.questions)
    asked = f"{len(data.questions)} questions, their answers {quotes} quotes from {len(data.documents)} documents"
    print(f"{asked} · cut in {len(judged)} ways, each searched by BM25\n")
    print(table(judged))
    print(HOW_TO_READ)


if __name__ == "__main__":
    main()
