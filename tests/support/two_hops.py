"""Samples with two steps and two hops each."""

from __future__ import annotations

TWO_HOPS = [
    {
        "id": "q1",
        "query": "Which river flows through the birthplace of Kafka?",
        "steps": [
            {"query": "birthplace of Kafka", "retrieved": ["kafka", "a1", "a2"], "latency": 200, "name": "first"},
            {"query": "river in Prague", "retrieved": ["a1", "vltava", "b1"], "latency": 400, "name": "second"},
        ],
        "gold": [{"id": "kafka", "text": "kafka", "hop": 1}, {"id": "vltava", "text": "vltava", "hop": 2}],
        "topic": "rivers",
    },
    {
        "id": "q2",
        "steps": [{"retrieved": ["x", "y"], "name": "first"}, {"retrieved": ["x"], "name": "second"}],
        "gold": [{"id": "y", "text": "y", "hop": 1}, {"id": "z", "text": "z", "hop": 2}],
        "topic": "towns",
    },
]
