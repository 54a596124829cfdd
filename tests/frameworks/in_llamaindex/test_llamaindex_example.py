"""The example with LlamaIndex, run as a program."""

from __future__ import annotations

from frameworks.programs import output_of


def test_llamaindex(tmp_path):
    one, *lines = output_of("with_llamaindex.py", tmp_path)
    assert one == "{'recall@1': 0.5, 'recall@2': 1.0, 'rr': 1.0}"
    assert [line.split()[:2] for line in lines[2:5]] == [["recall@1", "0.500"], ["recall@2", "0.667"], ["rr", "0.667"]]
