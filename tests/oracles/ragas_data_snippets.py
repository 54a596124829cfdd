"""Calls of ragas' datasets, of `evaluate` and of experiments."""

from __future__ import annotations

_S = "from ragas import EvaluationDataset, SingleTurnSample\n"
_ROWS = "rows = [{'retrieved_context_ids': ['a'], 'reference_context_ids': ['a', 'b']}, ROW]\n"
_D = _S + "from ragas.metrics import IDBasedContextRecall\n" + _ROWS + "data = EvaluationDataset.from_list(rows[:1])\n"
_E = (
    _S
    + "from ragas import evaluate\nfrom ragas.metrics import IDBasedContextRecall, LLMContextRecall, context_recall\n"
)
_E += "data = EvaluationDataset.from_list([ROW])\n"
_IDS = (
    _E
    + "by_id = EvaluationDataset.from_list([{'retrieved_context_ids': ['a'], 'reference_context_ids': ['a', 'b']}])\n"
)
_V1 = "{'question': ROW['user_input'], 'contexts': ROW['retrieved_contexts'], 'ground_truth': ROW['reference']}"
_QUIET = "show_progress=False"

DATA = {
    "sample: fields": _S + "s = SingleTurnSample(**ROW)\nreturn [s.user_input, s.retrieved_contexts, s.rubrics]",
    "sample: to_dict": _S + "return SingleTurnSample(**ROW).to_dict()",
    "sample: get_features": _S + "return SingleTurnSample(**ROW).get_features()",
    "sample: model_dump": _S + "return SingleTurnSample(user_input='a').model_dump(exclude_none=True)",
    "sample: to_string": _S + "return SingleTurnSample(user_input='a').to_string()",
    "sample: model_copy": _S
    + "return SingleTurnSample(user_input='a').model_copy(update={'user_input': 'b'}).user_input",
    "sample: model_validate": _S + "return SingleTurnSample.model_validate({'user_input': 'a'}).user_input",
    "sample: model_dump_json": _S + "return SingleTurnSample(user_input='a').model_dump_json(exclude_none=True)",
    "sample: equality": _S + "return SingleTurnSample(user_input='a') == SingleTurnSample(user_input='a')",
    "sample: a number as question": _S + "return SingleTurnSample(user_input=5).user_input",
    "sample: a text as contexts": _S + "return SingleTurnSample(retrieved_contexts='a').retrieved_contexts",
    "dataset: length and features": _D + "return [len(data), sorted(data.features())]",
    "dataset: to_list": _D + "return data.to_list()",
    "dataset: to_pandas": _D + "return sorted(data.to_pandas().columns)",
    "dataset: item and slice": _D + "return [data[0].reference_context_ids, len(data[:1])]",
    "dataset: from_pandas": _D + "return EvaluationDataset.from_pandas(data.to_pandas()).to_list()",
    "dataset: jsonl": _D
    + "data.to_jsonl(folder + '/x.jsonl')\nreturn EvaluationDataset.from_jsonl(folder + '/x.jsonl').to_list()",
    "dataset: csv": _D + "data.to_csv(folder + '/x.csv')\nreturn len(open(folder + '/x.csv').readlines())",
    "dataset: get_sample_type": _D + "return data.get_sample_type().__name__",
    "dataset: iterated": _D + "return [s.reference_context_ids for s in data]",
    "dataset: printed": _D + "return repr(data)",
    "evaluate: ids": _IDS + f"return evaluate(by_id, [IDBasedContextRecall()], {_QUIET})",
    "evaluate: llm=": _E + f"return evaluate(data, metrics=[LLMContextRecall()], llm=wrapped(), {_QUIET})",
    "evaluate: llm by position": _E + f"return evaluate(data, [LLMContextRecall()], wrapped(), {_QUIET})",
    "evaluate: LangChain's model": _E
    + f"return evaluate(data, metrics=[LLMContextRecall()], llm=wrapped().langchain_llm, {_QUIET})",
    "evaluate: llm_factory's model": _E + f"return evaluate(data, metrics=[LLMContextRecall(llm=llm())], {_QUIET})",
    "evaluate: ready instances": _E + f"return evaluate(data, metrics=[context_recall], llm=wrapped(), {_QUIET})",
    "evaluate: RunConfig": _E
    + "from ragas import RunConfig\n"
    + f"return evaluate(data, [LLMContextRecall()], wrapped(), run_config=RunConfig(timeout=20, max_workers=2), {_QUIET})",
    "evaluate: batch_size": _E + f"return evaluate(data, [LLMContextRecall()], wrapped(), batch_size=1, {_QUIET})",
    "evaluate: a list": _IDS + f"return evaluate(by_id.to_list(), [IDBasedContextRecall()], {_QUIET})",
    "evaluate: a Hugging Face dataset": _IDS
    + f"from datasets import Dataset\nreturn evaluate(Dataset.from_list(by_id.to_list()), [IDBasedContextRecall()], {_QUIET})",
    "evaluate: columns of version 1": _E
    + f"from datasets import Dataset\nold = Dataset.from_list([{_V1}])\n"
    + f"return evaluate(old, [context_recall], wrapped(), {_QUIET})",
    "evaluate: column_map": _E
    + "from datasets import Dataset\nold = Dataset.from_list([{'q': 'x', 'i': ['a'], 'r': ['a', 'b']}])\n"
    + "names = {'retrieved_context_ids': 'i', 'reference_context_ids': 'r'}\n"
    + f"return evaluate(old, [IDBasedContextRecall()], column_map=names, {_QUIET})",
    "evaluate: a column is missing": _E + f"return evaluate(data, [IDBasedContextRecall()], {_QUIET})",
    "evaluate: no metrics": _E + f"return evaluate(data, metrics=[], {_QUIET})",
    "evaluate: a collections metric": _E
    + "from ragas.metrics.collections import ContextRecall\n"
    + f"return evaluate(data, metrics=[ContextRecall(llm=llm())], {_QUIET})",
    "evaluate: a model that fails": _E
    + "from ragas import RunConfig\nonce = RunConfig(max_retries=1)\n"
    + f"return evaluate(data, [LLMContextRecall()], wrapped('bad'), run_config=once, {_QUIET})",
    "evaluate: raise_exceptions": _E
    + "from ragas import RunConfig\nonce = RunConfig(max_retries=1)\n"
    + f"return evaluate(data, [LLMContextRecall()], wrapped('bad'), run_config=once, raise_exceptions=True, {_QUIET})",
    "evaluate: one column of the result": _IDS
    + f"return evaluate(by_id, [IDBasedContextRecall()], {_QUIET})['id_based_context_recall']",
    "evaluate: the result as a frame": _IDS
    + f"return list(evaluate(by_id, [IDBasedContextRecall()], {_QUIET}).to_pandas()['id_based_context_recall'])",
    "evaluate: the result printed": _IDS + f"return repr(evaluate(by_id, [IDBasedContextRecall()], {_QUIET}))",
    "evaluate: return_executor": _IDS
    + f"return evaluate(by_id, [IDBasedContextRecall()], return_executor=True, {_QUIET}) is not None",
    "evaluate: awaited": _IDS
    + f"from ragas import aevaluate\nreturn await aevaluate(by_id, [IDBasedContextRecall()], {_QUIET})",
    "evaluate: a metric of one's own": """
from dataclasses import dataclass, field
from ragas import EvaluationDataset, evaluate
from ragas.metrics.base import MetricType, SingleTurnMetric

@dataclass
class Length(SingleTurnMetric):
    name: str = "length"
    _required_columns: dict = field(default_factory=lambda: {MetricType.SINGLE_TURN: {"response"}})
    def init(self, run_config):
        pass
    async def _single_turn_ascore(self, sample, callbacks):
        return float(len(sample.response))

return evaluate(EvaluationDataset.from_list([{"response": "four"}, {"response": "seven.."}]), [Length()], show_progress=False)
""",
    "RunConfig: defaults": "from ragas import RunConfig\nr = RunConfig()\nreturn [r.timeout, r.max_retries, r.max_workers]",
    "experiment: on a dataset": """
from ragas import Dataset, experiment
from ragas.metrics.collections import ContextRecall
table = Dataset(name="t", backend="inmemory")
table.append({"question": ROW["user_input"], "want": ROW["reference"]})

@experiment()
async def run(row):
    score = await ContextRecall(llm=llm()).ascore(
        user_input=row["question"], retrieved_contexts=ROW["retrieved_contexts"], reference=row["want"])
    return {**row, "recall": score.value}

done = await run.arun(table, name="first", backend="inmemory")
return [row["recall"] for row in done]
""",
}
