"""Random ids in files larger than memory: the same judge in every piece, and the same results as in memory."""

from __future__ import annotations

import json
import uuid

import karat


def test_pieces_in_which_the_gold_names_no_retrieved_document(tmp_path, tiny):
    names = uuid.UUID("6f1d7f0e-53c6-4b5c-9c57-2a3a4b5c6d7e")
    rows = []
    for number in range(60):
        found = [
            {"id": str(uuid.UUID(int=names.int + 20 * number + rank)), "text": f"text {rank}", "doc": f"{rank}.md"}
            for rank in range(3)
        ]
        rows.append({"id": f"q{number}", "retrieved": found, "gold": ["1.md" if number < 20 else "other.md"]})
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = karat.evaluate(path, "rr")
    pieces = karat.evaluate(path, "rr", memory=tiny)
    assert whole.provenance.judge == pieces.provenance.judge == "ids(at=doc)"
    assert whole.scores["rr"].tolist() == pieces.scores["rr"].tolist() == [0.5] * 20 + [0.0] * 40
