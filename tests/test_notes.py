"""Notes are records: merged by adding numbers, stored in run files, and written as sentences in report/."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.metrics import METRICS
from karat.report.notes import SENTENCES
from karat.samples.notes import EXAMPLES, Note, Tally, merge_notes

SOURCE = Path(karat.__file__).parent
JUDGING = [path for room in ("samples", "hits", "judges", "run", "scale") for path in (SOURCE / room).rglob("*.py")]


def test_merging_adds_numbers_and_keeps_the_first_examples():
    parts = [
        [Note("lost", 1, 10, ("a",)), Note("ties", 2, details={"direction": "descending"})],
        [Note("lost", 3, 5, ("b", "c")), Note("ties", 1, details={"direction": "ascending"})],
    ]
    lost, *ties = merge_notes(parts)
    assert lost == Note("lost", 4, 15, ("a", "b"))
    assert [note.count for note in ties] == [2, 1]  # other details: another note


def test_a_tally_keeps_a_few_examples():
    tally = Tally()
    assert tally.notes("lost") == ()
    for example in "abcd":
        tally.add(example)
    (note,) = tally.notes("lost", of=9)
    assert (note.count, note.of, len(note.examples)) == (4, 9, EXAMPLES)


@pytest.mark.parametrize(
    "note",
    [Note("lost"), Note("lost", 3, 9, ("a", "b"), {"source": "x", "list": ["p", "q"]}), Note.of_text("A sentence.")],
    ids=str,
)
def test_notes_are_stored_and_read_back(note):
    assert Note.from_dict(note.to_dict()) == note


@pytest.mark.parametrize(
    "path", [*JUDGING, SOURCE / "plan" / "__init__.py"], ids=lambda path: str(path.relative_to(SOURCE))
)
def test_every_kind_of_note_has_a_sentence(path):
    kinds = re.findall(r'(?:\bNote|\.notes)\(\s*"(\w+)"', path.read_text("utf-8"))
    assert set(kinds) <= SENTENCES.keys()


def test_an_unknown_kind_of_a_custom_judge_is_printed():
    class Custom:
        name = "custom"

        def __call__(self, samples, convention):
            notes = [Note("odd_items", 2, 5, ("a", "b")), "A sentence of its own."]
            hits = karat.Exact()(samples, convention)
            return hits.replace(notes=[*(Note.of_text(n) if isinstance(n, str) else n for n in notes)])

    run = karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr", judge=Custom())
    assert run.remarks()[-2:] == ["odd items: 2 of 5 (a; b).", "A sentence of its own."]


def test_scores_above_one_are_remarked_on():
    rows = [{"retrieved": ["A", "A"], "gold": ["A"]}, {"retrieved": ["A"], "gold": ["A"]}]
    run = karat.evaluate(rows, "ndcg@2 recall@2", convention="autorag")
    assert "ndcg@2 is above 1 for 1 query (highest 1.63): the convention autorag does not limit it." in run.remarks()
    for convention in ("standard", "mlflow"):
        assert "above 1" not in " ".join(karat.evaluate(rows, "ndcg@2 rr", convention=convention).remarks())


def test_custom_metrics_may_be_above_one():
    @karat.metric
    def retrieved_total(hits, k, c):
        """The number of items retrieved."""
        return np.minimum(hits.depth, k)

    try:
        run = karat.evaluate([{"retrieved": ["A", "B"], "gold": ["A"]}], "retrieved_total@5")
        assert run.mean["retrieved_total@5"] == 2
        assert "above 1" not in " ".join(run.remarks())
    finally:
        del METRICS["retrieved_total"]
