"""`karat sweep` on the command line, as a user drives it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import karat
from karat.cli.demo.example import queries
from karat.cli.sweep import read_settings
from support.forked import run_karat

CALL = ("sweep", "retrievers.py", "--set", "chunk=20,60", "--set", "k=3,5", "--gold", "gold.jsonl", "recall@3", "rr")


def run(*arguments, code=0, cwd):
    done = run_karat(*arguments, text=True, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def words(text):
    return " ".join(text.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a finished sweep."""
    folder = tmp_path_factory.mktemp("sweep")
    shutil.copy(Path(__file__).parent / "support" / "retrievers.py", folder)
    rows = [{"id": one.id, "query": one.query, "gold": [*one.gold]} for one in queries() if one.gold]
    (folder / "gold.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "shown.txt").write_text(run(*CALL, cwd=folder))
    return folder


def test_values():
    given = ["a=1,-2, 3.5,1e3", "b=none,TRUE,false,null", 'c=x,"1","a,b","say ""so""",', "a=4"]
    assert read_settings(given) == {
        "a": [1, -2, 3.5, 1000.0, 4],
        "b": [None, True, False, None],
        "c": ["x", "1", "a,b", 'say "so"'],
    }
    for bad in ("a", "=1", "a=", 'a="x', 'a="x"y'):
        with pytest.raises(karat.BadArgument):
            read_settings([bad])


def test_the_table(folder):
    shown = (folder / "shown.txt").read_text()
    assert shown.startswith("karat-sweep · 4 settings · 31 queries · judge: ids")
    assert words(shown.splitlines()[2]) == "chunk k recall@3 rr latency tokens best?"
    assert "Recall at equal tokens" in shown
    assert "Saved to karat-sweep" in shown
    assert sorted(path.name for path in (folder / "karat-sweep").glob("*.parquet")) == [
        "chunk=20,k=3.parquet", "chunk=20,k=5.parquet", "chunk=60,k=3.parquet", "chunk=60,k=5.parquet",
    ]  # fmt: skip


def test_shown_again_and_continued(folder):
    shown = (folder / "shown.txt").read_text()
    again = run("sweep", "karat-sweep", cwd=folder)
    assert again.strip() == shown.removesuffix("Saved to karat-sweep\n").strip()
    assert run(*CALL, cwd=folder) == shown
    by_rr = run("sweep", "karat-sweep", "--metric", "rr", cwd=folder)
    assert "ranked by rr" in by_rr


def test_other_forms(folder):
    given = json.loads(run("sweep", "karat-sweep", "--format", "json", cwd=folder))
    assert given["best"] == given["rows"][0]["settings"]
    assert given["interval"][0] < given["held_out_mean"] <= given["mean"] < given["interval"][1]
    assert given["at_equal_tokens"][0]["recall"].keys() == {"chunk=20", "chunk=60"}
    table = run("sweep", "karat-sweep", "--format", "csv", cwd=folder).splitlines()
    assert table[0] == "chunk,k,recall@3,rr,latency,tokens,failed,p,possibly_best"
    assert len(table) == 5
    assert "| chunk | k | `recall@3` |" in run("sweep", "karat-sweep", "--format", "markdown", cwd=folder)
    page = run("sweep", "karat-sweep", "--format", "html", "--report", "page.html", cwd=folder)
    assert page == (folder / "page.html").read_text()
    assert page.count("<polyline") == 4  # two curves, and their samples beside the names
    assert "Recall at equal tokens" in page


def test_compare_of_its_runs(folder):
    files = sorted(path.name for path in (folder / "karat-sweep").glob("*.parquet"))
    shown = run("compare", *files, cwd=folder / "karat-sweep")
    assert words(shown.splitlines()[2]) == "chunk k recall@3 rr latency tokens best?"
    assert "4 runs · 31 queries" in shown


def test_mistakes(folder):
    assert "karat sweep needs --set and --gold" in run("sweep", "retrievers.py", code=2, cwd=folder)
    finished = run("sweep", "karat-sweep", "--set", "k=1", "--gold", "gold.jsonl", code=2, cwd=folder)
    assert "is a finished sweep" in finished
    few = run(*CALL, "--limit", "3", code=2, cwd=folder)
    assert "4 settings are more than the limit of 3" in words(few)
    assert 'no parameter "chunks"' in words(
        run("sweep", "retrievers.py", "--set", "chunks=1", "--gold", "gold.jsonl", code=2, cwd=folder)
    )
    assert "Did you mean" in run("sweep", "karat-sweep", "--metric", "rrr", code=2, cwd=folder)
    assert "no.py" in run("sweep", "no.py", "--set", "k=1", "--gold", "gold.jsonl", code=2, cwd=folder)


def test_a_changed_retriever_is_refused(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "copy")
    file = tmp_path / "copy" / "retrievers.py"
    file.write_text(file.read_text().replace("20 + chunk", "30 + chunk"))
    refused = words(run(*CALL, code=2, cwd=tmp_path / "copy"))
    assert "karat-sweep has a sweep with another retriever" in refused
    assert "--restart" in refused
    assert "4 settings" in run(*CALL, "--restart", cwd=tmp_path / "copy")
