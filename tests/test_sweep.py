"""Sweeps: the grid, the runs and their folder, continuing, what is refused, and what fails."""

from __future__ import annotations

import _thread
import json
import signal
from pathlib import Path
from threading import Event
from time import sleep

import pytest

import karat
from karat.analysis.sweep.grid import combinations, file_stems, label

GOLD = [{"id": f"q{i}", "query": f"query {i}", "gold": [f"d{i}"]} for i in range(20)]
CALLS = []


def make(found, k=None):
    """A retriever that has the gold at rank 1 for this number of queries, and at rank 4 for the others."""

    def retrieve(query):
        CALLS.append(query)
        number = int(query.split()[1])
        return [f"d{number}", "x", "y", "z"] if number < found else ["x", "y", "z", f"d{number}"]

    return retrieve


def without_k(found):
    return make(found)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CALLS.clear()


def sweep(settings, metrics="recall@1,4", **more):
    return karat.sweep(make, settings, GOLD, metrics, **more)


def test_by_hand():
    found = sweep({"found": [4, 16, 10]})
    assert found.best == {"found": 16}
    assert [row.means["recall@1"] for row in found.standings.rows] == [0.8, 0.5, 0.2]
    assert [row.settings["found"] for row in found.standings.rows] == [16, 10, 4]
    assert [row.best - {"latency"} for row in found.standings.rows] == [{"recall@1"}, set(), set()]
    assert found.standings.rows[0].p == 1
    assert found.standings.varying == ["found"]
    assert not found.failures
    # 6 queries differ between 16 and 10: p = 2 / 64, more for three settings; 12 between 16 and 4.
    assert [row.possible for row in found.standings.rows] == [True, True, False]
    assert not found.standings.sole
    assert found.table["found"].to_list() == [16, 10, 4]
    assert found.standings.curve is None
    assert "no texts" in " ".join(found.remarks())
    assert [line.split()[-1] for line in repr(found).splitlines()[3:6]] == ["ahead", "maybe", "no"]


def test_a_sole_winner():
    found = sweep({"found": [0, 20, 2]})
    assert found.standings.sole
    assert "found=20 beats every other setting in recall@1" in repr(found)
    assert found.standings.held_out == 1
    assert repr(found).splitlines()[3].endswith("winner")


def test_k_is_the_depth():
    found = sweep([{"found": 4, "k": 1}, {"found": 4, "k": 4}], metric="recall@4")
    assert [len(run.items("q0").retrieved) for run in found.runs] == [1, 4]
    assert {row.settings["k"]: row.means["recall@4"] for row in found.standings.rows} == {1: 0.2, 4: 1.0}


def test_k_is_the_depth_even_if_make_does_not_take_it():
    found = karat.sweep(without_k, {"found": [4], "k": [1, 2]}, GOLD, "recall@4")
    assert [len(run.items("q0").retrieved) for run in found.runs] == [1, 2]


def test_runs_are_saved_with_their_settings():
    found = sweep({"found": [4, 16], "k": [2]})
    assert sorted(path.name for path in Path("karat-sweep").glob("*.parquet")) == [
        "found=16,k=2.parquet", "found=4,k=2.parquet",
    ]  # fmt: skip
    run = karat.load("karat-sweep/found=16,k=2.parquet")
    assert run.provenance.settings == {"found": 16, "k": 2}
    assert run.mean == found.runs[1].mean
    again = karat.sweep("karat-sweep")
    assert (again.best, again.metric, again.names) == (found.best, "recall@1", found.names)
    assert again.to_dict() | {"remarks": 0} == found.to_dict() | {"remarks": 0}


def test_finished_settings_are_not_tried_again():
    sweep({"found": [4, 16]})
    assert len(CALLS) == 40
    sweep({"found": [4, 16, 10]})
    assert len(CALLS) == 60
    assert len(karat.sweep("karat-sweep")) == 3


def test_other_metrics_evaluate_the_same_samples():
    sweep({"found": [4, 16]})
    found = sweep({"found": [4]}, "rr")
    assert len(CALLS) == 40
    assert found.runs[0].mean["rr"] == pytest.approx((4 + 16 / 4) / 20)
    assert len(karat.sweep("karat-sweep")) == 1  # no run with other metrics is left


def test_another_gold_set_or_retriever_is_refused():
    sweep({"found": [4]})
    with pytest.raises(karat.BadArgument, match="sweep with another gold") as refused:
        karat.sweep(make, {"found": [4]}, GOLD[:10], "recall@1,4")
    assert "restart=True" in refused.value.hint
    with pytest.raises(karat.BadArgument, match="another retriever"):
        karat.sweep(without_k, {"found": [4]}, GOLD, "recall@1,4")
    found = karat.sweep(make, {"found": [5]}, GOLD[:10], "recall@1,4", restart=True)
    assert [path.name for path in Path("karat-sweep").glob("*.parquet")] == ["found=5.parquet"]
    assert len(found.ids) == 10


def test_a_changed_file_is_noticed():
    Path("a.py").write_text("def make(n):\n    return lambda query: ['d1'] * n\n")
    Path("gold.jsonl").write_text("\n".join(map(json.dumps, GOLD)))
    karat.sweep("a.py", {"n": [1]}, "gold.jsonl", "recall@1", folder="one")
    karat.sweep("a.py:make", {"n": [1]}, Path("gold.jsonl"), "recall@1", folder="one")
    Path("gold.jsonl").write_text("\n".join(map(json.dumps, GOLD[:12])))
    with pytest.raises(karat.BadArgument, match="another gold"):
        karat.sweep("a.py", {"n": [1]}, "gold.jsonl", "recall@1", folder="one")
    Path("a.py").write_text("def make(n):\n    return lambda query: ['d2'] * n\n")
    with pytest.raises(karat.BadArgument, match="another retriever and gold"):
        karat.sweep("a.py", {"n": [1]}, "gold.jsonl", "recall@1", folder="one")


def test_interrupted():
    """What is done is kept: finished settings, and the queries of the one that was stopped."""
    received = Event()

    def ctrl_c(*_):
        received.set()
        raise KeyboardInterrupt

    def stopped(found):
        inner = make(found)

        def retrieve(query):
            if found == 16 and query == "query 15" and len(CALLS) < 40:
                sleep(0.2)  # the outcomes of the queries before are received
                _thread.interrupt_main()
                received.wait(30)
            return inner(query)

        return retrieve

    before = signal.signal(signal.SIGINT, ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        karat.sweep(stopped, {"found": [4, 16]}, GOLD, "recall@1", concurrency=1)
    signal.signal(signal.SIGINT, before)
    assert len(karat.sweep("karat-sweep")) == 1
    before = len(CALLS)
    CALLS.extend(["more"] * 40)
    assert len(karat.sweep(stopped, {"found": [4, 16]}, GOLD, "recall@1", concurrency=1)) == 2
    assert len(CALLS) - before - 40 <= 6


def broken(found):
    if found == 3:
        raise ValueError("no index\nfor 3")
    return make(found)


def test_a_setting_that_fails_does_not_stop_the_others():
    found = karat.sweep(broken, {"found": [4, 3, 16]}, GOLD, "recall@1")
    assert [(one.settings, one.error) for one in found.failures] == [({"found": 3}, "ValueError: no index")]
    assert len(found) == 2
    assert "found=3 failed: ValueError: no index" in repr(found)
    with pytest.raises(karat.BadArgument, match="every setting failed: ValueError: no index"):
        karat.sweep(broken, {"found": [3]}, GOLD, "recall@1", folder="other")


def test_a_setting_whose_every_query_fails_is_a_failure():
    def fails(found):
        return make(found) if found else lambda query: 1 / 0

    found = karat.sweep(fails, {"found": [0, 4]}, GOLD, "recall@1")
    assert len(found) == 1
    assert "ZeroDivisionError" in found.failures[0].error


def test_queries_that_fail_are_excluded_not_zero():
    def flaky(found):
        inner = make(found)
        return lambda query: inner(query) if query != "query 0" or found != 4 else 1 / 0

    found = karat.sweep(flaky, {"found": [4, 16]}, GOLD, "recall@1")
    assert found.standings.queries == 19
    assert [row.means["recall@1"] for row in found.standings.rows] == [pytest.approx(15 / 19), pytest.approx(3 / 19)]
    assert "found=4: 1 of 20 queries failed, such as q0" in " ".join(found.remarks())


def test_grid():
    assert combinations({"a": [1, 2, 1], "b": [None, "x"]}) == [
        {"a": 1, "b": None}, {"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 2, "b": "x"},
    ]  # fmt: skip
    assert combinations([{"a": 1}, {"a": 1}, {"b": True}, {"b": 1}]) == [{"a": 1}, {"b": True}, {"b": 1}]
    assert combinations({"a": range(2)}) == [{"a": 0}, {"a": 1}]
    with pytest.raises(karat.BadArgument, match="1,000,000 settings are more than the limit of 100"):
        combinations({name: range(100) for name in "abc"})
    with pytest.raises(karat.BadArgument, match="3 settings are more than the limit of 2"):
        combinations([{"a": 1}, {"a": 2}, {"a": 3}], limit=2)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "needs settings"), ([], "needs settings"), ({"a": []}, "no values"), ({"a": "xy"}, "must be a list"),
        ({"a": 5}, "must be a list"), ({"a b": [1]}, "parameter of make"), ({"a": [object()]}, "must be a number"),
        ({"a": [float("nan")]}, "must be a number"), ("text", "dict of lists"), ([1], "dict of lists"),
        ({1: [1]}, "parameter of make"), ([{"a": print}], "must be a number"),
    ],
)  # fmt: skip
def test_bad_settings(given, problem):
    with pytest.raises(karat.BadArgument, match=problem):
        combinations(given)


def test_another_judge_evaluates_again():
    text = [one | {"gold": [{"text": f"d{i}"}]} for i, one in enumerate(GOLD)]
    made = karat.sweep(make, {"found": [4]}, text, "recall@1", judge=karat.Fuzzy(0.5))
    again = karat.sweep(make, {"found": [4]}, text, "recall@1", judge=karat.Fuzzy(0.99))
    assert made.runs[0].provenance.judge != again.runs[0].provenance.judge
    assert karat.sweep("karat-sweep").runs[0].provenance.judge == again.runs[0].provenance.judge
    by_function = karat.sweep(make, {"found": [4]}, text, "recall@1", judge=lambda gold, item: True)
    assert by_function.runs[0].mean["recall@1"] == 1
    assert len(CALLS) == 20


def test_values_that_json_cannot_hold():
    assert combinations({"a": ["\ud800", 2.0]}) == [{"a": "\\ud800"}, {"a": 2.0}]
    with pytest.raises(karat.BadArgument, match="must be a number"):
        combinations({"a": [10**30]})


def test_parts_of_different_settings_are_not_merged():
    one, two = (karat.sweep(make, {"found": [n]}, GOLD[i : i + 10], "rr", folder=f"f{n}").runs[0]
                for i, n in ((0, 4), (10, 9)))  # fmt: skip
    with pytest.raises(karat.BadArgument, match="settings of the retriever: found=4 / found=9"):
        karat.merge([one, two])
    assert one.take([0, 1]).provenance.settings == {"found": 4}


def test_bad_limit_and_parameters():
    with pytest.raises(karat.BadArgument, match="limit is a number"):
        combinations({"a": [1]}, limit=0)
    with pytest.raises(karat.BadArgument, match='make has no parameter "fund"') as refused:
        sweep({"fund": [1]})
    assert refused.value.hint == "found"
    assert not Path("karat-sweep").exists()


def test_file_names_are_safe():
    hostile = ["../../etc/passwd", "a/b\\c", "x" * 500, "été 検索", 'quo"te', "new\nline", "", ".", "CON", "A", "a"]
    settings = [{"n": value} for value in hostile]
    stems = file_stems(settings)
    assert len({stem.casefold() for stem in stems}) == len(hostile)
    assert all(len(stem) < 130 and "/" not in stem and "\\" not in stem and stem.isprintable() for stem in stems)
    assert stems[-2:] == ["n=A", stems[-1]]
    assert file_stems([{"chunk": 200, "reranker": None, "on": True, "b": 0.75}]) == [
        "chunk=200,reranker=none,on=true,b=0.75"
    ]
    assert label({"a": [1, "x"], "b": "\x1b[31m"}) == "a=1+x, b=\ufffd[31m"


def test_hostile_values_are_harmless_everywhere():
    values = ["../up", "<b>x</b>", "\x1b[31mred", "a|b", "*bold*", "=1+1"]
    found = karat.sweep(lambda name: make(len(name)), {"name": values}, GOLD, "recall@1")
    assert {path.parent for path in Path().rglob("*.parquet")} == {Path("karat-sweep")}
    assert "\x1b[31mred" not in repr(found)
    assert "<b>x" not in found._repr_html_()
    found.report("page.html")
    assert "<b>x" not in Path("page.html").read_text()
    assert "=1+1" in found.table["name"].to_list()
    assert karat.sweep("karat-sweep").best == found.best


def test_folders_that_are_not_of_a_sweep():
    Path("file").write_text("x")
    Path("own").mkdir()
    karat.evaluate(retrieved=[["a"]], gold=[["a"]], metrics="rr").save("own/mine.parquet")
    Path("bad").mkdir()
    Path("bad/sweep.json").write_text("{}")
    Path("torn").mkdir()
    Path("torn/sweep.json").write_text('{"karat_sweep": 1, "ru')
    for folder, problem in (
        ("file", "is a file"), ("own", "not of a sweep"), ("bad", "not the index"), ("torn", "cannot be read"),
    ):  # fmt: skip
        with pytest.raises(karat.BadArgument, match=problem):
            sweep({"found": [1]}, folder=folder)
    assert Path("own/mine.parquet").exists()
    for given in ("own", "nowhere", None, 5):
        with pytest.raises(karat.BadArgument):
            karat.sweep(given)
    with pytest.raises(karat.BadArgument, match="needs gold"):
        karat.sweep(make, {"found": [1]})
    with pytest.raises(karat.BadArgument, match="needs settings"):
        karat.sweep(make, gold=GOLD)


def test_an_index_cannot_reach_other_files():
    sweep({"found": [4]})
    Path("precious.parquet").write_text("x")
    index = json.loads(Path("karat-sweep/sweep.json").read_text())
    index["runs"].append({"settings": {"found": 1}, "file": "../precious.parquet"})
    Path("karat-sweep/sweep.json").write_text(json.dumps(index))
    sweep({"found": [4]}, restart=True)
    assert Path("precious.parquet").exists()


def test_a_damaged_run_is_made_again():
    sweep({"found": [4, 16]})
    Path("karat-sweep/found=4.parquet").write_bytes(b"PAR1")
    assert len(karat.sweep("karat-sweep")) == 1
    assert len(sweep({"found": [4, 16]})) == 2
    assert len(CALLS) == 40


def test_bad_makers():
    Path("none.py").write_text("x = 1\n")
    for given, problem in (
        (5, "must be a function"),
        ("none.py", "has no function make"),
        ("none.py:x", "no function"),
    ):
        with pytest.raises(karat.BadArgument, match=problem):
            karat.sweep(given, {"n": [1]}, GOLD)
    with pytest.raises(karat.BadArgument, match="from 0 to 1"):
        karat.sweep(make, {"found": [1]}, GOLD, "first_rank")


def test_gold_may_be_an_iterator_or_a_frame():
    import polars as pl

    one = karat.sweep(make, {"found": [4, 9]}, iter(GOLD), "recall@1", folder="one")
    two = karat.sweep(make, {"found": [4, 9]}, pl.DataFrame(GOLD), "recall@1", folder="two")
    assert one.best == two.best == {"found": 9}
    karat.sweep(make, {"found": [4, 9]}, pl.DataFrame(GOLD), "recall@1", folder="two")
    assert len(CALLS) == 80


def test_other_fields_and_less_is_better():
    gold = [one | {"answerable": i > 9, "gold": one["gold"] if i > 9 else []} for i, one in enumerate(GOLD)]
    gold = [one | {"cost": i % 3} for i, one in enumerate(gold)]

    def maker(depth):
        return lambda query: ["x"] * depth if int(query.split()[1]) % 2 else []

    found = karat.sweep(maker, {"depth": [0, 1]}, gold, "false_alarm@5", also="cost")
    assert found.best == {"depth": 0}
    assert found.standings.rows[0].measures["cost"] == 1
    assert found.standings.interval.low == 0
    assert "latency" in found.standings.rows[0].measures


def test_queries_that_failed_are_called_again():
    broken, called = {"q 3"}, []

    def make(name):
        def search(query):
            called.append(query)
            if query in broken:
                raise LookupError("no index")
            return [name]

        return search

    gold = [{"id": str(n), "query": f"q {n}", "gold": ["a"]} for n in range(6)]
    first = karat.sweep(make, {"name": ["a", "b"]}, gold, "rr")
    assert [len(run.failures) for run in first.runs] == [1, 1]
    broken.clear()
    called.clear()
    again = karat.sweep(make, {"name": ["a", "b"]}, gold, "rr")
    assert called == ["q 3", "q 3"]
    assert [len(run.failures) for run in again.runs] == [0, 0]
    assert again.standings.rows[0].means["rr"] == 1
