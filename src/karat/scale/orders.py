"""Orders: what to do with every batch, as it is handed to another process or machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from karat.conventions import Convention
from karat.errors import BadArgument
from karat.judges import Judge
from karat.metrics import METRICS, Metric, parse_all
from karat.metrics.registry import PARSED, Definition
from karat.samples import Samples
from karat.scale.batch import Partial, evaluate_batch
from karat.tokens import Counter


class Order(NamedTuple):
    """What is asked of a batch, whoever carries it out."""

    metrics: tuple[str, ...]
    judge: Judge
    convention: Convention
    tokens: Counter | None = None
    places: int | None = None
    """How many places of each ranking are kept, if the items are."""
    definitions: Mapping[str, Definition] = {}
    """Metrics of the user's own, which another process does not know."""

    @property
    def wanted(self) -> tuple[Metric, ...]:
        """The metrics; those of the user's own are made known first."""
        if any(METRICS.get(name) is not own for name, own in self.definitions.items()):
            METRICS.update(self.definitions)
            PARSED.clear()
        return parse_all(self.metrics)

    def carry_out(self, samples: Samples) -> Partial:
        """Judge and measure a batch."""
        return evaluate_batch(samples, self.wanted, self.judge, self.convention, tokens=self.tokens, places=self.places)


def order_of(
    metrics: Iterable[Metric],
    judge: Judge,
    convention: Convention,
    *,
    tokens: Counter | None = None,
    places: int | None = None,
) -> Order:
    """An order that can be carried out elsewhere; refuses judges that look at all queries together."""
    # One budget for all questions; and of all quotes at least one must stand in the corpus.
    if hasattr(judge, "asking") or getattr(judge, "corpus", None) is not None:
        raise BadArgument(
            f'the judge "{judge.name}" looks at all queries together: it is not split over processes or machines',
            hint="jobs=1; a model is asked many questions at a time in any case",
        )
    wanted = tuple(metrics)
    own = {m.name: m.definition for m in wanted if not _is_ours(m.definition)}
    return Order(tuple(map(str, wanted)), judge, convention, tokens, places, own)


def _is_ours(definition: Definition) -> bool:
    return str(definition.formula.__module__).startswith("karat.")
