"""The judge `fuzzy`: texts of which the similarity reaches a threshold."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import compress, pairwise
from operator import attrgetter, eq
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.grammar import write_call
from karat._internal.progress import Progress
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, unknown
from karat.hits import Hits
from karat.judges.matches import Matches, Texts, texts_of
from karat.judges.protocol import Judge, check_bool, judge, share_of_one
from karat.samples import Samples

_WORTH_THREADS = 50_000_000
_MARGIN = 1e-3
"""rapidfuzz omits some pairs that are exactly at the cutoff; so its cutoff is a little lower."""
_WORDS = re.compile(r"[^\W_]+")
_AT_ONCE = 20_000
_TOO_LONG = 2e10
"""Characters times characters of one pair: some seconds of work."""

Similarity = Callable[[str, str], float]


class Scorer(NamedTuple):
    """A similarity of rapidfuzz, with what is known of it before it is computed."""

    name: str
    function: str
    """The path of the function in rapidfuzz."""
    percent: bool = False
    """True if the similarity is from 0 to 100."""
    bound: Callable[[Ints, Ints], Floats] | None = None
    """The highest similarity of texts of these lengths."""
    cost: float = 1.0
    """The time it takes compared with an edit distance of the same lengths."""
    tokens: Callable[[str], Sequence[Hashable]] | None = None
    """The tokens that are compared in place of characters."""
    common: tuple[float, float] = (0.0, 0.0)
    """The cutoffs for which it is faster to compute the longest common subsequence first, as an upper bound."""


def _shorter_over_longer(a: Ints, b: Ints) -> Floats:
    share: Floats = np.minimum(a, b) / np.maximum(np.maximum(a, b), 1)
    return share


def _shorter_over_mean(a: Ints, b: Ints) -> Floats:
    share: Floats = 2.0 * np.minimum(a, b) / np.maximum(a + b, 1)
    return share


def rouge_tokens(text: str) -> list[str]:
    """The words as ROUGE counts them, in lower case, but not only in ASCII."""
    return _WORDS.findall(text.lower())


_INDEL, _LEVENSHTEIN = "distance.Indel.normalized_similarity", "distance.Levenshtein.normalized_similarity"
SCORERS = {
    scorer.name: scorer
    for scorer in (
        Scorer("ratio", _INDEL, bound=_shorter_over_mean),
        Scorer("token_sort", "fuzz.token_sort_ratio", percent=True, cost=3),
        Scorer("token_set", "fuzz.token_set_ratio", percent=True, cost=5),
        Scorer("partial", "fuzz.partial_ratio", percent=True, cost=400),
        Scorer("levenshtein", _LEVENSHTEIN, bound=_shorter_over_longer, cost=3, common=(0.45, 0.65)),
        Scorer("hamming", "distance.Hamming.normalized_similarity", bound=_shorter_over_longer, cost=0.01),
        Scorer("jaro", "distance.Jaro.normalized_similarity", cost=3),
        Scorer("jaro_winkler", "distance.JaroWinkler.normalized_similarity", cost=3),
        Scorer("rouge_l", _INDEL, tokens=rouge_tokens),
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
    """The similarity of each pair; one below the cutoff may be 0."""
    if not isinstance(scorer, Scorer):
        return np.array([_custom_similarity(scorer, a, b) for a, b in zip(left, right, strict=True)], float)
    if not scorer.common[0] <= cutoff <= scorer.common[1]:
        return _by_rapidfuzz(scorer, left, right, cutoff)
    found = np.zeros(len(left))
    enough = np.flatnonzero(_common(left, right) >= cutoff - _MARGIN).tolist()
    found[enough] = _by_rapidfuzz(scorer, [left[i] for i in enough], [right[i] for i in enough], cutoff)
    return found


def _common(left: list[str], right: list[str]) -> Floats:
    """The longest common subsequence of each pair over the longer text: an upper bound of Levenshtein similarity."""
    longer = np.maximum(lengths(left), lengths(right))
    common: Floats = _compute("distance.LCSseq.similarity", left, right, None, np.int64) / np.maximum(longer, 1)
    return common


def _by_rapidfuzz(scorer: Scorer, left: list[str], right: list[str], cutoff: float) -> Floats:
    scale = 100.0 if scorer.percent else 1.0
    a: Any = left if scorer.tokens is None else list(map(scorer.tokens, left))
    b: Any = right if scorer.tokens is None else list(map(scorer.tokens, right))
    found: Floats = _compute(scorer.function, a, b, max(cutoff - _MARGIN, 0.0) * scale, np.float64, scorer.cost)
    if scorer.tokens is not None:  # two texts without a word have nothing in common
        found = np.where([bool(x and y) for x, y in zip(a, b, strict=True)], found, 0.0)
    return np.round(found / scale, 12) if scorer.percent else found


def _compute(path: str, left: Any, right: Any, cutoff: float | None, kind: type[Any], cost: float = 1.0) -> Any:
    """Call a function of rapidfuzz on all pairs; on all cores if there is much work."""
    import rapidfuzz
    from rapidfuzz.process import cpdist

    work = float(np.dot(lengths(left), lengths(right))) * cost
    workers = -1 if work > _WORTH_THREADS else 1
    return cpdist(left, right, scorer=attrgetter(path)(rapidfuzz), score_cutoff=cutoff, dtype=kind, workers=workers)


def lengths(texts: Sequence[Any]) -> Ints:
    """The length of each text."""
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _custom_similarity(scorer: Similarity, a: str, b: str) -> float:
    try:
        value = float(scorer(a, b))
    except (TypeError, ValueError) as error:
        raise BadArgument(f"scorer {scorer_name(scorer)} returned no number: {error}") from error
    if not 0.0 <= value <= 1.0:
        raise BadArgument(f"scorer {scorer_name(scorer)} must return a similarity from 0 to 1", got=value)
    return value


def scorer_name(scorer: Scorer | Similarity) -> str:
    """The name of a scorer, or of a function."""
    return scorer.name if isinstance(scorer, Scorer) else getattr(scorer, "__name__", type(scorer).__name__)


class _Pairs(NamedTuple):
    """A batch of pairs as columns: gold texts left, chunks right."""

    query: list[int]
    rank: list[int]
    gold: list[int]
    left: list[str]
    right: list[str]


def _batches(texts: Texts) -> Iterator[_Pairs]:
    """Every gold text with every chunk of its query."""
    pairs = _Pairs([], [], [], [], [])
    for query, (chunks, (begin, end)) in enumerate(zip(texts.chunks, pairwise(texts.start), strict=True)):
        for gold in range(begin, end):
            pairs.query.extend([query] * len(chunks))
            pairs.rank.extend(range(1, len(chunks) + 1))
            pairs.gold.extend([gold] * len(chunks))
            pairs.left.extend([texts.gold[gold]] * len(chunks))
            pairs.right.extend(chunks)
            if len(pairs.left) >= _AT_ONCE:
                yield pairs
                pairs = _Pairs([], [], [], [], [])
    if pairs.left:
        yield pairs


@judge("fuzzy")
class Fuzzy(Judge):
    """A similarity at or above the threshold; `strict`: above it; `graded` multiplies the grade by the similarity."""

    def __init__(
        self,
        threshold: float = 0.8,
        scorer: str | Similarity = "ratio",
        *,
        strict: bool = False,
        graded: bool = False,
    ) -> None:
        self.threshold = share_of_one("threshold", threshold)
        self.scorer = find_scorer(scorer)
        self.strict = check_bool("strict", strict)
        self.graded = check_bool("graded", graded)
        given = {"threshold": threshold, "scorer": scorer_name(self.scorer), "strict": strict, "graded": graded}
        self.settings = given
        self.name = write_call("fuzzy", **{name: value for name, value in given.items() if value is not False})

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Compare every chunk with every gold text of its query."""
        texts = texts_of(samples, self.name, convention)
        matches = Matches.of_texts(samples, texts)
        matched = array("d")
        sizes = zip(map(len, texts.chunks), pairwise(texts.start), strict=True)
        total = sum(depth * (end - begin) for depth, (begin, end) in sizes)
        with Progress(total, self.name) as bar:
            for pairs in _batches(texts):
                similarity = self._similarity(pairs, samples)
                for i in np.flatnonzero(self._enough(similarity)).tolist():
                    matched.append(float(similarity[i]))
                    shown = "1.00" if matched[-1] == 1 else f"{min(matched[-1], 0.99):.2f}"
                    why = "exact" if pairs.left[i] == pairs.right[i] else f"similar {shown}"
                    matches.add(pairs.query[i], pairs.rank[i], pairs.gold[i], why)
                bar.step(len(pairs.left))
        return matches.hits(np.array(matched) if self.graded else None)

    def _enough(self, similarity: Floats) -> Bools:
        """Compare with the threshold, rounded to 12 places: 1 - 0.7 is a little more than 0.3 in floating point."""
        similarity = np.round(similarity, 12)
        return similarity > self.threshold if self.strict else similarity >= self.threshold

    def _similarity(self, pairs: _Pairs, samples: Samples) -> Floats:
        """Check equality first, then the lengths, and compute the similarity of the remaining pairs."""
        a, b = lengths(pairs.left), lengths(pairs.right)
        equal = np.fromiter(map(eq, pairs.left, pairs.right), bool, len(a))
        similarity = equal.astype(float)
        unclear = ~equal & (a > 0) & (b > 0)
        if isinstance(self.scorer, Scorer):
            if self.scorer.bound is not None:
                unclear &= self._enough(self.scorer.bound(a, b))
            work = np.where(unclear, a.astype(float) * b * self.scorer.cost, 0.0)
            if work.max(initial=0.0) > _TOO_LONG:
                i = int(work.argmax())
                raise InputError(
                    f'query "{samples.ids[pairs.query[i]]}", item {pairs.rank[i]} of retrieved: texts of {a[i]:,} and '
                    f"{b[i]:,} characters are too long for {self.scorer.name}, whose time is their product",
                    hint='judge="contains", or judge="spans"',
                )
        if unclear.any():
            chosen = unclear.tolist()
            some = list(compress(pairs.left, chosen)), list(compress(pairs.right, chosen))
            similarity[unclear] = similarities(self.scorer, *some, self.threshold)
        return similarity
