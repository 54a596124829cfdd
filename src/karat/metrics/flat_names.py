"""Flat names of metrics, such as `recall_at_5`, for tools whose names have only letters, digits and underscores."""

from __future__ import annotations

import re
from hashlib import blake2b

from karat.metrics.names import Metric

_READABLE = re.compile(
    r"(?P<name>[A-Za-z]\w*?)(?:\((?P<inside>[^()]*)\))?"
    r"(?:@(?P<cutoff>\d+(?:\.\d+)?t?))?(?: (?P<summary>[a-z]+\d*))?",
    re.ASCII,
)
_FLAT = re.compile(
    r"(?P<name>[A-Za-z]\w*?)(?P<settings>(?:__\w+?_(?:\d+(?:_\d+)?|[A-Za-z]+))*)"
    r"(?:_at_(?P<cutoff>\d+(?:_\d+)?t?))?(?:__(?P<summary>[a-z]+\d*))?",
    re.ASCII,
)
_SETTING = re.compile(r"(\w+?)_(\d+(?:_\d+)?|[A-Za-z]+)", re.ASCII)
_OTHER = re.compile(r"[^A-Za-z0-9_]+")
_DIGEST = 4
"""Bytes of the digest of a name that has no readable flat form of its own."""


def flat_name(metric: str | Metric) -> str:
    """The name of a metric in letters, digits and underscores, as MLflow, W&B, DVC and Prometheus take it.

    Different metrics have different flat names. `@` becomes `_at_`, a setting `__name_value`, a decimal point `_`.
    A name whose flat form could be that of another metric ends in a digest of the whole name.

    Args:
        metric: a metric with at most one cutoff, or its name; a summary may follow it, as in "recall@5 p10".

    Returns:
        A name that matches `[_a-zA-Z][_a-zA-Z0-9]*`.

    Example:
        >>> karat.flat_name("recall@5"), karat.flat_name("precision(rel=2)@5"), karat.flat_name("iprec@0.5")
        ('recall_at_5', 'precision__rel_2_at_5', 'iprec_at_0_5')
    """
    text = str(metric)
    if (parts := _READABLE.fullmatch(text)) and text == _unflattened(flat := _flattened(parts)):
        return flat
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
    legal = _OTHER.sub("_", text).strip("_")
    return f"{legal}_{digest}" if legal[:1].isalpha() else f"_{legal}_{digest}"


def _flattened(parts: re.Match[str]) -> str:
    """The parts of a name, joined by underscores."""
    settings = (parts["inside"] or "").replace("=", "_")
    flat = "__".join(filter(None, (parts["name"], *settings.split(","))))
    flat += f"_at_{parts['cutoff']}" if parts["cutoff"] else ""
    flat += f"__{parts['summary']}" if parts["summary"] else ""
    return flat.replace(".", "_")


def _unflattened(flat: str) -> str | None:
    """The only name that is written in this way, by which it is known that no other is; None if it is not readable."""
    parts = _FLAT.fullmatch(flat)
    if parts is None:
        return None
    inside = []
    for setting in filter(None, parts["settings"].split("__")):
        read = _SETTING.fullmatch(setting)
        if read is None:
            return None
        inside.append(f"{read[1]}={read[2].replace('_', '.')}")
    base = f"{parts['name']}({','.join(inside)})" if inside else parts["name"]
    cutoff = f"@{parts['cutoff'].replace('_', '.')}" if parts["cutoff"] else ""
    return base + cutoff + (f" {parts['summary']}" if parts["summary"] else "")
