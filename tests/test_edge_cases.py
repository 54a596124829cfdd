"""The table of edge cases is correct and documented."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import karat
from karat.conventions import STANDARD
from karat.metrics import parse
from support.edge_cases import EDGES, MANY
from support.strategies import hits_of
from support.twins import Case


@pytest.mark.parametrize("edge", EDGES, ids=lambda e: e.name)
def test_edge(edge):
    run = karat.evaluate(retrieved=edge.retrieved, gold=edge.gold, metrics=list(edge.scores), judge=edge.judge)
    for name, wanted in edge.scores.items():
        assert run.mean[name] == pytest.approx(wanted, abs=1e-12, nan_ok=True), name
        assert bool(run.undefined[name]) == math.isnan(wanted)


@pytest.mark.parametrize("edge", MANY, ids=lambda e: e.name)
def test_many_to_many(edge):
    hits = hits_of([Case(edge.ranking, edge.satisfies, [1.0] * edge.gold)])
    for name, wanted in edge.scores.items():
        assert parse(name).scores(hits, STANDARD)[name][0] == pytest.approx(wanted, abs=1e-12), name


def test_every_edge_is_documented():
    page = (Path(__file__).parents[1] / "docs" / "edge-cases.md").read_text("utf-8")
    for edge in [*EDGES, *MANY]:
        assert edge.decision in page
