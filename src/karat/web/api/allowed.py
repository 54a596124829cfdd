"""Names that a request may use: metrics, judges, conventions and models. No name is a path, an address or an import.

karat's own functions take more: a judge may read documents from a folder, a model may be at any address, a name may be
a file. So everything is read here first, against a list of what is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat._internal.grammar import parse_call, write
from karat.conventions import CONVENTIONS, Convention, find_convention
from karat.errors import BadArgument, unknown
from karat.judges import Judge, find_judge
from karat.judges.model_judge import LEXICAL
from karat.metrics import DEFAULT, Metric, parse_all
from karat.web.api.bodies import Words
from karat.web.problems import Refused

_MODEL = ("model", "repeats", "max_cost", "max_tokens", "max_calls")
JUDGES: dict[str, tuple[str, ...]] = {
    "auto": (),
    "claims": (*_MODEL, "of", "split", "threshold", "partial"),
    "contains": ("direction", "strip", "fold"),
    "exact": (),
    "fuzzy": ("threshold", "scorer", "strict", "graded"),
    "ids": ("at",),
    "relevance": (*_MODEL, "to"),
    "spans": ("coverage", "graded"),
    "text": ("fold",),
}
"""The judges that a request may name, with the settings that it may give. A judge that is not listed is refused."""
_FIRST = {"fuzzy": ("threshold", "scorer"), "text": ("fold",), "contains": ("direction",), "spans": ("coverage",)}
"""Settings that may be given without their names; of judges with a model, it is the model."""
_MOST_COLUMNS = 1000
"""Columns of a table: metrics at each of their cutoffs."""
_MOST_REPEATS = 10


def metrics_of(given: Words | None) -> tuple[Metric, ...]:
    """The metrics that are asked for."""
    found = parse_all(given or DEFAULT)
    columns = sum(len(metric.columns) for metric in found)
    if columns > _MOST_COLUMNS:
        raise BadArgument(f"at most {_MOST_COLUMNS:,} metrics and cutoffs", got=columns, hint="recall@1,5,10")
    return found


def convention_of(given: str) -> Convention:
    """The convention that is asked for."""
    name = parse_call(given).name.lower()
    if name.replace("_", "-").replace("trec-", "trec_") not in CONVENTIONS:
        raise unknown("convention", name, CONVENTIONS, "one of: " + ", ".join(CONVENTIONS))
    return find_convention(given)


def judge_of(given: str, models: Sequence[str]) -> Judge:
    """The judge that is asked for; a model must be one of those that the operator allows."""
    call = parse_call(given)
    if call.name not in JUDGES:
        raise unknown("judge", call.name, JUDGES, "one of: " + ", ".join(JUDGES))
    named: dict[str, Any] = dict(call.named)
    first = _FIRST.get(call.name, ("model",) if "model" in JUDGES[call.name] else ())
    if len(call.positional) > len(first):
        raise BadArgument(f'judge "{call.name}": a setting has no name', got=call.positional[len(first)])
    for name, value in zip(first, call.positional, strict=False):
        if name in named:
            raise BadArgument(f'judge "{call.name}": {name} is given twice', got=given)
        named[name] = value
    for name in named:
        if name not in JUDGES[call.name]:
            hint = f"{call.name}({', '.join(f'{one}=…' for one in JUDGES[call.name])})"
            raise BadArgument(f'judge "{call.name}" takes no setting "{name}" over HTTP', hint=hint)
    if "model" in JUDGES[call.name]:
        return _with_model(call.name, named, models)
    return find_judge(_written(call.name, named))


def _with_model(name: str, named: dict[str, Any], models: Sequence[str]) -> Judge:
    wanted = named.get("model")
    if wanted in (None, LEXICAL):  # a judge that has no other default than by words
        judge = find_judge(_written(name, named))
        if judge.model is None:
            return judge
    if not models:
        raise Refused(403, "judges that call a language model are off on this server", hint="claims(lexical)")
    model = allowed_model(wanted, models)
    repeats = named.get("repeats", 1)
    if isinstance(repeats, int) and repeats > _MOST_REPEATS:
        raise BadArgument(f"repeats is at most {_MOST_REPEATS}", got=repeats)
    return find_judge(_written(name, {**named, "model": model}))


def allowed_model(wanted: object, models: Sequence[str]) -> str:
    """The model as the operator wrote it; a request may write it the same, or by the name of the model alone."""
    known = {short_name(text): text for text in models} | {text: text for text in models}
    if not isinstance(wanted, str) or wanted not in known:
        shown = "a model" if wanted is None else f'the model "{str(wanted)[:80]}"'
        problem = f"{shown} must be named" if wanted is None else f"{shown} is not allowed on this server"
        raise Refused(400 if wanted is None else 403, problem, hint=", ".join(map(short_name, models)))
    return known[wanted]


def short_name(model: str) -> str:
    """The name of a model without its settings."""
    call = parse_call(model) if "(" in model else None
    return model if call is None else str((*call.positional, call.name)[0])


def _written(name: str, named: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{one}={write(value)}' for one, value in named.items())})" if named else name
