"""REMem's retrieval metrics: import them from `karat.compat.remem`; the calls stay the same."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any
from unicodedata import category, normalize

from karat.errors import BadArgument, InputError
from karat.pipeline import evaluate, score

_LOG = logging.getLogger(__name__)
_COMES_FROM = "contains(chunk_in_gold, strip=(date, speaker, json), fold=())"

_NOBODY = "\udfff"
"""A lone surrogate, which occurs in no text."""

Scores = dict[str, float]


def is_chunk_from_original(chunk: str, original: str) -> bool:
    """True if a chunk comes from a document, ignoring a date line, a speaker and JSON escapes."""
    return score("hit", [chunk], [original], judge=_COMES_FROM) == 1


class BaseMetric:
    """The base class of REMem's metrics, for custom metrics: a name, a configuration and no scores."""

    metric_name = "base"

    def __init__(self, global_config: Any = None) -> None:
        self.global_config = global_config

    def calculate_metric_scores(self, *args: Any, **settings: Any) -> tuple[Any, Any]:
        """The means and the scores of each example: none."""
        return {}, []


class _RetrievalMetric(BaseMetric):
    """The call, the keys and the result that all metrics share."""

    _metric: str
    _key: str
    _judge = _COMES_FROM

    def calculate_metric_scores(
        self,
        gold_docs: Sequence[Sequence[str]],
        retrieved_chunks: Sequence[Sequence[str]],
        k_list: Iterable[int] = (1, 5, 10, 20),
    ) -> tuple[Scores, list[Scores]]:
        """The means, rounded to four decimal places, and the scores of each example, not rounded."""
        ks = _cutoffs(k_list)
        gold, retrieved = _lists(gold_docs, "gold_docs"), _lists(retrieved_chunks, "retrieved_chunks")
        _check(gold, retrieved, ks[-1])
        keys = {f"{self._metric}@{k}": f"{self._key}@{k}" for k in ks}
        if not gold:
            return dict.fromkeys(keys.values(), 0.0), []
        run = evaluate(
            retrieved=self._retrieved(retrieved),
            gold=self._gold(gold),
            metrics=list(keys),
            judge=self._judge,
            convention="remem",
        )
        columns = {key: run.scores[name].tolist() for name, key in keys.items()}
        each = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {key: run.mean[name] for name, key in keys.items()}, each

    def _gold(self, gold_docs: list[list[str]]) -> list[Any]:
        return gold_docs

    def _retrieved(self, chunks: list[list[str]]) -> list[list[str]]:
        return chunks


class RetrievalRecall(_RetrievalMetric):
    """Share of the gold documents that are in the top k, compared exactly."""

    metric_name = "retrieval_recall"
    _metric, _key, _judge = "recall", "Recall", "exact"


class RetrievalRecallAny(_RetrievalMetric):
    """1 if a chunk of the top k comes from a gold document (LongMemEval's recall_any)."""

    metric_name = "retrieval_recall_any"
    _metric, _key = "hit", "Recall_any"


class RetrievalRecallAll(_RetrievalMetric):
    """1 if every gold document has a chunk in the top k."""

    metric_name = "retrieval_recall_all"
    _metric, _key = "recall_all", "Recall_all"

    def _gold(self, gold_docs: list[list[str]]) -> list[Any]:
        """In REMem a repeated document can never be satisfied: its copy becomes gold that no chunk matches."""
        return [[*dict.fromkeys(docs), *({"group": i, "text": _NOBODY} for i in _repeats(docs))] for docs in gold_docs]


class RetrievalNDCGAny(_RetrievalMetric):
    """nDCG: a chunk is relevant if it comes from any gold document; the first two ranks have the same weight."""

    metric_name = "retrieval_ndcg_any"
    _metric, _key = "ndcg", "NDCG_any"


class RetrievalRecallLocomo(_RetrievalMetric):
    """1 if a chunk of the top k contains the first message of a gold document, token by token, in any case.

    It is a hit rate, which REMem calls recall.
    """

    metric_name = "retrieval_recall_locomo"
    _metric, _key, _judge = "hit", "Recall", "contains(gold_in_chunk, fold=())"

    def _gold(self, gold_docs: list[list[str]]) -> list[Any]:
        each = [[_first_message(doc, number) for doc in docs] for number, docs in enumerate(gold_docs, 1)]
        return [[_tokens(text) or _NOBODY for text in texts] for texts in each]

    def _retrieved(self, chunks: list[list[str]]) -> list[list[str]]:
        return [[_tokens(_chunk(chunk, number)) for chunk in own] for number, own in enumerate(chunks, 1)]


_BETWEEN = "\x01"
"""Between two tokens: a control character, which is part of none."""


class _Tokenized(dict[int, str]):
    """Characters as they stand among tokens: letters, digits and marks form words, others are tokens of their own."""

    def __missing__(self, code: int) -> str:
        kind = category(chr(code))[0]
        self[code] = chr(code) if kind in "LNM" else _BETWEEN if kind in "ZC" else f"{_BETWEEN}{chr(code)}{_BETWEEN}"
        return self[code]


_TOKENIZED = _Tokenized()


def _tokens(text: str) -> str:
    """The decomposed tokens of a text in lower case, each between two separators; empty if there are none."""
    tokens = [token.lower() for token in normalize("NFD", text).translate(_TOKENIZED).split(_BETWEEN) if token]
    return _BETWEEN.join(["", *tokens, ""]) if tokens else ""


def _chunk(chunk: Any, example: int) -> str:
    if not isinstance(chunk, str):
        hint = '[["a", "b"], ["c"]]'
        raise InputError(f"retrieved_chunks: example {example} has a chunk that is no text", got=chunk, hint=hint)
    return chunk


def _first_message(document: str, example: int) -> str:
    """The content of the first message of a conversation in JSON."""
    try:
        content = json.loads(document)["messages"][0]["content"]
    except (ValueError, TypeError, LookupError, RecursionError):
        content = None
    if not isinstance(content, str):
        hint = '{"messages": [{"role": "user", "content": "…"}]}'
        raise InputError(f"gold_docs: example {example} has a text that is no conversation", got=document, hint=hint)
    return content


def _repeats(docs: Sequence[str]) -> range:
    return range(len(docs) - len(set(docs)))


def _cutoffs(k_list: Any) -> list[int]:
    ks = list(k_list) if isinstance(k_list, Iterable) else []
    if not ks or not all(isinstance(k, Integral) and not isinstance(k, bool) and int(k) >= 1 for k in ks):
        raise BadArgument("k_list must have whole numbers, at least 1", got=k_list, hint="[1, 5, 10, 20]")
    return sorted(set(map(int, ks)))


def _lists(rows: Any, name: str) -> list[list[str]]:
    """The texts of each example; a string instead of a list would be split into letters."""
    if isinstance(rows, str) or not isinstance(rows, Iterable):
        raise InputError(f"{name} must have a list of texts for each example", got=rows, hint='[["a", "b"], ["c"]]')
    lists = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, str) or not isinstance(row, Iterable):
            raise InputError(f"{name}: example {number} is not a list of texts", got=row, hint='[["a", "b"], ["c"]]')
        lists.append(list(row))
    return lists


def _check(gold_docs: list[list[str]], retrieved_chunks: list[list[str]], most: int) -> None:
    """Refuse sides of different length; warn about rankings that are shorter than the largest k."""
    if len(gold_docs) != len(retrieved_chunks):
        raise InputError(f"gold for {len(gold_docs)} examples, but {len(retrieved_chunks)} rankings")
    short = [len(chunks) for chunks in retrieved_chunks if len(chunks) < most]
    if short:
        _LOG.warning(
            "%d of %d rankings are shorter than the largest k, %d; the shortest has %d chunks",
            len(short), len(retrieved_chunks), most, min(short),
        )  # fmt: skip
