"""The conventions of other libraries: one record each.

To add one, define a record anywhere above CONVENTIONS. Fields that are not set are as in STANDARD. The tests in
tests/oracles compare every record with the installed library, or with its definition, written out.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan

from karat.conventions.convention import COUNTED, STANDARD, Convention

_TREC = ("recall", "precision", "hit", "rr", "ap", "ndcg", "r_precision", "bpref", "infap")
_DIVERSITY = ("st_recall", "alpha_ndcg", "err_ia", "nrbp", "p_ia", "ap_ia")

TREC_EVAL = Convention(
    name="trec_eval",
    about="trec_eval 9 and pytrec_eval. They refuse rankings with duplicates; karat removes them",
    duplicates="remove",
    order="score",
    empty_gold=0.0,
    nothing_judged=nan,
    missing="drop",
    metrics=(*_TREC, "iprec"),
)

RANX = Convention(
    name="ranx",
    about="ranx, with Qrels and Run. Ties stay as given in short rankings and are unspecified in long ones",
    duplicates="remove",
    order="score",
    ties="given",
    scores="double",
    empty_gold=0.0,
    rbp_of="grade",
    metrics=("recall", "precision", "hit", "rr", "ap", "ndcg", "f1", "r_precision", "rbp"),
)

IR_MEASURES = replace(
    TREC_EVAL,
    name="ir-measures",
    about="ir-measures with its default providers; the last score of a duplicate counts",
    pooled="judged",
    duplicates="last",
    missing="zero",
    aspect_scores="ndeval",
    exceptions={name: {"ties": "id_ascending", "scores": "double"} for name in ("rr@k", *_DIVERSITY)},
    metrics=(*_TREC, *_DIVERSITY),
)

_BEIR_OWN = {"ties": "given", "scores": "double", "nothing_judged": None, "missing": "zero"}

BEIR = Convention(
    name="beir",
    about="BEIR: EvaluateRetrieval.evaluate, and evaluate_custom for MRR, R_cap and accuracy",
    duplicates="remove",
    order="score",
    own_id="drop",
    empty_gold=0.0,
    nothing_judged=nan,
    missing="drop",
    rounding=5,
    exceptions={"rr": _BEIR_OWN, "hit": _BEIR_OWN, "recall_capped": {**_BEIR_OWN, "empty_gold": nan}},
    refuses=("recall_capped.empty_gold",),
    metrics=("recall", "precision", "hit", "rr", "ap", "ndcg", "recall_capped"),
)

MTEB = replace(
    TREC_EVAL,
    name="mteb",
    about="MTEB's retrieval tasks: pytrec_eval and a custom MRR",
    rounding=5,
    exceptions={"rr": {"scores": "double", "rounding": None}},
    metrics=("recall", "precision", "hit", "rr", "ap", "ndcg"),
)

SKLEARN = Convention(
    name="sklearn",
    about="scikit-learn's ndcg_score over retrieved and gold items, with items that were not retrieved last",
    order="score",
    ties="averaged",
    scores="double",
    unretrieved="last",
    empty_gold=0.0,
    metrics=("ndcg",),
)

_ANY_SCORE = {"above_zero": False}

TORCHMETRICS = Convention(
    name="torchmetrics",
    about="torchmetrics.retrieval, given the retrieved items; it does not see gold that was not retrieved",
    recall_over="retrieved",
    ap_over="found",
    ideal="retrieved",
    per_rank=COUNTED,
    order="score",
    ties="averaged",
    above_zero=True,
    empty_gold=0.0,
    empty_retrieved=nan,
    both_empty=nan,
    refuses=("empty_retrieved", "both_empty"),
    exceptions={"hit": _ANY_SCORE, "ndcg": _ANY_SCORE, "r_precision": _ANY_SCORE},
    metrics=("recall", "precision", "hit", "rr", "ap", "ndcg", "r_precision"),
)

MLFLOW = Convention(
    name="mlflow",
    about="MLflow's retriever metrics",
    precision_over="returned",
    gain="binary",
    ideal="grown",
    per_rank=("precision", "ndcg"),
    ties="given",
    scores="double",
    empty_gold=0.0,
    both_empty=1.0,
    exceptions={"precision": {"both_empty": 0.0}},
    metrics=("precision", "recall", "ndcg"),
)

LLAMAINDEX = Convention(
    name="llamaindex",
    about="LlamaIndex's retrieval metrics, given the first k ids",
    precision_over="different",
    gain="binary",
    ideal="all",
    per_rank=("ap", "ndcg"),
    ties="given",
    scores="double",
    empty_retrieved=nan,
    refuses=("empty_gold", "empty_retrieved"),
    metrics=("precision", "recall", "hit", "rr", "ap", "ndcg"),
)

HAYSTACK = Convention(
    name="haystack",
    about="Haystack's document evaluators, given the first k documents; recall in the default mode, single_hit",
    ideal="all",
    ties="given",
    scores="double",
    empty_gold=0.0,
    renames={"recall": "hit"},
    metrics=("recall", "rr", "ap", "ndcg"),
)

TRULENS = Convention(
    name="trulens",
    about="TruLens' GroundTruthAgreement, given chunks in order, without scores; k defaults to their number",
    precision_over="returned",
    per_rank=("precision",),
    ties="given",
    scores="double",
    exceptions={
        "precision": {"empty_retrieved": nan},
        "ndcg": {"ideal": "returned", "empty_retrieved": nan},
        "ndcg@k": {"ideal": "k", "empty_retrieved": 0.0},
    },
    metrics=("precision", "recall", "hit", "rr", "ndcg"),
)

PHOENIX = Convention(
    name="phoenix",
    about="Arize Phoenix's retrieval metrics, given the relevance of each retrieved document",
    ideal="retrieved",
    per_rank=("precision", "ndcg"),
    ties="given",
    scores="double",
    empty_gold=0.0,
    metrics=("precision", "hit", "rr", "ndcg"),
)

CONTINUOUS_EVAL = Convention(
    name="continuous-eval",
    about="continuous-eval with ExactChunkMatch, given the first k chunks",
    precision_over="returned",
    ap_over="found",
    gain="binary",
    ideal="all",
    per_rank=("precision", "ap"),
    ties="given",
    scores="double",
    empty_gold=0.0,
    exceptions={"ndcg": {"empty_gold": nan}, "ap": {"empty_gold": nan}, "rr": {"empty_gold": nan}},
    refuses=("ndcg.empty_gold", "ap.empty_gold", "rr.empty_gold"),
    metrics=("precision", "recall", "f1", "rr", "ap", "ndcg"),
)

AUTORAG = Convention(
    name="autorag",
    about="AutoRAG's retrieval metrics, given the first k ids, with one group per gold item",
    precision_over="returned",
    gain="binary",
    ideal="returned",
    per_rank=("ap", "ndcg"),
    ties="given",
    scores="double",
    empty_retrieved=nan,
    renames={"rr": "rr_each", "ap": "ap_each"},
    metrics=("precision", "recall", "f1", "rr", "ap", "ndcg"),
)

RAGAS = Convention(
    name="ragas",
    about="ragas without an LLM: context recall and precision by ids; its non-LLM context precision is ap",
    precision_over="different",
    ap_over="found",
    per_rank=("ap",),
    ties="given",
    scores="double",
    exceptions={
        "precision": {"empty_gold": 0.0, "empty_retrieved": nan, "both_empty": nan},
        "ap": {"both_empty": 0.0},
    },
    metrics=("recall", "precision", "ap", "context_recall", "context_precision"),
)

FUTUREAGI = Convention(
    name="futureagi",
    about="Future AGI's templates as documented; k defaults to the length of the list",
    gain="binary",
    exceptions={"ndcg": {"ideal": "returned"}, "ndcg@k": {"ideal": "k"}},
    metrics=("recall", "precision", "hit", "rr", "ap", "ndcg"),
)

FUTUREAGI_SERVER = replace(
    FUTUREAGI,
    name="futureagi-server",
    about="Future AGI's templates as the server computed them in 2026",
    precision_over="returned",
    ideal="returned",
    per_rank=("precision", "ap", "ndcg"),
    clamped=True,
    exceptions={},
)

REMEM = Convention(
    name="remem",
    about="REMem's retrieval evaluation",
    discount="log2_from_two",
    gain="binary",
    ideal="retrieved",
    per_rank=("ndcg",),
    empty_gold=0.0,
    rounding=4,
    metrics=("recall", "recall_all", "ndcg"),
)

LONGMEMEVAL = Convention(
    name="longmemeval",
    about="LongMemEval's retrieval evaluation: recall_any is hit",
    discount="log2_from_two",
    gain="binary",
    per_rank=("ndcg",),
    ties="given",
    scores="double",
    empty_gold=0.0,
    exceptions={"recall_all": {"empty_gold": 1.0}},
    metrics=("hit", "recall_all", "ndcg"),
)

EVIDENTLY = Convention(
    name="evidently",
    about="Evidently's ranking metrics, given the retrieved items; it excludes queries without a retrieved gold item",
    precision_over="returned",
    recall_over="retrieved",
    ap_over="retrieved",
    ideal="retrieved",
    per_rank=COUNTED,
    ties="given",
    scores="double",
    none_found=nan,
    metrics=("precision", "recall", "hit", "rr", "ap", "ndcg"),
)

AZURE = Convention(
    name="azure",
    about="Azure AI Evaluation's DocumentRetrievalEvaluator, with labels from 0 to 4 and only k = 3",
    gain="exponential",
    duplicates="last",
    order="score",
    ties="given",
    scores="double",
    empty_gold=0.0,
    nothing_judged=nan,
    refuses=("nothing_judged",),
    metrics=("ndcg",),
    cutoffs=(3,),
)

MULTIHOP_RAG = Convention(
    name="multihop-rag",
    about="MultiHop-RAG's Hits@4, Hits@10 and MRR@10; its MAP@10, here ap, is not average precision",
    ap_over="reachable",
    ap_counts="there",
    ties="given",
    scores="double",
    metrics=("hit", "rr", "ap"),
    cutoffs=(4, 10),
)

MUSIQUE = Convention(
    name="musique",
    about="MuSiQue's support metric: F1 and exact match of sets of paragraphs",
    ties="given",
    scores="double",
    empty_gold=0.0,
    both_empty=1.0,
    metrics=("set_em", "set_f1"),
)

HOTPOTQA = Convention(
    name="hotpotqa",
    about="HotpotQA's supporting facts: sp_em, sp_f1, sp_prec and sp_recall, not the joint metrics",
    precision_over="different",
    ties="given",
    scores="double",
    empty_gold=0.0,
    exceptions={"set_em": {"both_empty": 1.0}},
    metrics=("set_em", "set_f1", "precision", "recall"),
)

LOCOMO = Convention(
    name="locomo",
    about="LoCoMo's evidence recall over the whole context, which is 1 without evidence or without context",
    ties="given",
    scores="double",
    empty_gold=1.0,
    empty_retrieved=1.0,
    metrics=("recall",),
)

BROWSECOMP_PLUS = replace(
    TREC_EVAL,
    name="browsecomp-plus",
    about="BrowseComp-Plus: recall over all documents returned, citations, and trec_eval -c for retrievers",
    empty_gold=nan,
    nothing_judged=None,
    nothing_cited=nan,
    missing="zero",
    metrics=("recall", "ndcg", "citation_precision", "citation_recall"),
)

CONVENTIONS = {c.name: c for c in [STANDARD, *globals().values()] if isinstance(c, Convention)}
"""All conventions of this file by name, in the order of definition."""

RAGAS_WITHOUT_LLM = replace(RAGAS, name="ragas-compat", exceptions={"precision": RAGAS.exceptions["precision"]})
"""The convention of ragas' own classes in `compat/`, not listed: with both sides empty only precision is defined."""
