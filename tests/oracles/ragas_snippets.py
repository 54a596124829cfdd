"""Calls that programs for ragas make, as they are written there; `from ragas` becomes `from karat.compat.ragas`."""

from __future__ import annotations

from oracles.ragas_data_snippets import DATA
from oracles.ragas_llm_snippets import BY_LLM

PRELUDE = """
ROW = {
    "user_input": "what fell in leeds",
    "retrieved_contexts": ["the tram goes far", "what fell in LEEDS today was rain", "the museum is closed"],
    "reference": "rain fell in LEEDS. snow fell in YORK.",
    "response": "rain fell in LEEDS. the museum is closed.",
}
RECALL = {name: ROW[name] for name in ("user_input", "retrieved_contexts", "reference")}
WITHOUT = {name: ROW[name] for name in ("user_input", "retrieved_contexts", "response")}

def client():
    import openai
    quick = openai.DefaultAsyncHttpxClient(verify=False)  # no certificates to load
    return openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0, http_client=quick)

def llm(kind="good"):
    from ragas.llms import llm_factory
    return llm_factory(kind, client=client())

def wrapped(kind="good"):
    from langchain_openai import ChatOpenAI
    from ragas.llms import LangchainLLMWrapper
    # langchain_openai shares connections between models of the same settings, also with loops that are closed
    own = {"timeout": 20 + next(number) / 1000}
    return LangchainLLMWrapper(ChatOpenAI(model=kind, base_url=server.url, api_key="k", max_retries=0, **own))

def texts(retrieved, reference):
    from ragas import SingleTurnSample
    return SingleTurnSample(retrieved_contexts=retrieved, reference_contexts=reference)

def ids(retrieved, reference):
    from ragas import SingleTurnSample
    return SingleTurnSample(retrieved_context_ids=retrieved, reference_context_ids=reference)

"""

IMPORTS = [
    "from ragas import EvaluationDataset, SingleTurnSample, evaluate",
    "from ragas import aevaluate",
    "from ragas import RunConfig",
    "from ragas import Dataset, experiment",
    "from ragas import MultiTurnSample",
    "from ragas.dataset_schema import EvaluationDataset, EvaluationResult, SingleTurnSample",
    "from ragas.evaluation import evaluate",
    "from ragas.run_config import RunConfig",
    "from ragas.llms import llm_factory",
    "from ragas.llms import LangchainLLMWrapper",
    "from ragas.llms import LlamaIndexLLMWrapper",
    "from ragas.llms.base import llm_factory",
    "from ragas.cache import DiskCacheBackend",
    "from ragas.embeddings import LangchainEmbeddingsWrapper",
    "from ragas.testset import TestsetGenerator",
    "from ragas.metrics import Faithfulness, ResponseRelevancy",
    "from ragas.metrics import LLMContextRecall, LLMContextPrecisionWithReference, LLMContextPrecisionWithoutReference",
    "from ragas.metrics import ContextRecall, ContextPrecision, ContextUtilization",
    "from ragas.metrics import context_recall, context_precision",
    "from ragas.metrics import ContextEntityRecall, ContextRelevance, NoiseSensitivity",
    "from ragas.metrics import context_entity_recall",
    "from ragas.metrics import NonLLMContextRecall, NonLLMContextPrecisionWithReference",
    "from ragas.metrics import IDBasedContextRecall, IDBasedContextPrecision",
    "from ragas.metrics import DistanceMeasure, ExactMatch, NonLLMStringSimilarity, StringPresence",
    "from ragas.metrics import MetricResult",
    "from ragas.metrics.base import Metric, MetricWithLLM, SingleTurnMetric",
    "from ragas.metrics.result import MetricResult",
    "from ragas.metrics.collections import ContextRecall, ContextPrecision, ContextUtilization",
    "from ragas.metrics.collections import ContextPrecisionWithReference, ContextPrecisionWithoutReference",
    "from ragas.metrics.collections import ContextEntityRecall, ContextRelevance, NoiseSensitivity",
    "from ragas.metrics.collections import ExactMatch, NonLLMStringSimilarity, StringPresence",
    "from ragas.metrics.collections import AnswerRelevancy, Faithfulness",
    "import ragas",
]

_RECALL = "from ragas.metrics import NonLLMContextRecall\n"
_PRECISION = "from ragas.metrics import NonLLMContextPrecisionWithReference\n"
_IDS = "from ragas.metrics import IDBasedContextRecall as R, IDBasedContextPrecision as P\n"
_STRINGS = "from ragas.metrics import DistanceMeasure, ExactMatch, NonLLMStringSimilarity, StringPresence\n"
_PAIR = "from ragas import SingleTurnSample\npair = SingleTurnSample(reference='kitten', response='sitting kitten')\n"
_OWN = """
class Mine:
    name = "mine"
    async def single_turn_ascore(self, sample, callbacks=None):
        return 0.9 if sample.reference[0] == sample.response[0] else 0.1
"""
_SUBCLASS = """
from dataclasses import dataclass, field
from ragas.metrics.base import MetricType, SingleTurnMetric

@dataclass
class Mine(SingleTurnMetric):
    name: str = "mine"
    _required_columns: dict = field(default_factory=lambda: {MetricType.SINGLE_TURN: {"reference", "response"}})
    def init(self, run_config):
        pass
    async def _single_turn_ascore(self, sample, callbacks):
        return float(sample.reference == sample.response)
"""

WITHOUT_LLM = {
    "ids: recall": _IDS + "return await R().single_turn_ascore(ids(['a', 'b'], ['a', 'c']))",
    "ids: recall, sync": _IDS + "return R().single_turn_score(ids(['a', 'b'], ['a', 'c']))",
    "ids: precision": _IDS + "return await P().single_turn_ascore(ids(['a', 'b', 'a'], ['a', 'c']))",
    "ids: numbers and strings": _IDS + "return await R().single_turn_ascore(ids([1, 2], ['1', '3']))",
    "ids: no references": _IDS + "return [await M().single_turn_ascore(ids(['a'], [])) for M in (R, P)]",
    "ids: nothing retrieved": _IDS + "return [await M().single_turn_ascore(ids([], ['a'])) for M in (R, P)]",
    "ids: field missing": _IDS + "return await R().single_turn_ascore(texts(['a'], ['a']))",
    "ids: name": _IDS + "return [R().name, P().name, R(name='mine').name]",
    "ids: required columns": _IDS + "return R().required_columns",
    "texts: recall": _RECALL + "return await NonLLMContextRecall().single_turn_ascore(texts(['abc'], ['abd', 'xyz']))",
    "texts: precision": _PRECISION
    + "return await NonLLMContextPrecisionWithReference().single_turn_ascore(texts(['xyz', 'abc'], ['abd']))",
    "texts: threshold": _RECALL
    + "return [await NonLLMContextRecall(threshold=t).single_turn_ascore(texts(['abc'], ['abd'])) for t in (0.5, 0.7)]",
    "texts: recall, nothing retrieved": _RECALL
    + "return await NonLLMContextRecall().single_turn_ascore(texts([], ['abc']))",
    "texts: recall, no references": _RECALL
    + "return await NonLLMContextRecall().single_turn_ascore(texts(['abc'], []))",
    "texts: precision, no references": _PRECISION
    + "return await NonLLMContextPrecisionWithReference().single_turn_ascore(texts(['abc'], []))",
    "texts: precision, neither": _PRECISION
    + "return await NonLLMContextPrecisionWithReference().single_turn_ascore(texts([], []))",
    "texts: measure set later": _RECALL
    + _STRINGS
    + "m = NonLLMContextRecall()\nm.distance_measure = DistanceMeasure.JARO_WINKLER\n"
    + "return [await m.single_turn_ascore(texts(['abcd'], ['abdc'])), m.distance_measure.distance_measure.value]",
    "texts: _distance_measure": _RECALL
    + _STRINGS
    + "m = NonLLMContextRecall(_distance_measure=NonLLMStringSimilarity(distance_measure=DistanceMeasure.HAMMING))\n"
    + "return await m.single_turn_ascore(texts(['abcd'], ['abdc', 'abcd']))",
    "texts: presence as measure of recall": _RECALL
    + _STRINGS
    + "m = NonLLMContextRecall(_distance_measure=StringPresence())\n"
    + "return await m.single_turn_ascore(texts(['ab'], ['xabx', 'b']))",
    "texts: presence as measure of precision": _PRECISION
    + _STRINGS
    + "m = NonLLMContextPrecisionWithReference(distance_measure=StringPresence())\n"
    + "return await m.single_turn_ascore(texts(['no', 'ab'], ['xabx']))",
    "texts: a measure of one's own": _PRECISION
    + _OWN
    + "m = NonLLMContextPrecisionWithReference(distance_measure=Mine())\n"
    + "return await m.single_turn_ascore(texts(['xa', 'ab'], ['ac']))",
    "texts: a measure that subclasses": _RECALL
    + _SUBCLASS
    + "m = NonLLMContextRecall(_distance_measure=Mine())\n"
    + "return await m.single_turn_ascore(texts(['a', 'b'], ['b', 'c']))",
    "texts: a model as measure": _PRECISION
    + "from ragas.metrics import LLMContextRecall\n"
    + "return NonLLMContextPrecisionWithReference(distance_measure=LLMContextRecall())",
    "texts: threshold above 1": _RECALL + "return NonLLMContextRecall(threshold=2).threshold",
    "strings: similarity": _STRINGS + _PAIR + "return await NonLLMStringSimilarity().single_turn_ascore(pair)",
    "strings: similarity, jaro": _STRINGS
    + _PAIR
    + "return await NonLLMStringSimilarity(distance_measure=DistanceMeasure.JARO).single_turn_ascore(pair)",
    "strings: presence and equality": _STRINGS
    + _PAIR
    + "return [await m.single_turn_ascore(pair) for m in (StringPresence(), ExactMatch())]",
    "strings: names": _STRINGS + "return [m().name for m in (StringPresence, ExactMatch, NonLLMStringSimilarity)]",
    "strings: collections": "from ragas.metrics.collections import NonLLMStringSimilarity, StringPresence\n"
    + "return [await m().ascore(reference='ab', response='abc') for m in (NonLLMStringSimilarity, StringPresence)]",
    "strings: positional": "from ragas.metrics.collections import StringPresence\n"
    + "return await StringPresence().ascore('ab', 'abc')",
    "strings: missing": _STRINGS
    + "from ragas import SingleTurnSample\nreturn await ExactMatch().single_turn_ascore(SingleTurnSample(reference='a'))",
    "result: number": "from ragas.metrics import MetricResult\n"
    + "r = MetricResult(value=0.5, reason='why')\nreturn [r.value, r.reason, r + 1, 2 * r, r == 0.5, r > 0.25, float(r)]",
    "result: to_dict": "from ragas.metrics import MetricResult\nreturn MetricResult(value=0.5, reason='why').to_dict()",
    "result: rounded": "from ragas.metrics import MetricResult\nreturn round(MetricResult(value=0.25), 1)",
    "result: a text": "from ragas.metrics import MetricResult\nreturn MetricResult(value='pass').value",
}

SNIPPETS = {
    **{f"import: {line.removeprefix('from ')}": f"{line}\nreturn 'imported'" for line in IMPORTS},
    **WITHOUT_LLM,
    **BY_LLM,
    **DATA,
}
