"""karat's evaluators in experiments of LangSmith, which run on this machine without a server."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langsmith import Client, aevaluate, evaluate
from langsmith.evaluation import EvaluationResult
from langsmith.schemas import Example

import karat
from karat.bridges.langsmith import evaluator, summary_evaluator

METRICS = "recall@1,3 ndcg@3 rr"
RANKINGS = {
    "first": ["a", "b", "c"],
    "second": ["b", "a", "c"],
    "missed": ["x", "y"],
    "empty": [],
    "no gold": ["a"],
    "two": ["b", "x", "a"],
}
GOLD = {"first": ["a"], "second": ["a"], "missed": ["a"], "empty": ["a"], "no gold": [], "two": ["a", "b"]}
NAMES = ["recall@1", "recall@3", "ndcg@3", "rr"]


def target(inputs):
    return {"documents": [Document(page_content=f"text {one}", id=one) for one in RANKINGS[inputs["question"]]]}


def examples(questions=RANKINGS):
    return [Example(id=uuid4(), inputs={"question": one}, outputs={"gold": GOLD.get(one, ["a"])}) for one in questions]


def settings():
    client = Client(api_key="none", api_url="http://127.0.0.1:9", auto_batch_tracing=False)
    return {"client": client, "upload_results": False}


def scores_of(results):
    """The feedback of each question, in the order of the keys."""
    return {
        row["example"].inputs["question"]: {one.key: one for one in row["evaluation_results"]["results"]}
        for row in results
    }


@pytest.fixture(scope="module")
def results():
    evaluators = {"evaluators": [evaluator(METRICS)], "summary_evaluators": [summary_evaluator(METRICS)]}
    return evaluate(target, data=examples(), **evaluators, **settings())


@pytest.fixture(scope="module")
def run():
    return karat.evaluate(retrieved=list(RANKINGS.values()), gold=[GOLD[one] for one in RANKINGS], metrics=METRICS)


def test_scores_are_those_of_evaluate(results, run):
    found = scores_of(results)
    assert list(found) == list(RANKINGS)
    for row, question in enumerate(RANKINGS):
        assert list(found[question]) == NAMES
        for name in NAMES:
            score = found[question][name].score
            expected = float(run.columns[name][row])
            assert score is None if expected != expected else score == expected
    assert found["second"]["rr"].score == 0.5
    assert found["two"]["recall@3"].score == 1
    assert found["two"]["recall@1"].score == 0.5


def test_feedback_is_valid(results):
    for feedback in scores_of(results).values():
        for one in feedback.values():
            assert isinstance(one, EvaluationResult)
            assert one.score is None or type(one.score) is float


def test_an_undefined_score_has_a_reason(results):
    found = scores_of(results)["no gold"]
    assert [(one.score, one.comment) for one in found.values()] == [(None, "undefined: there is no gold")] * 4


def test_the_summary_has_means_with_intervals(results, run):
    summary = {one.key: one for one in results._summary_results["results"]}
    for name in NAMES:
        low, high = run.interval()[name]
        one = summary[f"{name} mean"]
        assert one.score == run.mean[name]
        assert one.comment == f"95 % interval {low:.3f} to {high:.3f}, 5 queries, 1 undefined"


class Accepting(BaseHTTPRequestHandler):
    """Answers every request: `aevaluate` sends the runs of the target, whatever `upload_results` is."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(202)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_PATCH = do_POST  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Accepting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_asynchronous_experiments(endpoint):
    async def later(inputs):
        return target(inputs)

    async def experiment():
        client = Client(api_key="none", api_url=endpoint, auto_batch_tracing=False)
        settings = {"client": client, "upload_results": False}
        found = await aevaluate(later, data=examples(), evaluators=[evaluator("rr")], **settings)
        return scores_of([row async for row in found])

    found = asyncio.run(experiment())
    assert [found[question]["rr"].score for question in ("first", "second", "no gold")] == [1, 0.5, None]


@pytest.mark.parametrize(
    "form",
    [
        lambda names: {"documents": names},
        lambda names: {
            "documents": [{"page_content": "", "type": "Document", "metadata": {"id": one}} for one in names]
        },
        lambda names: [Document(page_content="", id=one) for one in names],
    ],
    ids=["ids", "dicts", "a list"],
)
def test_other_forms_of_outputs(form):
    found = evaluate(
        lambda inputs: form(RANKINGS[inputs["question"]]),
        data=examples(["second", "missed"]),
        evaluators=[evaluator("rr")],
        **settings(),
    )
    assert [one["rr"].score for one in scores_of(found).values()] == [0.5, 0]


def test_a_function_finds_the_documents():
    found = evaluate(
        lambda inputs: {"answer": "yes", "sources": [Document(page_content="", metadata={"url": "a"})]},
        data=examples(["first"]),
        evaluators=[evaluator("rr", documents=lambda outputs: [one.metadata["url"] for one in outputs["sources"]])],
        **settings(),
    )
    assert scores_of(found)["first"]["rr"].score == 1


def test_a_target_that_fails_has_no_score():
    def broken(inputs):
        if inputs["question"] == "missed":
            raise RuntimeError("no connection")
        return target(inputs)

    evaluators = {"evaluators": [evaluator("rr")], "summary_evaluators": [summary_evaluator("rr")]}
    found = evaluate(broken, data=examples(["first", "missed"]), **evaluators, **settings())
    one = scores_of(found)["missed"]["rr"]
    assert (one.score, one.comment) == (None, "failed: there are no documents")
    (mean,) = found._summary_results["results"]
    assert (mean.score, mean.comment) == (1, "1 query, 1 failed")


def test_a_misspelt_field_is_an_error_with_the_right_name():
    made = evaluator("rr", documents="docs")
    found = evaluate(target, data=examples(["first"]), evaluators=[made], **settings())
    (one,) = scores_of(found)["first"].values()
    assert one.extra == {"error": True}
    assert "docs" in one.comment
    with pytest.raises(karat.InputError) as caught:
        made(inputs={}, outputs=target({"question": "first"}), reference_outputs={"gold": []})
    assert caught.value.hint == 'documents="documents"'


def test_texts_are_judged_by_texts():
    found = evaluate(
        lambda inputs: {"documents": [Document(page_content="The tower, which is made of iron, is tall.")]},
        data=[Example(id=uuid4(), inputs={"question": "q"}, outputs={"gold": [{"text": "made of iron"}]})],
        evaluators=[evaluator("recall@1", judge="contains")],
        **settings(),
    )
    assert scores_of(found)["q"]["recall@1"].score == 1
