"""Samples whose every text tries to be more than a text."""

from __future__ import annotations

import karat

PWN = "window.__pwned=1"
PAYLOADS = [
    f"<script>{PWN}</script>",
    f"</script><script>{PWN}</script>",
    f"</style><script>{PWN}</script><!--",
    f"<!--<script>{PWN}",
    f'"><img src=x onerror="{PWN}">',
    f"'><svg onload='{PWN}'>",
    f'<a href="javascript:{PWN}">x</a>',
    "<img src=https://example.invalid/beacon.png>",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eright to left\u202c \u2067x\u2069\u2069 \u05e9\u05dc\u05d5\u05dd",
    "null \x00 inside",
    "half a character \ud800",
    "&lt;b&gt; &amp; &#60;i&#62;",
    "${7*7} {{7*7}} `x` \\u003c \\",
    "line\u2028paragraph\u2029end\r\nnext\rlast",
    "]]> <![CDATA[ <?php ?>",
]


def samples():
    """Queries, ids, texts, documents, fields and their values, all of them hostile."""
    rows = []
    for i, bad in enumerate(PAYLOADS):
        good = f"{bad} is chunk {i}"
        rows.append(
            {
                "id": f"{bad} {i}",
                "query": f"{bad}?",
                "retrieved": [
                    {"id": f"x {bad}", "text": f"Something else. {bad}", "doc": bad, "score": 0.5},
                    {"id": f"c {bad}", "text": f"Before. {good} After.", "doc": bad, "score": 0.25},
                ],
                "gold": [{"id": f"g {bad}", "text": good, "doc": bad}, {"id": f"h {bad}", "text": f"not there {bad}"}],
                PAYLOADS[0]: PAYLOADS[i % 3],
            }
        )
    return rows


def run(times=1):
    """A run of them; several times as many, so that some are left to the script."""
    rows = [{**row, "id": f"{row['id']} {n}"} for n in range(times) for row in samples()]
    return karat.evaluate(rows, "recall@1,2 rr", judge="contains(gold_in_chunk)")
