"""LlamaIndex: karat's metrics for `RetrieverEvaluator`, and the loop over a dataset that llama-index-core removed."""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from karat.bridges.row_scores import Metrics, Rows, framework
from karat.collection import collect
from karat.errors import BadArgument, InputError
from karat.metrics import DEFAULT
from karat.pipeline import evaluate
from karat.run import Run

with framework("karat.bridges.llamaindex", "llama-index-core"):
    from llama_index.core.async_utils import asyncio_run, run_jobs
    from llama_index.core.evaluation import BaseRetrievalEvaluator, RetrievalEvalResult, RetrievalMetricResult
    from llama_index.core.evaluation.retrieval.metrics import METRIC_REGISTRY
    from llama_index.core.evaluation.retrieval.metrics_base import BaseRetrievalMetric


def metric(name: str, **options: Any) -> BaseRetrievalMetric:
    """One metric for `RetrieverEvaluator(metrics=[…])`: `metric("recall@5")`.

    Args:
        name: a metric with one cutoff. An undefined score is NaN, which LlamaIndex's table of means leaves out.
        options: those of `karat.evaluate`. Nodes are compared by id; judges of texts need `expected_texts`.
    """
    return _class_of(name, options)()


def register(metrics: Metrics, **options: Any) -> list[str]:
    """Add metrics to those that LlamaIndex knows by name.

    Args:
        metrics: metric names, such as "recall@1,5 ndcg@10".
        options: those of `karat.evaluate`.

    Returns:
        The names, for `RetrieverEvaluator.from_metric_names(register("recall@5 rr"), retriever=retriever)`.
    """
    names = Rows(metrics, "", "", options).names
    for name in names:
        if not getattr(METRIC_REGISTRY.get(name), "is_karat", name not in METRIC_REGISTRY):
            raise BadArgument(f'LlamaIndex has a metric "{name}" of its own', hint=f'metric("{name}")')
        METRIC_REGISTRY[name] = _class_of(name, options)
    return names


def evaluate_dataset(
    retriever: Any, dataset: Any, metrics: Metrics = DEFAULT, *, k: int = 20, workers: int = 8, **options: Any
) -> Run:
    """Evaluate a retriever on the questions of a dataset; a question whose retrieval fails has no score.

    Args:
        retriever: a retriever or query engine of LlamaIndex, or whatever else `karat.collect` calls.
        dataset: the path of a file that `EmbeddingQAFinetuneDataset.save_json` wrote, a dict with the same fields
            ("queries", "corpus", "relevant_docs"), or such a dataset of an older llama-index-core.
        metrics: metric names, such as "recall@5 ndcg@10".
        k: the number of nodes of each query; what is beyond is cut off.
        workers: the number of queries at a time.
        options: those of `karat.evaluate`. Node ids are compared; `judge="text"` compares texts, for an index that
            was built again and so has other ids.

    Returns:
        A `Run`, with means, intervals and the score of each query.
    """
    queries, corpus, relevant = _fields(dataset)
    gold = [{"id": name, "query": text, "gold": _items(relevant.get(name), corpus)} for name, text in queries.items()]
    return evaluate(collect(retriever, gold, k=k, concurrency=workers), metrics, **options)


async def aevaluate_dataset(retriever: Any, dataset: Any, metrics: Metrics = DEFAULT, **options: Any) -> Run:
    """Evaluate a retriever as `evaluate_dataset` does, without blocking the event loop."""
    return await to_thread(evaluate_dataset, retriever, dataset, metrics, **options)


def dataset_results(evaluator: BaseRetrievalEvaluator, dataset: Any, *, workers: int = 8) -> list[RetrievalEvalResult]:
    """The result of each query, as the method `aevaluate_dataset` of older evaluators returned them."""
    queries, _, relevant = _fields(dataset)
    jobs = [evaluator.aevaluate(text, expected_ids=relevant.get(name, [])) for name, text in queries.items()]
    results: list[RetrievalEvalResult] = asyncio_run(run_jobs(jobs, workers=workers))
    return results


def _class_of(name: str, options: Mapping[str, Any]) -> type[BaseRetrievalMetric]:
    """A class for one metric: its name is the key of the results, and an attribute of the class."""
    rows = Rows(name, "", "", options)
    if len(rows.names) != 1:
        raise BadArgument("expected one metric with one cutoff", got=name, hint='metric("recall@5")')

    class KaratMetric(BaseRetrievalMetric):
        metric_name: ClassVar[str] = rows.names[0]
        is_karat: ClassVar[bool] = True

        def compute(
            self,
            query: str | None = None,
            expected_ids: list[str] | None = None,
            retrieved_ids: list[str] | None = None,
            expected_texts: list[str] | None = None,
            retrieved_texts: list[str] | None = None,
            **_: Any,
        ) -> RetrievalMetricResult:
            sample = {"retrieved": _pairs(retrieved_ids, retrieved_texts), "gold": _pairs(expected_ids, expected_texts)}
            (score,) = rows.scores(sample | ({"query": query} if query else {}))
            value = float("nan") if score.value is None else score.value
            return RetrievalMetricResult(score=value, metadata={"comment": score.comment} if score.comment else {})

    return KaratMetric


def _pairs(ids: Sequence[str] | None, texts: Sequence[str] | None) -> list[dict[str, str]]:
    """Ids and texts of the same nodes as items."""
    columns = {name: column for name, column in (("id", ids), ("text", texts)) if column}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _items(ids: Sequence[str] | None, corpus: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"id": one, "text": corpus[one]} if one in corpus else {"id": one} for one in ids or []]


def _fields(dataset: Any) -> tuple[dict[str, str], dict[str, str], dict[str, list[str]]]:
    """The queries, the corpus and the relevant nodes of a dataset."""
    if isinstance(dataset, str | PathLike):
        dataset = json.loads(Path(dataset).read_text("utf-8"))
    fields = dataset if isinstance(dataset, Mapping) else getattr(dataset, "__dict__", {})
    if not {"queries", "relevant_docs"} <= fields.keys():
        raise InputError(
            'a dataset has "queries" and "relevant_docs"', got=list(fields), hint="karat.evaluate(samples)"
        )
    return fields["queries"], fields.get("corpus") or {}, fields["relevant_docs"]
