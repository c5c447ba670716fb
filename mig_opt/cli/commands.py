"""The commands by name: where each is, under which heading the help lists it, and examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

BATCHES = "Batches (tasks on GPUs)"
SERVICES = "Services (requests on the fewest GPUs)"
FLEETS = "Fleets (jobs that arrive over time)"
MORE = "Files, figures and catalogues"


class Command(NamedTuple):
    """Command: heading, the module of its function, which has its last word as name, and examples."""

    heading: str
    module: str
    examples: tuple[str, ...]


COMMANDS: Mapping[str, Command] = {
    "solve": Command(
        BATCHES,
        "batch.solving",
        (
            "mig-opt solve rodinia-a30",
            "mig-opt solve batch.json --time-limit 30 -o plan.json --plot plan.png",
            "mig-opt solve tasks.csv --gpu A100 --gpus 2 --method far",
        ),
    ),
    "validate": Command(
        BATCHES,
        "planning",
        ("mig-opt validate batch.json plan.json", "mig-opt validate batch.json plan.json --json"),
    ),
    "bound": Command(BATCHES, "planning", ("mig-opt bound rodinia-a30", "mig-opt bound tasks.csv --gpu H100")),
    "explain": Command(
        BATCHES,
        "batch.explaining",
        ("mig-opt explain rodinia-a30", "mig-opt explain rodinia-a30 --target 28"),
    ),
    "compare": Command(
        BATCHES,
        "batch.comparing",
        (
            "mig-opt compare rodinia-a30",
            "mig-opt compare rodinia-a30 batch.json --methods cp,far -o table.csv",
        ),
    ),
    "prove": Command(
        BATCHES,
        "batch.proving",
        ("mig-opt prove rodinia-a30 plan.json -o certificate.json",),
    ),
    "check": Command(
        BATCHES,
        "batch.proving",
        (
            "mig-opt check rodinia-a30 plan.json certificate.json",
            "mig-opt check rodinia-a30 plan.json certificate.json --rerun",
        ),
    ),
    "plot": Command(BATCHES, "planning", ("mig-opt plot batch.json plan.json plan.svg",)),
    "script": Command(
        BATCHES,
        "planning",
        (
            "mig-opt script batch.json plan.json plan.sh",
            "mig-opt script batch.json plan.json plan.sh --devices 2,3",
        ),
    ),
    "profile": Command(
        BATCHES,
        "profiling",
        (
            "mig-opt profile --commands commands.json --gpu A100 -o batch.json",
            "mig-opt profile --commands commands.json --gpu A30 -o b.json --sizes 1,2",
        ),
    ),
    "run": Command(
        BATCHES,
        "batch.running",
        (
            "mig-opt run batch.json plan.json --commands commands.json --dry-run",
            "mig-opt run batch.json plan.json --commands commands.json",
            "mig-opt run --resume run.journal",
        ),
    ),
    "deploy": Command(
        SERVICES,
        "serving.deploying",
        (
            "mig-opt deploy parvagpu-s3",
            "mig-opt deploy services.json -o fleet.json --plot fleet.png",
            "mig-opt deploy services.json --promise 99% -o fleet.json",
            "mig-opt deploy services.json --from fleet.json --export nvidia-smi -o go.sh",
        ),
    ),
    "serve": Command(
        SERVICES,
        "serving.serving",
        (
            "mig-opt serve fleet.json --services services.json",
            "mig-opt serve fleet.json --services services.json --rates rates.csv",
        ),
    ),
    "services validate": Command(
        SERVICES,
        "serving.planning",
        ("mig-opt services validate services.json fleet.json",),
    ),
    "services bound": Command(
        SERVICES,
        "serving.planning",
        ("mig-opt services bound parvagpu-s3", "mig-opt services bound services.json --slo-share 0.4"),
    ),
    "services plot": Command(
        SERVICES,
        "serving.planning",
        ("mig-opt services plot services.json fleet.json fleet.svg",),
    ),
    "services script": Command(
        SERVICES,
        "serving.planning",
        ("mig-opt services script services.json fleet.json fleet.sh",),
    ),
    "simulate": Command(
        FLEETS,
        "fleet.simulating",
        (
            "mig-opt simulate trace.json",
            "mig-opt simulate trace.json --policy planner:patience=600,first-fit",
            "mig-opt simulate jobs.csv --gpu A100 --gpus 4 --plot fleet.png",
        ),
    ),
    "defragment": Command(
        FLEETS,
        "fleet.defragmenting",
        (
            "mig-opt defragment fleet.json --for 3g.20gb",
            "mig-opt defragment fleet.json --free gpus --script moves.sh",
        ),
    ),
    "trace families": Command(
        FLEETS,
        "fleet.tracing",
        ("mig-opt trace families", "mig-opt trace families normal-25"),
    ),
    "trace generate": Command(
        FLEETS,
        "fleet.tracing",
        ("mig-opt trace generate pcie-4 --set pcie_share=0.4 --seed 7 -o trace.json",),
    ),
    "trace import": Command(
        FLEETS,
        "fleet.tracing",
        ("mig-opt trace import openb_pod_list_default.csv --gpus 100 -o openb.json",),
    ),
    "trace describe": Command(FLEETS, "fleet.tracing", ("mig-opt trace describe trace.json --bounds",)),
    "state import": Command(
        FLEETS,
        "fleet.importing",
        (
            "(nvidia-smi; nvidia-smi mig -lgi) | mig-opt state import - -o fleet.json",
            "mig-opt state import --format nvml -o fleet.json",
        ),
    ),
    "init": Command(
        MORE,
        "starting",
        ("mig-opt init batch", "mig-opt init services my-services.json", "mig-opt init rates -"),
    ),
    "generate": Command(
        MORE,
        "making",
        ("mig-opt generate -n 20 --gpu H100 --seed 7 -o batch.json",),
    ),
    "export": Command(MORE, "making", ("mig-opt export rodinia-a30 rodinia.mps",)),
    "schema": Command(MORE, "making", ("mig-opt schema batch",)),
    "bench": Command(
        MORE,
        "benching",
        ("mig-opt bench study.toml --jobs 2", "mig-opt bench study.toml --table"),
    ),
    "instances": Command(MORE, "catalogues", ("mig-opt instances", "mig-opt instances rodinia-a30")),
    "gpus": Command(MORE, "catalogues", ("mig-opt gpus", "mig-opt gpus A100")),
    "methods": Command(MORE, "catalogues", ("mig-opt methods",)),
    "versions": Command(MORE, "catalogues", ("mig-opt versions --json",)),
    "completion": Command(
        MORE,
        "completing",
        (
            "mig-opt completion bash > ~/.local/share/bash-completion/completions/mig-opt",
            "mig-opt completion zsh > ~/.zfunc/_mig-opt",
            "mig-opt completion fish > ~/.config/fish/completions/mig-opt.fish",
        ),
    ),
}
"""The commands, in the order in which the help lists them."""

GROUPS: Mapping[str, str] = {
    "services": "Check, bound, draw and carry out deployments.",
    "trace": "Make and describe traces: jobs that arrive over time.",
    "state": "Read the instances that there are.",
}
"""What the commands of a group do that begin with the same word."""


def heading(word: str) -> str:
    """Return the heading under which the help lists the commands that begin with a word."""
    return next(command.heading for name, command in COMMANDS.items() if name.split()[0] == word)


def epilog(examples: tuple[str, ...]) -> str:
    """Return examples as the end of a help, one on each line."""
    # The mark keeps the lines as they are.
    return "\n".join(["\b", "Example:" if len(examples) == 1 else "Examples:", *(f"  {line}" for line in examples)])
