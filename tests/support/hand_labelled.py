"""Claims that a person labelled, and how well `claims(lexical)` agrees with the labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from karat.judges.lexical import THRESHOLD, Words

_FILE = Path(__file__).parent / "hand_labelled.jsonl"


class Agreement(NamedTuple):
    """How often the judge and the person say the same; `support` is what the judge says is supported."""

    claims: int
    accuracy: float
    kappa: float
    precision: float
    recall: float
    contexts: float
    """Among the claims that both find supported, the share for which both name the same contexts."""
    kinds: dict[str, tuple[int, int]]
    """For each kind of claim, how many of how many are judged as the person does."""


def samples() -> list[dict[str, Any]]:
    """The samples, with their claims as gold."""
    rows = [json.loads(line) for line in _FILE.read_text("utf-8").splitlines()]
    return [
        {
            "id": row["id"],
            "query": row["query"],
            "retrieved": row["contexts"],
            "gold": [{"text": claim["claim"]} for claim in row["claims"]],
            "claims": row["claims"],
        }
        for row in rows
    ]


def agreement(threshold: float = THRESHOLD) -> Agreement:
    """Set the judge beside the labels."""
    pairs, same, kinds = [], [], {}
    for row in samples():
        judge = Words(row["retrieved"], threshold)
        for claim in row["claims"]:
            found = {place + 1 for place in judge.support(claim["claim"]).places}
            wanted = set(claim["contexts"])
            pairs.append((bool(found), bool(wanted)))
            same += [found == wanted] if found and wanted else []
            right, size = kinds.get(claim["kind"], (0, 0))
            kinds[claim["kind"]] = (right + (bool(found) == bool(wanted)), size + 1)
    size = len(pairs)
    accuracy = sum(said == label for said, label in pairs) / size
    said, labelled = sum(said for said, _ in pairs) / size, sum(label for _, label in pairs) / size
    chance = said * labelled + (1 - said) * (1 - labelled)
    both = sum(said and label for said, label in pairs) / size
    return Agreement(
        size, accuracy, (accuracy - chance) / (1 - chance), both / said, both / labelled, sum(same) / len(same), kinds
    )
