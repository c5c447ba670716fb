"""The commands put together."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import keyword
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from mig_opt._version import __version__
from mig_opt.cli.outcome import prepare_streams, report

_SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}


class Command(NamedTuple):
    """Command: the module of its function, which has its last word as name, and an example."""

    module: str
    example: str


COMMANDS: Mapping[str, Command] = {
    "solve": Command("batch.solving", "mig-opt solve batch.json --time-limit 30 -o plan.json --plot plan.png"),
    "deploy": Command(
        "serving.deploying", "mig-opt deploy services.json --profiles profiles/ -o fleet.json --plot fleet.png"
    ),
    "serve": Command(
        "serving.serving", "mig-opt serve fleet.json --services services.json --arrivals bursty --plot latencies.png"
    ),
    "validate": Command("planning", "mig-opt validate batch.json plan.json"),
    "bound": Command("planning", "mig-opt bound rodinia-a30"),
    "explain": Command("batch.explaining", "mig-opt explain rodinia-a30 --target 28"),
    "prove": Command("batch.proving", "mig-opt prove rodinia-a30 plan.json -o certificate.json"),
    "check": Command("batch.proving", "mig-opt check rodinia-a30 plan.json certificate.json"),
    "plot": Command("planning", "mig-opt plot batch.json plan.json plan.svg"),
    "script": Command("planning", "mig-opt script batch.json plan.json plan.sh"),
    "run": Command("batch.running", "mig-opt run batch.json plan.json --commands commands.json --plot run.png"),
    "profile": Command("profiling", "mig-opt profile --commands commands.json --gpu A100 -o batch.json"),
    "compare": Command("batch.comparing", "mig-opt compare rodinia-a30 batch.json --methods cp,far --time-limit 5"),
    "bench": Command("benching", "mig-opt bench study.json --jobs 2"),
    "simulate": Command("fleet.simulating", "mig-opt simulate trace.json --policy fragmentation-aware,first-fit"),
    "defragment": Command("fleet.defragmenting", "mig-opt defragment fleet.json --for 3g.20gb"),
    "instances": Command("catalogues", "mig-opt instances rodinia-a30"),
    "gpus": Command("catalogues", "mig-opt gpus A100"),
    "methods": Command("catalogues", "mig-opt methods"),
    "versions": Command("catalogues", "mig-opt versions --json"),
    "generate": Command("making", "mig-opt generate -n 20 --gpu H100 --seed 7 -o batch.json"),
    "export": Command("making", "mig-opt export rodinia-a30 rodinia.mps"),
    "schema": Command("making", "mig-opt schema batch"),
    "trace families": Command("fleet.tracing", "mig-opt trace families normal-25"),
    "trace generate": Command(
        "fleet.tracing", "mig-opt trace generate pcie-4 --set pcie_share=0.4 --seed 7 -o trace.json"
    ),
    "trace import": Command(
        "fleet.tracing", "mig-opt trace import openb_pod_list_default.csv --gpus 100 -o openb.json"
    ),
    "trace describe": Command("fleet.tracing", "mig-opt trace describe trace.json --bounds"),
    "state import": Command("fleet.importing", "nvidia-smi mig -lgi | mig-opt state import - --gpu A100 -o fleet.json"),
}
"""The commands, in the order in which the help lists them."""

GROUPS: Mapping[str, str] = {
    "trace": "Make and describe traces: jobs that arrive over time.",
    "state": "Read the instances that there are.",
}
"""What the commands of a group do that begin with the same word."""


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
        epilog="Example: mig-opt solve rodinia-a30",
        add_completion=False,
        pretty_exceptions_enable=False,
        **_SETTINGS,
    )
    app.callback()(_options)
    groups = {"": app}
    for name in [name for name in COMMANDS if name.split()[0] == first] or COMMANDS:
        group, _, last = name.rpartition(" ")
        if group not in groups:
            groups[group] = typer.Typer(help=GROUPS[group], **_SETTINGS)
            app.add_typer(groups[group], name=group)
        module = importlib.import_module(f"mig_opt.cli.{COMMANDS[name].module}")
        function = getattr(module, f"{last}_" if keyword.iskeyword(last) else last)
        groups[group].command(last, epilog=f"Example: {COMMANDS[name].example}")(guarded(function))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mig-opt {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that whatever it raises becomes a message on standard error and an exit code.

    A parameter whose type is a dataclass becomes one option for each field of it.
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

    @functools.wraps(command)
    def run(**values: Any) -> None:
        prepare_streams()
        try:
            for name, kind in groups.items():
                values[name] = kind(**{field.name: values.pop(field.name) for field in dataclasses.fields(kind)})
            command(**values)
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(report(error, {entry.name: _shown_name(entry) for entry in parameters})) from None

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _shown_name(parameter: inspect.Parameter) -> str:
    """Return a parameter as the command line names it: ``--time-limit``, ``-n``, ``NAME``."""
    info = next(part for part in parameter.annotation.__metadata__ if isinstance(part, ArgumentInfo | OptionInfo))
    if isinstance(info, ArgumentInfo):
        return info.metavar or parameter.name
    names = [name for name in (info.default, *(info.param_decls or ())) if isinstance(name, str)]
    return names[0] if names else f"--{parameter.name.replace('_', '-')}"
