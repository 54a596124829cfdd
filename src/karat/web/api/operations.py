"""The operations of the service: what each takes and answers. The OpenAPI document is written from this list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from karat.web.api import answers, bodies

ARROW, CSV = "application/vnd.apache.arrow.stream", "text/csv"
JSON, NDJSON, MARKDOWN = "application/json", "application/x-ndjson", "text/markdown"
FORM = "multipart/form-data"
PARQUET, ARROW_FILE, JUNIT = "application/vnd.apache.parquet", "application/vnd.apache.arrow.file", "application/xml"
_SAMPLES = [
    {"id": "q1", "query": "When does the shop close?", "retrieved": ["hours", "parking", "faq"], "gold": ["hours"]},
    {"id": "q2", "query": "Can I return a gift?", "retrieved": ["faq", "returns", "hours"], "gold": ["returns"]},
    {"id": "q3", "query": "Is there parking?", "retrieved": ["hours", "faq"], "gold": ["parking"]},
]
_BETTER = [{**sample, "retrieved": sample["gold"]} for sample in _SAMPLES]
_METRICS = "recall@1,3 rr"
_OLD, _NEW = {"samples": _SAMPLES, "metrics": _METRICS}, {"samples": _BETTER, "metrics": _METRICS}
_RULES = ["recall@3 >= 0.6", "rr no-drop 0.05"]


class Parameter(NamedTuple):
    """A parameter of a path, of an address, or a header."""

    name: str
    about: str
    kind: str = "string"
    place: str = "query"
    required: bool = False
    example: str | None = None


class Operation(NamedTuple):
    """An operation."""

    method: str
    path: str
    name: str
    """Its name in clients: operationId."""
    summary: str
    answer: type[Any] | None = None
    """The record of its answer in JSON."""
    body: type[Any] | None = None
    examples: Mapping[str, Any] = {}
    """Bodies by name."""
    parameters: tuple[Parameter, ...] = ()
    problems: tuple[int, ...] = (400, 401, 403, 503)
    forms: tuple[str, ...] = ()
    """Other types of its answer."""
    body_forms: tuple[str, ...] = ()
    """Other types of its body."""
    job: bool = False
    """True if it can be a job."""
    about: str = ""
    group: str = "service"
    open: bool = False
    """True if it needs no key."""


_KEY = Parameter("Idempotency-Key", "the same key with the same body gets the first answer again", place="header")
_PREFER = Parameter("Prefer", "respond-async: do it as a job", place="header")
_RUN_ID = Parameter("run_id", "the id of a run, or its name", place="path", required=True, example="main")
_JOB_ID = Parameter("job_id", "the id of a job", place="path", required=True)
_LIMIT = Parameter("limit", "the size of a page", "integer")
_WORK = (400, 401, 403, 404, 406, 408, 413, 415, 422, 429, 503)
_LOOK = (400, 401, 403, 404, 406, 408, 413, 422, 429, 503)
_SETTINGS = tuple(
    Parameter(name, f"as in the JSON body, for bodies of another type{more}", kind)
    for name, kind, more in (
        ("metrics", "string", ""), ("judge", "string", ""), ("convention", "string", ""),
        ("fields", "string", ", such as retrieved=docs,gold=relevant"), ("at", "string", ""), ("order", "string", ""),
        ("merge", "string", ""),
        ("by", "string", ""), ("summary", "string", ""), ("also", "string", ""), ("skip_bad_rows", "boolean", ""),
        ("table", "boolean", ""), ("store", "string", ""), ("job", "boolean", ""),
    )
)  # fmt: skip

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "post", "/v1/evaluate", "evaluate", "Evaluate samples", answers.EvaluateAnswer, bodies.EvaluateRequest,
        {
            "samples": _OLD,
            "samples, and the run is stored": {**_OLD, "store": "main"},
            "results and gold apart": {
                "retrieved": {"q1": {"a": 12.5, "b": 11.0}}, "gold": {"q1": {"b": 2, "c": 1}}, "metrics": "ndcg@10 ap",
            },
            "long tables": {
                "retrieved": [
                    {"query_id": "q1", "doc_id": "a", "score": 2.5}, {"query_id": "q1", "doc_id": "b", "score": 1},
                ],
                "gold": [{"query_id": "q1", "doc_id": "b", "grade": 1}], "metrics": ["recall@1", "recall@2"],
            },
            "texts": {
                "samples": [{"retrieved": ["The shop closes at 6 p.m."], "gold": ["the shop closes at 6 pm"]}],
                "metrics": "recall@1", "judge": "fuzzy(0.8)",
            },
        },
        (*_SETTINGS, _KEY, _PREFER), (*_WORK, 507), (CSV, ARROW, MARKDOWN),
        (NDJSON, PARQUET, ARROW_FILE, ARROW, CSV, FORM), job=True,
        about="The body is JSON; or samples as lines of JSON, Parquet, Arrow or CSV, with the settings in the address; "
        "or a form with the files samples, or retrieved and gold, and with the settings. "
        "As CSV or Arrow, the answer is the table of the queries.", group="evaluation",
    ),
    Operation(
        "post", "/v1/compare", "compare", "Compare runs query by query", answers.CompareAnswer, bodies.CompareRequest,
        {
            "two results": {"runs": [_OLD, _NEW], "names": ["old", "new"]},
            "a stored run and new results": {"runs": ["main", _NEW], "names": ["main", "new"]},
        },
        (_KEY, _PREFER), _WORK, (MARKDOWN,), job=True, group="evaluation",
    ),
    Operation(
        "post", "/v1/gate", "gate", "Check a run against rules and a baseline", answers.GateAnswer, bodies.GateRequest,
        {
            "new results, compared with old ones": {"run": _NEW, "rules": _RULES, "baseline": _OLD},
            "new results, compared with a stored run": {"run": _NEW, "rules": _RULES, "baseline": "main"},
        },
        (_KEY, _PREFER), _WORK, (MARKDOWN, JUNIT), job=True, group="evaluation",
        about="The status is 200 whatever the verdict: read `passed`.",
    ),
    Operation(
        "post", "/v1/diagnose", "diagnose", "Find the causes of missed gold items", answers.DiagnoseAnswer,
        bodies.DiagnoseRequest, {"results": {"run": _OLD, "k": 1}, "a stored run": {"run": "main", "k": 1}},
        (_KEY, _PREFER), _WORK, (MARKDOWN,), job=True, group="evaluation",
    ),
    Operation(
        "get", "/v1/runs", "runs", "List the stored runs, the newest first", answers.RunPage,
        parameters=(
            _LIMIT, Parameter("after", "the id of the last run of the page before"),
            Parameter("name", "only runs of this name"),
        ),
        problems=_LOOK, group="runs", about="A file that cannot be read is listed with its error.",
    ),
    Operation(
        "get", "/v1/runs/{run_id}", "run", "Show a stored run, or download its file", answers.EvaluateAnswer,
        parameters=(
            _RUN_ID, Parameter("by", "a field of the samples, or several with ; between them: also their means"),
            Parameter("summary", "summaries other than the mean, such as p10,median"),
        ),
        problems=_LOOK, forms=(MARKDOWN, PARQUET), group="runs",
    ),
    Operation(
        "get", "/v1/runs/{run_id}/table", "table", "Show the scores of the queries of a stored run", answers.TablePage,
        parameters=(_RUN_ID, _LIMIT, Parameter("offset", "the first row", "integer"),
                    Parameter("fields", "true: also the fields of the samples", "boolean")),
        problems=_LOOK, forms=(CSV, ARROW), group="runs", about="As CSV or Arrow it is the whole table.",
    ),
    Operation(
        "get", "/v1/runs/{run_id}/items", "items", "Show one query of a stored run", answers.QueryItems,
        parameters=(_RUN_ID, Parameter("query", "the id of the query", required=True, example="q1")),
        problems=_LOOK, group="runs",
    ),
    Operation(
        "delete", "/v1/runs/{run_id}", "deleteRun", "Delete a stored run", problems=(*_LOOK, 507), group="runs",
        parameters=(Parameter("run_id", "the id of a run, not its name", place="path", required=True),),
    ),
    Operation(
        "get", "/v1/jobs/{job_id}", "job", "Show the state of a job", answers.JobState, parameters=(_JOB_ID,),
        problems=(401, 403, 404), group="jobs",
    ),
    Operation(
        "get", "/v1/jobs/{job_id}/result", "jobResult", "Show the answer of a job", parameters=(_JOB_ID,),
        problems=(400, 401, 403, 404, 409, 410, 413, 422, 503), group="jobs",
        about="It is the answer that the request would have had, also if that is a problem.",
    ),
    Operation(
        "delete", "/v1/jobs/{job_id}", "cancelJob", "Cancel a job, or forget one that has ended", answers.JobState,
        parameters=(_JOB_ID,), problems=(401, 403, 404), group="jobs",
    ),
    Operation("get", "/v1/metrics", "metrics", "List the metrics", answers.NameList, group="names"),
    Operation("get", "/v1/judges", "judges", "List the judges that requests may name", answers.NameList, group="names"),
    Operation("get", "/v1/conventions", "conventions", "List the conventions", answers.NameList, group="names"),
    Operation("get", "/healthz", "health", "The server runs", answers.Health, problems=(), open=True),
    Operation("get", "/readyz", "readiness", "The server can evaluate", answers.Readiness, problems=(), open=True),
    Operation("get", "/metrics", "prometheus", "Counters for Prometheus", problems=(401, 403), forms=("text/plain",)),
)  # fmt: skip
