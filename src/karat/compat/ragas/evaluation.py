"""ragas' `evaluate`: the same parameters in the same order."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from typing import Any

from karat.compat.ragas.cost import TokenUsage
from karat.compat.ragas.dataset_schema import EvaluationResult, MetricResult, rows_of
from karat.compat.ragas.llms.factory import llm_factory
from karat.compat.ragas.llms.models import LangchainLLMWrapper, model_of
from karat.compat.ragas.metrics import SingleTurnMetric, context_precision, context_recall
from karat.compat.ragas.metrics.llm_metrics import ByLLM
from karat.compat.ragas.metrics.metric import Metric, in_thread
from karat.compat.ragas.run_config import RunConfig
from karat.errors import BadArgument, InputError, Unavailable
from karat.judges.model_judge import ModelJudge

_DEFAULT_MODEL = "gpt-4o-mini"


def evaluate(
    dataset: Any,
    metrics: Sequence[Metric] | None = None,
    llm: Any = None,
    embeddings: Any = None,
    experiment_name: str | None = None,
    callbacks: Any = None,
    run_config: RunConfig | None = None,
    token_usage_parser: Any = None,
    raise_exceptions: bool = False,  # noqa: FBT001, FBT002  # as in ragas
    column_map: Mapping[str, str] | None = None,
    show_progress: bool = True,  # noqa: FBT001, FBT002  # as in ragas
    batch_size: int | None = None,
    _run_id: Any = None,
    _pbar: Any = None,
    return_executor: bool = False,  # noqa: FBT001, FBT002  # as in ragas
    allow_nest_asyncio: bool = True,  # noqa: FBT001, FBT002  # as in ragas
) -> EvaluationResult:
    """Compute every metric for every sample.

    Args:
        dataset: An `EvaluationDataset`, a list of samples or dicts, a pandas or Polars frame, a Hugging Face dataset.
            The columns may have the names of ragas' first version: question, contexts, answer, ground_truth.
        metrics: A list of metrics; by default context_precision and context_recall.
        llm: The model of the metrics that have none: anything that `llm_factory` returns, a wrapper, a LangChain or
            LlamaIndex model, or a name. By default gpt-4o-mini, if OPENAI_API_KEY is set.
        embeddings: No effect, as in ragas: no metric of retrieval uses them.
        experiment_name: The name of the result.
        callbacks: LangChain callbacks, for models of LangChain.
        run_config: Time limit, attempts and concurrency of the calls to the model.
        token_usage_parser: Anything but None: `result.total_tokens()` works. karat counts tokens itself.
        raise_exceptions: Raise the first failure; otherwise the score is NaN, and the reason is kept.
        column_map: The dataset's own names of columns, by ragas' names.
        show_progress: Show a progress bar while a model is called.
        batch_size: The number of samples that are judged at a time; by default all.
        return_executor: Not supported.
        allow_nest_asyncio: No effect: karat never patches the event loop.

    Example:
        >>> from karat.compat.ragas import evaluate
        >>> from karat.compat.ragas.metrics import IDBasedContextRecall
        >>> evaluate([{"retrieved_context_ids": ["a"], "reference_context_ids": ["a", "b"]}], [IDBasedContextRecall()])
        {'id_based_context_recall': 0.5000}
    """
    chosen = _chosen(metrics)
    _refuse(return_executor=return_executor, _pbar=_pbar)
    rows = rows_of(dataset, column_map or {})
    _check_columns(rows, chosen)
    with _prepared(chosen, llm, run_config, show_progress=show_progress, callbacks=callbacks):
        before = _tokens(chosen)
        results = {one.name: _scores(one, rows, batch_size, raising=raise_exceptions) for one in chosen}
        used = TokenUsage(*(now - then for now, then in zip(_tokens(chosen), before, strict=True)))
    counted = None if token_usage_parser is None else used
    return EvaluationResult(rows, results, tokens=counted, run_id=_run_id, name=experiment_name)


async def aevaluate(dataset: Any, metrics: Sequence[Metric] | None = None, *args: Any, **settings: Any) -> Any:
    """`evaluate`, to be awaited."""
    return await in_thread(lambda: evaluate(dataset, metrics, *args, **settings))


def _chosen(metrics: Any) -> list[Metric]:
    if metrics is None:
        warnings.warn(
            "metrics: ragas' default has answer_relevancy and faithfulness, too, which are about answers; "
            "karat computes context_precision and context_recall",
            stacklevel=3,
        )
        return [context_precision, context_recall]
    if not isinstance(metrics, list | tuple) or not metrics or not all(isinstance(one, Metric) for one in metrics):
        hint = "metrics=[NonLLMContextRecall()]"
        raise BadArgument("metrics must be a list of metrics, at least one", got=metrics, hint=hint)
    names = [metric.name for metric in metrics]
    if len(set(names)) < len(names):
        hint = 'NonLLMContextRecall(name="recall_at_0.8", threshold=0.8)'
        raise BadArgument("two metrics have the same name, so one would hide the other", got=names, hint=hint)
    return list(metrics)


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise BadArgument(f"{name} is not supported: evaluate() returns the result when it is complete", got=value)


def _check_columns(rows: Sequence[Mapping[Any, Any]], metrics: Sequence[Metric]) -> None:
    """Refuse a dataset in which no sample has a field that a metric needs, before a model is called."""
    present = {name for row in rows for name, value in row.items() if value is not None}
    for metric in metrics:
        if missing := sorted(metric.required_columns["SINGLE_TURN"] - present):
            columns = ", ".join(missing)
            hint = f'column_map={{"{missing[0]}": "YOUR COLUMN"}}'
            raise InputError(f"{metric.name} needs columns that the dataset does not have: {columns}", hint=hint)


@contextmanager
def _prepared(
    metrics: Sequence[Metric], llm: Any, run_config: RunConfig | None, *, show_progress: bool, callbacks: Any
) -> Iterator[None]:
    """Lend the model and the settings of this call to the metrics, and take them back."""
    judging = [metric for metric in metrics if isinstance(metric, ByLLM)]
    own = [(metric, metric.llm, metric.run_config, metric.show_progress) for metric in judging]
    shared = llm_factory(_DEFAULT_MODEL) if llm is None and os.environ.get("OPENAI_API_KEY") else llm
    try:
        for metric in judging:
            metric.llm = shared if metric.llm is None else metric.llm
            metric.run_config = run_config or metric.run_config
            metric.show_progress = show_progress
        with _called_back(judging, callbacks):
            yield
    finally:
        for metric, its_llm, config, shown in own:
            metric.llm, metric.run_config, metric.show_progress = its_llm, config, shown


@contextmanager
def _called_back(metrics: Sequence[ByLLM], callbacks: Any) -> Iterator[None]:
    """Let the models of LangChain report their calls to the callbacks."""
    models: list[LangchainLLMWrapper] = []
    for metric in metrics if callbacks else ():
        metric.llm = model_of(metric.llm)
        if isinstance(metric.llm, LangchainLLMWrapper):
            models.append(metric.llm)
    if callbacks and (len(models) < len(metrics) or not metrics):
        hint = "llm=LangchainLLMWrapper(ChatOpenAI(…))"
        raise BadArgument("callbacks are called by models of LangChain only", hint=hint)
    try:
        for model in models:
            model.callbacks = callbacks
        yield
    finally:
        for model in models:
            model.callbacks = None


def _scores(metric: Metric, rows: Sequence[Any], batch_size: int | None, *, raising: bool) -> list[MetricResult]:
    if raising:
        for row in rows:
            metric._read(row)  # noqa: SLF001
    if batch_size is not None and (isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1):
        raise BadArgument("batch_size must be a whole number, at least 1", got=batch_size)
    size = batch_size or len(rows)
    found = [one for start in range(0, len(rows), size) for one in metric.batch_score(rows[start : start + size])]
    if raising and isinstance(metric, ByLLM | SingleTurnMetric):
        for number, result in enumerate(found, 1):
            if isnan(result) and result.traces is None and result.reason is not None:
                raise Unavailable(f"{metric.name} could not be judged for sample {number}: {result.reason}")
    return found


def _tokens(metrics: Sequence[Metric]) -> tuple[int, int]:
    """The tokens of prompts and answers that the metrics have used so far."""
    judges = [metric._judge() for metric in metrics if isinstance(metric, ByLLM)]  # noqa: SLF001
    spent = [judge.spent for judge in judges if isinstance(judge, ModelJudge) and judge.spent]
    return sum(one.prompt_tokens for one in spent), sum(one.completion_tokens for one in spent)
