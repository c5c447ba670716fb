"""The command state import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from mig_opt.cli import options
from mig_opt.cli.answers import Call, Product, made
from mig_opt.cli.checks import options_named, refuse
from mig_opt.cli.figures import MOST_ROWS, first_of, joined
from mig_opt.cli.fleet.defragment import gpu_map
from mig_opt.cli.inputs import texts_of
from mig_opt.fleet.state import FleetState
from mig_opt.method.report import Report, Table
from mig_opt.texts import plural

if TYPE_CHECKING:
    from mig_opt.operations.observe.state_import import Format


def state_import(
    call: Call,
    source: Annotated[
        list[str] | None, options.argument("SOURCE", "Files of one form, or - for standard input.")
    ] = None,
    *,
    form: Annotated[
        str | None, "NAME", "--format", "nvidia-smi, nvml, dra, device-plugin, hami or slurm.  [default: guessed]"
    ] = None,
    nvml: Annotated[bool, "Ask the GPUs of this machine: short for --format nvml."] = False,
    gpu: Annotated[str | None, "GPU", "Kind of GPU: the others are left out."] = None,
    assume_places: Annotated[bool, "Take any places for instances whose places SOURCE does not tell."] = False,
    output: Annotated[Path | None, "Write the state to a file, not to standard output."] = None,
) -> Product:
    """Make a state of what GPUs, nodes or clusters print.

    SOURCE is the output of nvidia-smi, alone or with -L, mig -lgi, mig -lci or -q -x, joined in one file (of several
    nodes with "node: " before each line), of kubectl get nodes,pods,resourceslices,resourceclaims,pdb -A -o json (or
    yaml), or Slurm's gres.conf with scontrol show node -d and show job -d, and with nvidia-smi mig -lgi of each node in
    a file called after it. With --nvml the GPUs of this machine are asked. What is left out, or not in SOURCE, is said
    on standard error.

    Examples
    --------
    (nvidia-smi; nvidia-smi mig -lgi) | mig-opt state import - -o fleet.json
    mig-opt state import slurm.txt n1.txt n2.txt --gpu A100-40GB -o fleet.json
    mig-opt state import --format nvml -o fleet.json
    """
    from mig_opt.files.fleet.states import STATE
    from mig_opt.operations.observe.state_import import import_state

    if nvml:
        if form not in (None, "nvml"):
            refuse("--nvml", f"and --format {form} exclude each other; give one of them")
        form = "nvml"
    with call.step(), options_named({"paths": "SOURCE", "format": "--format"}):
        how = cast("Format | None", form)
        found = import_state(*texts_of(source or []), format=how, gpu=gpu, assume_places=assume_places)
    call.begin(state=output)
    state = found.state
    nodes = f" on {plural(len(set(state.nodes)), 'node')}" if state.nodes else ""
    idle = f", {len(state.idle)} of them idle" if state.idle else ""
    facts = [
        ("format", found.format),
        ("fleet", f"{state.fleet}{nodes}"),
        ("instances", f"{len(state.instances)}{idle}"),
        ("owned by", state.manager or None),
        ("budgets", ", ".join(f"{owner} {most}" for owner, most in state.budgets.items()) or None),
    ]
    said = [f"note: {note}" for note in found.notes]
    return made("state", state, output, STATE.to_json, Report(facts, [_gpus(state)]), said=said)


def _gpus(state: FleetState) -> Table:
    """Return the GPUs slice by slice, with those who use them."""
    rows = []
    for index in range(min(state.gpus, MOST_ROWS)):
        held = state.on(index)
        users = ", ".join(dict.fromkeys(one.owner or one.name for one in held if one.owner or one.name))
        node = [state.nodes[index]] if state.nodes else []
        number = state.devices[index].index if state.devices else index
        kind = [state.names[index]] if state.kinds else []
        rows.append([str(number), *node, *kind, gpu_map(state.kind(index), held), users])
    columns = [">GPU", *["node"] * bool(state.nodes), *["kind"] * bool(state.kinds), "slices", "/in use by"]
    meaning = "One column for each memory slice, .. is free" + (", ~ is idle." if state.idle else ".")
    return Table(columns, rows, joined([*first_of(state.gpus, "GPUs"), meaning]))
