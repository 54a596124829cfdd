"""The agreement of `claims(lexical)` with hand-labelled claims, as tables for docs/judges.md."""

from __future__ import annotations

_KINDS = {
    "verbatim": "stated in the same words",
    "paraphrase": "paraphrased",
    "joint": "stated by two contexts together",
    "number": "stated with another number",
    "entity": "stated about another name or thing",
    "negation": "contradicted",
    "partial": "partially true",
    "unsupported": "not stated",
}


def lexical() -> str:
    """The agreement over all claims, and for each kind of claim."""
    from support.hand_labelled import agreement

    found = agreement()
    share = [
        f"{value:.0%}".replace("%", " %") for value in (found.accuracy, found.precision, found.recall, found.contexts)
    ]
    rows = [
        "| claims | agreement | Cohen's kappa | precision of support | recall of support | same contexts named |",
        "|---|---|---|---|---|---|",
        f"| {found.claims} | {share[0]} | {found.kappa:.2f} | {share[1]} | {share[2]} | {share[3]} |",
        "",
        "| the claim is | supported | agreement |",
        "|---|---|---|",
    ]
    for kind, label in _KINDS.items():
        right, size = found.kinds[kind]
        yes = "yes" if kind in {"verbatim", "paraphrase", "joint"} else "no"
        rows.append(f"| {label} | {yes} | {right} of {size} |")
    return "\n".join(rows)
