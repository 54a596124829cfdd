"""Advice and limits of a diagnosis as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from karat._internal.display import plural
from karat.report.thresholds import THRESHOLD_ADVICE
from karat.samples.notes import Note

_FOUND = {
    "same words elsewhere": "have the same words in the {top}, at another place than the range",
    "case or white space": "are in the {top} except for case or white space",
    "nearly equal": "have a nearly equal text in the {top}",
    "cut differently": "are in the {top}, cut differently",
    "split over chunks": "are in the {top}, split over chunks",
    "right document, wrong chunk": "are in documents of which other chunks are in the {top}",
    "nowhere in the run": "were not retrieved for any query",
    "not retrieved": "were not retrieved",
}
_WAYS = {
    "judge": "The judge {judge} counts such items",
    "spelling of ids": "Spell the ids the same on both sides",
    "spelling of texts": "Spell the gold texts as in the documents",
    "alternatives": "Put the gold item and its near copy in one group",
    "quotes": "Give the gold as texts, with the judge {judge}",
    "without ranges": "Give these quotes without their ranges, or all places of a quote in one group",
    "neighbours": "Also return the neighbours of each chunk, or use larger chunks or more overlap",
}
"""Changes by which items would count as found: see `analysis/diagnose/advice.py`."""
_CLAIMS = {
    "neighbours": "if each chunk is extended by its own length on both sides",
    "without ranges": "without ranges",
}
_REMEDIES = {
    "same words elsewhere": "Give all places of a quote in one group, or the quotes without their ranges",
    "case or white space": "Spell gold and documents the same",
    "nearly equal": "If either would do, put the gold item and its near copy in one group",
    "cut differently": "Larger chunks or more overlap keep a passage in one chunk",
    "split over chunks": "Larger chunks or more overlap keep a passage in one chunk",
    "right document, wrong chunk": "Try larger chunks, more overlap, or the neighbours of each retrieved chunk",
    "nowhere in the run": "Check that they are in the index under these ids",
    "not retrieved": "Try another retriever, a hybrid of two (--other RUN shows what both find) or rewritten queries",
}
"""Advice without a number, by cause."""
_FOR_ONE = {"nowhere in the run": "Check that it is in the index under this id"}
"""The same for one item, if it differs."""


def sentences(notes: Iterable[Note]) -> list[str]:
    """The sentence of each note."""
    return [_SENTENCES[note.kind](note) for note in notes]


def _deeper(note: Note) -> str:
    d, k = note.details, note.details["k"]
    items = plural(note.count, "missed gold item was", "missed gold items were")
    where = f"{items} retrieved below rank {k}, {'at' if note.count == 1 else 'half of them by'} rank {d['median']}."
    if d["deeper"] <= d["recall"]:
        return (
            f"{where} recall@{2 * k} is {d['deeper']:.3f}, as recall@{k}: a reranker would have to read further down."
        )
    return (
        f"{where} A reranker of the top {2 * k} can raise recall@{k} from {d['recall']:.3f} to at most "
        f"{d['deeper']:.3f}, which is recall@{2 * k}."
    )


def _lower_k(note: Note) -> str:
    d = note.details
    lower, recall = d["recalls"]
    same = "the same as" if lower == recall else f"{lower:.3f}, nearly"
    judged = "" if note.count == note.of else " for the judged query" if note.count == 1 else " for the judged queries"
    return f"k = {d['lower']} would be enough{judged}: recall@{d['lower']} is {same} recall@{d['k']}, {recall:.3f}."


def _another_way(note: Note) -> str:
    d, k = note.details, note.details["k"]
    top = f"top {k}" if d["inside"] else "retrieved items"
    found = _FOUND[d["causes"][0]].format(top=top)
    if len(d["causes"]) > 1:
        found = f"are in the {top}, {_listed(d['causes'])}"
    items = f"{plural(note.count, 'missed gold item', 'missed gold items')} {_singular(found, note.count)}"
    if note.count != note.of:
        names = _listed([f'"{cause}"' for cause in d["causes"]])
        causes = f"the cause{'s' if len(d['causes']) > 1 else ''} {names}"
        of_these = f"of these, {note.count:,} {_singular(found, note.count)}"
        items = f"{note.of:,} missed gold items have {causes}; {of_these}"
    if "way" not in d:
        return f"{items}. {_advised(d['causes'][0], note.count)}."
    text = f"{items}. {_WAYS[d['way']].format(judge=d['judge'])}"
    if "recall" not in d:
        return f"{text}."
    how = _CLAIMS.get(d["way"], "with it" if d["way"] == "judge" else "then")
    sample = "" if d["sample"] is None else f" (in a random sample of {d['sample']:,} queries)"
    return f"{text}: recall@{k} is {d['recall']:.3f} {how}, {d['own']:.3f} now{sample}."


def _listed(names: Sequence[str]) -> str:
    """Names with commas and "or"."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _remedy(note: Note) -> str:
    cause = note.details["cause"]
    items = plural(note.count, "missed gold item", "missed gold items")
    return f"{items} {_singular(_FOUND[cause], note.count)}. {_advised(cause, note.count)}."


def _advised(cause: str, count: int) -> str:
    return _FOR_ONE[cause] if count == 1 and cause in _FOR_ONE else _REMEDIES[cause]


def _singular(text: str, count: int) -> str:
    """A predicate for one item, if there is one."""
    verb, _, rest = text.partition(" ")
    return text if count != 1 else f"{ {'are': 'is', 'were': 'was', 'have': 'has'}[verb] } {rest}"


def _copies(note: Note) -> str:
    d = note.details
    return (
        f"{note.count:,} of {note.of:,} ranks in the top {d['k']} are copies: without them recall@{d['k']} would be "
        f"{d['without']:.3f} instead of {d['recall']:.3f}."
    )


def _threshold(note: Note) -> str:
    d = note.details
    precision, recall = d["precision"], d["recall"]
    lower = f"lower the micro-averaged recall from {recall[0]:.3f} to {recall[1]:.3f}"
    return (
        f"A score threshold of {d['threshold']} would raise the micro-averaged precision of the top {d['k']} from "
        f"{precision[0]:.3f} to {precision[1]:.3f}, and {'lose no gold' if recall[0] == recall[1] else lower}."
    )


def _long_chunks(note: Note) -> str:
    gold, relevant, total = note.count, note.of, note.details["total"]
    return (
        f"In the top {note.details['k']}, {_percent(gold / relevant)} of the characters of relevant chunks are gold, "
        f"and {_percent(gold / total)} of all characters: relevant chunks are {relevant / gold:.0f} times as long as "
        "their gold."
    )


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _union(note: Note) -> str:
    k, (both, one, other) = note.details["k"], note.details["recalls"]
    return (
        f"The top {k} of both runs together (up to {2 * k} items) have a recall of {both:.3f}; alone {one:.3f} and "
        f"{other:.3f}. The other run finds {note.count:,} of the {note.of:,} missed gold items."
    )


def _no_texts(note: Note) -> str:
    return f"The {note.details['side']} items have no texts: near copies and split passages were not checked."


_SENTENCES: dict[str, Callable[[Note], str]] = {
    "deeper": _deeper,
    "lower_k": _lower_k,
    "another_way": _another_way,
    "remedy": _remedy,
    "copies": _copies,
    "score_threshold": _threshold,
    **THRESHOLD_ADVICE,
    "long_chunks": _long_chunks,
    "union": _union,
    "no_items": lambda note: (
        "The run file has no items, because an older version saved it: most causes were not checked. "
        "Evaluate and save the run again."
    ),
    "no_texts": _no_texts,
    "no_documents": lambda note: "The items have no documents: whether the right document was found was not checked.",
    "beyond_depth": lambda note: (
        f"At most {plural(note.count, 'item was', 'items were')} retrieved for a query, fewer than k = {note.of:,}."
    ),
    "unjudged_items": lambda note: (
        f"{note.count:,} of the {plural(note.of, 'item', 'items')} in the top {note.details['k']} "
        f"{'is' if note.count == 1 else 'are'} unjudged and may be relevant: judge them before you change the "
        "retriever."
    ),
    "judged": lambda note: (
        f"{note.count:,} of {plural(note.of, 'query was', 'queries were')} judged: the misses of the others are "
        "unknown."
    ),
    "top_only": lambda note: f"Only the top {note.count} of each ranking were checked.",
}
