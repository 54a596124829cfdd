"""The claims of a reference answer: which retrieved chunks support them, and at which rank.

python examples/claims.py                  a heuristic that compares words: no key, no network
python examples/claims.py gpt-4o-mini      an LLM, with the key in OPENAI_API_KEY
"""

from __future__ import annotations

import sys

import karat

SAMPLES = [
    {
        "id": "refunds",
        "query": "How do refunds work?",
        "retrieved": [
            "Our warehouse in Leeds is open from Monday to Friday.",
            "Refunds are paid within ten working days of the day on which the parcel reaches our warehouse.",
            "Opened cosmetics cannot be returned.",
        ],
        "answer": "Refunds are paid within ten working days. Opened cosmetics cannot be returned. Postage is free.",
        "response": "Refunds are paid within ten working days.",
    },
    {
        "id": "museum",
        "query": "When is the museum open?",
        "retrieved": [
            "The museum is open from ten to six. It is closed on Mondays.",
            "Guided tours start at noon in the main hall.",
        ],
        "answer": "The museum is open from ten to six. It is closed on Sundays.",
        "response": "The museum is open from ten to six, but not on Mondays.",
    },
]


def main() -> None:
    """Print the means, and the rank at which each claim is supported."""
    model = sys.argv[1] if len(sys.argv) > 1 else "lexical"
    run = karat.evaluate(SAMPLES, "recall@1,2,3 context_recall context_precision", judge=karat.Claims(model))
    print(run)
    for query in run.ids:
        print(f"\n{query}")
        why = {hit.gold: hit.why for hit in run.hits(query)}
        for claim in run.gold(query):
            found = f"rank {claim.rank}" if claim.rank else "not supported"
            print(f"  {found:<15}{claim.gold}  {why.get(claim.gold, '')}".rstrip())
    used = karat.evaluate(
        SAMPLES, "chunk_attribution chunk_utilization", judge=karat.Claims(model, of="response", split="sentences")
    )
    print(f"\n{used.mean['chunk_attribution']:.0%} of the chunks are used by the responses")
    print(f"{used.mean['chunk_utilization']:.0%} of a chunk is used on average")


if __name__ == "__main__":
    main()
