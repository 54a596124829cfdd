"""Prices of models, in dollars per million tokens: a dated table of list prices, and the caller's own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from karat._internal.display import cut_name, sanitize
from karat._internal.model_settings import ModelSettings, Prices
from karat.errors import BadArgument
from karat.llm.model import Model, Price

TABLE = Path(__file__).with_name("prices.json")
"""OpenAI's list prices. They change: pass your own where it matters."""
_GIVEN = "given price"
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")
_FORM = '{"date": "2026-01-31", "prices": {"gpt-4o-mini": [0.15, 0.6]}}'


class Quote(NamedTuple):
    """The price of a model, and where it is from, with its date."""

    price: Price
    source: str


def find_price(model: Model, prices: Prices = None) -> Quote | None:
    """The price of a model: the one given, the model's own, the one in the table, or None."""
    names = (model.name, model.short_name, _SNAPSHOT.sub("", model.short_name))
    given = {} if prices is None else _numbers(prices) if isinstance(prices, str) else prices
    if isinstance(given, str | PathLike):
        found = _in_table(Path(given), names)
    elif isinstance(given, Mapping):
        found = next((Quote(checked_price(given[name]), _GIVEN) for name in names if name in given), None)
    else:
        return Quote(checked_price(given), _GIVEN)
    if found is None and model.price is not None:
        return Quote(model.price, _GIVEN)
    return found or _in_table(TABLE, names)


def _numbers(text: str) -> list[float] | str:
    """The numbers in a text such as "0.15,0.6"; the text itself if it is something else: a path."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def needed_price(model: Model, settings: ModelSettings) -> Quote | None:
    """The price of a model; an error if there is a budget in dollars and the price is unknown."""
    found = find_price(model, settings.prices)
    if found is None and settings.max_cost is not None:
        raise BadArgument(
            f"a budget in dollars needs the price of {cut_name(model.short_name, 80)}, which is unknown: "
            "dollars per million tokens of prompts and of answers",
            hint="--price 0.15,0.6, or prices=(0.15, 0.6), or openai(NAME, price=(0.15, 0.6))",
        )
    return found


def checked_price(given: object) -> Price:
    """The price, if it is two numbers from 0."""
    if isinstance(given, tuple | list) and len(given) == 2:
        numbers = [one for one in given if isinstance(one, int | float) and not isinstance(one, bool)]
        if len(numbers) == 2 and all(0 <= one < float("inf") for one in numbers):
            return Price(float(numbers[0]), float(numbers[1]))
    hint = "(0.15, 0.6)"
    raise BadArgument("a price must be two numbers: dollars per million tokens in and out", got=given, hint=hint)


def _in_table(path: Path, names: Iterable[str]) -> Quote | None:
    """The price of the first of these names in a file of prices."""
    table = _read(path)
    date = f" of {sanitize(table['date'], 40)}" if table.get("date") else ""
    source = f"list prices{date}" if path == TABLE else f"prices{date} in {cut_name(path.name, 40)}"
    prices = table["prices"]
    return next((Quote(checked_price(prices[name]), source) for name in names if name in prices), None)


def _read(path: Path) -> dict[str, Any]:
    try:
        table = json.loads(path.read_text("utf-8"))
    except OSError:
        hint = "0.15,0.6, or a file that exists"
        raise BadArgument(f"there is no file {path} of prices", hint=hint) from None
    except ValueError:
        table = None
    fields = table if isinstance(table, dict) else {}
    if not isinstance(fields.get("prices"), dict) or not isinstance(fields.get("date", ""), str):
        raise BadArgument(f"{path} is not a JSON file of prices", hint=_FORM)
    return fields


def dollars(cost: float) -> str:
    """An amount in dollars and cents, with four decimal places below one dollar."""
    if 0 < cost < 0.0001:
        return "less than $0.0001"
    return f"${cost:,.2f}" if cost >= 1 or not cost else f"${cost:.4f}"
