"""The command gpus import, and what ``--gpu`` may name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mig_opt.cli import options
from mig_opt.cli.answers import Call, Product, made
from mig_opt.cli.checks import options_named
from mig_opt.method.report import Report
from mig_opt.texts import plural


def named_gpu(argument: str) -> str:
    """Return the name of the GPU that ``--gpu`` stands for; the model in a file ``.json`` is known from then on."""
    if not argument.lower().endswith(".json"):
        return argument  # without all that reads files
    from mig_opt.files.kinds import gpu_named

    return gpu_named(argument)


def gpus_import(
    call: Call,
    source: Annotated[
        list[str] | None, options.argument("SOURCE", "Files with the output, or - for standard input; none: NVML.")
    ] = None,
    *,
    name: Annotated[str | None, "NAME", "What to call the GPU.  [default: as its board]"] = None,
    device: Annotated[int | None, "N", "Number of the GPU, where SOURCE lists several that differ."] = None,
    costs: Annotated[
        str | None, "NAME|FILE", "Seconds of creations and destructions: as for solve.  [default: of an H100]"
    ] = None,
    output: Annotated[Path | None, "Write the model to a file, not to standard output."] = None,
) -> Product:
    """Make a model of a GPU from what its driver lists.

    SOURCE is the output of nvidia-smi mig -lgip and nvidia-smi mig -lgipp, in one file or in two; with that of
    nvidia-smi -L the GPU has the name of its board. Without SOURCE the GPUs of this machine are asked; MIG mode has to
    be on. Every command takes the file in place of the name of a GPU, and files may name it.

    Examples
    --------
    mig-opt gpus import -o my-gpu.json
    mig-opt gpus import profiles.txt starts.txt --name H200-A -o my-gpu.json
    """
    from mig_opt.cli.inputs import named_costs, texts_of
    from mig_opt.files.costs import COSTS
    from mig_opt.files.kinds import GPU
    from mig_opt.operations.observe.gpu_models import import_gpu

    with call.step(), options_named({"name": "--name", "device": "--device", "operation_costs": "--costs"}):
        operations = None if costs is None else named_costs(costs) or COSTS.read(costs)
        found = import_gpu(*texts_of(source or []), name=name, device=device, operations=operations)
    call.begin(gpu=output)
    said, model = [f"note: {note}" for note in found.notes], found.model
    facts = [
        ("GPU", model.name),
        ("board", model.label),
        ("slices", f"{model.compute_slices} compute, {model.memory_slices} memory"),
        ("profiles", f"{len(model.profiles)}: {', '.join(profile.name for profile in model.profiles)}"),
        ("partitions", plural(len(model.maximal_partitions()), "maximal one")),
    ]
    return made("model", model, output, GPU.to_json, Report(facts), said=said)
