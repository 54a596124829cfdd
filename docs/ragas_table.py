"""The table of docs/migrate/ragas.md, from tests/oracles/ragas_outcomes.json and the reasons of its differences."""

from __future__ import annotations

from collections import Counter

_WORDS = {'"nan"': "undefined", '"imported"': "imported"}


def ragas_calls() -> str:
    """The number of calls that were compared, and a row for every reason why some differ."""
    from oracles.ragas_results import differences, stored

    calls = stored()
    verdicts = Counter(one[0] for one in calls.values())
    same = f"{verdicts['same']} of {len(calls)} calls have the same outcome"
    others = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common() if verdict != "same")
    rows = [f"{same}; of the others: {others}.", "", "| call | ragas | karat | why |", "|---|---|---|---|"]
    for one in differences():
        for place, name in enumerate(one["calls"]):
            theirs, ours = (f"`{_WORDS.get(text, text)}`" for text in calls[name][1:])
            rows.append(f"| {name} | {theirs} | {ours} | {one['why'] if place == 0 else '″'} |")
    return "\n".join(rows)
