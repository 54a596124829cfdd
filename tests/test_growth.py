"""Time grows in proportion to the data, for hostile texts too: a small version of `python -m benchmarks.growth`.

The processor time of two sizes is compared, and the bound is far from both linear and quadratic time.
"""

from __future__ import annotations

from functools import partial

import pytest
from benchmarks.growth import TEXTS, Growth, Operation, measure, operations

from karat._internal.overlap import coverage
from karat.judges.lexical import Words
from karat.judges.text import FOLDS
from karat.judges.tokens import sentences

SIZES = (2_000, 32_000)
GENEROUS = 1.5
OPERATIONS = {operation.name: operation for operation in operations()}
CASES = (
    ("prose", "nearly equal"),
    ("prose", "many of both"),
    ("spaces and words", "both"),
    ("dots and spaces", "one chunk"),
    ("combining marks", "one gold text"),
    ("one letter", "nearly equal"),
    ("Chinese", "many queries"),
)
PAIRS = {"fuzzy"}
"""Judges that compare every gold item with every retrieved item, as documented."""
FUNCTIONS = {
    "sentences": sentences,
    **FOLDS,
    "words": lambda text: Words([text]).support(f"else {text[:500]}"),
    "coverage": lambda text: coverage(f"else {text[:4_000]}", [text]),
}


def slow(operation, text, shape):
    """The growth, if it is far from linear in each of two measurements: a noisy machine slows one of them."""
    growth = measure(operation, text, shape, SIZES)
    if growth.exponent > GENEROUS:
        growth = growth.better(operation)
    return [growth] if growth.exponent > GENEROUS else []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_a_text(name):
    operation = Operation(name, lambda samples, text: partial(FUNCTIONS[name], text))
    assert not [one for text in TEXTS for one in slow(operation, text, "one chunk")]


@pytest.mark.parametrize("name", OPERATIONS)
def test_judges_and_analyses(name):
    cases = [case for case in CASES if name not in PAIRS or case[1] not in ("many of both", "nearly equal")]
    assert not [one for case in cases for one in slow(OPERATIONS[name], *case)]


@pytest.mark.parametrize(
    ("seconds", "exponent"),
    [([0.1, 1, 10], (1, 1)), ([0.1, 10, 1000], (2, 2)), ([0.1, 0.2, 20], (1.15, 2)), ([1, 1, 1], (0, 0))],
)
def test_exponents(seconds, exponent):
    growth = Growth("save", "prose", "both", [10_000, 100_000, 1_000_000], seconds)
    assert (growth.exponent, growth.steepest) == pytest.approx(exponent, abs=0.01)
    assert growth.met == (exponent[1] < 2)
