"""The judge `auto`: a judge chosen from the fields of the data, with the reason; and hints if nothing matched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

from karat.conventions import STANDARD, Convention
from karat.errors import InputError
from karat.hits import Hits
from karat.judges.ids import Exact, Ids
from karat.judges.protocol import CustomJudge, Judge, find_judge, judge
from karat.samples import Field, Samples
from karat.samples.document_fields import id_form
from karat.samples.notes import Note
from karat.samples.rankings.lists import Lists

_ITEMS_CHECKED = 50
_QUERIES_CHECKED = 200
_IDS, _DOCS, _EXACT = Ids(), Ids(at="doc"), Exact()
SHARED: frozenset[Judge] = frozenset((_IDS, _DOCS, _EXACT))
"""The judges that all evaluations share if they are chosen from the data: they have no state."""
_FORMS = {"random": "random", "hashed": "hashes"}


class Choice(NamedTuple):
    """A judge, and the reason for it if it was chosen from the data."""

    judge: Judge
    reason: str = ""


def choose(samples: Samples) -> Choice:
    """The cheapest judge that fits the items of both sides."""
    both = samples.retrieved.all_fields & samples.gold.all_fields
    generated = _generated_ids(samples) if "id" in both else ""
    if "id" not in both or (generated and both & {"text", "doc"}):
        return _without_ids(samples, both, generated)
    if "text" not in both or not (samples.retrieved.plain or samples.gold.plain):
        return Choice(_IDS, "both sides have ids")
    # Where gold has ids and texts, and the results are bare strings, the results decide.
    if _are_texts(samples.gold.columns["text"] if samples.gold.plain else _first_retrieved(samples)):
        return Choice(_EXACT, "the items look like texts")
    return Choice(_IDS, "the items look like ids")


def _without_ids(samples: Samples, both: frozenset[Field], generated: str) -> Choice:
    """The judge for items that have no ids in common; `generated` says which ids are generated."""
    why = f"; {generated}, and none is on both sides" if generated else ""
    if both >= {"doc", "start", "end"}:
        return Choice(find_judge("spans"), f"both sides have ranges{why}")
    if "text" not in both and "doc" in both:
        return Choice(_DOCS, f"both sides name documents{why}")
    if _names_documents(samples):
        return Choice(_DOCS, f"the gold names documents{why}")
    if "text" in both:
        if generated and samples.gold.plain and not _are_texts(samples.gold.columns["text"]):
            return Choice(_IDS, "the items look like ids")
        return Choice(_EXACT, f"both sides have texts{why}" if generated else "not both sides have ids")
    sides = (("retrieved", samples.retrieved.all_fields), ("gold", samples.gold.all_fields))
    raise InputError(
        "retrieved and gold items have no field in common that could be compared",
        got="; ".join(f"{side}: {', '.join(sorted(fields))}" for side, fields in sides),
        hint='{"id": …} on both sides, or {"text": …} on both',
    )


def _first_retrieved(samples: Samples) -> list[Any]:
    """The first retrieved items, which are bare strings."""
    return list(islice(chain.from_iterable(samples.retrieved.each("id", STANDARD)), _ITEMS_CHECKED))


def _are_texts(bare: Sequence[Any]) -> bool:
    """True if most of the first bare strings contain a space: ids do not, sentences do."""
    some = bare[:_ITEMS_CHECKED]
    items = some if {*map(type, some)} == {str} else list(map(str, some))
    if " " not in "".join(items):
        return False
    return sum(" " in item for item in items) > len(items) / 2


def _generated_ids(samples: Samples) -> str:
    """The side whose ids are generated, and their form, if none of the first ids is on both sides."""
    rankings, gold = samples.retrieved, samples.gold
    if rankings.plain or not isinstance(rankings, Lists):
        return ""
    retrieved = rankings.columns["id"][:_QUERIES_CHECKED]
    relevant = gold.columns["id"][: int(gold.start[: _QUERIES_CHECKED + 1][-1])]
    form = _form(chain.from_iterable(retrieved))
    about = f"the retrieved ids are {_FORMS[form]}" if form else ""
    if not form and not gold.plain and (form := _form(relevant)):
        about = f"the gold ids are {_FORMS[form]}"
    if not form or not set(map(str, chain.from_iterable(retrieved))).isdisjoint(map(str, relevant)):
        return ""
    return about


def _form(ids: Iterable[Any]) -> str:
    """The form of generated ids; empty if one of the first has another."""
    some = islice(ids, _ITEMS_CHECKED)
    form = id_form(next(some, None))
    return form if form and all(id_form(one) == form for one in some) else ""


def _names_documents(samples: Samples) -> bool:
    """True if bare strings of the gold are documents of retrieved items."""
    if not samples.gold.plain or "doc" not in samples.retrieved.all_fields:
        return False
    return _gold_documents(samples, STANDARD) > 0


def has_fields(samples: Samples, judge: Judge) -> bool:
    """True if all items have the fields that a judge compares; the id of a gold item may name a document."""
    gold = samples.gold.all_fields
    named = gold | {"doc"} if "id" in gold else gold
    return samples.retrieved.all_fields.issuperset(judge.fields) and named.issuperset(judge.fields)


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

    rankings = list(map(as_ids, _first(samples, field, c)))
    groups = list(zip(rankings, samples.gold.keys(field).each(), strict=False))
    if equal := count_equal(groups):
        return Note("nothing_matched", equal, sum(len(gold) for _, gold in groups), details={"hint": "excluded"})
    found = find_difference(groups)
    if found is None:
        return _other_ids([one for row, one in enumerate(rankings) if row not in samples.failed])
    return Note("nothing_matched", found.count, found.of, details={"hint": "id_difference", **found.to_dict()})


def _other_ids(rankings: Sequence[Sequence[str]]) -> Note:
    """The likeliest reason why retrieved ids have nothing in common with those of the gold."""
    empty = sum(not one for one in rankings)
    if 2 * empty > len(rankings):
        return Note("nothing_matched", empty, len(rankings), details={"hint": "empty"})
    return Note("nothing_matched", details={"hint": _form(chain.from_iterable(rankings)) or "ids"})


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
