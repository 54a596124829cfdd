"""`karat gate` and `karat eval --format markdown`, driven as a user does: by running them."""

from __future__ import annotations

import json
import os
import re
from xml.etree import ElementTree as ET

import pytest

import karat
from karat.report.forms import code, escape
from karat.report.gate import undecided_junit, undecided_markdown
from support.forked import run_karat
from support.markdown import outside_code

EVIL = "\x1b[31m<script>alert(1)</script>|`x`\u202e\x00 @admin [a](http://b.c) www.evil.com _it_ #1"


def run(*arguments, code=0, **kwargs):
    done = run_karat(*arguments, text=True, **kwargs)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr if code == 2 else done.stdout


def saved(path, found, **fields):
    rows = [
        {"id": f"q{i}", "query": f"what is {i}?", "retrieved": ["x", "g"] if yes else ["x"], "gold": ["g"]}
        | {name: values[i] for name, values in fields.items()}
        for i, yes in enumerate(found)
    ]
    karat.evaluate(rows, "recall@5 ndcg@10").save(path)
    return path


@pytest.fixture
def files(tmp_path):
    topic = ["billing"] * 10 + ["sharing"] * 30
    saved(tmp_path / "main.parquet", [1] * 40, topic=topic)
    saved(tmp_path / "same.parquet", [1] * 40, topic=topic)
    saved(tmp_path / "worse.parquet", [0] * 10 + [1] * 30, topic=topic)
    return tmp_path


def test_passed(files):
    out = run(
        "gate", files / "same.parquet", "recall@5 >= 0.80", "recall@5 no-drop", "--baseline", files / "main.parquet"
    )
    heading, _, first, second, *_, last = out.splitlines()
    assert heading.startswith("karat gate · run: same.parquet · baseline: main.parquet · judge: ids · 40 queries · ")
    assert first == "  PASS  recall@5 >= 0.80  1.000 [0.91, 1.00]"
    assert second == "  PASS  recall@5 no-drop  0.000 against main"
    assert last == "  2 passed, 0 undecided, 0 failed of 2 checks · exit 0"


def test_failed(files):
    out = run(
        "gate", files / "worse.parquet", "recall@5 >= 0.70", "recall@5 no-drop",
        "--baseline", files / "main.parquet", "--by", "topic", "ndcg@10 no-drop 0.5", code=1,
    )  # fmt: skip
    assert "PASS  recall@5 >= 0.70" in out
    assert re.search(
        r"FAIL  recall@5 no-drop, topic: billing +1\.000 → 0\.000 \(-1\.000 \[.*\], p < 0\.001, 10 queries\)", out
    )
    assert re.search("PASS  recall@5 no-drop +1 other slice by topic", out)
    assert "smaller drops may be missed" in out
    assert out.endswith("3 passed, 0 undecided, 4 failed of 7 checks (3 rules, 4 slices) · exit 1\n")


def test_tolerance_and_alpha(files):
    saved(files / "little.parquet", [0] * 2 + [1] * 38)
    saved(files / "all.parquet", [1] * 40)
    given = ("gate", files / "little.parquet", "recall@5 no-drop", "--baseline", files / "all.parquet")
    run(*given)
    run(*given, "--tolerance", "0.02", code=1)
    run(*given, "--alpha", "0.5", code=1)
    assert "from 0 to 1" in run(*given, "--tolerance", "much", code=2)
    assert "at least 41" in run(*given, "--min-defined", "41", code=2)


def test_must_pass(files):
    (files / "ids.txt").write_text("# never again\nq0\nq20   # the biggest customer\n\n")
    given = ("--must-pass", files / "ids.txt", "--tolerance", "1")
    out = run("gate", files / "worse.parquet", "recall@5 >= 0.5", *given, code=1)
    assert "FAIL  must-pass, q0" in out
    assert re.search("PASS  must-pass +1 other query", out)
    (files / "ids.txt").write_text("q0\nq333\n")
    assert 'no query "q333"' in run("gate", files / "worse.parquet", "recall@5 >= 0.5", *given, code=2)
    missing = ("--must-pass", files / "nobody.txt")
    assert "cannot be read" in run("gate", files / "same.parquet", "recall@5 >= 0.5", *missing, code=2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{dir}/none.parquet", "recall@5 >= 0.5"], "no run file"),
        (["{dir}/same.parquet"], "RULE"),
        (["{dir}/same.parquet", "recall@7 >= 0.5"], "Did you mean recall@5?"),
        (
            ["{dir}/same.parquet", "recall@5 no-drop", "--baseline", "{dir}/stale.parquet"],
            "karat eval on the main branch",
        ),
        (["{dir}/same.parquet", "recall@5 >= 0.5", "--by", "topik"], "Did you mean topic?"),
        (["{dir}/same.parquet", "recall@5 >= 0.5", "--junit", "{dir}/no/where.xml"], "cannot write"),
    ],
)
def test_could_not_decide(files, arguments, said):
    saved(files / "stale.parquet", [1] * 39)
    assert said in run("gate", *(a.format(dir=files) for a in arguments), code=2)


def test_nothing_to_decide(files):
    done = run_karat("gate", files / "same.parquet", "recall@5 no-drop", text=True)
    assert done.returncode == 2
    assert "0 passed, 1 undecided, 0 failed of 1 check · exit 2" in done.stdout
    assert "--baseline main.parquet" in done.stdout


def test_json(files):
    base = ("--baseline", files / "main.parquet", "--format", "json")
    read = json.loads(run("gate", files / "worse.parquet", "recall@5 no-drop", *base, code=1))
    assert read["passed"] is False
    assert read["checks"][0]["figures"]["difference"] == -0.25
    assert read["worst"][0]["gold"] == [{"label": "g", "before": 2, "after": None}]


def test_files_for_ci(files):
    junit, summary = files / "out.xml", files / "summary.md"
    wanted = ("--baseline", files / "main.parquet", "--by", "topic", "--junit", junit, "--markdown", summary)
    run("gate", files / "worse.parquet", "recall@5 no-drop", *wanted, code=1)
    (suite,) = ET.parse(junit).getroot()
    assert suite.attrib == {"name": "karat gate", "tests": "3", "failures": "2", "errors": "0", "skipped": "0"}
    assert [case.get("name") for case in suite] == [
        "recall@5 no-drop",
        "recall@5 no-drop, topic: billing",
        "recall@5 no-drop, topic: sharing",
    ]
    text = summary.read_text("utf-8")
    assert text.startswith("### ❌ karat gate failed: 1 passed, 0 undecided, 2 failed of 3 checks (1 rule, 2 slices)\n")
    assert "<details><summary>The queries that lost most</summary>" in text
    assert "`g: 2 → not retrieved`" in text
    # What is not decided must not leave the summary of an earlier run in its place.
    run("gate", files / "worse.parquet", "recall@7 no-drop", *wanted, code=2)
    assert "could not decide" in summary.read_text("utf-8")
    assert ET.parse(junit).getroot()[0].get("errors") == "1"
    assert not [path for path in files.iterdir() if path.name.endswith(".tmp")]


def test_markdown_to_a_pipe_and_through_a_link(files):
    out = run("gate", files / "same.parquet", "recall@5 >= 0.5", "--markdown", "/dev/stdout")
    assert "karat gate passed" in out
    (files / "link.md").symlink_to(files / "real.md")
    run("gate", files / "same.parquet", "recall@5 >= 0.5", "--markdown", files / "link.md")
    assert (files / "link.md").is_symlink()
    assert "karat gate passed" in (files / "real.md").read_text("utf-8")


def harmless(text):
    assert not set("\x1b\x00\u202e") & set(text)


def harmless_markdown(text):
    harmless(text)
    text = outside_code(text)
    assert not re.search(r"<script|`|\]\(|https?:|www\.|(?<!\w)@|_it_", text)
    widths = {line.count("|") for line in text.split("<details>")[0].splitlines() if line.startswith("|")}
    assert len(widths) <= 1


def test_hostile_text_comes_out_harmless(tmp_path):
    rows = [
        {"id": f"{EVIL}{i}", "query": EVIL, "retrieved": ["x"], "gold": [f"{EVIL}g"], EVIL: f"{EVIL}{i % 2}"}
        for i in range(20)
    ]
    bad = karat.evaluate(rows, "recall@5")
    good = karat.evaluate([{**row, "retrieved": row["gold"]} for row in rows], "recall@5")
    name = EVIL.replace("\x00", "").replace("/", "")
    good.save(tmp_path / f"{name}.parquet")
    gate = karat.gate(
        bad, "recall@5 no-drop", baseline=tmp_path / f"{name}.parquet", by=EVIL, must_pass=[f"{EVIL}1", f"{EVIL}2"]
    )
    assert not gate.passed
    harmless(repr(gate))
    harmless_markdown(gate.to_markdown())
    harmless(gate.to_junit())
    suite = ET.fromstring(gate.to_junit())[0]
    assert int(suite.get("failures")) == len(suite) == 5
    with pytest.raises(karat.UnknownName) as caught:
        karat.gate(bad, "recall@5 >= 0", must_pass=[EVIL])
    harmless_markdown(undecided_markdown(caught.value))
    harmless(undecided_junit(caught.value))


def test_nobody_is_called_by_a_comment():
    assert escape("@admin") == code("@admin") == "`@admin`"
    assert escape("see #12, recall@5") == "see `#12`, recall@5"


def test_eval_as_markdown(tmp_path):
    row = {"query": EVIL, "retrieved": ["a"], "gold": ["a"], "topic": EVIL}
    path = tmp_path / "a|b.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps({**row, "gold": [], "topic": "plain"}))
    out = run("eval", path, "recall@1,5", "--format", "markdown", "--by", "topic")
    assert "| metric | mean | 95 % interval |\n| --- | ---: | --- |\n| `recall@1` | 1.000 |  |\n" in out
    assert "1 query is undefined: no relevant gold, not in the mean." in out
    assert "| `plain` | 1 | – | – |" in out
    for part in out.split("\n\n"):
        harmless_markdown(part)
    piped = run("eval", "-", "recall@1", "--format", "markdown", input=path.read_text())
    assert "`recall@1` | 1.000" in piped


def test_a_narrow_terminal_gets_what_it_can_show(files):
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    arguments = ("recall@5 no-drop", "--baseline", files / "main.parquet")
    assert "\\u2192" in run("gate", files / "worse.parquet", *arguments, code=1, env=env)
