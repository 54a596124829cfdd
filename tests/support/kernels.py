"""Evaluations with the compiled kernel and without it: what they return or raise has to be equal."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest

import karat
from karat._kernel import OFF, kernel

NEEDS_KERNEL = pytest.mark.skipif(
    kernel() is None, reason=f"needs the compiled kernel: a C compiler when karat is installed, and not {OFF}=0"
)


@contextmanager
def without_kernel():
    """The twins in Python run inside of this context."""
    before = os.environ.get(OFF)
    os.environ[OFF] = "0"
    kernel.cache_clear()
    try:
        yield
    finally:
        del os.environ[OFF]
        if before is not None:
            os.environ[OFF] = before
        kernel.cache_clear()


def outcome(**arguments):
    """All that an evaluation returns and that the kernel could change, or its error."""
    try:
        run = karat.evaluate(**arguments)
    except Exception as error:  # noqa: BLE001  # of whatever kind: also those of users' objects
        return type(error), str(error)
    hits = run.all_hits
    why = [hits.why] * len(hits.rank) if isinstance(hits.why, str) else hits.why
    columns = (hits.query, hits.rank, hits.gold, hits.grade, hits.repeated)
    return {
        "scores": {name: column.tobytes() for name, column in run.columns.items()},
        "hits": sorted(zip(*(column.tolist() for column in columns), why, strict=True)),
        "depth": hits.depth.tolist(),
        "totals": {
            name: values.tobytes() for name, values in (*hits.totals.at_rank.items(), *hits.totals.sizes.items())
        },
        "notes": run.provenance.notes,
        "remarks": run.remarks(),
    }


def same_outcome(make):
    """The outcome of an evaluation, which is the same with the kernel and without; `make` returns new arguments."""
    compiled = outcome(**make())
    with without_kernel():
        twin = outcome(**make())
    assert compiled == twin, (compiled, twin)
    return compiled
