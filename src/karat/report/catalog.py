"""Lists of what karat has: metrics, judges and conventions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

from karat._internal.display import bold, commands, definitions, heading, paragraph
from karat._internal.grammar import parse_call, write
from karat._internal.model_settings import ModelSettings
from karat.conventions import CONVENTIONS, STANDARD, Convention
from karat.conventions.explain import WORDS, differing, sentence
from karat.errors import unknown
from karat.judges import all_judges
from karat.metrics import MEASURES, METRICS, find_metric
from karat.metrics.registry import Definition
from karat.report.rosetta import WIDTH, bullet

_CUTOFF = "@k: a cutoff, such as recall@1,5,10, or a token budget, recall@500t."
_REL = "rel: the lowest relevant grade."
_MEASURES = "Measures have a unit. A run shows the median, the 90th percentile, and how many queries never reach them."


def metric_list() -> str:
    """Every metric with its settings and a description."""
    rows = [(_call(d), _meaning(d)) for d in METRICS.values()]
    units = [(_call(d), f"{_meaning(d)} Unit: {d.unit}.") for d in MEASURES.values()]
    parts = [definitions(rows), paragraph(f"{_CUTOFF} {_REL}", default=WIDTH), bold("Measures"), definitions(units)]
    return "\n\n".join([*parts, paragraph(_MEASURES, default=WIDTH)])


def one_metric(name: str) -> str:
    """One metric: its definition, its settings, where it is undefined, and the conventions that have it."""
    d = find_metric(name.partition("@")[0].partition("(")[0])
    facts = [_meaning(d)]
    if d.at_recall:
        facts.append(f"@r: recall levels from 0 to 1, such as {d.name}@0.1,0.5,1.")
    elif d.cutoff:
        facts.append(_CUTOFF.replace("recall", d.name))
    if "rel" in d.settings:
        facts.append(_REL)
    facts += [f"{name}: {', '.join(words)}; without it as in the convention." for name, words in d.words.items()]
    facts.append(f"A query without relevant gold {'is undefined and not in the mean' if d.needs_gold else 'counts'}.")
    if d.of_unanswerable:
        facts[-1:] = ['It is about the queries marked "answerable": false, and about no other. Less is better.']
    if d.unit:
        facts[-1:] = [f"Its unit is {d.unit}: it is not a score. {_MEASURES}", "Without relevant gold it is undefined."]
    if d.needs_all_gold:
        facts.append("It needs the complete gold, so a judge that only grades what was retrieved cannot give it.")
    if "cited" in d.sizes:
        facts.append('It needs samples with "cited", the ids that the answer cites; without them a query is undefined.')
    own = [c.name for c in CONVENTIONS.values() if d.name in c.metrics]
    facts += [f"Conventions of other libraries that have it: {', '.join(own)}."] if own else []
    at = "@0.5" if d.at_recall else "@5" if d.cutoff else ""
    usual = f"karat eval samples.jsonl {'recall@5 ' * bool(d.unit)}{d.name}{at}"
    return _explanation(_call(d), facts, [(usual, "")])


def _call(d: Definition) -> str:
    """The form in which a metric is written, with its settings."""
    settings = ", ".join(f"{s}={'' if v is None else v}" for s, v in d.settings.items())
    return f"{d.name}({settings})"[: None if settings else -2] + ("@r" if d.at_recall else "@k" if d.cutoff else "")


def _meaning(d: Definition) -> str:
    return d.help + (f" Also: {', '.join(d.aliases)}." if d.aliases else "")


def judge_list() -> str:
    """Every judge with its own settings and a description."""
    judges = all_judges()
    rows = []
    for name, maker in judges.items():
        own, models = _settings(maker)
        rows.append((f"{name}({', '.join(own + ['…'] * bool(models))})" if own else name, first_line(maker)))
    more = "…: the settings of models. karat judges NAME shows all settings of a judge."
    return f"{definitions(rows)}\n\n{paragraph(more, default=WIDTH)}"


def one_judge(wanted: str) -> str:
    """One judge: what it compares, and all of its settings."""
    judges, name = all_judges(), parse_call(wanted).name
    if name not in judges:
        raise unknown("judge", name, judges, "karat judges")
    own, models = _settings(judges[name])
    facts = [first_line(judges[name])]
    facts += [f"Settings: {', '.join(own)}."] if own else ["It has no settings."]
    facts += [f"Settings of models: {', '.join(models)}."] if models else []
    setting = own[0].replace("model=None", "gpt-4o-mini") if own else ""
    written = f'"{name}({setting})"' if setting else name
    metric = "recall@5" if getattr(judges[name], "complete_gold", True) else "ndcg@10"
    return _explanation(name, facts, [(f"karat eval samples.jsonl {metric} --judge {written}", "")])


def _settings(maker: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """The settings of a judge with their defaults, and those that all judges with a model have."""
    own: list[str] = []
    models: list[str] = []
    for p in signature(maker).parameters.values():
        shared = p.name in ModelSettings.__dataclass_fields__ and p.name != "model"
        (models if shared else own).append(p.name if p.default is Parameter.empty else f"{p.name}={write(p.default)}")
    return own, models


def first_line(maker: Callable[..., Any]) -> str:
    """The first line of the docstring of a judge."""
    return (maker.__doc__ or "").strip().partition("\n")[0].replace("`", "")


def _explanation(name: str, facts: Sequence[str], usual: Sequence[tuple[str, str]]) -> str:
    lines = [heading(name), *(paragraph(fact, default=WIDTH) for fact in facts)]
    return "\n".join([*lines, "", bold("Example"), commands(usual)])


def convention_list() -> str:
    """Every convention with the choices in which it differs from standard."""
    rows = []
    for c in CONVENTIONS.values():
        choices = ", ".join(_value(choice, getattr(c, choice)) for choice in differing(c)) or "–"
        more = [f"{name} means {other}" for name, other in c.renames.items()]
        more += [f"for {names} {', '.join(_value(k, v) for k, v in s.items())}" for names, s in _exceptions(c).items()]
        rows.append((c.name, "; ".join([choices, *more])))
    about = 'Any choice can be changed in place: --convention "standard(ties=given)", "llamaindex(empty_gold=0)".'
    return f"{definitions(rows)}\n\n{paragraph(about)}"


def convention(c: Convention) -> str:
    """One convention in sentences."""
    has = ", ".join(c.metrics) if c.metrics else "every metric of karat"
    at = f", only at k = {', '.join(map(str, c.cutoffs))}" if c.cutoffs else ""
    about = heading(f"{c.name}: {c.about}.")
    lines = [about, "", paragraph(f"It has {has}{at}.", "", "", default=WIDTH), ""]
    if c.name == STANDARD.name:
        lines.append(bold("Its choices:"))
        choices = [
            sentence(choice, c) for choice in WORDS if choice not in {"per_rank", "nothing_judged", "both_empty"}
        ]
    else:
        lines.append(bold("Differences from standard:"))
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
