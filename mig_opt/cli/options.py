"""Arguments and options that several commands have, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from mig_opt.cli import completing
from mig_opt.cli.outcome import DEFAULT_TIME_LIMIT

_PROBLEM_HELP = "JSON or CSV file, bundled instance, or -."


def file(explanation: str, *names: str) -> Any:
    """Return the declaration of an option that takes the name of a file."""
    return Option(*names, metavar="FILE", help=explanation)


def output(explanation: str) -> Any:
    """Return the declaration of the option ``--output``."""
    return file(explanation, "--output", "-o")


def plot(subject: str) -> Any:
    """Return the declaration of the option ``--plot``."""
    return file(f"Draw {subject} as .png, .pdf, .svg, or .html to explore.", "--plot")


def in_place_of_gpu(subject: str) -> Any:
    """Return the declaration of the option ``--gpu``, for what names a GPU (or several) itself."""
    explanation = f"In place of the {subject} names; CSV files need it."
    return Option("--gpu", metavar="GPU", help=explanation, autocompletion=completing.gpus)


def in_place_of_gpus(subject: str) -> Any:
    """Return the declaration of the option ``--gpus``, for what has a number of GPUs itself."""
    return Option("--gpus", metavar="N", help=f"In place of {subject}'s number of GPUs.")


BatchArgument = Annotated[
    str, Argument(metavar="BATCH", help=_PROBLEM_HELP, show_default=False, autocompletion=completing.batches)
]
ScheduleArgument = Annotated[Path, Argument(metavar="SCHEDULE", help="JSON file.", show_default=False)]
ServicesArgument = Annotated[
    str,
    Argument(
        metavar="SERVICES",
        help="JSON or CSV file, bundled demand, or -.",
        show_default=False,
        autocompletion=completing.demands,
    ),
]
DeploymentArgument = Annotated[Path, Argument(metavar="DEPLOYMENT", help="JSON or CSV file.", show_default=False)]
PictureArgument = Annotated[Path, Argument(metavar="OUT", help=".png, .pdf, .svg or .html file.", show_default=False)]
ScriptArgument = Annotated[Path, Argument(metavar="OUT", help="File for bash.", show_default=False)]
TraceArgument = Annotated[str, Argument(metavar="TRACE", help="JSON or CSV file, or -.", show_default=False)]
ListedArgument = Annotated[str | None, Argument(metavar="NAME", help="Show everything about this one.")]

Gpu = Annotated[str | None, in_place_of_gpu("GPU that BATCH")]
Gpus = Annotated[int | None, in_place_of_gpus("BATCH")]
TraceGpu = Annotated[str | None, in_place_of_gpu("GPU that TRACE")]
TraceGpus = Annotated[int | None, in_place_of_gpus("TRACE")]
CostFree = Annotated[bool, Option("--cost-free", help="Creations and destructions take no time, whatever BATCH says.")]
Costs = Annotated[
    str | None,
    Option(
        "--costs",
        metavar="NAME|FILE",
        help="Seconds of creations and destructions: nvml, nvidia-smi or kubernetes (see: mig-opt gpus GPU), or a file "
        "of mig-opt run --measured-costs.",
    ),
]

Method = Annotated[
    str, Option(metavar="NAME", help="One of: mig-opt methods.", autocompletion=completing.methods_of_command)
]
TimeLimit = Annotated[float, Option(metavar="S", help="Seconds.")]
ExactTimeLimit = Annotated[
    float | None, Option(metavar="S", help=f"Seconds.  [default: {DEFAULT_TIME_LIMIT:g} for exact methods]")
]
Seed = Annotated[int, Option(metavar="N", help="For what is random.")]
Workers = Annotated[int | None, Option(metavar="N", help="Threads.  [default: one per core]")]
Json = Annotated[bool, Option("--json", help="Print one JSON object.")]
Devices = Annotated[
    str | None,
    Option(
        "--devices",
        metavar="LIST",
        help="What nvidia-smi -i takes for each GPU, after HOST/ in other machines.  [default: known, or 0,1,...]",
    ),
]

Profiles = Annotated[
    list[Path] | None,
    Option("--profiles", metavar="FILE", help="Profile tables, or a folder of them; may be given repeatedly."),
]
Scenario = Annotated[str | None, Option(metavar="NAME", help="Which rows of a CSV file with such a column.")]
SloShare = Annotated[float | None, Option(metavar="S", help="Share of the SLO that latency may take.  [default: 0.5]")]
WholeMs = Annotated[
    bool | None,
    Option(
        "--whole-ms/--no-whole-ms", help="SLO in whole ms, latency below the share: ParvaGPU's program (share 0.45)."
    ),
]
MaxProcesses = Annotated[int | None, Option(metavar="N", help="Most processes that share an instance.")]


@dataclass(frozen=True, slots=True)
class ServicesOptions:
    """Options that complete or override services; None (or False) where they were not given."""

    gpu: Annotated[str | None, in_place_of_gpu("GPUs that SERVICES")] = None
    profiles: Profiles = None
    scenario: Scenario = None
    slo_share: SloShare = None
    whole_ms: WholeMs = None
    max_processes: MaxProcesses = None


@dataclass(frozen=True, slots=True)
class ProblemOptions:
    """Options of commands for batches that take services too; None (or False) where they were not given.

    Those up to ``costs`` have a meaning for batches; of these, ``gpu`` has one for services, as all others. The help
    does not show those, since services have commands of their own.
    """

    gpu: Gpu = None
    gpus: Gpus = None
    cost_free: CostFree = False
    costs: Costs = None
    profiles: Annotated[list[Path] | None, Option("--profiles", hidden=True)] = None
    scenario: Annotated[str | None, Option("--scenario", hidden=True)] = None
    slo_share: Annotated[float | None, Option("--slo-share", hidden=True)] = None
    whole_ms: Annotated[bool | None, Option("--whole-ms/--no-whole-ms", hidden=True)] = None
    max_processes: Annotated[int | None, Option("--max-processes", hidden=True)] = None

    def for_services(self) -> ServicesOptions:
        """Return those that services have."""
        return ServicesOptions(
            self.gpu, self.profiles, self.scenario, self.slo_share, self.whole_ms, self.max_processes
        )
