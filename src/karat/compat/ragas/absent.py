"""The names of ragas that karat does not have, with the reasons: separate, since four modules refuse them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

_REASONS = {
    "it is about answers, not about retrieval": (
        "AnswerAccuracy", "AnswerCorrectness", "AnswerRelevancy", "AnswerSimilarity", "BleuScore", "CHRFScore",
        "ChrfScore", "FactualCorrectness", "Faithfulness", "FaithfulnesswithHHEM", "MultiModalFaithfulness",
        "MultiModalRelevance", "QuotedSpansAlignment", "ResponseGroundedness", "ResponseRelevancy", "RougeScore",
        "SemanticSimilarity", "SummarizationScore", "SummaryScore", "answer_correctness", "answer_relevancy",
        "answer_similarity", "faithfulness", "multimodal_faithness", "multimodal_relevance", "summarization_score",
    ),
    "it is about conversations and agents, not about retrieval": (
        "AgentGoalAccuracy", "AgentGoalAccuracyWithReference", "AgentGoalAccuracyWithoutReference", "MultiTurnMetric",
        "MultiTurnSample", "ToolCallAccuracy", "ToolCallF1", "TopicAdherence", "TopicAdherenceScore",
    ),
    "it is about tables and queries in SQL, not about retrieval": (
        "DataCompyScore", "LLMSQLEquivalence", "SQLSemanticEquivalence",
    ),
    "karat has no metrics with custom prompts; derive a metric from SingleTurnMetric": (
        "AspectCritic", "BaseMetric", "DiscreteMetric", "DomainSpecificRubrics", "InstanceRubrics",
        "InstanceSpecificRubrics", "LLMMetric", "NumericMetric", "RankingMetric", "RubricsScore",
        "RubricsScoreWithReference", "RubricsScoreWithoutReference", "SimpleCriteriaScore", "discrete_metric",
        "numeric_metric", "ranking_metric",
    ),
    "no metric of retrieval uses embeddings": ("MetricWithEmbeddings", "embedding_factory"),
    "karat counts tokens itself": ("BaseTokenizer", "HuggingFaceTokenizer", "TiktokenWrapper", "get_tokenizer"),
    "an experiment is saved as a file; commit it with the program": ("version_experiment",),
    "use an OpenAI-compatible endpoint, or the model of a framework": ("OCIGenAIWrapper", "oci_genai_factory"),
}  # fmt: skip
ABSENT = {name: reason for reason, names in _REASONS.items() for name in names}
"""The reason for each name."""


def refuse(module: str) -> Callable[[str], NoReturn]:
    """The `__getattr__` of a module: an import of an absent name fails with the reason."""

    def refused(name: str) -> NoReturn:
        if name in ABSENT:
            raise ImportError(f"{module} has no {name}: {ABSENT[name]}. See docs/migrate/ragas.md", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return refused
