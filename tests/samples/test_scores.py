"""Ranks from scores: counting compared with sorting."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.samples.rankings import score_order as scores
from karat.samples.rankings.score_order import as_rows, blocks, count_above, sort_rows

depths = st.lists(st.integers(0, 40), min_size=1, max_size=30)


@settings(deadline=None)
@given(depths, st.integers(0, 2**32 - 1), st.booleans())
def test_count_above_equals_counting(depth, seed, search):
    rng = np.random.default_rng(seed)
    size = np.array(depth)
    flat = rng.choice([rng.random(), 0.0, -np.inf, np.inf, 1.0, 2.0, 3.0, 4.0], int(size.sum())).astype(np.float32)
    row = np.repeat(np.arange(len(size)), size)
    own = flat.copy()
    start = np.concatenate(([0], np.cumsum(size)))
    each = [flat[a:b] for a, b in pairwise(start)]
    wanted = [(int((each[r] > o).sum()), int((each[r] == o).sum()) > 1) for r, o in zip(row, own, strict=True)]
    pieces = as_rows(flat.copy(), size)
    sort_rows(pieces)
    little = scores._FEW
    try:
        scores._FEW = -1 if search else 1 << 40
        above, tied = count_above(pieces, row, own)
    finally:
        scores._FEW = little
    assert above.tolist() == [count for count, _ in wanted]
    # Filling is -inf too: it may call an item of that score tied, which is then resolved by looking.
    assert all(t or not w for t, (_, w) in zip(tied.tolist(), wanted, strict=True))
    assert all(t == w for t, (_, w), o in zip(tied.tolist(), wanted, own, strict=True) if o > -np.inf)


def test_rows_of_different_lengths_need_little_padding():
    depth = np.array([3] * 500 + [100_000] + [2] * 500)
    pieces = as_rows(np.zeros(int(depth.sum()), np.float32), depth)
    cells = sum(piece.matrix.size for piece in pieces)
    assert cells <= 2 * depth.sum()
    assert sum(len(piece.matrix) for piece in pieces) == len(depth)


@pytest.mark.parametrize("depth", [[0, 0, 0], [10**6], [5] * 10, [scores.CELLS] * 3, [1, scores.CELLS * 2, 1]])
def test_blocks_cover_every_query_once(depth):
    cut = list(blocks(np.array(depth)))
    assert [row for first, last in cut for row in range(first, last)] == list(range(len(depth)))
