"""Cells: lists and records in the text of a cell, as JSON, or as Python, pandas and NumPy print them."""

from __future__ import annotations

import re
from ast import literal_eval
from typing import Any

from karat.errors import first_line

_TOKEN = re.compile(
    r"\s*(?:(?P<string>[rbu]?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))"
    r"|(?P<number>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf\b))"
    r"|(?P<more>\.\.\.)|(?P<name>[A-Za-z_][\w.]*)|(?P<sign>[\[\](){},:=<>]))",
    re.DOTALL,
)
_NAMES = {"None": None, "null": None, "nan": float("nan"), "NaN": float("nan"), "True": True, "False": False}
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_WRAPPERS = {"array", "np.array", "numpy.array", "list", "tuple", "set", "frozenset"}
"""Names before a bracket in what Python prints, such as array(['a', 'b'], dtype=object)."""
_SCALARS = {"np.str_", "np.float64", "np.float32", "np.int64", "np.int32", "np.bool_", "float", "int", "str"}
_DEEPEST = 32


def read_cell(text: str) -> Any:
    """The list or record in a cell; a ValueError says why there is none."""
    import msgspec

    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("is not a list in valid JSON: nested too deeply") from error
    except msgspec.DecodeError as error:
        try:
            return _Reader(text).whole()
        except ValueError as other:
            if "'" not in text or text.count('"') > text.count("'"):  # rather JSON than Python
                raise ValueError(f"is not a list in valid JSON: {first_line(error)}") from error
            raise ValueError(f"is neither a JSON nor a Python list: {other}") from other


def is_cell(text: str) -> bool:
    """True if a text begins like a list or a record."""
    begin = text.lstrip()
    return begin.startswith(("[", "{", "(")) or begin.partition("(")[0] in _WRAPPERS


def _literal(token: str) -> Any:
    """The text or the number that Python reads."""
    try:
        return literal_eval(token)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"{token[:20]!r} is not written as Python writes it") from error


class _Reader:
    """Reads what Python prints for lists, tuples, sets and dicts of texts and numbers; nothing is run."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._kind, self._part = "", ""
        self._depth = 0
        self._next()

    def whole(self) -> Any:
        """The only value of the text."""
        value = self._value()
        if self._kind:
            raise ValueError(f"more text after it: {self._part[:20]!r}")
        return value

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            if rest := self._text[self._at :].strip():
                raise ValueError(f"cannot be read from {rest[:20]!r} on")
            self._kind, self._part = "", ""
            return
        self._kind, self._at = str(found.lastgroup), found.end()
        self._part = found[self._kind]

    def _take(self, sign: str) -> None:
        if self._part != sign or self._kind != "sign":
            raise ValueError(f"expected {sign!r}, got {self._part[:20]!r}" if self._kind else "it is cut off")
        self._next()

    def _value(self) -> Any:
        kind, token = self._kind, self._part
        if kind == "sign" and token in _CLOSING:
            return self._nested(token)
        if kind == "more":
            raise ValueError('NumPy left out items: "..."')
        self._next()
        if kind == "string":
            return _literal(token)
        if kind == "number":
            return float(token) if token.strip("+-") == "inf" else _literal(token.lstrip("+"))
        if kind == "name" and token in _NAMES:
            return _NAMES[token]
        if kind == "name" and token in _WRAPPERS | _SCALARS and self._part == "(":
            return self._wrapped()
        raise ValueError(f"{token[:20]!r} is neither a text nor a number" if kind else "it is cut off")

    def _nested(self, sign: str) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("nested too deeply")
        self._next()
        values = self._values(_CLOSING[sign])
        self._depth -= 1
        return tuple(values) if sign == "(" and isinstance(values, list) else values

    def _wrapped(self) -> Any:
        """The value within array(…), of which dtype=… and other settings are skipped."""
        self._take("(")
        value = self._value()
        if self._part == ",":
            while self._kind and self._part != ")":
                self._next()
        self._take(")")
        return value

    def _values(self, closing: str) -> Any:
        """Values up to a bracket, all with commas between them, or all without, as NumPy prints them."""
        values: list[Any] = []
        keys: list[Any] = []
        commas = 0
        while self._part != closing or self._kind != "sign":
            value = self._value()
            if closing == "}" and self._part == ":":
                self._next()
                keys.append(value)
                value = self._value()
            values.append(value)
            if self._part == "," and self._kind == "sign":
                commas += 1
                self._next()
        self._next()
        if commas and commas < len(values) - 1:
            raise ValueError("a comma is missing between two items")
        if keys and len(keys) < len(values):
            raise ValueError("some values have no key")
        if closing != "}":
            return values
        try:
            return dict(zip(keys, values, strict=True)) if keys or not values else frozenset(values)
        except TypeError as error:
            raise ValueError("a list or record is among keys") from error
