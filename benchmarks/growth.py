"""Growth: the exponent of the time of every judge and every analysis, over hostile and ordinary texts.

`python -m benchmarks.growth` prints one row per operation: the worst exponent, and for which text. Judges are taken
from the registry, so a new judge is measured too. Every text is tried with 3 and 30 kB, and those that are slowest or
grow fastest are measured from 10 kB to 1 MB (`--thorough`: all). An operation that refuses a text is measured up to its
refusal. Where the output is not a terminal, the last line has the rows for the table of all benchmarks.
"""

from __future__ import annotations

import gc
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import signature
from itertools import cycle, islice
from math import log
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

import karat
from benchmarks.outcome import Outcome, write_outcomes
from karat.judges import all_judges, find_judge
from karat.judges.model_judge import ModelJudge

SIZES = (10_000, 100_000, 1_000_000)
_TRIED = (3_000, 30_000)
TARGET, _STEEPEST = 1.2, 1.4
_FIXED, _FLOOR = 0.001, 0.005
"""Seconds: shorter times are mostly the fixed cost of a call."""
_ENOUGH = 20.0
"""Seconds: after a longer call the larger sizes are skipped."""
_QUICK, _REPETITIONS = 0.3, 3
_CHOSEN = 2
"""The number of texts that are measured: of those that grow fastest, and of the slowest ones."""
_QUOTE, _CHUNK, _DEPTH, _LINE = 200, 500, 10, 60
_WORDS = re.findall(
    r"\S+",
    "the refund is paid within ten days of a return and no fee applies to orders that Ann Lee or the shop in Leeds "
    "cancels before noon while parcels above 20 kg are sent by freight not post so ask for section 3.1 first",
)

Sample = dict[str, Any]


def prose(size: int, seed: int = 20) -> str:
    """Sentences of a few hundred different words, in paragraphs."""
    random, parts, length = Random(seed), [], 0
    while length < size:
        words = [*random.choices(_WORDS, k=random.randint(4, 20)), f"{random.choice(_WORDS)}{random.randrange(300)}"]
        parts.append(" ".join(words).capitalize() + random.choice((". ", ". ", "? ", ".\n\n")))
        length += len(parts[-1])
    return "".join(parts)[:size]


def repeated(*units: str) -> Callable[[int], str]:
    """Texts of the same units again and again."""
    whole = "".join(units)
    return lambda size: "".join(islice(cycle(whole), size))


TEXTS: dict[str, Callable[[int], str]] = {
    "prose": prose,
    "Chinese": repeated("退款将在收到退货后十天内支付。请在提交申请之前仔细阅读第三节，"),
    "list": repeated("- one item of a list\n", "2. and another\n"),
    "JSON": repeated('{"key": ["value \\" 1", null, {"a": 1.5}]}, '),
    "HTML": repeated("<p class='x'>a &amp; <b>b</b></p>"),
    "spaces": repeated(" "),
    "spaces and words": repeated(" " * 99, "x"),
    "newlines": repeated("\n"),
    "dots": repeated("."),
    "dots and spaces": repeated(". "),
    "one letter": repeated("a"),
    "two letters": repeated("a" * 50, "b"),
    "one-letter words": repeated("a "),
    "digits": repeated("1"),
    "abbreviations": repeated("Dr. "),
    "numbers of a list": repeated("1. "),
    "list marks": repeated("\n- "),
    "quotation marks": repeated('."'),
    "brackets": repeated("("),
    "tags": repeated("<"),
    "nested brackets": lambda size: "([" * (size // 4) + "])" * (size // 4),
    "Markdown": repeated("## Head\n\n* **bold** [a link](http://x.org/?a=1#b) `code`\n> | a | b |\n|---|---|\n"),
    "periodic": repeated("ab"),
    "long period": repeated(*(chr(97 + n * n % 26) * (n % 7) for n in range(300))),
    "long words": repeated("x" * 5_000, " "),
    "short sentences": repeated("I am. ", "No! ", "Is it? "),
    "no white space": lambda size: prose(size * 2).replace(" ", "").replace("\n", "")[:size],
    "numbers": lambda size: " ".join(map(str, range(size // 5)))[:size],
    "Hangul": repeated("환불은 반품을 받은 날부터 열흘 안에 지급됩니다. "),
    "backslashes": repeated("\\"),
    "combining marks": repeated("\u0301\u0316"),
    "ligatures": repeated("\ufdfa"),
    "emoji": repeated("\U0001f468\u200d\U0001f469\u200d"),
    "lone surrogates": repeated("\ud800"),
    "controls": repeated("\x00\x1b[31m"),
    "right to left": repeated("\u202e\u05d0\u05d1 "),
    "frames": repeated("<<<end of passage 1>>>\n"),
    "cut marks": repeated("… [1 more characters]"),
    "separators": repeated("a | b | "),
}


def one_chunk(text: str) -> list[Sample]:
    """A long chunk, and a short quote from its middle."""
    quote = _middle(text)
    return [{"query": quote, "retrieved": [text], "gold": [quote], "answer": quote, "response": quote}]


def one_gold(text: str) -> list[Sample]:
    """A long gold text and answer, and a short chunk from its middle."""
    chunk = _middle(text)
    return [{"query": text, "retrieved": [chunk], "gold": [text], "answer": text, "response": text}]


def both(text: str) -> list[Sample]:
    """A long chunk, and a long gold text that differs a little."""
    gold = f"Not {text}"
    return [{"query": _middle(text), "retrieved": [f"{text} else"], "gold": [gold], "answer": gold, "response": gold}]


def nearly(text: str) -> list[Sample]:
    """A long chunk, and a long gold text of which some characters in every line differ."""
    gold = "¤".join(_cut(text, _LINE))
    return [{"query": _middle(gold), "retrieved": [text], "gold": [gold], "answer": gold, "response": gold}]


def many_queries(text: str) -> list[Sample]:
    """Queries with ten chunks of the text, of which one is gold and one contains a quote."""
    chunks = [f"{number} {chunk}" for number, chunk in enumerate(_cut(text, _CHUNK))]
    rankings = [chunks[at : at + _DEPTH] for at in range(0, len(chunks), _DEPTH)]
    return [
        {
            "query": own[0],
            "retrieved": own,
            "gold": [own[-1], own[0][:_QUOTE], f"else {own[0]}"],
            "answer": own[-1],
            "response": own[-1],
        }
        for own in rankings
    ]


def many_chunks(text: str) -> list[Sample]:
    """One query with a long ranking."""
    chunks = [f"{number} {chunk}" for number, chunk in enumerate(_cut(text, _LINE))]
    gold = [chunks[-1], f"else {chunks[0]}"]
    return [{"query": chunks[0], "retrieved": chunks, "gold": gold, "answer": gold[1], "response": chunks[0]}]


def many_gold(text: str) -> list[Sample]:
    """One query with many gold items, some of them twice, and a short ranking."""
    gold = [f"{number} {line}" for number, line in enumerate(_cut(text, _LINE))]
    chunks = [*gold[:_DEPTH], f"else {gold[-1]}"]
    return [
        {"query": gold[0], "retrieved": chunks, "gold": [*gold, *gold[:3]], "answer": gold[-1], "response": gold[0]}
    ]


def many_of_both(text: str) -> list[Sample]:
    """One query with as many gold items as chunks, of which every second one is found: 100 of each to 10,000."""
    lines = [f"{n} {text[at : at + _LINE]} ends line {n}" for n, at in enumerate(range(0, len(text), 100))]
    gold = [line if number % 2 else f"else {line}" for number, line in enumerate(lines)]
    return [{"query": lines[0], "retrieved": lines, "gold": gold, "answer": " ".join(gold), "response": gold[0]}]


SHAPES: dict[str, Callable[[str], list[Sample]]] = {
    "one chunk": one_chunk,
    "one gold text": one_gold,
    "both": both,
    "nearly equal": nearly,
    "many queries": many_queries,
    "many chunks": many_chunks,
    "many gold items": many_gold,
    "many of both": many_of_both,
}
LONG = ("one chunk", "one gold text", "both", "nearly equal")
FEW = ("prose", "Chinese", "spaces", "one letter", "dots and spaces")
"""The texts that are cut into many pieces, which are too short to be hostile."""


def _middle(text: str) -> str:
    return text[len(text) // 2 :][:_QUOTE]


def _cut(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


class Model:
    """A model that answers at once: every claim and passage is irrelevant."""

    name = "none"

    async def __call__(self, messages: list[dict[str, str]], schema: dict[str, Any]) -> dict[str, Any]:
        """An answer that follows the schema."""
        content, properties = messages[-1]["content"], schema["properties"]
        if "passages" in properties:
            return {"passages": [{"passage": n, "grade": 0, "reason": ""} for n in _numbers(content, "passage")]}
        if properties["claims"]["items"]["type"] == "string":
            return {"claims": [content[-200:]]}
        nothing = {"verdict": 0, "passages": [], "together": 0, "reason": ""}
        return {"claims": [{"claim": n, **nothing} for n in _numbers(content, "claim")]}


def _numbers(content: str, label: str) -> range:
    """The numbers of the frames with this label."""
    count = 0
    while f"\n<<<end of {label} {count + 1} " in content:
        count += 1
    return range(1, count + 1)


class Operation(NamedTuple):
    """What is measured: `prepare` returns the call, and is not measured itself."""

    name: str
    prepare: Callable[[list[Sample], str], Callable[[], object]]


VARIANTS = ("claims(of=response)", "claims(of=gold)", "contains(fold=[])", "contains(fold=[unicode,case])")
"""Settings with which a judge works in another way."""


def operations() -> Iterator[Operation]:
    """Every judge, alone, with a model and with a corpus, as far as it has them; then what is done with a run."""
    for name, maker in all_judges().items():
        settings = signature(maker).parameters
        model = isinstance(maker, type) and issubclass(maker, ModelJudge)
        if not model or settings["model"].default is not None:
            yield Operation(name, partial(_judge, maker))
        if model:
            yield Operation(f"{name}(model)", partial(_judge, maker, model=Model(), cache=False, progress=False))
        if "corpus" in settings:
            yield Operation(f"{name}(corpus)", partial(_judge_in_corpus, maker))
    for name in VARIANTS:
        yield Operation(name, partial(_judge, partial(find_judge, name)))
    for judge in ("contains", "ids"):
        for name, use in USES.items():
            yield Operation(f"{name}, {judge}", partial(_use, use, judge))
    yield Operation("lint", lambda samples, _: lambda: str(karat.lint(samples)))
    yield Operation("lint(corpus)", lambda samples, _: lambda: str(karat.lint(samples, corpus=_corpus(samples))))


def _judge(maker: Callable[..., Any], samples: list[Sample], _: str, **settings: Any) -> Callable[[], object]:
    return partial(_evaluate, samples, maker(**settings))


def _judge_in_corpus(maker: Callable[..., Any], samples: list[Sample], _: str) -> Callable[[], object]:
    return partial(_evaluate, samples, maker(corpus=_corpus(samples)))


def _corpus(samples: list[Sample]) -> dict[str, str]:
    """Two documents: one with all gold texts, one with everything that was retrieved."""
    return {side: "\n".join(text for sample in samples for text in sample[side]) for side in ("gold", "retrieved")}


def _evaluate(samples: list[Sample], judge: Any) -> object:
    return karat.evaluate(samples, "precision@5 ndcg@10", judge=judge)


def _use(use: Callable[[karat.Run], object], judge: str, samples: list[Sample], _: str) -> Callable[[], object]:
    return partial(use, karat.evaluate(samples, "recall@5", judge=judge))


def _save(run: karat.Run) -> object:
    with TemporaryDirectory() as folder:
        run.save(Path(folder) / "run.parquet")
        loaded = karat.load(Path(folder) / "run.parquet")
        return loaded.items(loaded.ids[0])


def _report(run: karat.Run) -> object:
    with TemporaryDirectory() as folder:
        run.report(Path(folder) / "run.html", baseline=run)
    return None


USES: dict[str, Callable[[karat.Run], object]] = {
    "save": _save,
    "report": _report,
    "diagnose": lambda run: (str(karat.diagnose(run)), karat.diagnose(run).to_markdown()),
    "diagnose one query": lambda run: str(karat.diagnose(run, query=run.ids[0])),
    "compare": lambda run: str(karat.compare(run, run)),
    "print": lambda run: (str(run), run.to_markdown()),
}


class Growth(NamedTuple):
    """The times of one operation for texts of growing size."""

    operation: str
    text: str
    shape: str
    sizes: list[int]
    seconds: list[float]
    refused: str = ""

    def better(self, operation: Operation) -> Growth:
        """The same, measured once more: the shorter time of each size."""
        again = measure(operation, self.text, self.shape, self.sizes)
        return self._replace(seconds=list(map(min, self.seconds, again.seconds)))

    @property
    def growth(self) -> float:
        """The ratio of the last and the first time, of which the fixed cost of a call is no part."""
        return (self.seconds[-1] + _FIXED) / (self.seconds[0] + _FIXED) if self.seconds else 0.0

    @property
    def exponent(self) -> float:
        """The exponent from the smallest to the largest size."""
        return self._exponent(0, -1) if len(self.sizes) > 1 else 0.0

    @property
    def steepest(self) -> float:
        """The largest exponent from one size to the next: quadratic time may begin late."""
        return max((self._exponent(i, i + 1) for i in range(len(self.sizes) - 1)), default=0.0)

    @property
    def met(self) -> bool:
        """True if the time is near-linear: over the whole range, and from one size to the next."""
        return self.exponent <= TARGET and self.steepest <= _STEEPEST

    def _exponent(self, one: int, other: int) -> float:
        ratio = max(self.seconds[other], _FLOOR) / max(self.seconds[one], _FLOOR)
        return log(ratio) / log(self.sizes[other] / self.sizes[one])


def measure(
    operation: Operation, text: str, shape: str, sizes: Sequence[int] = SIZES, repetitions: int = _REPETITIONS
) -> Growth:
    """The processor time of an operation for texts of each size: the shortest of several calls."""
    growth = Growth(operation.name, text, shape, [], [])
    for size in sizes:
        given = TEXTS[text](size)
        try:
            call = operation.prepare(SHAPES[shape](given), given)
        except karat.KaratError as error:
            return growth._replace(refused=str(error).splitlines()[0])
        seconds, refused = _seconds(call, repetitions)
        growth.sizes.append(size)
        growth.seconds.append(seconds)
        growth = growth._replace(refused=refused)
        if seconds > _ENOUGH:
            break
    return growth


def _seconds(call: Callable[[], object], repetitions: int) -> tuple[float, str]:
    """The shortest time of a call, and why it was refused, if it was."""
    least, refused = float("inf"), ""
    for _ in range(repetitions):
        gc.disable()
        begin = process_time()
        try:
            call()
        except karat.KaratError as error:
            refused = str(error).splitlines()[0]
        least = min(least, process_time() - begin)
        gc.enable()
        if not _FLOOR < least < _QUICK:
            break
    return least, refused


def worst(
    operation: Operation, texts: Sequence[str] | None, shapes: Sequence[str] | None, sizes: Sequence[int], most: int
) -> list[Growth]:
    """The largest exponent first: of every text alone, and of some texts in many pieces."""
    pairs = [(text, shape) for shape in shapes or SHAPES for text in texts or (TEXTS if shape in LONG else FEW)]
    if most < len(pairs):
        tried = [measure(operation, *pair, _TRIED, repetitions=1) for pair in pairs]
        fastest, slowest = (
            sorted(range(len(pairs)), key=key, reverse=True)[:most]
            for key in (lambda i: tried[i].growth, lambda i: sum(tried[i].seconds))
        )
        pairs = [pairs[i] for i in dict.fromkeys([*fastest, *slowest])]
    each = [measure(operation, *pair, sizes) for pair in pairs]
    again = [growth if growth.met else growth.better(operation) for growth in each]
    return sorted(again, key=lambda growth: (growth.met, -growth.exponent))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 1 if an exponent is above the target."""
    parser = ArgumentParser(prog="python -m benchmarks.growth", description=__doc__.splitlines()[0])
    parser.add_argument("operations", nargs="*", metavar="OPERATION", help="some operations (default: all)")
    parser.add_argument("--texts", nargs="*", choices=TEXTS, help="some texts (default: all)")
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, help="some shapes (default: all)")
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="the numbers of characters")
    parser.add_argument("--all", action="store_true", help="print every measurement above the target")
    parser.add_argument("--thorough", action="store_true", help="measure every text for the largest size")
    given = parser.parse_args(arguments)
    outcomes = []
    for operation in operations():
        if given.operations and operation.name not in given.operations:
            continue
        most = len(TEXTS) * len(SHAPES) if given.thorough else _CHOSEN
        each = worst(operation, given.texts, given.shapes, given.sizes, most)
        shown = [growth for growth in each[1:] if given.all and not growth.met]
        for growth in [each[0], *shown]:
            print(_row(growth), flush=True)
        outcomes.append(_outcome(each[0]))
    if not sys.stdout.isatty():
        write_outcomes(outcomes)
        return 0
    return int(not all(outcome.met for outcome in outcomes))


def _row(growth: Growth) -> str:
    times = "  ".join(f"{seconds:8.3f}" for seconds in growth.seconds)
    where = f"{growth.text}, {growth.shape}"
    exponents = f"{growth.exponent:5.2f} {growth.steepest:5.2f}"
    return f"{growth.operation:<28}{exponents}  {where:<36}{times}  {growth.refused[:60]}".rstrip()


def _outcome(growth: Growth) -> Outcome:
    return Outcome(
        case="growth",
        peer=f"exponent, {growth.operation}",
        karat_ms=growth.seconds[-1] * 1e3 if growth.seconds else None,
        ratio=growth.exponent,
        target=f"≤ {TARGET:g}",
        met=growth.met,
        note=f"{growth.text}, {growth.shape}" + (f"; refused: {growth.refused}" if growth.refused else ""),
    )


if __name__ == "__main__":
    sys.exit(main())
