"""The judge `fuzzy`: texts that are alike enough."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import compress, pairwise
from operator import eq
from typing import Any, NamedTuple

import numpy as np

from karat._internal.arrays import Bools, Floats, Ints
from karat._internal.grammar import write_call
from karat._internal.progress import Progress
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, unknown
from karat.hits import Hits
from karat.judges.matches import Matches, Texts, texts_of
from karat.judges.protocol import JudgeBase, judge, share_of_one, truth
from karat.samples import Samples

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


_AT_ONCE = 20_000
_TOO_LONG = 2e10
"""Characters times characters of one pair: some seconds of work."""


class _Pairs(NamedTuple):
    """Some of the pairs that are compared, gold beside chunk."""

    query: list[int]
    rank: list[int]
    gold: list[int]
    left: list[str]
    right: list[str]


@judge("fuzzy")
class Fuzzy(JudgeBase):
    """Texts whose similarity reaches the threshold, `strict`: exceeds it; `graded` multiplies the grade by it."""

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
        self.strict = truth("strict", strict)
        self.graded = truth("graded", graded)
        settings: dict[str, object] = {"threshold": threshold, "scorer": scorer_name(self.scorer)}
        settings |= {"strict": True} if self.strict else {}
        settings |= {"graded": True} if self.graded else {}
        self.name = write_call("fuzzy", **settings)
        self.settings = settings

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Compare every chunk with every gold text of its query."""
        texts = texts_of(samples, self.name, convention)
        matches = Matches(samples, texts)
        alike: list[float] = []
        sizes = zip(map(len, texts.chunks), pairwise(texts.start), strict=True)
        total = sum(depth * (end - begin) for depth, (begin, end) in sizes)
        with Progress(total, self.name) as bar:
            for pairs in _some_at_a_time(texts):
                similarity = self._similarity(pairs, samples)
                for i in np.flatnonzero(self._enough(similarity)).tolist():
                    alike.append(float(similarity[i]))
                    equal = pairs.left[i] == pairs.right[i]
                    why = "exact" if equal else f"similar {_two_places(alike[-1])}"
                    matches.add(pairs.query[i], pairs.rank[i], pairs.gold[i], why)
                bar.step(len(pairs.left))
        return matches.hits(np.array(alike) if self.graded else None)

    def _enough(self, similarity: Floats) -> Bools:
        """To twelve places: 1 - 0.7 is a little more than 0.3 to a computer, and not to the reader of a threshold."""
        similarity = np.round(similarity, 12)
        return similarity > self.threshold if self.strict else similarity >= self.threshold

    def _similarity(self, pairs: _Pairs, samples: Samples) -> Floats:
        """Equal texts first, then what the lengths rule out, then the rest by computation."""
        a, b = lengths(pairs.left), lengths(pairs.right)
        equal = np.fromiter(map(eq, pairs.left, pairs.right), bool, len(a))
        similarity = equal.astype(float)
        unclear = ~equal & (a > 0) & (b > 0)
        if isinstance(self.scorer, Scorer):
            if self.scorer.bound is not None:
                unclear &= self._enough(self.scorer.bound(a, b))
            _refuse_enormous(a, b, unclear, self.scorer, pairs, samples)
        if unclear.any():
            left, right = list(compress(pairs.left, unclear.tolist())), list(compress(pairs.right, unclear.tolist()))
            similarity[unclear] = similarities(self.scorer, left, right, self.threshold)
        return similarity


def _some_at_a_time(texts: Texts) -> Iterator[_Pairs]:
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


def _two_places(similarity: float) -> str:
    """Two decimal places; never 1.00 for texts that differ."""
    return f"{min(similarity, 0.99):.2f}" if similarity < 1 else "1.00"


def _refuse_enormous(a: Ints, b: Ints, unclear: Bools, scorer: Scorer, pairs: _Pairs, samples: Samples) -> None:
    work = np.where(unclear, a.astype(float) * b * scorer.dear, 0.0)
    if work.max(initial=0.0) > _TOO_LONG:
        i = int(work.argmax())
        raise InputError(
            f'query "{samples.ids[pairs.query[i]]}", item {pairs.rank[i]} of retrieved: texts of {a[i]:,} and {b[i]:,} '
            f"characters are too long to be compared by {scorer.name}",
            hint='judge="contains", or judge="spans"; both take time in proportion to the lengths',
        )
