"""What becomes of the spans of a trace: steps, stages, failures, filters, and their gold."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

import karat
from karat.samples.sources import find_source
from karat.samples.traces import holds_traces
from karat.samples.traces.span_filter import read_conditions
from support.spans_by_hand import ids_of, otlp, read, retriever
from support.trace_shapes import FIXTURES

KIND = "openinference.span.kind"
FAILED = {"_status": {"code": 2, "message": "down"}}


def reranker(before, after, **more):
    sides = {"input": before, "output": after}
    found = {f"reranker.{s}_documents.{n}.document.id": i for s, own in sides.items() for n, i in enumerate(own)}
    return {KIND: "RERANKER", "_name": "rerank", **found, **more}


def stages_of(sample):
    return {name: ids_of(items) for name, items in sample["stages"].items()}


def test_several_retrievers_are_steps_in_the_order_of_time(tmp_path):
    late, soon = retriever("two", "b", _startTimeUnixNano="9"), retriever("one", "a", _startTimeUnixNano="5")
    (sample,) = read(tmp_path, otlp(late, soon))
    assert [(step["query"], ids_of(step["retrieved"])) for step in sample["steps"]] == [("one", ["a"]), ("two", ["b"])]
    assert (sample["id"], sample["query"], sample["span_ids"]) == ("t", "one", "s1,s0")
    assert "span_id" not in sample
    assert "trace_input" not in sample
    assert len(read(tmp_path, otlp(late, soon), steps=False)) == 2


def test_the_span_of_steps_is_the_root_around_them(tmp_path):
    root = {KIND: "CHAIN", "input.value": '{"question": "both?"}', "_spanId": "root"}
    spans = [retriever("one", "a", _parentSpanId="root"), retriever("two", "b", _parentSpanId="root")]
    (sample,) = read(tmp_path, otlp(root, *spans))
    assert (sample["span_id"], sample["query"]) == ("root", "both?")


def test_a_reranker_belongs_to_the_retrievers_before_it(tmp_path):
    one, two = retriever("one", "a", "b"), retriever("two", "c")
    assert stages_of(read(tmp_path, otlp(one, reranker("ab", "ba")))[0]) == {
        "retrieve": ["a", "b"],
        "rerank": ["b", "a"],
    }
    assert stages_of(read(tmp_path, otlp(reranker("ab", "ba")))[0]) == {"retriever": ["a", "b"], "rerank": ["b", "a"]}
    merged = read(tmp_path, otlp(one, two, reranker("abc", "cba")))[0]
    assert stages_of(merged) == {"retrieve": ["a", "b", "c"], "rerank": ["c", "b", "a"]}
    joined = read(tmp_path, otlp(one, two, reranker("", "cba")))[0]
    assert stages_of(joined)["retrieve"] == ["a", "b", "c"]
    again = read(tmp_path, otlp(one, reranker("ab", "ba"), reranker("ba", "a")))[0]
    assert stages_of(again) == {"retrieve": ["a", "b"], "rerank": ["b", "a"], "rerank 2": ["a"]}
    both = read(tmp_path, otlp(one, reranker("ab", "ba"), two, reranker("c", "c"), retriever("three", "d")))[0]
    assert [ids_of(step["retrieved"]) for step in both["steps"]] == [["b", "a"], ["c"], ["d"]]


def test_eval_takes_the_last_stage_and_stages_all(tmp_path):
    path = tmp_path / "traces.jsonl"
    lines = [
        otlp(retriever("one", "a", "b", _traceId="t1", _spanId="x"), reranker("ab", "ba", _traceId="t1", _spanId="y"))
    ]
    path.write_text("\n".join([*lines, otlp(retriever("two", "b", _traceId="t2"))]))
    gold = {"one": ["b"], "two": ["b"]}
    run = karat.evaluate(path, "rr", gold=gold)
    assert (run.mean["rr"], list(run.ids)) == (1, ["one", "two"])
    assert any("karat stages" in line for line in run.remarks())
    found = karat.stages(karat.read_traces(path, gold=gold), "rr")
    assert {name: own.mean["rr"] for name, own in found.runs.items()} == {"retrieve": 0.5, "rerank": 1}


def test_stages_say_nothing_twice(tmp_path):
    (tmp_path / "traces.jsonl").write_text(otlp(retriever("one", "a", "b"), reranker(["a", "b"], ["a", "b"])))
    gold = [{"query": "one", "gold": ["a"]}]
    text = str(karat.stages(karat.read_traces(tmp_path / "traces.jsonl", gold=gold), "recall@2", k=2))
    assert "karat stages" not in text
    assert "What an ideal" not in text
    (tmp_path / "traces.jsonl").write_text(otlp(retriever("one", "b", "a"), reranker(["b", "a"], ["b", "a"])))
    text = str(karat.stages(karat.read_traces(tmp_path / "traces.jsonl", gold=gold), "recall@1", k=1))
    assert "What an ideal" in text


def test_a_failed_retrieval_is_not_one_without_steps(tmp_path):
    lines = [otlp(retriever("one", "a"), retriever("two", "b"))]
    lines += [otlp(retriever("three", _traceId="t2", _spanId="x", _status={"code": 2, "message": "no index"}))]
    (tmp_path / "traces.jsonl").write_text("\n".join(lines))
    gold = [{"query": query, "gold": ["a"]} for query in ("one", "three")]
    run = karat.evaluate(tmp_path / "traces.jsonl", "recall@1", gold=gold)
    assert len(run.failures) == 1
    assert not any(note.kind == "no_steps" for note in run.provenance.notes)


def test_samples_with_and_without_steps_are_evaluated_together(tmp_path):
    path = tmp_path / "traces.jsonl"
    several = otlp(retriever("one", "a", _traceId="t1", _spanId="x"), retriever("two", "b", _traceId="t1", _spanId="y"))
    path.write_text("\n".join([several, otlp(retriever("three", "c", _traceId="t2"))]))
    run = karat.evaluate(path, "recall@2", gold=[{"query": "one", "gold": ["b"]}, {"query": "three", "gold": ["c"]}])
    assert run.table["recall@2"].to_list() == [1, 1]


def test_failures_are_errors_unless_another_search_of_the_trace_is_fine(tmp_path):
    failed = retriever("one", **FAILED)
    (sample,) = read(tmp_path, otlp(failed))
    assert (sample["error"], "retrieved" in sample) == ("down", False)
    (sample,) = again = read(tmp_path, otlp(failed, retriever("one", "a")))
    assert ids_of(sample["retrieved"]) == ["a"]
    assert again.notes[0].sums["failed_steps"] == 1
    event = {
        "_status": {"code": 2},
        "_events": [{"attributes": [{"key": "exception.message", "value": {"stringValue": "x"}}]}],
    }
    assert read(tmp_path, otlp(retriever("one", **event)))[0]["error"] == "x"


def test_spans_inside_a_retriever_are_dropped(tmp_path):
    outer = retriever("both", "a", "b", _spanId="o")
    middle = {KIND: "CHAIN", "_spanId": "m", "_parentSpanId": "o"}
    inner = retriever("one", "a", _spanId="i", _parentSpanId="m")
    ranker = reranker("ab", "ba", _spanId="r", _parentSpanId="o")
    (sample,) = samples = read(tmp_path, otlp(inner, middle, outer, ranker))
    assert (sample["id"], samples.notes[0].sums["nested"]) == ("o", 2)
    silent = {KIND: "RETRIEVER", "input.value": "both", "_spanId": "o"}
    (sample,) = samples = read(tmp_path, otlp(inner, middle, silent))
    assert (sample["id"], samples.notes[0].sums["without_documents"]) == ("i", 1)
    circle = [
        retriever("one", "a", _spanId="p", _parentSpanId="q"),
        {KIND: "CHAIN", "_spanId": "q", "_parentSpanId": "p"},
    ]
    assert read(tmp_path, otlp(*circle))[0]["id"] == "p"


def test_damaged_lines_and_spans_are_counted(tmp_path):
    good = otlp(retriever("one", "a"))
    odd = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": ["text", {"attributes": 5, "status": []}]}]}]})
    path = tmp_path / "traces.jsonl"
    path.write_bytes(
        b"\n".join([good.encode(), b'{"cut', b"\xff\xfe", odd.encode(), b"[1]", b"", good.replace("s0", "s9").encode()])
    )
    samples = karat.read_traces(path)
    assert samples.notes[0].sums["unreadable"] >= 4
    assert len(samples[0]["steps"]) == 2
    with pytest.raises(karat.InputError, match="no traces"):
        karat.read_traces(read_nothing(tmp_path))


def read_nothing(tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"trace_id": 1, "a": 2}\n')
    return path


def test_samples_of_karat_with_trace_ids_are_no_traces(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps({"id": "q", "trace_id": "t", "span_id": "s", "retrieved": ["a"], "gold": ["a"]}))
    assert karat.evaluate(path, "rr").mean["rr"] == 1
    assert not holds_traces(find_source(path))


def test_a_span_that_is_given_again_counts_once(tmp_path):
    samples = read(tmp_path, otlp(retriever("one", "a")), otlp(retriever("one", "b")))
    assert ids_of(samples[0]["retrieved"]) == ["b"]
    assert samples.notes[0].sums["repeated"] == 1


def test_items_of_one_file_have_the_same_fields(tmp_path):
    scored = retriever("one", "a", **{"retrieval.documents.0.document.score": 0.5})
    text = {KIND: "RETRIEVER", "input.value": "two", "retrieval.documents.0.document.content": "Open from 9."}
    samples = read(tmp_path, otlp(scored, text), steps=False)
    assert [sample["retrieved"] for sample in samples] == [
        [{"id": "a"}],
        [{"id": "Open from 9.", "text": "Open from 9."}],
    ]


def test_nothing_to_evaluate(tmp_path):
    with pytest.raises(karat.InputError, match="no span of a retriever has documents"):
        read(tmp_path, otlp({KIND: "RETRIEVER", "input.value": "one"}))
    with pytest.raises(karat.InputError, match=", but no span of a retriever"):
        read(tmp_path, otlp({KIND: "CHAIN"}))
    with pytest.raises(karat.InputError, match="traces have no gold"):
        karat.evaluate(FIXTURES / "mlflow_traces.jsonl", "rr")
    with pytest.raises(karat.InputError, match='no column "stages"'):
        karat.stages(read(tmp_path, otlp(retriever("one", "a"))), "rr")


SPANS = (
    retriever("one", "a", **{"session.id": "s1", "metadata": '{"user": {"id": 7}}', "tags": ["x", "y"], "hot": True}),
    retriever("two", "b", **{"session.id": "s2", "count": 12}, _name="search", _endTimeUnixNano=str(10**18 + 10**9)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("where", "queries"),
    [
        ('session.id == "s1"', ["one"]),
        ("session.id != s1", ["two"]),
        ("session = s2", ["two"]),
        ("metadata.user.id == 7", ["one"]),
        ("metadata.user.name == 7", []),
        ("tags contains x", ["one"]),
        ("session.id contains s", ["one", "two"]),
        ("count > 9 and name = search", ["two"]),
        ("count >= 12", ["two"]),
        ("count < 12", []),
        ("count <= 'b'", ["two"]),
        ("hot == true", ["one"]),
        ("latency > 900", ["two"]),
        (["session.id contains s", "count != 12"], ["one"]),
        ("span_id == s1 and trace_id == t", ["two"]),
        ("resource.unknown.name == 1", []),
    ],
)
def test_where(tmp_path, where, queries):
    line = otlp(*SPANS)
    if not queries:
        with pytest.raises(karat.InputError, match=r"is left by where|no span of a retriever has"):
            read(tmp_path, line, where=where)
        return
    samples = read(tmp_path, line, where=where, steps=False)
    assert [sample["query"] for sample in samples] == queries
    assert samples.notes[0].sums.get("filtered", 0) == 2 - len(queries)


def test_a_misspelt_attribute_is_named(tmp_path):
    with pytest.raises(karat.InputError) as caught:
        read(tmp_path, otlp(*SPANS), where="sesion.id == s1")
    assert 'no span of a retriever has "sesion.id"' in str(caught.value)
    assert caught.value.got.startswith("['session.id', 'session', ")
    assert caught.value.hint == "session.id == …"


def test_values_of_an_attribute_are_named(tmp_path):
    with pytest.raises(karat.InputError, match="is left by where") as caught:
        read(tmp_path, otlp(*SPANS), where="session.id == other and latency > 0")
    assert caught.value.got.startswith("'session.id: s")


@pytest.mark.parametrize(
    "text", ["", "name", "name ==", "a == 1 or b == 2", "a == 1, b == 2", "__import__('os')", 'a == "x']
)
def test_other_conditions_are_refused(text):
    with pytest.raises(karat.BadArgument):
        read_conditions(text)


def test_since_and_until(tmp_path):
    now = datetime.now(UTC)
    days = [
        retriever(str(n), "a", _startTimeUnixNano=str(int((now - timedelta(days=n)).timestamp()) * 10**9))
        for n in (9, 3, 0)
    ]
    line = otlp(*days, retriever("no time", "a", _startTimeUnixNano=None))

    def left(**options):
        return [sample["query"] for sample in read(tmp_path, line, steps=False, **options)]

    assert left(since="7d") == left(since=timedelta(days=7)) == left(since=now - timedelta(days=7)) == ["3", "0"]
    assert left(until="1d") == ["9", "3"]
    assert left(since="1w", until="24h") == ["3"]
    assert left(since="99999999w") == ["9", "3", "0"]
    assert left(since=(now - timedelta(days=7)).date().isoformat()) == ["3", "0"]
    assert left(since=date.today() - timedelta(days=7)) == ["3", "0"]  # noqa: DTZ011
    for wrong in ("yesterday", "7", True):
        with pytest.raises(karat.BadArgument, match="since is no time"):
            left(since=wrong)


def test_gold_by_text_id_and_input(tmp_path):
    root = {KIND: "CHAIN", "input.value": "asked?", "_spanId": "root", "_traceId": "t5"}
    lines = [
        otlp(retriever(query, "a", _traceId=f"t{n}", _spanId=f"x{n}"))
        for n, query in enumerate(["one", " one ", "two", "three"])
    ]
    lines.append(otlp(root, retriever("rewritten", "b", _traceId="t5", _spanId="x5", _parentSpanId="root")))
    gold = [
        {"id": "q1", "query": "one\n", "gold": ["a"], "topic": "x", "answer": "yes"},
        {"id": "q5", "query": "asked?", "gold": [{"id": "b", "grade": 2}], "topic": "y"},
        {"id": "q9", "query": "never", "gold": ["a"], "topic": "y"},
        {"id": "x2", "query": "of a span", "gold": ["z"], "topic": "y"},
    ]
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(lines))
    run = karat.evaluate(path, "rr", gold=gold)
    assert dict(zip(run.ids, run.table["rr"], strict=True)) == {"q1 #1": 1, "q1 #2": 1, "x2": 0, "q5": 1}
    assert run.queries == ["q1", "x2", "q5"]
    assert {name: own.mean["rr"] for name, own in run.by("topic").items()} == {"x": 1, "y": 0.5}
    assert run.meta["span_id"] == ["x0", "x1", "x2", "x5"]
    note = next(note for note in run.provenance.notes if note.kind == "trace_gold")
    assert (note.count, note.of, note.examples) == (1, 5, ("three",))
    assert note.sums == {"unused": 1, "repeated": 1, "in_repeats": 2}
    saved = tmp_path / "run.parquet"
    run.save(saved)
    assert karat.load(saved).meta["span_id"] == run.meta["span_id"]
    assert karat.load(saved).remarks() == run.remarks()
    graded = karat.evaluate(path, "rr", gold={"one": {"a": 1, "b": 0}, "two": {"c": 2}})
    assert graded.table["rr"].to_list() == [1, 1, 0]


def test_gold_that_does_not_fit(tmp_path):
    traces = read(tmp_path, otlp(retriever("opening hours", "a")))
    with pytest.raises(karat.InputError, match="no query of the traces") as caught:
        karat.evaluate(traces, "rr", gold={"opening hour": ["a"]})
    assert caught.value.hint == '"opening hour"'
    with pytest.raises(karat.InputError, match="neither query texts nor ids"):
        karat.evaluate(traces, "rr", gold=[["a"]])
    with pytest.raises(karat.InputError, match="two queries have the same text"):
        karat.evaluate(traces, "rr", gold=[{"query": "opening hours", "gold": ["a"]}] * 2)


def test_several_files_are_one_set_of_traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    (folder / "1.jsonl").write_text(otlp(retriever("one", "a")))
    (folder / "2.jsonl").write_text(otlp(retriever("two", "b", _spanId="x")))
    assert len(karat.read_traces(folder)[0]["steps"]) == 2
    tables = tmp_path / "tables"
    tables.mkdir()
    frame = pl.read_parquet(FIXTURES / "phoenix_spans.parquet")
    frame.write_parquet(tables / "1.parquet")
    frame.drop("attributes.gen_ai", strict=False).head(3).write_parquet(tables / "2.parquet")
    assert list(karat.read_traces(tables)) == list(karat.read_traces(frame))


def test_files_of_different_formats_are_one_set_of_traces(tmp_path):
    (tmp_path / "a.jsonl").write_text(otlp(retriever("one", "a")))
    (tmp_path / "b.json").write_text(f"[{otlp(retriever('two', 'b', _traceId='t2', _spanId='x'))}]")
    (tmp_path / "c.parquet").write_bytes((FIXTURES / "phoenix_spans.parquet").read_bytes())
    samples = karat.read_traces(tmp_path)
    own = karat.read_traces(tmp_path / "c.parquet")
    assert len(samples) == len(own) + 2
    assert {"one", "two"} < {sample["query"] for sample in samples}
    (tmp_path / "d.csv").write_text("id,retrieved,gold\n1,a,a\n")
    with pytest.raises(karat.InputError, match="files of different formats") as caught:
        karat.read_traces(tmp_path)
    assert caught.value.hint == str(tmp_path / "*.jsonl")
