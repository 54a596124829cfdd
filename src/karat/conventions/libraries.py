"""The conventions of other libraries, each as its installed version behaves: one record for each.

What is not said is as in STANDARD. tests/oracles runs the libraries beside these records.
"""

from __future__ import annotations

from dataclasses import replace
from math import nan

from karat.conventions.convention import COUNTED, STANDARD, Convention

_TREC = ("recall", "precision", "hit", "rr", "ap", "ndcg", "r_precision", "bpref")

TREC_EVAL = Convention(
    name="trec_eval",
    about="trec_eval 9 and pytrec_eval. A ranking with duplicates is an error there; they are removed here",
    duplicates="remove",
    empty_gold=0.0,
    nothing_judged=nan,
    missing="drop",
    metrics=_TREC,
)

RANX = Convention(
    name="ranx",
    about="ranx, with Qrels and Run. Its order of ties is that of the run in short rankings, unspecified in long ones",
    duplicates="remove",
    ties="given",
    scores="double",
    empty_gold=0.0,
    rbp_of="grade",
    metrics=("recall", "precision", "hit", "rr", "ap", "ndcg", "f1", "r_precision", "rbp"),
)

IR_MEASURES = replace(
    TREC_EVAL,
    name="ir-measures",
    about="ir-measures with its default providers; of an item that is returned twice the last score counts",
    duplicates="last",
    missing="zero",
    exceptions={"rr@k": {"ties": "id_ascending", "scores": "double"}},
)

_BEIR_OWN = {"ties": "given", "scores": "double", "nothing_judged": None, "missing": "zero"}

BEIR = Convention(
    name="beir",
    about="BEIR: EvaluateRetrieval.evaluate, and evaluate_custom for MRR, R_cap and accuracy",
    duplicates="remove",
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
    about="MTEB's retrieval tasks: pytrec_eval, and an MRR of its own",
    rounding=5,
    exceptions={"rr": {"scores": "double", "rounding": None}},
    metrics=("recall", "precision", "hit", "rr", "ap", "ndcg"),
)

SKLEARN = Convention(
    name="sklearn",
    about="scikit-learn's ndcg_score over the retrieved and the gold items, those not retrieved below all others",
    ties="averaged",
    scores="double",
    unretrieved="last",
    empty_gold=0.0,
    metrics=("ndcg",),
)

_WHATEVER_SCORE = {"above_zero": False}

TORCHMETRICS = Convention(
    name="torchmetrics",
    about="torchmetrics.retrieval, given the retrieved items; gold that was not retrieved is unknown to it",
    recall_over="retrieved",
    ap_over="found",
    ideal="retrieved",
    per_rank=COUNTED,
    ties="averaged",
    above_zero=True,
    empty_gold=0.0,
    empty_retrieved=nan,
    both_empty=nan,
    refuses=("empty_retrieved", "both_empty"),
    exceptions={"hit": _WHATEVER_SCORE, "ndcg": _WHATEVER_SCORE, "r_precision": _WHATEVER_SCORE},
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
    about="Haystack's document evaluators, given the first k documents; its recall in the default mode, single_hit",
    ideal="all",
    ties="given",
    scores="double",
    empty_gold=0.0,
    renames={"recall": "hit"},
    metrics=("recall", "rr", "ap", "ndcg"),
)

TRULENS = Convention(
    name="trulens",
    about="TruLens' GroundTruthAgreement, given chunks in order, without scores; without a k, their number is k",
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
    about="AutoRAG's retrieval metrics, given the first k ids, each gold item a group of its own",
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
    about="ragas without an LLM: its context recall and precision by ids, its context precision as ap",
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
    about="Future AGI's templates as they are documented; without a k, the length of the list is k",
    gain="binary",
    exceptions={"ndcg": {"ideal": "returned"}, "ndcg@k": {"ideal": "k"}},
    metrics=("recall", "precision", "hit", "rr", "ap", "ndcg"),
)

FUTUREAGI_SERVER = replace(
    FUTUREAGI,
    name="futureagi-server",
    about="Future AGI's templates as their server computes them in 2026",
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
    about="Evidently's ranking metrics, given the retrieved items; it leaves out queries of which nothing was found",
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
    about="Azure AI Evaluation's DocumentRetrievalEvaluator, labels from 0 to 4; it knows k = 3 alone",
    gain="exponential",
    duplicates="last",
    ties="given",
    scores="double",
    empty_gold=0.0,
    nothing_judged=nan,
    refuses=("nothing_judged",),
    metrics=("ndcg",),
    cutoffs=(3,),
)

CONVENTIONS: dict[str, Convention] = {
    c.name: c
    for c in (
        STANDARD, TREC_EVAL, RANX, IR_MEASURES, BEIR, MTEB, SKLEARN, TORCHMETRICS, MLFLOW, LLAMAINDEX, HAYSTACK,
        TRULENS, PHOENIX, CONTINUOUS_EVAL, AUTORAG, RAGAS, FUTUREAGI, FUTUREAGI_SERVER, REMEM, LONGMEMEVAL,
        EVIDENTLY, AZURE,
    )
}  # fmt: skip


_RAGAS = CONVENTIONS["ragas"]

WITHOUT_LLM = replace(_RAGAS, name="ragas-compat", exceptions={"precision": _RAGAS.exceptions["precision"]})
"""Without references and without anything retrieved ragas' context precision is 0, all its other metrics undefined."""
