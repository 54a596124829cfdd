"""The claims of docs/migrate/ragas.md that no other test of ragas' interface makes."""

from __future__ import annotations

import re
import sys
from inspect import signature
from math import isnan
from pathlib import Path
from types import ModuleType, SimpleNamespace

import openai
import pytest

from karat.compat.ragas import ContextRecall, Dataset, RunConfig, evaluate, llm_factory
from karat.compat.ragas.llms import LangchainLLMWrapper
from karat.compat.ragas.metrics import LLMContextRecall
from support.in_words import ROW, spoken
from support.scripted import Scripted, script
from support.server import Act, Server

PAGE = (Path(__file__).parents[2] / "docs" / "migrate" / "ragas.md").read_text("utf-8")
UNTESTED = re.findall(r"```python no test\n(.*?)```", PAGE, re.DOTALL)
pytestmark = pytest.mark.usefixtures("own_cache")


class ChatOpenAI:
    """LangChain's class, as the page calls it."""

    temperature = None

    def __init__(self, model):
        self.model_name = model

    async def ainvoke(self, messages, config=None, **extra):
        return SimpleNamespace(content=spoken("\n\n".join(content for _, content in messages)))


def test_the_programs_that_need_a_model_run(monkeypatch, capsys):
    """The page says in a comment what each prints."""
    langchain = ModuleType("langchain_openai")
    vars(langchain)["ChatOpenAI"] = ChatOpenAI
    monkeypatch.setitem(sys.modules, "langchain_openai", langchain)
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert len(UNTESTED) == 2
    with Server(script) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for program in UNTESTED:
            exec(compile(program, "page", "exec"), {})
            expected = re.search(r"print\(.*\)  # (.*)", program)[1]
            assert capsys.readouterr().out.split() == expected.split()


def test_every_parameter_of_evaluate_is_in_the_table():
    section = PAGE.partition("## `evaluate`")[2].partition("\n## ")[0]
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)))
    assert set(listed) == set(signature(evaluate).parameters) - {"dataset", "_run_id"}


def test_calls_per_request():
    for status, calls in ((500, 5), (400, 1)):
        with Server(lambda call, status=status: Act(status=status, content="no")) as server:
            metric = LLMContextRecall(llm=server.model(key_env="NONE"), backoff=0.001)
            assert isnan(metric.batch_score([ROW])[0])
            assert server.count == calls


def test_nothing_exceeds_1():
    def doubled(kind, reported):
        return {"claims": [{**claim, "verdict": 2} for claim in reported["claims"]]}

    result = LLMContextRecall(llm=(model := Scripted(doubled)), cache=None, backoff=0.001).batch_score([ROW])[0]
    assert isnan(result)
    assert len(model.sent) == 5, "requested again"


@pytest.mark.parametrize(
    ("setting", "calls"), [({"max_retries": 1}, 2), ({"max_retries": 0}, 1), ({"timeout": 0.1}, 1)]
)
def test_attempts_and_time_of_llm_factory(setting, calls):
    delay = 5 if "timeout" in setting else 0
    given = {"max_retries": 0, **setting}
    with Server(lambda call: Act(status=500, content="no", delay=delay)) as server:
        llm = llm_factory("m", client=openai.AsyncOpenAI(base_url=server.url, api_key="x"), **given)
        result = ContextRecall(llm=llm, backoff=0.001).batch_score([ROW])[0]
        assert isnan(result)
        assert ("timed out" in result.reason) == ("timeout" in setting)
        assert server.count == calls


def test_fields_of_run_config_without_effect():
    plain, other = RunConfig(), RunConfig(max_wait=1, exception_types=ValueError, log_tenacity=True, seed=1)
    assert plain.settings() == other.settings()
    with_config = LangchainLLMWrapper(ChatOpenAI("m"), RunConfig(max_workers=3))
    assert LLMContextRecall(llm=with_config).settings["concurrency"] == 3
    with_config.set_run_config(RunConfig(max_workers=4))
    assert LLMContextRecall(llm=with_config).settings["concurrency"] == 4


def test_adapters_make_no_difference():
    client = openai.AsyncOpenAI(api_key="x")
    names = {llm_factory("m", client=client, adapter=adapter).name for adapter in ("auto", "instructor", "litellm")}
    assert len(names) == 1


def test_csv_files_hold_every_field(tmp_path):
    Dataset("t", "local/csv", root_dir=str(tmp_path), data=[{"a": 1}, {"b": 2}]).save()
    assert list(Dataset.load("t", "local/csv", root_dir=str(tmp_path))) == [{"a": "1", "b": ""}, {"a": "", "b": "2"}]
