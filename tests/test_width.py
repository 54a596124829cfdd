"""Every command in a real terminal: nothing is wider than it, colours are where they belong, help is complete.

The commands are the examples of their own help, so that a new command is covered as soon as it is registered.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

import karat
from karat.cli import all_commands
from karat.cli.demo.screen import samples
from karat.llm.cache import Cache
from karat.llm.model import Reply
from support.pseudo_terminal import STYLE, columns, show
from support.spans_by_hand import otlp, retriever

COMMANDS = {name: one for name, one in all_commands().items() if name == one.name}
NEW = ["-o", "collected.jsonl", "--fresh"]  # the examples of collect write a file which others read
EXAMPLES = [
    shlex.split(line)[1:] + (NEW if line.startswith("karat collect") else [])
    for one in COMMANDS.values()
    for line, _ in one.examples
    if not line.startswith(("karat serve", "karat view", "karat label")) or "--new-key" in line  # a server does not end
]
FIRST = [next(one for one in EXAMPLES if one[0] == name) for name in COMMANDS if name not in {"view", "label"}]
TABLES = [arguments for arguments in EXAMPLES if not {"--format", "--dry-run"} & {*arguments}]
FILES = (
    "samples.jsonl", "results.jsonl", "run.parquet", "main.parquet", "branch.parquet", "bm25.run", "qrels.txt",
    "labels.csv", "part-1.parquet", "part-2.parquet", "stages.jsonl",
    "gold.jsonl", "retrievers.py", "search.py", "karat-sweep", "traced.parquet", "traces.jsonl",
)  # fmt: skip
"""The files that examples may name."""
RETRIEVERS = (Path(__file__).parent / "support" / "retrievers.py").read_text()
METRICS = "recall@1,5,10,100 precision@1,5,10,100 ndcg@1,5,10,100 rr ap"
CJK = "検索結果の評価をどのように行えばよいですか"
LONG = "a/very/long/identifier/without/any/space/that/no/terminal/can/show/on/one/line/at/all"
MORE = [
    ["eval", "samples.jsonl", *METRICS.split(), "--by", "topic"], ["show", "branch.parquet", "--by", "topic"],
    ["show", "branch.parquet", "--summary", "p10,median,gm,worst(topic)"],
    ["compare", "main.parquet", "branch.parquet", "--summary", "worst(topic)"],
    ["compare", "main.parquet", "branch.parquet", "run.parquet", "main.parquet"],
    ["compare", "main.parquet", "branch.parquet", "--by", "topic"], ["diagnose", "branch.parquet", f"{LONG}/1"],
    ["gate", "branch.parquet", "recall@5 no-drop", "recall@5 >= 0.99", "--baseline", "main.parquet", "--by", "topic"],
    ["gate", "main.parquet", "recall@5 no-drop", "--baseline", "branch.parquet", "--by", "topic"],
    ["stages", "stages.jsonl", *METRICS.split()], ["stages", "part-1.parquet", "branch.parquet", "main.parquet"],
    ["rosetta", "samples.jsonl", "--metrics", *METRICS.split()], ["demo", "-o", LONG], ["init", f"{LONG} {CJK}"],
]  # fmt: skip
MISTAKES = [
    [], ["evl"], ["eval"], ["eval", f"{LONG}.jsonl"], ["eval", "samples.jsonl", "ndgc@5"],
    ["eval", "samples.jsonl", "--judge", "fuzy(0.8)"], ["eval", "samples.jsonl", "--judge", "fuzzy(treshold=0.8)"],
    ["eval", "samples.jsonl", "--by", "topik"], ["eval", "samples.jsonl", "--format", "jsn"],
    ["eval", "samples.jsonl", "--covention", "x"], ["eval", "samples.jsonl", "--convention", "treceval"],
    ["eval", "samples.jsonl", "recall@0"], ["show", "samples.jsonl"], ["show", f"{LONG}.parquet"],
    ["compare", "run.parquet", "part-1.parquet"], ["compare", "main.parquet"], ["diagnose", "run.parquet", "q0l"],
    ["gate", "run.parquet", "recall@5"], ["gate", "run.parquet"],
    ["gate", "run.parquet", "recall@7 >= 0.5"], ["rosetta", "samples.jsonl", "recall@5"], ["rosetta", "nothing"],
    ["calibrate", "run.parquet", "samples.jsonl"], ["lint", "run.parquet"], ["metrics", "recal"],
    ["fuse", "main.parquet"], ["fuse", "main.parquet", "branch.parquet", "--method", "rff"],
    ["fuse", "main.parquet", "branch.parquet", "--weights", "1"],
    ["judges", "fuzy"], ["conventions", "rank"], ["cache", "inof"], ["merge", "run.parquet"], ["init", "samples.jsonl"],
    ["stages", "samples.jsonl"], ["stages", "run.parquet"], ["stages", "stages.jsonl", "recal@5"],
    ["stages", "stages.jsonl", "--names", "bm25", "rerankd"], ["stages", "stages.jsonl", "-k", "0"],
    ["stages", "run.parquet", "part-1.parquet", "--judge", "ids"], ["eval", "stages.jsonl"],
    ["eval", "results.jsonl"], ["eval", "results.jsonl", "--map", "retrieved=dosc"],
    ["eval", "bm25.run", "--split", "x"],
    ["merge", "run.parquet", "run.parquet", "-o", "both.parquet"], ["report", "run.parquet", "-o", "run.parquet"],
]  # fmt: skip


def hostile_samples(retriever):
    """The bundled samples with long ids, wide characters, and texts without a space."""
    rows = samples(retriever)
    for number, row in enumerate(rows):
        row["id"] = row["id"] if number == 0 else f"{LONG}/{number}" if number % 2 else f"{CJK}{number}"
        row["query"] = f"{CJK * 3} 🙂 {row['query']} {LONG * 2}"
        row["topic"] = f"{CJK}{row['topic']}" if number % 2 else f"{LONG}/{row['topic']}"
        for item in (*row["retrieved"], *row["gold"]):
            item["id"] = f"{LONG}/{item['id']}" if number % 3 else f"{CJK}/{item['id']}"
    return rows


def staged(bm25, words):
    """A sample with three stages; the last one has the items of the second first, with some of its own."""
    last = words["retrieved"][1:] + bm25["retrieved"][2:] + [{"id": f"{LONG}/own", "text": CJK, "score": 0.1}]
    stages = {"bm25": bm25["retrieved"], "words": words["retrieved"], "reranked": last}
    return {name: value for name, value in bm25.items() if name != "retrieved"} | {"stages": stages}


def traced(row):
    """A sample as the span of a retriever."""
    when = {"_startTimeUnixNano": "1794830048478611968", "_traceId": row["id"], "_spanId": row["id"]}
    return retriever(row["query"], *(item["id"] for item in row["retrieved"]), **when)


def fill(folder, bm25, other, metrics, file=str):
    """Write the files that the examples name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file("samples.jsonl")).write_text("\n".join(map(json.dumps, bm25)))
    other_names = [{"question": row["query"], "docs": row["retrieved"], "relevant": row["gold"]} for row in bm25]
    (folder / file("results.jsonl")).write_text("\n".join(map(json.dumps, other_names)))
    run, before = karat.evaluate(bm25, metrics, judge="ids"), karat.evaluate(other, metrics, judge="ids")
    for name, one in (("run", run), ("branch", run), ("main", before)):
        one.save(folder / file(f"{name}.parquet"))
    for number, rows in enumerate((bm25[:16], bm25[16:]), start=1):
        karat.evaluate(rows, metrics, judge="ids").save(folder / file(f"part-{number}.parquet"))
    spans = [row | {"trace_id": "t", "span_id": str(i)} for i, row in enumerate(bm25)]
    karat.evaluate(spans, metrics, judge="ids").save(folder / file("traced.parquet"))
    both = zip(bm25, other, strict=True)
    (folder / file("stages.jsonl")).write_text("\n".join(json.dumps(staged(*rows)) for rows in both))
    ranked = [f"{i} Q0 {item['id']} 0 {item['score']} t" for i, row in enumerate(bm25) for item in row["retrieved"]]
    (folder / file("bm25.run")).write_text("\n".join(ranked))
    gold = [f"{i} 0 {item['id']} {item['grade']}" for i, row in enumerate(bm25) for item in row["gold"]]
    (folder / file("qrels.txt")).write_text("\n".join(gold))
    labels = [f"{query},1,{i % 3 and 1}" for i, query in enumerate(run.ids[:12])]
    (folder / file("labels.csv")).write_text("\n".join(["query_id,rank,label", *labels]))
    asked = [{name: row[name] for name in ("id", "query", "gold")} for row in bm25 if row["gold"]]
    (folder / file("gold.jsonl")).write_text("\n".join(map(json.dumps, asked)))
    (folder / file("retrievers.py")).write_text(RETRIEVERS)
    (folder / file("search.py")).write_text(f"{RETRIEVERS}\n\nretrieve = make()\n")
    grid = {"chunk": [20, 40], "k": [3, 5]}
    gold, place = folder / file("gold.jsonl"), folder / file("karat-sweep")
    karat.sweep(folder / file("retrievers.py"), grid, gold, "recall@3", folder=place)
    (folder / file("traces.jsonl")).write_text("\n".join(otlp(traced(row)) for row in bm25))
    cache = Cache(folder / "karat" / "answers.sqlite")
    for i in range(3):
        cache.put(str(i), f"model-{LONG if i else ''}", "1", Reply({"said": "x"}, 1000, 10))
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("plain"), samples("bm25"), samples("first-words"), "recall@1,5 ndcg@10 rr")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The same files with hostile data, and a long path for each."""
    folder = tmp_path_factory.mktemp("hostile")
    fill(folder, hostile_samples("bm25"), hostile_samples("first-words"), METRICS, file=long_name)
    return folder


def long_name(name):
    return f"a-file-with-a-rather-long-name-{CJK}-as-experiments-often-have-{'x' * 40}-{name}"


def renamed(arguments):
    return [long_name(one) if one.partition(":")[0] in FILES else one for one in arguments]


def assert_fits(commands, shown, width):
    wide = [
        f"karat {shlex.join(arguments)}\n{one.widest}"
        for arguments, one in zip(commands, shown, strict=True)
        if columns(one.widest) > width
    ]
    assert not wide, "\n".join(wide)
    assert not any("Traceback" in one.text for one in shown)


def test_examples_name_only_files_that_the_tests_write():
    for arguments in EXAMPLES:
        outputs = {arguments[i + 1] for i, one in enumerate(arguments) if one == "-o"}
        named = {one for one in arguments if re.fullmatch(r"[\w-]+\.(jsonl|parquet|csv|txt|run|html)", one)}
        assert named - outputs <= {*FILES}


@pytest.mark.parametrize("width", [80, 60, 120])
def test_every_command_fits(plain, width):
    shown = show(TABLES, plain, width=width)
    assert_fits(TABLES, shown, width)
    assert {one.code for one in shown} <= {0, 1}, [one.text for one in shown if one.code > 1]
    assert all(one.text.strip() for one in shown)


@pytest.mark.parametrize("width", [80, 60])
def test_every_command_fits_with_hostile_data(hostile, width):
    commands = [renamed(arguments) for arguments in (*TABLES, *MORE)]
    shown = show(commands, hostile, width=width)
    assert_fits(commands, shown, width)
    assert {one.code for one in shown} <= {0, 1}, [one.text for one in shown if one.code > 1]


def test_every_mistake_fits(hostile):
    commands = [renamed(arguments) for arguments in MISTAKES]
    shown = show(commands, hostile, width=80)
    assert_fits(commands, shown, 80)
    assert {one.code for one in shown} == {2}
    assert all("\x1b[31mkarat:" in one.text for one in shown[1:])


@pytest.mark.parametrize("width", [80, 60, None])
def test_every_help_fits_and_is_complete(tmp_path, width):
    commands = [["--help"], *([name, "--help"] for name in COMMANDS)]
    shown = show(commands, tmp_path, width=width)
    assert_fits(commands, shown, width or 80)
    for name, one in zip(COMMANDS, shown[1:], strict=True):
        text, about = STYLE.sub("", one.text), COMMANDS[name].about
        assert f"{about[0].upper()}{about[1:]}." in " ".join(text.split())
        assert f"\n  karat {name}" in text.partition("\nexamples:")[2]
        options = [" ".join(part.split()) for part in re.split(r"\n  (?=-)", text)]
        for names, settings, _ in COMMANDS[name].arguments:
            takes_value = names[0].startswith("-") and settings.get("action") != "store_true"
            if takes_value and not settings.get("required"):
                (said,) = [option for option in options if re.match(rf"{names[0]}[ ,]", option)]
                assert "(default: " in said


def test_no_colour_in_a_pipe_or_with_no_color(plain):
    for one in (*show(FIRST, plain), *show(FIRST, plain, width=80, NO_COLOR="1")):
        assert "\x1b" not in one.text
    never = [[*arguments, "--color", "never"] for arguments in FIRST]
    assert not any("\x1b" in one.text for one in show(never, plain, width=80))


def test_colour_in_a_terminal_and_on_request(plain):
    in_terminal = show(FIRST, plain, width=80)
    colored = {arguments[0] for arguments, one in zip(FIRST, in_terminal, strict=True) if STYLE.search(one.text)}
    assert colored == {*COMMANDS} - {"report", "push", "serve", "view", "label"}
    always = [[*arguments, "--color", "always"] for arguments in FIRST]
    for asked in (show(always, plain), show(FIRST, plain, FORCE_COLOR="1")):
        assert [bool(STYLE.search(one.text)) for one in asked] == [bool(STYLE.search(one.text)) for one in in_terminal]
    assert not any("\x1b" in one.text for one in show([["show", "run.parquet", "--format", "csv"]], plain, width=80))


def test_verdicts_have_colours(plain):
    gate, compare = show(
        [["gate", "run.parquet", "recall@5 >= 0.99", "recall@5 >= 0.1"], ["compare", "main.parquet", "run.parquet"]],
        plain, width=80,
    )  # fmt: skip
    assert "\x1b[31mFAIL" in gate.text
    assert "\x1b[32mPASS" in gate.text
    assert re.search(r"\x1b\[32m\S", compare.text)
