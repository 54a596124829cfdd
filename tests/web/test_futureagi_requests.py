"""The requests of Future AGI's clients, byte by byte as the official ones send them, and the answers to them.

The TypeScript client is not on npm, so its requests were recorded: version 0.2.0, built from its repository.
"""

from __future__ import annotations

import json
from urllib.parse import quote
from uuid import UUID

import pytest

TYPESCRIPT = {
    "Accept": "application/json, text/plain, */*", "Content-Type": "application/json",
    "User-Agent": "@future-agi/ai-evaluation", "X-Api-Key": "any", "X-Secret-Key": "any",
    "Accept-Encoding": "gzip, compress, deflate, br",
}  # fmt: skip
PYTHON = {
    "Accept": "*/*", "Content-Type": "application/json", "User-Agent": "python-requests/2.32.5", "X-Api-Key": "any",
    "X-Secret-Key": "any", "Accept-Encoding": "gzip, deflate",
}  # fmt: skip
EVAL, PIPELINE = "/sdk/api/v1/new-eval/", "/sdk/api/v1/evaluate-pipeline/"
P = "Paris is the capital of France."
E = "The Eiffel Tower was built in 1889."
F = "France is in Europe."
O = "The Louvre is in Paris."  # noqa: E741
N = "Napoleon was born in Corsica."


def compact(value):
    """JSON as JavaScript writes it."""
    return json.dumps(value, separators=(",", ":"))


def typescript(name, hypothesis, reference, *, later=False, config=None, model=None):
    """The body of evaluate and submit; what is undefined is left out."""
    body = {"eval_name": name, "inputs": {"hypothesis": hypothesis, "reference": reference}}
    body |= {} if model is None else {"model": model}
    body |= {"trace_eval": False, "is_async": later, "error_localizer": False}
    return compact(body | ({} if config is None else {"config": {"params": config}})).encode()


def python(name, hypothesis, reference, *, later=False, config=None, model=None):
    """The body of evaluate and submit; what is not given is null."""
    inputs = {"hypothesis": hypothesis, "reference": reference}
    body = {"eval_name": name, "inputs": inputs, "model": model, "span_id": None, "custom_eval_name": None}
    body |= {"trace_eval": False, "is_async": later, "error_localizer": False}
    return json.dumps(body | ({} if config is None else {"config": {"params": config}})).encode()


BOTH = pytest.mark.parametrize(
    ("body", "headers"), [(typescript, TYPESCRIPT), (python, PYTHON)], ids=["typescript", "python"]
)


@pytest.fixture
def send(server):
    """Send a body to a path as one of the clients; the JSON of the answer, which must be 200."""

    def ask(body, headers=TYPESCRIPT, path=EVAL):
        answer = server.ask(path, body, method="GET" if body in (None, b"{}") else "POST", **headers)
        assert answer.status == 200, answer.body
        assert answer.headers["Content-Type"] == "application/json"
        return answer.json

    return ask


def rows(answer):
    (result,) = answer["result"]
    return result["evaluations"]


PAGES = [
    ("recall_at_k", [P, E, F, O, N], [P, E, O], 5, 1.0, "Recall@5: 1.0"),
    ("precision_at_k", [P, F, E, N, O], [P, E, O], 5, 0.6, "Precision@5: 0.6"),
    ("ndcg_at_k", [F, P, N, E, O], [P, E, O], 5, 0.6797310500037655, "NDCG@5: 0.68"),
    ("mrr", [F, N, P, E, O], [P, E, O], None, 1 / 3, "MRR: 0.333"),
    ("hit_rate", [F, P, N], [P, E], None, 1.0, "Hit Rate: 1.0"),
    ("mean_average_precision", [P, F, E], [P, E], None, 5 / 6, "MAP: 0.833"),
]


@pytest.mark.parametrize("page", PAGES, ids=[page[0] for page in PAGES])
@pytest.mark.parametrize("client", ["typescript", "python"])
def test_the_code_of_the_pages(send, page, client):
    name, hypothesis, reference, k, score, reason = page
    config = None if k is None else {"k": k}
    if client == "typescript":  # it puts every string into a list
        body = typescript(name, [compact(hypothesis)], [compact(reference)], config=config, model="turing_flash")
        answer = send(body)
    else:
        body = python(name, json.dumps(hypothesis), json.dumps(reference), config=config, model="turing_flash")
        answer = send(body, PYTHON)
    (row,) = rows(answer)
    assert answer["status"] is True
    assert (row["name"], row["reason"], row["output_type"], row["outputType"]) == (name, reason, "score", "score")
    assert row["output"] == pytest.approx(score, abs=1e-15)
    assert isinstance(row["runtime"], int)
    assert row["eval_id"] == row["evalId"] == str(UUID(row["eval_id"]))
    assert row["model"] == "turing_flash"


BATCHES = {
    "strings": ([compact([P, F]), compact([E])], [compact([P]), compact([O])]),
    "lists": ([[P, F], [E]], [[P], [O]]),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(
    ("body", "headers"), [(typescript, TYPESCRIPT), (python, PYTHON)], ids=["typescript", "python"]
)
def test_a_batch(send, batch, body, headers):
    each = rows(send(body("recall_at_k", *BATCHES[batch], config={"k": 1}), headers))
    assert [row["output"] for row in each] == [1.0, 0.0]
    assert len({row["eval_id"] for row in each}) == 2


def test_plain_lists_are_one_ranking(send):
    (row,) = rows(send(typescript("recall_at_k", ["a", "b"], ["a", "c"])))
    assert row["output"] == 0.5


def test_numbers_beside_a_string(send):
    """TypeScript's [1, 2] arrives as a string, and the string beside it in a list."""
    (row,) = rows(send(typescript("recall_at_k", "[1,2]", ["[1,3]"])))
    assert row["output"] == 0.5


def test_one_output_in_a_list_beside_several_chunks(send):
    inputs = {"context": [P, E, F], "output": ["Paris is the capital of France."]}
    body = {"eval_name": "chunk_attribution", "inputs": inputs, "trace_eval": False, "is_async": False}
    (row,) = rows(send(compact(body).encode()))
    assert (row["output"], row["output_type"]) == ("Passed", "Pass/Fail")


@pytest.mark.parametrize("k", ["1", "+1", " 1 "])
def test_k_as_a_string(send, k):
    (row,) = rows(send(python("recall_at_k", '["x", "a"]', '["a"]', config={"k": k}), PYTHON))
    assert row["output"] == 0.0


@pytest.mark.parametrize(("headers", "body"), [(TYPESCRIPT, None), (PYTHON, b"{}")], ids=["typescript", "python"])
def test_the_list_of_evaluations(send, headers, body):
    """Python sends a body with a GET."""
    answer = send(body, headers, "/sdk/api/v1/get-evals/")
    by_name = {row["name"]: row for row in answer["result"]}
    assert {page[0] for page in PAGES} <= set(by_name)
    assert by_name["recall_at_k"]["config"]["required_keys"] == ["hypothesis", "reference"]
    # Beside `output`, clients would send the output as the input.
    assert all(not {"input", "output"} <= set(row["config"]["required_keys"]) for row in by_name.values())


def until_done(ask):
    """The last answer of a poll."""
    for _ in range(1000):
        answer = ask()
        if answer["result"].get("eval_status", answer["result"].get("status")) not in ("pending", "processing"):
            return answer
    raise AssertionError(answer)


@pytest.mark.parametrize(
    ("body", "headers"), [(typescript, TYPESCRIPT), (python, PYTHON)], ids=["typescript", "python"]
)
def test_submit_and_poll(send, body, headers):
    answer = send(body("recall_at_k", [compact([P, F]), "[1,"], [compact([P]), "[]"], later=True), headers)
    first, second = rows(answer)
    assert set(first) == {"name", "output_type", "eval_id", "outputType", "evalId"}
    empty = b"{}" if headers is PYTHON else None

    def finished(row):
        return until_done(lambda: send(empty, headers, f"{EVAL}?eval_id={row['eval_id']}"))["result"]

    done, failed = finished(first), finished(second)
    assert (done["eval_status"], done["result"]["value"], done["result"]["name"]) == ("completed", 1.0, "recall_at_k")
    assert done["result"]["eval_id"] == first["eval_id"]
    assert (failed["eval_status"], failed["result"]["value"]) == ("completed", None)
    assert "begins like a list" in failed["result"]["reason"]


def test_a_pipeline(send):
    good = {"hypothesis": [compact([P]), compact([E]), "[1,"], "reference": [compact([P]), compact([O]), "[]"]}
    data = [
        {"eval_template": "recall_at_k", "inputs": good, "model_name": "turing_large"},
        {"eval_template": "mrr", "inputs": {"hypothesis": [compact([F, P])], "reference": [compact([P])]}},
        {"eval_template": "chunk_attribution", "inputs": {"context": [P, P], "output": [P, "No."]}},
    ]
    body = compact({"project_name": "Search & more", "version": " v1", "eval_data": data}).encode()
    accepted = send(body, path=PIPELINE)["result"]
    assert (accepted["project_name"], accepted["version"]) == ("Search & more", " v1")
    path = f"{PIPELINE}?project_name={quote('Search & more')}&versions=v1,%20v1"
    result = until_done(lambda: send(None, path=path))["result"]
    (run,) = result["evaluation_runs"]
    assert (result["status"], run["id"]) == ("completed", accepted["evaluation_run_id"])
    assert (run["project"], run["version"]) == ("Search & more", " v1")
    assert run["results_summary"] == {"recall_at_k": 50.0, "mrr": 50.0, "chunk_attribution": 50.0}
    assert run["rows_without_output"] == {"recall_at_k": 1}
