"""The rankings of one query in several runs, side by side: the same items, the gold with its ranks, and the scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from karat._internal.display import number, plural, signed
from karat.metrics.names import sign_of
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.query_facts import cause_of, failure, field_list, field_values, gold_entry, gold_rank, step_list
from karat.report.html.ranking_entries import Matched, Ranking, rest_of, shown_cutoff_of, with_line
from karat.report.html.scores import table
from karat.run.stored_items import GoldItem

_PLACES = 20
"""Items of a ranking that are shown before it is expanded."""
_GOLD = 100
_TEXT = {1: 700, 2: 360, 3: 220}
"""Characters of a text that are shown before it is expanded, by the number of runs."""
_SHORT_TEXT = 140


class RankedRun(NamedTuple):
    """A run as a column: the ranking of its query, or None if it does not have the query."""

    name: str
    ranking: Ranking | None
    causes: Mapping[tuple[str, int], str]
    """The cause of each missed gold item, by the id of the row and the index of the item."""
    href: str | None = None
    whole_name: str | None = None
    """The name of the run if `name` is a short one."""

    @property
    def title(self) -> Element:
        """The name; a short one has the whole name as its title."""
        return data(self.name, whole=self.whole_name)

    @property
    def heading(self) -> Element:
        """The name as a heading, with a link if there is a page of the run."""
        return h("h3", self.title if self.href is None else h("a", self.title, href=self.href))


def rankings(runs: Sequence[RankedRun]) -> Element:
    """The section with a column per run; a script draws lines between the same items of neighbouring columns."""
    there = [run.ranking for run in runs if run.ranking is not None]
    matched = Matched(there)
    places = {id(ranking): at for at, ranking in enumerate(there)}
    columns, shared = [], shared_fields(runs)
    for run in runs:
        found = _absent() if run.ranking is None else _column(runs, matched, places[id(run.ranking)], shared)
        columns.append(h("div.ranking", run.heading, *found))
    lines = h("span.wide-only", "Lines connect the same item in neighbouring runs. ") if len(there) > 1 else None
    moves = "“3 → 1” is the rank in the first run, and here. " if len(there) > 1 else ""
    marks = "Items with a gold border are relevant; the passages that match are highlighted."
    return h(
        "section",
        h("h2", "Rankings"),
        h("p.note", lines, moves + marks),
        h(
            "div.rankings",
            *columns,
            tabindex=0,
            role="region",
            aria_label=f"Rankings of {plural(len(runs), 'run', 'runs')}",
        ),
        id="rankings",
    )


def _absent() -> list[Element]:
    return [h("p.note", "This run does not have the query.")]


def shared_fields(runs: Sequence[RankedRun]) -> dict[str, str]:
    """The fields of the sample that have the same value in every run that has the query."""
    found = [field_values(run.ranking.run, run.ranking.row) for run in runs if run.ranking is not None]
    return {name: value for name, value in found[0].items() if all(own.get(name) == value for own in found[1:])}


def _column(runs: Sequence[RankedRun], matched: Matched, at: int, shared: Collection[str]) -> list[Element]:
    """The content of a column: the fields and steps of its own, and the items with a line at k."""
    ranking = matched.rankings[at]
    k = shown_cutoff_of(ranking.run)
    entries = [(item.rank, _entry(runs, matched, at, place)) for place, item in enumerate(ranking.known)]
    first, later = entries[:_PLACES], entries[_PLACES:]
    more = None
    if later:
        has_line = k is not None and first[-1][0] >= k
        title = h("summary", f"Ranks {later[0][0]:,} to {later[-1][0]:,}")
        more = h("details.deeper", title, h("ol", *with_line(later, None if has_line else k, ranking.depth)))
    note = rest_of(ranking, len(entries))
    own = {name: value for name, value in field_values(ranking.run, ranking.row).items() if name not in shared}
    about = [failure(ranking.run, ranking.row), field_list(own, whole=True), step_list(ranking.run, ranking.row)]
    parts = [*about, h("ol", *with_line(first, k, ranking.depth)), more]
    return [*(part for part in parts if part is not None), *([h("p.note", note)] if note else [])]


def _entry(runs: Sequence[RankedRun], matched: Matched, at: int, place: int) -> Element:
    ranking, key = matched.rankings[at], matched.keys[at][place]
    item = ranking.known[place]
    move = matched.move(at, place, 0) if at else None
    longest = _TEXT.get(len(runs), _SHORT_TEXT)
    names = [run.name for run in runs if run.ranking is not None]
    words = [
        f"{matched.missing(other)} in " if rank is None else f"rank {rank} in "
        for other in range(len(names))
        if other != at
        for rank in [matched.rank(other, key)]
    ]
    others = [name for other, name in enumerate(names) if other != at]
    elsewhere: list[Child] = []
    for told, name in zip(words, others, strict=True):
        elsewhere += [", " if elsewhere else "", told, data(name)]
    return h(
        "li.item.hit" if item.rank in ranking.hits else "li.item",
        *ranking.entry(item, texts="whole", move=move, longest=longest),
        h("p.elsewhere", *elsewhere) if elsewhere and key is not None else None,
        data_item=None if key is None else matched.numbers[key],
    )


def gold_ranks(runs: Sequence[RankedRun]) -> Element:
    """The gold items, each with its rank in every run, and the cause if it was missed."""
    places = [{} if run.ranking is None else _gold_of(run.ranking) for run in runs]
    names = list(dict.fromkeys(name for own in places for name in own))
    matched = Matched([run.ranking for run in runs if run.ranking is not None])
    rows: list[list[Child | None]] = []
    for name in names[:_GOLD]:
        holder = next(at for at, own in enumerate(places) if name in own)
        place, item = places[holder][name]
        ranking = runs[holder].ranking
        assert ranking is not None
        cells: list[Child | None] = [
            _gold_cell(run, own.get(name), matched) for run, own in zip(runs, places, strict=True)
        ]
        rows.append([h("div.gold-item", *gold_entry(ranking, place, item, texts="whole")), *cells])
    notes = [f"{len(names) - _GOLD:,} more."] if len(names) > _GOLD else [] if names else ["The query has no gold."]
    header: list[Child] = ["gold item", *(run.title for run in runs)]
    shown = table("Gold items and their ranks", header, rows, text=range(len(header))) if rows else None
    return h("section", h("h2", "Gold"), shown, *(h("p.note", note) for note in notes), id="gold")


def _gold_of(ranking: Ranking) -> dict[tuple[str, int], tuple[int, GoldItem]]:
    """The relevant gold items of a query by label, and the number of equal ones before; each with its index."""
    seen: Counter[str] = Counter()
    found = {}
    for place, item in enumerate(ranking.run.gold(ranking.run.ids[ranking.row])):
        if item.grade > 0:
            found[item.gold, seen[item.gold]] = (place, item)
            seen[item.gold] += 1
    return found


def _gold_cell(run: RankedRun, found: tuple[int, GoldItem] | None, matched: Matched) -> Element:
    """The rank of a gold item in one run, or that it was not retrieved, and the cause; nothing if it failed."""
    if run.ranking is None or found is None:
        return h("div", h("span.none", "no such query" if run.ranking is None else "not in its gold"))
    if failure(run.ranking.run, run.ranking.row) is not None:
        return h("div", h("span.none", "not judged"))
    place, item = found
    cause = cause_of(run.causes, run.ranking.run, run.ranking.row, place)
    key = None
    if item.rank is not None and run.ranking.items is not None and item.rank <= len(run.ranking.known):
        at = next(at for at, ranking in enumerate(matched.rankings) if ranking is run.ranking)
        key = matched.keys[at][item.rank - 1]
    number = None if key is None else matched.numbers[key]
    return h("div", gold_rank(item, shown_cutoff_of(run.ranking.run), number), cause)


def query_scores(runs: Sequence[RankedRun], values: Sequence[Mapping[str, float]]) -> Element:
    """The scores of the query in each run, and the differences from the first run."""
    names = list(dict.fromkeys(name for own in values for name in own))
    header: list[Child] = ["metric", *(run.title for run in runs)]
    rows: list[list[Child | None]] = []
    for name in names:
        first = values[0].get(name, float("nan"))
        rows.append([name, *(_score(name, own.get(name), None if at == 0 else first) for at, own in enumerate(values))])
    note = "Beside a score: its difference from the first run." if len(runs) > 1 else None
    return h(
        "section",
        h("h2", "Scores"),
        table("Scores of this query", header, rows),
        None if note is None else h("p.note", note),
        id="scores",
    )


def _score(name: str, value: float | None, first: float | None) -> Child:
    if value is None:
        return "–"
    if first is None or value != value or first != first:
        return number(value)
    gain = sign_of(name) * (value - first)
    way = "span.change.up" if gain > 0 else "span.change.down"
    return h("div", number(value), h(way if gain else "span.change", signed(value - first) if gain else ""))
