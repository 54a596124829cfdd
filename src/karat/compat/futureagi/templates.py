"""Templates of Future AGI: their evaluations by name, with the karat metric, judge and convention behind each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from karat.conventions import STANDARD, Convention
from karat.conventions.libraries import RAGAS_WITHOUT_LLM
from karat.errors import BadArgument, unknown

_OVER_RETURNED = replace(STANDARD, name="over-returned", precision_over="returned")


class Template(NamedTuple):
    """An evaluation of Future AGI, and the karat metric, judge and convention that it is."""

    name: str
    eval_id: int
    label: str
    """The first words of its reasons."""
    metric: str
    description: str
    judge: str = "exact"
    convention: Convention | None = None
    """Its definitions, if not those of the evaluator."""
    whole_list: bool = False
    """True if the reason names k only if k was given."""
    needs: tuple[str, ...] = ("hypothesis", "reference")
    output_type: str = "score"

    def as_row(self) -> dict[str, Any]:
        """Its row in the list of evaluations."""
        ranking = self.name in TEMPLATES
        kind = "CustomCodeEval" if ranking else "AgentEvaluator"
        config: dict[str, Any] = {
            "required_keys": list(self.needs), "output": self.output_type, "eval_type_id": kind
        }  # fmt: skip
        if ranking:
            k = {"type": "integer", "default": None, "nullable": True, "minimum": 1}
            config["function_params_schema"] = {"k": k}
        return {
            "id": str(uuid5(NAMESPACE_URL, f"karat:futureagi:{self.name}")),
            "name": self.name,
            "description": self.description,
            "eval_id": self.eval_id,
            "eval_tags": ["RAG", "RETRIEVAL"],
            "config": config,
            "criteria": self.description,
            "choices": None,
            "multi_choice": False,
            "owner": "system",
        }


TEMPLATES = {
    t.name: t
    for t in (
        Template("ndcg_at_k", 127, "NDCG", "ndcg", "Gold found, discounted by rank, relative to the ideal ranking."),
        Template("mrr", 128, "MRR", "rr", "One over the rank of the first relevant item.", whole_list=True),
        Template("hit_rate", 129, "Hit Rate", "hit", "1 if a relevant item was retrieved.", whole_list=True),
        Template("recall_at_k", 131, "Recall", "recall", "Share of the reference in the top k."),
        Template("precision_at_k", 132, "Precision", "precision", "Share of the top k that is in the reference."),
        Template(
            "mean_average_precision", 187, "MAP", "ap", "Mean precision at the ranks of the reference.", whole_list=True
        ),
        Template(
            "non_llm_context_precision", 192, "Non LLM Context Precision", "ap", "Average precision of similar texts.",
            judge="fuzzy(0.5, levenshtein)", convention=RAGAS_WITHOUT_LLM, whole_list=True,
        ),
        Template(
            "non_llm_context_recall", 193, "Non LLM Context Recall", "recall", "Share of the reference found.",
            judge="fuzzy(0.5, levenshtein, strict=True)", convention=RAGAS_WITHOUT_LLM, whole_list=True,
        ),
    )
}  # fmt: skip
"""Evaluations of a ranking."""
CONTEXT_TEMPLATES = {
    t.name: t
    for t in (
        Template(
            "chunk_attribution", 0, "Chunk Attribution", "chunk_attribution",
            "Share of the chunks that the response uses.",
            judge="claims", convention=_OVER_RETURNED, whole_list=True, needs=("context", "output"),
        ),
        Template(
            "chunk_utilization", 0, "Chunk Utilization", "chunk_utilization",
            "Share of a chunk that the response uses.",
            judge="claims", convention=_OVER_RETURNED, whole_list=True, needs=("context", "output"),
        ),
        Template(
            "context_relevance", 0, "Context Relevance", "precision",
            "Share of the chunks that are relevant to the question.",
            judge="relevance", convention=_OVER_RETURNED, whole_list=True, needs=("context", "input"),
        ),
    )
}  # fmt: skip
"""Evaluations of contexts, by a language model or by words."""
_ALL = TEMPLATES | CONTEXT_TEMPLATES


def listing() -> list[dict[str, Any]]:
    """The rows of all evaluations, as their service lists them."""
    return [template.as_row() for template in _ALL.values()]


def find_template(given: Any) -> Template:
    """The template of a name, or of an object or class with one."""
    name = given if isinstance(given, str) else getattr(given, "eval_name", getattr(given, "name", None))
    if not isinstance(name, str):
        raise BadArgument("an evaluation must be given by its name", got=given, hint='"recall_at_k"')
    if name not in _ALL:
        raise unknown("evaluation", name, _ALL, "one of: " + ", ".join(_ALL))
    return _ALL[name]
