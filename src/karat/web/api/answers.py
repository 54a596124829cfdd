"""Answers of the operations: one record each. Undefined numbers are null."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Number = float | None
Scores = dict[str, Number]
"""A number by metric."""


class EvaluateAnswer(msgspec.Struct, kw_only=True):
    """The result of an evaluation."""

    id: Annotated[str | None, Meta(description="of the stored run")] = None
    name: str | None = None
    queries: int
    judged: Annotated[int, Meta(description="queries that could be judged")]
    mean: Scores
    interval: Annotated[
        dict[str, list[Number]], Meta(description="95 % intervals of the means; null with fewer than 5 queries")
    ]
    undefined: Annotated[dict[str, int], Meta(description="queries that are not in the mean of a metric")]
    failures: Annotated[dict[str, str], Meta(description="queries that could not be judged, with the reason")]
    judge: str
    judge_reason: Annotated[str, Meta(description="why, if karat chose the judge")]
    convention: str
    remarks: Annotated[list[str], Meta(description="sentences that a reader of the means should know")]
    by: Annotated[dict[str, dict[str, SliceMeans]], Meta(description="by field and value")] = {}
    summaries: Annotated[dict[str, Any], Meta(description="by summary and metric")] = {}
    numbers: Annotated[dict[str, Any], Meta(description="numeric fields beside the scores, such as latency")] = {}
    measures: Annotated[dict[str, Any], Meta(description="metrics with a unit")] = {}
    table: Annotated[
        msgspec.Raw | None,
        Meta(
            description="one object per query: query_id, then its scores",
            extra_json_schema={"type": ["array", "null"], "items": {"$ref": "#/components/schemas/QueryScores"}},
        ),
    ] = None


class SliceMeans(msgspec.Struct, kw_only=True):
    """The queries with one value of a field."""

    queries: int
    mean: Scores
    interval: dict[str, list[Number]]
    undefined: dict[str, int]


class StoredRun(msgspec.Struct, kw_only=True):
    """A run file in the store."""

    id: str
    name: str
    time: Annotated[str, Meta(description="when it was written", extra_json_schema={"format": "date-time"})]
    bytes: int
    queries: int | None = None
    mean: Scores = {}
    judge: str | None = None
    convention: str | None = None
    error: Annotated[str | None, Meta(description="why the file cannot be read")] = None


class RunPage(msgspec.Struct, kw_only=True):
    """A page of the stored runs, the newest first."""

    runs: list[StoredRun]
    total: int
    next: Annotated[str | None, Meta(description="the value of after for the next page; null at the end")] = None


class TablePage(msgspec.Struct, kw_only=True):
    """A page of the scores of single queries."""

    rows: Annotated[
        msgspec.Raw,
        Meta(extra_json_schema={"type": "array", "items": {"$ref": "#/components/schemas/QueryScores"}}),
    ]
    total: int
    next: Annotated[int | None, Meta(description="the value of offset for the next page; null at the end")] = None


class RetrievedItem(msgspec.Struct, kw_only=True):
    """A retrieved item."""

    rank: int
    id: str | None
    text: str | None
    doc: str | None
    score: Number
    start: int | None = None
    end: int | None = None
    length: Annotated[int | None, Meta(description="characters of the whole text, if it is cut")] = None


class FoundGold(msgspec.Struct, kw_only=True):
    """A gold item, and the rank at which it was found."""

    gold: str
    grade: Number
    rank: int | None


class GoldMatch(msgspec.Struct, kw_only=True):
    """The item at this rank satisfies this gold item."""

    rank: int
    gold: str
    grade: Number
    why: str


class QueryItems(msgspec.Struct, kw_only=True):
    """One query of a run: its scores, its items and its gold."""

    query_id: str
    query: str | None
    scores: Scores
    failure: str | None
    gold: list[FoundGold]
    hits: list[GoldMatch]
    retrieved: Annotated[list[RetrievedItem] | None, Meta(description="null if the run stores no items")]


class CompareAnswer(msgspec.Struct, kw_only=True):
    """The result of a comparison: one row per metric."""

    names: list[str]
    queries: int
    test: str
    rows: list[ComparedMetric]
    moved: Annotated[list[Any], Meta(description="the queries that changed most")]
    remarks: list[str]
    more: Annotated[dict[str, Any], Meta(description="slices, measures, numbers, standings, if there are any")] = {}


class ComparedMetric(msgspec.Struct, kw_only=True):
    """One metric of all runs, and the second run compared with the first; `pairs` has all pairs."""

    metric: str
    means: Annotated[Scores, Meta(description="by name of the run")]
    difference: Number
    low: Number
    high: Number
    p: Annotated[Number, Meta(description="corrected for all metrics and pairs")]
    won: int
    tied: int
    lost: int
    n: int
    detectable: Number
    verdict: Annotated[
        Literal["better", "worse", "same", "cannot tell"],
        Meta(description="of the second run, compared with the first"),
    ]
    winner: str | None
    pairs: list[Any]


class GateAnswer(msgspec.Struct, kw_only=True):
    """The result of a gate."""

    passed: bool
    verdict: Literal["passed", "failed", "undecided"]
    counts: dict[str, int]
    run: str
    judge: str
    queries: int
    when: str
    checks: list[CheckedRule]
    by: list[str]
    baseline: str | None
    alpha: float
    worst: Annotated[list[Any], Meta(description="the queries that dropped most")]
    remarks: list[str]


class CheckedRule(msgspec.Struct, kw_only=True):
    """One check of a gate."""

    rule: str
    slice: str | None
    verdict: Literal["passed", "failed", "undecided"]
    text: Annotated[str, Meta(description="the measured values")]
    metric: str | None = None
    query: str | None = None
    figures: Scores = {}
    by: str | None = None


class DiagnoseAnswer(msgspec.Struct, kw_only=True):
    """The result of a diagnosis."""

    k: int
    query_id: str | None
    queries: int
    judged: int
    recall: Number
    gold_items: int
    missed: int
    causes: Annotated[dict[str, int], Meta(description="misses by cause")]
    advice: list[str]
    not_measured: Annotated[list[str], Meta(description="advice whose effect this run cannot show")]
    notes: Annotated[list[str], Meta(description="what could not be checked")]
    misses: list[Any]
    more: dict[str, Any] = {}


class NamedThing(msgspec.Struct, kw_only=True):
    """A metric, a judge or a convention."""

    name: str
    about: str
    settings: list[str] = []
    aliases: list[str] = []


class NameList(msgspec.Struct, kw_only=True):
    """Everything that can be named."""

    names: list[NamedThing]


class JobState(msgspec.Struct, kw_only=True):
    """A job."""

    id: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    operation: str
    created: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    done: Annotated[int | None, Meta(description="work done, of `of`; null for work that does not count its steps")] = (
        None
    )
    of: int | None = None
    result: Annotated[str | None, Meta(description="the path of the result, once it is there")] = None


class Health(msgspec.Struct, kw_only=True):
    """The server runs."""

    status: str
    version: str


class Readiness(msgspec.Struct, kw_only=True):
    """The server can evaluate, or not; then the status is 503."""

    status: str
    workers: int
    waiting: int
