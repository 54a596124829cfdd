"""The example with MLflow, run as a program."""

from __future__ import annotations

from frameworks.programs import output_of


def test_mlflow(tmp_path):
    lines = output_of("with_mlflow.py", tmp_path)
    assert lines[-1] == "{'recall_at_1/mean': 0.5, 'recall_at_2/mean': 0.667, 'rr/mean': 0.667}"
