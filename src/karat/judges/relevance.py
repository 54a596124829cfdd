"""The judge `relevance`: no gold at all. A language model grades what came back against the query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from karat._internal.arrays import starts
from karat._internal.grammar import write, write_call
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, unknown
from karat.hits import Gold, Hits
from karat.judges.attribution import Piece, packed, pieces_of
from karat.judges.model_judge import Asking, agreement_note
from karat.judges.prompts import Grade, grade
from karat.judges.protocol import Judge, judge
from karat.judges.support import Contexts, Ranking
from karat.llm import Answer, Failure, Request
from karat.samples import Samples
from karat.samples.notes import Note

To = Literal["query", "answer"]
Wanted = list[tuple[str, str]]
"""What passages are graded against, as labelled texts; empty if there is nothing."""
_MANY = 10
"""Passages in one call: more are graded less carefully."""


@judge("relevance")
class Relevance(Judge):
    """Grades from 0 to 3 by a language model, for data without gold; for precision, nDCG, RR, not for recall."""

    compares = "claim"
    needs_gold = False
    makes_gold = True
    complete_gold = False
    parallel = False  # one budget for all requests

    def __init__(
        self,
        model: Any = None,
        *,
        to: To = "query",
        repeats: int = 1,
        base_url: str | None = None,
        per_call: int = 12_000,
        cache: Any = None,
        concurrency: int | None = None,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        max_calls: int | None = None,
        confirm: bool | None = None,
    ) -> None:
        if model is None or model == "lexical":
            hint = 'judge="relevance(gpt-4o-mini)"'
            raise BadArgument('the judge "relevance" asks a language model; name it', got=model, hint=hint)
        if to not in get_args(To):
            raise unknown("choice for to", str(to), get_args(To), f"to is one of: {', '.join(get_args(To))}")
        self.to = to
        self.asking = Asking(
            model, base_url=base_url, repeats=repeats, per_call=per_call, cache=cache, concurrency=concurrency,
            max_cost=max_cost, max_tokens=max_tokens, max_calls=max_calls, confirm=confirm,
        )  # fmt: skip

    @property
    def name(self) -> str:  # type: ignore[override]
        """The judge with every setting that may change its word."""
        written = self.asking.written
        settings: dict[str, object] = {"to": self.to} if self.to != "query" else {}
        settings |= {key: value for key, value in written.items() if key != "model"}
        inside = write_call("", **settings)[1:-1]
        return f"relevance({', '.join(part for part in (write(written['model']), inside) if part)})"

    def with_settings(self, **given: Any) -> Relevance:
        """The same judge, asking its model in another way."""
        changed = Relevance(given.get("model", self.asking.model), to=self.to)
        changed.asking = self.asking.with_settings(**given)
        return changed

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Grade every different text of every query."""
        wanted = self._wanted(samples)
        rankings = Contexts(samples, convention, self.name).rankings
        most = self.asking.per_call
        calls = [packed(pieces_of(ranking.passages, most), most, _MANY) for ranking in rankings]
        told = self._told(wanted, calls, rankings)
        failed = {row: one.cause for row, one in enumerate(told) if isinstance(one, Failure)}
        each = [[] if isinstance(one, Failure) else one for one in told]
        votes = [[one.grade for one in several] for own in each for several in own]
        note = Note("graded_without_gold", details={"to": self.to})
        notes = (note, *agreement_note(votes, self.asking.repeats, "interval"))
        return _hits(rankings, [[_majority(several) for several in own] for own in each], failed, notes)

    def _told(
        self, wanted: Sequence[Wanted], calls: Sequence[Sequence[Sequence[Piece]]], rankings: Sequence[Ranking]
    ) -> list[list[list[Grade]] | Failure]:
        """The grades of every passage of every query, one for each repeat; or why there are none."""
        requests: list[Request] = []
        for parts, own in zip(wanted, calls, strict=True):
            repeats = range(self.asking.repeats if parts else 0)
            requests += [grade(parts, [piece.text for piece in call], n) for n in repeats for call in own]
        answers = iter(self.asking.ask(requests))
        told: list[list[list[Grade]] | Failure] = []
        for parts, own, ranking in zip(wanted, calls, rankings, strict=True):
            if not parts:
                told.append(Failure(f"it has no {self.to}"))
                continue
            rounds = [[next(answers) for _ in own] for _ in range(self.asking.repeats)]
            told.append(_judged([_round(own, one, len(ranking.passages)) for one in rounds]))
        return told

    def _wanted(self, samples: Samples) -> list[Wanted]:
        """What the passages of each query are graded against; nothing where the field is blank."""
        columns = {"query": samples.query, "answer": samples.answer}
        texts = [text if text and text.strip() else None for text in columns[self.to] or [None] * len(samples)]
        if not any(texts):
            raise InputError(
                f'the judge "{self.name}" grades against the {self.to}, and no sample has one, '
                f'"{samples.ids[0]}" for one',
                hint='{"query": …, "retrieved": […]}',
            )
        asked = samples.query or [None] * len(samples)
        label = {"query": "what is wanted: question", "answer": "what is wanted: answer"}[self.to]
        about = [[("question", query)] if query and self.to == "answer" else [] for query in asked]
        return [[*beside, (label, text)] if text else [] for beside, text in zip(about, texts, strict=True)]


def _round(calls: Sequence[Sequence[Piece]], answers: Sequence[Answer | Failure], size: int) -> list[Grade] | Failure:
    """One round of calls about a query: of a text in several pieces, the best counts."""
    best: dict[int, Grade] = {}
    for call, answer in zip(calls, answers, strict=True):
        if isinstance(answer, Failure):
            return answer
        for piece, one in zip(call, answer.value, strict=True):
            best[piece.place] = max(best.get(piece.place, one), one, key=lambda given: given.grade)
    return [best[place] for place in range(size)]


def _judged(rounds: Sequence[list[Grade] | Failure]) -> list[list[Grade]] | Failure:
    """All grades of each passage; a failure if no more than half of the rounds succeeded."""
    good = [one for one in rounds if not isinstance(one, Failure)]
    if rounds and 2 * len(good) <= len(rounds):
        return next(one for one in rounds if isinstance(one, Failure))
    return [list(several) for several in zip(*good, strict=True)]


def _majority(several: Sequence[Grade]) -> Grade:
    """The grade that most give; where none has most, the one in the middle, the lower of two."""
    ((first, times),) = Counter(one.grade for one in several).most_common(1)
    chosen = first if 2 * times > len(several) else sorted(one.grade for one in several)[(len(several) - 1) // 2]
    return next(one for one in several if one.grade == chosen)


def _hits(
    rankings: Sequence[Ranking], grades: Sequence[Sequence[Grade]], failed: dict[int, str], notes: tuple[Note, ...]
) -> Hits:
    """Each different text is a gold item of its grade, and is found where it stands."""
    rows: list[tuple[int, int, int, bool, str]] = []
    size: list[int] = []
    labels: list[str] = []
    values: list[int] = []
    for query, (ranking, own) in enumerate(zip(rankings, grades, strict=True)):
        for number, one in enumerate(own):
            ranks = ranking.ranks[ranking.context[number]]
            rows += [(query, rank, len(labels) + number, copy > 0, one.why) for copy, rank in enumerate(ranks)]
        labels += ranking.passages if own else []
        values += [one.grade for one in own]
        size.append(len(own))
    columns = np.array([row[:4] for row in rows], np.int64).reshape(-1, 4)
    return Hits(
        columns[:, 0],
        columns[:, 1],
        columns[:, 2],
        depth=np.array([ranking.depth for ranking in rankings], np.int64),
        gold_items=Gold(labels, starts(np.array(size, np.int64)), np.array(values, float), incomplete=True),
        repeated=columns[:, 3].astype(bool),
        why=[row[4] for row in rows],
        notes=notes,
        failed=failed,
    )
