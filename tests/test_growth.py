"""Time grows in proportion to the data, for hostile texts too: a small version of `python -m benchmarks.growth`.

Two sizes are measured in one run, and the bound is generous: it is exceeded by quadratic time that matters.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
from benchmarks.growth import SHAPES, TEXTS, Growth, Operation, measure, operations

from karat._internal.overlap import coverage
from karat.judges.lexical import Words
from karat.judges.text import FOLDS
from karat.judges.tokens import sentences

SIZES = (1_000, 16_000)
GENEROUS = 1.6
SOME = ("prose", "spaces", "combining marks")
OPERATIONS = {operation.name: operation for operation in operations()}
FUNCTIONS = {
    "sentences": sentences,
    **FOLDS,
    "words": lambda text: Words([text]).support(f"else {text[:500]}"),
    "coverage": lambda text: coverage(f"else {text[:4_000]}", [text]),
}


def slow(each: list[Growth]) -> list[Growth]:
    return [growth for growth in each if growth.exponent > GENEROUS]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_a_text(name):
    operation = Operation(name, lambda samples, text: partial(FUNCTIONS[name], text))
    assert not slow([measure(operation, text, "one chunk", SIZES) for text in TEXTS])


@pytest.mark.parametrize("name", OPERATIONS)
def test_judges_and_analyses(name):
    each = [measure(OPERATIONS[name], text, shape, SIZES) for text, shape in product(SOME, SHAPES)]
    assert any(growth.seconds and not growth.refused for growth in each)
    assert not slow(each)


@pytest.mark.parametrize(
    ("seconds", "exponent"),
    [([0.1, 1, 10], (1, 1)), ([0.1, 10, 1000], (2, 2)), ([0.1, 0.2, 20], (1.15, 2)), ([1, 1, 1], (0, 0))],
)
def test_exponents(seconds, exponent):
    growth = Growth("save", "prose", "both", [10_000, 100_000, 1_000_000], seconds)
    assert (growth.exponent, growth.steepest) == pytest.approx(exponent, abs=0.01)
    assert growth.met == (exponent[1] < 2)
