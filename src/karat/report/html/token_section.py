"""Recall over tokens, as a chart: runs with chunks of different size are comparable at the same number of tokens."""

from __future__ import annotations

from collections.abc import Sequence

from karat._internal.display import number, span
from karat.analysis.stored_tokens import RecallOverTokens, recall_over_tokens
from karat.report.html.chart import Axis, Chart
from karat.report.html.markup import Child, Element, data, h
from karat.report.html.scores import between, table
from karat.run import Run


def token_curve(run: Run, baseline: Run | None = None, name: str = "the baseline") -> Element | None:
    """The section; None if the texts of the retrieved items are not known."""
    found = recall_over_tokens(run)
    if found is None:
        return None
    before = None if baseline is None else recall_over_tokens(baseline, [*found.at])
    counted = "words, counted in the stored texts" if found.counted_by == "words" else f"counted by {found.counted_by}"
    dashed: list[Child] = ["Dashed: ", data(name), ". "] if before else []
    cut = "; estimated for texts that were cut" if found.is_estimated else ""
    cut += "; larger budgets would need ranks that the run does not store" if found.is_partial else ""
    about = f"The band is the 95 % interval of the mean. Tokens: {counted}{cut}."
    return h(
        "section",
        h("h2", "Recall over tokens"),
        h("figure", _drawing(found, before)),
        h("p.note", *dashed, about),
        h("details.numbers", h("summary", "Numbers"), _numbers(found, before)),
        id="tokens",
    )


def token_chart(budgets: Sequence[int]) -> Chart:
    """An empty chart of recall over budgets, on a logarithmic axis."""
    return Chart(Axis(budgets[0], budgets[-1], budgets, "tokens", is_log=True), Axis(0, 1, title="recall"))


def _drawing(found: RecallOverTokens, before: RecallOverTokens | None) -> Element:
    budgets = [*found.at]
    chart = token_chart(budgets)
    if before is not None:
        chart.line("recall", ((budget, value) for budget, (value, _) in before.at.items()), is_dashed=True)
    chart.band("recall", ((budget, *ends) for budget, (_, ends) in found.at.items()))
    chart.line("recall", ((budget, value) for budget, (value, _) in found.at.items()))
    for budget, (value, ends) in found.at.items():
        chart.dot("recall", budget, value)
        words = [f"{budget:,} tokens", f"recall {number(value)} {span(*ends)}".rstrip()]
        if before is not None and budget in before.at:
            words.append(f"recall {number(before.at[budget][0])} {span(*before.at[budget][1])}, baseline")
        chart.stop(budget, "\n".join(words))
    first, last = (f"{number(found.at[budget][0])} at {budget:,} tokens" for budget in (budgets[0], budgets[-1]))
    return chart.drawing(f"Recall over tokens: {first}, {last}")


def _numbers(found: RecallOverTokens, before: RecallOverTokens | None) -> Element:
    header = ["tokens", "recall", "95 % interval", *(["baseline", "95 % interval"] if before else [])]
    rows: list[list[Child]] = []
    for budget, (value, ends) in found.at.items():
        old = [] if before is None else ["–", "–"]
        if before is not None and budget in before.at:
            old = [number(before.at[budget][0]), between(*before.at[budget][1])]
        rows.append([f"{budget:,}", number(value), between(*ends), *old])
    return table("Recall over tokens", header, rows)
