"""Advice and limits of a diagnosis as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from karat._internal.display import number, percent, plural, span
from karat.analysis.diagnose.miss import Gain
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
    "larger chunks": "Larger chunks or more overlap keep a passage in one chunk",
    "neighbours": "Also return the neighbours of each chunk, or use larger chunks or more overlap",
}
"""Changes by which items would count as found: see `analysis/diagnose/advice.py`."""
_CLAIMS = {
    "neighbours": "if each chunk is extended by its own length on both sides",
    "without ranges": "without ranges",
    "larger chunks": "if the pieces of a passage count as one",
}
_REMEDIES = {
    "same words elsewhere": "Give all places of a quote in one group, or the quotes without their ranges",
    "case or white space": "Spell gold and documents the same",
    "nearly equal": "If either would do, put the gold item and its near copy in one group",
    "cut differently": "Larger chunks or more overlap keep a passage in one chunk",
    "split over chunks": "Larger chunks or more overlap keep a passage in one chunk",
    "right document, wrong chunk": "Try larger chunks, more overlap, or the neighbours of each retrieved chunk",
    "nowhere in the run": "Check that they are in the index under these ids",
    "not retrieved": "Try rewritten queries or a second retriever",
}
"""Advice without a number, by cause."""
_FOR_ONE = {"nowhere in the run": "Check that it is in the index under this id"}
"""The same for one item, if it differs."""


def sentences(notes: Iterable[Note]) -> list[str]:
    """The sentence of each note."""
    return [_SENTENCES[note.kind](note) for note in notes]


def _change(gain: Gain) -> str:
    """The difference with its interval, in brackets; nothing without an interval."""
    ends = span(gain.low, gain.high, sign="+")
    return f" ({number(gain.difference, sign='+')} {ends})" if ends else ""


def _raised(name: str, gain: Gain) -> str:
    return f"{name} from {number(gain.before)} to {number(gain.after)}{_change(gain)}"


def _higher_k(note: Note) -> str:
    d, k = note.details, note.details["k"]
    items = plural(note.count, "missed gold item is", "missed gold items are")
    where = f"{items} below rank {k}, {'at' if note.count == 1 else 'half of them by'} rank {d['median']}."
    return f"{where} k = {d['higher']} raises {_raised('recall', d['recall'])}{_cost(d['precision'])}."


def _cost(precision: Gain) -> str:
    """The precision at a higher k; nothing if it is undefined."""
    if precision.difference != precision.difference:
        return ""
    verb = "lowers" if precision.difference < 0 else "raises" if precision.difference else "leaves"
    if verb == "leaves":
        return f" and leaves precision at {number(precision.before)}"
    return f" and {verb} precision from {number(precision.before)} to {number(precision.after)}"


def _reranker(note: Note) -> str:
    d, k = note.details, note.details["k"]
    precision = f" and {_raised(f'precision@{k}', d['precision'])}" if d["precision"].helps else ""
    recall = f"{f'recall@{k}'} as much" if d["as_much"] else _raised(f"recall@{k}", d["recall"])
    return f"A perfect reranker of the top {d['candidates']} raises {recall}{precision}: no reranker can do more."


def _lower_k(note: Note) -> str:
    d = note.details
    after, before = d["recall"].after, d["recall"].before
    same = "the same as" if after == before else f"{number(after)}, nearly"
    judged = "" if note.count == note.of else " for the judged query" if note.count == 1 else " for the judged queries"
    precision = f", and {_raised('precision rises', d['precision'])}" if d["precision"].helps else ""
    return (
        f"k = {d['lower']} would be enough{judged}: recall@{d['lower']} is {same} recall@{d['k']}, "
        f"{number(before)}{precision}."
    )


def _better_order(note: Note) -> str:
    d = note.details
    return (
        f"Gold is in the top {d['k']}, but not first: with a perfect reranker k = {d['lower']} would be enough, which "
        f"raises {_raised('precision', d['precision'])}. No reranker can do more."
    )


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
    if "gain" not in d:
        return f"{text}."
    how = _CLAIMS.get(d["way"], "with it" if d["way"] == "judge" else "then")
    sample = "" if d["sample"] is None else f" (in a random sample of {d['sample']:,} queries)"
    gain = d["gain"]
    return f"{text}: recall@{k} is {gain.after:.3f} {how}, {gain.before:.3f} now{_change(gain)}{sample}."


def _listed(names: Sequence[str]) -> str:
    """Names with commas and "or"."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _remedy(note: Note) -> str:
    cause = note.details["cause"]
    items = plural(note.count, "missed gold item", "missed gold items")
    hybrid = cause == "not retrieved" and note.details["hybrid"]
    more = ": --other RUN (in Python, other=run) measures a hybrid with it" if hybrid else ""
    return f"{items} {_singular(_FOUND[cause], note.count)}. {_advised(cause, note.count)}{more}."


def _same_model(note: Note) -> str:
    return (
        "Embeddings: are queries and documents embedded by the same model, each with the prefix that it expects? "
        f"{note.count:,} of {plural(note.of, 'query', 'queries')} retrieved no gold at any rank; a mismatch would "
        "affect nearly all."
    )


def _advised(cause: str, count: int) -> str:
    return _FOR_ONE[cause] if count == 1 and cause in _FOR_ONE else _REMEDIES[cause]


def _singular(text: str, count: int) -> str:
    """A predicate for one item, if there is one."""
    verb, _, rest = text.partition(" ")
    return text if count != 1 else f"{ {'are': 'is', 'were': 'was', 'have': 'has'}[verb] } {rest}"


def _copies(note: Note) -> str:
    k, gain = note.details["k"], note.details["gain"]
    return (
        f"{note.count:,} of {note.of:,} ranks in the top {k} are copies: without them recall@{k} would be "
        f"{gain.after:.3f} instead of {gain.before:.3f}{_change(gain)}."
    )


def _threshold(note: Note) -> str:
    d = note.details
    precision, recall = d["precision"], d["recall"]
    lower = f"lower the micro-averaged recall from {recall[0]:.3f} to {recall[1]:.3f}"
    text = (
        f"A score threshold of {d['threshold']} would raise the micro-averaged precision of the top {d['k']} from "
        f"{precision[0]:.3f} to {precision[1]:.3f}, and {'lose no gold' if recall[0] == recall[1] else lower}."
    )
    if "held_out" not in d:
        return f"{text} {plural(d['queries'], 'query is', 'queries are')} too few to test it on others."
    gain, low, high = d["held_out"]
    (loss,) = d["loss"]
    return (
        f"{text} On held-out queries: precision {number(gain, sign='+')} {span(low, high, sign='+')}, "
        f"recall {number(-loss, sign='+')}."
    )


def _long_chunks(note: Note) -> str:
    gold, relevant, total = note.count, note.of, note.details["total"]
    return (
        f"In the top {note.details['k']}, {_percent(gold / relevant)} of the characters of relevant chunks are gold, "
        f"and {_percent(gold / total)} of all characters: relevant chunks are {relevant / gold:.0f} times as long as "
        f"their gold.{_halves(*note.details['whole'])}"
    )


def _halves(share: float | None, low: float, high: float) -> str:
    """The gold that chunks of half the size would hold whole, if it is known."""
    if share is None:
        return ""
    ends = "" if low != low else f" [{percent(low)}, {percent(high)}]"
    return f" Cut in half, the chunks would still hold {percent(share)}{ends} of it whole, in half the text."


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def _hybrid(note: Note) -> str:
    d, k = note.details, note.details["k"]
    both, one, other = d["recalls"]
    items = plural(note.of, "missed gold item", "missed gold items")
    found = f"The other run finds {note.count:,} of the {items}. " if note.of else ""
    limit = f"both top {k} together (up to {2 * k} items) {both:.3f}"
    if (fused := d["fused"]) is None:
        return f"{found}The recall@{k} of this run is {one:.3f}, of the other {other:.3f}, of {limit}."
    return (
        f"{found}A hybrid by rrf(60) has a recall@{k} of {fused.after:.3f}, this run {fused.before:.3f}"
        f"{_change(fused)}, the other {other:.3f}, {limit}."
    )


def _reranking(note: Note) -> str:
    d = note.details
    k, gain, perfect = d["k"], d["gain"], d["perfect"]
    of = {"before": "This run reranks items of the other", "after": "The other run reranks items of this one"}
    moved = f"{plural(d['lifted'], 'gold item', 'gold items')} into the top {k} and {d['pushed_out']:,} out"
    text = f"{of[d['place']]}: {moved}, recall@{k} from {number(gain.before)} to {number(gain.after)}{_change(gain)}."
    if perfect.helps:
        return f"{text} A perfect reranker would reach {number(perfect.after)}{_change(perfect)}."
    return f"{text} No other order would find more: only better candidates can."


def _no_texts(note: Note) -> str:
    return f"The {note.details['side']} items have no texts: near copies and split passages were not checked."


_SENTENCES: dict[str, Callable[[Note], str]] = {
    "higher_k": _higher_k,
    "reranker": _reranker,
    "lower_k": _lower_k,
    "better_order": _better_order,
    "another_way": _another_way,
    "remedy": _remedy,
    "copies": _copies,
    "score_threshold": _threshold,
    **THRESHOLD_ADVICE,
    "long_chunks": _long_chunks,
    "hybrid": _hybrid,
    "reranking": _reranking,
    "same_model": _same_model,
    "another_model": lambda note: (
        "Embeddings: would another model rank the gold higher? Evaluate both on the same queries: karat compare shows "
        "the difference."
    ),
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
