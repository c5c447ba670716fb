"""Arguments and options that several commands have, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from mig_opt.cli import completion
from mig_opt.cli.answers import DEFAULT_TIME_LIMIT


def plot(subject: str) -> Any:
    """Return the declaration of the option ``--plot``."""
    return Option("--plot", metavar="FILE", help=f"Draw {subject} as .png, .pdf, .svg, or .html to explore.")


def argument(metavar: str, explanation: str, complete: Any = None) -> Any:
    """Return the declaration of an argument; no default is shown."""
    return Argument(metavar=metavar, help=explanation, show_default=False, autocompletion=complete)


def in_place_of_gpu(subject: str) -> Any:
    """Return the declaration of the option ``--gpu``, for what names a GPU (or several) itself."""
    explanation = f"In place of the {subject} names; CSV files need it."
    return Option("--gpu", metavar="GPU", help=explanation, autocompletion=completion.gpus)


def in_place_of_gpus(subject: str) -> Any:
    """Return the declaration of the option ``--gpus``, for what has a number of GPUs itself."""
    return Option("--gpus", metavar="N", help=f"In place of {subject}'s number of GPUs.")


BatchArgument = Annotated[str, argument("BATCH", "JSON or CSV file, bundled instance, or -.", completion.batches)]
ScheduleArgument = Annotated[Path, argument("SCHEDULE", "JSON file, also that of a result.")]
ServicesArgument = Annotated[str, argument("SERVICES", "JSON or CSV file, bundled demand, or -.", completion.demands)]
DeploymentArgument = Annotated[Path, argument("DEPLOYMENT", "JSON or CSV file, also that of a result.")]
PictureArgument = Annotated[Path, argument("OUT", ".png, .pdf, .svg or .html file.")]
ScriptArgument = Annotated[Path, argument("OUT", "File for bash.")]
TraceArgument = Annotated[str, argument("TRACE", "JSON or CSV file, bundled trace, or -.", completion.traces)]
StateArgument = Annotated[str, argument("STATE", "JSON or CSV file, bundled state, or -.", completion.states)]
ListedArgument = Annotated[str | None, argument("NAME", "Show everything about this one.")]

Gpu = Annotated[str | None, in_place_of_gpu("GPU that BATCH")]
Gpus = Annotated[int | None, in_place_of_gpus("BATCH")]
TraceGpu = Annotated[str | None, in_place_of_gpu("GPU that TRACE")]
TraceGpus = Annotated[int | None, in_place_of_gpus("TRACE")]
TraceOutput = Annotated[Path | None, "--output", "-o", "Write to a .json or .csv file, not to standard output."]
CostFree = Annotated[bool, "--cost-free", "Creations and destructions take no time, whatever BATCH says."]
Costs = Annotated[
    str | None,
    "NAME|FILE",
    "--costs",
    "Seconds of creations and destructions: nvml, nvidia-smi or kubernetes (see: mig-opt gpus GPU), or a file "
    "of mig-opt run --measured-costs.",
]
Start = Annotated[str | None, "STATE", "--from", "Instances that there are: a file of mig-opt state import."]

BARE = {"--replan": "--replan=20%"}
"""Options whose value may be left out, with the one that is meant then."""

Method = Annotated[
    str, Option(metavar="NAME", help="One of: mig-opt methods.", autocompletion=completion.methods_of_command)
]
Partition = Annotated[str | None, "P", "For --method fixpart: instances in order, such as 4+2+1."]
TimeLimit = Annotated[float, "S", "Seconds."]
ExactTimeLimit = Annotated[float | None, "S", f"Seconds.  [default: {DEFAULT_TIME_LIMIT:g} for exact methods]"]
Seed = Annotated[int, "N", "For what is random."]
Workers = Annotated[int | None, "N", "Threads.  [default: one per core]"]
TASKS_USER = "Whom the tasks run as, where root runs them.  [default: who has called sudo]"
Devices = Annotated[
    str | None,
    "LIST",
    "--devices",
    "What nvidia-smi -i takes for each GPU, after HOST/ in other machines.  [default: known, or 0,1,...]",
]


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Options that complete or override a batch; None where they were not given."""

    gpu: Gpu = None
    gpus: Gpus = None
    costs: Costs = None


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options that complete services; None where they were not given."""

    gpu: Annotated[str | None, in_place_of_gpu("GPUs that SERVICES")] = None
    profiles: Annotated[
        list[Path] | None, "--profiles", "Profile tables, or a folder of them; may be given repeatedly."
    ] = None
    scenario: Annotated[str | None, "NAME", "Which rows of a CSV file with such a column."] = None


@dataclass(frozen=True, slots=True)
class ServicesOptions(TableOptions):
    """Options that complete or override services; None where they were not given."""

    slo_share: Annotated[float | None, "SHARE", "Share of the SLO that latency may take.  [default: 0.5]"] = None
    whole_ms: Annotated[
        bool | None,
        "--whole-ms/--no-whole-ms",
        "SLO in whole ms, latency below the share: ParvaGPU's program (share 0.45).",
    ] = None
    max_processes: Annotated[int | None, "N", "Most processes that share an instance."] = None


@dataclass(frozen=True, slots=True)
class CostOptions(BatchOptions):
    """Options that complete or override a batch, or take its costs away; None (or False) where they were not given."""

    cost_free: CostFree = False


@dataclass(frozen=True, slots=True)
class ProblemOptions(CostOptions):
    """Options of commands for batches that take services too.

    Of those for batches, ``gpu`` has a meaning for services, as all others. The help does not show these, since
    services have commands of their own.
    """

    profiles: Annotated[list[Path] | None, Option(metavar="FILE", hidden=True)] = None
    scenario: Annotated[str | None, Option(hidden=True)] = None
    slo_share: Annotated[float | None, Option(hidden=True)] = None
    whole_ms: Annotated[bool | None, Option("--whole-ms/--no-whole-ms", hidden=True)] = None
    max_processes: Annotated[int | None, Option(hidden=True)] = None
