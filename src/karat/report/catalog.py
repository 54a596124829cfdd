"""Lists of what karat has: metrics, judges and conventions."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature

from karat._internal.display import definitions, paragraph
from karat._internal.grammar import write
from karat.conventions import CONVENTIONS, STANDARD, Convention
from karat.conventions.explain import WORDS, differing, sentence
from karat.judges import all_judges
from karat.metrics import METRICS
from karat.report.rosetta import WIDTH, bullet

"""Choices of standard that another choice implies."""


def metric_list() -> str:
    """Every metric with its settings and a description."""
    rows = []
    for name, d in METRICS.items():
        settings = ", ".join(f"{s}={'' if v is None else v}" for s, v in d.settings.items())
        call = f"{name}({settings})" if settings else name
        also = f" Also: {', '.join(d.aliases)}." if d.aliases else ""
        rows.append((call + ("@k" if d.cutoff else ""), d.help + also))
    about = "@k: a cutoff, such as recall@1,5,10, or a token budget, recall@500t. rel: the lowest relevant grade."
    return f"{definitions(rows)}\n\n{paragraph(about)}"


def judge_list() -> str:
    """Every judge with its settings and a description."""
    rows = []
    for name, maker in all_judges().items():
        given = signature(maker).parameters.values()
        settings = ", ".join(p.name if p.default is Parameter.empty else f"{p.name}={write(p.default)}" for p in given)
        rows.append((f"{name}({settings})" if settings else name, (maker.__doc__ or "").partition("\n")[0]))
    return definitions(rows)


def convention_list() -> str:
    """Every convention with the choices in which it differs from standard."""
    rows = []
    for c in CONVENTIONS.values():
        choices = ", ".join(_value(choice, getattr(c, choice)) for choice in differing(c)) or "–"
        more = [f"{name} means {other}" for name, other in c.renames.items()]
        more += [f"for {names} {', '.join(_value(k, v) for k, v in s.items())}" for names, s in _exceptions(c).items()]
        rows.append((c.name, "; ".join([choices, *more])))
    return definitions(rows)


def convention(c: Convention) -> str:
    """One convention in sentences."""
    has = ", ".join(c.metrics) if c.metrics else "every metric of karat"
    at = f", only at k = {', '.join(map(str, c.cutoffs))}" if c.cutoffs else ""
    lines = [f"{c.name}: {c.about}.", "", paragraph(f"It has {has}{at}.", "", "", default=WIDTH), ""]
    if c.name == STANDARD.name:
        lines.append("Its choices:")
        choices = [
            sentence(choice, c) for choice in WORDS if choice not in {"per_rank", "nothing_judged", "both_empty"}
        ]
    else:
        lines.append("Differences from standard:")
        choices = _differences(c)
    return "\n".join([*lines, *map(bullet, choices)])


def _differences(c: Convention) -> list[str]:
    found = [sentence(choice, c, {"metrics": ", ".join(c.per_rank)}) for choice in differing(c)]
    found += [f"what it calls {name} is {other}: {METRICS[other].help}" for name, other in c.renames.items()]
    for choice in c.refuses:
        if choice in {"empty_gold", "empty_retrieved"} and choice not in differing(c):
            found.append(sentence(choice, c))
    for names, special in _exceptions(c).items():
        metric, _, cut = names.partition(",")[0].partition(" ")[0].partition("@")
        own = c.of(metric, cut=bool(cut))
        found += [f"for {names}: {sentence(choice, own)}" for choice in special]
    return found


def _exceptions(c: Convention) -> dict[str, Mapping[str, object]]:
    """The exceptions of a convention, by all the metrics that share one."""
    names: dict[str, list[str]] = {}
    for name, special in c.exceptions.items():
        names.setdefault(str(special), []).append(name)
    shown = {name: f"{name} without k" if f"{name}@k" in c.exceptions else name for name in c.exceptions}
    return {", ".join(map(shown.__getitem__, own)): c.exceptions[own[0]] for own in names.values()}


def _value(choice: str, value: object) -> str:
    return f"{choice}={'undefined' if value != value else write(value)}"
