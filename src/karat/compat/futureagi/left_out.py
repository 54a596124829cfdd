"""Names of Future AGI's package that are left out, separate because several modules refuse them, with the reason."""

from __future__ import annotations

from typing import Never

_PAGE = "docs/migrate/futureagi.md"
_GROUPS = {
    "it is not about retrieval": """
        ASRAccuracy AnswerRefusal AudioQualityEvaluator AudioTranscriptionEvaluator BiasDetection BleuScore
        CaptionHallucination ClinicallyInappropriateTone ContainsCode ContainsValidLink ContentModeration
        ContentSafety ConversationCoherence ConversationResolution CulturalSensitivity
        CustomerAgentClarificationSeeking CustomerAgentContextRetention CustomerAgentConversationQuality
        CustomerAgentHumanEscalation CustomerAgentInterruptionHandling CustomerAgentLanguageHandling
        CustomerAgentLoopDetection CustomerAgentObjectionHandling CustomerAgentPromptConformance
        CustomerAgentQueryHandling CustomerAgentTerminationHandling DataPrivacyCompliance EvaluateFunctionCalling
        FuzzyMatch ImageInstructionAdherence IsCompliant IsConcise IsEmail IsGoodSummary IsHarmfulAdvice
        IsHelpful IsInformalTone IsJson IsPolite LLMFunctionCalling NoAgeBias NoApologies NoGenderBias
        NoHarmfulTherapeuticGuidance NoLLMReference NoOpenAIReference NoRacialBias OCREvaluation OneLine PII
        PromptAdherence PromptInjection PromptInstructionAdherence Sexist SummaryQuality SyntheticImageEvaluator
        TTSAccuracy TaskCompletion TextToSQL Tone Toxicity TranslationAccuracy
        AggregatedMetric JsonSchema ContainsJson BLEUScore ROUGEScore LevenshteinSimilarity EmbeddingSimilarity
        NumericSimilarity SemanticListContains RecallScore Regex Contains ContainsAny ContainsAll ContainsNone Equals
        StartsWith EndsWith LengthLessThan LengthGreaterThan LengthBetween ContainsEmail ContainsLink CustomLLMJudge
        ValidationMode JSONInput PydanticInput YAMLInput StructuredInput ValidationError ValidationResult
        JSONValidator PydanticValidator YAMLValidator JSONValidation JSONSyntaxOnly SchemaCompliance TypeCompliance
        FieldCompleteness RequiredFieldsOnly FieldCoverage HierarchyScore TreeEditDistance StructuredOutputScore
        QuickStructuredCheck RequiredKeys BaseMetricInput BaseMetricOutput TextMetricInput JsonMetricInput ConfigParam
        ConfigPossibleValues DatapointFieldAnnotation EvalResultMetric Comparator""",
    "it rates answers, not retrieval": """
        Completeness ContextAdherence DetectHallucination DetectHallucinationMissingInfo FactualAccuracy
        GroundTruthMatch Groundedness IsFactuallyConsistent AnswerRelevancy AnswerRelevancyInput RAGFaithfulness
        MultiHopReasoning RAGMultiHopInput SourceAttribution SourceAttributionInput RAGScore RAGScoreDetailed
        ContextUtilization ContextUtilizationInput NLILabel check_entailment check_claim_supported extract_claims""",
    "it estimates relevance from texts, and karat.compat.ragas has such metrics": """
        ContextRecall ContextPrecision ContextEntityRecall NoiseSensitivity NoiseSensitivityInput RAGInput
        RAGRetrievalInput Ranking extract_entities compute_semantic_similarity""",
    "it needs their service": """
        Protect protect ProtectFlash EvalTemplateManager EvalResponseHandler EvalInfoResponseHandler""",
    "it belongs to their own ways of running evaluations": """
        BaseEvaluation EvalBuilder ExecutionMode FrameworkEvaluator async_evaluator blocking_evaluator custom_eval
        distributed_evaluator register_current_span register_evaluation resilient_evaluator simple_eval
        ChunkResult EarlyStopPolicy EarlyStopReason StreamingConfig StreamingEvalResult StreamingEvaluator
        StreamingState resolve_engine is_turing_model""",
}
REASONS = {name: reason for reason, names in _GROUPS.items() for name in names.split()}
"""The reason for each name."""


def refuse(module: str, name: str) -> Never:
    """Raise the reason why a name is left out; any other name is unknown, as in every module."""
    if name in REASONS:
        raise ImportError(f"{name} is not in {module}: {REASONS[name]} ({_PAGE})", name=module)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
