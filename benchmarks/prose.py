"""Prose: seeded passages of English words, and samples of them for the judges that compare texts."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Literal, NamedTuple

from karat.cli.demo.example import corpus

_SEED = 20
# The words of the bundled example, each as often as it stands there. They are few for so much text, so
# passages that have nothing to do with each other share many of them, as chunks on one topic do.
_WORDS = [word for page in corpus() for word in page.text.split()]
_A_WORD = 4  # characters, with the space; on average it is more, so that a text is never too short
_A_LINE = 12  # words

_GOLD = 5
_DEPTH = 10
_ALIKE = 500
_REPLACED = (0.3, 0.6)

_CHUNK = 1_000
_QUOTE = 200
_LEAST_PART = 50

Sample = dict[str, Any]
Kind = Literal["whole", "cut", "nowhere"]
_KINDS: tuple[Kind, ...] = ("whole",) * 7 + ("cut",) * 2 + ("nowhere",)


class Quoted(NamedTuple):
    """Samples of one quote each as the text of a file, and where the quotes lie."""

    text: str
    kinds: list[Kind]

    def load(self) -> list[Sample]:
        """A copy that nobody has touched: Python keeps the hash of a string once it was asked for."""
        samples: list[Sample] = json.loads(self.text)
        return samples


def passage(random: Random, size: int) -> str:
    """So many characters, in lines."""
    words = random.choices(_WORDS, k=size // _A_WORD)
    lines = [" ".join(words[at : at + _A_LINE]) for at in range(0, len(words), _A_LINE)]
    text = "\n".join(lines)[:size]
    assert len(text) == size
    return text


def alike(count: int) -> list[Sample]:
    """Samples under the names of ragas: of five gold texts one came back, three came back edited, one did not."""
    random = Random(_SEED)
    samples: list[Sample] = []
    for _ in range(count):
        gold = [passage(random, _ALIKE) for _ in range(_GOLD)]
        retrieved = [gold[0], *(_edited(text, random) for text in gold[1:4])]
        retrieved += [passage(random, _ALIKE) for _ in range(_DEPTH - len(retrieved))]
        random.shuffle(retrieved)
        samples.append({"retrieved_contexts": retrieved, "reference_contexts": gold})
    return samples


def quoted(count: int) -> Quoted:
    """Samples of ten chunks and a quote, which lies in a chunk, is cut by the border of two, or is nowhere."""
    random = Random(_SEED)
    samples: list[Sample] = []
    kinds = [_KINDS[number % len(_KINDS)] for number in range(count)]
    for kind in kinds:
        document = passage(random, _CHUNK * _DEPTH)
        begin = random.randrange(_DEPTH - 1) * _CHUNK
        if kind == "whole":
            begin += random.randint(0, _CHUNK - _QUOTE)
        else:
            begin += _CHUNK - random.randint(_LEAST_PART, _QUOTE - _LEAST_PART)
        quote = passage(random, _QUOTE) if kind == "nowhere" else document[begin : begin + _QUOTE]
        chunks = [document[at : at + _CHUNK] for at in range(0, len(document), _CHUNK)]
        random.shuffle(chunks)
        samples.append({"retrieved": chunks, "gold": [quote]})
    return Quoted(json.dumps(samples), kinds)


def _edited(text: str, random: Random) -> str:
    """The text with many characters replaced, so many that some copies are more alike than a half and some less."""
    share = random.uniform(*_REPLACED)
    return "".join(random.choice(text) if random.random() < share else char for char in text)
