"""A pool: the items per query, the overlap of the runs, and how much is judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from karat._internal.display import bold, cut_name, heading, paragraph, percent, plural, sanitize, text_table
from karat._internal.writers import html_table, plain, to_csv
from karat.gold.pool import Pool
from karat.report.forms import code, escape, table
from karat.report.notes import SENTENCES
from karat.samples.notes import Note

_NAME = 24
_HEADER = ["", "queries", "items", "only here", "judged", "not judged"]
_RIGHT = range(1, len(_HEADER))


def terminal(pool: Pool) -> str:
    """The sentences that sum it up, the table of the runs, and the remarks."""
    lines = [heading(_caption(pool)), "", *map(paragraph, _summary(pool)), ""]
    lines.append(text_table([[*map(bold, _HEADER)], *_rows(pool, _NAME)], right=_RIGHT))
    if notes := remarks(pool):
        lines += ["", *map(paragraph, notes)]
    return "\n".join(lines)


def markdown(pool: Pool) -> str:
    """The same as Markdown."""
    rows = [[code(name), *cells] for name, *cells in _rows(pool)]
    lines = [escape(_caption(pool)), *map(escape, _summary(pool)), table(_HEADER, rows, _RIGHT)]
    return "\n\n".join([*lines, *map(escape, remarks(pool))])


def html(pool: Pool) -> str:
    """The same as an HTML table, for notebooks."""
    return html_table(_HEADER, _rows(pool), " · ".join([_caption(pool), *_summary(pool), *remarks(pool)]))


def csv(pool: Pool) -> str:
    """One row per item, with its rank in each run."""
    import polars as pl

    ranks = {f"rank.{name}": column for name, column in zip(pool.runs, pool.ranks.T.tolist(), strict=True)}
    items = [(query, item) for query in pool.queries for item in query.items]
    columns = {
        "query_id": pl.Series([query.id for query, _ in items], dtype=pl.String),
        "query": pl.Series([query.text for query, _ in items], dtype=pl.String),
        "key": pl.Series([item.key for _, item in items], dtype=pl.String),
        "id": pl.Series([item.id for _, item in items], dtype=pl.String),
        "text": pl.Series([item.text for _, item in items], dtype=pl.String),
        **{name: pl.Series([rank or None for rank in own], dtype=pl.Int64) for name, own in ranks.items()},
        "judged": pl.Series([item.judged for _, item in items], dtype=pl.Float64),
    }
    return to_csv(pl.DataFrame(columns))


def data(pool: Pool) -> dict[str, Any]:
    """Everything that is shown, as plain values."""
    values = {
        "runs": [one._asdict() for one in pool.shares],
        "depth": pool.depth,
        "queries": len(pool),
        "items": pool.size,
        "shared": _shared(pool),
        "judged": pool.judged,
        "known_gold": sum(len(one.gold) for one in pool.known),
        "summary": _summary(pool),
        "remarks": remarks(pool),
    }
    return dict(plain(values))


def remarks(pool: Pool) -> list[str]:
    """One sentence per note."""
    return [sanitize(_sentence(note)) for note in pool.notes]


def _sentence(note: Note) -> str:
    own = POOL_SENTENCES.get(note.kind)
    return SENTENCES[note.kind](note, None) if own is None else own(note)  # type: ignore[arg-type]


def _caption(pool: Pool) -> str:
    names = ", ".join(cut_name(name, _NAME) for name in pool.runs)
    return sanitize(f"{names} · top {pool.depth:,} · {plural(len(pool), 'query', 'queries')}")


def _shared(pool: Pool) -> int:
    """The number of items that more than one run retrieved."""
    return int(((pool.ranks > 0).sum(axis=1) > 1).sum())


def _summary(pool: Pool) -> list[str]:
    """The sentences that sum it up."""
    size = pool.size
    if not size:
        return ["There is no item to label."]
    different = plural(size, "different item", "different items")
    lines = [f"{different}, {size / len(pool):.1f} per query."]
    if len(pool.runs) > 1:
        by = "both runs" if len(pool.runs) == 2 else "more than one run"
        shared = _shared(pool)
        were = "was" if shared == 1 else "were"
        lines[0] = f"{lines[0][:-1]}; {shared:,} ({percent(shared / size)}) {were} retrieved by {by}."
    left = size - pool.judged
    if not pool.judged:
        lines.append("None is judged yet.")
    elif left:
        are, rest = ("is" if count == 1 else "are" for count in (pool.judged, left))
        lines.append(f"{pool.judged:,} ({percent(pool.judged / size)}) {are} judged already, {left:,} {rest} not.")
    else:
        lines.append("All are judged already: there is nothing to label.")
    return lines


def _rows(pool: Pool, width: int | None = None) -> list[list[str]]:
    return [
        [
            cut_name(one.name, width),
            f"{one.queries:,}",
            f"{one.items:,}",
            f"{one.alone:,}",
            percent(1 - one.unjudged / one.items) if one.items else "–",
            f"{one.unjudged:,}",
        ]
        for one in pool.shares
    ]


def _queries(note: Note) -> str:
    return f"{note.count:,} of {plural(note.of, 'query', 'queries')}"


def _items(note: Note) -> str:
    return f"{note.count:,} of {plural(note.of, 'item', 'items')}"


def _failed(note: Note) -> str:
    return f"{note.details['name']}: the retrieval of {_queries(note)} failed; nothing of it is in the pool."


def _missing(note: Note) -> str:
    verb = "is" if note.count == 1 else "are"
    return f"{note.details['name']}: {_queries(note)} {verb} not in it; the other runs alone are pooled."


def _apart(note: Note) -> str:
    if note.details["what"] == "queries":
        return "No query is in two of the runs: do they have the same ids?"
    return "No item was retrieved by two of the runs: are these ids, or texts, of the same collection?"


def _by_text(note: Note) -> str:
    return f"{note.details['name']} has other query ids than the runs before it: its queries were found by their texts."


def _repeats(note: Note) -> str:
    rows, queries = f"{note.count:,} repeats", plural(note.of, "query", "queries")
    return f"{note.details['name']}: {rows} of {queries}; the items of all repeats are pooled, each at its best rank."


def _unstored(note: Note) -> str:
    d, rankings = note.details, plural(note.count, "ranking", "rankings")
    return f"{d['name']} stores {d['places']} ranks of each query: the lower ranks of {rankings} are not in the pool."


def _excluded(note: Note) -> str:
    items = plural(note.count, "retrieved item is", "retrieved items are")
    return f"{note.details['name']}: {items} excluded by the query."


def _empty(note: Note) -> str:
    have, are = ("has", "is") if note.count == 1 else ("have", "are")
    return f"{_queries(note)} {have} no item in any run, and {are} not in the pool."


def _no_text(note: Note) -> str:
    have = "has" if note.count == 1 else "have"
    return f'{_items(note)} {have} no text, which people need to label: give {{"id": …, "text": …}} as retrieved items.'


def _no_query(note: Note) -> str:
    have = "has" if note.count == 1 else "have"
    return f'{_queries(note)} {have} no text, which people need to label: give the field "query".'


def _cut(note: Note) -> str:
    have = "has" if note.count == 1 else "have"
    return f"{_items(note)} {have} only the beginning of the text: run files cut long texts. Samples have all of it."


def _such_as(note: Note) -> str:
    return "; ".join(cut_name(example, 60) for example in note.examples)


def _texts_differ(note: Note) -> str:
    items = plural(note.count, "item has", "items have")
    return f"{items} the same id and another text in a run, such as {_such_as(note)}; the first text is kept."


def _grades_differ(note: Note) -> str:
    items = plural(note.count, "item has", "items have")
    return f"{items} two grades, such as {_such_as(note)}; that of the gold file counts, else that of the first run."


def _queries_differ(note: Note) -> str:
    queries = plural(note.count, "query has", "queries have")
    return f"{queries} another text in the gold, such as {_such_as(note)}: is it the gold of these queries?"


def _missed(note: Note) -> str:
    gold, are = plural(note.of, "known gold item", "known gold items"), "is" if note.count == 1 else "are"
    kept = "it is kept" if note.count == 1 else "they are kept"
    return f"{note.count:,} of {gold} {are} in no item of the pool; {kept} for the gold that is written."


def _gold_cut(note: Note) -> str:
    gold = plural(note.count, "gold item is", "gold items are")
    return (
        f"{note.details['name']}: {gold} left out, because the run stores only its beginning: give the gold file, too."
    )


def _left_out(note: Note) -> str:
    queries = plural(note.count, "query", "queries")
    return (
        f"{note.details['name']}: karat eval left out {queries} without gold, so nothing of them is here. "
        "With samples instead of the run file they are: karat label --holes SAMPLES, or karat pool SAMPLES."
    )


def _sample(note: Note) -> str:
    d, judgements = note.details, plural(note.count, "judgement", "judgements")
    drawn = f"{d['queries']:,} of {plural(note.of, 'query', 'queries')}"
    return f"A random sample: all {judgements} of {drawn}, drawn with seed {d['seed']}."


POOL_SENTENCES: dict[str, Callable[[Note], str]] = {
    "pool_failed": _failed,
    "pool_missing": _missing,
    "pool_apart": _apart,
    "pool_by_text": _by_text,
    "pool_repeats": _repeats,
    "pool_unstored": _unstored,
    "pool_left_out": _left_out,
    "pool_excluded": _excluded,
    "pool_empty": _empty,
    "pool_no_text": _no_text,
    "pool_no_query": _no_query,
    "pool_cut": _cut,
    "pool_texts_differ": _texts_differ,
    "pool_grades_differ": _grades_differ,
    "pool_queries_differ": _queries_differ,
    "pool_missed": _missed,
    "pool_gold_cut": _gold_cut,
    "pool_sample": _sample,
}
"""The sentence of each kind of note on a pool."""
