"""The samples of a collection, with its failures and its speed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import nan
from typing import Any

from karat._internal.result import Result
from karat.samples.notes import Note
from karat.samples.objects import id_notes

_BUSY = 0.5
"""The share of the time in which the process works, from which on calls wait for each other."""
_ALONE = 0.8
"""The share of the latencies that is work: calls that do little else did not wait."""
_COLD, _NOTABLE = 10, 10.0
"""A first call is much longer than others: by this factor, and by these milliseconds at least."""


class Collected(Result, list[dict[str, Any]]):
    """Samples: a list of dicts that `karat.evaluate` takes, with the failures and the speed of the retriever."""

    def __init__(
        self,
        samples: Iterable[dict[str, Any]],
        *,
        target: str,
        k: int,
        calls: int = 0,
        seconds: float = 0.0,
        cpu: float = 0.0,
        busy: float = 0.0,
        first: float = nan,
        concurrency: int = 1,
        cut: int = 0,
        older: int = 0,
        output: str | None = None,
    ) -> None:
        list.__init__(self, samples)
        self.target = target
        """The name of the retriever."""
        self.k = k
        self.calls = calls
        """The queries that were called now; the others were done before."""
        self.seconds = seconds
        """The time of all calls together."""
        self.cpu = cpu
        """The milliseconds in which the processor worked for them."""
        self.busy = busy
        """The share of the time in which this process used a processor; above 1 on several cores."""
        self.first = first
        """The latency of the first call, unless others were made before it to warm up."""
        self.concurrency = concurrency
        self.cut = cut
        """The queries for which the retriever returned more than k items; the rest was cut off."""
        self.older = older
        """The results of before that were collected with other code of the retriever."""
        self.output = output
        """The file of the samples."""

    @property
    def failures(self) -> dict[str, str]:
        """The queries for which the retriever failed, with the error; of repeats, the first that failed."""
        failed: dict[str, str] = {}
        for sample in self:
            if (error := sample.get("error")) is not None:
                failed.setdefault(str(sample["id"]), str(error))
        return failed

    @property
    def causes(self) -> list[tuple[str, int]]:
        """The errors and the number of their samples, the most frequent first."""
        return Counter(str(sample["error"]) for sample in self if sample.get("error") is not None).most_common()

    @property
    def short(self) -> int:
        """The number of rankings with fewer than k items."""
        return sum("retrieved" in sample and len(sample["retrieved"]) < self.k for sample in self)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on ids that are random or hashes."""
        return id_notes(sample["retrieved"] for sample in self if "retrieved" in sample)

    @property
    def rate(self) -> float:
        """Queries per second; NaN if nothing was called."""
        return self.calls / self.seconds if self.seconds > 0 and self.calls else float("nan")

    @property
    def waits(self) -> bool:
        """True if calls waited for each other rather than for something else, which is part of their latencies.

        The process worked most of the time, in which Python lets one thread work at once; each call took longer than
        it worked.
        """
        return self.concurrency > 1 and self.busy > _BUSY and self.cpu < _ALONE * self.latency["mean"] * self.calls

    @property
    def is_cold(self) -> bool:
        """True if the first call took much longer than the others."""
        return self.first > max(_COLD * self.latency["p50"], _NOTABLE)

    @property
    def latency(self) -> Mapping[str, float]:
        """The mean, the median and the 95th percentile of the latencies, in milliseconds; NaN if there are none."""
        import numpy as np

        given = np.array([sample["latency"] for sample in self if sample.get("latency") is not None], float)
        if not len(given):
            return dict.fromkeys(("mean", "p50", "p95"), float("nan"))
        p50, p95 = np.quantile(given, [0.5, 0.95]).tolist()
        return {"mean": float(given.mean()), "p50": p50, "p95": p95}
