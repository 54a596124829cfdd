"""Templates of Future AGI: their evaluations by name, with the karat metric, judge and convention behind each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import Any, ClassVar, NamedTuple, Never
from uuid import NAMESPACE_URL, uuid5

from karat.compat.futureagi.left_out import refuse
from karat.conventions import STANDARD, Convention
from karat.errors import BadArgument, unknown

_OVER_RETURNED = replace(STANDARD, name="over-returned", precision_over="returned")
_EVERY_COPY = replace(_OVER_RETURNED, name="every-copy", per_rank=("precision",))
_OF_REFERENCE = replace(_EVERY_COPY, name="of-reference", empty_gold=0.0, empty_retrieved=nan, both_empty=nan)
_TAGS = ("RAG", "Retrieval Systems", "NLP Metrics")


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
    """True if it takes no k in Future AGI: other parameters are ignored, and a reason names k only if k was given."""
    needs: tuple[str, ...] = ("hypothesis", "reference")
    output_type: str = "score"
    folded: bool = False
    """True if texts are compared without case and surrounding spaces, and a plain text is one item per line."""
    swapped: bool = False
    """True if the reference is the ranking: the share of its items that were retrieved."""
    tags: Sequence[str] = _TAGS[:2]

    @property
    def passes(self) -> bool:
        """True if its outputs are "Passed" and "Failed"."""
        return self.output_type == "Pass/Fail"

    def named(self, k: int | None) -> str:
        """The first words of a reason, with k if it was given."""
        return self.label if k is None else f"{self.label}@{k}"

    def metric_at(self, k: int | None) -> str:
        """The karat metric with a cutoff."""
        return self.metric if k is None else f"{self.metric}@{k}"

    def as_row(self) -> dict[str, Any]:
        """Its row in the list of evaluations."""
        config: dict[str, Any] = {"required_keys": list(self.needs), "output": self.output_type}
        config["eval_type_id"] = "AgentEvaluator" if self.name in CONTEXT_TEMPLATES else "CustomCodeEval"
        if not self.whole_list:
            k = {"type": "integer", "default": None, "nullable": True, "minimum": 1}
            config["function_params_schema"] = {"k": k}
        config["requiredKeys"] = config["required_keys"]
        return {
            "id": str(uuid5(NAMESPACE_URL, f"karat:futureagi:{self.name}")),
            "name": self.name,
            "description": self.description,
            "eval_id": self.eval_id,
            "eval_tags": list(self.tags),
            "evalTags": list(self.tags),
            "config": config,
            "criteria": self.description,
            "choices": ["Passed", "Failed"] if self.passes else None,
            "multi_choice": False,
            "owner": "system",
        }


TEMPLATES = {
    t.name: t
    for t in (
        Template(
            "ndcg_at_k", 127, "NDCG", "ndcg", "Gold found, discounted by rank, relative to the ideal ranking.",
            tags=_TAGS,
        ),
        Template("mrr", 128, "MRR", "rr", "One over the rank of the first relevant item.", whole_list=True, tags=_TAGS),
        Template("hit_rate", 129, "Hit Rate", "hit", "1 if a relevant item was retrieved.", whole_list=True),
        Template("recall_at_k", 131, "Recall", "recall", "Share of the reference in the top k.", tags=_TAGS),
        Template(
            "precision_at_k", 132, "Precision", "precision", "Share of the top k that is in the reference.", tags=_TAGS
        ),
        Template(
            "mean_average_precision", 187, "MAP", "ap", "Mean precision at the ranks of the reference.",
            whole_list=True, tags=_TAGS,
        ),
        Template(
            "non_llm_context_precision", 192, "Context Precision", "precision",
            "Share of the retrieved texts that are in the reference, except for case and surrounding spaces.",
            convention=_EVERY_COPY, whole_list=True, needs=("output", "expected"), folded=True,
        ),
        Template(
            "non_llm_context_recall", 193, "Context Recall", "precision",
            "Share of the reference texts that were retrieved, except for case and surrounding spaces.",
            convention=_OF_REFERENCE, whole_list=True, needs=("output", "expected"), folded=True, swapped=True,
        ),
    )
}  # fmt: skip
"""Evaluations of a ranking."""
CONTEXT_TEMPLATES = {
    t.name: t
    for t in (
        Template(
            "context_relevance", 9, "Context Relevance", "precision",
            "Share of the chunks that are relevant to the question.",
            judge="relevance", convention=_EVERY_COPY, whole_list=True, needs=("context", "input"),
        ),
        Template(
            "chunk_attribution", 11, "Chunk Attribution", "chunk_attribution",
            "Passed if the response uses any of the chunks.",
            judge="claims", convention=_OVER_RETURNED, whole_list=True, needs=("context", "output"),
            output_type="Pass/Fail",
        ),
        Template(
            "chunk_utilization", 12, "Chunk Utilization", "chunk_utilization(over=used)",
            "Share of their text that the response uses, of the chunks that it uses at all.",
            judge="claims", convention=_OVER_RETURNED, whole_list=True, needs=("context", "output"),
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


class EvalTemplate:
    """A template as a class, by which an evaluation can be given instead of by its name."""

    eval_id: ClassVar[str] = ""
    eval_name: ClassVar[str] = ""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = dict(config or {})

    def __repr__(self) -> str:
        return f"EvalTemplate(name={self.eval_name})"


class ContextRelevance(EvalTemplate):
    """The template `context_relevance`."""

    eval_id, eval_name = "9", "context_relevance"


class ChunkAttribution(EvalTemplate):
    """The template `chunk_attribution`."""

    eval_id, eval_name = "11", "chunk_attribution"


class ChunkUtilization(EvalTemplate):
    """The template `chunk_utilization`."""

    eval_id, eval_name = "12", "chunk_utilization"


def __getattr__(name: str) -> Never:
    refuse(__name__, name)
