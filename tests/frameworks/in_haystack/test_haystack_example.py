"""The example with Haystack, run as a program."""

from __future__ import annotations

from frameworks.programs import output_of


def test_haystack(tmp_path):
    report, *lines = output_of("with_haystack.py", tmp_path)
    assert report.startswith("{'metrics': ['recall@1', 'recall@2', 'rr'], 'score': [0.5, 0.666")
    assert [line.split()[:2] for line in lines[2:5]] == [["recall@1", "0.500"], ["recall@2", "0.667"], ["rr", "0.667"]]
