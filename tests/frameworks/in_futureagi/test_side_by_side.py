"""Future AGI's package and karat's module side by side: the same calls, the same results."""

from __future__ import annotations

import inspect
import json
import random
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from threading import Thread
from uuid import uuid4

import fi.evals as theirs
import fi.evals.metrics.rag.retrieval.ranking as their_ranking
import fi.evals.types as their_types
import pytest
from fi.evals.core.cloud_registry import map_inputs_to_backend

import karat.compat.futureagi as ours
import karat.compat.futureagi.metrics.rag.retrieval.ranking as our_ranking
import karat.compat.futureagi.types as our_types
from karat.compat.futureagi.scoring import Scorer
from karat.compat.futureagi.templates import listing


class Service(BaseHTTPRequestHandler):
    """A stand-in for their service: the outputs are karat's, as their server would send them."""

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer({"status": True, "result": listing()})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        scored = Scorer("futureagi-server").scored(asked["eval_name"], asked["inputs"], asked.get("config"))
        rows = [
            {"name": asked["eval_name"], "reason": one.reason, "runtime": 1, "output": one.output,
             "output_type": one.output_type, "eval_id": str(uuid4())}
            for one in scored
        ]  # fmt: skip
        self.answer({"status": True, "result": [{"evaluations": rows}]})

    def answer(self, body):
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def service():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


KEYS = {"fi_api_key": "k" * 20, "fi_secret_key": "s"}
RANKED = {"hypothesis": '["a", "x", "b", "a"]', "reference": '["a", "b", "c"]'}
CHUNKS = ["Bees make honey. They live in hives.", "The tower is in Paris."]
CONTEXTS = {"context": CHUNKS, "output": "Bees make honey.", "input": "What do bees make?"}
CALLS = [
    ("recall_at_k", RANKED),
    ("precision_at_k", RANKED),
    ("ndcg_at_k", RANKED),
    ("mrr", RANKED),
    ("hit_rate", RANKED),
    ("mean_average_precision", RANKED),
    ("recall_at_k", {"output": RANKED["hypothesis"], "expected_output": RANKED["reference"]}),
    ("mrr", {"response": RANKED["hypothesis"], "ground_truth": RANKED["reference"], "other": "x"}),
    ("non_llm_context_recall", {"output": '["A", "b "]', "expected": '["a", "c"]'}),
    ("non_llm_context_precision", {"output": '["A", "b "]', "expected_response": '["a", "c"]'}),
    ("chunk_attribution", CONTEXTS),
    ("chunk_utilization", CONTEXTS),
    ("context_relevance", CONTEXTS),
]


@pytest.mark.parametrize(("name", "inputs"), CALLS)
def test_the_function_and_the_evaluator(service, name, inputs):
    settings = {"model": "turing_flash", **inputs}
    result = theirs.evaluate(name, **settings, **KEYS, fi_base_url=service)
    own = ours.evaluate(name, **settings, **KEYS, fi_base_url=service, convention="futureagi-server")
    for one in (result, own):
        assert one.latency_ms > 0
        one.latency_ms = 0.0
        assert len(one.metadata.pop("eval_id")) == 36
    assert vars(own) == vars(result)
    assert repr(own) == repr(result)

    config = {"k": 2} if name.endswith("_at_k") else None
    arguments = (name, inputs, 10, "turing_flash", "my_name", False, None, False, False, config)
    rows = theirs.Evaluator(**KEYS, fi_base_url=service).evaluate(*arguments).eval_results
    own_rows = (
        ours.Evaluator(**KEYS, fi_base_url=service, convention="futureagi-server").evaluate(*arguments).eval_results
    )
    for row in (*rows, *own_rows):
        assert len(row.eval_id) == 36
        row.eval_id, row.runtime, row.model = "", 0, None
    assert [row.model_dump() for row in own_rows] == [row.model_dump() for row in rows]


def test_a_list_of_names(service):
    arguments = {**RANKED, "model": "turing_flash"}
    batch = theirs.evaluate(["recall_at_k", "mrr"], **arguments, **KEYS, fi_base_url=service)
    own = ours.evaluate(["recall_at_k", "mrr"], **arguments)
    assert [one.score for one in own] == [one.score for one in batch]
    assert (len(own), own.success_rate, own.get("mrr").score) == (
        len(batch),
        batch.success_rate,
        batch.get("mrr").score,
    )


def test_inputs_are_mapped_by_the_keys_of_the_list(service):
    for name, inputs in CALLS:
        mapped = map_inputs_to_backend(name, inputs, base_url=service, api_key="other", secret_key="s")
        own = {one["name"]: one["config"]["required_keys"] for one in ours.list_evaluations()}[name]
        assert list(mapped) == own


# ---- types and signatures -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row", [{"name": "x"}, {"name": "mrr", "output": 0.5, "reason": "é", "runtime": 3, "eval_id": "i"}]
)
def test_rows_are_dumped_alike(row):
    their_row, own = their_types.EvalResult(**row), our_types.EvalResult(**row)
    assert own.model_dump() == their_row.model_dump()
    assert own.model_dump_json() == their_row.model_dump_json()
    assert own.model_dump(exclude_none=True) == their_row.model_dump(exclude_none=True)
    assert dict(own) == dict(their_row)
    batch, own_batch = (
        their_types.BatchRunResult(eval_results=[their_row]),
        our_types.BatchRunResult(eval_results=[own]),
    )
    assert own_batch.model_dump() == batch.model_dump()
    assert own_batch.model_dump_json() == batch.model_dump_json()
    assert repr(own) == repr(their_row)


def test_records_have_their_fields():
    for own, their in ((ours.EvalResult, theirs.EvalResult), (ours.BatchResult, theirs.BatchResult)):
        assert [one.name for one in fields(own)] == [one.name for one in fields(their)]
    public = [one.name for one in fields(theirs.Execution) if not one.name.startswith("_")]
    assert [one.name for one in fields(ours.Execution)][: len(public)] == public
    for name in ("is_done", "refresh", "wait"):
        each = [inspect.signature(getattr(one.Execution, name)).parameters for one in (ours, theirs)]
        own_defaults, defaults = ({n: p.default for n, p in parameters.items()} for parameters in each)
        assert own_defaults == defaults
    assert {one.name: one.value for one in ours.Turing} == {one.name: one.value for one in theirs.Turing}


METHODS = [name for name in dir(theirs.Evaluator) if not name.startswith("_") and name in vars(theirs.Evaluator)]


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_their_arguments(name):
    own, their = (inspect.signature(getattr(one.Evaluator, name)).parameters for one in (ours, theirs))
    if any(one.kind is one.VAR_KEYWORD for one in own.values()):
        positional = [n for n, p in their.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert list(own)[: len(positional)] == positional
    else:
        assert list(own) == list(their)


def test_templates_as_classes():
    for name in ("ContextRelevance", "ChunkAttribution", "ChunkUtilization"):
        own, their = getattr(ours, name), getattr(theirs, name)
        assert (own.eval_name, own.eval_id, repr(own())) == (their.eval_name, their.eval_id, repr(their()))


IMPORTS = [
    "from fi.evals import Evaluator",
    "from fi.evals import evaluate, EvalResult, BatchResult, Turing",
    "from fi.evals import Execution, ExecutionError, list_evaluations",
    "from fi.evals import ChunkAttribution, ChunkUtilization, ContextRelevance, EvalTemplate",
    "from fi.evals.core import evaluate, EvalResult, BatchResult, Turing",
    "from fi.evals.core.result import EvalResult, BatchResult",
    "from fi.evals.core.evaluate import evaluate",
    "from fi.evals.evaluator import Evaluator, list_evaluations",
    "from fi.evals.execution import Execution, ExecutionError",
    "from fi.evals.templates import EvalTemplate, ChunkAttribution, ChunkUtilization, ContextRelevance",
    "from fi.evals.types import EvalResult, BatchRunResult, OutputType, EvalTags",
    "from fi.evals.metrics import NDCG, MRR, RAGRankingInput",
    "from fi.evals.metrics.rag import NDCG, MRR, RAGRankingInput",
    "from fi.evals.metrics.rag.types import RAGRankingInput",
    "from fi.evals.metrics.rag.retrieval import NDCG, MRR",
    "from fi.evals.metrics.rag.retrieval.ranking import NDCG, MRR, PrecisionAtK, RecallAtK",
]


@pytest.mark.parametrize("line", IMPORTS)
def test_import_lines(line):
    for text in (line, line.replace("fi.evals", "karat.compat.futureagi")):
        _, module, _, names = text.split(" ", 3)
        found = import_module(module)
        assert [name for name in names.split(", ") if not hasattr(found, name)] == []


@pytest.mark.parametrize("path", ["", ".core", ".metrics", ".metrics.rag"])
def test_every_public_name_is_there_or_says_why_not(path):
    their, own = import_module(f"fi.evals{path}"), import_module(f"karat.compat.futureagi{path}")
    for name in their.__all__:
        if name not in vars(own):
            with pytest.raises(ImportError, match=r"docs/migrate/futureagi\.md"):
                getattr(own, name)


# ---- the metrics of the SDK -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["NDCG", "MRR", "PrecisionAtK", "RecallAtK"])
def test_metrics_of_relevance_scores(name):
    chance = random.Random(7)
    for _ in range(100):
        scores = [chance.choice([0, 0.2, 0.5, 0.8, 1, 3]) for _ in range(chance.randrange(8))]
        config = chance.choice([{}, {"k": chance.randrange(1, 9)}, {"relevance_threshold": chance.choice([0, 0.3, 2])}])
        rows = [{"query": "q", "contexts": ["x"] * len(scores), "relevance_scores": scores}]
        (own,) = getattr(our_ranking, name)(config).evaluate(rows).eval_results
        (row,) = getattr(their_ranking, name)(config).evaluate(rows).eval_results
        assert (own.name, own.output, own.reason) == (row.name, row.output, row.reason), scores
        assert own.output_type == row.output_type


def test_the_function_with_relevance_scores():
    for name in ("ndcg", "mrr", "precision_at_k", "recall_at_k"):
        arguments = {"query": "q", "contexts": ["a", "b"], "relevance_scores": [0.2, 1.0], "config": {"k": 1}}
        result, own = theirs.evaluate(name, **arguments), ours.evaluate(name, **arguments)
        assert (own.score, own.reason, own.status, own.passed) == (
            result.score,
            result.reason,
            result.status,
            result.passed,
        )
