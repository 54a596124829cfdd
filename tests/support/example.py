"""Runs to report on: the bundled help centre cut into chunks, with quotes as gold; and as many queries as wanted."""

from __future__ import annotations

import re

import karat
from karat.cli.demo.example import RETRIEVERS, Document, corpus, queries, words

METRICS = "recall@1,3,5,10 precision@5 ndcg@10 rr"


def chunks(sentences=2):
    """The pages of the help centre, cut after every few sentences."""
    found = []
    for page in corpus():
        parts = re.split(r"(?<=[.:]) ", page.text)
        found += [
            Document(f"{page.id}#{i // sentences}", page.title, " ".join(parts[i : i + sentences]))
            for i in range(0, len(parts), sentences)
        ]
    return found


def quote(query, page):
    """The sentence of a page that shares most words with a query: what an annotator would have marked."""
    text = next(d.text for d in corpus() if d.id == page)
    wanted = set(words(query))
    return max(re.split(r"(?<=[.]) ", text), key=lambda s: len(wanted & set(words(s))) / (3 + len(words(s))))


def help_centre(retriever="bm25", depth=15):
    """Samples with quotes as gold and chunks as what was retrieved, from one of the two retrievers."""
    pages = chunks()
    texts = {d.id: d.text for d in pages}
    rows = []
    for query in (one for one in queries() if one.answerable):
        scores = RETRIEVERS[retriever](pages, query.query)
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:depth]
        rows.append(
            {
                "id": query.id,
                "query": query.query,
                "retrieved": [{"id": c, "text": texts[c], "score": round(score, 3)} for c, score in best],
                "gold": [
                    {"id": page, "text": quote(query.query, page), "grade": grade} for page, grade in query.gold.items()
                ],
                "topic": query.topic,
                "length": "short" if len(words(query.query)) < 7 else "long",
            }
        )
    return rows


def run(retriever="bm25"):
    return karat.evaluate(help_centre(retriever), METRICS, judge="contains(gold_in_chunk)")


def many(count, depth=10):
    """A run of many queries: each has words of its own, texts are shared as chunks of a corpus are."""
    topics = ["billing", "sharing", "security", "import"]
    text = [
        f"Chunk {i} of the handbook. " + " ".join(f"word{(i * 7 + j) % 997}" for j in range(60)) for i in range(5000)
    ]
    rows = []
    for i in range(count):
        ids = [(i * 31 + j * 17) % 5000 for j in range(depth)]
        gold = [ids[i % 13] if i % 13 < depth else 4999, (i * 31 + 5 * 17) % 5000]
        rows.append(
            {
                "id": f"q{i}",
                "query": f"what does section {i} say about topic{i % 50}?",
                "retrieved": [{"id": f"c{n}", "text": text[n], "score": 1 / (2 + j)} for j, n in enumerate(ids)],
                "gold": [{"id": f"c{n}", "text": text[n]} for n in dict.fromkeys(gold)],
                "topic": topics[i % 4],
            }
        )
    return karat.evaluate(rows, METRICS, judge="ids")
