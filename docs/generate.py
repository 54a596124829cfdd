"""Writes the generated parts of the documentation: run by `make docs`, checked by `make check`."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT / "tests"))

from choice_examples import EXAMPLES, who  # noqa: E402
from lexical_agreement import lexical  # noqa: E402
from ragas_table import ragas_calls  # noqa: E402
from reliability_table import fuzz  # noqa: E402
from source_tree import room_table, source_tree  # noqa: E402
from speed_tables import benchmarks, cases, growth, large, machine, slower, speed  # noqa: E402
from typescript_types import FILE as SCHEMA_TS  # noqa: E402
from typescript_types import typescript_types  # noqa: E402

from karat.analysis.rosetta import rosetta  # noqa: E402
from karat.conventions import CONVENTIONS, STANDARD, questions  # noqa: E402
from karat.conventions.explain import sentence  # noqa: E402
from karat.fusion import FUSIONS  # noqa: E402
from karat.metrics import MEASURES, METRICS  # noqa: E402

EIGHT = ("trec_eval", "mlflow", "trulens", "llamaindex", "haystack", "autorag", "continuous-eval", "phoenix")
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "①": ({"retrieved": [["A", "A", "X"]], "gold": [["A", "B", "C"]]}, "precision@5 recall@5 ndcg@5 rr ap"),
    "②": ({"retrieved": [["A"]], "gold": [["A", "B", "C"]]}, "precision@5 ndcg@5"),
    "③": ({"retrieved": [["A", "B"]], "gold": [["A", "B", "C"]]}, "ndcg@2"),
}
"""One query each: a copy and a miss; a short ranking; more gold than k."""
PACKAGES = {
    "trec_eval": ("dev", "pytrec-eval-terrier"),
    "ir-measures": ("dev", "ir-measures"),
    "ranx": ("oracles/ranx", "ranx"),
    "beir": ("oracles/torch", "beir"),
    "mteb": ("oracles/torch", "mteb"),
    "torchmetrics": ("oracles/torch", "torchmetrics"),
    "sklearn": ("oracles/sklearn", "scikit-learn"),
    "mlflow": ("oracles/mlflow", "mlflow-skinny"),
    "llamaindex": ("oracles/llamaindex", "llama-index-core"),
    "haystack": ("oracles/haystack", "haystack-ai"),
    "trulens": ("oracles/trulens", "trulens-feedback"),
    "phoenix": ("oracles/phoenix", "arize-phoenix"),
    "continuous-eval": ("oracles/continuous-eval", "continuous-eval"),
    "autorag": ("oracles/autorag", "autorag"),
    "ragas": ("oracles/ragas", "ragas"),
    "evidently": ("oracles/evidently", "evidently"),
    "azure": ("oracles/azure", "azure-ai-evaluation"),
}
"""The package of each convention that the tests run, and the lock file with its version."""


def metrics() -> str:
    """A row for every metric in the registry."""
    rows = ["| metric | symbol | definition | settings | aliases |", "|---|---|---|---|---|"]
    for name, d in {**METRICS, **MEASURES}.items():
        settings = ", ".join(f"`{s}`" + ("" if v is None else f" ({v:g})") for s, v in d.settings.items())
        cutoff = "@r" if d.at_recall else "@k" if d.cutoff else ""
        meaning = f"{d.help} Unit: {d.unit}." if d.unit else d.help
        rows.append(
            f"| `{name}{cutoff}` | {d.symbol} | {meaning} | {settings} | {', '.join(f'`{a}`' for a in d.aliases)} |"
        )
    return "\n".join(rows)


def fusions() -> str:
    """A row for every method of fusion."""
    rows = ["| method | fused score | settings | weights |", "|---|---|---|---|"]
    for name, method in FUSIONS.items():
        settings = ", ".join(f"`{s}` ({v})" for s, v in method.settings.items())
        rows.append(f"| `{name}` | {method.help} | {settings} | {'yes' if method.weighted else ''} |")
    return "\n".join(rows)


def choices() -> str:
    """The choices of the standard convention, with the question each answers."""
    rows = ["| question | standard |", "|---|---|"]
    return "\n".join(rows + [f"| {text} | `{getattr(STANDARD, name)}` |" for name, text in questions().items()])


def conventions() -> str:
    """A row for every convention of another library."""
    rows = ["| convention | definition | metrics | tested against |", "|---|---|---|---|"]
    for c in CONVENTIONS.values():
        if c.metrics:
            metrics = ", ".join(f"{m} (there: {c.renames[m]})" if m in c.renames else m for m in c.metrics)
            rows.append(f"| `{c.name}` | {c.about} | {metrics} | {_oracle(c.name)} |")
    return "\n".join(rows)


def every_choice() -> str:
    """Each choice: the question, the score of an example for each answer, and the libraries that give it."""
    parts: list[str] = []
    for name, example in EXAMPLES.items():
        choice = name.partition(",")[0]
        if name == choice:
            parts.append(f"### `{choice}`\n\n{questions()[choice]}")
        rows = [f"{example}", "", "| answer | score | meaning | libraries |", "|---|---|---|---|"]
        for value in example.values:
            score = example.score(choice, value)
            c = replace(STANDARD, name="example", **{choice: value})
            words = "no metric counts copies" if value == () else sentence(choice, c, {"metrics": "some metrics"})
            number = "undefined" if math.isnan(score) else f"{score:.6g}"
            rows.append(f"| `{_written(value)}` | {number} | {words} | {', '.join(who(choice, value))} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def eight_tools() -> str:
    """The same three queries in eight common tools, as `karat rosetta` computes them."""
    head = [f"{case} {name}" for case, (_, names) in CASES.items() for name in names.split()]
    rows = [f"| | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    tables = [rosetta(metrics=names, **case, conventions=EIGHT) for case, names in CASES.values()]
    for dialects in zip(*(table.dialects for table in tables), strict=True):
        cells = [_cell(d, name) for d in dialects for name in d.means]
        rows.append(f"| {dialects[0].convention} | {' | '.join(cells)} |")
    return "\n".join(rows)


def rosetta_screen() -> str:
    """The output of `karat rosetta`."""
    return f"```\n{rosetta()!r}\n```"


def _cell(dialect: Any, name: str) -> str:
    mean = dialect.means[name]
    shown = "–" if mean is None else f"{mean:.3f}"
    return f"**{shown}**" if name in dialect.differs else shown


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return "+".join(value) or "none"
    return "undefined" if value != value else str(value)


def _oracle(name: str) -> str:
    from oracles.written_out import FUNCTIONS

    if name in FUNCTIONS:
        return "definition in the tests"
    lock, package = PACKAGES[name]
    pinned = re.search(rf"^{package}==(\S+)", (ROOT / "requirements" / f"{lock}.lock").read_text("utf-8"), re.MULTILINE)
    assert pinned, f"{package} is not in {lock}.lock"
    return f"{package} {pinned[1]}"


def edges() -> str:
    """Each edge case with the scores of its example."""
    from support.edge_cases import EDGES, MANY

    rows = ["| edge case | what karat does | example | scores |", "|---|---|---|---|"]
    rows += [
        f"| {e.name} | {e.decision} | {_example(e.retrieved, e.gold, e.judge)} | {_scores(e.scores)} |" for e in EDGES
    ]
    rows += [f"| {e.name} | {e.decision} | {_matches(e)} | {_scores(e.scores)} |" for e in MANY]
    return "\n".join(rows)


def printed() -> str:
    """The output of the first Python example of the README, run in a folder in which `karat demo` was run."""
    example = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[0]
    with TemporaryDirectory() as folder:
        for command in (["-m", "karat", "demo"], ["-c", example]):
            program = [sys.executable, *command]
            done = subprocess.run(program, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    return f"```\n{done.stdout.rstrip()}\n```"


def failing_test() -> str:
    """The error of the first example of docs/pytest.md, on results with one miss in four queries."""
    example = re.findall(r"```py\n(.*?)```", (DOCS / "pytest.md").read_text("utf-8"), re.DOTALL)[0]
    rankings = (["a"], ["x", "a"], ["a", "x"], ["x"])
    rows = [{"id": f"q{i}", "query": f"question {i}?", "retrieved": rankings[i % 4], "gold": ["a"]} for i in range(20)]
    with TemporaryDirectory() as folder:
        Path(folder, "golden.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
        Path(folder, "test_rag.py").write_text(example, "utf-8")
        program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short"]
        done = subprocess.run(program, cwd=folder, check=False, stdout=subprocess.PIPE, text=True)  # noqa: S603
    error = [line.rstrip() for line in done.stdout.splitlines() if line.startswith("E ")]
    return "\n".join(["```", *error, "```"])


def _example(retrieved: Any, gold: Any, judge: str) -> str:
    by = "" if judge == "auto" else f", judge `{judge}`"
    return f"retrieved `{_short(retrieved)}`, gold `{_short(gold)}`{by}"


def _short(by_query: dict[str, Any]) -> str:
    plain = by_query["q"] if list(by_query) == ["q"] else by_query
    return str(plain).replace("'", "")


def _matches(edge: Any) -> str:
    parts = [f"chunk {i + 1} contains gold {', '.join(str(g + 1) for g in edge.satisfies[i])}" for i in edge.ranking]
    return f"{'; '.join(parts)}; {edge.gold} gold items"


def _scores(scores: dict[str, float]) -> str:
    return ", ".join(f"{name} {'undefined' if math.isnan(v) else f'{v:.3g}'}" for name, v in scores.items())


PARTS: dict[str, Callable[[], str]] = {
    "metrics": metrics,
    "fusions": fusions,
    "choices": choices,
    "edges": edges,
    "conventions": conventions,
    "every_choice": every_choice,
    "eight_tools": eight_tools,
    "rosetta": rosetta_screen,
    "printed": printed,
    "failing_test": failing_test,
    "speed": speed,
    "benchmarks": benchmarks,
    "machine": machine,
    "slower": slower,
    "large": large,
    "cases": cases,
    "growth": growth,
    "fuzz": fuzz,
    "ragas-calls": ragas_calls,
    "tree": source_tree,
    "rooms": room_table,
    "lexical": lexical,
}


FILES: dict[Path, Callable[[], str]] = {SCHEMA_TS: typescript_types}
"""Files that are generated as a whole."""


def fill(text: str) -> str:
    """Replace each part between its comments: `<!-- metrics -->` and `<!-- /metrics -->`."""
    for name, part in PARTS.items():
        marks = re.compile(rf"(<!-- {name} -->\n+).*?(<!-- /{name} -->)", re.DOTALL)
        if marks.search(text):
            body = part()
            text = marks.sub(lambda m, body=body: f"{m[1]}{body}\n{m[2]}", text)  # type: ignore[misc]
    return text


def fill_outputs(text: str) -> str:
    """Put the value of an expression between `<!-- output: EXPRESSION -->` and `<!-- /output -->`.

    The Python examples above it on the page are run first.
    """
    if "<!-- output: " not in text:
        return text
    names: dict[str, Any] = {"__name__": "example"}

    def replaced(match: re.Match[str]) -> str:
        example, mark, expression, end = match.groups()
        if example is not None:
            with redirect_stdout(StringIO()):
                exec(example, names)  # noqa: S102
            return match[0]
        return f"{mark}```\n{str(eval(expression, names)).strip(chr(10))}\n```\n{end}"  # noqa: S307

    marks = r"```python\n(.*?)```|(<!-- output: (.+?) -->\n+).*?(<!-- /output -->)"
    with TemporaryDirectory() as folder, chdir(folder):
        return re.sub(marks, replaced, text, flags=re.DOTALL)


def main() -> int:
    """Write every page again; with --check, report the pages that are out of date."""
    os.environ["SOURCE_DATE_EPOCH"] = "1767225600"  # a gate shows the time
    os.environ["COLUMNS"] = "120"  # tables are fitted to the width of the terminal
    stale = []
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), *FILES]:
        old = page.read_text("utf-8")
        new = FILES[page]() if page in FILES else fill_outputs(fill(old))
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
