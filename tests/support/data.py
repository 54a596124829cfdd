"""Random test data with everything that goes wrong in real data: ties, negative grades, missing queries."""

from __future__ import annotations

import random

Run = dict[str, dict[str, float]]
Gold = dict[str, dict[str, int]]


def random_results_and_gold(seed: int, queries: int = 60, depth: int = 40) -> tuple[Run, Gold]:
    """Results and gold over a small pool, with many shared items and ties."""
    rng = random.Random(seed)
    pool = [f"doc{i}" for i in range(depth * 2)] + ["é", "Ä", "10", "9", "z z"]
    run: Run = {}
    gold: Gold = {}
    for number in range(queries):
        query = f"q{number}"
        size = rng.choice([0, 1, 2, depth // 2, depth])
        score = rng.choice([rng.random, lambda: rng.randint(0, 4), lambda: round(rng.random(), 1), lambda: 1.0])
        if rng.random() < 0.9:
            run[query] = {doc: float(score()) for doc in rng.sample(pool, size)}
        judged = rng.sample(pool, rng.choice([1, 2, 5, 20]))
        gold[query] = {doc: rng.choice([-1, 0, 0, 1, 1, 2, 3]) for doc in judged}
    return run, gold
