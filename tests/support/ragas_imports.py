"""The import lines of ragas that users of its retrieval metrics write: the module and the names."""

from __future__ import annotations

_METRICS = [
    "ContextPrecision", "ContextRecall", "ContextUtilization", "DistanceMeasure", "IDBasedContextPrecision",
    "IDBasedContextRecall", "LLMContextPrecisionWithReference", "LLMContextPrecisionWithoutReference",
    "LLMContextRecall", "Metric", "MetricResult", "NonLLMContextPrecisionWithReference", "NonLLMContextRecall",
    "NonLLMStringSimilarity", "context_precision", "context_recall",
]  # fmt: skip
IMPORTS = {
    "ragas": [
        "CacheInterface", "DataTable", "Dataset", "DiskCacheBackend", "EvaluationDataset", "Experiment", "RunConfig",
        "SingleTurnSample", "aevaluate", "backends", "cacher", "evaluate", "experiment",
    ],
    "ragas.backends": ["BaseBackend", "InMemoryBackend", "LocalCSVBackend", "LocalJSONLBackend"],
    "ragas.backends.base": ["BaseBackend"],
    "ragas.backends.inmemory": ["InMemoryBackend"],
    "ragas.backends.local_csv": ["LocalCSVBackend"],
    "ragas.backends.local_jsonl": ["LocalJSONLBackend"],
    "ragas.cache": ["CacheInterface", "DiskCacheBackend", "cacher"],
    "ragas.cost": ["TokenUsage", "get_token_usage_for_anthropic", "get_token_usage_for_openai"],
    "ragas.dataset": ["DataTable", "Dataset"],
    "ragas.dataset_schema": ["EvaluationDataset", "EvaluationResult", "SingleTurnSample"],
    "ragas.evaluation": ["aevaluate", "evaluate"],
    "ragas.experiment": ["Experiment", "experiment"],
    "ragas.llms": [
        "BaseRagasLLM", "HaystackLLMWrapper", "InstructorBaseRagasLLM", "InstructorLLM", "LangchainLLMWrapper",
        "LiteLLMStructuredLLM", "LlamaIndexLLMWrapper", "llm_factory",
    ],
    "ragas.llms.base": [
        "BaseRagasLLM", "InstructorBaseRagasLLM", "InstructorLLM", "LangchainLLMWrapper", "LlamaIndexLLMWrapper",
        "llm_factory",
    ],
    "ragas.llms.haystack_wrapper": ["HaystackLLMWrapper"],
    "ragas.llms.litellm_llm": ["LiteLLMStructuredLLM"],
    "ragas.metrics": _METRICS,
    "ragas.metrics._context_precision": ["ContextPrecision", "context_precision"],
    "ragas.metrics._context_recall": ["ContextRecall", "LLMContextRecall", "context_recall"],
    "ragas.metrics._string": ["DistanceMeasure", "NonLLMStringSimilarity"],
    "ragas.metrics.base": ["Metric", "MetricType", "MetricWithLLM", "SingleTurnMetric"],
    "ragas.metrics.collections": [
        "BaseMetric", "ContextPrecision", "ContextPrecisionWithReference", "ContextPrecisionWithoutReference",
        "ContextRecall", "ContextUtilization", "DistanceMeasure", "NonLLMStringSimilarity",
    ],
    "ragas.metrics.collections.base": ["BaseMetric"],
    "ragas.metrics.collections.context_precision": ["ContextPrecision", "ContextUtilization"],
    "ragas.metrics.collections.context_recall": ["ContextRecall"],
    "ragas.metrics.result": ["MetricResult"],
    "ragas.run_config": ["RunConfig"],
}  # fmt: skip
