"""The commands put together."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import itertools
import keyword
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo, OptionInfo

from mig_opt._version import __version__
from mig_opt.cli.commands import COMMANDS, GROUPS, epilog, heading
from mig_opt.cli.logs import begin_log
from mig_opt.cli.outcome import report
from mig_opt.cli.streams import prepare_streams
from mig_opt.texts import number_in

_SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

_MARGIN = 4
"""Columns of a list in the help that no text is in."""

LogLevel = Annotated[
    str | None,
    typer.Option(
        "--log-level",
        metavar="LEVEL",
        help="Tell what goes on, on standard error: debug, info or warning. After any command, too.",
    ),
]


class Sections(TyperGroup):
    """The commands under their headings."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands and groups in the order of the table."""
        return sorted(super().list_commands(ctx), key=[name.split()[0] for name in COMMANDS].index)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the part of the help that lists the commands."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        longest = max(map(len, known))
        for title, names in itertools.groupby(known, key=heading):
            with formatter.section(title):
                commands = ((name, known[name]) for name in names)
                width = formatter.width - longest - _MARGIN
                # As wide under each heading, so that all texts begin in the same column.
                formatter.write_dl([(f"{name:{longest}}", of.get_short_help_str(width)) for name, of in commands if of])


def command_line(first: str = "") -> typer.Typer:
    """Return the command line.

    Parameters
    ----------
    first : str
        First word of the command that is wanted: the modules of other commands are not imported. If no command begins
        with it, all are there.
    """
    app = typer.Typer(
        name="mig-opt",
        help="Optimal plans for NVIDIA Multi-Instance GPUs.\n\n"
        "BATCH and SERVICES are JSON or CSV files, names of bundled instances (see: mig-opt instances), or - for "
        "standard input.",
        epilog=epilog(("mig-opt solve rodinia-a30", "mig-opt init batch my-batch.json", "mig-opt solve my-batch.json")),
        cls=Sections,
        add_completion=False,
        pretty_exceptions_enable=False,
        **_SETTINGS,
    )
    app.callback()(guarded(_options))
    groups = {"": app}
    for name in [name for name in COMMANDS if name.split()[0] == first] or COMMANDS:
        group, _, last = name.rpartition(" ")
        if group not in groups:
            groups[group] = typer.Typer(help=GROUPS[group], **_SETTINGS)
            app.add_typer(groups[group], name=group)
        module = importlib.import_module(f"mig_opt.cli.{COMMANDS[name].module}")
        function = getattr(module, f"{last}_" if keyword.iskeyword(last) else last)
        groups[group].command(last, epilog=epilog(COMMANDS[name].examples))(guarded(function))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mig-opt {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
    log_level: LogLevel = None,
) -> None:
    pass


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that whatever it raises becomes a message on standard error and an exit code.

    A parameter whose type is a dataclass becomes one option for each field of it. ``--log-level`` is an option of
    everything; the help of commands does not repeat it.
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    hints = get_type_hints(command, include_extras=True)
    for parameter in inspect.signature(command).parameters.values():
        kind = hints[parameter.name]
        if not dataclasses.is_dataclass(kind):
            parameters.append(parameter.replace(annotation=kind))
            continue
        groups[parameter.name] = kind
        fields = get_type_hints(kind, include_extras=True)
        parameters += [
            parameter.replace(name=field.name, default=field.default, annotation=fields[field.name])
            for field in dataclasses.fields(kind)
        ]

    for parameter in parameters:
        _read_plainly(parameter)
    if "log_level" not in hints:
        kind = Annotated[str | None, typer.Option("--log-level", hidden=True)]
        parameters.append(inspect.Parameter("log_level", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        prepare_streams()
        try:
            begin_log(values["log_level"] if "log_level" in hints else values.pop("log_level"))
            for name, kind in groups.items():
                values[name] = kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
            command(**values)
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(report(error, {entry.name: _shown_name(entry) for entry in parameters})) from None

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return run


def _read_plainly(parameter: inspect.Parameter) -> None:
    """Let a parameter that is a number take what is one in files, too, and nothing else."""
    value = get_args(parameter.annotation)[0]
    kind = next((kind for kind in (int, float) if kind in (value, *get_args(value))), None)
    if kind is None:
        return

    def read(text: Any) -> Any:
        if not isinstance(text, str):  # the default
            return text
        found = number_in(text.strip())
        if isinstance(found, str) or (kind is int and isinstance(found, float)):
            raise typer.BadParameter(f"must be a {'whole ' if kind is int else ''}number, is {text!r:.60}")
        return kind(found)

    _info(parameter).parser = read


def _info(parameter: inspect.Parameter) -> ArgumentInfo | OptionInfo:
    return next(part for part in parameter.annotation.__metadata__ if isinstance(part, ArgumentInfo | OptionInfo))


def _shown_name(parameter: inspect.Parameter) -> str:
    """Return a parameter as the command line names it: ``--time-limit``, ``-n``, ``NAME``."""
    info = _info(parameter)
    if isinstance(info, ArgumentInfo):
        return info.metavar or parameter.name
    names = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    return names[0] if names else f"--{parameter.name.replace('_', '-')}"
