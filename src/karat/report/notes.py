"""Notes as sentences: one function per kind of note, and what a reader of the means should know about a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from karat._internal.display import cut_name, plural, sanitize
from karat.metrics import METRICS
from karat.report.aspect_table import ASPECT_SENTENCES
from karat.report.fusion_notes import FUSION_SENTENCES
from karat.report.reading_notes import READING_SENTENCES
from karat.report.step_table import STEP_SENTENCES
from karat.report.thresholds import no_answer
from karat.report.trace_notes import TRACE_SENTENCES
from karat.report.unjudged_items import failed, unjudged
from karat.run import Run
from karat.samples.id_differences import IdDifference
from karat.samples.notes import FREE_TEXT, Note
from karat.stats import MIN_QUERIES

_IDS_SHOWN = 5
_ROUNDING = 1e-9
Sentence = Callable[[Note, Run], str]
"""Writes a note about a run as a sentence; "" if there is nothing to say."""


def remarks(run: Run, *, ids: bool = False, interval: str = "an interval") -> list[str]:
    """One line for each thing that a reader of the means should know; with `ids` also which queries have no score."""
    p = run.provenance
    lines = [*failed(run), *unjudged(run), *too_few(run.defined, interval), *no_answer(run)]
    lines += [*_undefined(run, ids=ids), *_copies(run), *_above_one(run), *_beyond_depth(run)]
    if p.missing:
        how = "scored 0" if run.convention.missing == "zero" else "left out"
        lines.append(f"{plural(p.missing, 'gold query', 'gold queries')} not in the results: {how}.")
    if p.extra:
        lines.append(f"{plural(p.extra, 'query', 'queries')} without gold: ignored.")
    if p.skipped:
        lines.append(f"{plural(p.skipped, 'row', 'rows')} could not be read: skipped.")
    lines += [text for note in p.notes if (text := _sentence(note, run))]
    return [sanitize(line) for line in lines]


def too_few(
    defined: Mapping[str, int], what: str = "an interval", least: int = MIN_QUERIES, unit: str = "query"
) -> list[str]:
    """The metrics without an interval, given the number of queries for which each is defined."""
    small: dict[int, list[str]] = {}
    for name, count in defined.items():
        if 0 < count < least:
            small.setdefault(count, []).append(name)
    lines = []
    for count, names in sorted(small.items()):
        which = "" if len(names) == len(defined) else f" of {', '.join(names)}"
        few = plural(count, f"{unit} is", f"{unit[:-1]}ies are")
        lines.append(f"{few} too few for {what}{which}: it takes at least {least}.")
    return lines


def _copies(run: Run) -> list[str]:
    """Queries that retrieved a relevant item more than once: copies are easily overlooked, and cost ranks."""
    c, hits = run.convention, run.all_hits
    queries = len(set(hits.query[hits.repeated].tolist()))
    if not queries or c.duplicates != "once" or c.per_rank:
        return []
    which = plural(queries, "query retrieved a relevant item", "queries retrieved a relevant item")
    return [f"{which} more than once: each copy takes a rank but counts only once."]


def _beyond_depth(run: Run) -> list[str]:
    """Metrics with a cutoff that no ranking reaches."""
    deepest = int(run.all_hits.depth.max(initial=0))
    columns = [column for metric in run.metrics for column in metric.columns if metric.name != "false_alarm"]
    names = [name for name, k in columns if isinstance(k, int) and k > deepest > 0]
    items = plural(deepest, "item was", "items were")
    return [f"At most {items} retrieved for a query, fewer than the cutoff of {', '.join(names)}."] if names else []


def _above_one(run: Run) -> list[str]:
    """Metrics that other libraries let exceed 1; what a custom metric means by 1 is not known."""
    lines = []
    for name in [name for m in run.metrics if m.name in METRICS and m.definition.built_in for name in m.names]:
        high = run.scores[name][run.scores[name] > 1 + _ROUNDING]
        if len(high):
            queries = plural(len(high), "query", "queries")
            why = f"the convention {run.convention.name} does not limit it"
            lines.append(f"{name} is above 1 for {queries} (highest {high.max():.2f}): {why}.")
    return lines


def _undefined(run: Run, *, ids: bool) -> list[str]:
    lines = []
    judged = ~np.isin(np.arange(len(run)), list(run.all_hits.failed))
    without_gold = (run.all_hits.gold_count() == 0) & judged & ~run.unanswerable
    same_rows: dict[bytes, list[str]] = {}
    for name, values in run.scores.items():
        same_rows.setdefault((np.isnan(values) & judged & run.about(name)).tobytes(), []).append(name)
    for rows, names in sorted(same_rows.items(), key=lambda pair: sum(pair[0])):
        if count := sum(rows):
            own = [run.ids[row] for row in np.flatnonzero(np.frombuffer(rows, bool)).tolist()]
            who = f" ({listed(own)})" if ids else ""
            which = "" if len(names) == len(run.alike(names[0])) else f" for {', '.join(names)}"
            why = "no relevant gold, " if rows == without_gold.tobytes() else ""
            lines.append(f"{plural(count, 'query is', 'queries are')} undefined{which}: {why}not in the mean{who}.")
    return lines


def listed(ids: Sequence[str]) -> str:
    """The first ids, and the number of the others."""
    shown = ", ".join(cut_name(query, 40) for query in ids[:_IDS_SHOWN])
    return shown if len(ids) <= _IDS_SHOWN else f"{shown} and {len(ids) - _IDS_SHOWN:,} more"


SENTENCES: dict[str, Sentence] = {
    **FUSION_SENTENCES, **STEP_SENTENCES, **ASPECT_SENTENCES, **READING_SENTENCES,
    **TRACE_SENTENCES,
}  # fmt: skip
SENTENCES[FREE_TEXT] = lambda note, _: str(note.details["text"])


def sentence(kind: str) -> Callable[[Sentence], Sentence]:
    """Register the sentence for a kind of note."""

    def register(write: Sentence) -> Sentence:
        SENTENCES[kind] = write
        return write

    return register


def _sentence(note: Note, run: Run) -> str:
    """The sentence of a note; a note that lacks something, from a file that karat did not write, in general words."""
    try:
        return SENTENCES.get(note.kind, _any_kind)(note, run)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return _any_kind(note, run)


def _any_kind(note: Note, run: Run) -> str:
    """A note of a kind that karat does not know: from a custom judge, or from a run file of a newer version."""
    count = "" if not note.count else f": {note.count:,} of {note.of:,}" if note.of else f": {note.count:,}"
    return f"{note.kind.replace('_', ' ')}{count}{_examples(note)}."


def _examples(note: Note) -> str:
    more = "; …" if note.count > len(note.examples) else ""
    return f" ({'; '.join(note.examples)}{more})" if note.examples else ""


# How the data was read: samples/


@sentence("columns_renamed")
def _columns_renamed(note: Note, run: Run) -> str:
    d = note.details
    return f"{d['source']}: columns read as {d['dialect']}: {d['columns']}."


@sentence("ranked_by")
def _ranked_by(note: Note, run: Run) -> str:
    return f"{note.details['source']}: one row per item, ranked by {note.details['by']}."


@sentence("graded_by")
def _graded_by(note: Note, run: Run) -> str:
    column = note.details["column"]
    return f"{note.details['source']}: " + (
        f"grades from column {column}." if column else "every gold item has grade 1."
    )


@sentence("unknown_field")
def _unknown_field(note: Note, run: Run) -> str:
    d = note.details
    who = plural(note.count, f"{d['in']} has", f"{d['in']}s have")
    return f'{who} a field "{d["field"]}" and no "{d["meant"]}": rename it if that is what it is.'


@sentence("similar_column")
def _similar_column(note: Note, run: Run) -> str:
    read, field = note.details["read"], note.details["field"]
    return f'Column "{read}" was read; "{field}", which {plural(note.count, "sample has", "samples have")}, was not.'


@sentence("unused_field")
def _unused_field(note: Note, run: Run) -> str:
    return ""  # lint names them


# How items were ranked and scored: plan


@sentence("reordered_by_score")
def _reordered(note: Note, run: Run) -> str:
    if note.sums.get("rising") == note.count:
        lists = plural(note.count, "list has", "lists have")
        return f"{lists} scores that rise down the list, as distances do: reversed by sorting the greatest first."
    lists = plural(note.count, "list was not in the order of its", "lists were not in the order of their")
    return f"{lists} scores: sorted by score, the greatest first."


@sentence("order_kept")
def _order_kept(note: Note, run: Run) -> str:
    count, sums, metric = note.count, note.sums, note.details.get("metric")
    have = plural(count, "list has", "lists have")
    how = "that rise down the list, as distances do" if sums["rising"] == count else "that contradict its order"
    if count > 1:
        how = how.replace("its", "their")
    effect = f"the first item would change in {plural(int(sums['first']), 'list', 'lists')}"
    if metric is not None and sums["queries"]:
        listed, by_score = (f"{sums[order] / sums['queries']:.3f}" for order in ("listed", "by_score"))
        change = f"stay {listed}" if listed == by_score else f"be {by_score} instead of {listed}"
        effect = f"{'their' if count > 1 else 'its'} {metric} would {change}"
    return f'{have} scores {how}: the order is kept. Sorted by score (order="score", --order score), {effect}.'


@sentence("ties_by_id")
def _ties_by_id(note: Note, run: Run) -> str:
    lists = plural(note.count, "list has", "lists have")
    return f"{lists} items of equal score: ranked by id, {note.details['direction']}, not as listed."


@sentence("single_precision_ties")
def _single_precision_ties(note: Note, run: Run) -> str:
    ranks = plural(note.count, "rank was", "ranks were")
    return f"{ranks} decided as ties: the scores are equal in single precision, as in trec_eval."


@sentence("infinite_scores")
def _infinite_scores(note: Note, run: Run) -> str:
    scores = plural(note.count, "retrieved score is", "retrieved scores are")
    return f"{scores} infinite: check how {'it is' if note.count == 1 else 'they are'} computed."


@sentence("excluded")
def _excluded(note: Note, run: Run) -> str:
    ids, queries = (int(note.sums[name]) for name in ("ids", "queries"))
    which = f"{plural(ids, 'id is', 'ids are')} excluded for {plural(queries, 'query', 'queries')}"
    return f"{which}: {plural(note.count, 'retrieved item was', 'retrieved items were')} removed before scoring."


@sentence("cited_not_retrieved")
def _cited_not_retrieved(note: Note, run: Run) -> str:
    ids = f"{note.count:,} of {plural(note.of, 'cited id', 'cited ids')}"
    return f"{ids} not retrieved for the query{_examples(note)}." if note.count else ""


@sentence("not_in_library")
def _not_in_library(note: Note, run: Run) -> str:
    d = note.details
    return f"{d['convention']} has no {d['metrics']}: its choices are applied to karat's definition."


@sentence("sampled")
def _sampled(note: Note, run: Run) -> str:
    return f"The run holds a sample of {note.count:,} of {note.of:,} queries; the table has the scores of all."


# What the judge found: judges/


@sentence("tokens_estimated")
def _tokens_estimated(note: Note, run: Run) -> str:
    calls = plural(note.count, "call", "calls")
    return f"{calls}: the reported token counts are not valid numbers; they were estimated for the budget."


@sentence("quotes_not_found")
def _quotes_not_found(note: Note, run: Run) -> str:
    quotes = f"{note.count:,} of {plural(note.of, 'gold quote', 'gold quotes')}"
    verb = "does" if note.count == 1 else "do"
    return f"{quotes} {verb} not occur in the documents: left out{_examples(note)}." if note.count else ""


@sentence("quotes_ambiguous")
def _quotes_ambiguous(note: Note, run: Run) -> str:
    quotes = f"{note.count:,} of {plural(note.of, 'gold quote', 'gold quotes')}"
    verb = "occurs" if note.count == 1 else "occur"
    return f"{quotes} {verb} several times: every place counts{_examples(note)}." if note.count else ""


@sentence("gold_range_mismatch")
def _gold_range_mismatch(note: Note, run: Run) -> str:
    ranges = plural(note.count, "gold range does", "gold ranges do")
    return f"{ranges} not contain the text given with it{_examples(note)}."


@sentence("chunk_range_mismatch")
def _chunk_range_mismatch(note: Note, run: Run) -> str:
    ranges = plural(note.count, "chunk range does", "chunk ranges do")
    return f"{ranges} not contain the text given with it{_examples(note)}."


@sentence("chunks_not_found")
def _chunks_not_found(note: Note, run: Run) -> str:
    chunks = plural(note.count, "chunk does", "chunks do")
    return f"{chunks} not occur in the document: compared by text alone{_examples(note)}."


@sentence("chunks_ambiguous")
def _chunks_ambiguous(note: Note, run: Run) -> str:
    chunks = plural(note.count, "chunk occurs", "chunks occur")
    return f"{chunks} several times in the document: the place with most gold is used{_examples(note)}."


@sentence("no_shared_document")
def _no_shared_document(note: Note, run: Run) -> str:
    return f"No chunk is from a document with gold. {note.examples[0]}." if note.count == len(run) else ""


@sentence("ranges_missing")
def _ranges_missing(note: Note, run: Run) -> str:
    sides = note.details["sides"]
    verb = "have" if len(sides) > 1 else "has"
    return (
        f"Compared by text, because {' and '.join(sides)} {verb} no ranges. "
        "Text that two chunks share counts twice as read (spans(corpus=…) finds the ranges)."
    )


@sentence("lexical_judge")
def _lexical_judge(note: Note, run: Run) -> str:
    judge = note.details.get("judge", "claims")
    known = "; docs/judges.md reports its agreement with people" if judge == "claims" else ""
    return f"{judge}(lexical) is a heuristic: it compares words, not meaning. Use its scores as a rough guide{known}."


@sentence("claims")
def _claims(note: Note, run: Run) -> str:
    d = note.details
    source = {"gold": "the gold texts", "answer": "the reference answers"}.get(d["source"], "the responses")
    text = f"Claims come from {source}"
    if d["source"] != "gold":
        text += ", one per sentence" if d["split"] == "sentences" else ", extracted by the model"
    if d["gold_unused"]:
        text += "; the gold items are not used (of=gold uses their texts as claims)"
    return text + (f"; {plural(note.count, 'query has', 'queries have')} none" if note.count else "") + "."


@sentence("graded_without_gold")
def _graded_without_gold(note: Note, run: Run) -> str:
    return (
        f"Retrieved items were graded 0 to 3 against the {note.details['to']}. There is no gold: "
        "the ideal ranking of nDCG is the best order of the items retrieved."
    )


@sentence("sample_judged")
def _sample_judged(note: Note, run: Run) -> str:
    if free := note.details["free"]:
        return (
            f"The judged queries are not a random sample of all: for {free:,} of them no call was needed, "
            "the others were judged in random order."
        )
    return "The judged queries are a random sample of all: they were judged in random order."


@sentence("judge_agreement")
def _judge_agreement(note: Note, run: Run) -> str:
    alpha, repeats = note.details["alpha"], note.details["repeats"]
    value = "is undefined, because all judgements are equal" if alpha is None else f"is {alpha:.2f}"
    return f"Judged {repeats} times, majority vote. The agreement of the repeats (Krippendorff's alpha) {value}."


# What to try if nothing matched: judges/auto.py


_MADE_AGAIN = "set ids yourself, or give gold as texts, documents or ranges (docs/objects.md)"


@sentence("nothing_matched")
def _nothing_matched(note: Note, run: Run) -> str:
    if len(run.all_hits):
        return ""
    if note.details["hint"] == "id_difference":
        found = IdDifference.from_dict(note.details)
        ids = f"{note.count:,} of {note.of:,} gold ids checked would match"
        return f"Nothing matched: the ids differ by {found.phrase} ({ids}): try {found.hint}."
    if note.details["hint"] == "excluded":
        verb, them = ("was", "it") if note.count == 1 else ("were", "them")
        ids = f"{note.count:,} of {note.of:,} gold ids checked {verb} retrieved"
        return f"Nothing matched: {ids}, but the convention {run.convention.name} excludes {them}."
    hints = {
        "documents": plural(note.count, "gold id is a document", "gold ids are documents")
        + ' of retrieved chunks: try at="doc"',
        "contains": f"{note.count:,} of {note.of:,} gold texts looked at are inside retrieved texts: "
        "try the judge contains",
        "ids": "no gold id was retrieved for its query. If the corpus was chunked again, the chunk ids changed; "
        "gold given as texts or documents survives that (docs/judges.md)",
        "empty": f"{note.count:,} of {plural(note.of, 'ranking', 'rankings')} checked are empty",
        "random": f"the retrieved ids are random: {_MADE_AGAIN}",
        "hashed": f"the retrieved ids are hashes of texts: {_MADE_AGAIN}",
        "texts": "the gold looks like ids, and this judge compares texts: try the judge ids",
    }
    return f"Nothing matched: {hints[note.details['hint']]}."
