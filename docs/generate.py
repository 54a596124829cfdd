"""Writes the parts of the documentation that the code knows: run by `make docs`, checked by `make check`."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "tests"))

from karat.conventions import STANDARD, questions  # noqa: E402
from karat.metrics import METRICS  # noqa: E402
from karat.report import demo  # noqa: E402


def metrics() -> str:
    """A row for every metric in the registry."""
    rows = ["| metric | | what it says | settings | also called |", "|---|---|---|---|---|"]
    for name, d in METRICS.items():
        settings = ", ".join(f"`{s}`" + ("" if v is None else f" ({v:g})") for s, v in d.settings.items())
        cutoff = "@k" if d.cutoff else ""
        rows.append(
            f"| `{name}{cutoff}` | {d.symbol} | {d.help} | {settings} | {', '.join(f'`{a}`' for a in d.aliases)} |"
        )
    return "\n".join(rows)


def choices() -> str:
    """The choices of the standard convention, with the question that each answers."""
    rows = ["| question | standard |", "|---|---|"]
    asked = questions()
    return "\n".join(rows + [f"| {asked[name]} | `{value}` |" for name, value in STANDARD.choices().items()])


def edges() -> str:
    """Each edge with the scores of its example."""
    from edge_cases import EDGES, MANY  # type: ignore[import-not-found]

    rows = ["| edge | what karat does | example | scores |", "|---|---|---|---|"]
    rows += [
        f"| {e.name} | {e.decision} | {_example(e.retrieved, e.gold, e.judge)} | {_scores(e.scores)} |" for e in EDGES
    ]
    rows += [f"| {e.name} | {e.decision} | {_matches(e)} | {_scores(e.scores)} |" for e in MANY]
    return "\n".join(rows)


def demo_screen() -> str:
    """What `karat demo` prints."""
    return f"```\n{demo.show()}\n```"


def speed() -> str:
    """What `make bench` measured last."""
    told = json.loads((ROOT / "benchmarks" / "results.json").read_text("utf-8"))
    s = told["setting"]
    rows = ["| case | beside | ratio | asked |", "|---|---|---|---|"]
    for o in told["outcomes"]:
        if o["case"].startswith("startup"):
            ratio = f"{o['karat_ms']:.0f} ms"
        else:
            ratio = f"{o['ratio']:.2g}×" if o["ratio"] < 10 else f"{o['ratio']:.0f}×"
        name = o["case"] + (f" ({o['note']})" if o["case"].startswith("lists") else "")
        rows.append(f"| {name} | {o['peer']} | {ratio} | {o['asked']}{'' if o['met'] else ', not met'} |")
    about = (
        f"karat {s['karat']}, pytrec_eval {s['pytrec-eval-terrier']}, ranx {s['ranx']}, ragas {s['ragas']}, "
        f"Python {s['Python']}, {s['cores']} cores; W1 is 1,000 queries × 100 items, W2 10,000 × 100, "
        "W3 10,000 × 1,000, tiny 10 × 20; fuzzy 1,000 samples of 5 gold × 10 retrieved texts of 500 characters, "
        "to equal scores; quotes 1,000 quotes of 200 characters in 10 chunks of 1,000 each, and ten times as many; "
        "the bare loop is `quote in chunk`; remem 10,000 examples of 20 chunks of 1,000 characters and 2 gold "
        "documents, three metrics at four k, to equal scores; the nested loops are the definitions, written out."
    )
    return "\n".join([*rows, "", about])


def _example(retrieved: Any, gold: Any, judge: str) -> str:
    by = "" if judge == "auto" else f", judge `{judge}`"
    return f"retrieved `{_short(retrieved)}`, gold `{_short(gold)}`{by}"


def _short(by_query: dict[str, Any]) -> str:
    plain = by_query["q"] if list(by_query) == ["q"] else by_query
    return str(plain).replace("'", "")


def _matches(edge: Any) -> str:
    parts = [f"chunk {i + 1} holds gold {', '.join(str(g + 1) for g in edge.satisfies[i])}" for i in edge.ranking]
    return f"{'; '.join(parts)}; {edge.gold} gold items"


def _scores(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {'undefined' if math.isnan(v) else f'{v:.3g}'}" for name, v in scores.items())


PARTS: dict[str, Callable[[], str]] = {
    "metrics": metrics,
    "choices": choices,
    "edges": edges,
    "demo": demo_screen,
    "speed": speed,
}


def fill(text: str) -> str:
    """Put each part between its marks: `<!-- metrics -->` and `<!-- /metrics -->`."""
    for name, part in PARTS.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)", re.DOTALL)
        if marks.search(text):
            body = part()
            text = marks.sub(lambda m, body=body: m[1] + body + m[2], text)  # type: ignore[misc]
    return text


def main() -> int:
    """Write every page anew, or say which is out of date."""
    stale = []
    for page in [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]:
        old = page.read_text("utf-8")
        new = fill(old)
        if new != old:
            stale.append(page.name)
            if "--check" not in sys.argv:
                page.write_text(new, "utf-8")
    if stale and "--check" in sys.argv:
        print(f"Out of date: {', '.join(stale)}. Run `make docs`.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
