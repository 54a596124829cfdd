"""The judge `relevance`: no gold. The retrieved texts are graded against the query or the answer, by a language model.

`relevance(lexical)` calls no model. It is a heuristic: a text is relevant if it has at least half of the content words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from karat._internal.arrays import starts
from karat._internal.display import percent
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, unknown
from karat.hits import Gold, Hits
from karat.judges.attribution import Piece, pack, split_texts
from karat.judges.lexical import topic_shares
from karat.judges.model_judge import LEXICAL, ModelJudge, agreement_note, majority
from karat.judges.prompts import Grade, grade
from karat.judges.protocol import judge
from karat.judges.support import HitRow, Ranking, build_hits, read_rankings
from karat.llm import Answer, Failure, Step, Steps
from karat.samples import Samples
from karat.samples.notes import Note

To = Literal["query", "answer"]
Target = list[tuple[str, str]]
"""The labelled texts that passages are graded against; empty if there are none."""
_PASSAGES_PER_CALL = 10
"""More passages in one call are graded less carefully."""


@judge("relevance")
class Relevance(ModelJudge):
    """Grades from 0 to 3 by a model or by words, for data without gold; for precision, nDCG and RR, not for recall."""

    complete_gold = False

    def __init__(self, model: Any = None, *, to: To = "query", **settings: Any) -> None:
        if model is None:
            hint = 'judge="relevance(gpt-4o-mini)", or judge="relevance(lexical)"'
            raise BadArgument('judge "relevance" needs a language model: name it', got=model, hint=hint)
        if to not in get_args(To):
            raise unknown("choice for to", str(to), get_args(To), f"to: one of {', '.join(get_args(To))}")
        self.to = to
        super().__init__(model, settings, own={"to": to}, named={"to": to} if to != "query" else {})
        if self.model is None and self.settings != {"model": LEXICAL, "to": to}:
            raise BadArgument("relevance(lexical) calls no model: it has no repeats and no address", got=self.name)

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Grade every distinct text of every query."""
        targets = self._targets(samples)
        rankings = read_rankings(samples, convention, self.name)
        if self.model is None:
            return self._by_words(targets, rankings)
        rows = zip(targets, rankings, strict=True)
        judged, moved = self.once(
            samples, rankings, lambda: self.run(samples.ids, (self._grades(*row) for row in rows))
        )
        found, refused, more = judged
        failed = {row: one.cause for row, one in enumerate(found) if isinstance(one, Failure)} | refused
        each = [
            [] if isinstance(one, Failure) else [grades for _, grades in sorted(zip(to, one, strict=True))]
            for one, to in zip(found, moved, strict=True)
        ]
        votes = [[one.grade for one in several] for own in each for several in own]
        note = Note("graded_without_gold", details={"to": self.to})
        notes = (note, *more, *agreement_note(votes, self.calls.repeats, "interval"))
        return _hits(rankings, [[_majority_grade(several) for several in own] for own in each], failed, notes)

    def _by_words(self, targets: Sequence[Target], rankings: Sequence[Ranking]) -> Hits:
        """The hits by the words that each text shares with its target."""
        failed = {row: f"it has no {self.to}" for row, target in enumerate(targets) if not target}
        grades = [
            [_grade_by_words(share) for share in topic_shares(target[-1][1], ranking.passages)] if target else []
            for target, ranking in zip(targets, rankings, strict=True)
        ]
        notes = (
            Note("lexical_judge", details={"judge": "relevance"}),
            Note("graded_without_gold", details={"to": self.to}),
        )
        return _hits(rankings, grades, failed, notes)

    def _grades(self, target: Target, ranking: Ranking) -> Steps[list[list[Grade]] | Failure]:
        """The grades of every passage of a query, one per repeat, or the failure of the query."""
        if not target:
            return Failure(f"it has no {self.to}")
        most = self.calls.per_call
        calls = pack(split_texts(ranking.passages, most), most, _PASSAGES_PER_CALL)
        repeats = range(self.calls.repeats)
        texts = [[piece.text for piece in call] for call in calls]
        requests = [grade(target, own, repeat) for repeat in repeats for own in texts]
        answers = iter((yield Step(requests)) if requests else ())
        rounds = [[next(answers) for _ in calls] for _ in repeats]
        return majority([_best_grades(calls, one, len(ranking.passages)) for one in rounds])

    def _targets(self, samples: Samples) -> list[Target]:
        """The target of each query, against which its passages are graded; empty where the field is blank."""
        blank = [None] * len(samples)
        queries, texts = samples.query or blank, (samples.query if self.to == "query" else samples.answer) or blank
        if not any(text and text.strip() for text in texts):
            raise InputError(
                f'judge "{self.name}" grades against the {self.to}, but no query has one, such as "{samples.ids[0]}"',
                hint='{"query": …, "retrieved": […]}',
            )
        label = "what is wanted: question" if self.to == "query" else "what is wanted: answer"
        targets: list[Target] = []
        for query, text in zip(queries, texts, strict=True):
            question = [("question", query)] if query and self.to == "answer" else []
            targets.append([*question, (label, text)] if text and text.strip() else [])
        return targets


def _best_grades(
    calls: Sequence[Sequence[Piece]], answers: Sequence[Answer | Failure], size: int
) -> list[Grade] | Failure:
    """The grades of one round of calls for a query; a text in several pieces gets its best grade."""
    best: dict[int, Grade] = {}
    for call, answer in zip(calls, answers, strict=True):
        if isinstance(answer, Failure):
            return answer
        for piece, one in zip(call, answer.value, strict=True):
            best[piece.place] = max(best.get(piece.place, one), one, key=lambda given: given.grade)
    return [best[place] for place in range(size)]


def _grade_by_words(share: float) -> Grade:
    """0 below half of the content words, then 1, from three quarters on 2, and 3 for all of them."""
    return Grade(int((share >= 0.5) + (share >= 0.75) + (share >= 1)), f"words: {percent(share)}")


def _majority_grade(several: Sequence[Grade]) -> Grade:
    """The grade of the majority; without one, the median, the lower of two."""
    ((first, times),) = Counter(one.grade for one in several).most_common(1)
    chosen = first if 2 * times > len(several) else sorted(one.grade for one in several)[(len(several) - 1) // 2]
    return next(one for one in several if one.grade == chosen)


def _hits(
    rankings: Sequence[Ranking], grades: Sequence[Sequence[Grade]], failed: dict[int, str], notes: tuple[Note, ...]
) -> Hits:
    """Each distinct text is a gold item with its grade, found at its own ranks."""
    rows: list[HitRow] = []
    labels: list[str] = []
    for query, (ranking, own) in enumerate(zip(rankings, grades, strict=True)):
        for number, one in enumerate(own):
            ranks = ranking.ranks[ranking.context[number]]
            gold = len(labels) + number
            rows += [HitRow(query, rank, gold, copy > 0, False, one.why) for copy, rank in enumerate(ranks)]
        labels += ranking.passages if own else []
    start = starts(np.fromiter(map(len, grades), np.int64, len(grades)))
    values = np.array([one.grade for own in grades for one in own], float)
    gold_items = Gold(labels, start, values, incomplete=True)
    return build_hits(rows, rankings, gold_items, notes=notes, failed=failed)
