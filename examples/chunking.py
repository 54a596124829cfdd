"""Compare three chunkers with one gold set that does not depend on any of them.

    python examples/chunking.py            # the sample in examples/chunking_sample
    python examples/chunking.py FOLDER     # your own documents and questions

The gold items are quotes with their character offsets in the documents, not chunk ids. They stay the same however the
documents are chunked, and the judge `spans` measures how much of each quote the retrieved chunks cover.

The sample is an illustration, not evidence: 15 questions, worded so that the chunkers differ. Choose with your data.

FOLDER contains the documents, `finance.md` and so on, and `questions.csv` with the columns `question`, `references` (a
JSON list of `content`, `start_index`, `end_index`) and `corpus_id`, the name of a document. The project
chunking_evaluation (Brandon Smith, 2024) uses this layout: its `corpora/*.md` and its `questions_df.csv`.
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
SAMPLE = Path(__file__).with_name("chunking_sample")
HOW_TO_READ = """
recall@5: a quote is found if the top 5 chunks together cover at least half of it.
span_precision@5: the share of the text in the top 5 that is gold; low means that much else has to be read.
recall@400t: the same token budget for every chunker; chunks count until they would exceed 400 words.
recall@5 by exact and by contains: the same gold compared as text. `exact` finds a quote only if a chunk happens to be
cut like it, so it measures the chunker and not the search. `contains` loses every quote that is cut in two, and
accepts the same words at another place."""

Range: TypeAlias = tuple[int, int]
Cut: TypeAlias = Callable[[str], Iterator[Range]]


class Chunk(TypedDict):
    """A chunk of a document and its character offsets."""

    id: str
    doc: str
    start: int
    end: int
    text: str


class Quote(TypedDict):
    """A gold item: a passage that answers a question, and its character offsets."""

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
    """Read the documents and the questions; raise ValueError if they are not valid."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}")
    documents = {path.stem: _read(path) for path in sorted(folder.glob("*.md"))}
    table = folder / "questions.csv"
    if not documents or not table.is_file():
        raise ValueError(f"{folder} must contain documents (*.md) and questions.csv")
    with table.open(encoding="utf-8", newline="") as file:
        rows = enumerate(csv.DictReader(file), 1)
        questions = [_question(row, documents, f"{table}, question {number}") for number, row in rows]
    if not questions:
        raise ValueError(f"{table} has no questions")
    return Data(documents, questions)


def _read(path: Path) -> str:
    """Read a text with its line endings unchanged: converting them would shift every offset after them."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _question(row: Mapping[str, str], documents: Mapping[str, str], where: str) -> Question:
    try:
        query, doc, references = row["question"], row["corpus_id"], json.loads(row["references"])
        gold = [Quote(doc=doc, start=r["start_index"], end=r["end_index"], text=r["content"]) for r in references]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{where}: expected question, corpus_id and references, got {row}") from error
    if doc not in documents:
        raise ValueError(f"{where} is about {doc}, but there is no {doc}.md")
    for quote in gold:
        if documents[doc][quote["start"] : quote["end"]] != quote["text"]:
            raise ValueError(f"{where}: expected {quote['text']!r} at offset {quote['start']} of {doc}.md")
    return Question(query, gold)


def by_words(text: str, size: int = 200) -> Iterator[Range]:
    """Cut after every `size` words."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    for first in range(0, len(words), size):
        taken = words[first : first + size]
        yield taken[0][0], taken[-1][1]


def by_characters(text: str, size: int = 800, overlap: int = 200) -> Iterator[Range]:
    """Cut into windows of `size` characters that overlap."""
    for start in range(0, max(len(text) - overlap, 1), size - overlap):
        yield start, min(start + size, len(text))


def by_paragraphs(text: str) -> Iterator[Range]:
    """One chunk per non-blank line: these documents have no line breaks inside a paragraph."""
    return (match.span() for match in re.finditer(r"\S.*", text))


chunkers: dict[str, Cut] = {
    "200 words": by_words,
    "800 characters, overlap 200": by_characters,
    "paragraphs": by_paragraphs,
}


def chunks_of(documents: Mapping[str, str], cut: Cut) -> list[Chunk]:
    """Return every chunk of every document."""
    return [
        Chunk(id=f"{doc}-{number}", doc=doc, start=start, end=end, text=text[start:end])
        for doc, text in documents.items()
        for number, (start, end) in enumerate(cut(text))
    ]


class BM25:
    """Okapi BM25 over all chunks; ties are broken by document order."""

    def __init__(self, chunks: Sequence[Chunk], k1: float = 1.2, b: float = 0.75) -> None:
        self._chunks = chunks
        self._postings: dict[str, tuple[list[int], list[int]]] = {}
        lengths = np.zeros(len(chunks))
        for number, chunk in enumerate(chunks):
            bag = Counter(_words(chunk["text"]))
            lengths[number] = bag.total()
            for word, count in bag.items():
                numbers, counts = self._postings.setdefault(word, ([], []))
                numbers.append(number)
                counts.append(count)
        self._k1 = k1
        self._damping = k1 * (1 - b + b * lengths / lengths.mean())

    def top(self, query: str, depth: int) -> list[Chunk]:
        """Return the best chunks, best first; a chunk must share a word with the query."""
        scores = np.zeros(len(self._chunks))
        for word in dict.fromkeys(_words(query)):
            if word in self._postings:
                numbers, counts = map(np.array, self._postings[word])
                idf = np.log(1 + (len(scores) - len(numbers) + 0.5) / (len(numbers) + 0.5))
                scores[numbers] += idf * counts * (self._k1 + 1) / (counts + self._damping[numbers])
        best = np.argsort(-scores, kind="stable")[:depth]
        return [self._chunks[number] for number in best if scores[number] > 0]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def retrieve(chunks: Sequence[Chunk], questions: Sequence[Question]) -> list[list[Chunk]]:
    """Return the top chunks for each question; replace this with your own retriever."""
    index = BM25(chunks)
    return [index.top(question.query, TOP) for question in questions]


def samples(questions: Sequence[Question], rankings: Sequence[Sequence[Chunk]]) -> list[dict[str, Any]]:
    """Build karat's input: for each question the retrieved chunks and the gold quotes."""
    return [
        {"query": question.query, "retrieved": ranking, "gold": question.gold}
        for question, ranking in zip(questions, rankings, strict=True)
    ]


def measure(judged: Sequence[Mapping[str, Any]]) -> dict[str, karat.Run]:
    """Evaluate the same samples with each judge: by offsets, and by text alone."""
    runs = {"spans": karat.evaluate(judged, METRICS, judge="spans")}
    return runs | {name: karat.evaluate(judged, "recall@5", judge=judge) for name, judge in TEXT_JUDGES.items()}


def words_read(judged: Sequence[Mapping[str, Any]], depth: int = 5) -> float:
    """Return the mean number of words in the top chunks."""
    texts = (chunk["text"] for sample in judged for chunk in sample["retrieved"][:depth])
    return sum(len(text.split()) for text in texts) / len(judged)


def table(judged: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Format one line per chunker."""
    names = [name.partition("@") for name in METRICS.split()]
    lines = [
        ["", "words in", *(metric for metric, _, _ in names), *("recall@5" for _ in TEXT_JUDGES)],
        ["chunker", "the top 5", *(f"@{k}" for _, _, k in names), *(f"by {judge}" for judge in TEXT_JUDGES)],
    ]
    for chunker, rows in judged.items():
        means = [mean for run in measure(rows).values() for mean in run.mean.values()]
        lines.append([chunker, f"{words_read(rows):.0f}", *(f"{mean:.3f}" for mean in means)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    cells = ([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])] for line in lines)
    return "\n".join("  " + "  ".join(line).rstrip() for line in cells)


def main(arguments: Sequence[str] | None = None) -> None:
    """Chunk, retrieve, evaluate, print."""
    parser = argparse.ArgumentParser(description="Compare three chunkers with one gold set.")
    parser.add_argument("folder", type=Path, nargs="?", default=SAMPLE, help="documents (*.md) and questions.csv")
    try:
        data = load(parser.parse_args(arguments).folder)
    except ValueError as error:
        parser.error(str(error))
    judged = {}
    for name, cut in chunkers.items():
        judged[name] = samples(data.questions, retrieve(chunks_of(data.documents, cut), data.questions))
    quotes = sum(len(question.gold) for question in data.questions)
    print(f"{len(data.questions)} questions · {quotes} gold quotes · {len(data.documents)} documents · BM25\n")
    print(table(judged))
    print(HOW_TO_READ)


if __name__ == "__main__":
    main()
