"""Text from the data, from file names and from errors does nothing: on the terminal, in CSV, JSON, Markdown, HTML."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import polars as pl
import pytest

import karat
from fuzz.frame import command
from karat._internal.display import sanitize
from karat._internal.writers import harmless, html_table, html_text, put, to_csv, to_json
from karat.report.forms import code, escape
from karat.report.github import workflow_command

CONTROLS = [*map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xA0))]
BIDI = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
LINES = ["\u2028", "\u2029", "\u0085", "\v", "\f"]
HIDDEN = "".join([*CONTROLS, *BIDI, *LINES, "\ufeff", "\U000e0001", "\ufdd0"])
COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)
ID = "::error::q\n::warning::x\r\x1b]0;t\x07\u202e##[group]y ##vso[task]z"


@pytest.fixture
def samples(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "samples.jsonl"
    row = {"query": ID, "retrieved": [ID], "gold": [ID + "!"], ID: ID}
    path.write_text("\n".join(json.dumps({"id": f"{start}{ID}", **row}) for start in ("", "=", "@", "-5 ", "a")))
    return path


def is_harmless(text):
    assert not set(text) & set(HIDDEN.replace("\n", ""))
    assert not COMMAND.search(text)
    return True


def test_printed_text_keeps_only_line_breaks_and_own_styles():
    assert harmless(f"a{HIDDEN}b").replace("\ufffd", "").replace(" ", "") == "a\nb"
    assert harmless("\x1b[1mbold\x1b[0m \x1b[31mred\x1b[0m") == "\x1b[1mbold\x1b[0m \x1b[31mred\x1b[0m"
    assert harmless("\x1b[41m\x1b[2J\x1b]0;x\x07") == "\ufffd[41m\ufffd[2J\ufffd]0;x\ufffd"
    assert harmless("日本 é \u00a0 \U0001f600") == "日本 é \u00a0 \U0001f600"


@pytest.mark.parametrize("before", ["", "a\n", "  ", "\t", "\x1b[1m", "\u3000", "a\n \x1b[0m "])
def test_no_line_begins_with_a_workflow_command(before):
    assert harmless(f"{before}::error::x").endswith(": :error::x")
    assert harmless(f"{before}x::error::x").endswith("x::error::x")


@pytest.mark.parametrize("mark", ["##[error]x", "###[x]", "a ##[add-mask]b", "##vso[task.x]y", "##teamcity[z]"])
def test_no_text_has_the_mark_of_a_ci_command(mark):
    for text in (harmless(mark), sanitize(mark), code(mark), escape(mark), to_json([mark])):
        assert not COMMAND.search(text)
    assert json.loads(to_json([mark])) == [mark]


def test_json_shows_every_hidden_character_as_an_escape():
    text = to_json({HIDDEN: [HIDDEN]})
    assert is_harmless(text)
    assert json.loads(text) == {HIDDEN: [HIDDEN]}


def test_csv_has_neither_hidden_characters_nor_formulas():
    cells = [
        "=1+1",
        "+1-1",
        "-a",
        "@x",
        " =1",
        "\t=1",
        "\r=1",
        "＝1",
        "＋1",
        "－1",
        "＠x",
        "-0.5",
        "+1e5",
        "a=b",
        HIDDEN,
    ]
    frame = pl.DataFrame(
        {"=name": cells, "a\n": -0.5, "a\\n": [None] * len(cells)}, schema_overrides={"a\\n": pl.String}
    )
    text = to_csv(frame)
    assert is_harmless(text)
    header, *rows = csv.reader(io.StringIO(text))
    assert header == ["'=name", r"a\n", r"a\n"]
    assert [row[0] for row in rows[:-1]] == [
        "'=1+1", "'+1-1", "'-a", "'@x", "' =1", r"\t=1", r"\r=1", "'＝1", "'＋1", "'－1", "'＠x", "-0.5", "+1e5", "a=b",
    ]  # fmt: skip
    assert json.loads(f'"{rows[-1][0]}"') == HIDDEN
    assert {row[1] for row in rows} == {"-0.5"}


FORMS = {
    "terminal": (harmless, "\n"),
    "one line": (sanitize, ""),
    "error": (lambda text: str(karat.KaratError(text)), ""),
    "JSON": (lambda text: to_json([text]), "\n"),
    "CSV": (lambda text: to_csv(pl.DataFrame({"a": [text]}).select(pl.col("a").name.map(lambda _: text))), "\n"),
    "Markdown": (escape, ""),
    "HTML": (html_text, "\t\n\u061c\u200c\u200d\u200e\u200f"),
    "workflow command": (lambda text: workflow_command("error", text, file=text), ""),
}


@pytest.mark.parametrize("form", FORMS)
def test_no_form_has_an_invisible_character(form):
    """Decided by the category of a character in Unicode; the joiners of Persian and of emoji stay in HTML."""
    write, kept = FORMS[form]
    codes = [*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE1000), 0x10FFFF]
    every = [*map(chr, codes), *([] if form == "CSV" else ["\ud800", "\udfff"])]  # Polars has no surrogates
    for begin in range(0, len(every), 1000):
        found = {char for char in write("".join(every[begin : begin + 1000])) if is_invisible(char)}
        assert found <= set(kept)


def is_invisible(char):
    return unicodedata.category(char)[0] == "C" or unicodedata.category(char) in {"Zl", "Zp"}


def test_html_keeps_words_and_emoji_readable():
    text = "می\u200cخواهم 👩\u200d👩\u200d👧 a\u00a0b\n\tc"
    assert html_text(text) == text


def test_html_of_notebooks_shows_symbols():
    assert "<td>\u241b[31m &lt;b&gt; \ufffd</td>" in html_table(["a"], [["\x1b[31m <b> \u202e"]], "c")


@pytest.mark.parametrize("form", ["table", "csv", "json", "markdown"])
@pytest.mark.parametrize("color", ["always", "never"])
def test_every_form_of_a_run(samples, form, color):
    done = command("eval", samples, "rr recall@5", "--by", ID, "--format", form, "--color", color, "-o", "r.parquet")
    assert done.code == 0, done.err
    assert is_harmless(re.sub(r"\x1b\[(0|1|3[123])m", "", done.out))
    done = command("show", "r.parquet", "--format", form)
    assert is_harmless(done.out)
    if form == "csv":
        assert len(list(csv.reader(io.StringIO(done.out)))) == 6


@pytest.mark.parametrize(
    "name", ["::error::x.jsonl", "a\n::error::b.jsonl", "\x1b[31m.jsonl", "##[group]\u202e.jsonl", "\udcff"]
)
def test_file_names_and_arguments(samples, name):
    for arguments in (("eval", name), ("eval", samples, name), ("eval", samples, "--judge", name), ("show", name)):
        done = command(*arguments)
        assert done.code == 2
        assert is_harmless(done.err)
    Path(os.fsdecode(os.fsencode(name))).write_bytes(samples.read_bytes())
    done = command("eval", name, "rr")
    assert done.code in {0, 2}
    assert is_harmless(done.out + done.err)


def test_errors_are_harmless_in_python_too():
    rows = [{"retrieved": ["a"], "gold": ["a"]}]
    for source, wrong in ((rows, {"metrics": ID}), (rows, {"judge": ID}), (rows, {"convention": ID}), (ID, {})):
        with pytest.raises(karat.KaratError) as caught:
            karat.evaluate(source, **wrong)
        lines = str(caught.value).split("\n")
        assert all(line.isprintable() for line in lines)
        assert not any(line.startswith("::") for line in lines)


def test_every_text_is_printed_by_one_function():
    """`put` makes it harmless; the others write a progress bar, and what a user's code prints in a worker."""
    source = Path(karat.__file__).parent
    direct = re.compile(
        r"\bprint\(|(stdout|stderr|stream)\S*\.write(lines)?\(|\.write_csv\(|\bhtml import escape|_LOG\b.*f\""
    )
    found = {
        f"{path.relative_to(source)}: {line.strip()}"
        for path in source.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if direct.search(line) and "run.table.write_csv" not in line
    }
    assert found == {
        "_internal/writers.py: stream.write(harmless(text, commands=commands) + end)",
        "_internal/writers.py: return header.write_csv(include_header=False) + frame.write_csv(include_header=False)",
        "_internal/writers.py: from html import escape",
        "report/forms.py: from html import escape as escape_html",
        '_internal/progress.py: self._stream.write(f"\\r\\x1b[K{line}")',
        "scale/processes.py: return 0 if sys.__stderr__ is None else sys.__stderr__.write(text)",
    }


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_nothing_is_printed_to_a_closed_stream_or_to_the_other(monkeypatch, capsys, closed):
    monkeypatch.setattr(sys, closed, None)
    put("text", error=closed == "stderr")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_that_cannot_show_a_character_shows_its_escape(samples, encoding):
    env = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    run = [sys.executable, "-m", "karat", "eval", samples, "rr", "--by", ID, "--format"]
    for form in ("table", "csv", "json"):
        done = subprocess.run([*run, form], capture_output=True, env=env, check=True)
        assert is_harmless(done.stdout.decode(encoding))
