"""Azure AI Evaluation takes labels from 0 to 4 and scores; k is 3, whatever one would like."""

from functools import partial

from azure.ai.evaluation import DocumentRetrievalEvaluator

PACKAGE = "azure-ai-evaluation"
EVALUATE = DocumentRetrievalEvaluator()


def columns(query, ks):
    scores = query["scores"] or range(len(query["retrieved"]), 0, -1)
    return {"ndcg@3": partial(one, query["gold"], zip(query["retrieved"], scores, strict=True))}


def one(gold, retrieved):
    return EVALUATE(
        retrieval_ground_truth=[{"document_id": doc, "query_relevance_label": grade} for doc, grade in gold.items()],
        retrieved_documents=[{"document_id": doc, "relevance_score": float(score)} for doc, score in retrieved],
    )["document_retrieval_properties"]["ndcg@3"]
