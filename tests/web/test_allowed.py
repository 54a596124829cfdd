"""Nothing that a request says is opened, imported or asked over the network: each way is tried, and watched.

The tasks of a worker run in this process. An audit hook of Python sees every file that is opened, every import and
every connection.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib

import pyarrow as pa
import pytest

import karat
from karat.judges import all_judges
from karat.web.api.allowed import JUDGES, judge_of, without_addresses
from karat.web.messages import Call
from karat.web.problems import Refused
from karat.web.settings import Limits
from karat.web.tasks import do, load_tasks

SAMPLE = {"id": "q1", "query": "q", "answer": "a b", "retrieved": ["a", "b"], "gold": ["b"]}
MARK = "canary"


def zstd(content):
    return pa.compress(content, codec="zstd", asbytes=True)


seen: list[str] = []
watching = False


def _watch(event, arguments):
    if watching and event in {
        "open",
        "import",
        "socket.connect",
        "socket.getaddrinfo",
        "os.listdir",
        "sqlite3.connect",
    }:
        seen.append(f"{event} {arguments}")


@pytest.fixture(scope="module", autouse=True)
def tasks():
    load_tasks()
    do(Call("evaluate"), json.dumps({"samples": [SAMPLE], "judge": "claims"}).encode(), lambda *_: None)
    sys.addaudithook(_watch)


@pytest.fixture
def canary(tmp_path):
    """Files of every kind that karat would read, if it were given their path."""
    folder = tmp_path / MARK
    folder.mkdir()
    (folder / "samples.jsonl").write_text(json.dumps(SAMPLE))
    (folder / "code.py").write_text("def judge(gold, item):\n    return True\n")
    (folder / "doc.txt").write_text("text")
    karat.evaluate([SAMPLE], "rr").save(folder / "run.parquet")
    return folder


def ask(task, body, **more):
    """The answer of a task, and what was opened while it worked."""
    global watching  # noqa: PLW0603
    seen.clear()
    watching = True
    try:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        reply, content = do(Call(task, **more), sent, lambda *_: None)
    finally:
        watching = False
    return reply.status, content.decode(), [event for event in seen if MARK in event or "socket" in event]


def test_the_watch_sees_what_is_opened(canary, monkeypatch):
    monkeypatch.setattr("karat.web.api.evaluating.evaluate", lambda *_, **__: karat.load(canary / "run.parquet"))
    assert ask("evaluate", {"samples": [SAMPLE]})[2]


def values(folder):
    """Texts that karat's own functions would open, import or connect to."""
    return [
        str(folder / "samples.jsonl"), str(folder), f"{folder}/*.jsonl", f"file://{folder}/samples.jsonl",
        f"@{folder}/samples.jsonl", f"{folder}/code.py:judge", f"{folder}/run.parquet", f"irds:{MARK}",
        f"http://127.0.0.1:9/{MARK}", f"s3://{MARK}/x.parquet", "-", "os:system",
    ]  # fmt: skip


def test_the_name_of_an_uploaded_file_is_not_opened(canary):
    head = 'Content-Disposition: form-data; name="samples"; filename="{}"'
    for value in values(canary):
        body = "\r\n".join(("--m", head.format(value), "", json.dumps(SAMPLE), "--m--", ""))
        status, _, opened = ask("evaluate", body.encode(), content_type="multipart/form-data; boundary=m")
        assert (status in (200, 422), opened) == (True, [])


FIELDS = (
    "samples", "retrieved", "gold", "metrics", "judge", "convention", "fields", "at", "order", "merge", "also", "by",
    "summary", "store", "corpus", "cache", "split", "tokens",
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_path_in_any_field_of_an_evaluation(canary, tmp_path, field):
    for value in values(canary):
        for given in (value, [value], {"retrieved": value}):
            body = {"samples": [SAMPLE], "metrics": "rr", field: given}
            status, _, opened = ask("evaluate", body, store=str(tmp_path))
            assert status in (200, 400, 403, 404, 422), (given, status)
            assert opened == []


@pytest.mark.parametrize("place", ["retrieved", "gold", "id", "query", "answer", "meta", "steps", "stages", "error"])
def test_a_path_inside_a_sample(canary, place):
    for value in values(canary):
        for given in (value, [value], [{"text": value, "doc": value, "id": value}]):
            status, _, opened = ask("evaluate", {"samples": [SAMPLE | {place: given}], "metrics": "rr"})
            assert status in (200, 400, 422)
            assert opened == []


@pytest.mark.parametrize(
    "judge",
    [
        "spans(corpus={0})", "spans(0.5, corpus={0}/doc.txt)", "spans(tokenizer={0}/code.py:judge)",
        "claims(lexical, cache={0}/cache)", "claims(lexical, prices={0}/doc.txt)", "claims(gpt-4o-mini)",
        "claims(model=gpt-4o-mini)", "claims(gpt-4o-mini, base_url=http://127.0.0.1:9)",
        "claims('openai(m, base_url=http://127.0.0.1:9)')", "claims('azure(m, base_url=http://127.0.0.1:9)')",
        "relevance(gpt-4o-mini)", "relevance", "{0}/code.py:judge", "code:judge", "os:system", "protocol",
        "fuzzy(scorer={0}/code.py:judge)", "text(fold={0})", "contains(strip={0})", "ids(at={0})",
        "claims(lexical, split={0})", "fuzzy(__import__('os').system('x'))",
    ],
)  # fmt: skip
def test_a_judge_that_would_open_something(canary, judge):
    text = judge.format(canary)
    status, answer, opened = ask("evaluate", {"samples": [SAMPLE], "judge": text})
    assert (status in (400, 403), opened) == (True, []), answer
    allowed = ask("evaluate_job", {"samples": [SAMPLE], "judge": text}, models=("another-model",))
    assert (allowed[0] in (400, 403), allowed[2]) == (True, []), allowed[1]


def test_a_file_that_exists_is_not_told_from_one_that_does_not(canary):
    answers = {
        ask("evaluate", {"samples": [SAMPLE], "metrics": str(canary / name)})[1].replace(name, "") for name in NAMES
    }
    assert len({answer.partition("detail")[2] for answer in answers}) == 1


NAMES = ("samples.jsonl", "nothing.jsonl")


@pytest.mark.parametrize("task", ["compare", "gate", "diagnose"])
def test_a_path_in_place_of_a_run(canary, tmp_path, task):
    (tmp_path / "store").mkdir()
    for value in (*values(canary), f"../{MARK}/run", f"../{MARK}/run.parquet"):
        runs = {"runs": [value, value]} if task == "compare" else {"run": value, "rules": ["rr >= 0"]}
        runs = {"run": value} if task == "diagnose" else runs
        status, answer, opened = ask(task, runs, store=str(tmp_path / "store"))
        assert (status, opened) == (404, []), answer
        more = {"baseline": value} if task == "gate" else {"other": value}
        if task != "compare":
            inline = {**runs, "run": {"samples": [SAMPLE], "metrics": "rr"}, **more}
            assert ask(task, inline, store=str(tmp_path / "store"))[::2] == (404, [])


def test_only_the_models_that_the_operator_allows():
    models = ("gpt-4o-mini", "openai(mine, base_url=http://127.0.0.1:9/v1)", "o3(temperature=none)")
    for name, shown in (
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("mine", models[1]),
        (f"'{models[1]}'", models[1]),
        ("o3", models[2]),
    ):
        assert judge_of(f"claims({name})", models).settings["model"] == shown
    with pytest.raises(Refused, match="not allowed"):
        judge_of("claims(gpt-5)", models)
    with pytest.raises(Refused, match="off on this server"):
        judge_of("relevance(gpt-4o-mini)", ())
    assert judge_of("claims", ()).name == "claims(lexical)"


def test_the_address_of_a_model_is_not_told():
    models = ("openai(mine, base_url=http://127.0.0.1:9/v1)", "gpt-4o-mini")
    listed = ask("judges", b"", models=models)[1]
    assert "Models: mine, gpt-4o-mini." in listed
    body = {"samples": [SAMPLE], "judge": "relevance(other)"}
    refused = ask("evaluate", body, models=models)[1]
    assert '"hint":"mine, gpt-4o-mini"' in refused
    named = "claims('openai(mine, base_url=http://127.0.0.1:9/v1, temperature=0)') at http://127.0.0.1:9/v1"
    assert without_addresses(named, models) == "claims(mine) at mine"
    assert "127.0.0.1" not in listed + refused


def test_every_judge_has_a_decision():
    """A new judge is not served before somebody has listed its harmless settings."""
    own = {name for name, maker in all_judges().items() if maker.__module__.startswith("karat.judges.")}
    assert set(JUDGES) == own


def test_rows_beyond_the_limit():
    limits = Limits(rows=2)
    for body in (
        {"samples": [SAMPLE] * 3}, {"retrieved": [["a"]] * 3, "gold": [["a"]] * 3},
        {"samples": {"retrieved": [["a"]] * 3, "gold": [["a"]] * 3}},
        {"retrieved": {"a": [], "b": [], "c": []}, "gold": {}},
    ):  # fmt: skip
        status, text = ask("evaluate", body, limits=limits)[:2]
        assert (status, "at most 2 queries in one request" in text) == (413, True)
    assert ask("evaluate", {"samples": [SAMPLE | {"id": i} for i in range(2)]}, limits=limits)[0] == 200


LONG = [{"query_id": f"q{n % 2}", "doc_id": f"d{n}", "score": -n} for n in range(6)]


@pytest.mark.parametrize(
    ("results", "fields"),
    [
        (LONG, None),
        ([{"who": row["query_id"], "doc_id": row["doc_id"], "score": 1} for row in LONG], {"id": "who"}),
    ],
)
def test_the_lines_of_a_long_table_are_not_counted(results, fields):
    body = {"retrieved": results, "gold": results, "metrics": "rr", "fields": fields}
    assert ask("evaluate", body, limits=Limits(rows=2))[0] == 200
    assert ask("evaluate", body, limits=Limits(rows=1))[0] == 413


def test_the_lines_of_a_file_in_a_form_are_not_counted():
    files = {
        "retrieved": "".join(f"q{n % 2} Q0 d{n} {n} {-n}.0 x\n" for n in range(6)),
        "gold": "q0 0 d0 1\nq1 0 d1 1\n",
    }
    parts = [
        f'--m\r\nContent-Disposition: form-data; name="{name}"; filename="x.txt"\r\n\r\n{content}\r\n'
        for name, content in files.items()
    ]
    body, kind = "".join((*parts, "--m--\r\n")).encode(), "multipart/form-data; boundary=m"
    assert ask("evaluate", body, content_type=kind, limits=Limits(rows=2))[0] == 200
    assert ask("evaluate", body, content_type=kind, limits=Limits(rows=1))[0] == 413


def test_scores_beyond_the_limit():
    cutoffs = "recall@" + ",".join(map(str, range(1, 1001)))
    body = {"samples": {"retrieved": [["a"]] * 20_001, "gold": [["a"]] * 20_001}, "metrics": cutoffs}
    status, answer, _ = ask("evaluate", body)
    assert (status, "20,000,000 scores" in answer) == (413, True)


def test_the_scores_of_all_runs_of_a_request_are_counted():
    rows = [SAMPLE | {"id": n} for n in range(10_001)]
    for metrics, status in (("rr", 200), ("recall@" + ",".join(map(str, range(1, 1001))), 413)):
        run = {"samples": rows, "metrics": metrics}
        assert ask("compare", {"runs": [run, run]})[0] == status


def test_an_answer_beyond_the_limit_is_refused_before_anything_is_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(Limits, "answer", 100)
    body = {"samples": [SAMPLE | {"id": n} for n in range(20)], "metrics": "rr", "store": True}
    for accept in ("application/json", "text/csv"):
        status, answer, _ = ask("evaluate", body, store=str(tmp_path), accept=accept)
        assert (status, "more than 0.0001 MB" in answer) == (413, True)
    assert not list(tmp_path.iterdir())
    assert ask("metrics", b"")[0] == 413


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, zstd])
@pytest.mark.parametrize("kind", ["application/x-ndjson", "text/csv", "multipart/form-data; boundary=m"])
def test_a_body_that_is_much_larger_when_it_is_unpacked(kind, pack):
    def evaluated(rows):
        packed = pack((json.dumps({"retrieved": ["a"], "gold": ["a"], "more": " " * 1000}) + "\n").encode() * rows)
        head = b'--m\r\nContent-Disposition: form-data; name="samples"; filename="x.jsonl.gz"\r\n\r\n'
        body = head + packed + b"\r\n--m--\r\n" if "form" in kind else packed
        return ask("evaluate", body, content_type=kind, limits=Limits(body=10_000))

    status, answer, _ = evaluated(1000)
    assert (status, "more than 0.1 MB when it is unpacked" in answer) == (413, True), answer
    if "csv" not in kind:
        assert evaluated(5)[0] == 200


def test_a_body_that_is_packed_twice_or_damaged():
    packed = gzip.compress(json.dumps(SAMPLE).encode())
    for body in (gzip.compress(packed), packed[:-9], packed[:15]):
        assert ask("evaluate", body, content_type="application/x-ndjson")[0] == 422


def test_a_store_that_is_gone_is_not_named(tmp_path):
    folder = str(tmp_path / "gone")
    stored = ask("evaluate", {"samples": [SAMPLE], "store": True}, store=folder)
    listed = ask("runs", {}, store=folder)
    assert (stored[0], listed[0]) == (507, 503)
    assert "gone" not in stored[1] + listed[1]
