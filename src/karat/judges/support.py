"""Support: which passages say what a claim says, each alone or several together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Support(NamedTuple):
    """The passages that support one claim by their places, counted from 0, and why they do."""

    alone: frozenset[int] = frozenset()
    """Those that suffice by themselves."""
    together: tuple[frozenset[int], ...] = ()
    """Sets of those that suffice only with one another."""
    why: str = ""

    @property
    def places(self) -> frozenset[int]:
        """Every passage that has a part in it."""
        return self.alone.union(*self.together)

    def moved(self, to: Sequence[int]) -> Support:
        """The same where the passages stand at other places; those of a set that become one suffice alone."""
        alone = {to[place] for place in self.alone}
        sets = [frozenset(to[place] for place in together) for together in self.together]
        alone |= {place for together in sets if len(together) == 1 for place in together}
        return Support(frozenset(alone), tuple(together for together in sets if len(together) > 1), self.why)


NONE = Support()


def unite(found: Iterable[Support]) -> Support:
    """What several looks at different passages found of one claim."""
    some = [support for support in found if support.places]
    if not some:
        return NONE
    sets = tuple(dict.fromkeys(together for support in some for together in support.together))
    why = " · ".join(dict.fromkeys(support.why for support in some if support.why))
    return Support(frozenset().union(*(support.alone for support in some)), sets, why)


def vote(votes: Sequence[Support]) -> Support:
    """What most of several judgements of one claim say; a claim that only half of them support is not supported."""
    if len(votes) == 1:
        return votes[0]
    yes = [support for support in votes if support.places]
    if 2 * len(yes) <= len(votes):
        return NONE
    count = Counter(place for support in yes for place in support.places)
    most = max(count.values())
    least = most if 2 * most <= len(votes) else len(votes) / 2 + 0.5
    chosen = frozenset(place for place, times in count.items() if times >= least)
    joint = 2 * sum(not support.alone for support in yes) > len(yes) and len(chosen) > 1
    return Support(frozenset(), (chosen,), yes[0].why) if joint else Support(chosen, (), yes[0].why)
