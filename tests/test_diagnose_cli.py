"""`karat diagnose`, driven as a user does: by running it; and what hostile texts come out as."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import unicodedata
from pathlib import Path
from shlex import quote

import pytest

import karat
from karat.judges import find_judge
from karat.report.diagnosis import terminal
from support.forked import run_karat
from support.markdown import outside_code

KARAT = str(Path(sys.executable).with_name("karat"))
QUOTE = "The museum is closed on Mondays and on public holidays. Tickets are sold at the door until five."
NEAR = QUOTE.replace("five", "nine")
ROWS = [
    {
        "id": "q1",
        "query": "When?",
        "retrieved": [{"text": "Parking.", "score": 2}, {"text": NEAR, "score": 1}],
        "gold": [QUOTE],
    },
    {"id": "q2", "query": "Who?", "retrieved": [{"text": QUOTE, "score": 3}], "gold": [QUOTE, "Nobody knows this."]},
]
HOSTILE = "<script>alert(1)</script> \x1b[31mred\x1b[0m \u202eevil\u2066 \0 \ud800 | `x` [a](http://b) ~"


def call(*arguments, code=0, env=None):
    done = run_karat(*arguments, env={**os.environ, "COLUMNS": "100", **(env or {})})
    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    return (done.stdout if code == 0 else done.stderr).decode("utf-8")


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "run.parquet"
    karat.evaluate(ROWS, "recall@2", judge="exact").save(path)
    return path


def test_the_whole_run(run_file):
    out = call("diagnose", run_file)
    first, *_ = out.splitlines()
    assert "2 queries · judge: exact · recall@2 0.250 · 2 of 3 gold items not in the top 2" in first
    assert "nearly equal · 1 of 2" in out
    assert "rank 2 is nearly equal (similarity 0.98)" in out
    assert "not retrieved · 1 of 2" in out
    assert "The judge fuzzy counts such items: recall@2 is 0.750 with it, 0.250 now." in out
    assert "Unknown" in out
    assert f"diagnose {run_file} q1 one query in full" in " ".join(out.replace("\\\n", "").split())


def test_one_query_in_full(run_file):
    out = call("diagnose", run_file, "q1")
    assert 'q1 "When?" · judge: exact · top 2' in out
    assert "missed: rank 2 is nearly equal (similarity 0.98)" in out
    assert "compared with rank 2" in out
    left, right = zip(*(line.split(" │ ") for line in out.splitlines() if " │ " in line), strict=True)
    for column, end in ((left, "five."), (right, "nine.")):
        text = " ".join(part.strip() for part in column)
        assert text.startswith("«The museum is closed on Mondays and on")
        assert text.endswith(end)
        assert text.replace("«", "").replace("»", "") == QUOTE.replace("five.", end)
        assert text.count("«") == text.count("»") == len(column)  # each line closes what it opens
        assert not text.endswith("»")  # the last word differs


def test_what_was_found_is_shown_too(run_file):
    out = call("diagnose", run_file, "q2")
    assert "at rank 1" in out
    assert "missed: the only retrieved item is another one" in out
    assert "← exact: The museum" in out


def test_formats(run_file):
    told = json.loads(call("diagnose", run_file, "--format", "json"))
    assert told["causes"] == {"nearly equal": 1, "not retrieved": 1}
    assert told["misses"][0]["ranks"] == [2]
    one = json.loads(call("diagnose", run_file, "q2", "--format", "json"))
    assert (one["gold_items"], one["recall"]) == (2, 0.5)
    assert one["hits"] == [{"rank": 1, "gold": QUOTE, "grade": 1.0, "why": "exact"}]
    rows = list(csv.DictReader(io.StringIO(call("diagnose", run_file, "--format", "csv"))))
    assert [row["cause"] for row in rows] == ["nearly equal", "not retrieved"]
    page = call("diagnose", run_file, "--format", "markdown")
    assert "| nearly equal | 1 |" in page


def test_k_and_a_second_run(run_file, tmp_path):
    other = tmp_path / "other.parquet"
    found = [{**row, "retrieved": [{"text": QUOTE, "score": 1}]} for row in ROWS]
    karat.evaluate(found, "recall@2", judge="exact").save(other)
    out = " ".join(call("diagnose", run_file, "--other", other, "--k", "1").split())
    assert "not in the top 1" in out
    assert "The other run finds 1 of the 2 missed gold items. A hybrid by rrf(60) has a recall@1 of" in " ".join(
        out.split()
    )


def test_nothing_missed(tmp_path):
    karat.evaluate([{"retrieved": ["a"], "gold": ["a"]}], "recall@1").save(tmp_path / "run.parquet")
    out = call("diagnose", tmp_path / "run.parquet")
    assert "all gold is in the top 1" in out
    assert "Next" not in out
    assert (
        call("diagnose", tmp_path / "run.parquet", "--format", "csv").strip()
        == "query_id,query,gold,grade,rank,cause,text"
    )
    assert "Gold" in call("diagnose", tmp_path / "run.parquet", "1")


def test_errors(run_file, tmp_path):
    assert "no run file" in call("diagnose", tmp_path / "none", code=2)
    assert 'no query "q9"' in call("diagnose", run_file, "q9", code=2)
    assert "k is a whole number" in call("diagnose", run_file, "--k", "0", code=2)
    (tmp_path / "broken.parquet").write_text("nonsense")
    assert "is not a run file" in call("diagnose", tmp_path / "broken.parquet", code=2)


class Silent:
    """Judges no query."""

    name = "silent"

    def __init__(self, judged=0):
        self.judged = judged

    def __call__(self, samples, convention):
        hits = find_judge("exact")(samples, convention)
        return hits.replace(failed=dict.fromkeys(range(self.judged, len(samples)), "timed out"))


def test_nothing_judged(tmp_path):
    path = tmp_path / "run.parquet"
    rows = [{"retrieved": ["a"], "gold": ["a"]}] * 60
    karat.evaluate(rows, "recall@5", judge=Silent()).save(path)
    for form in ("table", "markdown"):
        out = call("diagnose", path, "--format", form)
        assert "0 of 60 queries were judged" in out
        assert "top 5" not in out
    assert "Not judged: timed out" in call("diagnose", path, "1")
    call("report", path, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "0 of 60 queries were judged" in page
    assert "all gold is in the top" not in page
    karat.evaluate(rows, "recall@5", judge=Silent(20)).save(path)
    assert "20 of 60 queries were judged · judge: silent · recall@5 1.000" in call("diagnose", path)


def test_some_queries_were_judged(tmp_path):
    path = tmp_path / "run.parquet"
    ranking = [{"text": text, "score": 1 / ord(text)} for text in "abcd"]
    rows = [{"retrieved": ranking, "gold": [gold]} for gold in "a" * 20 + "z" * 40]
    karat.evaluate(rows, "recall@4", judge=Silent(20)).save(path)
    out = " ".join(call("diagnose", path).split())
    assert "all gold of the judged queries is in the top 4" in out
    assert "k = 1 would be enough for the judged queries: recall@1" in out
    assert "precision of the top 4 from 0.250 to 1.000" in out
    told = json.loads(call("diagnose", path, "--format", "json"))
    assert (told["queries"], told["judged"]) == (60, 20)
    assert told["notes"] == ["20 of 60 queries were judged: the misses of the others are unknown."]


def test_no_gold_is_not_all_gold(tmp_path):
    karat.evaluate([{"retrieved": ["a"], "gold": []}] * 2, "recall@5").save(tmp_path / "run.parquet")
    out = call("diagnose", tmp_path / "run.parquet")
    assert "there is no relevant gold" in out
    assert "top 5" not in out


def test_misses_that_are_not_listed_are_counted(tmp_path):
    rows = [{"id": f"q {i}", "retrieved": ["b"], "gold": ["a"]} for i in range(6)]
    path = tmp_path / "my run.parquet"
    karat.evaluate(rows, "recall@1,5").save(path)
    out = call("diagnose", path, "--k", "1")
    assert "… 3 more" in out
    joined = " ".join(out.replace("'\\\n'", "").replace("\\\n", "").split())
    assert f"diagnose '{path}' 'q 0' --k 1" in joined
    assert f"diagnose '{path}' --k 1 --all" in joined
    assert out.count("    q ") == 3
    assert "… 1 more" in call("diagnose", path, "-n", "5")
    for everything in (["--all"], ["-n", "6"]):
        out = call("diagnose", path, *everything)
        assert out.count("    q ") == 6
        assert "more" not in out
        assert "--all" not in out


def test_a_run_in_memory_names_the_call():
    run = karat.evaluate([{"retrieved": ["b"], "gold": ["a"]}], "recall@5")
    shown = repr(karat.diagnose(run))
    assert "\nNext\n  karat.diagnose(run, '1')  one query in full" in shown
    run = karat.evaluate([{"id": "q" * 90, "retrieved": ["b"], "gold": ["a"]}], "recall@5")
    assert f"  karat.diagnose(run, '{'q' * 90}')\n      one query in full" in repr(karat.diagnose(run))


@pytest.mark.parametrize("folder", ["folder", "a folder", "it's mine"])
def test_commands_at_the_end_can_be_copied(run_file, folder):
    """Each under "Next", with its explanation below; a shell joins the lines of a long one, also in quotes."""
    program = "/" + "/".join([folder] * 20) + "/karat"
    lines = terminal(karat.diagnose(run_file), program=quote(program)).splitlines()
    last = lines[lines.index("Next") + 1 :]
    assert last[-1] == "      one query in full"
    assert max(map(len, last)) <= 80
    shell = ["sh", "-c", "printf '%s\\n' " + "\n".join(last[:-1]).lstrip()]
    said = subprocess.run(shell, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [program, "diagnose", str(run_file), "q1"]


def test_headings_name_the_run_file(run_file, tmp_path):
    for command in (["show"], ["diagnose"], ["gate", "recall@2 >= 0"]):
        out = call(command[0], run_file, *command[1:])
        assert "run.parquet · " in out.splitlines()[0]
        assert "samples" not in out.splitlines()[0]
    other = tmp_path / "other.parquet"
    karat.evaluate([{**row, "id": row["id"] + "b"} for row in ROWS], "recall@2", judge="exact").save(other)
    assert call("merge", run_file, other, "-o", tmp_path / "both.parquet").startswith("samples · 4 queries")
    assert "main" not in call("compare", run_file, run_file)


def test_the_known_range_of_a_span_is_marked(tmp_path):
    """The same words occur earlier in the chunk; the range is the second place."""
    chunk = "Closed on Mondays and on holidays.\n\nClosed on Mondays and on holidays. Open else."
    start = chunk.index("Closed", 5)
    gold = {"doc": "d", "start": 100 + start, "end": 100 + start + 34}
    rows = [{"id": "q", "retrieved": [{"doc": "d", "start": 100, "end": 100 + len(chunk), "text": chunk}]}]
    path = tmp_path / "run.parquet"
    for more in ({"text": chunk[start : start + 34]}, {}):
        karat.evaluate([{**rows[0], "gold": [{**gold, **more}]}], "recall@1", judge="spans").save(path)
        out = call("diagnose", path, "q")
        right = " ".join(line.split(" │ ")[1].strip() for line in out.splitlines() if " │ " in line)
        assert right.replace("» «", " ") == (
            "Closed on Mondays and on holidays. «Closed on Mondays and on holidays.» Open else."
        )
        call("report", path, "-o", tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text("utf-8")
        assert (
            "Closed on Mondays and on holidays.\n\n<mark>Closed on Mondays and on holidays.</mark> Open else." in page
        )


def test_cutoffs_beyond_what_was_retrieved(tmp_path):
    rows = [{"retrieved": [f"d{i}" for i in range(20)], "gold": ["d3", "g"]}] * 2
    path = tmp_path / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    remark = "At most 20 items were retrieved for a query, fewer than the cutoff of recall@50, ndcg@30."
    assert remark in call("eval", path, "recall@5,20,50 ndcg@30", "-o", tmp_path / "run.parquet")
    assert "fewer than k = 50" in call("diagnose", tmp_path / "run.parquet", "--k", "50")
    assert "At most" not in call("eval", path, "recall@5,20")


def in_a_terminal(*arguments, **env):
    """What a terminal is sent."""
    ours, theirs = pty.openpty()
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    with subprocess.Popen(
        [KARAT, *map(str, arguments)], stdout=theirs, env={**clean, "TERM": "xterm", **env}
    ) as process:
        os.close(theirs)
        sent = b""
        try:
            while part := os.read(ours, 65_536):
                sent += part
        except OSError:  # the other end is closed
            pass
        assert process.wait() == 0
    os.close(ours)
    return sent.decode()


def test_matches_are_bold_in_a_terminal_unless_that_is_not_wanted(run_file):
    sent = in_a_terminal("diagnose", run_file, "q1")
    assert "\x1b[1mThe museum" in sent
    assert "«" not in sent
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        sent = in_a_terminal("diagnose", run_file, "q1", **env)
        assert "\x1b" not in sent
        assert "«The museum" in sent


@pytest.fixture
def hostile(tmp_path):
    row = {"id": HOSTILE, "query": HOSTILE, "retrieved": [{"id": HOSTILE + "1", "text": HOSTILE * 2, "doc": HOSTILE}]}
    path = tmp_path / "run.parquet"
    karat.evaluate([{**row, "gold": [{"id": HOSTILE, "text": HOSTILE * 2}]}], "recall@1", judge="ids").save(path)
    return path


@pytest.mark.parametrize("style", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize("one", [False, True])
def test_hostile_texts_come_out_harmless(hostile, style, one):
    query = [karat.load(hostile).ids[0]] if one and "\0" not in karat.load(hostile).ids[0] else []
    out = call("diagnose", hostile, *query, "--format", style)
    harmless(out)
    if style == "markdown":
        assert "<script>" not in outside_code(out)
        assert "[a](" not in outside_code(out)
    if style == "json":
        assert json.loads(out)["misses"][0]["query"].startswith("<script>")


def test_hostile_texts_side_by_side(hostile):
    found = karat.diagnose(karat.load(hostile), karat.load(hostile).ids[0])
    harmless(repr(found))
    assert "compared with rank 1" in repr(found)
    memory = karat.evaluate([{"retrieved": [HOSTILE], "gold": [HOSTILE + "!"]}], "recall@1", judge="exact")
    harmless(repr(karat.diagnose(memory)))
    harmless(repr(karat.diagnose(memory, 1)))


def harmless(text):
    """No character is left that a terminal would act on."""
    bad = {ch for ch in text if unicodedata.category(ch) in ("Cc", "Cf", "Cs", "Co") and ch != "\n"}
    assert not bad
