"""The reference of the command line, from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WIDTH = 90


def commands() -> str:
    """Return a section for each command: what it does, its arguments and options, examples."""
    import typer

    from mig_opt.cli.app import command_line
    from mig_opt.cli.commands import COMMANDS

    root = typer.main.get_command(command_line())
    return "\n\n".join(_section(name, root) for name in COMMANDS)


def _section(name: str, root: Any) -> str:
    command, context = root, root.make_context("mig-opt", [], resilient_parsing=True)
    for word in [name] if name in root.commands else name.split():
        command = command.commands[word]
        context = type(context)(command, info_name=word, parent=context)
    context.terminal_width = context.max_content_width = WIDTH
    parts = [f"## `mig-opt {name}`", f"```text\n{_usage(command, context)}\n```", *_paragraphs(command.help or "")]
    rows = [record for param in command.get_params(context) if (record := _record(param, context))]
    for kind in ("argument", "option"):
        table = [f"| `{shown}` | {text} |" for which, shown, text in rows if which == kind]
        if table:
            parts.append("\n".join([f"| {kind} | meaning |", "|---|---|", *table]))
    examples = "\n".join(f"$ {line.strip()}" for line in (command.epilog or "").splitlines() if line.startswith("  "))
    if examples:
        parts.append(f"```console\n{examples}\n```")
    return "\n\n".join(parts)


def _usage(command: Any, context: Any) -> str:
    formatter = context.make_formatter()
    command.format_usage(context, formatter)
    return str(formatter.getvalue()).strip().removeprefix("Usage: ")


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield _escaped(" ".join(paragraph.split()))


def _record(param: Any, context: Any) -> tuple[str, str, str] | None:
    """Return the kind of a parameter, how it is written, and its meaning; None if it is hidden."""
    if getattr(param, "hidden", False):
        return None
    found = param.get_help_record(context)
    if param.param_type_name == "argument":
        shown, text = found or (param.make_metavar(context), "")
        return "argument", shown.replace("|", r"\|"), _escaped(text)
    return ("option", found[0].replace("|", r"\|"), _escaped(found[1])) if found else None


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", r"\|").replace("<", r"\<").replace("*", r"\*").replace("_", r"\_")
