"""Puts the commands together."""

from __future__ import annotations

from typing import Annotated

import typer

from mig_opt._version import __version__
from mig_opt.cli import benching, catalogues, making, scripting
from mig_opt.cli.batch import comparing, explaining, proving
from mig_opt.cli.batch import solving as planning
from mig_opt.cli.fleet import defragmenting, simulating, tracing
from mig_opt.cli.outcome import guarded
from mig_opt.cli.serving import deploying

app = typer.Typer(
    name="mig-opt",
    help="Optimal plans for NVIDIA Multi-Instance GPUs.\n\n"
    "BATCH and SERVICES are JSON or CSV files, names of bundled instances (see: mig-opt instances), or - for standard "
    "input.",
    epilog="Example: mig-opt solve rodinia-a30",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


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


for command, example in (
    (planning.solve, "mig-opt solve batch.json --time-limit 30 -o plan.json --plot plan.png"),
    (deploying.deploy, "mig-opt deploy services.json --profiles profiles/ -o fleet.json --plot fleet.png"),
    (planning.validate, "mig-opt validate batch.json plan.json"),
    (planning.bound, "mig-opt bound rodinia-a30"),
    (explaining.explain, "mig-opt explain rodinia-a30 --target 28"),
    (proving.prove, "mig-opt prove rodinia-a30 plan.json -o certificate.json"),
    (proving.check, "mig-opt check rodinia-a30 plan.json certificate.json"),
    (planning.plot, "mig-opt plot batch.json plan.json plan.svg"),
    (scripting.script, "mig-opt script batch.json plan.json plan.sh"),
    (comparing.compare, "mig-opt compare rodinia-a30 batch.json --methods cp,far --time-limit 5"),
    (benching.bench, "mig-opt bench study.json --jobs 2"),
    (simulating.simulate, "mig-opt simulate trace.json --policy fragmentation-aware,first-fit"),
    (defragmenting.defragment, "mig-opt defragment fleet.json --for 3g.20gb"),
    (catalogues.instances, "mig-opt instances rodinia-a30"),
    (catalogues.gpus, "mig-opt gpus A100"),
    (catalogues.methods, "mig-opt methods"),
    (catalogues.versions, "mig-opt versions --json"),
    (making.generate, "mig-opt generate -n 20 --gpu H100 --seed 7 -o batch.json"),
    (making.export, "mig-opt export rodinia-a30 rodinia.mps"),
    (making.schema, "mig-opt schema batch"),
):
    app.command(epilog=f"Example: {example}")(guarded(command))

app.add_typer(tracing.app, name="trace")
