"""The examples with LangChain and LangSmith, run as programs, and the code of their page."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langsmith import Client
from langsmith.schemas import Example

from frameworks.programs import output_of, run_page


def test_langchain(tmp_path):
    lines = output_of("with_langchain.py", tmp_path)
    assert [line.split()[:2] for line in lines[2:5]] == [["recall@1", "0.500"], ["recall@2", "0.667"], ["rr", "0.667"]]


def test_langsmith(tmp_path):
    lines = output_of("with_langsmith.py", tmp_path)[-7:]
    assert lines == [
        "when are refunds paid [1.0, 1.0, 1.0]",
        "what is free [0.0, 0.0, 0.0]",
        "two weeks [0.5, 1.0, 1.0]",
        "why [None, None, None]",
        "recall@1 mean   0.500  3 queries, 1 undefined",
        "recall@2 mean   0.667  3 queries, 1 undefined",
        "rr mean         0.667  3 queries, 1 undefined",
    ]


def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gold.jsonl").write_text('{"query": "refunds", "gold": ["a"]}\n{"query": "hours", "gold": ["b"]}\n')
    documents = [Document(id="b", page_content="nine to five"), Document(id="a", page_content="two weeks")]
    client = Client(api_key="none", api_url="http://127.0.0.1:9", auto_batch_tracing=False)
    made = run_page(
        "langchain.md",
        "langchain",
        retriever=RunnableLambda(lambda query: documents),
        target=lambda inputs: {"documents": documents},
        data=[Example(id=uuid4(), inputs={"question": "refunds"}, outputs={"gold": ["a"]})],
        settings={"client": client, "upload_results": False},
    )
    assert made["run"].mean["rr"] == 0.75
    (row,) = made["results"]
    assert [one.key for one in row["evaluation_results"]["results"]] == ["recall@5", "ndcg@10"]
    assert made["results"]._summary_results["results"][0].score == 1
