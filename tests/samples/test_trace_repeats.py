"""Traces with gold: the id of a sample is that of the gold query, and several traces of a query are its repeats."""

from __future__ import annotations

import json

import pytest

import karat
from karat.bridges.push import scores_to_push
from karat.scale.memory import MemoryLimits
from support.spans_by_hand import ids_of, otlp, read, retriever

KIND = "openinference.span.kind"
SMALL = MemoryLimits(3000, fewest_rows=7, item_bytes=0)
GOLD = [{"id": f"q{n}", "query": f"question {n}", "gold": ["a"]} for n in range(6)]


def asked(query, *ids, trace, start: int | None = 0, **more):
    """A trace with one retriever, that started so many milliseconds after a time."""
    began = None if start is None else str(10**18 + start * 10**6)
    return otlp(retriever(query, *ids, _traceId=trace, _spanId=f"s-{trace}", _startTimeUnixNano=began, **more))


def write(path, *lines):
    path.write_text("\n".join(lines))
    return path


def many(path, name):
    """Each of six questions in four traces; every second search finds its gold, and all do in the run "better"."""
    lines = [
        asked(f"question {n % 6}", "a" if name == "better" or n >= 12 else "x", trace=f"{name}-{n}", start=-n)
        for n in range(24)
    ]
    return write(path / f"{name}.jsonl", *lines)


def test_traces_of_one_query_are_repeats_in_the_order_of_time(tmp_path):
    lines = [
        asked("question 0", "x", trace="late", start=9000),
        asked("question 1", "a", trace="other", start=5),
        asked("question 0", "a", trace="soon", start=1000),
        asked("question 0", "a", trace="never", start=None),
    ]
    path = write(tmp_path / "traces.jsonl", *lines)
    samples = karat.read_traces(path, gold=GOLD)
    assert [(row["id"], row.get("repeat")) for row in samples] == [("q0", 2), ("q1", None), ("q0", 1), ("q0", 3)]
    run = karat.evaluate(path, "rr", gold=GOLD)
    assert run.ids == karat.evaluate(samples, "rr").ids == ["q0 #2", "q1", "q0 #1", "q0 #3"]
    assert run.mean["rr"] == pytest.approx((2 / 3 + 1) / 2)
    assert run.meta["trace_id"] == ["late", "other", "soon", "never"]
    assert run.averaged().ids == ["q0", "q1"]
    assert "1 query occurs in several traces, 3 in all" in " ".join(run.remarks())
    other = [{"id": "p0", "query": "question 0", "gold": ["a"]}, {"id": "p1", "query": "question 1", "gold": ["a"]}]
    assert karat.evaluate(karat.read_traces(path, gold=GOLD[:2]), "rr", gold=other[1:]).ids == ["p1"]


def test_gold_without_ids_gives_its_texts_as_ids(tmp_path):
    path = write(tmp_path / "traces.jsonl", *(asked(" why? ", "a", trace=f"t{n}") for n in range(2)))
    assert karat.evaluate(path, "rr", gold=[{"query": "why?", "gold": ["a"]}]).ids == ["why? #1", "why? #2"]
    assert [row["id"] for row in karat.read_traces(path)] == ["s-t0", "s-t1"]


def test_fields_of_other_results_in_the_gold_are_not_taken(tmp_path):
    gold = [{**GOLD[0], "latency": 7.0, "span_id": "old", "topic": "x"}]
    (row,) = read(tmp_path, asked("question 0", "a", trace="t"), gold=gold)
    assert (row["span_id"], row["topic"], "latency" in row) == ("s-t", "x", False)


@pytest.mark.parametrize("options", [{}, {"jobs": 2}, {"memory": SMALL}])
def test_runs_of_different_traces_are_compared_by_question(tmp_path, options):
    base, better = (karat.evaluate(many(tmp_path, name), "rr", gold=GOLD, **options) for name in ("base", "better"))
    assert (len(base), base.queries) == (24, [f"q{n}" for n in range(6)])
    interval = base.interval()["rr"]
    assert interval.low < 0.3
    assert interval.high > 0.7
    (row,) = karat.compare(base, better).rows
    assert row.difference == 0.5
    saved = tmp_path / "base.parquet"
    base.save(saved)
    assert karat.load(saved).queries == base.queries


def test_each_repeat_is_pushed_to_its_span(tmp_path):
    run = karat.evaluate(many(tmp_path, "base"), "rr", gold=GOLD)
    sent = {one.span_id: (one.query_id, one.score) for one in scores_to_push(run, "phoenix").scores}
    assert len(sent) == 24
    assert sent["s-base-0"] == ("q0 #4", 0)
    assert sent["s-base-18"] == ("q0 #1", 1)


def test_steps_are_pushed_to_the_trace_or_each_to_its_span(tmp_path):
    spans = [retriever("question 0", "x"), retriever("rewritten", "a")]
    path = write(tmp_path / "traces.jsonl", otlp(*spans), asked("question 1", "a", trace="t1"))
    whole = scores_to_push(karat.evaluate(path, "recall@2", gold=GOLD), "phoenix").scores
    assert [(one.trace_id, one.span_id) for one in whole] == [("t", None), ("t1", "s-t1")]
    steps = karat.evaluate(path, "recall@2", gold=GOLD, at="step")
    assert [(one.query_id, one.span_id, one.score) for one in scores_to_push(steps, "phoenix").scores] == [
        ("q0#1", "s0", 0), ("q0#2", "s1", 1), ("q1#1", "s-t1", 1),
    ]  # fmt: skip
    own = [{"id": "q", "span_id": "s", "steps": [["a"], ["b"]], "gold": ["a"]}]
    with pytest.raises(karat.InputError, match='the span "s" belongs to two queries') as caught:
        scores_to_push(karat.evaluate(own, "rr", at="step"), "phoenix")
    assert "steps" in caught.value.hint


def test_the_query_is_that_of_the_first_search_unless_a_span_around_it_tells(tmp_path):
    first = retriever("question 0", "a", _startTimeUnixNano="5")
    failed = retriever("rewritten", _startTimeUnixNano="9", _status={"code": 2, "message": "down"})
    for spans in ([first, failed], [failed, first], [retriever("rewritten", "b", _startTimeUnixNano="9"), first]):
        (row,) = read(tmp_path, otlp(*spans), gold=GOLD)
        assert (row["id"], row["query"]) == ("q0", "question 0")
    root = {KIND: "CHAIN", "input.value": "asked?", "_spanId": "root"}
    inside = [retriever(text, "a", _parentSpanId="missing") for text in ("one", "two")]
    assert read(tmp_path, otlp(*inside, root))[0]["query"] == "asked?"
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts" / "1.jsonl", otlp(root, {KIND: "CHAIN", "input.value": "later", "_spanId": "z"}))
    write(tmp_path / "parts" / "2.jsonl", otlp(*(retriever(text, "a", _parentSpanId="root") for text in "ab")))
    assert karat.read_traces(tmp_path / "parts")[0]["query"] == "asked?"


def test_latency_is_the_time_in_which_a_search_was_running(tmp_path):
    def ran(start, end):
        begin, stop = (str(10**18 + time * 10**6) for time in (start, end))
        return retriever("one", "a", _startTimeUnixNano=begin, _endTimeUnixNano=stop)

    overlapping = {((0, 100), (0, 100)): 100, ((0, 100), (50, 150)): 150, ((0, 100), (20, 30)): 100}
    for times, expected in {**overlapping, ((0, 10), (90, 100)): 20}.items():
        (row,) = read(tmp_path, otlp(*(ran(*own) for own in times)))
        assert row["latency"] == expected
    assert "latency" not in read(tmp_path, otlp(retriever("one", "a")))[0]


def test_steps_of_a_trace_without_gold_change_nothing(tmp_path):
    unknown = otlp(retriever("other", "b", _spanId="x"), retriever("rewritten", "b", _spanId="y"))
    path = write(tmp_path / "traces.jsonl", unknown, asked("question 1", "a", trace="t1"))
    run = karat.evaluate(path, "rr", gold=GOLD)
    assert run.ids == ["q1"]
    assert "steps merged" not in str(run)
    assert "steps merged" in str(karat.evaluate(path, "rr", gold=[*GOLD, {"query": "other", "id": "o", "gold": ["b"]}]))


def test_errors_have_no_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "hunter2hunter2")
    message = "boom key sk-abcdef1234567890 hunter2hunter2"
    failed = asked("question 0", trace="t", _status={"code": 2, "message": message})
    (row,) = read(tmp_path, failed)
    assert row["error"] == "boom key [secret] [secret]"
    assert "sk-abc" not in json.dumps(row)
    assert ids_of(read(tmp_path, asked("question 0", "sk-abcdef1234567890", trace="t"))[0]["retrieved"])
