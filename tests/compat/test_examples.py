"""The migration examples print the right values. The expected numbers are worked out by hand from the example data."""

from __future__ import annotations

import subprocess
import sys
from math import log2
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

# Ranks 1 and 2 of the top 3 are relevant, and 3 items are relevant in all.
NDCG_FUTUREAGI = (1 + 1 / log2(3)) / (1 + 1 / log2(3) + 1 / log2(4))
FROM_FUTUREAGI = f"""\
Recall@3: 0.667
Precision@3: 0.667
NDCG@3: {NDCG_FUTUREAGI:.3f}
MRR@3: 1.0
Hit Rate@3: 1.0

{2 / 3}  Recall@3: 0.667
1.0  Recall@3: 1.0
0.0  Recall@3: 0.0

Recall@1: 0.333 (1/3 relevant items in top 1)
Recall@3: 0.667 (2/3 relevant items in top 3)
Recall@5: 1.000 (3/3 relevant items in top 5)
"""

FROM_RAGAS = """\
1.00  When was the Eiffel Tower built?
0.50  Who designed it, and what is it made of?
0.00  How many visitors come each year?

0.25 of the ids

{'non_llm_context_recall': 0.5000, 'non_llm_context_precision_with_reference': 0.5000, \
'id_based_context_recall': 0.5000, 'id_based_context_precision': 0.5000 (1 of 3 undefined or failed)}
1.00  1.00  1.00  0.50
0.50  0.50  0.50  0.50
0.00  0.00  0.00  nan
"""

# Ranks 2 and 3 are relevant, and 2 documents are gold; REMem gives the first two ranks the same weight.
NDCG_REMEM = (1 + 1 / log2(3)) / (1 + 1)
FROM_REMEM = f"""\
retrieval_recall  {{'Recall@1': 0.0, 'Recall@2': 0.5, 'Recall@3': 0.5}}
  {{'Recall@1': 0.0, 'Recall@2': 0.0, 'Recall@3': 0.0}}
  {{'Recall@1': 0.0, 'Recall@2': 1.0, 'Recall@3': 1.0}}
retrieval_recall_all  {{'Recall_all@1': 0.0, 'Recall_all@2': 0.5, 'Recall_all@3': 1.0}}
  {{'Recall_all@1': 0.0, 'Recall_all@2': 0.0, 'Recall_all@3': 1.0}}
  {{'Recall_all@1': 0.0, 'Recall_all@2': 1.0, 'Recall_all@3': 1.0}}
retrieval_ndcg_any  {{'NDCG_any@1': 0.0, 'NDCG_any@2': 0.75, 'NDCG_any@3': {round((NDCG_REMEM + 1) / 2, 4)}}}
  {{'NDCG_any@1': 0.0, 'NDCG_any@2': 0.5, 'NDCG_any@3': {NDCG_REMEM}}}
  {{'NDCG_any@1': 0.0, 'NDCG_any@2': 1.0, 'NDCG_any@3': 1.0}}

The second chunk of the first example is from its first document.
"""

HEADINGS = ("A batch", "Several k")
PRINTED = {"from_futureagi": FROM_FUTUREAGI, "from_ragas": FROM_RAGAS, "from_remem": FROM_REMEM}


def test_every_migration_example_is_checked():
    assert {path.stem for path in EXAMPLES.glob("from_*.py")} == PRINTED.keys()


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_the_right_values_and_writes_no_file(name, tmp_path):
    command = [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    values = [line for line in done.stdout.splitlines() if not line.startswith(HEADINGS)]
    assert values == PRINTED[name].splitlines()
    assert list(tmp_path.iterdir()) == []
