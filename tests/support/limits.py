"""Evaluations with other limits on the items that a run stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from karat.plan import Plan
from karat.run import Run
from karat.run.stored_items import StorageLimits
from karat.samples import read_samples


def evaluate_within(limits: StorageLimits, samples: Any = None, metrics: str = "rr", **given: Any) -> Run:
    """What `karat.evaluate` returns, with these limits."""
    judge = given.pop("judge", "auto")
    data = read_samples(samples, **given)
    plan = replace(Plan.of(metrics, judge, "standard"), limits=limits).with_judge_for(data)
    return plan.evaluate_all(data)
