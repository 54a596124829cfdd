"""The base class of every result, separate from the renderers: `karat.report` is loaded when a result is shown."""

from __future__ import annotations

from typing import Any

from karat._internal.writers import harmless


class Result:
    """Something that can be shown: a direct subclass X is rendered by the module `karat.report.x`."""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values, ready for JSON."""
        values: dict[str, Any] = self._render("data")
        return values

    def to_markdown(self) -> str:
        """The result as Markdown, everything from the data escaped."""
        return str(self._render("markdown"))

    def _repr_html_(self) -> str:
        return str(self._render("html"))

    def __repr__(self) -> str:
        return harmless(str(self._render("terminal")))

    def _render(self, form: str, **options: Any) -> Any:
        from karat.report import render

        return render(self, form, **options)
