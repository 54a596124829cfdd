"""The chunking example, compared with a slow twin that represents every text as a set of characters."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import karat
from karat.judges.spans import Spans

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "examples" / "chunking_sample"
MORE = os.environ.get("KARAT_CHUNKING_DATA")  # a folder of the same layout, such as the data of chunking_evaluation
CHUNKERS = ("200 words", "800 characters, overlap 200", "paragraphs")
CUTOFFS = (1, 5, 10)
BUDGETS = (100, 400)
METRICS = ("recall", "span_recall", "span_precision", "span_iou")


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("chunking_example", ROOT / "examples" / "chunking.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # typing looks the module up by its name
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module", params=[SAMPLE, Path(MORE)] if MORE else [SAMPLE], ids=lambda folder: folder.name)
def folder(request):
    return request.param


@pytest.fixture(scope="module")
def data(example, folder):
    return example.load(folder)


@pytest.fixture(scope="module")
def judged(example, data):
    """The evaluation samples of each chunker."""
    rankings = {
        name: example.retrieve(example.chunks_of(data.documents, cut), data.questions)
        for name, cut in example.chunkers.items()
    }
    return {name: example.samples(data.questions, ranking) for name, ranking in rankings.items()}


# ---- the twin -------------------------------------------------------------------------------------------------------


def characters(*items):
    """The set of all characters of some ranges."""
    return {(item["doc"], at) for item in items for at in range(item["start"], item["end"])}


def distinct(items):
    return list({(item["doc"], item["start"], item["end"]): item for item in items}.values())


def within(chunks, budget):
    """Whole chunks from the top that fit into the token budget."""
    read = []
    for chunk in chunks:
        words = [len(one["text"].split()) for one in [*read, chunk]]
        if sum(words) > budget:
            break
        read.append(chunk)
    return read


def by_characters(places, top):
    """The four metrics; a gold item is a list of character sets, one for each place at which it occurs."""
    read = characters(*top)
    found = [any(2 * len(place & read) >= len(place) for place in own) for own in places]
    gold = set().union(*(own[0] for own in places))
    return {
        "recall": sum(found) / len(places),
        "span_recall": len(gold & read) / len(gold),
        "span_precision": len(gold & read) / len(read) if read else 0.0,
        "span_iou": len(gold & read) / len(gold | read),
    }


def twin(sample):
    """Every metric at every cutoff and budget."""
    places = [[characters(item)] for item in distinct(sample["gold"])]
    tops = {f"@{k}": sample["retrieved"][:k] for k in CUTOFFS}
    tops |= {f"@{budget}t": within(sample["retrieved"], budget) for budget in BUDGETS}
    return {name + at: value for at, top in tops.items() for name, value in by_characters(places, top).items()}


def text_recall(sample, same):
    """The share of the gold texts that `same` finds among the top 5."""
    gold = {item["text"] for item in sample["gold"]}
    return sum(any(same(text, chunk["text"]) for chunk in sample["retrieved"][:5]) for text in gold) / len(gold)


def is_in(text, chunk):
    return " ".join(text.split()) in " ".join(chunk.split())


def places_of(text, document):
    """Every offset at which a text occurs in a document."""
    found = []
    while (at := document.find(text, found[-1] + 1 if found else 0)) >= 0:
        found.append(at)
    return found


def assert_same(run, name, expected):
    worst = int(np.argmax(np.abs(run.scores[name] - expected)))
    assert run.scores[name] == pytest.approx(expected, abs=1e-12), f"{name}, worst in query {run.ids[worst]}"
    assert run.mean[name] == pytest.approx(sum(expected) / len(expected), abs=1e-12)


# ---- the data and the chunks ----------------------------------------------------------------------------------------


def test_gold_quotes_match_their_offsets(data):
    quotes = [quote for question in data.questions for quote in question.gold]
    assert len(data.documents) >= 5
    assert len(quotes) > len(data.questions) >= 12
    for quote in quotes:
        assert data.documents[quote["doc"]][quote["start"] : quote["end"]] == quote["text"]


@pytest.mark.parametrize("chunker", CHUNKERS)
def test_chunks_match_their_offsets_and_cover_the_document(example, data, chunker):
    chunks = example.chunks_of(data.documents, example.chunkers[chunker])
    assert len({chunk["id"] for chunk in chunks}) == len(chunks)
    for chunk in chunks:
        assert chunk["text"] == data.documents[chunk["doc"]][chunk["start"] : chunk["end"]]
    cut = characters(*chunks)
    for doc, text in data.documents.items():
        assert all((doc, at) in cut for at, char in enumerate(text) if not char.isspace())


def test_chunk_boundaries(example):
    assert list(example.by_words("a bb  c\nd e ", 2)) == [(0, 4), (6, 9), (10, 11)]
    assert list(example.by_characters("0123456789", 4, 1)) == [(0, 4), (3, 7), (6, 10)]
    assert list(example.by_characters("0123456", 4, 1)) == [(0, 4), (3, 7)]
    assert list(example.by_characters("01", 4, 1)) == [(0, 2)]
    assert list(example.by_paragraphs("\n one\n\ntwo three\n")) == [(2, 5), (7, 16)]


def test_ties_are_broken_by_document_order(example):
    chunks = example.chunks_of({"d": "no\ngold here\ngold here\ngold gold"}, example.by_paragraphs)
    assert [chunk["id"] for chunk in example.BM25(chunks).top("gold?", 5)] == ["d-3", "d-1", "d-2"]


# ---- karat and the twin ---------------------------------------------------------------------------------------------


def assert_as_twin(samples):
    """Compare every score of every query with the twin, and return the run."""
    ats = [*(f"@{k}" for k in CUTOFFS), *(f"@{budget}t" for budget in BUDGETS)]
    run = karat.evaluate(samples, [metric + at for metric in METRICS for at in ats], judge="spans")
    twins = [twin(sample) for sample in samples]
    for name in run.scores:
        assert_same(run, name, [values[name] for values in twins])
    return run


@pytest.mark.parametrize("chunker", CHUNKERS)
def test_spans_by_offset_agree_with_the_twin(example, judged, chunker):
    run = assert_as_twin(judged[chunker])
    for name, scores in example.measure(judged[chunker])["spans"].scores.items():
        assert scores.tolist() == run.scores[name].tolist()


def test_repeated_and_overlapping_gold_counts_once(judged):
    def more(gold):
        return [{**item, "start": item["start"] + by, "end": item["end"] + by} for by in (0, 0, 15) for item in gold]

    samples = judged["800 characters, overlap 200"]
    assert_as_twin([{**sample, "gold": more(sample["gold"])} for sample in samples])


@pytest.mark.parametrize("chunker", CHUNKERS)
def test_text_judges_agree_with_plain_comparison(example, judged, chunker):
    runs = example.measure(judged[chunker])
    assert_same(runs["exact"], "recall@5", [text_recall(sample, str.__eq__) for sample in judged[chunker]])
    assert_same(runs["contains"], "recall@5", [text_recall(sample, is_in) for sample in judged[chunker]])


@pytest.mark.parametrize("chunker", CHUNKERS)
def test_quotes_without_offsets_are_located(data, folder, judged, chunker):
    """A quote that occurs once scores like its offsets; of several occurrences, any one counts."""
    quoted = [
        {**sample, "gold": [{"doc": item["doc"], "text": item["text"]} for item in sample["gold"]]}
        for sample in judged[chunker]
    ]
    names = [f"{metric}@{k}" for metric in METRICS for k in CUTOFFS]
    ranges = karat.evaluate(judged[chunker], names, judge="spans")
    quotes = karat.evaluate(quoted, names, judge=Spans(corpus=folder))
    found = [
        [places_of(item["text"], data.documents[item["doc"]]) for item in sample["gold"]] for sample in judged[chunker]
    ]
    several = sum(len(places) > 1 for own in found for places in own)
    assert several > 0
    assert all(places for own in found for places in own)
    notes = [(note.kind, note.count, note.of) for note in quotes.provenance.notes if note.count]
    assert notes == [("quotes_ambiguous", several, sum(map(len, found)))]

    single = np.array([all(len(places) == 1 for places in own) for own in found])
    for name in names:
        assert quotes.scores[name][single] == pytest.approx(ranges.scores[name][single], abs=1e-12), name
    for k in CUTOFFS:
        assert_same(quotes, f"recall@{k}", [anywhere(*row, k) for row in zip(judged[chunker], found, strict=True)])


def anywhere(sample, found, k):
    """Recall if a quote is found at any place at which it occurs."""
    places = {}
    for item, starts in zip(sample["gold"], found, strict=True):
        size = len(item["text"])
        own = [characters({"doc": item["doc"], "start": start, "end": start + size}) for start in starts]
        places[item["doc"], item["text"]] = own
    return by_characters(list(places.values()), sample["retrieved"][:k])["recall"]


# ---- the printed table ----------------------------------------------------------------------------------------------


def test_larger_chunks_find_more_and_are_less_precise(example, judged):
    """True of the sample by construction: its questions were worded to show it. It is not a finding."""
    means = {
        name: {judge: run.mean for judge, run in example.measure(samples).items()} for name, samples in judged.items()
    }
    words, letters, paragraphs = (means[name]["spans"] for name in CHUNKERS)
    assert all(row["recall@5"] > 0.75 for row in (words, letters, paragraphs))
    assert words["recall@5"] > letters["recall@5"] > paragraphs["recall@5"]
    assert words["span_precision@5"] < letters["span_precision@5"] < paragraphs["span_precision@5"]
    # The quotes of fixed-size chunks never begin and end at a cut; a paragraph of one sentence may be a quote.
    assert [means[name]["exact"]["recall@5"] < 0.02 for name in CHUNKERS] == [True, True, False]
    assert means["paragraphs"]["exact"]["recall@5"] < 0.2


def test_the_printed_table_has_the_scores_of_the_runs(example, folder, data, judged, capsys):
    example.main([str(folder)])
    printed = capsys.readouterr().out
    quotes = sum(len(question.gold) for question in data.questions)
    assert printed.startswith(f"{len(data.questions)} questions · {quotes} gold quotes")
    assert max(map(len, printed.splitlines())) <= 120
    for name, samples in judged.items():
        line = next(line for line in printed.splitlines() if line.strip().startswith(name))
        expected = [mean for run in example.measure(samples).values() for mean in run.mean.values()]
        words = example.words_read(samples)
        assert line.split(name)[1].split() == [f"{words:.0f}", *(f"{mean:.3f}" for mean in expected)]


def test_the_sample_is_the_default(example, capsys):
    example.main([])
    default = capsys.readouterr().out
    example.main([str(SAMPLE)])
    assert default == capsys.readouterr().out


# ---- an invalid folder ----------------------------------------------------------------------------------------------

GOOD = '[{"content": "gold", "start_index": 4, "end_index": 8}]'
QUOTED = GOOD.replace('"', '""')


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        (None, "must contain documents (*.md) and questions.csv"),
        ("question,references,corpus_id\n", "has no questions"),
        ("question,corpus_id\nwhat?,a\n", "question 1: expected question, corpus_id and references"),
        ("question,references,corpus_id\nwhat?,nothing,a\n", "question 1: expected question, corpus_id and references"),
        (f'question,references,corpus_id\nwhat?,"{QUOTED}",b\n', "question 1 is about b, but there is no b.md"),
        (
            f'question,references,corpus_id\nwhat?,"{QUOTED.replace("4", "3")}",a\n',
            "question 1: expected 'gold' at offset 3 of a.md",
        ),
    ],
)
def test_an_invalid_folder_is_reported(example, tmp_path, capsys, questions, message):
    (tmp_path / "a.md").write_text("the gold", encoding="utf-8")
    if questions is not None:
        (tmp_path / "questions.csv").write_text(questions, encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        example.main([str(tmp_path)])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_a_missing_folder_is_reported(example, tmp_path, capsys):
    with pytest.raises(SystemExit):
        example.main([str(tmp_path / "nowhere")])
    assert "there is no folder" in capsys.readouterr().err
