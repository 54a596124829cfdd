"""The import lines of ragas that users of its retrieval metrics write: the module and the names."""

from __future__ import annotations

_METRICS = [
    "ContextEntityRecall", "ContextPrecision", "ContextRecall", "ContextRelevance", "ContextUtilization",
    "DistanceMeasure", "ExactMatch", "IDBasedContextPrecision", "IDBasedContextRecall",
    "LLMContextPrecisionWithReference", "LLMContextPrecisionWithoutReference", "LLMContextRecall", "Metric",
    "MetricOutputType", "MetricResult", "MetricType", "MetricWithLLM", "NoiseSensitivity",
    "NonLLMContextPrecisionWithReference", "NonLLMContextRecall", "NonLLMStringSimilarity", "SingleTurnMetric",
    "StringPresence", "context_entity_recall", "context_precision", "context_recall",
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
    "ragas.metrics._context_entities_recall": ["ContextEntityRecall", "context_entity_recall"],
    "ragas.metrics._context_precision": ["ContextPrecision", "context_precision"],
    "ragas.metrics._context_recall": ["ContextRecall", "LLMContextRecall", "context_recall"],
    "ragas.metrics._noise_sensitivity": ["NoiseSensitivity"],
    "ragas.metrics._nv_metrics": ["ContextRelevance"],
    "ragas.metrics._string": ["DistanceMeasure", "ExactMatch", "NonLLMStringSimilarity", "StringPresence"],
    "ragas.metrics.base": ["Metric", "MetricOutputType", "MetricType", "MetricWithLLM", "SingleTurnMetric"],
    "ragas.metrics.collections": [
        "BaseMetric", "ContextEntityRecall", "ContextPrecision", "ContextPrecisionWithReference",
        "ContextPrecisionWithoutReference", "ContextRecall", "ContextRelevance", "ContextUtilization",
        "DistanceMeasure", "ExactMatch", "NoiseSensitivity", "NonLLMStringSimilarity", "StringPresence",
    ],
    "ragas.metrics.collections.base": ["BaseMetric"],
    "ragas.metrics.collections.context_entity_recall": ["ContextEntityRecall"],
    "ragas.metrics.collections.context_precision": ["ContextPrecision", "ContextUtilization"],
    "ragas.metrics.collections.context_recall": ["ContextRecall"],
    "ragas.metrics.collections.context_relevance": ["ContextRelevance"],
    "ragas.metrics.collections.noise_sensitivity": ["NoiseSensitivity"],
    "ragas.metrics.result": ["MetricResult"],
    "ragas.run_config": ["RunConfig"],
}  # fmt: skip
