"""The example with Langfuse, run as a program."""

from __future__ import annotations

from frameworks.programs import output_of


def test_langfuse(tmp_path):
    assert output_of("with_langfuse.py", tmp_path)[-7:] == [
        "when are refunds paid [1.0, 1.0, 1.0]",
        "what is free [0.0, 0.0, 0.0]",
        "two weeks [0.5, 1.0, 1.0]",
        "why []",
        "recall@1 mean   0.500  3 queries, 1 undefined",
        "recall@2 mean   0.667  3 queries, 1 undefined",
        "rr mean         0.667  3 queries, 1 undefined",
    ]
