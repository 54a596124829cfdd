"""Work split over processes: the same run for any number of them, whatever happens to one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import karat
from karat.errors import BadArgument, InputError, Unavailable
from karat.judges import Fuzzy, find_judge
from karat.metrics import parse_all
from karat.scale import large_files
from karat.scale import processes as split
from support.split_samples import made, own_judge_source, saved
from support.waiting import wait_until

KARAT = str(Path(sys.executable).with_name("karat"))
METRICS = "recall@1,5 precision@5 ndcg@10 rr recall@50t"


@pytest.fixture
def of_size(monkeypatch):
    """Hands so many queries over at a time."""

    def set_size(size):
        evaluate = partial(split.evaluate_in_processes, batch=size)
        monkeypatch.setattr(split, "evaluate_in_processes", evaluate)

    return set_size


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_any_number_of_jobs_and_any_batch_give_the_same_bytes(jobs, size, of_size, tmp_path):
    samples = made()
    one = karat.evaluate(samples, METRICS, judge="fuzzy(0.3)")
    of_size(size)
    several = karat.evaluate(samples, METRICS, judge="fuzzy(0.3)", jobs=jobs)
    assert saved(several, tmp_path / "several.parquet") == saved(one, tmp_path / "one.parquet")
    assert several.remarks() == one.remarks()
    assert several.items("q2") == one.items("q2")


@pytest.mark.parametrize(
    "options",
    [
        {"judge": "text"},
        {"judge": "contains", "convention": "llamaindex"},
        {"judge": "spans"},
        {"judge": "ids"},
        {"judge": "exact", "convention": "trec_eval"},
        {"judge": "exact", "convention": "trec_eval(unjudged=removed)"},
    ],
    ids=str,
)
def test_every_judge(options, of_size, tmp_path):
    of_size(9)
    samples = made()
    several = saved(karat.evaluate(samples, METRICS, jobs=2, **options), tmp_path / "several.parquet")
    assert several == saved(karat.evaluate(samples, METRICS, **options), tmp_path / "one.parquet")


@pytest.mark.parametrize("judge", ["text", "spans"])
def test_uneven_rows_of_a_file(judge, of_size, tmp_path):
    """Empty lists, a misspelt field, and fields that only some rows have: every batch sees only some of it."""
    rows = [{key: row[key] for key in ("id", "query", "retrieved", "gold")} for row in made(9)]
    for row in rows:
        row["gold"] = [{"text": gold["text"]} for gold in row["gold"]]
    rows[5] |= {"late": 1, "answr": "typo"}
    rows[7] |= {"early": "x", "late": "2", "answr": "typo"}
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, rows)))
    one = karat.evaluate(tmp_path / "samples.jsonl", METRICS, judge=judge)
    of_size(2)
    several = karat.evaluate(tmp_path / "samples.jsonl", METRICS, judge=judge, jobs=2)
    assert saved(several, tmp_path / "several.parquet") == saved(one, tmp_path / "one.parquet")
    assert several.remarks() == one.remarks()


def test_the_hint_that_nothing_matched_does_not_depend_on_jobs(of_size):
    of_size(1)
    samples = [{"id": f"q{n}", "retrieved": ["some gold mine"], "gold": ["gold mine"]} for n in range(3)]
    one, two = (karat.evaluate(samples, "recall@5t", judge="exact", jobs=jobs).provenance.notes for jobs in (1, 2))
    assert one == two != ()


def test_ids_are_compared_here(monkeypatch):
    """To hand ids over would take longer than to compare them."""
    monkeypatch.setattr(split, "Workers", None)
    run = karat.evaluate(made(), "recall@5 rr", judge="ids", jobs=2)
    assert run.scores["rr"].tolist()


def test_errors_are_those_of_one_process(of_size):
    of_size(2)
    samples = [{"id": f"q{n}", "retrieved": [{"id": "a"}], "gold": [{"id": "b"}]} for n in range(8)]
    said = set()
    for jobs in (1, 2):
        with pytest.raises(InputError, match="compares by text") as caught:
            karat.evaluate(samples, "recall", judge="text", jobs=jobs)
        said.add(str(caught.value))
    assert len(said) == 1


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "2"], ids=str)
def test_jobs_are_a_number_of_processes(jobs):
    with pytest.raises(BadArgument, match="at least 1"):
        karat.evaluate(made(3), "recall", judge="text", jobs=jobs)


def test_a_token_counter_that_cannot_be_pickled_is_refused():
    with pytest.raises(BadArgument, match="cannot be sent to a worker process"):
        karat.evaluate(made(3), "recall@5t", judge="text", jobs=2, tokens=lambda text: 3)


def test_a_judge_of_all_queries_is_not_split(tmp_path):
    samples = [{"id": "1", "answer": "Gold is heavy.", "retrieved": ["Gold is heavy."], "gold": []}]
    with pytest.raises(BadArgument, match="cannot run in parallel"):
        karat.evaluate(samples, "recall", judge="claims(lexical)", jobs=2)
    (tmp_path / "a.txt").write_text("Gold is heavy.")
    with pytest.raises(BadArgument, match="cannot run in parallel"):
        karat.evaluate(made(3), "recall", judge=karat.Spans(corpus=str(tmp_path)), jobs=2)


def test_a_users_function_inside_a_judge_of_ours_travels():
    """It has the name of one of karat's own, and is not it."""
    from karat.plan import Plan
    from karat.scale.pickling import pickle_plan

    judge = karat.Fuzzy(0.5, scorer=ratio)
    parcel = pickle_plan(Plan(parse_all("recall"), judge, karat.STANDARD))
    assert ratio.__module__ in parcel.modules
    loaded = parcel.load().judge
    assert isinstance(loaded, Fuzzy)
    assert loaded.scorer is ratio
    assert pickle_plan(Plan(parse_all("recall"), find_judge("text"), karat.STANDARD)).modules == {}


def ratio(a, b):
    """Somebody's own similarity."""
    return 1.0


USER = """
import sys
sys.path.insert(0, {tests!r})
import karat
from support.split_samples import made
from own import Initial, letters

if __name__ == "__main__":
    options = {{"judge": Initial(), "tokens": letters}}
    for jobs in (1, 3):
        run = karat.evaluate(made(), "deep recall@5 recall@40t", jobs=jobs, **options)
        run.save(f"{{jobs}}.parquet")
"""


def test_metrics_judges_and_counters_of_a_file(tmp_path):
    """In a script that is run as such, and by the command line, which loads the file under a name of its own."""
    (tmp_path / "own.py").write_text(own_judge_source())
    tests = str(Path(__file__).parents[1])
    (tmp_path / "script.py").write_text(USER.format(tests=tests))
    subprocess.run([sys.executable, "script.py"], check=True, cwd=tmp_path)
    assert (tmp_path / "3.parquet").read_bytes() == (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, made())))
    for jobs in ("1", "2"):
        words = ["eval", "samples.jsonl", "deep recall@5 recall@40t", "--judge", "initial", "--jobs", jobs]
        more = ["--import", "own.py", "--tokens", "own.py:letters", "-o", f"cli-{jobs}.parquet"]
        subprocess.run([KARAT, *words, *more], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
    assert (tmp_path / "cli-1.parquet").read_bytes() == (tmp_path / "cli-2.parquet").read_bytes()


def test_a_script_without_a_guard_is_told(tmp_path):
    code = (
        "import karat\nkarat.evaluate([{'retrieved': ['a b'], 'gold': ['a b']}] * 4, 'recall', judge='text', jobs=2)\n"
    )
    (tmp_path / "script.py").write_text(code)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert 'if __name__ == "__main__":' in done.stderr.splitlines()[-1]
    assert done.returncode == 1


class Deadly:
    """Ends the process that judges a certain query."""

    name = "deadly"

    def __call__(self, samples, convention):
        if "q7" in samples.ids:
            os.kill(os.getpid(), signal.SIGKILL)
        return find_judge("text")(samples, convention)


def test_a_process_that_dies_is_told(of_size):
    of_size(2)
    with pytest.raises(Unavailable, match=r"a worker process died \(signal 9, SIGKILL\)"):
        karat.evaluate(made(), "recall", judge=Deadly(), jobs=2)


class Faulty:
    """Fails for two queries, and for the earlier one only after the later one has failed."""

    name = "faulty"

    def __init__(self, mark):
        self._mark = mark

    def __call__(self, samples, convention):
        if "q2" in samples.ids:
            wait_until(self._mark.exists)
        if "q3" in samples.ids:
            self._mark.touch()
        if {"q2", "q3"} & set(samples.ids):
            raise ZeroDivisionError(f"at {samples.ids[0]}")
        return find_judge("text")(samples, convention)


def test_of_two_failures_the_first_query_is_reported(of_size, tmp_path):
    of_size(1)
    with pytest.raises(ZeroDivisionError, match="at q2"):
        karat.evaluate(made(), "recall", judge=Faulty(tmp_path / "failed"), jobs=2)


SLOW = """
import os, time
import karat
from karat.judges import Fuzzy, find_judge

class Slow:
    name = "slow"
    def __call__(self, samples, convention):
        os.write(1, b"judging\\n")  # at once: another process writes, too
        time.sleep(60)

if __name__ == "__main__":
    karat.evaluate([{"retrieved": ["a b"], "gold": ["a b"]}] * 4, "recall", judge=Slow(), jobs=2)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_ctrl_c_stops_all(tmp_path):
    (tmp_path / "script.py").write_text(SLOW)
    begun = subprocess.Popen(
        [sys.executable, "script.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert begun.stdout.readline() == begun.stdout.readline() == "judging\n"
    os.killpg(begun.pid, signal.SIGINT)  # as a terminal does: every process of the group gets it
    _, said = begun.communicate(timeout=50)  # less than the judge sleeps
    assert said.count("Traceback") == 1  # of the caller alone
    assert said.strip().endswith("KeyboardInterrupt")
    wait_until(lambda: not _alive(begun.pid))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the children of a process")
def test_ctrl_c_while_workers_start(tmp_path):
    (tmp_path / "samples.jsonl").write_text('{"retrieved": ["a b"], "gold": ["a b"]}\n' * 9)
    started = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"  # some have it ignored
    started += "; from karat.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", started, "eval", "samples.jsonl", "--judge", "fuzzy", "--jobs", "2"]
    begun = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    children = Path(f"/proc/{begun.pid}/task/{begun.pid}/children")
    wait_until(lambda: len(children.read_text().split()) > 2)  # one counts shared resources
    worker = Path(f"/proc/{children.read_text().split()[-1]}/stat")
    wait_until(lambda: int(worker.read_text().rpartition(")")[2].split()[11]) > 8)  # it imports its modules
    os.killpg(begun.pid, signal.SIGINT)
    _, said = begun.communicate(timeout=50)
    assert (begun.returncode, said) == (130, "karat: interrupted\n")
    wait_until(lambda: not _alive(begun.pid))


def _alive(group):
    """The processes of a group that are more than a name in the system's list."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = (line.split(None, 2) for line in listed.splitlines())
    return [row for row in rows if row[0] == str(group) and not row[1].startswith("Z")]


@pytest.mark.parametrize("judge", ["fuzzy(0.3)", "auto"])
def test_files_larger_than_memory(judge, tiny, tmp_path):
    """Pieces of a file are judged by several processes, with the same result."""
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, made())))
    options = {"metrics": METRICS, "judge": judge}
    small = karat.evaluate(tmp_path / "samples.jsonl", **options)
    large = karat.evaluate(tmp_path / "samples.jsonl", **options, memory=tiny, jobs=2)
    assert large._items.func is large_files._items  # read again when they are needed
    assert large.table.equals(small.table)
    assert large.provenance == small.provenance
    assert large.hits("q2") == small.hits("q2")
