"""Calls of ragas' metrics that ask a model; the name of the model says how it behaves."""

from __future__ import annotations

_C = "from ragas.metrics import collections as c\n"
_M = "import ragas.metrics as m\nfrom ragas import SingleTurnSample\nsample = SingleTurnSample(**ROW)\n"
_BEFORE = "before = server.count\n"
_COUNT = "return [score, server.count - before]"
MODERN = {
    "ContextRecall": "RECALL",
    "ContextPrecision": "RECALL",
    "ContextPrecisionWithReference": "RECALL",
    "ContextPrecisionWithoutReference": "WITHOUT",
    "ContextUtilization": "WITHOUT",
    "ContextRelevance": "{n: ROW[n] for n in ('user_input', 'retrieved_contexts')}",
    "ContextEntityRecall": "{n: ROW[n] for n in ('reference', 'retrieved_contexts')}",
    "NoiseSensitivity": "ROW",
}
LEGACY = (
    "LLMContextRecall", "ContextRecall", "LLMContextPrecisionWithReference", "LLMContextPrecisionWithoutReference",
    "ContextPrecision", "ContextUtilization", "ContextRelevance", "ContextEntityRecall", "NoiseSensitivity",
)  # fmt: skip

BY_LLM = {
    **{
        f"collections: {name}": f"{_C}return await c.{name}(llm=llm()).ascore(**{fields})"
        for name, fields in MODERN.items()
    },
    **{f"legacy: {name}": f"{_M}return await m.{name}(llm=wrapped()).single_turn_ascore(sample)" for name in LEGACY},
    **{f"collections: name of {name}": f"{_C}return c.{name}(llm=llm()).name" for name in MODERN},
    **{f"legacy: name of {name}": f"{_M}return m.{name}().name" for name in LEGACY},
    **{f"collections: {name} without a model": f"{_C}return c.{name}().name" for name in MODERN},
    "collections: a number as model": _C + "return c.ContextRecall(llm=5).name",
    "collections: None as model": _C + "return c.ContextRecall(llm=None).name",
    "collections: a wrapper as model": _C + "return c.ContextRecall(llm=wrapped()).name",
    "collections: recall, positional": _C
    + "return await c.ContextRecall(llm=llm()).ascore(ROW['user_input'], ROW['retrieved_contexts'], ROW['reference'])",
    "collections: precision, positional": _C
    + "return await c.ContextPrecision(llm=llm()).ascore(ROW['user_input'], ROW['reference'], ROW['retrieved_contexts'])",
    "collections: noise, positional": _C
    + "return await c.NoiseSensitivity(llm=llm()).ascore(\n"
    + "    ROW['user_input'], ROW['response'], ROW['reference'], ROW['retrieved_contexts'])",
    "collections: noise, irrelevant": _C
    + "return await c.NoiseSensitivity(llm=llm(), mode='irrelevant').ascore(**ROW)",
    "collections: noise, wrong and right in one context": _C
    + "return await c.NoiseSensitivity(llm=llm()).ascore(\n"
    + "    **{**ROW, 'retrieved_contexts': ['rain fell in LEEDS and the museum is closed', 'the tram']})",
    "collections: noise, unknown mode": _C + "return c.NoiseSensitivity(llm=llm(), mode='other').mode",
    "collections: sync score": _C + "return c.ContextRecall(llm=llm()).score(**RECALL)",
    "collections: sync score in a loop": _C
    + "import asyncio\nawait asyncio.sleep(0)\nreturn c.ContextRecall(llm=llm()).score(**RECALL)",
    "collections: batch": _C + "return await c.ContextRecall(llm=llm()).abatch_score([RECALL, RECALL])",
    "collections: sync batch": _C + "return c.ContextRecall(llm=llm()).batch_score([RECALL])",
    "collections: own name": _C + "return c.ContextRecall(llm=llm(), name='mine').name",
    "collections: unknown field": _C + "return await c.ContextRecall(llm=llm()).ascore(**RECALL, colour='red')",
    "collections: field missing": _C + "return await c.ContextRecall(llm=llm()).ascore(user_input='a', reference='b')",
    **{
        f"collections: empty {field}": f"{_C}return await c.ContextRecall(llm=llm()).ascore(**{{**RECALL, '{field}': {empty}}})"
        for field, empty in (("user_input", "''"), ("reference", "''"), ("retrieved_contexts", "[]"))
    },
    "collections: relevance of a blank question": _C
    + "return await c.ContextRelevance(llm=llm()).ascore(user_input=' ', retrieved_contexts=['a'])",
    "collections: relevance, context in the question": _C
    + "return await c.ContextRelevance(llm=llm()).ascore(user_input='who fell', retrieved_contexts=['fell'])",
    "collections: relevance, some words": _C
    + "return await c.ContextRelevance(llm=llm()).ascore(user_input='who fell', retrieved_contexts=['rain fell'])",
    "collections: entities, none in the reference": _C
    + "return await c.ContextEntityRecall(llm=llm()).ascore(reference='none', retrieved_contexts=['LEEDS'])",
    "collections: entities, nothing retrieved": _C
    + "return await c.ContextEntityRecall(llm=llm()).ascore(reference='in LEEDS', retrieved_contexts=[])",
    "collections: recall, no claims": _C
    + "return await c.ContextRecall(llm=llm()).ascore(user_input='a', retrieved_contexts=['b'], reference='.')",
    "collections: JSON in prose": _C + "return await c.ContextRecall(llm=llm('prose')).ascore(**RECALL)",
    "collections: JSON in a fenced block": _C + "return await c.ContextRecall(llm=llm('fenced')).ascore(**RECALL)",
    "collections: a model that fails": _C + "return await c.ContextRecall(llm=llm('bad')).ascore(**RECALL)",
    "collections: calls for recall": _C
    + _BEFORE
    + f"score = (await c.ContextRecall(llm=llm()).ascore(**RECALL)).value\n{_COUNT}",
    "collections: calls for precision": _C
    + _BEFORE
    + f"score = (await c.ContextPrecision(llm=llm()).ascore(**RECALL)).value\n{_COUNT}",
    "collections: calls for relevance": _C
    + _BEFORE
    + "score = (await c.ContextRelevance(llm=llm()).ascore('what fell', ['rain fell'])).value\n"
    + _COUNT,
    "collections: calls for noise": _C
    + _BEFORE
    + f"score = (await c.NoiseSensitivity(llm=llm()).ascore(**ROW)).value\n{_COUNT}",
    "collections: calls, the same again": _C
    + "metric = c.ContextRecall(llm=llm())\nawait metric.ascore(**RECALL)\n"
    + _BEFORE
    + f"score = (await metric.ascore(**RECALL)).value\n{_COUNT}",
    "collections: sync client": _C
    + "import openai\nfrom ragas.llms import llm_factory\n"
    + "other = openai.OpenAI(base_url=server.url, api_key='k', max_retries=0)\n"
    + "return c.ContextRecall(llm=llm_factory('good', client=other)).score(**RECALL)",
    "legacy: model set later": _M
    + "metric = m.LLMContextRecall()\nmetric.llm = wrapped()\nreturn await metric.single_turn_ascore(sample)",
    "legacy: without a model": _M + "return await m.LLMContextRecall().single_turn_ascore(sample)",
    "legacy: ready instance": _M
    + "from ragas.metrics import context_recall\ncontext_recall.llm = wrapped()\n"
    + "score = await context_recall.single_turn_ascore(sample)\ncontext_recall.llm = None\nreturn score",
    "legacy: a model of llm_factory": _M + "return await m.LLMContextRecall(llm=llm()).single_turn_ascore(sample)",
    "legacy: LangChain's model itself": _M
    + "return await m.LLMContextRecall(llm=wrapped().langchain_llm).single_turn_ascore(sample)",
    "legacy: required columns": _M
    + "return [m.LLMContextRecall().required_columns, m.NoiseSensitivity().required_columns]",
    "legacy: timeout": _M
    + "return await m.LLMContextRecall(llm=wrapped('slow')).single_turn_ascore(sample, timeout=0.2)",
    "legacy: timeout, in time": _M
    + "return await m.LLMContextRecall(llm=wrapped()).single_turn_ascore(sample, timeout=20)",
    "legacy: cancelled": _M
    + "import asyncio\n"
    + "return await asyncio.wait_for(m.LLMContextRecall(llm=wrapped('slow')).single_turn_ascore(sample), 0.2)",
    "legacy: JSON in prose": _M + "return await m.LLMContextRecall(llm=wrapped('prose')).single_turn_ascore(sample)",
    "legacy: a model that fails": _M + "return await m.LLMContextRecall(llm=wrapped('bad')).single_turn_ascore(sample)",
    "legacy: noise, unknown mode": _M + "return m.NoiseSensitivity(mode='other').mode",
    "legacy: unknown setting": _M + "return m.LLMContextRecall(colour='red').name",
    "legacy: nothing retrieved": _M
    + "return await m.LLMContextRecall(llm=wrapped()).single_turn_ascore(SingleTurnSample(**{**ROW, 'retrieved_contexts': []}))",
    "legacy: relevance, nothing retrieved": _M
    + "return await m.ContextRelevance(llm=wrapped()).single_turn_ascore(SingleTurnSample(**{**ROW, 'retrieved_contexts': []}))",
    "legacy: field missing": _M
    + "return await m.NoiseSensitivity(llm=wrapped()).single_turn_ascore(SingleTurnSample(**RECALL))",
}
