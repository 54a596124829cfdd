"""The options of a language model, separate because `karat eval` and `karat label` have the same ones."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import Field, fields
from typing import Any

from karat._internal.model_settings import ModelSettings
from karat.cli import Argument, argument
from karat.errors import BadArgument

MODEL_SETTINGS = [one for one in fields(ModelSettings) if one.metadata]
"""The settings of a model that are options."""


def model_arguments(group: str, *, model: bool = True) -> list[Argument]:
    """The options, listed under the title of a group; without `--model` for a command that has its own."""
    return [
        *(_argument(one, group) for one in MODEL_SETTINGS if model or one.name != "model"),
        argument(
            "--price", metavar="IN,OUT", group=group,
            help="dollars per million tokens of prompts and of answers, such as 0.15,0.6",
        ),
        argument("--yes", action="store_true", group=group, help="do not ask for confirmation of the estimated cost"),
    ]  # fmt: skip


def _argument(one: Field[Any], group: str) -> Argument:
    """The option of a setting, with the setting's own default."""
    help_text = one.metadata["help"]
    if "default" not in help_text:
        help_text += f" (default: {'none' if one.default is None else one.default})"
    return argument(f"--{one.name.replace('_', '-')}", group=group, **{**one.metadata, "help": help_text})


def given_settings(options: Namespace) -> dict[str, Any]:
    """The settings that were given, by their names; without `--yes`."""
    settings = {one.name: getattr(options, one.name) for one in MODEL_SETTINGS}
    if options.price is not None:
        if options.prices is not None:
            raise BadArgument("--price and --prices exclude each other", hint=f"--price {options.price}")
        settings["prices"] = options.price
    if settings["cache"] == "none":
        settings["cache"] = False
    return {name: value for name, value in settings.items() if value is not None}
