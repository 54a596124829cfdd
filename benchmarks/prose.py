"""Seeded passages of English words, and samples of them for judges that compare texts."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Literal, NamedTuple

from karat.cli.demo.example import corpus

_SEED = 20
# The words of the bundled example with their frequencies. The vocabulary is small, so unrelated passages share many
# words, as chunks about one topic do.
_WORDS = [word for page in corpus() for word in page.text.split()]
_A_WORD = 4  # characters with the space, a lower bound of the average, so that no text is too short
_A_LINE = 12  # words

_GOLD = 5
_DEPTH = 10
_SIMILAR = 500
_REPLACED = (0.3, 0.6)

_CHUNK = 1_000
_QUOTE = 200
_LEAST_PART = 50

Sample = dict[str, Any]
Kind = Literal["whole", "cut", "nowhere"]
_KINDS: tuple[Kind, ...] = ("whole",) * 7 + ("cut",) * 2 + ("nowhere",)


class Quoted(NamedTuple):
    """Samples with one quote each as JSON text, and how each quote can be found."""

    text: str
    kinds: list[Kind]

    def load(self) -> list[Sample]:
        """A fresh copy: Python caches the hash of a string."""
        samples: list[Sample] = json.loads(self.text)
        return samples


def passage(random: Random, size: int) -> str:
    """A text of this many characters, in lines."""
    words = random.choices(_WORDS, k=size // _A_WORD)
    lines = [" ".join(words[at : at + _A_LINE]) for at in range(0, len(words), _A_LINE)]
    text = "\n".join(lines)[:size]
    assert len(text) == size
    return text


def similar_texts(count: int) -> list[Sample]:
    """Samples with ragas' names: of five gold texts one is retrieved, three are retrieved edited, one is not."""
    random = Random(_SEED)
    samples: list[Sample] = []
    for _ in range(count):
        gold = [passage(random, _SIMILAR) for _ in range(_GOLD)]
        retrieved = [gold[0], *(_edited(text, random) for text in gold[1:4])]
        retrieved += [passage(random, _SIMILAR) for _ in range(_DEPTH - len(retrieved))]
        random.shuffle(retrieved)
        samples.append({"retrieved_contexts": retrieved, "reference_contexts": gold})
    return samples


def quoted(count: int) -> Quoted:
    """Samples of ten chunks and a quote that is in one chunk, is split over two, or is in none."""
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
    """The text with many characters replaced: some copies have a similarity above 0.5, some below."""
    share = random.uniform(*_REPLACED)
    return "".join(random.choice(text) if random.random() < share else char for char in text)
