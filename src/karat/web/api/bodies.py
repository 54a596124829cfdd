"""Bodies of requests: one record per operation. They have data and names; nothing in them is opened or imported."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

_SIDE = "lists in the order of the queries, lists or dicts of scores by query id, or rows of a long table"
Words = str | list[str]
"""Names in one text, or one by one."""
AsJob = Annotated[bool, Meta(description="answer at once with 202, and do it as a job")]


class ItemInput(msgspec.Struct, kw_only=True):
    """A retrieved item or a gold item; a string alone is an id or a text."""

    id: str | int | None = None
    text: str | None = None
    doc: str | int | None = None
    start: int | None = None
    end: int | None = None
    score: Annotated[float | None, Meta(description="of a retrieved item")] = None
    grade: Annotated[float | None, Meta(description="of a gold item; 1 if missing, 0 is judged irrelevant")] = None
    group: Annotated[str | int | None, Meta(description="of gold items that are alternatives")] = None


class SampleInput(msgspec.Struct, kw_only=True):
    """One query with its results and its gold. Any other field can be used for slices, with `by`."""

    id: Annotated[str | int | None, Meta(description="its number if missing")] = None
    query: str | None = None
    retrieved: Annotated[
        list[str | int | ItemInput] | dict[str, float] | None, Meta(description="best first; or scores by item")
    ] = None
    gold: Annotated[
        list[str | int | ItemInput] | dict[str, float] | None, Meta(description="relevant items; or grades by item")
    ] = None
    answer: Annotated[str | None, Meta(description="the reference answer")] = None
    response: Annotated[str | None, Meta(description="the answer of your system")] = None
    answerable: Annotated[bool | None, Meta(description="false if nothing should be retrieved")] = None
    error: Annotated[str | None, Meta(description="instead of retrieved: the retrieval failed")] = None
    latency: Annotated[float | None, Meta(description="milliseconds of the retriever")] = None


class EvaluateInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Samples, or results and gold apart, and how they are evaluated."""

    samples: Annotated[
        list[dict[str, Any]] | dict[str, Any] | None, Meta(description="one object per query, or columns by name")
    ] = None
    retrieved: Annotated[list[Any] | dict[str, Any] | None, Meta(description=f"results alone: {_SIDE}")] = None
    gold: Annotated[list[Any] | dict[str, Any] | None, Meta(description=f"gold alone: {_SIDE}")] = None
    metrics: Annotated[Words | None, Meta(description="such as recall@1,5 ndcg@10; GET /v1/metrics lists them")] = None
    judge: Annotated[str, Meta(description="how items are matched; GET /v1/judges lists them")] = "auto"
    convention: Annotated[str, Meta(description="definition of the metrics; GET /v1/conventions lists them")] = (
        "standard"
    )
    fields: Annotated[
        dict[str, str] | None, Meta(description='your names by karat\'s, such as {"retrieved": "docs"}')
    ] = None
    at: Annotated[Literal["item", "doc", "step"], Meta(description="what is compared")] = "item"
    order: Annotated[Literal["listed", "score"] | None, Meta(description="score sorts lists by their scores")] = None
    merge: Annotated[str, Meta(description="how steps become one ranking")] = "concat"
    also: Annotated[Words, Meta(description="numeric fields to summarise, such as cost,tokens")] = ""
    skip_bad_rows: Annotated[bool, Meta(description="skip and count rows that cannot be read")] = False


class EvaluateRequest(EvaluateInput, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An evaluation."""

    by: Annotated[Words, Meta(description="fields of the samples: also the means of each of their values")] = ""
    summary: Annotated[Words, Meta(description="summaries other than the mean, such as p10,median")] = ""
    table: Annotated[bool, Meta(description="false leaves out the scores of the single queries")] = True
    store: Annotated[bool | str, Meta(description="true or a name: keep the run on the server")] = False
    job: AsJob = False


_RUN = "the id or the name of a stored run (of several with one name the newest), or data to evaluate"
RunLike = Annotated[str | EvaluateInput, Meta(description=_RUN)]


class CompareRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A comparison of two runs or more, query by query."""

    runs: Annotated[list[RunLike], Meta(min_length=2, max_length=25)]
    names: list[str] | None = None
    metrics: Annotated[Words | None, Meta(description="some of the metrics that all runs have")] = None
    by: Annotated[Words, Meta(description="fields of the samples: also compare their values")] = ""
    allow_mismatch: Annotated[bool, Meta(description="also if queries, gold or settings differ")] = False
    test: Literal["sign-flip", "bounded"] = "sign-flip"
    summary: Annotated[str | None, Meta(description="compared instead of the mean, such as p10")] = None
    also: Annotated[Words, Meta(description="numeric fields to compare, such as cost,tokens")] = ""
    job: AsJob = False


class GateRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A gate: rules that a run must meet."""

    run: RunLike
    rules: Annotated[list[str], Meta(description='such as "recall@5 >= 0.8" or "ndcg@10 no-drop"', min_length=1)]
    baseline: RunLike | None = None
    by: Annotated[Words, Meta(description="fields of the samples: no-drop rules also for their values")] = ""
    must_pass: Annotated[list[str], Meta(description="ids of queries that may not drop at all")] = []
    tolerance: float | None = None
    slice_tolerance: float | None = None
    alpha: float = 0.05
    min_defined: int = 1
    min_judged: float | None = None
    fail_undecided: bool = False
    job: AsJob = False


class DiagnoseRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A diagnosis of the gold items that a run misses."""

    run: RunLike
    query: Annotated[str | int | None, Meta(description="one query alone")] = None
    k: Annotated[int, Meta(description="the cutoff", ge=1)] | None = None
    other: Annotated[RunLike | None, Meta(description="a second run over the same queries")] = None
    job: AsJob = False
