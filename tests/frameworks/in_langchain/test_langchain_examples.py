"""The examples with LangChain and LangSmith, run as programs."""

from __future__ import annotations

from frameworks.programs import output_of


def test_langchain(tmp_path):
    lines = output_of("with_langchain.py", tmp_path)
    assert [line.split()[:2] for line in lines[2:5]] == [["recall@1", "0.500"], ["recall@2", "0.667"], ["rr", "0.667"]]


def test_langsmith(tmp_path):
    lines = output_of("with_langsmith.py", tmp_path)[-7:]
    assert lines == [
        "when are refunds paid [1.0, 1.0, 1.0]",
        "what is free [0.0, 0.0, 0.0]",
        "two weeks [0.5, 1.0, 1.0]",
        "why [None, None, None]",
        "recall@1 mean   0.500  3 queries, 1 undefined",
        "recall@2 mean   0.667  3 queries, 1 undefined",
        "rr mean         0.667  3 queries, 1 undefined",
    ]
