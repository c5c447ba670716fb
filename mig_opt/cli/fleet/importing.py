"""The command mig-opt state import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from typer import Argument, Option

from mig_opt.cli import options
from mig_opt.cli.fleet.defragmenting import gpu_map
from mig_opt.cli.inputs import STANDARD_INPUT, check_outputs, piped
from mig_opt.cli.outcome import Checks, options_named, print_text, refuse, say
from mig_opt.cli.screens import MOST_ROWS, Part, card, noted, show, show_remarks, table
from mig_opt.fleet.state import FleetState
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.operations.observe.state_import import Format, StateImport


def import_(
    source: Annotated[
        list[str] | None,
        Argument(metavar="SOURCE", help="Files of one form, or - for standard input.", show_default=False),
    ] = None,
    *,
    form: Annotated[
        str | None,
        Option(
            "--format",
            metavar="NAME",
            help="nvidia-smi, nvml, dra, device-plugin, hami or slurm.",
            show_default="guessed",
        ),
    ] = None,
    nvml: Annotated[bool, Option("--nvml", help="Ask the GPUs of this machine: short for --format nvml.")] = False,
    gpu: Annotated[str | None, Option(metavar="GPU", help="Kind of GPU: the others are left out.")] = None,
    assume_places: Annotated[
        bool, Option("--assume-places", help="Take any places for instances whose places SOURCE does not tell.")
    ] = False,
    output: Annotated[Path | None, options.output("Write the state to a file, not to standard output.")] = None,
) -> None:
    """Make a state of what a GPU, a node or a cluster says about its instances.

    SOURCE is the output of nvidia-smi, alone or with -L, mig -lgi, mig -lci or -q -x, joined in one file (of several
    nodes with "node: " before each line), of kubectl get nodes,pods,resourceslices,resourceclaims,pdb -A -o json (or
    yaml), or Slurm's gres.conf with scontrol show node -d and show job -d. With --nvml the GPUs of this machine are
    asked. What is left out, or not in SOURCE, is said on standard error.
    """
    from mig_opt.files.documents import decoded
    from mig_opt.operations.observe.sightings import Source
    from mig_opt.operations.observe.state_import import import_state, state_from_text

    names = source or []
    checks = Checks()
    found: StateImport | None = None
    if nvml:
        checks.require(form in (None, "nvml"), "--nvml", f"and --format {form} exclude each other; give one of them")
        form = "nvml"
    checks.finish()
    with checks.step(), options_named({"paths": "SOURCE"}):
        if STANDARD_INPUT not in names:
            found = import_state(*names, format=cast("Format | None", form), gpu=gpu, assume_places=assume_places)
        elif len(names) > 1:
            refuse("SOURCE", "standard input stands alone; leave the files out")
        else:
            text, label = decoded(piped(STANDARD_INPUT) or b"", "standard input"), "standard input"
            found = state_from_text(
                [Source(text)], cast("Format | None", form), gpu=gpu, assume_places=assume_places, label=label
            )
    checks.attempt(check_outputs, names, state=output)
    checks.finish()
    assert found is not None
    _write(found, output)


def _write(found: StateImport, output: Path | None) -> None:
    from mig_opt.files.fleet.states import state_to_json, write_state

    if output is None:
        print_text(state_to_json(found.state))
    else:
        write_state(found.state, output)
        show(_summary(found), "", _gpus(found.state))
        show_remarks([f"State written to {output}."])
    for note in found.notes:
        say(f"note: {note}")


def _summary(found: StateImport) -> Part:
    state = found.state
    idle = len(state.idle)
    nodes = len(set(state.nodes))
    on = f" on {plural(nodes, 'node')}" if nodes else ""
    return card(
        [
            ("format", found.format),
            ("fleet", f"{state.gpus} x {state.gpu.name}{on}"),
            ("instances", f"{len(state.instances)}, {idle} of them idle" if idle else str(len(state.instances))),
            ("owned by", state.manager or None),
            ("budgets", ", ".join(f"{owner} {most}" for owner, most in state.budgets.items()) or None),
        ]
    )


def _gpus(state: FleetState) -> Part:
    """Return the GPUs slice by slice, with those who use them."""
    rows = []
    for index in range(min(state.gpus, MOST_ROWS)):
        held = state.on(index)
        users = ", ".join(dict.fromkeys(one.owner or one.name for one in held if one.owner or one.name))
        node = [state.nodes[index]] if state.nodes else []
        number = state.devices[index].index if state.devices else index
        rows.append([str(number), *node, gpu_map(state, held), users])
    columns = [">GPU", *(["node"] if state.nodes else []), "slices", "/in use by"]
    remarks = [f"The first {MOST_ROWS} of {state.gpus} GPUs are shown."] if state.gpus > MOST_ROWS else []
    remarks.append("One column for each memory slice, .. is free" + (", ~ is idle." if state.idle else "."))
    return noted(table(columns, rows), remarks)
