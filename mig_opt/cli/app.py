"""The commands put together."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

from mig_opt._version import __version__
from mig_opt.cli import benching, catalogues, making, planning
from mig_opt.cli.batch import comparing, explaining, proving, solving
from mig_opt.cli.fleet import defragmenting, simulating, tracing
from mig_opt.cli.outcome import prepare_streams, report
from mig_opt.cli.serving import deploying, serving

_SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

app = typer.Typer(
    name="mig-opt",
    help="Optimal plans for NVIDIA Multi-Instance GPUs.\n\n"
    "BATCH and SERVICES are JSON or CSV files, names of bundled instances (see: mig-opt instances), or - for standard "
    "input.",
    epilog="Example: mig-opt solve rodinia-a30",
    add_completion=False,
    pretty_exceptions_enable=False,
    **_SETTINGS,
)
trace_app = typer.Typer(help="Make and describe traces: jobs that arrive over time.", **_SETTINGS)

COMMANDS: Mapping[Callable[..., None], str] = {
    solving.solve: "mig-opt solve batch.json --time-limit 30 -o plan.json --plot plan.png",
    deploying.deploy: "mig-opt deploy services.json --profiles profiles/ -o fleet.json --plot fleet.png",
    serving.serve: "mig-opt serve fleet.json --services services.json --arrivals bursty --plot latencies.png",
    planning.validate: "mig-opt validate batch.json plan.json",
    planning.bound: "mig-opt bound rodinia-a30",
    explaining.explain: "mig-opt explain rodinia-a30 --target 28",
    proving.prove: "mig-opt prove rodinia-a30 plan.json -o certificate.json",
    proving.check: "mig-opt check rodinia-a30 plan.json certificate.json",
    planning.plot: "mig-opt plot batch.json plan.json plan.svg",
    planning.script: "mig-opt script batch.json plan.json plan.sh",
    comparing.compare: "mig-opt compare rodinia-a30 batch.json --methods cp,far --time-limit 5",
    benching.bench: "mig-opt bench study.json --jobs 2",
    simulating.simulate: "mig-opt simulate trace.json --policy fragmentation-aware,first-fit",
    defragmenting.defragment: "mig-opt defragment fleet.json --for 3g.20gb",
    catalogues.instances: "mig-opt instances rodinia-a30",
    catalogues.gpus: "mig-opt gpus A100",
    catalogues.methods: "mig-opt methods",
    catalogues.versions: "mig-opt versions --json",
    making.generate: "mig-opt generate -n 20 --gpu H100 --seed 7 -o batch.json",
    making.export: "mig-opt export rodinia-a30 rodinia.mps",
    making.schema: "mig-opt schema batch",
}
"""Each command with an example."""

TRACE_COMMANDS: Mapping[Callable[..., None], str] = {
    tracing.families: "mig-opt trace families normal-25",
    tracing.generate: "mig-opt trace generate pcie-4 --set pcie_share=0.4 --seed 7 -o trace.json",
    tracing.import_: "mig-opt trace import openb_pod_list_default.csv --gpus 100 -o openb.json",
    tracing.describe: "mig-opt trace describe trace.json --bounds",
}


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mig-opt {__version__}")
        raise typer.Exit


@app.callback()
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


for group, commands in ((app, COMMANDS), (trace_app, TRACE_COMMANDS)):
    for function, example in commands.items():
        group.command(function.__name__.rstrip("_"), epilog=f"Example: {example}")(guarded(function))
app.add_typer(trace_app, name="trace")
