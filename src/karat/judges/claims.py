"""The judge `claims`: gold that is an answer. Its claims are gold items, found where a context supports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from karat._internal.grammar import write, write_call
from karat._internal.progress import track
from karat.conventions import Convention
from karat.errors import BadArgument, InputError, unknown
from karat.hits import Hits
from karat.judges.attribution import Task, attributed, extracted
from karat.judges.lexical import THRESHOLD, Words
from karat.judges.matches import as_texts
from karat.judges.model_judge import Asking, agreement_note
from karat.judges.protocol import JudgeBase, judge, share_of_one
from karat.judges.support import Contexts, Support, Supported
from karat.judges.tokens import sentences
from karat.llm import Failure
from karat.samples import Samples
from karat.samples.notes import Note

Of = Literal["auto", "answer", "gold", "response"]
Split = Literal["model", "sentences"]


@judge("claims")
class Claims(JudgeBase):
    """Claims of the answer as gold, each found where a context supports it: by words, or by a language model."""

    compares = "claim"
    needs_gold = False
    makes_gold = True
    parallel = False  # one budget for all requests

    def __init__(
        self,
        model: Any = "lexical",
        *,
        of: Of = "auto",
        split: Split = "model",
        threshold: float = THRESHOLD,
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
        for setting, value, allowed in (("of", of, Of), ("split", split, Split)):
            if value not in get_args(allowed):
                names = get_args(allowed)
                raise unknown(f"choice for {setting}", str(value), names, f"{setting} is one of: {', '.join(names)}")
        self.of, self.split = of, split
        self.threshold = share_of_one("threshold", threshold)
        self.lexical = model == "lexical"
        self.asking = Asking(
            model, base_url=base_url, repeats=repeats, per_call=per_call, cache=cache, concurrency=concurrency,
            max_cost=max_cost, max_tokens=max_tokens, max_calls=max_calls, confirm=confirm,
        )  # fmt: skip
        if self.lexical and self.asking.written != {"model": "lexical"}:
            raise BadArgument("claims(lexical) asks no model: no repeats, no address", got=self.asking.written)

    @property
    def name(self) -> str:
        """The judge with every setting that may change its word."""
        written = self.asking.written
        settings: dict[str, object] = {"of": self.of} if self.of != "auto" else {}
        settings |= {"split": self.split} if self.split != "model" and not self.lexical else {}
        settings |= {"threshold": self.threshold} if self.threshold != THRESHOLD and self.lexical else {}
        settings |= {key: value for key, value in written.items() if key != "model"}
        inside = write_call("", **settings)[1:-1]
        return f"claims({', '.join(part for part in (write(written['model']), inside) if part)})"

    def with_settings(self, **given: Any) -> Claims:
        """The same judge, asking its model in another way."""
        changed = Claims(given.get("model", self.asking.model), of=self.of, split=self.split, threshold=self.threshold)
        changed.asking = self.asking.with_settings(**given)
        return changed

    def __call__(self, samples: Samples, convention: Convention) -> Hits:
        """Find the claims of every query, and the contexts that support each."""
        of = self._source(samples)
        rankings = Contexts(samples, convention, self.name, by_sentence=of == "response")
        passages = rankings.passages()
        claims, failed = self._claims(samples, of, passages)
        tasks = [Task(query, own, texts) for query, own, texts in zip(_queries(samples), claims, passages, strict=True)]
        note = self._note(samples, of, claims, failed)
        supports, told = (
            (self._by_words(tasks), (Note("lexical_judge"),)) if self.lexical else self._by_model(tasks, failed)
        )
        made = Supported(rankings, claims, supports, failed, (*told, note))
        return made.hits_on_gold(samples.gold) if of == "gold" else made.hits()

    def _source(self, samples: Samples) -> str:
        """Whose claims are looked for; the answer's before the gold, which may be passages."""
        texts = {"answer": samples.answer, "response": samples.response}
        if self.of == "gold" or (self.of == "auto" and not any(samples.answer or ()) and len(samples.gold.grade)):
            if "text" not in samples.gold.fields or not len(samples.gold.grade):
                raise InputError(f'the judge "{self.name}" takes gold items for claims, but they have no texts')
            return "gold"
        of = "answer" if self.of == "auto" else self.of
        if not any(text and text.strip() for text in texts[of] or ()):
            raise InputError(
                f'the judge "{self.name}" needs a field "{of}", and no query has one, "{samples.ids[0]}" for one',
                hint='{"query": …, "retrieved": […], "' + of + '": "…"}',
            )
        return of

    def _claims(
        self, samples: Samples, of: str, passages: Sequence[Sequence[str]]
    ) -> tuple[list[list[str]], dict[int, str]]:
        """The claims of each query; none where there is no text. Those that could not be told fail."""
        size = len(samples)
        if of == "gold":
            flat, start = as_texts(samples.gold.columns["text"]), samples.gold.start.tolist()
            return [flat[start[row] : start[row + 1]] for row in range(size)], {}
        texts = [text or "" for text in (samples.answer if of == "answer" else samples.response) or ()]
        if self.lexical or self.split == "sentences":
            return [list(dict.fromkeys(sentences(text))) for text in texts], {}
        rows = [row for row, text in enumerate(texts) if text.strip()]
        queries = _queries(samples)
        asked = [(queries[row], texts[row]) for row in rows]
        found = extracted(self.asking, asked, [passages[row] for row in rows])
        told = dict(zip(rows, found, strict=True))
        failed = {
            row: f"its claims are not known: {one.cause}" for row, one in told.items() if isinstance(one, Failure)
        }
        each = [told.get(row, []) for row in range(size)]
        return [[] if isinstance(one, Failure) else one for one in each], failed

    def _by_words(self, tasks: Sequence[Task]) -> list[list[Support]]:
        return [
            [words.support(claim) for claim in task.claims]
            for task, words in track(
                ((task, Words(task.passages, self.threshold)) for task in tasks), len(tasks), self.name
            )
        ]

    def _by_model(self, tasks: Sequence[Task], failed: dict[int, str]) -> tuple[list[list[Support]], tuple[Note, ...]]:
        """What the model found; the queries that it could not judge are added to the failed ones."""
        found, votes = attributed(self.asking, tasks)
        failed |= {row: one.cause for row, one in enumerate(found) if isinstance(one, Failure)}
        supports = [[] if isinstance(one, Failure) else one for one in found]
        return supports, agreement_note(votes, self.asking.repeats)

    def _note(self, samples: Samples, of: str, claims: Sequence[Sequence[str]], failed: dict[int, str]) -> Note:
        """Where the claims come from, and the number of queries that have none."""
        none = sum(not own and row not in failed for row, own in enumerate(claims))
        split = "sentences" if self.lexical else self.split
        unused = of == "answer" and len(samples.gold.grade) > 0
        return Note("claims", none, details={"source": of, "split": split, "gold_unused": unused})


def _queries(samples: Samples) -> Sequence[str | None]:
    return samples.query if samples.query is not None else [None] * len(samples)
