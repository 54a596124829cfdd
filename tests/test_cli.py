"""The command line, driven as a user does: by running it."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

import karat
from karat._internal.model_settings import ModelSettings
from karat._kernel import description
from karat.cli import all_commands
from support.forked import run_karat

KARAT = str(Path(sys.executable).with_name("karat"))
ROWS = [
    {"id": "q1", "query": "where?", "retrieved": ["a", "b"], "gold": ["b"], "topic": "x"},
    {"id": "q2", "query": "when?", "retrieved": ["c"], "gold": ["d", "c"], "topic": "y"},
]


def run(*arguments, code=0, **kwargs):
    done = run_karat(*arguments, text=True, **kwargs)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def words(text):
    """The text with single spaces: what a column holds matters here, not how wide it is."""
    return " ".join(text.split())


@pytest.fixture
def samples(tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def test_demo(tmp_path):
    out = run("demo", cwd=tmp_path)
    assert "34 queries over 40 short documents" in out
    assert "recall@10" in out
    assert "Three misses of bm25 at 5" in out
    assert out.count("\n  q") == 3
    assert "karat eval" in out
    assert "bm25 compared with first-words on recall@5: +0.194" in out
    page = (tmp_path / "karat-demo" / "report.html").read_text()
    assert "first-words" in page
    assert "password-requirements" in page
    moved = run("compare", "karat-demo/first-words.parquet", "karat-demo/bm25.parquet", cwd=tmp_path)
    assert "recall@5" in moved
    assert "one query" in out
    assert "karat view karat-demo" in out.partition("Next")[2]
    assert "ending-a-subscription" in run("diagnose", "karat-demo/bm25.parquet", "q01", cwd=tmp_path)


def test_demo_samples_can_be_evaluated(tmp_path):
    screen = run("demo", "-o", tmp_path)
    out = run("eval", tmp_path / "samples.jsonl", "recall@5")
    shown = next(line for line in screen.splitlines() if line.startswith("  recall@5"))
    assert f"recall@5 {shown.split()[1]}" in words(out)


def test_eval(samples):
    out = run("eval", samples, "recall@1,5 precision@2 ndcg@10")
    assert f"{samples} · 2 queries · judge: ids (chosen: the items look like ids) · convention: standard" in out
    assert "recall@5 0.750" in words(out)
    assert "1.5 gold items per query" in out
    assert "highest possible 0.750" in out


def test_eval_by_field(samples):
    out = run("eval", samples, "recall@5", "--by", "topic")
    assert "x 1 1.000" in words(out)
    assert "Did you mean topic?" in run("eval", samples, "--by", "topik", code=2)


def test_eval_by_several_fields(tmp_path):
    path = tmp_path / "samples.jsonl"
    rows = [{"retrieved": ["a"], "gold": ["a"], "topic": "xy"[i % 2], "lang": ["en", "de"][i // 4]} for i in range(8)]
    path.write_text("\n".join(map(json.dumps, rows)))
    given = ("eval", path, "recall@5", "--by", "topic", "--by", "topic,lang")
    out = run(*given)
    assert out.index("  topic ") < out.index("  topic · lang ")
    assert "y · de 2 1.000" in words(out)
    assert "| `y · de` | 2 | 1.000" in run(*given, "--format", "markdown")
    read = json.loads(run(*given, "--format", "json"))["by"]
    assert [read["topic"]["x"]["queries"], read["topic,lang"]["x · en"]["queries"]] == [4, 2]
    assert run(*given, "--format", "csv").splitlines()[::5] == [
        "topic,lang,queries,recall@5,recall@5 low,recall@5 high",
        "y,de,2,1.0,,",
    ]


def test_metrics_may_be_anywhere(samples):
    wanted = run("eval", samples, "recall@5 mrr", "--by", "topic")
    assert run("eval", samples, "--by", "topic", "recall@5 mrr") == wanted
    assert run("eval", "--by", "topic", samples, "recall@5", "mrr") == wanted
    assert "Did you mean --by?" in run("eval", samples, "--bye", "topic", code=2)


def test_no_arguments_show_the_help():
    assert "karat demo" in run(code=2)


def test_by_in_other_formats(samples):
    read = json.loads(run("eval", samples, "recall@5", "--by", "topic", "--format", "json"))
    assert read["by"]["topic"]["y"]["mean"] == {"recall@5": 0.5}
    assert run("eval", samples, "recall@5", "--by", "topic", "--format", "csv").startswith(
        "topic,queries,recall@5,recall@5 low,recall@5 high\nx,1,1.0,,"
    )
    assert "saved as Parquet" in run("eval", samples, "-o", "run.json", code=2)


def test_eval_formats(samples):
    read = json.loads(run("eval", samples, "recall@5", "--format", "json"))
    assert read["mean"] == {"recall@5": 0.75}
    rows = list(csv.DictReader(io.StringIO(run("eval", samples, "recall@5", "--format", "csv"))))
    assert rows == [{"query_id": "q1", "recall@5": "1.0"}, {"query_id": "q2", "recall@5": "0.5"}]


def test_eval_saves_the_run(samples, tmp_path):
    run("eval", samples, "recall@5", "-o", tmp_path / "run.parquet")
    assert karat.load(tmp_path / "run.parquet").mean == {"recall@5": 0.75}


def test_eval_trec(tmp_path):
    (tmp_path / "a.run").write_text("1 Q0 x 1 0.9 t\n1 Q0 y 2 0.8 t\n3 Q0 x 1 1 t\n")
    (tmp_path / "a.qrels").write_text("1 0 y 1\n2 0 x 1\n")
    out = run("eval", tmp_path / "a.run", "rr", "--gold", tmp_path / "a.qrels")
    assert "rr 0.250" in words(out)
    assert "1 gold query not in the results: scored 0." in out
    assert "1 query without gold: ignored." in out


def test_custom_metric(samples, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import karat\n@karat.metric\ndef twice(hits, k, c):\n    '''Half of recall.'''\n"
        "    return hits.found(k, c) / hits.gold_count() / 2\n"
    )
    assert "twice@5 0.375" in words(run("eval", samples, "twice@5", "--import", tmp_path / "mine.py"))
    assert "Half of recall." in run("metrics", "--import", tmp_path / "mine.py")
    assert "cannot import" in run("metrics", "--import", tmp_path / "nobody.py", code=2)


def test_the_demo_is_the_same_every_time(tmp_path):
    for seed in ("1", "2"):
        run("demo", "-o", tmp_path / seed, env={**os.environ, "PYTHONHASHSEED": seed})
    for name in ("samples.jsonl", "bm25.parquet", "first-words.parquet", "report.html"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_metrics_are_listed():
    out = run("metrics")
    for name in ("recall(rel=)@k", "rbp(p=0.8, rel=)@k", "bpref(rel=)", "mrr"):
        assert name in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["eval", "nothing.jsonl"], "karat: no file nothing.jsonl"),
        (["eval", "{samples}", "ndgc@5"], "Did you mean ndcg?"),
        (["eval", "{samples}", "recall@0"], "at least 1"),
        (["eval", "{samples}", "--judge", "idz"], 'no judge "idz"'),
        (["eval", "{samples}", "--convention", "x"], 'no convention "x"'),
        (["eval"], "karat: karat eval needs FILE\n       try  karat eval samples.jsonl\n"),
        (["evl"], 'karat: no command "evl". Did you mean eval?\n'),
        (["eval", "{samples}", "--cutoff", "5"], 'no option of karat eval "--cutoff"'),
        (["eval", "{samples}", "--format", "jsn"], "Did you mean json?"),
        (["rosetta", "{samples}", "recall@5"], "try  --metrics recall@5"),
        (["--by", "topic", "eval"], "the command comes first"),
        ([], "COMMAND"),
    ],
)
def test_mistakes_end_in_a_sentence_and_code_2(samples, arguments, said):
    err = run(*[a.format(samples=samples) for a in arguments], code=2)
    assert said in err


def test_output_can_be_piped_into_a_short_reader(samples):
    done = subprocess.run(f"{KARAT} metrics | head -1", shell=True, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_hostile_text_is_harmless(tmp_path):
    path = tmp_path / "evil.jsonl"
    row = {
        "query": "\x1b[31mred\x07",
        "retrieved": ["a"],
        "gold": ["a"],
        "topic": "\x1b]0;title\x07\u202eabc\x00",
    }
    path.write_text(json.dumps(row))
    out = run("eval", path, "recall@1", "--by", "topic")
    assert not {"\x1b", "\x07", "\x00", "\u202e"} & set(out)
    err = run("eval", tmp_path / "\x1b[31m.jsonl", code=2)
    assert "\x1b" not in err


def test_standard_input(samples):
    assert "recall@5 0.750" in words(run("eval", "-", "recall@5", input=samples.read_text()))
    assert "recall@5 0.750" in words(run("eval", "/dev/stdin", "recall@5", input=samples.read_text()))


def test_a_full_disk_is_told():
    done = subprocess.run(f"{KARAT} metrics > /dev/full", shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "karat: cannot write the output: No space left on device\n"


def test_a_narrow_terminal_gets_what_it_can_show(tmp_path):
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    assert "\\xb7" in run("demo", "-o", tmp_path, env=env)


@pytest.mark.parametrize("code", ["1 / 0", "raise SystemExit(0)", "def (", "import nothing_of_the_kind"])
def test_imports_that_fail(samples, tmp_path, code):
    (tmp_path / "mine.py").write_text(code)
    assert "cannot import" in run("eval", samples, "--import", tmp_path / "mine.py", code=2)


def test_skip_bad_rows(samples):
    samples.write_text(samples.read_text() + "\n{broken")
    assert "line 3" in run("eval", samples, code=2)
    assert "1 row could not be read: skipped." in run("eval", samples, "--skip-bad-rows")


def test_version():
    """The second word is the version, for scripts; the rest is the kernel that runs."""
    assert run("--version") == f"karat {karat.__version__} · {description()}\n"


def test_options_are_named_as_in_python():
    """Each option of a verb is a parameter of the function, except what only a command line has."""
    own = {
        "all", "by", "format", "output", "import", "color", "gold", "junit", "markdown", "yes", "engine", "master",
        "min_judged", "price", "force", "no_gold", "queries", "query", "bounds", "summary", "metrics_file",
        "set", "report",
    }  # fmt: skip
    verbs = {"eval": karat.evaluate, "rosetta": karat.rosetta, "merge": karat.merge}
    verbs |= {
        name: getattr(karat, name) for name in ("compare", "gate", "diagnose", "calibrate", "lint", "stages", "sweep")
    }
    settings = {one.name for one in fields(ModelSettings)}
    for name, verb in verbs.items():
        for names, _, _ in all_commands()[name].arguments:
            option = names[0] if len(names[0]) > 2 else names[-1]
            word = option.removeprefix("--").replace("-", "_")
            if option.startswith("--") and word not in own | settings:
                known = {
                    *signature(verb).parameters,
                    *(signature(karat.overlap).parameters if name == "compare" else ()),
                    *(signature(karat.read_traces).parameters if name == "eval" else ()),
                }
                assert {word, names[-1].removeprefix("--")} & known, f"karat {name} {option}"
