"""`karat init`: what it writes runs, and it never overwrites."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import Distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

import karat
from karat.cli.starter import requirement

KARAT = str(Path(sys.executable).with_name("karat"))


def run(*command, cwd, code=0):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def evaluated(project):
    return run(sys.executable, "retrieval/evaluate.py", cwd=project)


def steps(project):
    """The commands of the workflow by the name of their step, as GitHub would run them."""
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the workflow: pip install pyyaml")
    read = yaml.safe_load((project / ".github/workflows/retrieval.yml").read_text("utf-8"))
    return {step["name"]: step for step in read["jobs"]["gate"]["steps"] if "name" in step}


def do(project, step, code=0, **more):
    """Run a step of the workflow as it is written, with karat's own programs first on the path."""
    environment = os.environ | {"PATH": f"{Path(KARAT).parent}{os.pathsep}{os.environ['PATH']}"} | more
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps(project)[step]["run"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=project, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def wheel_of(source, folder):
    """A wheel of the package as it is now, as `pip wheel` would make it."""
    folder.mkdir(exist_ok=True)
    name = f"karat-{karat.__version__}"
    path = folder / f"{name}-py3-none-any.whl"
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: karat\nVersion: {karat.__version__}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": "[console_scripts]\nkarat = karat.cli:main\n",
    }
    with ZipFile(path, "w") as wheel:
        for file in (file for file in source.rglob("*") if file.is_file() and "__pycache__" not in file.parts):
            wheel.write(file, f"karat/{file.relative_to(source).as_posix()}")
        for file, text in about.items():
            wheel.writestr(f"{name}.dist-info/{file}", text)
        records = "".join(f"{file},,\n" for file in wheel.namelist())
        wheel.writestr(f"{name}.dist-info/RECORD", f"{records}{name}.dist-info/RECORD,,\n")
    return path


def test_the_workflow_runs_as_written(tmp_path):
    """Every step, from the installation on, in a folder with nothing but what karat wrote; pip stays offline."""
    project = tmp_path / "project"
    project.mkdir()
    run(KARAT, "init", cwd=project)
    site = tmp_path / "site"
    requirements = (project / "retrieval/requirements.txt").read_text("utf-8")
    place = project / "retrieval" if "./retrieval/karat-" in requirements else tmp_path / "index"
    wheel_of(Path(karat.__file__).parent, place)
    path = f"{site / 'bin'}{os.pathsep}{Path(KARAT).parent}{os.pathsep}{os.environ['PATH']}"
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_FIND_LINKS": str(place), "PIP_TARGET": str(site)}
    installed = {"PATH": path, "PYTHONPATH": str(site), **pip}
    do(project, "Install", **installed)
    assert (site / "karat/cli/starter/workflow.yml").is_file()
    for first in (True, False):
        assert "recall@5" in do(project, "Evaluate", **installed)
        assert ("There is no baseline yet" in do(project, "Gate", **installed)) == first
        do(project, "Report", **installed)
        for file in steps(project)["Upload"]["with"]["path"].split():
            (project / file).rename(tmp_path / Path(file).name)
        assert ("Compared with the baseline" in (tmp_path / "report.html").read_text("utf-8")) == (not first)
        shutil.copy(tmp_path / "run.parquet", project / "retrieval/baseline.parquet")
    assert "<testsuite" in (tmp_path / "gate.xml").read_text("utf-8")


def test_what_it_writes_runs(tmp_path):
    out = run(KARAT, "init", cwd=tmp_path)
    for name in ("golden.jsonl", "evaluate.py", "must-pass.txt", "requirements.txt"):
        assert f"wrote  retrieval/{name}" in out
    assert "Next\n  python retrieval/evaluate.py" in out
    assert all(len(line) <= 80 for line in out.replace(KARAT, "karat").splitlines())
    assert "recall@5" in evaluated(tmp_path)
    kept = karat.load(tmp_path / "retrieval/run.parquet")
    assert len(kept) == 8
    assert 0.8 < kept.mean["recall@5"] < 1  # something is left to be found


def lose(project, *queries):
    """Retrieve nothing for some of the queries."""
    script = project / "retrieval/evaluate.py"
    lost = f'retrieve(row["query"]) if row["id"] not in {queries!r} else ["x"]'
    script.write_text(script.read_text("utf-8").replace('retrieve(row["query"])', lost), "utf-8")


@pytest.mark.parametrize(
    ("lost", "failed"),
    [
        ((), []),
        (("two-factor",), []),  # one query, one eighth
        (("two-factor", "invoice"), ["recall@5 >= 0.80", "recall@5 no-drop 0.15", "ndcg@10 no-drop 0.15"]),
        (
            ("two-factor", "export"),
            [
                "recall@5 >= 0.80", "recall@5 no-drop 0.15", "ndcg@10 no-drop 0.15",
                "recall@5 no-drop, topic: account", "ndcg@10 no-drop, topic: account",
            ],
        ),
        (("password",), ["must-pass, password"]),
    ],
)  # fmt: skip
def test_every_rule_of_the_toy_can_pass_and_fail(tmp_path, lost, failed):
    run(KARAT, "init", cwd=tmp_path)
    evaluated(tmp_path)
    (tmp_path / "retrieval/run.parquet").rename(tmp_path / "retrieval/baseline.parquet")
    lose(tmp_path, *lost)
    evaluated(tmp_path)
    out = do(tmp_path, "Gate", code=1 if failed else 0)
    assert "UNDECIDED" not in out
    lines = re.findall(r"^  FAIL +(.*?)(?:  .*)?$", out, re.MULTILINE)
    assert sorted({re.sub(r", \d.*", "", line) for line in lines}) == sorted(failed)


def test_a_failed_query_is_marked_on_github(tmp_path):
    run(KARAT, "init", cwd=tmp_path)
    evaluated(tmp_path)
    (tmp_path / "retrieval/run.parquet").rename(tmp_path / "retrieval/baseline.parquet")
    lose(tmp_path, "password")
    evaluated(tmp_path)
    assert "::error" not in do(tmp_path, "Gate", code=1, GITHUB_ACTIONS="")
    line = (tmp_path / "retrieval/golden.jsonl").read_text("utf-8").partition('"password"')[0].count("\n") + 1
    summary = tmp_path / "summary.md"
    out = do(tmp_path, "Gate", code=1, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert f"::error file=retrieval/golden.jsonl,line={line}," in out
    assert "karat gate failed" in summary.read_text("utf-8")


@pytest.mark.parametrize(
    ("origin", "line", "command"),
    [
        (None, f"karat=={karat.__version__}", ""),
        ({"url": "https://x.org/k.git", "vcs_info": {"vcs": "git", "commit_id": "12ab"}},
         "karat @ git+https://x.org/k.git@12ab", ""),
        ({"url": "https://x.org/karat-1.whl", "archive_info": {}}, "karat @ https://x.org/karat-1.whl", ""),
        ({"url": "file:///my%20karat", "dir_info": {}}, f"./retrieval/karat-{karat.__version__}-py3-none-any.whl",
         "pip wheel --no-deps --wheel-dir retrieval '/my karat'"),
        ({"url": "file:///tmp/karat-9-py3-none-any.whl", "archive_info": {}},
         "./retrieval/karat-9-py3-none-any.whl", "cp /tmp/karat-9-py3-none-any.whl retrieval/"),
    ],
)  # fmt: skip
def test_the_requirement_is_where_karat_was_installed_from(tmp_path, origin, line, command):
    (tmp_path / "karat.dist-info").mkdir()
    if origin is not None:
        (tmp_path / "karat.dist-info/direct_url.json").write_text(json.dumps(origin))
    assert requirement(Distribution.at(tmp_path / "karat.dist-info")) == (line, command)
    assert requirement(None) == (f"karat=={karat.__version__}", "")


def test_the_next_steps_are_commands_that_run(tmp_path):
    out = run(KARAT, "init", "my project", cwd=tmp_path)
    assert (tmp_path / "my project/retrieval/golden.jsonl").is_file()
    shown = re.findall(r"^  ((?:python|cp|\S*karat) .*?(?:\\\n.*)?)$", out, re.MULTILINE)
    assert [step.split()[0].rpartition("/")[2] for step in shown] == ["python", "cp", "karat"]
    for step in shown:
        program, _, arguments = step.partition(" ")
        command = {"python": sys.executable, "karat": KARAT}.get(program, program)
        done = subprocess.run(f"{command} {arguments}", shell=True, cwd=tmp_path / "my project", check=False)
        assert done.returncode == 0, step


def test_it_never_overwrites(tmp_path):
    (tmp_path / "retrieval").mkdir()
    (tmp_path / "retrieval/golden.jsonl").write_text("mine")
    out = run(KARAT, "init", cwd=tmp_path)
    assert "kept   retrieval/golden.jsonl  (exists already)" in out
    assert (tmp_path / "retrieval/golden.jsonl").read_text() == "mine"
    assert (tmp_path / "retrieval/evaluate.py").is_file()
    (tmp_path / "retrieval/evaluate.py").write_text("mine too")
    assert run(KARAT, "init", cwd=tmp_path).count("kept") == 6
    assert (tmp_path / "retrieval/evaluate.py").read_text() == "mine too"


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "retrieval").write_text("a file")
    assert "cannot write" in run(KARAT, "init", cwd=tmp_path, code=2)
    assert (tmp_path / "retrieval").read_text() == "a file"
