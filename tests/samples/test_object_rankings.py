"""Objects of frameworks in `evaluate` and `score`, and the judge that fits where their ids are random or hashes."""

from __future__ import annotations

import uuid
from types import SimpleNamespace

import polars as pl
import pytest

import karat
from karat.conventions import STANDARD
from karat.samples.items import rankings_of
from karat.samples.keys import by_id

HASH = "9f1062d81498e8b82387c33bfccd8b97be0f5ea2f9bd796199bd454750972e"


def document(text, doc, identity=None, start=0):
    metadata = {"source": doc, "start_index": start}
    return SimpleNamespace(page_content=text, id=identity or str(uuid.uuid4()), metadata=metadata)


DOCUMENTS = [document("the first text", "a.md"), document("the second text", "b.md", start=10)]
FORMS = {
    "a list": DOCUMENTS,
    "a tuple": tuple(DOCUMENTS),
    "pairs": [(DOCUMENTS[0], 0.9), (DOCUMENTS[1], 0.1)],
    "outputs": {"documents": DOCUMENTS},
    "outputs of a pipeline": {"retriever": {"documents": DOCUMENTS}},
    "a response": SimpleNamespace(source_nodes=DOCUMENTS),
}


def judged(retrieved, gold, **options):
    run = karat.evaluate(retrieved=[retrieved], gold=[gold], metrics="rr", **options)
    return run.mean["rr"], run.provenance.judge


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_ranking(form):
    assert judged(FORMS[form], ["b.md"]) == (0.5, "ids(at=doc)")
    assert karat.score("rr", FORMS[form], ["b.md"]) == 0.5
    sample = {"query": "?", "retrieved": FORMS[form], "gold": ["b.md"]}
    assert karat.evaluate([sample], "rr").mean["rr"] == 0.5


@pytest.mark.parametrize(
    ("gold", "judge"),
    [
        (["the second text"], "exact"),
        (["b.md"], "ids(at=doc)"),
        ([{"doc": "b.md"}], "ids(at=doc)"),
        ([{"doc": "b.md", "start": 12, "end": 20}], "spans(coverage=0.5)"),
        ([{"id": "g1", "doc": "b.md", "start": 12, "end": 20}], "spans(coverage=0.5)"),
        ([{"id": "g1", "text": "the second text"}], "exact"),
        ([DOCUMENTS[1].id], "ids"),
        ([DOCUMENTS[1]], "ids"),
        ([document("the second text", "b.md", start=10)], "spans(coverage=0.5)"),  # of another ingestion
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_the_judge_that_fits_random_ids(gold, judge):
    assert judged(DOCUMENTS, gold) == (0.5, judge)


def test_the_judge_that_fits_hashes():
    hashed = [SimpleNamespace(id=f"{HASH}{end}", content=f"text number {end}", meta={}) for end in ("01", "02")]
    assert judged(hashed, ["text number 02"]) == (0.5, "exact")
    assert judged(hashed, [{"id": "g", "text": "text number 02"}]) == (0.5, "exact")
    assert judged(hashed, [hashed[1]]) == (0.5, "ids")


def test_ids_that_the_user_set_are_compared():
    documents = [document("the first text", "a.md", "c1"), document("the second text", "b.md", "c2")]
    assert judged(documents, ["c2"]) == (0.5, "ids")
    assert judged(documents, [{"id": "c2", "text": "another text"}]) == (0.5, "ids")
    assert judged(documents, ["c2"], judge="ids") == (0.5, "ids")


def test_generated_gold_ids():
    documents = [document("the first text", "a.md", "c1"), document("the second text", "b.md", "c2")]
    gold = SimpleNamespace(page_content="the second text", id=str(uuid.uuid4()), metadata={})
    assert judged(documents, [gold]) == (0.5, "exact")
    run = karat.evaluate(retrieved=[documents], gold=[[gold]], metrics="rr")
    assert run.provenance.judge_reason == "both sides have texts; the gold ids are random, and none is on both sides"


def test_ids_that_match_nothing_stay_ids():
    value, judge = judged(DOCUMENTS, ["c2"])
    assert (value, judge) == (0, "ids")
    value, judge = judged(DOCUMENTS, [str(uuid.uuid4())])
    assert (value, judge) == (0, "ids")


def test_bare_strings_that_name_documents_of_items_without_ids():
    texts = [("the first text", "a.md"), ("the second text", "b.md")]
    without = [SimpleNamespace(page_content=text, metadata={"source": doc}) for text, doc in texts]
    assert judged(without, ["b.md"]) == (0.5, "ids(at=doc)")
    assert judged(without, ["the second text"]) == (0.5, "exact")


def test_the_reason_names_the_ids():
    run = karat.evaluate(retrieved=[DOCUMENTS], gold=[["b.md"]], metrics="rr")
    why = "the gold names documents; the retrieved ids are random, and none is on both sides"
    assert run.provenance.judge_reason == why


def test_a_note_on_random_ids_and_on_hashes():
    hashed = SimpleNamespace(id=f"{HASH}01", content="x", meta={})
    mixed = [document("a text", "a", "c1"), document("other text", "b"), hashed]
    run = karat.evaluate(retrieved=[mixed], gold=[["c1"]], metrics="rr")
    said = " ".join(run.remarks())
    assert (
        f"1 of 3 ids of retrieved items are random, such as {mixed[1].id}: they change when the index is built again"
        in said
    )
    assert f"1 of 3 ids of retrieved items are hashes, such as {HASH[:12]}…: they change when a text is edited" in said
    chosen = karat.evaluate(retrieved=[[document("a", "a", "c1")]], gold=[["c1"]], metrics="rr")
    assert len(chosen.remarks()) == 1


def test_scores_and_distances():
    distances = {"ids": [["1", "2"]], "documents": [["x", "y"]], "distances": [[0.1, 7.0]]}
    (scores,) = rankings_of([distances], ["q"], by_id(["q"])).sorted_scores(STANDARD)
    assert list(scores) == [-0.1, -7]
    run = karat.evaluate(retrieved=[distances], gold=[["2"]], metrics="rr")
    assert run.mean["rr"] == 0.5
    said = '1 list has a "distance" and no score: the smaller, the better; shown as a negative score.'
    assert said in run.remarks()
    rising = [(one, float(number)) for number, one in enumerate(DOCUMENTS)]
    run = karat.evaluate(retrieved=[rising], gold=[["b.md"]], metrics="rr")
    assert run.mean["rr"] == 0.5
    assert any("as distances do: the order is kept" in line for line in run.remarks())


def test_iterators_and_other_sequences():
    assert judged((one for one in DOCUMENTS), ["b.md"]) == (0.5, "ids(at=doc)")
    assert judged(iter(["a", "b"]), ["b"]) == (0.5, "ids")
    assert judged(["a", "b"], iter(["b"])) == (0.5, "ids")
    names = [uuid.uuid4(), uuid.uuid4()]
    assert judged(names, [names[1]]) == (0.5, "ids")
    assert judged(names, [str(names[1])]) == (0.5, "ids")


def test_iterators_are_read_once_where_bad_rows_are_skipped():
    samples = [{"retrieved": iter(["a", "b"]), "gold": ["b"]}, {"retrieved": None, "gold": ["b"]}]
    run = karat.evaluate(samples, "rr", skip_bad_rows=True)
    assert (run.mean["rr"], len(run)) == (0.5, 1)


def test_objects_in_steps():
    steps = [{"retrieved": [DOCUMENTS[0]]}, {"retrieved": [DOCUMENTS[1]]}]
    assert karat.evaluate([{"steps": steps, "gold": ["the second text"]}], "rr").mean["rr"] == 0.5
    assert karat.evaluate([{"steps": steps, "gold": [DOCUMENTS[1]]}], "rr").mean["rr"] == 0.5


@pytest.mark.parametrize(
    ("retrieved", "message"),
    [
        ([object()], 'query "1": item 1 of retrieved is a object'),
        ([*DOCUMENTS, None], 'item 3 of query "1": retrieved is None'),
        ([*DOCUMENTS, "a"], 'query "1": retrieved mixes records and strings'),
        ({"documents": [None]}, 'item 1 of query "1": retrieved is None'),
        (DOCUMENTS[0], 'query "1": field "retrieved" is a SimpleNamespace; expected a list'),
    ],
    ids=["object", "none", "mixed", "outputs", "one"],
)
def test_bad_rankings(retrieved, message):
    with pytest.raises(karat.InputError) as caught:
        karat.evaluate(retrieved=[retrieved], gold=[["a"]])
    assert message in caught.value.problem


def test_runs_with_objects_are_saved_and_merged(tmp_path):
    gold = {"q1": ["b.md"], "q2": ["a.md"]}
    run = karat.evaluate(retrieved={"q1": DOCUMENTS, "q2": DOCUMENTS}, gold=gold, metrics="rr")
    run.save(tmp_path / "run.parquet")
    loaded = karat.load(tmp_path / "run.parquet")
    assert loaded.mean == run.mean == {"rr": 0.75}
    assert loaded.remarks() == run.remarks()
    assert karat.evaluate(retrieved=[DOCUMENTS] * 2, gold=[["b.md"]] * 2, metrics="rr", jobs=2).mean["rr"] == 0.5


def test_a_result_of_chroma_for_several_queries():
    both = {
        "ids": [["a", "b"], ["c"]], "documents": [["x", "y"], ["z"]], "metadatas": [[None, None], [{"source": "c.md"}]],
        "distances": [[0.1, 0.2], [0.5]], "embeddings": None, "included": ["documents", "distances"],
    }  # fmt: skip
    run = karat.evaluate(retrieved=both, gold=[["b"], ["c"]], metrics="rr")
    assert run.scores["rr"].tolist() == [0.5, 1.0]
    by_query = karat.evaluate(
        retrieved={"ids": ["a", "b"], "q2": ["c"]}, gold={"ids": ["b"], "q2": ["c"]}, metrics="rr"
    )
    assert by_query.scores["rr"].tolist() == [0.5, 1.0]


def test_a_frame_as_one_ranking():
    frame = SimpleNamespace(iterrows=None, to_dict=lambda form: [{"docno": "a"}, {"docno": "b"}])  # as of pandas
    assert judged(frame, ["b"]) == (0.5, "ids")
    assert judged(pl.DataFrame({"id": ["a", "b"]}), ["b"]) == (0.5, "ids")
