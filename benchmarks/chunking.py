"""Gold ranges and retrieved chunks: the judge `spans` against the scorer of chunking_evaluation, in its environment.

The scorer is what that package runs for a chunking: the chunks that hold gold are counted for each question, then
recall, precision and IoU are computed on as many retrieved chunks. karat evaluates the same three on the top 10.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.outcome import Outcome, read_outcomes, speedup, write_outcomes
from benchmarks.prose import passage
from benchmarks.timing import Entry, best

if TYPE_CHECKING:
    from karat import Run

_PYTHON = Path(__file__).parents[1] / ".oracles" / "chunking-evaluation" / "bin" / "python"
_INSTALL = "skipped: install karat and github.com/brandonstarxel/chunking_evaluation into .oracles/chunking-evaluation"
_METRICS = "span_recall@10 span_precision@10 span_iou@10"

_SEED = 20
_DOCUMENTS, _LENGTH = 5, 200_000
_CHUNK, _STEP = 400, 200
_GOLD = 300
_QUESTIONS, _DEPTH = 500, 10
_REPETITIONS, _OF_PEER = 7, 2

Range = dict[str, Any]


class Questions(NamedTuple):
    """The documents in chunks, and per question the document, its gold ranges, and the chunks retrieved for it."""

    documents: list[str]
    chunks: list[Range]
    document: list[str]
    gold: list[list[Range]]
    retrieved: list[list[Range]]


def measure() -> list[Outcome]:
    """Compare in the environment of the peer, which is on GitHub alone."""
    if not _PYTHON.exists():
        return [Outcome(case="chunking", peer="chunking_evaluation", target="≥ 10", note=_INSTALL)]
    command = [str(_PYTHON), "-m", "benchmarks.chunking", "here"]
    environment = os.environ | {"PYTHONPATH": "src"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return read_outcomes(done.stdout)


def questions() -> Questions:
    """Questions with one to three gold ranges, some of them in the chunks that were retrieved."""
    random = Random(_SEED)
    texts = [passage(random, _LENGTH) for _ in range(_DOCUMENTS)]
    chunks = [
        {"corpus_id": f"d{number}", "start_index": at, "end_index": min(at + _CHUNK, _LENGTH)}
        for number in range(_DOCUMENTS)
        for at in range(0, _LENGTH, _STEP)
    ]
    made = Questions(texts, chunks, [], [], [])
    for _ in range(_QUESTIONS):
        number = random.randrange(_DOCUMENTS)
        begins = random.sample(range(0, _LENGTH - _GOLD, _GOLD), random.randint(1, 3))  # ranges do not overlap
        ends = [at + random.randint(50, _GOLD) for at in begins]
        gold: list[Range] = [
            {"start_index": at, "end_index": end, "content": texts[number][at:end]}
            for at, end in zip(begins, ends, strict=True)
        ]
        own = [chunk for chunk in chunks if chunk["corpus_id"] == f"d{number}"]
        near = [
            chunk
            for chunk in own
            if any(one["start_index"] < chunk["end_index"] and chunk["start_index"] < one["end_index"] for one in gold)
        ]
        top = random.sample(near, min(4, len(near)))
        top += random.sample(own, _DEPTH - len(top))
        random.shuffle(top)
        made.document.append(f"d{number}")
        made.gold.append(gold)
        made.retrieved.append(top)
    return made


def _here() -> list[Outcome]:
    made = questions()
    peer = _scorer(made)
    samples = {"given as ranges": _as_ranges(made), "given as texts": _as_texts(made)}
    scores = _by_peer(peer, made)
    ours = by_karat(samples["given as ranges"]).scores
    assert abs(float(ours["span_recall@10"].mean()) - sum(scores) / len(scores)) < 1e-9, "recall differs"
    entries = {name: Entry(by_karat, lambda own=own: own, _REPETITIONS) for name, own in samples.items()}  # type: ignore[misc]
    least = best(entries | {"peer": Entry(lambda given: _by_peer(peer, given), lambda: made, _OF_PEER)})
    return [
        speedup("chunking", "chunking_evaluation", ours=least[name], theirs=least["peer"], target=10, note=name)
        for name in samples
    ]


def by_karat(samples: list[dict[str, Any]]) -> Run:
    """Evaluate with karat, from the samples to the scores of every query."""
    import karat

    return karat.evaluate(samples, _METRICS, judge="spans")


def _as_ranges(made: Questions) -> list[dict[str, Any]]:
    return [
        {"retrieved": [_range(one, doc) for one in top], "gold": [_range(one, doc) for one in gold]}
        for doc, gold, top in zip(made.document, made.gold, made.retrieved, strict=True)
    ]


def _range(one: Range, doc: str) -> dict[str, Any]:
    return {"doc": doc, "start": one["start_index"], "end": one["end_index"]}


def _as_texts(made: Questions) -> list[dict[str, Any]]:
    texts = {f"d{number}": text for number, text in enumerate(made.documents)}
    return [
        {
            "retrieved": [texts[doc][one["start_index"] : one["end_index"]] for one in top],
            "gold": [one["content"] for one in gold],
        }
        for doc, gold, top in zip(made.document, made.gold, made.retrieved, strict=True)
    ]


def _scorer(made: Questions) -> Any:
    """The scorer with its questions, as it reads them from a CSV file."""
    import json

    import pandas as pd
    from chunking_evaluation.evaluation_framework.base_evaluation import BaseEvaluation

    rows = {
        "question": [f"question {number}" for number in range(len(made.gold))],
        "references": list(map(json.dumps, made.gold)),
        "corpus_id": made.document,
    }
    with NamedTemporaryFile(suffix=".csv") as file:
        pd.DataFrame(rows).to_csv(file.name, index=False)
        return BaseEvaluation(file.name)


def _by_peer(scorer: Any, made: Questions) -> list[float]:
    """The recall of every question within the top 10, after everything that the scorer computes."""
    scorer._full_precision_score(made.chunks)  # noqa: SLF001  # the package's own evaluation calls both
    _, recall, _ = scorer._scores_from_dataset_and_retrievals(made.retrieved, [_DEPTH] * len(made.gold))  # noqa: SLF001
    return list(recall)


if __name__ == "__main__":
    write_outcomes(_here() if sys.argv[1:] == ["here"] else measure())
