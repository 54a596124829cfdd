"""A run as a command prints it, in the form that was asked for."""

from __future__ import annotations

from karat.run import Run


def shown(run: Run, by: str | None, form: str) -> str:
    """The run, with its slices by a field if there is one."""
    slices = run.by(by) if by else None
    if form == "json":
        import msgspec

        parts = {} if slices is None else {"by": {value: part.to_dict() for value, part in slices.items()}}
        return msgspec.json.format(msgspec.json.encode(run.to_dict() | parts), indent=2).decode() + "\n"
    if form == "csv":
        return (run if slices is None else slices).table.write_csv()
    if form == "markdown":
        from karat.report import markdown

        return markdown.evaluation(run, slices) + "\n"
    from karat.report import terminal

    return "\n\n".join([terminal.evaluation(run), *([repr(slices)] if slices else [])]) + "\n"
