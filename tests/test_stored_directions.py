"""The direction of a custom metric is that of the run file where the metric is not registered."""

import numpy as np
import pytest

import karat
from karat.metrics.registry import METRICS, STORED
from karat.run.lazy_run import LazyRun

NAME = "missed_share"


@pytest.fixture
def saved(tmp_path):
    """Two run files of a metric of which less is better, B better than A, as a process without the metric sees them."""

    @karat.metric(more_is_better=False)
    def missed_share(hits, k, c):
        return 1.0 - np.minimum(hits.found(k, c), 1)

    paths = []
    for name, found in (("a", 10), ("b", 35)):
        rows = [
            {"id": f"q{n}", "retrieved": ["x"] if n < found else ["y"], "gold": ["x"], "topic": "t"} for n in range(40)
        ]
        paths.append(tmp_path / f"{name}.parquet")
        karat.evaluate(rows, f"{NAME}@3 recall@3").save(paths[-1])
    del METRICS[NAME]
    yield paths
    STORED.pop(NAME, None)


def test_a_comparison_of_the_files_names_the_better_run(saved):
    comparison = karat.compare(*saved)
    row = comparison.rows[0]
    assert (row.metric, row.verdict, row.won, row.lost) == (f"{NAME}@3", "better", 25, 0)
    assert not any("taken as better" in line for line in comparison.remarks())


def test_a_run_that_is_opened_lazily_has_the_direction(saved):
    LazyRun.open(saved[0])
    assert STORED == {NAME: False}


def test_a_gate_on_the_files_fails_for_a_rise_only(saved):
    a, b = saved
    assert karat.gate(b, f"{NAME}@3 no-rise", baseline=a).verdict == "passed"
    assert karat.gate(a, f"{NAME}@3 no-rise", baseline=b).verdict == "failed"


def test_the_direction_is_kept_when_a_loaded_run_is_saved_again(saved, tmp_path):
    karat.load(saved[0]).save(tmp_path / "again.parquet")
    STORED.clear()
    karat.load(tmp_path / "again.parquet")
    assert STORED == {NAME: False}


def test_runs_that_do_not_say_it_are_compared_with_a_remark(saved):
    runs = [karat.load(path) for path in saved]
    STORED.clear()
    remark = f"{NAME}@3: more is taken as better; the run files do not say it."
    comparison = karat.compare(*runs)
    assert comparison.rows[0].verdict == "worse"
    assert remark in comparison.remarks()
    assert remark in karat.gate(runs[1], f"{NAME}@3 <= 0.9").remarks()
