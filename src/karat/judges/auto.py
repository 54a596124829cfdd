"""The judge `auto`: a judge chosen from the fields of the data, with the reason; and hints if nothing matched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from karat.conventions import STANDARD, Convention
from karat.errors import InputError
from karat.hits import Hits
from karat.judges.ids import Exact, Ids
from karat.judges.protocol import CustomJudge, Judge, find_judge, judge
from karat.samples import Field, Samples
from karat.samples.notes import Note

_ITEMS_CHECKED = 50
_QUERIES_CHECKED = 200


class Choice(NamedTuple):
    """A judge, and the reason for it if it was chosen from the data."""

    judge: Judge
    reason: str = ""


def choose(samples: Samples) -> Choice:
    """The cheapest judge that fits the items of both sides."""
    both = samples.retrieved.all_fields & samples.gold.all_fields
    if "id" not in both and both >= {"doc", "start", "end"}:
        return Choice(find_judge("spans"), "both sides have ranges")
    if not both & {"id", "text"} and "doc" in both:
        return Choice(Ids(at="doc"), "both sides name documents")
    both &= {"id", "text"}
    if not both:
        sides = (("retrieved", samples.retrieved.all_fields), ("gold", samples.gold.all_fields))
        raise InputError(
            "retrieved and gold items have no field in common that could be compared",
            got="; ".join(f"{side}: {', '.join(sorted(fields))}" for side, fields in sides),
            hint='{"id": …} on both sides, or {"text": …} on both',
        )
    if both == {"text"}:
        return Choice(Exact(), "not both sides have ids")
    if both == {"id"} or not (samples.retrieved.plain or samples.gold.plain):
        return Choice(Ids(), "both sides have ids")
    items = list(map(str, samples.gold.columns["text"][:_ITEMS_CHECKED]))
    if not samples.gold.plain:  # gold has ids and texts, the results have bare strings
        some = chain.from_iterable(samples.retrieved.each("id", STANDARD))
        items = list(map(str, islice(some, _ITEMS_CHECKED)))
    if sum(" " in item for item in items) > len(items) / 2:  # ids contain no white space, sentences do
        return Choice(Exact(), "the items look like texts")
    return Choice(Ids(), "the items look like ids")


def fit(judge: Judge, samples: Samples) -> Choice:
    """The judge for these samples: `auto` becomes the judge it chooses, a custom judge compares what that one does."""
    if isinstance(judge, Auto):
        return choose(samples)
    if isinstance(judge, CustomJudge):
        try:
            return Choice(judge.like(choose(samples).judge))
        except InputError:  # a custom judge may know how to compare items without a common field
            return Choice(judge)
    return Choice(judge)


@judge("auto")
class Auto(Judge):
    """Chooses `ids`, `exact` or `spans` from the fields of the data."""

    name = "auto"

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Judge with the judge that fits."""
        return choose(samples).judge(samples, convention)


def nothing_matched(samples: Samples, judge: Judge, c: Convention) -> tuple[Note, ...]:
    """A hint at what to try if nothing matched, from a quick check of the first queries."""
    if isinstance(judge, CustomJudge):
        return ()
    if judge.compares == "id" and (documents := _gold_documents(samples, c)):
        return (Note("nothing_matched", documents, details={"hint": "documents"}),)
    inside, checked = _quotes_inside(samples, c)
    if inside and judge.compares != "quote":
        return (Note("nothing_matched", inside, checked, details={"hint": "contains"}),)
    if judge.compares in ("id", "doc"):
        return (_different_ids(samples, judge.compares, c),)
    gold_texts = samples.gold.columns.get("text", ())[:_QUERIES_CHECKED]
    like_ids = samples.gold.plain and not any(" " in str(text).strip() for text in gold_texts)
    return (Note("nothing_matched", details={"hint": "texts"}),) if like_ids else ()


def _different_ids(samples: Samples, field: Field, c: Convention) -> Note:
    """The difference between the retrieved ids and those of the gold, if the same change makes some of them match.

    If some are equal, the convention excludes them.
    """
    from karat.samples.id_differences import count_equal, find_difference
    from karat.samples.keys import as_ids

    rankings = map(as_ids, _first(samples, field, c))
    groups = list(zip(rankings, samples.gold.keys(field).each(), strict=False))
    if equal := count_equal(groups):
        return Note("nothing_matched", equal, sum(len(gold) for _, gold in groups), details={"hint": "excluded"})
    found = find_difference(groups)
    if found is None:
        return Note("nothing_matched", details={"hint": "ids"})
    return Note("nothing_matched", found.count, found.of, details={"hint": "id_difference", **found.to_dict()})


def _gold_documents(samples: Samples, c: Convention) -> int:
    """The number of gold ids that are documents of chunks of their query."""
    if "doc" not in samples.retrieved.any_fields or "id" not in samples.gold.all_fields:
        return 0
    rankings = zip(_first(samples, "doc", c), samples.gold.keys("id").each(), strict=False)
    found = 0
    for docs, keys in rankings:
        names = set(map(str, docs))
        found += sum(key in names for key in keys)
    return found


def _quotes_inside(samples: Samples, c: Convention) -> tuple[int, int]:
    """The number of gold texts that are in a chunk of their query, and the number checked."""
    if "text" not in samples.retrieved.all_fields & samples.gold.all_fields:
        return 0, 0
    from karat._internal.grams import Grams
    from karat.judges.text import fold_space

    texts = [fold_space(str(text)) for text in samples.gold.columns["text"]]
    inside = checked = 0
    for chunks, (begin, end) in zip(_first(samples, "text", c), pairwise(samples.gold.start.tolist()), strict=False):
        folded = Grams([fold_space(str(chunk)) for chunk in chunks])
        checked += end - begin
        inside += sum(" " in text and bool(folded.holders(text)) for text in texts[begin:end])
    return inside, checked


def _first(samples: Samples, field: Field, c: Convention) -> Iterator[Sequence[Any]]:
    return islice(samples.retrieved.each(field, c), _QUERIES_CHECKED)
