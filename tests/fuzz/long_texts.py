"""Long texts of random motifs, through judges, lint and analyses: none takes much longer than an ordinary text."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import karat
from fuzz.frame import Fault, fuzzer

ATOMS = (
    *" \n\t.!?…abA1\"'”()[]{}<>|`#_\\/éßİﬁ。", "\r\n", "\u2028", "\u3000", "\u0301", "\u0316", "\u202e", "\u200d",
    "\ufdfa", "\U0001f468", "\ud800", "\0", "\x1b[0m", ". ", "x ", "0.5", "1. ", "- ", "* ", "**", "<b>", "</b>",
    "&amp;", "http://", "<<<end", "Dr. ", "No. ", "e.g. ", "not ", "no ", "ten ", "the ", "refund ", "Leeds ",
    "退款", "です", "환불",
)  # fmt: skip
WORDS = (
    "the", "refund", "is", "paid", "within", "ten", "days", "of", "a", "return", "and", "no", "fee", "applies", "to",
    "orders", "that", "Ann", "Lee", "cancels",
)  # fmt: skip
JUDGES = (
    "ids", "exact", "text", "text(fold=[unicode])", "contains", "contains(fold=[])", "contains(fold=[unicode,case])",
    "contains(strip=[date,speaker,json])", "spans", "spans(graded=true)", "claims", "claims(of=gold)",
    "claims(of=response)",
)  # fmt: skip
SLOWER, FLOOR = 30, 2.0
"""A text may take so many times as long as prose of the same shape and size, and at least so many seconds."""


def motif(random: Random, size: int) -> str:
    """A text made of one motif, with rare exceptions, or with noise in every repetition."""
    unit = "".join(random.choice(ATOMS) * random.choice((1, 1, 1, 2, 40, 500)) for _ in range(random.randint(1, 6)))
    kind = random.random()
    if kind < 0.5:
        text = unit * (size // len(unit) + 1)
    elif kind < 0.75:
        text = unit * (size // len(unit) + 1)
        at = random.randrange(size)
        text = text[:at] + random.choice(ATOMS) + text[at:]
    else:
        count = size // len(unit) + 1
        text = "".join(
            f"{unit}{random.choice(ATOMS)}{random.randrange(10 ** random.randint(0, 6))}" for _ in range(count)
        )
    return text[:size]


def prose(random: Random, size: int) -> str:
    """Ordinary sentences."""
    words = " ".join(
        f"{random.choice(WORDS)}{random.choice(('', '', '', '. The', f' {random.randrange(999)}'))}"
        for _ in range(size // 4)
    )
    return words[:size]


def pieces(random: Random, text: str, count: int) -> list[str]:
    """The text in pieces of random lengths, some of them twice."""
    cuts = sorted(random.randrange(len(text) + 1) for _ in range(count - 1))
    found = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [*found, *random.choices(found, k=count // 10)]


def changed(random: Random, text: str) -> str:
    """The text with changes at random places: none, one, or in every line."""
    count = random.choice((0, 1, len(text) // 80))
    step = len(text) // (count + 1) + 1
    return random.choice(("¤", " ", "a", "")).join(text[at : at + step] for at in range(0, len(text), step))


def sample(random: Random, chunk: str, gold: str) -> dict[str, Any]:
    """One query with long texts, or with many short ones."""
    many = random.choice((1, 1, 2, 20, 100))
    retrieved = pieces(random, chunk, many)
    golds = pieces(random, gold, random.choice((1, 1, many)))
    begin = random.randrange(len(chunk))
    query = random.choice((chunk[begin : begin + 200], gold))
    return {
        "query": query,
        "retrieved": retrieved,
        "gold": golds,
        "answer": gold,
        "response": random.choice((gold, chunk)),
    }


def operation(random: Random) -> tuple[str, Callable[[list[dict[str, Any]], str], object]]:
    """What is done with the sample, by its name."""
    judge = random.choice(JUDGES)
    corpus = random.choice((False, True))
    if random.random() < 0.5:
        if judge.startswith("spans") and corpus:
            return "spans(corpus)", lambda samples, text: karat.evaluate(
                samples, judge=karat.Spans(corpus={"a": text, "b": "x"})
            )
        return judge, lambda samples, _: karat.evaluate(samples, "recall@5 ndcg", judge=judge)
    if random.random() < 0.4:
        return "lint", lambda samples, text: str(karat.lint(samples, corpus={"a": text} if corpus else None))
    return f"analyses of {judge}", lambda samples, _: _analyses(karat.evaluate(samples, "recall@5", judge=judge))


def _analyses(run: karat.Run) -> None:
    """Save, diagnose and report; what was not found is searched in what was."""
    run.save("run.parquet")
    str(karat.diagnose(karat.load("run.parquet")))
    run.report("run.html")


def seconds(call: Callable[[], object]) -> float:
    """The processor time of a call, which may refuse what it is given."""
    begin = process_time()
    with suppress(karat.KaratError):
        call()
    return process_time() - begin


@fuzzer("long texts", "No text of 20 to 60 kB takes 30 times as long as prose of the same size.", short=12, long=1_000)
def long_texts(random: Random, folder: Path) -> str:
    seed, size = random.randrange(10**6), random.randrange(20_000, 60_001)
    texts = motif(random, size), prose(random, size)
    times = []
    for text in texts:
        same = Random(seed)
        name, act = operation(same)
        samples = [sample(same, text, changed(same, text))]
        times.append(seconds(lambda act=act, samples=samples, text=text: act(samples, text)))
        if times[0] <= FLOOR:
            return name.partition("(")[0]
    if times[0] > SLOWER * times[1]:
        raise Fault(f"{name}: {times[0]:.1f} s, prose {times[1]:.2f} s; {texts[0][:80]!r}")
    return name.partition("(")[0]
