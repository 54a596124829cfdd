"""How alike two texts are, from 0 to 1: rapidfuzz under its names, or a function of the user's."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from karat.arrays import Floats, Ints
from karat.errors import BadArgument, unknown

_WORTH_THREADS = 50_000_000
_MARGIN = 1e-3
"""rapidfuzz drops some pairs that lie at the cutoff itself; so it is asked for a little less."""
_WORDS = re.compile(r"[^\W_]+")

Similarity = Callable[[str, str], float]


class Scorer(NamedTuple):
    """A similarity by its name in rapidfuzz, and what is known of it without computing it."""

    name: str
    function: str
    """Where rapidfuzz has it."""
    percent: bool = False
    """Whether it counts to 100."""
    bound: Callable[[Ints, Ints], Floats] | None = None
    """The most that two texts of these lengths can reach."""
    dear: float = 1.0
    """How many times as long it takes as a distance of the same lengths."""
    tokens: Callable[[str], Sequence[Hashable]] | None = None
    """What it compares in place of characters."""
    common: tuple[float, float] = (0.0, 0.0)
    """Between which cutoffs it pays to count the characters in common first: there cannot be more alike than those."""


def _shorter_over_longer(a: Ints, b: Ints) -> Floats:
    share: Floats = np.minimum(a, b) / np.maximum(np.maximum(a, b), 1)
    return share


def _shorter_over_mean(a: Ints, b: Ints) -> Floats:
    share: Floats = 2.0 * np.minimum(a, b) / np.maximum(a + b, 1)
    return share


def rouge_tokens(text: str) -> list[str]:
    """The words as ROUGE counts them: lower case, letters and digits; not of ASCII alone."""
    return _WORDS.findall(text.lower())


SCORERS = {
    scorer.name: scorer
    for scorer in (
        Scorer("ratio", "distance.Indel.normalized_similarity", bound=_shorter_over_mean),
        Scorer("token_sort", "fuzz.token_sort_ratio", percent=True, dear=3),
        Scorer("token_set", "fuzz.token_set_ratio", percent=True, dear=5),
        Scorer("partial", "fuzz.partial_ratio", percent=True, dear=400),
        Scorer(
            "levenshtein",
            "distance.Levenshtein.normalized_similarity",
            bound=_shorter_over_longer,
            dear=3,
            common=(0.45, 0.65),
        ),
        Scorer("hamming", "distance.Hamming.normalized_similarity", bound=_shorter_over_longer, dear=0.01),
        Scorer("jaro", "distance.Jaro.normalized_similarity", dear=3),
        Scorer("jaro_winkler", "distance.JaroWinkler.normalized_similarity", dear=3),
        Scorer("rouge_l", "distance.Indel.normalized_similarity", tokens=rouge_tokens),
    )
}


def find_scorer(wanted: str | Similarity) -> Scorer | Similarity:
    """The scorer of this name, or the function itself."""
    if callable(wanted):
        return wanted
    if isinstance(wanted, str) and wanted in SCORERS:
        return SCORERS[wanted]
    raise unknown("scorer", str(wanted), SCORERS, f"one of: {', '.join(SCORERS)}, or a function of two texts")


def similarities(scorer: Scorer | Similarity, left: list[str], right: list[str], cutoff: float) -> Floats:
    """How alike the texts of each pair are; below the cutoff it may say 0."""
    if not isinstance(scorer, Scorer):
        return np.array([_checked(scorer, a, b) for a, b in zip(left, right, strict=True)], float)
    if not scorer.common[0] <= cutoff <= scorer.common[1]:
        return _by_rapidfuzz(scorer, left, right, cutoff)
    found = np.zeros(len(left))
    enough = np.flatnonzero(_common(left, right) >= cutoff - _MARGIN).tolist()
    found[enough] = _by_rapidfuzz(scorer, [left[i] for i in enough], [right[i] for i in enough], cutoff)
    return found


def _common(left: list[str], right: list[str]) -> Floats:
    """The longest common subsequence of each pair over the longer text: no edit distance leaves more in place."""
    longer = np.maximum(lengths(left), lengths(right))
    common: Floats = _compute("distance.LCSseq.similarity", left, right, None, np.int64) / np.maximum(longer, 1)
    return common


def _by_rapidfuzz(scorer: Scorer, left: list[str], right: list[str], cutoff: float) -> Floats:
    scale = 100.0 if scorer.percent else 1.0
    a: Any = left if scorer.tokens is None else list(map(scorer.tokens, left))
    b: Any = right if scorer.tokens is None else list(map(scorer.tokens, right))
    found: Floats = _compute(scorer.function, a, b, max(cutoff - _MARGIN, 0.0) * scale, np.float64, scorer.dear)
    if scorer.tokens is not None:  # two texts without a word have nothing in common
        found = np.where([bool(x and y) for x, y in zip(a, b, strict=True)], found, 0.0)
    return np.round(found / scale, 12) if scorer.percent else found


def _compute(name: str, left: Any, right: Any, cutoff: float | None, kind: type[Any], dear: float = 1.0) -> Any:
    """Call rapidfuzz on all pairs, with all cores where there is much to do."""
    import rapidfuzz
    from rapidfuzz.process import cpdist

    function: Any = rapidfuzz
    for part in name.split("."):
        function = getattr(function, part)
    work = float(np.dot(lengths(left), lengths(right))) * dear
    workers = -1 if work > _WORTH_THREADS else 1
    return cpdist(left, right, scorer=function, score_cutoff=cutoff, dtype=kind, workers=workers)


def lengths(texts: Sequence[Any]) -> Ints:
    """How long each text is."""
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _checked(scorer: Similarity, a: str, b: str) -> float:
    try:
        value = float(scorer(a, b))
    except (TypeError, ValueError) as error:
        raise BadArgument(f"the scorer {_name(scorer)} gave no number: {error}") from error
    if not 0.0 <= value <= 1.0:
        raise BadArgument(f"the scorer {_name(scorer)} gave a similarity outside of [0, 1]", got=value)
    return value


def _name(scorer: object) -> str:
    return getattr(scorer, "__name__", type(scorer).__name__)


def scorer_name(scorer: Scorer | Similarity) -> str:
    """What to call it: the name it is known by, or the function's own."""
    return scorer.name if isinstance(scorer, Scorer) else _name(scorer)
