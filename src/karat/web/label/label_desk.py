"""The desk at which people label: it checks each answer, writes it to the labels file, and knows how far everybody is.

It lives in the server process. An answer is acknowledged after `LabelFile.append`, which has stored it; a thread waits
for the disk, never the event loop. Answers of one person are written one after the other. An answer that is sent again,
because its acknowledgement was lost, changes nothing.
"""

from __future__ import annotations

from asyncio import Lock, to_thread
from collections import Counter, OrderedDict, deque
from typing import Any, Literal

import msgspec

from karat.errors import KaratError
from karat.gold.labels import SETTLED, Key, Label, LabelFile, Quote, StandingLabels, checked_person
from karat.web.label.label_work import Labelled, Pair, Sheet, Work, WorkItem
from karat.web.problems import Refused

_REMEMBERED = 2000
"""Answers of which the ids are kept, to recognise repeated ones."""
_FOUND = 50
_PACE = 30
"""The number of answers from which the labels per minute are computed."""
_PAUSE = 120.0
"""Seconds after which a pause is none of the work."""
_MOST_QUOTES, _LONGEST_NOTE = 50, 5000


class GivenQuote(msgspec.Struct, forbid_unknown_fields=True):
    """A passage that a person has marked, by its characters."""

    start: int
    end: int


class GivenAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """An answer as the page sends it."""

    id: str
    """Made by the page, once per keystroke."""
    by: str
    query: str
    item: str
    answer: Literal["grade", "skip", "cannot tell"] = "grade"
    grade: int | None = None
    quotes: list[GivenQuote] = []
    note: str = ""


class GivenUndo(msgspec.Struct, forbid_unknown_fields=True):
    """An undo: of this line, which must be the last one of the person."""

    id: str
    by: str
    number: int


class Person:
    """A person who labels: the sheets, and how far they are done."""

    def __init__(self, work: Work, by: str) -> None:
        self.by = by
        self.sheets = work.sheets(by)
        self.place = {(sheet.query, item): n for n, sheet in enumerate(self.sheets) for item in sheet.items}
        self.done = Counter[int]()
        """The number of answered items by sheet."""
        self.lock = Lock()
        self._times: deque[float] = deque(maxlen=_PACE)

    def is_done(self, sheet: int) -> bool:
        """True if all items of the sheet are answered."""
        return self.done[sheet] == len(self.sheets[sheet].items)

    def next(self, after: int = -1) -> int | None:
        """The first sheet after this one that is not done; then from the first on."""
        count = len(self.sheets)
        return next((n % count for n in range(after + 1, after + 1 + count) if not self.is_done(n % count)), None)

    def tick(self, seconds: float) -> None:
        """Note the time of an answer."""
        if self._times and seconds - self._times[-1] > _PAUSE:
            self._times.clear()
        self._times.append(seconds)

    @property
    def per_minute(self) -> float | None:
        """Answers per minute of late, without pauses; None for fewer than three."""
        took = self._times[-1] - self._times[0] if len(self._times) > 2 else 0.0
        return 60 * (len(self._times) - 1) / took if took > 0 else None

    def progress(self) -> dict[str, Any]:
        """The amount of work done."""
        return {
            "items": len(self.place), "done": self.done.total(), "sheets": len(self.sheets),
            "sheets_done": sum(map(self.is_done, self.done)), "per_minute": self.per_minute,
        }  # fmt: skip


class Desk:
    """The work, the labels file, and the people at it."""

    def __init__(
        self, work: Work, labels: LabelFile, *, by: str = "", guideline: str = "", show_model: bool = False
    ) -> None:
        self.work, self.labels, self.by, self.guideline, self.show_model = work, labels, by, guideline, show_model
        self.pairs = work.pairs()
        self.standing = StandingLabels()
        self.position = {(one.query, one.item): n for n, one in enumerate(work.order)}
        self.people: dict[str, Person] = {}
        self.changes = 0
        """The number of answers since the start."""
        self._settling = Lock()
        self._asked = Counter[Pair]()
        self._first: dict[Pair, Label] = {}
        """The first answer to each item: it says if the item was drawn, and in which order."""
        self._frontier = 0
        """The number of items at the begin of the order that somebody has answered."""
        self._shown_model: set[Key] = set()
        """The people and items of which the person has seen the model's opinion, also if the answer was undone."""
        self._answered: OrderedDict[tuple[str, str], Label | None] = OrderedDict()
        for line in labels.lines:
            self._apply(line)
        self.before = len(self.standing.latest)

    def person(self, by: str) -> Person:
        """The person of this name."""
        try:
            name = self.standing.name(checked_person(by))
        except KaratError as error:
            raise Refused(400, error.problem, got=error.got) from error
        if name == SETTLED:
            raise Refused(400, "this name is kept for settled disagreements", hint="another name")
        if name not in self.people:
            self._join(name)
        return self.people[name]

    def _join(self, name: str) -> Person:
        person = self.people[name] = Person(self.work, name)
        for query, item, by in self.standing.latest:
            pair = self.pairs.get((query, item))
            if by == name and pair in person.place:
                person.done[person.place[pair]] += 1
        return person

    def _apply(self, line: Label) -> Label | None:
        """Fold a line into what stands; an undo returns what it took back."""
        key = (line.query, line.item, self.standing.name(line.by))
        if line.answer in ("grade", "cannot tell"):
            self._shown_model.add(key)
        was = key in self.standing.latest
        taken = self.standing.add(line)
        if taken is not None:
            key = (taken.query, taken.item, key[2])
            was = True
        pair = self.pairs.get(key[:2])
        change = (key in self.standing.latest) - was
        if pair is None or not change:
            return taken
        self._asked[pair] += change
        if self._asked[pair]:
            self._first.setdefault(pair, line)
        else:
            del self._first[pair]
        if change < 0 and pair in self.position and not self._asked[pair]:
            self._frontier = min(self._frontier, self.position[pair])
        person = self.people.get(key[2])
        if person is not None and pair in person.place:
            person.done[person.place[pair]] += change
        return taken

    def probability(self, pair: Pair) -> float | None:
        """The probability of an item that is asked for in the order of the work; None if somebody chose it.

        The order has come to a sheet if every item before it was answered by somebody.
        """
        order = self.work.order
        position = self.position.get(pair)
        if position is None:
            return None
        while self._frontier < len(order) and self._asked[order[self._frontier].query, order[self._frontier].item]:
            self._frontier += 1
        reached = order[self._frontier].query if self._frontier < len(order) else None
        ahead = order[self._frontier : position + 1]
        return order[position].probability if all(one.query == reached for one in ahead) else None

    async def answer(self, given: GivenAnswer, seconds: float) -> Label:
        """Store an answer and return its line; one that stands already is not written again."""
        person, (query, item) = self.person(given.by), self._pair(given.query, given.item)
        label = self._label(given, person.by, (query, item))
        async with person.lock:
            known = self._answered.get((person.by, given.id)) or self._same(label)
            if known is not None:
                return known
            stored = await to_thread(self.labels.append, label)
            self._apply(stored)
            self._remember(person.by, given.id, stored)
            person.tick(seconds)
            return stored

    async def settle(self, given: GivenAnswer) -> Label:
        """Settle a disagreement: the label of the person "settled" wins. The note names who settled it."""
        person, pair = self.person(given.by), self._pair(given.query, given.item)
        label = self._label(given, SETTLED, pair)
        label = msgspec.structs.replace(label, probability=None, order="", note=given.note or f"settled by {person.by}")
        async with self._settling:  # one after the other, as the lines of one person
            known = self._answered.get((person.by, given.id)) or self._same(label)
            if known is not None:
                return known
            stored = await to_thread(self.labels.append, label)
            self._apply(stored)
            self._remember(person.by, given.id, stored)
            return stored

    async def undo(self, given: GivenUndo) -> Label | None:
        """Take the last line of a person back; None if another one is the last by now."""
        person = self.person(given.by)
        async with person.lock:
            if (person.by, given.id) in self._answered:
                return self._answered[person.by, given.id]
            last = self.standing.last(person.by)
            if last is None or last.number != given.number:
                return None
            await to_thread(self.labels.undo, person.by)
            self._apply(Label(last.query, last.item, "undo", by=person.by))
            self._remember(person.by, given.id, last)
            return last

    def _remember(self, by: str, key: str, label: Label) -> None:
        self.changes += 1
        self._answered[by, key] = label
        if len(self._answered) > _REMEMBERED:
            self._answered.popitem(last=False)

    def _same(self, label: Label) -> Label | None:
        """The line that says the same already, for an answer that was sent again to a server that was started again."""
        last = self.standing.last(label.by)
        if last is None:
            return None
        same = ("query", "item", "answer", "grade", "quotes", "note")
        return last if all(getattr(last, name) == getattr(label, name) for name in same) else None

    def _pair(self, query: str, item: str) -> Pair:
        pair = self.pairs.get((query, item))
        if pair is None:
            raise Refused(404, "there is no such item in the pool")
        return pair

    def item(self, pair: Pair) -> WorkItem:
        """The item of a pair."""
        return self.work.queries[pair[0]].items[pair[1]]

    def _label(self, given: GivenAnswer, by: str, pair: Pair) -> Label:
        """An answer as a line; refused if it is none."""
        item, values = self.item(pair), self.labels.scale.values
        if not 1 <= len(given.id) <= 80:
            raise Refused(400, "an answer has an id of up to 80 characters")
        if (given.answer == "grade") != (given.grade is not None):
            raise Refused(400, 'an answer "grade" has a grade, and no other has one')
        if given.grade is not None and given.grade not in values:
            raise Refused(400, "the grade is not of the scale", got=str(given.grade), hint=", ".join(map(str, values)))
        if len(given.quotes) > _MOST_QUOTES or len(given.note) > _LONGEST_NOTE:
            raise Refused(413, f"an item has up to {_MOST_QUOTES} quotes, and a note of {_LONGEST_NOTE:,} characters")
        text = item.text or ""
        if any(not 0 <= one.start < one.end <= len(text) for one in given.quotes):
            raise Refused(400, "a quote is not within the text of its item")
        quotes = tuple(
            Quote(start, end, text[start:end]) for start, end in sorted({(one.start, one.end) for one in given.quotes})
        )
        grade = None if given.grade is None else float(given.grade)
        seen = item.model is not None and (
            self.show_model or by == SETTLED or (given.query, given.item, by) in self._shown_model
        )
        first = self._first.get(pair)
        probability = self.probability(pair) if first is None else first.probability
        order = "" if probability is None else self.work.order_id if first is None else first.order
        return Label(
            given.query, given.item, given.answer, grade, quotes, given.note, by,
            probability=probability, order=order, model=item.model, seen=seen,
        )  # fmt: skip

    def sheet(self, person: Person, number: int) -> dict[str, Any]:
        """A sheet as the page shows it: neither run nor rank nor score, and no opinion before the answer."""
        if not 0 <= number < len(person.sheets):
            raise Refused(404, "there is no such sheet")
        query, places = person.sheets[number]
        asked = self.work.queries[query]
        last = self.standing.last(person.by)
        return {
            "number": number, "query": asked.id, "text": asked.text,
            "items": [self._shown(person, asked.id, asked.items[place]) for place in places],
            "next": person.next(number), "progress": person.progress(), "last": last.number if last else None,
        }  # fmt: skip

    def _shown(self, person: Person, query: str, item: WorkItem) -> dict[str, Any]:
        label = self.standing.latest.get((query, item.key, person.by))
        shown = {"key": item.key, "text": item.text, "id": item.id, "doc": item.doc, "length": item.length}
        return shown | {"label": None if label is None else said(label), "model": self.opinion(item, label)}

    def opinion(self, item: WorkItem, label: Label | None) -> float | None:
        """The opinion of the model, if the person may see it now."""
        graded = label is not None and label.answer != "skip"
        return item.model if self.show_model or graded else None

    def listed(self, person: Person, begin: int) -> dict[str, Any]:
        """Some sheets for the list to jump to."""
        begin = max(0, min(begin, len(person.sheets) - 1))
        own = list(enumerate(person.sheets))[begin : begin + _FOUND]
        return {
            "of": len(person.sheets), "begin": begin,
            "sheets": [self._named(n, sheet) | {"done": person.done[n], "items": len(sheet.items)} for n, sheet in own],
        }  # fmt: skip

    def _named(self, number: int, sheet: Sheet) -> dict[str, Any]:
        query = self.work.queries[sheet.query]
        return {"number": number, "query": query.id, "text": query.text}

    def search(self, person: Person, text: str) -> dict[str, Any]:
        """Items of the pool whose text, id or query has all words."""
        words, more = text.lower().split(), False
        found: list[dict[str, Any]] = []
        for number, sheet in enumerate(person.sheets if words else ()):
            query = self.work.queries[sheet.query]
            for place in sheet.items:
                item = query.items[place]
                content = " ".join(filter(None, (query.text, query.id, item.text, item.id))).lower()
                if all(word in content for word in words):
                    more = len(found) == _FOUND
                    if more:
                        break
                    begin = (item.text or item.id or item.doc or item.key)[:160]
                    found.append(self._named(number, sheet) | {"item": item.key, "begin": begin})
            if more:
                break
        return {"found": found, "more": more}

    def disagreements(self) -> list[dict[str, Any]]:
        """Items to which people gave different grades, those that are not settled first."""
        answers: dict[tuple[str, str], dict[str, Label]] = {}
        for (query, key, by), label in self.standing.latest.items():
            counts = label.grade is not None or (by == SETTLED and label.answer == "cannot tell")
            if counts and (query, key) in self.pairs:
                answers.setdefault((query, key), {})[by] = label
        found = []
        for (query, key), own in answers.items():
            settled = own.pop(SETTLED, None)
            if len({label.grade for label in own.values()}) > 1:
                pair = self.pairs[query, key]
                item = self.item(pair)
                found.append({
                    "query": query, "text": self.work.queries[pair[0]].text,
                    "item": {"key": key, "text": item.text, "id": item.id, "doc": item.doc, "length": item.length},
                    "grades": [{"by": by, **said(label)} for by, label in sorted(own.items())],
                    "settled": None if settled is None else {"answer": settled.answer, "grade": settled.grade},
                })  # fmt: skip
        return sorted(found, key=lambda one: one["settled"] is not None)

    def facts(self) -> Labelled:
        """The labels for the worker that computes agreement and the estimate."""
        return self.work.labelled(self.standing.latest)


def said(label: Label) -> dict[str, Any]:
    """A label as the page shows it to the person who gave it."""
    return {
        "answer": label.answer, "grade": label.grade, "note": label.note, "number": label.number,
        "quotes": [{"start": one.start, "end": one.end, "text": one.text} for one in label.quotes],
    }  # fmt: skip
