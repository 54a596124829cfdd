"""Repeats where a run is shown and checked: the query is the unit of every count and interval, not the row."""

import json
import re
from html import unescape

import pytest

import karat
from karat.cli import main
from karat.errors import KaratError
from karat.report.html.curves import measured
from karat.report.run import metric_comments

QUERIES, REPEATS = 20, 3


def rows(failed=("q3",), failed_rows=("q5 #1",)):
    """Queries of two topics; q3 fails in each repeat, q5 in its first."""
    found = []
    for i in range(QUERIES):
        for n in range(1, REPEATS + 1):
            own = {"id": f"q{i}", "query": f"what is number {i}?", "repeat": n, "gold": ["a"], "topic": "xy"[i % 2]}
            if own["id"] in failed or f"q{i} #{n}" in failed_rows:
                own["error"] = "TimeoutError: 30 s"
            else:
                own |= {"retrieved": ["a", "b"] if i * n % 3 else ["b", "c"], "latency": 10.0 * (i + 1) + n}
            found.append(own)
    return found


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(rows(), "recall@1,2 precision@2")


def page(run, path):
    run.report(path / "page.html")
    text = (path / "page.html").read_text()
    return re.sub(r"\|+", "|", unescape(re.sub(r"<[^>]+>", "|", text)))


def test_the_page_counts_queries(run, tmp_path):
    shown = page(run, tmp_path)
    part = run.by("topic")["y"]
    low, high = part.interval()["recall@2"]
    assert f"|y|10, 9 scored|{part.mean['recall@2']:.3f}|{low:.2f} – {high:.2f}|" in shown
    assert "31 gold items of 19 queries (each repeat counts) are not in the top 2." in shown


def test_the_curve_over_k_is_that_of_the_means(run):
    found = measured(run, [1, 2])
    for k in (1, 2):
        assert found["recall"][k] == (pytest.approx(run.mean[f"recall@{k}"]), run.interval()[f"recall@{k}"])


def test_failures_are_counted_in_queries(run):
    assert (run.judged, len(run.failures)) == (19, 4)
    assert run.remarks()[0] == (
        "1 of 20 queries and 4 of 60 repeats could not be judged and are excluded: "
        "retrieval failed: TimeoutError: 30 s (4)."
    )
    assert run.remarks()[1].startswith("If they all scored 0 or 1, recall@1 would be between")
    some = karat.evaluate(rows(failed=()), "rr")
    assert not some.enough_judged(1.0)
    assert some.remarks()[0].startswith("1 of 60 repeats could not be judged and is excluded: ")
    assert some.remarks()[1].startswith("If it scored 0 or 1, rr would be between")


def test_the_highest_precision_is_that_of_judged_queries():
    given = [
        {"id": "q1", "retrieved": ["a", "b"], "gold": ["a", "b"]},
        {"id": "q2", "error": "down", "gold": ["a"]},
        {"id": "q3", "retrieved": ["a", "c"], "gold": ["a"]},
    ]
    found = karat.evaluate(given, "precision@2")
    assert found.mean["precision@2"] == 0.75
    assert metric_comments(found)["precision@2"] == "highest possible 0.750"


def test_lint_counts_queries_once():
    found = karat.lint(rows())
    assert (found.queries, found.strength.queries) == (20, 20)
    assert "duplicate queries" not in {problem.kind for problem in found.problems}
    scores = karat.evaluate(rows(), "recall@5").averaged().scores["recall@5"]
    assert found.strength.spread == pytest.approx(scores[scores == scores].std(ddof=1))


def test_lint_finds_repeats_with_different_gold():
    given = rows(failed=(), failed_rows=())
    given[1]["gold"] = ["b"]
    conflict = next(problem for problem in karat.lint(given).problems if problem.kind == "conflicting gold")
    assert (conflict.count, conflict.serious) == (1, True)


def test_the_numbers_for_trackers_are_of_queries(run):
    found = json.loads(str(run._render("metrics")))
    assert (found["queries"], found["failed_queries"]) == (20, 1)
    low, high = run.interval()["recall@1"]
    assert (found["recall_at_1__low"], found["recall_at_1__high"]) == (low, high)
    for name in ("p50", "p95", "mean"):
        assert found[f"latency__{name}"] == run.summary(name)["latency"].value


def test_an_interval_that_is_shown_is_not_called_impossible():
    calls = [{**row, "latency": (7 * i) % 60} for i, row in enumerate(rows(failed=(), failed_rows=()))]
    more = [{**row, "repeat": row["repeat"] + REPEATS, "latency": (11 * i) % 60} for i, row in enumerate(calls)]
    for given, shown in ((calls, False), (calls + more, True)):
        run = karat.evaluate(given, "rr")
        p95 = run.summary("p95")["latency"]
        assert (p95.high == p95.high) is shown
        assert any("p95 takes up to 72" in line for line in str(run).splitlines()) is not shown


def test_a_query_is_diagnosed_by_its_own_id(run):
    found = karat.diagnose(run, "q5")
    assert found.query_id == "q5 #2", "the first repeat that was judged"
    assert str(found).startswith('q5 #2 "what is number 5?" · one of 3 repeats')
    assert karat.diagnose(run, "q5 #3").query_id == "q5 #3"
    assert run.hits("q5") == run.hits("q5 #2")
    with pytest.raises(KaratError, match='no query "q99"') as error:
        karat.diagnose(run, "q99")
    assert error.value.hint == "one of: q0, q1, q2, q3, q4, … (20 queries)"


def test_the_gold_of_a_failed_query_has_no_rank(run):
    shown = str(karat.diagnose(run, "q3"))
    assert "Not judged: retrieval failed: TimeoutError: 30 s" in shown
    assert "a  grade 1  not judged" in shown


def test_fuse_refuses_one_leg_with_repeats(run, tmp_path, capsys):
    plain = [{name: value for name, value in row.items() if name != "repeat"} for row in rows()[::REPEATS]]
    other = karat.evaluate(plain, "recall@1,2 precision@2")
    with pytest.raises(KaratError, match="fuse takes one row per query, not repeats") as error:
        karat.fuse(other, run)
    assert error.value.hint == 'run.by("repeat")["1"], or karat collect … --repeats 1'
    assert len(karat.fuse(other, run.by("repeat")["1"]).run) == QUERIES
    results = [{name: row[name] for name in ("id", "retrieved", "repeat")} for row in rows((), ())]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, results)))
    other.save(tmp_path / "other.parquet")
    assert main(["fuse", str(tmp_path / "other.parquet"), str(tmp_path / "samples.jsonl")]) == 2
    assert "fuse takes one row per query, not repeats" in capsys.readouterr().err
