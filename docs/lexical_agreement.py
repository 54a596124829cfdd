"""How well `claims(lexical)` agrees with the hand-labelled claims, as a table of the docs."""

from __future__ import annotations

_SAID = {
    "verbatim": "said in the same words",
    "paraphrase": "said in other words",
    "joint": "said by two contexts together",
    "number": "another number",
    "entity": "another name or thing",
    "negation": "the contrary",
    "partial": "true in parts",
    "unsupported": "said nowhere",
}


def lexical() -> str:
    """The figures over all claims, and for each kind how many are judged as the person did."""
    from support.hand_labelled import agreement  # type: ignore[import-not-found]

    told = agreement()
    share = [f"{value:.0%}".replace("%", " %") for value in (told.accuracy, told.precision, told.recall, told.contexts)]
    rows = [
        "| claims | judged alike | Cohen's kappa | precision of support | recall of support | same contexts named |",
        "|---|---|---|---|---|---|",
        f"| {told.claims} | {share[0]} | {told.kappa:.2f} | {share[1]} | {share[2]} | {share[3]} |",
        "",
        "| the claim is | supported | judged alike |",
        "|---|---|---|",
    ]
    for kind, said in _SAID.items():
        right, size = told.kinds[kind]
        yes = "yes" if kind in {"verbatim", "paraphrase", "joint"} else "no"
        rows.append(f"| {said} | {yes} | {right} of {size} |")
    return "\n".join(rows)
