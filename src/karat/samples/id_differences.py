"""Differences of ids: case, slashes, Unicode normalisation, a common prefix, … Loaded only if no id matches.

A cause is named only if removing it makes ids match, and with the Python expression that removes it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote

from karat.samples.keys import ID_SHOWN, short_id

Groups = Sequence[tuple[Sequence[str], Sequence[str]]]
"""The ids of the results and of the gold that may match each other, query by query."""
_MOST = 10_000
"""The number of ids that are checked."""
_LONGEST = 500
"""The length of an id that is checked: longer ones are texts."""
_TRIED = 100_000
"""The number of parts of ids that are looked up to find a prefix; every id is then compared without it."""
_CERTAIN = 3
"""The number of matches from which two prefixes are not a coincidence."""
_INVISIBLE = r"[\s\u200b\ufeff]+"


class Fold(NamedTuple):
    """A way to write ids that hides one difference."""

    phrase: str
    code: str
    """The same as Python, of the expression {}."""
    apply: Callable[[str], str]
    cost: int = 1
    """If several folds explain the same matches, the cheaper one is named."""


FOLDS = {
    "case": Fold("upper and lower case", "{}.casefold()", str.casefold),
    "slashes": Fold(r"\ and /", r'{}.replace("\\", "/")', lambda name: name.replace("\\", "/")),
    "unicode": Fold(
        "Unicode normalisation", 'unicodedata.normalize("NFC", {})', lambda name: unicodedata.normalize("NFC", name)
    ),
    "space": Fold(
        "white space", r're.sub(r"[\s\u200b\ufeff]+", "", {})', lambda name: re.sub(_INVISIBLE, "", name)
    ),
    "zeros": Fold(
        "leading zeros", r're.sub(r"(?<!\d)0+(?=\d)", "", {})', lambda name: re.sub(r"(?<!\d)0+(?=\d)", "", name)
    ),
    "compatibility": Fold(
        "Unicode normalisation", 'unicodedata.normalize("NFKC", {})',
        lambda name: unicodedata.normalize("NFKC", name), 3,
    ),
    "escapes": Fold("percent-encoding", "urllib.parse.unquote({})", unquote),
    "extension": Fold(
        "the file extension", r're.sub(r"(?<=\w)\.\w+$", "", {})', lambda name: re.sub(r"(?<=\w)\.\w+$", "", name), 4
    ),
    "folder": Fold("the folder", r're.split(r"[\\/]", {})[-1]', lambda name: re.split(r"[\\/]", name)[-1], 4),
}  # fmt: skip
_HARMLESS = ("slashes", "escapes", "unicode", "case", "space", "zeros")
"""Folds that may be combined: they remove nothing that tells ids apart."""


@dataclass(frozen=True)
class IdDifference:
    """The difference between the ids of results and gold."""

    folds: tuple[str, ...] = ()
    end: str = ""
    """ "prefix" or "suffix", if the ids of one side or of both have one in common."""
    results: str = ""
    gold: str = ""
    """The prefix or suffix of each side."""
    count: int = 0
    """The gold ids that match without the difference."""
    of: int = 0
    sides: tuple[str, str] = ("the results", "the gold")
    """The names of the two sides."""

    @property
    def phrase(self) -> str:
        """The difference in words: upper and lower case."""
        parts = [FOLDS[name].phrase for name in self.folds]
        sides = [f'"{short_id(affix)}" of {side}' for side, affix in self._affixes().items() if affix]
        parts += [f"the {self.end} {' and '.join(sides)}"] if sides else []
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"

    @property
    def steps(self) -> list[tuple[str, str]]:
        """The Python expressions that remove the difference, each with its side: ("both", "id.casefold()")."""
        code = "id"
        for name in self.folds:
            code = FOLDS[name].code.format(code)
        cut = [(side, self._without(affix)) for side, affix in self._affixes().items() if affix]
        return [("both", code), *cut] if self.folds else cut

    @property
    def hint(self) -> str:
        """The remedy for a message: `id.casefold() for both`."""
        return ", ".join(f"{code} for {side}" for side, code in self.steps)

    def _without(self, affix: str) -> str:
        """The expression that removes a prefix or suffix; a long one is not spelt out."""
        if len(affix) <= ID_SHOWN:
            return f'id.remove{self.end}("{_quoted(affix)}")'
        return f"id[{len(affix)}:]" if self.end == "prefix" else f"id[:-{len(affix)}]"

    def _affixes(self) -> dict[str, str]:
        return dict(zip(self.sides, (self.results, self.gold), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The difference without its counts, as plain values."""
        return {"folds": list(self.folds), "end": self.end, "results": self.results, "gold": self.gold}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> IdDifference:
        """The difference from `to_dict`, without its counts."""
        return cls(tuple(given["folds"]), given["end"], given["results"], given["gold"])


def find_difference(groups: Iterable[tuple[Sequence[str], Sequence[str]]]) -> IdDifference | None:
    """The difference without which most gold ids would match; None if no more would match than are equal."""
    some = _first(groups)
    alone = [_folded(some, (name,)) for name in FOLDS if name != "folder" or _one_side_has_no_folders(some)]
    folds = _folds_with_effect(some)
    found = [*alone, _fewest(some, folds, _folded), _stripped(some, ()), _fewest(some, folds, _stripped)]
    best = min(found, key=lambda one: (-one.count, _cost(one)))
    return best if best.count > count_equal(some) else None


def _first(groups: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Groups:
    some, seen = [], 0
    for results, gold in groups:
        room = _MOST - seen
        some.append((_short(results[:room]), _short(gold[:room])))
        seen += len(results) + len(gold)
        if seen >= _MOST:
            break
    return some


def _short(names: Sequence[str]) -> list[str]:
    return [name for name in names if len(name) <= _LONGEST]


def _cost(found: IdDifference) -> int:
    affixes = 2 * bool(found.results) + 2 * bool(found.gold) + 2 * bool(found.results and found.gold)
    return sum(FOLDS[name].cost for name in found.folds) + affixes


def _folded(groups: Groups, folds: tuple[str, ...]) -> IdDifference:
    """The matches with these folds alone."""
    return IdDifference(folds, count=count_equal(_fold(groups, folds)), of=_size(groups))


def _folds_with_effect(groups: Groups) -> tuple[str, ...]:
    """The harmless folds that change any id, each applied after those before it."""
    found: list[str] = []
    for name in _HARMLESS:
        folded = _fold(groups, (name,))
        found += [name] if folded != groups else []
        groups = folded
    return tuple(found)


def _fewest(
    groups: Groups, folds: tuple[str, ...], count: Callable[[Groups, tuple[str, ...]], IdDifference]
) -> IdDifference:
    """All folds together, then without those that are not needed."""
    best = count(groups, folds)
    for name in folds if best.count else ():
        fewer = count(groups, tuple(fold for fold in best.folds if fold != name))
        best = fewer if fewer.count >= best.count and _cost(fewer) <= _cost(best) else best
    return best


def _fold(groups: Groups, folds: tuple[str, ...]) -> Groups:
    for name in folds:
        apply = FOLDS[name].apply
        groups = [(list(map(apply, results)), list(map(apply, gold))) for results, gold in groups]
    return groups


def count_equal(groups: Groups) -> int:
    """The number of gold ids among the results of their query; an empty id matches nothing."""
    return sum(name in known for results, gold in groups for known in [{*results} - {""}] for name in gold)


def _size(groups: Groups) -> int:
    return sum(len(gold) for _, gold in groups)


def _one_side_has_no_folders(groups: Groups) -> bool:
    sides = ([name for group in groups for name in group[side]] for side in (0, 1))
    return any(not any(re.search(r"[\\/]", name) for name in side) for side in sides)


def _stripped(groups: Groups, folds: tuple[str, ...]) -> IdDifference:
    """The matches without a prefix or suffix that all ids of one side, or of each side, have in common."""
    folded, size = _fold(groups, folds), _size(groups)
    best = IdDifference(folds, of=size)
    for end, turn in (("prefix", 1), ("suffix", -1)):
        turned = [([name[::turn] for name in results], [name[::turn] for name in gold]) for results, gold in folded]
        for results, gold in (*_one_side(turned), *_two_sides(turned)):
            count = count_equal(_cut(turned, results, gold))
            least = _CERTAIN if results and gold else 1
            if (results or gold) and count >= least and count > best.count:
                best = IdDifference(folds, end, results[::turn], gold[::turn], count, size)
    return best


def _cut(groups: Groups, results: str, gold: str) -> Groups:
    return [
        ([name.removeprefix(results) for name in left], [name.removeprefix(gold) for name in right])
        for left, right in groups
    ]


def _common(groups: Groups) -> list[str]:
    """The prefix that all ids of a side have in common, for each side."""
    return [_common_prefix([name for group in groups for name in group[side]]) for side in (0, 1)]


def _common_prefix(names: Sequence[str]) -> str:
    first, last = min(names, default=""), max(names, default="")
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _one_side(groups: Groups) -> Iterable[tuple[str, str]]:
    """The part of the prefix of one side without which most of its ids are on the other side."""
    for side, prefix in enumerate(_common(groups)):
        others = [{*group[1 - side]} - {""} for group in groups]
        lengths = [{*map(len, known)} for known in others]
        step = 1 + sum(len(group[side]) * len(own) for group, own in zip(groups, lengths, strict=True)) // _TRIED
        sizes = Counter(
            size
            for group, known, own in zip(groups, others, lengths, strict=True)
            for name in group[side][::step]
            for size in (len(name) - length for length in own)
            if 0 < size <= len(prefix)
            and name[size:] in known
            and not (name[size - 1].isdigit() and name[size].isdigit())  # not within a number
        )
        for size, _ in sizes.most_common(1):
            yield ("", prefix[:size]) if side else (prefix[:size], "")


def _two_sides(groups: Groups) -> Iterable[tuple[str, str]]:
    """Different prefixes of the two sides, which end where a word or a number ends."""
    for inside in (r"\w+$", r"\d+$"):
        results, gold = (re.sub(inside, "", prefix) for prefix in _common(groups))
        same = len(_common_prefix([results[::-1], gold[::-1]]))
        yield results[: len(results) - same], gold[: len(gold) - same]


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
