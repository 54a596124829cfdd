"""LangChain's documents as items."""

from __future__ import annotations

from langchain_core.documents import Document


def test_a_document_has_text_and_perhaps_an_id():
    assert Document(page_content="a", id="1").id == "1"
