"""Future AGI's protocol: requests that are wrong, limits, keys, models, and submissions that are forgotten."""

from __future__ import annotations

import asyncio
import json
import os
from urllib.parse import quote

import msgspec
import pytest

from karat.web.access_keys import new_key
from karat.web.futureagi import submissions
from karat.web.futureagi.submissions import Submissions
from karat.web.messages import Call, Reply
from karat.web.problems import Refused
from karat.web.settings import Limits, Settings
from karat.web.tasks import do, load_tasks
from support.scripted import script
from support.served import served
from support.server import Server

load_tasks()
EVAL, PIPELINE = "/sdk/api/v1/new-eval/", "/sdk/api/v1/evaluate-pipeline/"
TYPESCRIPT = {"Accept": "application/json, text/plain, */*"}
RANKING = {"hypothesis": '["a", "b"]', "reference": '["a"]'}
BATCH = {"hypothesis": ['["a", "b"]', '["b"]'], "reference": ['["a"]', '["a"]']}


def answered(body, task="/sdk/new-eval", **call):
    """The status and the JSON of the answer of a worker."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    arguments = {"ids": "0" * 24, "id": "run"}
    reply, answer = do(Call(task, **{"arguments": arguments, **call}), body, lambda done, of: None)
    return reply.status, json.loads(answer)


def evaluated(inputs, name="recall_at_k", *, models=(), **more):
    """The status in the answer, and its rows."""
    status, answer = answered({"eval_name": name, "inputs": inputs, **more}, models=models)
    assert status == 200
    return answer["status"], answer["result"][0]["evaluations"]


# ---- faults ----------------------------------------------------------------------------------------------------------


def test_a_row_that_cannot_be_read_has_a_reason():
    inputs = {"hypothesis": ['["a"]', "[1,", '["a"]'], "reference": ['["a"]', '["a"]', "[]"]}
    good, rows = evaluated(inputs)
    assert good is True
    assert [row["output"] for row in rows] == [1.0, None, None]
    assert "begins like a list" in rows[1]["reason"]
    assert rows[2]["reason"] == "Recall: undefined, the reference is empty"


WRONG = [
    ({"config": {"params": {"k": 0}}}, "k must be >= 1; got 0"),
    ({"config": {"params": {"k": 2.5}}}, "k must be an integer; got 2.5"),
    ({"config": {"params": {"n": 2}}}, 'Unknown function params: n; try {"k": 5}'),
    ({"name": "recal_at_k"}, 'no evaluation "recal_at_k". Did you mean recall_at_k?'),
    ({"name": "toxicity"}, 'no evaluation "toxicity"; try '),
]


@pytest.mark.parametrize(("more", "words"), WRONG)
@pytest.mark.parametrize("later", [False, True])
def test_a_wrong_request_has_a_reason_in_each_row(more, words, later):
    good, rows = evaluated(BATCH, is_async=later, **more)
    assert good is False
    assert [row["output"] for row in rows] == [None, None]
    assert all(row["reason"].startswith(words) for row in rows)
    assert all(isinstance(row["runtime"], int) for row in rows)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"hypothesis": "[]"}, 'the inputs have no "reference"'),
        (
            {"hypothesis": ["[]", "[]"], "reference": ["[]", "[]", "[]"]},
            "hypothesis and reference do not have the same",
        ),
        ({}, 'the inputs have no "hypothesis"'),
        ({"hypothesis": '{"a": 1}', "reference": ["a"]}, '"hypothesis" is a dict; expected a list'),
        ({"hypothesis": ["a"], "reference": ' {"a": 1}'}, '"reference" is a dict; expected a list'),
    ],
)
def test_wrong_inputs_are_one_row(inputs, words):
    good, (row,) = evaluated(inputs)
    assert good is False
    assert row["reason"].startswith(words)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the body is not JSON"),
        (b"{", "the body is not JSON"),
        (b"\xff", "the body is not"),
        (b"[1]", "the body cannot be read: Expected `object`, got `array`"),
        (b'{"inputs": {}}', "the body cannot be read: Object missing required field `eval_name`"),
        (b'{"eval_name": 3, "inputs": {}}', "the body cannot be read: Expected `str`, got `int` - at `$.eval_name`"),
        (b'{"eval_name": "mrr", "inputs": {"hypothesis": 5}}', "the body cannot be read: Expected"),
        (b'{"eval_name": "mrr", "inputs": [1]}', "the body cannot be read: Expected `object`"),
        (b'{"eval_name": "mrr", "inputs": {}, "config": 5}', "the body cannot be read: Expected `object | null`"),
        (
            b'{"eval_name": "mrr", "inputs": {"hypothesis": ' + b"[" * 5000 + b"]" * 5000 + b"}}",
            "the body is nested too deeply",
        ),
    ],
)
def test_a_body_that_no_client_sends_is_refused(body, words):
    status, problem = answered(body)
    assert (status, problem["status"]) == (400, 400)
    assert problem["detail"].startswith(words)


def test_words_for_a_client_that_shows_no_json(server):
    """The TypeScript client says that it accepts text; it would show JSON as [object Object]."""
    plain = server.ask(EVAL, b"{", **TYPESCRIPT)
    assert (plain.status, plain.headers["Content-Type"]) == (400, "text/plain; charset=utf-8")
    assert plain.body.startswith(b"the body is not JSON")
    assert server.ask(EVAL, method="DELETE", **TYPESCRIPT).body == b"this path does not take this method"
    details = server.ask(EVAL, b"{")
    assert details.headers["Content-Type"] == "application/problem+json"
    assert details.json["detail"].encode() == plain.body
    assert server.ask("/nothing", **TYPESCRIPT).json["status"] == 404


def test_paths_with_and_without_the_slash(server):
    for path in (EVAL, EVAL.rstrip("/")):
        assert server.ask(path, {"eval_name": "mrr", "inputs": RANKING}).json["status"] is True


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A server with low limits and two keys, and the headers for each key."""
    path = tmp_path_factory.mktemp("keys") / "keys.json"
    one, other = ({"X_Api_Key": name, "X_Secret_Key": new_key(path, name)} for name in ("a", "b"))
    with served("--keys", path, "--max-body", "0.001", "--max-rows", "2", "--workers", "1") as server:
        yield server, one, other


def test_limits(small):
    server, key, _ = small
    long = server.ask(EVAL, {"eval_name": "mrr", "inputs": {"hypothesis": "a" * 1000}}, **TYPESCRIPT, **key)
    many = server.ask(EVAL, {"eval_name": "mrr", "inputs": dict.fromkeys(RANKING, ["[]"] * 3)}, **TYPESCRIPT, **key)
    assert (long.status, long.body) == (413, b"the body has more than 0.001 MB; try several smaller requests")
    assert (many.status, many.body) == (413, b"at most 2 queries in one request; try several smaller requests")


def refused_rows(inputs, config=None, rows=2):
    body = {"eval_name": "recall_at_k", "inputs": inputs, "config": config}
    return answered(body, limits=Limits(rows=rows))[0] == 413


def test_rows_are_counted_however_they_are_written():
    assert not refused_rows(BATCH)
    assert refused_rows(BATCH, rows=1)
    assert refused_rows({"hypothesis": '[["a"], ["b"], ["c"]]', "reference": '[["a"], ["b"], ["c"]]'})
    assert not refused_rows({"hypothesis": '["[", "[", "["]', "reference": '["["]'})
    assert not refused_rows({"hypothesis": ["a", "b", "c"], "reference": ["a", "b", "c"]})
    assert refused_rows({"hypothesis": ["[]", "[]", "[]"], "reference": ["[]", "[]", "[]"]})
    assert refused_rows(BATCH, {"params": {"k": [1, 2]}}, rows=3)
    assert refused_rows(BATCH, {"k": [1, 2]}, rows=3)
    assert not refused_rows(BATCH, {"params": {"k": [1, 2]}}, rows=4)


def test_long_names_are_not_repeated_in_each_row():
    good, rows = evaluated(BATCH, "x" * 10_000, model="y" * 10_000)
    assert good is False
    assert [(len(row["name"]), len(row["model"])) for row in rows] == [(200, 200)] * 2
    assert all(len(row["reason"]) <= 500 for row in rows)


@pytest.mark.parametrize(
    ("k", "words"),
    [
        (10**30, "a cutoff is at least 1 and at most 10^12"),
        ("9" * 5000, "k must be an integer"),
        (1e308, "k must be an integer"),
        ([], "k must be an integer"),
        ([1, [2]], "k must be an integer"),
        ({"k": 1}, "k must be an integer"),
        (True, "k must be an integer"),
    ],
)
def test_a_k_that_is_none(k, words):
    good, rows = evaluated(BATCH, config={"params": {"k": k}})
    assert good is False
    assert all(row["reason"].startswith(words) for row in rows)


# ---- keys and models -------------------------------------------------------------------------------------------------


def test_a_wrong_key_is_403(locked):
    server, key = locked
    body = {"eval_name": "mrr", "inputs": RANKING}
    assert server.ask(EVAL, body).status == 403
    assert server.ask(EVAL, body, X_Api_Key="team", X_Secret_Key="wrong", **TYPESCRIPT).body == b"the key is wrong"
    assert server.ask("/sdk/api/v1/get-evals/", X_Api_Key="team", X_Secret_Key="wrong").status == 403
    assert server.ask(EVAL, body, X_Api_Key="team", X_Secret_Key=key).json["status"] is True


def test_a_poll_with_a_wrong_key_has_failed(locked):
    """The Python client looks only at the result of a poll; without one it would go on polling."""
    server, _ = locked
    for path in (f"{EVAL}?eval_id=x", f"{PIPELINE}?project_name=p&versions=v"):
        answer = server.ask(path, b"{}", method="GET", X_Api_Key="team", X_Secret_Key="wrong")
        assert (answer.status, answer.json["detail"]) == (403, "the key is wrong")
        result = answer.json["result"]
        assert (result["eval_status"], result["error_message"]) == ("failed", "the key is wrong")
        assert (result["status"], result["message"]) == ("failed", "the key is wrong")
    assert "result" not in server.ask("/metrics", X_Api_Key="team", X_Secret_Key="wrong").json


def test_models_are_asked_only_if_the_operator_allows_them():
    inputs = {"context": ["Paris is the capital of France."], "output": ["Paris is the capital of France."]}
    good, (row,) = evaluated(inputs, "chunk_attribution", model="gpt-4o-mini")
    assert (good, row["output"]) == (False, None)
    assert row["reason"].startswith("this server may not ask this model; got 'gpt-4o-mini'")
    good, (row,) = evaluated(inputs, "chunk_attribution", model="turing_flash")
    assert (good, row["output"]) == (True, "Passed")
    assert "heuristic" in row["reason"]
    good, (row,) = evaluated(inputs, "chunk_attribution", models=("lexical",), model="lexical")
    assert (good, row["output"]) == (True, "Passed")
    good, (row,) = evaluated(RANKING, model="gpt-4o-mini")
    assert (good, row["output"]) == (True, 1.0)


def test_a_model_that_the_operator_allows(tmp_path):
    inputs = {"context": ["The tower is in Paris.", "Bees make honey."], "output": "The tower is in Paris."}
    body = {"eval_name": "chunk_attribution", "inputs": inputs}
    with Server(script) as model:
        body["model"] = model.model()
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "OPENAI_API_KEY": "none"}
        with served("--allow-model", model.model(), "--workers", "1", env=environment) as server:
            (row,) = server.ask(EVAL, body).json["result"][0]["evaluations"]
            (short,) = server.ask(EVAL, {**body, "model": "m"}).json["result"][0]["evaluations"]
            (later,) = server.ask(EVAL, {**body, "is_async": True}).json["result"][0]["evaluations"]
            for _ in range(1000):
                state = server.ask(f"{EVAL}?eval_id={later['eval_id']}").json["result"]
                if state["eval_status"] != "processing":
                    break
        assert model.count > 0
    assert row["reason"] == state["result"]["reason"] == "Chunk Attribution: Passed (1 of 2 chunks are used)"
    assert row["output"] == state["result"]["value"] == "Passed"
    assert later["output_type"] == "Pass/Fail"
    assert (short["output"], short["model"], row["model"]) == ("Passed", "m", "m")


# ---- later -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nope", "0" * 32, "00000000-0000-4000-8000-000000000000", "%00", "é"])
def test_an_unknown_execution_has_failed(server, name):
    result = server.ask(f"{EVAL}?eval_id={quote(name)}").json["result"]
    assert result["eval_status"] == "failed"
    assert result["result"]["error_message"].startswith("no such evaluation")


@pytest.mark.parametrize("path", [EVAL, f"{EVAL}?eval_id=", f"{EVAL}?eval_id={'x' * 5000}", f"{PIPELINE}?versions=1"])
def test_a_poll_without_a_name_is_refused(server, path):
    assert server.ask(path).status == 400


def test_an_unknown_version_has_failed(server):
    result = server.ask(f"{PIPELINE}?project_name=p&versions=v1,v2").json["result"]
    assert (result["status"], result["evaluation_runs"]) == ("failed", [])
    assert result["message"].startswith("version 'v1': no such evaluation")


def test_one_key_does_not_see_what_another_has_submitted(small):
    server, one, other = small
    submitted = server.ask(EVAL, {"eval_name": "mrr", "inputs": RANKING, "is_async": True}, **one).json
    path = f"{EVAL}?eval_id={submitted['result'][0]['evaluations'][0]['eval_id']}"
    assert server.ask(path, **one).json["result"]["eval_status"] != "failed"
    assert server.ask(path, **other).json["result"]["eval_status"] == "failed"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"project_name": ""}, "Expected `str` of length >= 1 - at `$.project_name`"),
        ({"version": 1}, "Expected `str`, got `int` - at `$.version`"),
        ({"eval_data": []}, "Expected `array` of length >= 1"),
        ({"eval_data": [{"eval_template": "mrr"}]}, "Object missing required field `inputs`"),
        ({"eval_data": [{"inputs": RANKING}]}, "Object missing required field `eval_template`"),
    ],
)
def test_a_pipeline_that_no_client_sends_is_refused(more, words):
    status, problem = answered(pipeline(**more), "/sdk/evaluate-pipeline")
    assert status == 400
    assert problem["detail"].startswith(f"the body cannot be read: {words}")


def test_a_wrong_pipeline_is_refused_with_words():
    wrong = pipeline(eval_data=[{"eval_template": "mr", "inputs": RANKING}])
    status, answer = answered(wrong, "/sdk/evaluate-pipeline")
    assert (status, answer["status"]) == (200, False)
    assert answer["result"].startswith('no evaluation "mr"')


def pipeline(**more):
    return {"project_name": "p", "version": "v", "eval_data": [{"eval_template": "mrr", "inputs": RANKING}], **more}


class Workers:
    """A pool whose calls end when they are told to."""

    waiting = 0

    def __init__(self):
        self.end, self.background = asyncio.Event(), asyncio.Semaphore()

    async def call(self, call, body, **_):
        await self.end.wait()
        if body == b"refused":
            raise Refused(503, "the process was ended")
        if body == b"fault":
            raise ValueError("a secret")
        status = 500 if body == b"broken" else 200
        return Reply(status), b"one\ntwo" if status == 200 else b"karat failed"


async def ended(bodies, monkeypatch, *, most):
    monkeypatch.setattr(submissions, "_MOST", most)
    pool = Workers()
    kept = Submissions(pool, Settings(workers=2, limits=Limits(body=10)))
    pool.end.set()
    for key, body in enumerate(bodies):
        kept.start(key, Call("/sdk/execution"), body)
        while not kept.get(key).finished:  # noqa: ASYNC110
            await asyncio.sleep(0)
    return [kept.get(key) for key in range(len(bodies))]


def test_a_submission_ends_with_lines_or_with_words(monkeypatch):
    good, refused, broken = asyncio.run(ended([b"good", b"refused", b"broken"], monkeypatch, most=9))
    assert (good.lines, good.problem) == ([b"one", b"two"], None)
    assert (refused.lines, refused.problem) == (None, "the process was ended")
    assert (broken.lines, broken.problem) == (None, "karat failed")
    (fault,) = asyncio.run(ended([b"fault"], monkeypatch, most=9))
    assert fault.problem.startswith("karat failed on this request")


def test_the_oldest_finished_ones_are_forgotten(monkeypatch):
    by_number = asyncio.run(ended([b"a"] * 5, monkeypatch, most=3))
    assert [one is not None for one in by_number] == [False, False, True, True, True]
    by_size = asyncio.run(ended([b"a"] * 5, monkeypatch, most=99))  # 7 bytes each, 20 in all
    assert [one is not None for one in by_size] == [False, False, True, True, True]


def test_too_many_unfinished_ones_are_refused():
    async def submit():
        kept = Submissions(Workers(), Settings(workers=1, limits=Limits(body=10)))
        for key in (1, 2):
            kept.start(key, Call("/sdk/execution"), b"0123456789")
        with pytest.raises(Refused, match="unfinished"):
            kept.start(3, Call("/sdk/execution"), b"0")
        kept.start(2, Call("/sdk/execution"), b"0123456789")
        return kept.get(1), kept.get(2), kept.get(3)

    first, second, third = asyncio.run(submit())
    assert not first.finished
    assert not second.finished
    assert third is None


def test_the_results_of_a_submission_are_lines():
    body = json.dumps({"eval_name": "mrr", "inputs": BATCH, "is_async": True}).encode()
    arguments = {"ids": "0123456789abcdef01234567"}
    reply, answer = do(Call("/sdk/execution", arguments=arguments), body, lambda done, of: None)
    lines = [msgspec.json.decode(line) for line in answer.split(b"\n")]
    assert reply.status == 200
    assert [line["value"] for line in lines] == [1.0, 0.0]
    assert [line["eval_id"][-9:] for line in lines] == ["700000000", "700000001"]
