"""Items without the field a judge compares: the error names query, field, and a judge that works; odd texts."""

from __future__ import annotations

import polars as pl
import pytest

import karat
from karat.judges import all_judges
from support.forked import run_karat

TEXT_JUDGES = ["exact", "text", "contains", "fuzzy", "spans"]
WITH_IDS = [{"id": "a", "text": "x"}, {"id": "b"}]


@pytest.mark.parametrize("judge", TEXT_JUDGES)
@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ({"retrieved": WITH_IDS, "gold": ["a"]}, ['item 2 of retrieved in query "q1" has no "text"', 'judge="ids"']),
        (
            {"retrieved": [{"id": "a", "text": "x"}], "gold": WITH_IDS},
            ['item 2 of gold in query "q1" has no "text"', 'judge="ids"'],
        ),
        (
            {"retrieved": [{"id": "a"}], "gold": [{"id": "a"}]},
            ['the items of retrieved, in query "q1" for example, have only: id', 'judge="ids"'],
        ),
        (
            {"retrieved": [{"id": "a"}], "gold": [{"text": "a"}]},
            ["the items of retrieved", "in every item of both sides"],
        ),
        (
            {"retrieved": [{"doc": "a"}], "gold": [{"doc": "a"}]},
            ["have only: doc", 'judge="ids(at=doc)"'],
        ),
    ],
)
def test_missing_texts_are_explained(judge, sample, said):
    with pytest.raises(karat.InputError) as error:
        karat.evaluate([{"id": "q1"} | sample], "recall", judge=judge)
    for words in said:
        assert words in str(error.value)


@pytest.mark.parametrize("text", [b"bytes", 1.5, ["a"], {"x": 1}, True])
def test_values_that_are_no_text_are_refused(text):
    with pytest.raises(karat.InputError, match=r'"text" of a (retrieved|gold) record'):
        karat.evaluate([{"retrieved": [{"id": "a", "text": text}], "gold": ["a"]}], "recall", judge="contains")


@pytest.mark.parametrize("judge", TEXT_JUDGES)
@pytest.mark.parametrize("text", ["\x00\x01\x02 binary \xff", "\ud800 lone", "🙂" * 1000, "a\u0000b", "\u202eright"])
def test_any_string_is_a_text(judge, text, tmp_path):
    run = karat.evaluate(retrieved=[["something else", text]], gold=[[text]], metrics="rr", judge=judge)
    assert run.mean["rr"] == 0.5
    run.save(tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").mean == run.mean


@pytest.mark.parametrize("judge", ["text", "contains", "spans"])
def test_very_long_texts_are_compared(judge):
    text = "lorem ipsum dolor sit amet " * 200_000
    assert karat.score("recall", ["x", text + "tail" if judge != "text" else text.upper()], [text], judge=judge) == 1.0


@pytest.mark.parametrize("judge", TEXT_JUDGES)
def test_nothing_retrieved_is_zero_and_no_gold_is_undefined(judge):
    run = karat.evaluate(retrieved=[[], ["a b"], []], gold=[["a b"], [], []], metrics="recall precision@1", judge=judge)
    assert run.undefined == {"recall": 2, "precision@1": 2}
    assert run.mean == {"recall": 0.0, "precision@1": 0.0}


@pytest.mark.parametrize("judge", TEXT_JUDGES)
def test_every_layout_gives_the_same_scores(judge):
    """Lists, records, dicts of scores, frames, and numbers for texts."""
    text = {"a": "some text of a", "b": "other words in b", "c": "and c is there"}
    layouts = [
        {"retrieved": [[text["b"], text["a"]]], "gold": [[text["a"], text["c"]]]},
        {"retrieved": [[{"text": text["b"]}, {"text": text["a"]}]], "gold": [[text["a"], text["c"]]]},
        {"retrieved": {"q": {text["a"]: 1.0, text["b"]: 2.0}}, "gold": {"q": {text["a"]: 1, text["c"]: 1}}},
        {
            "retrieved": pl.DataFrame({"query_id": ["q", "q"], "doc_id": [text["a"], text["b"]], "score": [1.0, 2.0]}),
            "gold": {"q": [{"text": text["a"]}, {"text": text["c"]}]},
        },
        {"samples": pl.DataFrame({"retrieved": [[text["b"], text["a"]]], "gold": [[text["a"], text["c"]]]})},
    ]
    for layout in layouts:
        assert karat.evaluate(**layout, metrics="recall rr", judge=judge).mean == {"recall": 0.5, "rr": 0.5}
    assert karat.score("rr", [{"text": 7}, {"text": 12}], [12], judge=judge) == 0.5


def test_scores_order_the_chunks_on_request():
    chunks = [{"text": "wrong one", "score": 0.1}, {"text": "right one", "score": 0.9}]
    for judge in TEXT_JUDGES:
        assert karat.score("rr", chunks, ["right one"], judge=judge) == 0.5
        assert karat.score("rr", chunks, ["right one"], judge=judge, order="score") == 1.0


@pytest.mark.parametrize("judge", sorted(set(all_judges()) - {"relevance"}))  # which asks a model
def test_every_judge_works_on_the_command_line(judge, tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text('{"retrieved": ["a b c", "d e f"], "gold": ["d e f"]}\n')
    done = run_karat("eval", path, "rr", "--judge", judge, "--format", "json", text=True)
    assert done.returncode == 0, done.stderr
    assert '"rr": 0.5' in done.stdout


def test_judge_settings_on_the_command_line(tmp_path):
    path, documents = tmp_path / "samples.jsonl", tmp_path / "docs"
    documents.mkdir()
    (documents / "d.txt").write_text("A cat sat on the mat. A dog did not.")
    path.write_text(
        '{"retrieved": [{"doc": "d", "start": 0, "end": 20}], "gold": [{"doc": "d", "text": "cat  sat on"}]}\n'
    )
    options = ["--judge", f"spans(0.5, corpus={documents})", "--tokens", "builtins:len"]
    done = run_karat("eval", path, "recall span_precision@20t", *options, text=True)
    assert "a token budget needs the text of every retrieved item" in done.stderr
    assert done.returncode == 2
    done = run_karat("eval", path, "recall span_precision", *options, text=True)
    assert done.returncode == 0, done.stderr
    assert "recall           1.000" in done.stdout
    listed = run_karat("judges", text=True)
    assert listed.returncode == 0, listed.stderr
    assert all(name in listed.stdout for name in all_judges())


@pytest.mark.parametrize("place", ["nowhere:len", "builtins:nothing", "builtins", "x.py:f"])
def test_a_missing_token_counter_is_an_error(place, tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text('{"retrieved": ["a b c"], "gold": ["d e f"]}\n')
    done = run_karat("eval", path, "recall@5t", "--tokens", place, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
