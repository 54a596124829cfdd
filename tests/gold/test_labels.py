"""Labels on disk: nothing that was acknowledged is lost, and nothing else appears."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.errors import BadArgument, InputError
from karat.gold.labels import (
    BINARY,
    GRADED,
    SETTLED,
    Label,
    LabelFile,
    Quote,
    checked_person,
    decide,
    labels_path,
    parse_scale,
    read_labels,
)


def label(query="q1", item="a", grade=2.0, by="ada", **more):
    return Label(query, item, grade=grade, by=by, **more)


def skip(query="q1", item="a", by="ada", answer="skip"):
    return Label(query, item, answer, by=by)


def grades(file):
    latest = file.latest() if isinstance(file, LabelFile) else file.standing().latest
    return {key: one.grade for key, one in latest.items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "gold.labels.jsonl"


def test_a_label_is_a_line_with_time_and_number(path):
    with LabelFile(path, pool="digest") as file:
        marked = label(quotes=(Quote(3, 7, "five"),), note="see §2", probability=0.25, model=1.0)
        written = file.append(marked)
        file.append(skip(item="b", by="Grace  Hopper "))
    first, second = map(json.loads, path.read_text().splitlines()[1:])
    assert first == {
        "query": "q1", "item": "a", "grade": 2.0, "quotes": [{"start": 3, "end": 7, "text": "five"}], "note": "see §2",
        "by": "ada", "time": written.time, "probability": 0.25, "model": 1.0, "number": 1,
    }  # fmt: skip
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", written.time)
    assert (second["answer"], second["by"], second["number"]) == ("skip", "Grace Hopper", 2)
    read = read_labels(path)
    assert read.lines[0] == written
    assert (read.header.pool, read.header.scale, read.torn) == ("digest", GRADED, b"")


def test_a_later_line_replaces_an_earlier_one_of_the_same_person(path):
    with LabelFile(path) as file:
        file.append(label(grade=1))
        file.append(label(grade=3, by="grace"))
        file.append(label(grade=1, quotes=[Quote(0, 2, "no")], note="why"))
        assert grades(file) == {("q1", "a", "ada"): 1, ("q1", "a", "grace"): 3}
        assert file.latest()["q1", "a", "ada"].note == "why"
    with LabelFile(path) as again:
        assert again.append(label(item="z")).number == 4


def test_undo_takes_back_the_last_line_of_that_person_again_and_again(path):
    with LabelFile(path) as file:
        file.append(label(grade=1))
        file.append(label(grade=2))
        file.append(label(grade=3, by="grace"))
        file.append(skip(item="b"))
        assert file.undo("ada").answer == "skip"
        assert grades(file) == {("q1", "a", "ada"): 2, ("q1", "a", "grace"): 3}
        assert file.undo("ada").grade == 2
        assert grades(file)["q1", "a", "ada"] == 1
        assert file.undo("ada").grade == 1
        assert file.undo("ada") is None
        assert file.undo("nobody") is None
        assert grades(file) == {("q1", "a", "grace"): 3}
    assert len(read_labels(path).lines) == 7
    assert grades(read_labels(path)) == {("q1", "a", "grace"): 3}


STEPS = st.lists(
    st.one_of(
        st.builds(label, st.sampled_from(["q1", "q2"]), st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 3.0]),
                  st.sampled_from(["ada", "grâce", "李"]), note=st.text(max_size=5)),
        st.builds(skip, by=st.sampled_from(["ada", "grâce"]), answer=st.sampled_from(["skip", "cannot tell"])),
        st.sampled_from(["ada", "grâce", "李"]),
    ),
    max_size=12,
)  # fmt: skip
"""Labels, and undos by the name of the person."""


def by_hand(steps):
    """A slow twin: the lines that stand, in their order."""
    lines = []
    for step in steps:
        if isinstance(step, Label):
            lines.append(step)
        elif own := [place for place, line in enumerate(lines) if line.by == step]:
            del lines[own[-1]]
    return {(line.query, line.item, line.by): line.grade for line in lines}


@given(steps=STEPS, share=st.floats(0, 1))
@settings(max_examples=60)
def test_a_file_cut_at_any_byte_has_exactly_the_lines_before_the_cut(tmp_path_factory, steps, share):
    path = tmp_path_factory.getbasetemp() / "cut.labels.jsonl"
    path.unlink(missing_ok=True)
    done, ends = [], [0]
    with LabelFile(path) as file:
        ends[0] = path.stat().st_size
        for step in steps:
            if isinstance(step, Label):
                file.append(step)
            elif file.undo(step) is None:
                continue
            done.append(step)
            ends.append(path.stat().st_size)
        assert grades(file) == by_hand(done)
    content = path.read_bytes()
    cut = round(share * len(content))
    path.write_bytes(content[:cut])
    whole = sum(end - 1 <= cut for end in ends[1:])  # a line of which only the line break is missing is whole
    assert grades(read_labels(path)) == by_hand(done[:whole])
    with LabelFile(path) as file:
        assert grades(file) == by_hand(done[:whole])
        file.append(label("new"))
    with LabelFile(path) as file:
        assert grades(file) == by_hand(done[:whole]) | {("new", "a", "ada"): 2}
        assert file.torn == 0


def test_a_torn_line_is_kept_apart(path):
    with LabelFile(path) as file:
        file.append(label())
    with path.open("ab") as torn:
        torn.write(b'{"query":"q2","it')
    with LabelFile(path) as file:
        assert file.torn == 17
        assert len(file.lines) == 1
        file.append(label("q3"))
    assert Path(f"{path}.torn").read_bytes() == b'{"query":"q2","it\n'
    assert [line.query for line in read_labels(path).lines] == ["q1", "q3"]


def test_a_bad_line_in_the_middle_is_refused_with_its_number(path):
    with LabelFile(path) as file:
        file.append(label())
        file.append(label("q2"))
    good = path.read_text()
    for bad in ("{", good.splitlines()[1].replace("2.0", "7"), '{"query":"q1"}', '["q1"]'):
        lines = good.splitlines()
        path.write_text("\n".join([lines[0], bad, lines[2], ""]))
        with pytest.raises(InputError, match="line 2 is no label"):
            LabelFile(path)
        with pytest.raises(InputError, match="line 2"):
            read_labels(path)
    path.write_text(good)
    LabelFile(path).close()


def test_another_file_is_refused_and_stays_as_it_is(path):
    for content in ('{"id": "q1", "gold": []}\n', "no line break", good_header().replace(":1,", ":2,")):
        path.write_text(content)
        with pytest.raises(InputError, match=r"no file of labels|format 2"):
            LabelFile(path)
        assert path.read_text() == content


def good_header():
    return '{"karat_labels":1,"pool":"","scale":{"grades":[{"grade":0,"words":"no"},{"grade":1,"words":"yes"}]}}\n'


ELSEWHERE = """
import sys
from karat.gold.labels import Label, LabelFile
file = LabelFile(sys.argv[1])
for number in range(int(sys.argv[2])):
    print(file.append(Label(f"q{number}", "a", grade=number % 4, by="ada")).number, flush=True)
"""


def elsewhere(path, size, code=ELSEWHERE):
    return subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(size)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_second_writer_is_refused_and_readers_are_not(path):
    with LabelFile(path) as file:
        file.append(label())
        other = elsewhere(path, 1)
        _, said = other.communicate(timeout=60)
        assert other.returncode != 0
        assert f"another process is writing {path}" in said
        with pytest.raises(BadArgument, match="another process is writing"):
            LabelFile(path)
        assert len(read_labels(path).lines) == 1
    with LabelFile(path) as file:
        assert len(file.lines) == 1
    with pytest.raises(BadArgument, match="is closed"):
        file.append(label())


def test_kill_9_loses_nothing_that_was_acknowledged(path):
    with elsewhere(path, 1_000_000) as other:
        acknowledged = [int(other.stdout.readline()) for _ in range(300)]
        os.kill(other.pid, signal.SIGKILL)
        acknowledged += [int(line) for line in re.findall("([0-9]+)\n", other.stdout.read())]
    with LabelFile(path) as file:
        numbers = [line.number for line in file.lines]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= acknowledged[-1] >= 300
        assert all(line.query == f"q{line.number - 1}" for line in file.lines)
        assert file.append(label("new")).number == len(numbers) + 1


FULL = """
import resource, signal, sys
from karat.errors import KaratError
from karat.gold.labels import Label, LabelFile
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
file = LabelFile(sys.argv[1])
stored = 0
try:
    while True:
        file.append(Label(f"q{stored}", "a", grade=1, by="ada"))
        stored += 1
except KaratError as error:
    print(error)
assert len(file.lines) == len(file.latest()) == stored
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))
print(file.append(Label("after", "a", grade=1, by="ada")).number == stored + 1, file.undo("ada").query)
"""


def test_a_full_disk_is_reported_and_leaves_no_part_of_a_line(path):
    other = elsewhere(path, 0, FULL)
    said, error = other.communicate(timeout=60)
    assert other.returncode == 0, error
    assert said.splitlines()[0].startswith(f"cannot write {path}: ")
    assert said.splitlines()[-1] == "True after"
    read = read_labels(path)
    assert read.torn == b""
    assert [line.number for line in read.lines] == list(range(1, len(read.lines) + 1))


def test_five_people_at_once_share_the_waits_for_the_disk(path, monkeypatch):
    slow, syncs = os.fsync, []
    with LabelFile(path) as file:
        monkeypatch.setattr(os, "fsync", lambda number: (slow(number), syncs.append(os.fstat(number).st_size)))

        def work(name):
            for place in range(150):
                written = file.append(label(f"q{place}", by=name))
                assert path.read_bytes().index(f'"number":{written.number}}}'.encode()) < syncs[-1]

        people = [Thread(target=work, args=(f"person {n}",)) for n in range(5)]
        for one in people:
            one.start()
        for one in people:
            one.join()
        assert len(file.latest()) == 750
    lines = read_labels(path).lines
    assert [line.number for line in lines] == list(range(1, 751))
    assert len(syncs) < 750


def fail(number, content=b"", write=os.write):
    write(number, content[:9]) if isinstance(content, bytes) else None
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("broken", [["fsync"], ["write"], ["write", "ftruncate"]], ids=" and ".join)
def test_a_failed_label_is_forgotten(path, monkeypatch, broken):
    with LabelFile(path) as file:
        file.append(label())
        with monkeypatch.context() as patch:
            for name in broken:
                patch.setattr(os, name, fail)
            for answer in (lambda: file.append(label("q2")), lambda: file.undo("ada")):
                with pytest.raises(BadArgument, match="No space left"):
                    answer()
        assert grades(file) == {("q1", "a", "ada"): 2}
        assert file.append(label("q3")).number == 2
    assert [line.query for line in read_labels(path).lines] == ["q1", "q3"]


def test_labels_of_another_pool_are_refused_unless_the_pool_only_grew(path):
    with LabelFile(path, pool="one", scale=BINARY) as file:
        file.append(label(grade=1))
    with pytest.raises(BadArgument, match=r'another pool, such as query "q1", item "a"'):
        LabelFile(path, pool="two", pairs={("q1", "b")})
    with pytest.raises(BadArgument, match="another pool"):
        LabelFile(path, pool="two")
    with LabelFile(path, pool="two", pairs={("q1", "a"), ("q1", "b")}) as file:
        assert file.scale == BINARY
        file.append(label(item="b", grade=0))
    with LabelFile(path, pool="two") as file:
        assert len(file.lines) == 2
    with pytest.raises(BadArgument, match=r"has grades \[0, 1\], not \[0, 1, 2, 3\]"):
        LabelFile(path, scale=GRADED)


@pytest.mark.parametrize(
    ("text", "values", "words"),
    [
        ("0=no,1=partly,2=yes", (0, 1, 2), ["no", "partly", "yes"]),
        ("0 = no, not at all, 5 = yes", (0, 5), ["no, not at all", "yes"]),
        ("binary", (0, 1), ["not relevant", "relevant"]),
    ],
)
def test_a_scale_in_words(text, values, words):
    scale = parse_scale(text)
    assert scale.values == values
    assert [one.words for one in scale.grades] == words


@pytest.mark.parametrize(
    "text", ["", "0=no", "1=a,2=b", "0=a,0=b", "0=a,12=b", "0=,1=b", "no,yes", "0=a,-1=b", "1=b,0=a"]
)
def test_impossible_scales(text):
    with pytest.raises(BadArgument, match="scale"):
        parse_scale(text)


@pytest.mark.parametrize(
    "wrong",
    [
        label(grade=4), label(grade=None), label(grade=float("nan")), label(grade=1.5), label(by=""), label(by=" \n"),
        label(by="x" * 61), label(by="a\x00b"), label(by="a\u202eb"), label(probability=0.0), label(probability=1.1),
        label(model=float("inf")), label(quotes=(Quote(3, 3, "x"),)), label(quotes=(Quote(-1, 3, "x"),)),
        label(quotes=(Quote(0, 1, " "),)), Label("q1", "a", "skip", grade=1, by="ada"),
        Label("q1", "a", "undo", by="ada"), Label("q1", "a", "maybe", by="ada"),
    ],
)  # fmt: skip
def test_impossible_labels_are_not_written(path, wrong):
    with LabelFile(path) as file:
        size = path.stat().st_size
        with pytest.raises(BadArgument):
            file.append(wrong)
        assert path.stat().st_size == size


def test_any_text_can_be_labelled(path):
    """Lone surrogates and line breaks cannot break a line."""
    with LabelFile(path) as file:
        file.append(label("q\n1", "a\ud800", note='"\r\n\u2028', by="👩‍🔬 نمی‌دانم"))
    assert checked_person("  Ada \t Lovelace ") == "Ada Lovelace"
    assert checked_person("e\u0301") == checked_person("é")
    (line,) = read_labels(path).lines
    assert (line.query, line.item, line.note, line.by) == ("q\n1", "a\\ud800", '"\r\n\u2028', "👩‍🔬 نمی‌دانم")


def test_several_people_count_as_their_lower_median():
    def of(**given):
        return {by: label(grade=grade, by=by) for by, grade in given.items()}

    assert decide({}) is None
    assert decide(of(a=3, b=0, c=3)) == 3
    assert decide(of(a=3, b=0)) == 0
    assert decide(of(a=3, b=2, c=0, d=1)) == 1
    assert decide(of(a=3) | {"b": skip(by="b")}) == 3
    assert decide({"b": skip(by="b", answer="cannot tell")}) is None
    settled = of(a=3, b=3)
    assert decide(settled | {SETTLED: label(grade=1, by=SETTLED)}) == 1
    assert decide(settled | {SETTLED: skip(by=SETTLED, answer="cannot tell")}) is None
    assert decide(settled | {SETTLED: skip(by=SETTLED)}) == 3


def test_the_labels_are_next_to_the_gold():
    assert labels_path("work/gold.jsonl") == Path("work/gold.labels.jsonl")


def test_the_server_that_writes_labels_loads_no_numpy():
    code = "import sys, karat.gold.labels; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
