"""The commands put together, and the one way in which each is called."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo

from mig_opt._version import __version__
from mig_opt.cli.answers import Answer, Call, Product
from mig_opt.cli.commands import COMMANDS, GROUPS, heading
from mig_opt.cli.errors import begin_log, report
from mig_opt.cli.gpus import named_gpu
from mig_opt.cli.options import BARE
from mig_opt.cli.streams import prepare_streams
from mig_opt.texts import number_in

_SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

_MARGIN = 4  # columns of a list in the help that no text is in

_COMMON = {
    name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
    for name, default, kind, option in (
        ("as_json", False, bool, typer.Option("--json", help="Print one JSON object.")),
        ("log_level", None, str | None, typer.Option("--log-level", hidden=True)),
    )
}
"""The options that commands have without saying so."""

_FILES = {
    *("BATCH", "SCHEDULE", "CERTIFICATE", "SERVICES", "DEPLOYMENT", "OLD", "TRACE", "STATE"),
    *("SOURCE", "STUDY", "JOURNAL", "FILE", "NAME|FILE", "NAME|DIR"),
}
"""Words of the help for what names a file that is read or written."""


class Explained(TyperCommand):
    """A command whose help has its arguments as plain words: typer may add braces and types of Python."""

    def get_params(self, ctx: Any) -> Any:
        """Return the arguments and options."""
        found = super().get_params(ctx)
        for param in found:
            if param.param_type_name == "argument":
                param.display_type_rich = lambda **_: ""  # type: ignore[attr-defined]  # typer's own
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the line that begins with Usage."""
        return [re.sub("[{}]", "", piece) for piece in super().collect_usage_pieces(ctx)]


class Sections(TyperGroup):
    """The commands under their headings."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands and groups in the order of the table."""
        first = [name.split()[0] for name in COMMANDS]
        return sorted(super().list_commands(ctx), key=lambda name: (first.index(name.split()[0]), name))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command of the first two words if there is one, else that of the first."""
        args = [
            argument if re.fullmatch(r"\d[\d.]*%?", following) else BARE.get(argument, argument)
            for argument, following in itertools.pairwise([*args, ""])
        ]
        name = " ".join(args[:2])
        return (name, self.commands[name], args[2:]) if name in self.commands else super().resolve_command(ctx, args)

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


def command_line(first: str = "", *, listed: bool = False) -> typer.Typer:
    """Return the command line.

    Parameters
    ----------
    first : str
        First word of the command that is wanted: the modules of other commands are not imported. If no command begins
        with it, all are there.
    listed : bool
        True if no command is called: they are there by name and text only, which takes half the time.

    Examples
    --------
    mig-opt solve rodinia-a30
    mig-opt init batch my-batch.json
    mig-opt solve my-batch.json
    """
    app = typer.Typer(
        name="mig-opt",
        help="Optimal plans for NVIDIA Multi-Instance GPUs.\n\n"
        "BATCH, SERVICES, TRACE and STATE are JSON or CSV files, names of bundled instances (see: mig-opt instances), "
        "or - for JSON on standard input.",
        epilog=_help(command_line)["epilog"],
        cls=Sections,
        add_completion=False,
        pretty_exceptions_enable=False,
        **_SETTINGS,
    )
    app.callback()(called(_options))
    groups = {"": app}
    for name in [name for name in COMMANDS if name.split()[0] == first] or COMMANDS:
        group, _, last = name.rpartition(" ")
        if group in COMMANDS:  # beside a command of one word, to which anything else behind it is an argument
            group, last = "", name
        if group not in groups:
            groups[group] = typer.Typer(help=GROUPS[group], **_SETTINGS)
            app.add_typer(groups[group], name=group)
        module = importlib.import_module(f"mig_opt.cli.{COMMANDS[name]}")
        function = getattr(module, name.replace(" ", "_"))
        groups[group].command(last, cls=Explained, **_help(function))(_listed if listed else called(function))
    return app


def _listed() -> None:
    """Stand for a command that is not called."""


def _help(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the text of a help, and its end: the examples of the docstring, one on each line."""
    text, _, examples = (inspect.getdoc(function) or "").partition("\n\nExamples\n--------\n")
    lines = [f"  {line}" for line in examples.splitlines()]
    # The mark keeps the lines as they are.
    return {"help": text, "epilog": "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *lines])}


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mig-opt {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
    log_level: Annotated[
        str | None,
        typer.Option(
            "--log-level",
            metavar="LEVEL",
            help="Tell what goes on, on standard error: debug, info or warning. After any command, too.",
        ),
    ] = None,
) -> None:
    pass


def called(command: Callable[..., Answer | None]) -> Callable[..., None]:
    """Wrap a command so that its answer, or whatever it raises, becomes output and an exit code.

    A parameter whose type is a dataclass becomes one option for each field of it. A :class:`Call` is no option; the
    command gets it. Commands with an :class:`Answer` have ``--json``. ``--log-level`` is an option of everything; the
    help of commands does not repeat it.
    """
    hints = get_type_hints(command, include_extras=True)
    wants_call = hints.pop("call", None) is Call
    groups: dict[str, Any] = {
        name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind) and name != "return"
    }
    common = [name for name in _COMMON if name not in hints and (name != "as_json" or hints["return"] is Answer)]
    parameters = _parameters(command, hints, common)
    names = {parameter.name: _shown_name(parameter) for parameter in parameters}
    defaults = {names[parameter.name]: parameter.default for parameter in parameters}
    files = [parameter.name for parameter in parameters if _info(parameter).metavar in _FILES]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        prepare_streams()
        try:
            begin_log(values["log_level"])
            named = [values[name] if isinstance(values[name], list) else [values[name]] for name in files]
            read = [value for several in named for value in several if value is not None]
            call = Call(read, {names[name]: value for name, value in values.items()}, defaults)
            given = {name: value for name, value in values.items() if name not in common}
            if hints["return"] is Product and given.get("output") == Path("-"):
                given["output"] = None  # it goes to standard output, as without the option
            if (gpu := given.get("gpu")) is not None:
                given["gpu"] = named_gpu(gpu)
                read += [gpu] if given["gpu"] != gpu else []  # the model was in a file
            for name, kind in groups.items():
                given[name] = kind(**{field.name: given.pop(field.name) for field in dataclasses.fields(kind)})
            answer = command(**given, **({"call": call} if wants_call else {}))
            code = 0 if answer is None else call.end(answer)
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            code = report(error, names)
        if code:
            raise typer.Exit(code)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # typer reads it
    return run


def _parameters(command: Callable[..., Any], hints: dict[str, Any], common: list[str]) -> list[inspect.Parameter]:
    """Return the arguments and options of a command."""
    found: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        kind = hints.get(parameter.name)
        if not dataclasses.is_dataclass(kind):
            found += [] if kind is None else [parameter.replace(annotation=kind)]
            continue
        fields = get_type_hints(kind, include_extras=True)
        found += [
            parameter.replace(name=field.name, default=field.default, annotation=fields[field.name])
            for field in dataclasses.fields(kind)
        ]
    found = list(map(_declared, [*found, *(_COMMON[name] for name in common)]))
    for parameter in found:
        _read_plainly(parameter)
    # What is said about the progress stands last.
    return sorted(found, key=lambda parameter: parameter.name == "quiet")


def _declared(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter with the option that the texts of its annotation stand for: metavar, names, help.

    Files need no metavar, ``output`` and ``quiet`` have short names besides.
    """
    kind, *texts, explanation = get_args(parameter.annotation)
    if not isinstance(explanation, str):
        return parameter
    long, short = f"--{parameter.name.replace('_', '-')}", {"output": "-o", "quiet": "-q"}.get(parameter.name)
    # Without a name typer would add the opposite of a flag.
    names = [text for text in texts if text.startswith("-")] or [long, *([short] if short else [])]
    is_file = any(part in (Path, list[Path]) for part in (kind, *get_args(kind)))
    metavar = next((text for text in texts if not text.startswith("-")), "FILE" if is_file else None)
    if isinstance(parameter.default, float):  # 20 s, where typer would say 20.0
        explanation += f"  [default: {parameter.default:g}]"
    option = typer.Option(
        *names, metavar=metavar, help=explanation, show_default=not isinstance(parameter.default, float)
    )
    return parameter.replace(annotation=Annotated[kind, option])


def _read_plainly(parameter: inspect.Parameter) -> None:
    """Let a number be what is one in files, too, and nothing else; let no name of a file be empty."""
    value = get_args(parameter.annotation)[0]
    kinds = {value, *get_args(value), *(kind for part in get_args(value) for kind in get_args(part))}
    is_file = Path in kinds or _info(parameter).metavar in _FILES
    kind = next((kind for kind in (int, float) if kind in kinds), None)
    if kind is None and not is_file:
        return

    def read(text: Any) -> Any:
        if not isinstance(text, str):  # the default
            return text
        if kind is None:
            if not text:
                raise typer.BadParameter("is empty; give a name")
            return Path(text) if Path in kinds else text
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
